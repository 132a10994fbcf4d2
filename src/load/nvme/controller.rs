//! A controller: starts it, creates queues, aborts commands, resets it and shuts it down.
//!
//! Admin commands go one at a time through the admin queue ([`super::admin`]), under a lock. I/O never comes
//! here, unless a command does not come back ([`super::lane`]).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::admin::{Admin, Condition, Patience, Starting, refuse_unknown};
use super::bus::Bus;
use super::identify::{ControllerFacts, Namespace};
use super::prp::TRANSFER_BYTES_MAX;
use super::queue::QueuePair;
use super::spec::{self, ControllerCapabilities, NvmeCommand};
use crate::error::{Error, Result};

/// How long a shutdown may take if the controller does not say (RTD3E); Linux waits as long.
const SHUTDOWN_LEAST: Duration = Duration::from_secs(5);

/// A controller that was started. It is shut down when this is dropped.
pub struct Controller<B: Bus> {
    bus: Arc<B>,
    capabilities: ControllerCapabilities,
    patience: Patience,
    facts: ControllerFacts,
    namespaces: Vec<Namespace>,
    unusable: Vec<Error>,
    queues_max: u16,
    /// Counts resets: a queue made before the last one is void.
    generation: AtomicU32,
    admin: Mutex<Admin<B>>,
}

impl<B: Bus> Controller<B> {
    /// Starts a controller, whatever state it is in (Base 3.5.1), and learns its properties.
    ///
    /// # Errors
    /// If it is gone, does not become ready in the time that it states, or is of a kind that this driver does
    /// not know.
    pub fn start(bus: Arc<B>, patience: Patience) -> Result<Arc<Self>> {
        let capabilities = ControllerCapabilities(bus.read64(spec::CAP));
        refuse_unknown(&*bus, capabilities)?;
        let mut admin = Admin::new(&bus, capabilities)?;
        let starting = Starting { bus: &bus, capabilities, patience };
        starting.disable()?;
        starting.enable(&admin)?;
        let facts = starting.identify(&mut admin)?;
        let (namespaces, unusable) = starting.namespaces(&mut admin, &facts)?;
        // Doorbells come in pairs after the registers, the admin queue's first (PCIe 3.1.2).
        let pairs =
            bus.register_bytes().saturating_sub(spec::DOORBELLS) / (2 * capabilities.doorbell_stride_bytes());
        let queues_max = starting.allot_queues(&mut admin)?.min(pairs.saturating_sub(1) as u16);
        admin.taken = vec![false; queues_max.into()];
        Ok(Arc::new(Self {
            bus,
            capabilities,
            patience,
            facts,
            namespaces,
            unusable,
            queues_max,
            generation: AtomicU32::new(0),
            admin: Mutex::new(admin),
        }))
    }

    /// How it is reached.
    pub fn bus(&self) -> &Arc<B> {
        &self.bus
    }

    /// What it says about itself.
    pub fn facts(&self) -> &ControllerFacts {
        &self.facts
    }

    /// A namespace that can be used.
    ///
    /// # Errors
    /// If it does not exist, or why it can't be used.
    pub fn namespace(&self, id: u32) -> Result<Namespace> {
        let named = format!("namespace {id} ");
        let why = || self.unusable.iter().find(|error| error.what.starts_with(&named)).cloned();
        self.namespaces.iter().find(|namespace| namespace.id == id).copied().ok_or_else(|| {
            why().unwrap_or_else(|| Error::input(format!("{} has no namespace {id}", self.name())))
        })
    }

    /// Number of I/O queue pairs that it has.
    pub fn queues_max(&self) -> u16 {
        self.queues_max
    }

    /// Entries that an I/O queue may have (CAP.MQES).
    pub fn queue_entries_max(&self) -> u32 {
        self.capabilities.queue_entries_max()
    }

    /// The most that one command can move, by MDTS and by this driver's lists.
    pub fn transfer_bytes_max(&self) -> usize {
        let mdts = self.facts.transfer_bytes_max.unwrap_or(u64::MAX);
        mdts.min(TRANSFER_BYTES_MAX as u64) as usize
    }

    /// How long this driver waits.
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        self.bus.name()
    }

    /// How often it was reset. A queue made before the last reset is void.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// What its status register says (Base 3.1.3.6).
    pub fn condition(&self) -> Condition {
        match Condition::of(self.bus.read32(spec::CSTS)) {
            Condition::Ready if self.bus.is_recalled() => Condition::Recalled,
            other => other,
        }
    }

    /// Creates an I/O queue pair of that many entries, or as many as it can have (Base 5.4, 5.5). Also
    /// returns the generation that it belongs to.
    ///
    /// # Errors
    /// Input if all queue pairs are in use.
    pub fn open_queue(&self, entries: u32) -> Result<(QueuePair<B>, u32)> {
        let mut admin = self.lock()?;
        let Some(at) = admin.taken.iter().position(|taken| !taken) else {
            let what =
                format!("{} has {} queue pairs for I/O, and all are in use", self.name(), self.queues_max);
            return Err(Error::input(what).hint("use fewer threads: each has a queue pair of its own"));
        };
        let entries = entries.clamp(2, self.queue_entries_max());
        let stride_bytes = self.capabilities.doorbell_stride_bytes();
        let queue = QueuePair::new(&self.bus, at as u16 + 1, entries, stride_bytes)?;
        self.create(&mut admin, &queue)?;
        admin.taken[at] = true;
        Ok((queue, self.generation()))
    }

    /// Recreates a queue pair after a reset; returns the generation that it now belongs to. Notifies the
    /// owners of outstanding commands, which the reset aborted.
    pub fn reopen_queue(&self, queue: &mut QueuePair<B>, lost: impl FnMut(u32)) -> Result<u32> {
        let mut admin = self.lock()?;
        // We hold the lock, so the reset is over: nobody writes to the rings.
        queue.begin_anew(lost);
        self.create(&mut admin, queue)?;
        Ok(self.generation())
    }

    /// Deletes a queue pair, the submission queue first, which aborts outstanding commands (Base 5.6, 5.7).
    /// Afterwards the controller leaves its memory alone.
    pub fn close_queue(&self, queue: &QueuePair<B>, generation: u32) -> Result<()> {
        let mut admin = self.lock()?;
        if generation == self.generation() {
            for opcode in [spec::DELETE_SUBMISSION_QUEUE, spec::DELETE_COMPLETION_QUEUE] {
                let doing = "delete a queue";
                self.starting().ask(&mut admin, &NvmeCommand::delete_queue(opcode, queue.id()), doing)?;
            }
        }
        admin.taken[usize::from(queue.id()) - 1] = false;
        Ok(())
    }

    /// Requests the abort of a command (Base 5.1). The command's own completion shows whether it was aborted;
    /// false if the controller did not find it, or does not abort it.
    pub fn abort(&self, queue: u16, cid: u16) -> Result<bool> {
        let mut admin = self.lock()?;
        let result = self.starting().ask(&mut admin, &NvmeCommand::abort(queue, cid), "abort a command")?;
        Ok(result & 1 == 0)
    }

    /// Resets it through CC.EN (Base 3.7.2), unless someone has done so since its generation was `seen`. Then
    /// all its queues are void, and it touches none of their memory. Returns whether this call did it.
    ///
    /// # Errors
    /// If it does not come back. It is then given up.
    pub fn reset(&self, seen: u32) -> Result<bool> {
        let mut admin = self.lock()?;
        if self.generation() != seen {
            return Ok(false);
        }
        // First of all, so that the owners of queues stop writing doorbells.
        self.generation.store(seen.wrapping_add(1), Ordering::Release);
        let starting = self.starting();
        let again = |admin: &mut Admin<B>| {
            starting.disable()?;
            admin.queue.begin_anew(|_| {});
            starting.enable(admin)?;
            starting.allot_queues(admin)
        };
        let outcome = again(&mut admin);
        let outcome = outcome.map_err(|error| Error {
            what: format!("{} does not come back after a reset: {}", self.name(), error.what),
            ..error
        });
        if let Err(error) = &outcome {
            admin.down = Some(error.what.clone());
        }
        outcome.map(|_| true)
    }

    /// Shuts it down normally (Base 3.6.1): its volatile cache becomes durable. It accepts nothing
    /// afterwards.
    pub fn shut_down(&self) -> Result<()> {
        let mut admin = self.lock()?;
        admin.down = Some(format!("{} was shut down", self.name()));
        let starting = self.starting();
        let patience = self.facts.shutdown_timeout.unwrap_or_default().max(SHUTDOWN_LEAST);
        let cc = self.bus.read32(spec::CC);
        self.bus.write32(spec::CC, cc & !spec::CC_SHN | spec::CC_SHN_NORMAL);
        let done = starting.wait((spec::CSTS_SHST, spec::CSTS_SHST_COMPLETE), patience, "shut down");
        // Stop it in any case: it must not touch memory that is about to be freed.
        done.and(starting.disable())
    }

    fn create(&self, admin: &mut Admin<B>, queue: &QueuePair<B>) -> Result<()> {
        let (id, entries, starting) = (queue.id(), queue.entries(), self.starting());
        let completion = NvmeCommand::create_completion_queue(id, entries, queue.completion_address());
        starting.ask(admin, &completion, "make a completion queue")?;
        let submission = NvmeCommand::create_submission_queue(id, entries, queue.submission_address());
        let made = starting.ask(admin, &submission, "make a submission queue");
        if made.is_err() {
            // Only the first error matters.
            let delete = NvmeCommand::delete_queue(spec::DELETE_COMPLETION_QUEUE, id);
            let _ = starting.ask(admin, &delete, "delete a queue");
        }
        made.map(drop)
    }

    fn lock(&self) -> Result<MutexGuard<'_, Admin<B>>> {
        let admin = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
        match &admin.down {
            Some(why) => Err(Error::failed(why.clone())),
            None => Ok(admin),
        }
    }

    fn starting(&self) -> Starting<'_, B> {
        Starting { bus: &self.bus, capabilities: self.capabilities, patience: self.patience }
    }
}

impl<B: Bus> Drop for Controller<B> {
    fn drop(&mut self) {
        // It is refused a second time, or for a controller that was given up; nothing is lost by that.
        let _ = self.shut_down();
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
