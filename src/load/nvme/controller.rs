//! A controller: started, asked, told to make queues, to abort and to shut down, and reset.
//!
//! Admin commands go one at a time through the admin queue, under a lock. I/O never comes here, but
//! where a command does not come back ([`super::lane`]).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::bus::Bus;
use super::dma::Dma;
use super::identify::{ControllerFacts, IDENTIFY_BYTES, Namespace, active_namespaces};
use super::prp::{PAGE_BYTES, Prp, TRANSFER_BYTES_MAX};
use super::queue::QueuePair;
use super::spec::{self, Capabilities, Command, Completion};
use crate::error::{Error, Result};

/// Entries of the admin queues: commands go one at a time.
const ADMIN_ENTRIES: u32 = 16;
/// A shutdown may take so long where the controller does not say (RTD3E), as Linux has it.
const SHUTDOWN_LEAST: Duration = Duration::from_secs(5);

/// How long is waited before something counts as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For an I/O command, before it is to be aborted.
    pub command: Duration,
    /// For a command that is to be aborted, before the controller is reset.
    pub abort: Duration,
    /// For an admin command, before the controller is given up.
    pub admin: Duration,
}

impl Default for Patience {
    /// What Linux's own driver has (`nvme_core.io_timeout` and `admin_timeout`).
    fn default() -> Self {
        Self {
            command: Duration::from_secs(30),
            abort: Duration::from_secs(30),
            admin: Duration::from_mins(1),
        }
    }
}

/// What the status register says of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// CSTS.RDY: it works.
    Ready,
    /// It does not work, and no error is told.
    Stopped,
    /// CSTS.CFS: a fatal error (Base 9.5).
    Fatal,
    /// All bits are ones: it is no longer there.
    Removed,
    /// It works, and the kernel wants it back.
    Recalled,
}

impl Condition {
    fn of(csts: u32) -> Self {
        match csts {
            spec::GONE => Self::Removed,
            csts if csts & spec::CSTS_CFS != 0 => Self::Fatal,
            csts if csts & spec::CSTS_RDY != 0 => Self::Ready,
            _ => Self::Stopped,
        }
    }
}

/// A controller that was started. It is shut down when this is dropped.
pub struct Controller<B: Bus> {
    bus: Arc<B>,
    capabilities: Capabilities,
    patience: Patience,
    facts: ControllerFacts,
    namespaces: Vec<Namespace>,
    unusable: Vec<Error>,
    queues_max: u16,
    /// Counts resets: a queue that was made before the last one is void.
    generation: AtomicU32,
    admin: Mutex<Admin<B>>,
}

/// The admin queue, and what goes with the right to use it.
struct Admin<B> {
    queue: QueuePair<B>,
    /// What Identify writes to.
    page: Dma,
    /// By number less one, whether an I/O queue is in use.
    taken: Vec<bool>,
    /// Why no more commands are accepted.
    down: Option<String>,
}

impl<B: Bus> Controller<B> {
    /// Starts a controller in whatever state it is (Base 3.5.1), and learns what it is.
    ///
    /// # Errors
    /// Where it is gone, does not become ready in the time that it names, or is not one that this
    /// driver knows.
    pub fn start(bus: Arc<B>, patience: Patience) -> Result<Arc<Self>> {
        let capabilities = Capabilities(bus.read64(spec::CAP));
        refuse_unknown(&*bus, capabilities)?;
        let stride_bytes = capabilities.doorbell_stride_bytes();
        let entries = ADMIN_ENTRIES.min(capabilities.queue_entries_max());
        let queue = QueuePair::new(&bus, 0, entries, stride_bytes)?;
        let page = bus.allocate(IDENTIFY_BYTES)?;
        let mut admin = Admin { queue, page, taken: Vec::new(), down: None };
        let starting = Starting { bus: &bus, capabilities, patience };
        starting.disable()?;
        starting.enable(&admin)?;
        let facts = starting.identify(&mut admin)?;
        let (namespaces, unusable) = starting.namespaces(&mut admin, &facts)?;
        // Doorbells lie in pairs behind the registers, the admin queue's first (PCIe 3.1.2).
        let pairs = bus.register_bytes().saturating_sub(spec::DOORBELLS) / (2 * stride_bytes);
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

    /// What it says of itself.
    pub fn facts(&self) -> &ControllerFacts {
        &self.facts
    }

    /// The namespaces that can be used.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// A namespace that can be used.
    ///
    /// # Errors
    /// Where it is not there, or why it can't be used.
    pub fn namespace(&self, id: u32) -> Result<Namespace> {
        let named = format!("namespace {id} ");
        let why = || self.unusable.iter().find(|error| error.what.starts_with(&named)).cloned();
        self.namespaces.iter().find(|namespace| namespace.id == id).copied().ok_or_else(|| {
            why().unwrap_or_else(|| Error::input(format!("{} has no namespace {id}", self.name())))
        })
    }

    /// Queue pairs that it has for I/O.
    pub fn queues_max(&self) -> u16 {
        self.queues_max
    }

    /// Entries that an I/O queue may have (CAP.MQES).
    pub fn queue_entries_max(&self) -> u32 {
        self.capabilities.queue_entries_max()
    }

    /// The most that one command moves: by MDTS, and by the lists of this driver.
    pub fn transfer_bytes_max(&self) -> usize {
        let mdts = self.facts.transfer_bytes_max.unwrap_or(u64::MAX);
        mdts.min(TRANSFER_BYTES_MAX as u64) as usize
    }

    /// How long is waited.
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        self.bus.name()
    }

    /// How often it was reset. A queue that was made before the last time is void.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// What its status register says (Base 3.1.3.6).
    pub fn condition(&self) -> Condition {
        match Condition::of(self.bus.read32(spec::CSTS)) {
            Condition::Ready if self.bus.is_recalled() => Condition::Recalled,
            told => told,
        }
    }

    /// Makes an I/O queue pair of so many entries, or as many as it can have (Base 5.4, 5.5), and the
    /// generation that it belongs to.
    ///
    /// # Errors
    /// Input where all queue pairs are in use.
    pub fn open_queue(&self, entries: u32) -> Result<(QueuePair<B>, u32)> {
        let mut admin = self.lock()?;
        let Some(at) = admin.taken.iter().position(|taken| !taken) else {
            let what =
                format!("{} has {} queue pairs for I/O, and all are in use", self.name(), self.queues_max);
            return Err(Error::input(what).hint("fewer threads: each has a queue pair of its own"));
        };
        let entries = entries.clamp(2, self.queue_entries_max());
        let stride_bytes = self.capabilities.doorbell_stride_bytes();
        let queue = QueuePair::new(&self.bus, at as u16 + 1, entries, stride_bytes)?;
        self.create(&mut admin, &queue)?;
        admin.taken[at] = true;
        Ok((queue, self.generation()))
    }

    /// Makes a queue pair again whose controller was reset; returns the generation that it belongs to
    /// now. The owners of what was outstanding are told: it was aborted by the reset.
    pub fn reopen_queue(&self, queue: &mut QueuePair<B>, lost: impl FnMut(u32)) -> Result<u32> {
        let mut admin = self.lock()?;
        // The reset is over, as it holds the lock: nobody writes to the rings.
        queue.begin_anew(lost);
        self.create(&mut admin, queue)?;
        Ok(self.generation())
    }

    /// Deletes a queue pair, the submission queue first; commands that are outstanding are aborted
    /// by that (Base 5.6, 5.7). Afterwards the controller leaves its memory alone.
    pub fn close_queue(&self, queue: &QueuePair<B>, generation: u32) -> Result<()> {
        let mut admin = self.lock()?;
        if generation == self.generation() {
            for opcode in [spec::DELETE_SUBMISSION_QUEUE, spec::DELETE_COMPLETION_QUEUE] {
                let doing = "delete a queue";
                self.starting().ask(&mut admin, &Command::delete_queue(opcode, queue.id()), doing)?;
            }
        }
        admin.taken[usize::from(queue.id()) - 1] = false;
        Ok(())
    }

    /// Asks to abort a command (Base 5.1). Whether it will be tells its own completion; false where the
    /// controller did not find it, or does not abort it.
    pub fn abort(&self, queue: u16, cid: u16) -> Result<bool> {
        let mut admin = self.lock()?;
        let result = self.starting().ask(&mut admin, &Command::abort(queue, cid), "abort a command")?;
        Ok(result & 1 == 0)
    }

    /// Resets it by CC.EN (Base 3.7.2), unless somebody has since `seen` was its generation. All its
    /// queues are void then, and it touches none of their memory. Returns whether this call did it.
    ///
    /// # Errors
    /// Where it does not come back. It is given up.
    pub fn reset(&self, seen: u32) -> Result<bool> {
        let mut admin = self.lock()?;
        if self.generation() != seen {
            return Ok(false);
        }
        // First, so that the owners of queues write no more doorbells.
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

    /// Shuts it down normally (Base 3.6.1): what it holds in a volatile cache becomes durable. Nothing
    /// is accepted afterwards.
    pub fn shut_down(&self) -> Result<()> {
        let mut admin = self.lock()?;
        admin.down = Some(format!("{} was shut down", self.name()));
        let starting = self.starting();
        let patience = self.facts.shutdown_timeout.unwrap_or_default().max(SHUTDOWN_LEAST);
        let cc = self.bus.read32(spec::CC);
        self.bus.write32(spec::CC, cc & !spec::CC_SHN | spec::CC_SHN_NORMAL);
        let done = starting.wait((spec::CSTS_SHST, spec::CSTS_SHST_COMPLETE), patience, "shut down");
        // Stopped in any case: it must not touch memory that is given back.
        done.and(starting.disable())
    }

    fn create(&self, admin: &mut Admin<B>, queue: &QueuePair<B>) -> Result<()> {
        let (id, entries, starting) = (queue.id(), queue.entries(), self.starting());
        let completion = Command::create_completion_queue(id, entries, queue.completion_address());
        starting.ask(admin, &completion, "make a completion queue")?;
        let submission = Command::create_submission_queue(id, entries, queue.submission_address());
        let made = starting.ask(admin, &submission, "make a submission queue");
        if made.is_err() {
            // The error that matters is the first one.
            let delete = Command::delete_queue(spec::DELETE_COMPLETION_QUEUE, id);
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
        // A second time, or of one that is given up, it is refused, and nothing is lost.
        let _ = self.shut_down();
    }
}

/// Refuses a controller that is gone, or that this driver does not know.
fn refuse_unknown<B: Bus>(bus: &B, capabilities: Capabilities) -> Result<()> {
    let name = bus.name();
    if capabilities.0 == u64::MAX {
        return Err(gone(name));
    }
    if !capabilities.has_nvm_commands() {
        return Err(Error::input(format!("{name} does not know the NVM command set (CAP.CSS)")));
    }
    let page_bytes = capabilities.page_bytes_min();
    if page_bytes > PAGE_BYTES as u64 {
        let what = format!("{name} wants memory pages of {page_bytes} bytes (CAP.MPSMIN)");
        return Err(Error::input(format!("{what}, and this driver has pages of {PAGE_BYTES}")));
    }
    Ok(())
}

pub(super) fn gone(name: &str) -> Error {
    Error::failed(format!("{name} is no longer there: its registers read as ones"))
        .hint("it was pulled out or lost power; see the kernel's log (dmesg)")
}

pub(super) fn recalled(name: &str) -> Error {
    Error::failed(format!("the kernel wants {name} back: it is being removed, or given to another driver"))
}

pub(super) fn fatal(name: &str) -> Error {
    Error::failed(format!("{name} reports a fatal error (CSTS.CFS)"))
        .hint("`nvme error-log` and `nvme smart-log` may tell more once the kernel has it back")
}

/// The steps of a start, which a reset takes again.
struct Starting<'a, B> {
    bus: &'a Arc<B>,
    capabilities: Capabilities,
    patience: Patience,
}

impl<B: Bus> Starting<'_, B> {
    /// Clears CC.EN and waits until CSTS.RDY is clear too (Base 3.5.1, step 1; 3.7.2).
    fn disable(&self) -> Result<()> {
        let cc = self.bus.read32(spec::CC);
        if cc == spec::GONE {
            return Err(gone(self.bus.name()));
        }
        self.bus.write32(spec::CC, cc & !(spec::CC_EN | spec::CC_SHN));
        let stopped = self.wait((spec::CSTS_RDY, 0), self.capabilities.ready_timeout(), "stop");
        stopped.inspect_err(|_| self.bus.isolate())
    }

    /// Tells the admin queues (step 2), configures and enables (3 to 5), waits for CSTS.RDY (6).
    fn enable(&self, admin: &Admin<B>) -> Result<()> {
        let size = admin.queue.entries() - 1;
        self.bus.write32(spec::AQA, size << 16 | size);
        self.bus.write64(spec::ASQ, admin.queue.submission_address());
        self.bus.write64(spec::ACQ, admin.queue.completion_address());
        self.bus.write32(spec::CC, spec::CC_START);
        let ready = (spec::CSTS_RDY, spec::CSTS_RDY);
        self.wait(ready, self.capabilities.ready_timeout(), "become ready")
    }

    /// Waits until these bits of CSTS are as wanted.
    fn wait(&self, (bits, wanted): (u32, u32), patience: Duration, doing: &str) -> Result<()> {
        let began_ns = self.bus.now_ns();
        loop {
            let csts = self.bus.read32(spec::CSTS);
            match Condition::of(csts) {
                Condition::Removed => return Err(gone(self.bus.name())),
                _ if csts & bits == wanted => return Ok(()),
                // One that is to stop may still tell the error for which it has to.
                Condition::Fatal if wanted != 0 => return Err(fatal(self.bus.name())),
                _ if self.is_over(began_ns, patience) => {
                    let what = format!("{} did not {doing} within {patience:?}", self.bus.name());
                    return Err(Error::failed(what).hint("the drive may need to be powered off and on"));
                }
                _ => self.bus.pause(),
            }
        }
    }

    fn is_over(&self, began_ns: u64, patience: Duration) -> bool {
        u128::from(self.bus.now_ns().saturating_sub(began_ns)) >= patience.as_nanos()
    }

    /// Runs an admin command to its end; dword 0 of its completion.
    ///
    /// # Errors
    /// Its status in words. Where it does not come back or the answer is malformed, the controller is
    /// stopped and given up, for it may still write to the command's memory.
    fn ask(&self, admin: &mut Admin<B>, command: &Command, doing: &str) -> Result<u32> {
        let name = self.bus.name();
        match self.answer(admin, command) {
            Ok(Completion { status, result, .. }) if status.is_success() => Ok(result),
            Ok(Completion { status, .. }) => {
                Err(Error::failed(format!("{name} would not {doing}: {status}")))
            }
            Err(error) => {
                let what = format!("{name} did not {doing}: {}", error.what);
                admin.down = Some(what.clone());
                // The reason is what counts, not that it does not stop either.
                let _ = self.disable();
                Err(Error { what, ..error })
            }
        }
    }

    fn answer(&self, admin: &mut Admin<B>, command: &Command) -> Result<Completion> {
        let began_ns = self.bus.now_ns();
        if admin.queue.push(command, 0, began_ns).is_none() {
            return Err(Error::failed("its admin queue is full"));
        }
        admin.queue.ring();
        loop {
            let mut found = None;
            let polled = admin.queue.poll(1, |_, completion| found = Some(completion));
            polled.map_err(|malformed| Error::failed(malformed.to_string()))?;
            if let Some(completion) = found {
                return Ok(completion);
            }
            match Condition::of(self.bus.read32(spec::CSTS)) {
                Condition::Removed => return Err(gone(self.bus.name())),
                Condition::Fatal => return Err(fatal(self.bus.name())),
                _ if self.is_over(began_ns, self.patience.admin) => {
                    let patience = self.patience.admin;
                    return Err(Error::failed(format!("no answer within {patience:?}")));
                }
                _ => self.bus.pause(),
            }
        }
    }

    /// Identify Controller (Base 5.17.2.1).
    fn identify(&self, admin: &mut Admin<B>) -> Result<ControllerFacts> {
        let data = self.ask_page(admin, spec::CNS_CONTROLLER, 0, "identify itself")?;
        let facts = ControllerFacts::of(&data, self.capabilities.page_bytes_min());
        if facts.entry_sizes_fit {
            return Ok(facts);
        }
        let what = format!("{} does not take queue entries of 64 and 16 bytes (SQES, CQES)", self.bus.name());
        Err(Error::input(what))
    }

    /// The active namespaces (Base 5.17.2.2) in their formats (NVM 4.1.5.1), and why others can't be
    /// used. A controller that does not know the list has namespaces 1 to NN.
    fn namespaces(
        &self,
        admin: &mut Admin<B>,
        facts: &ControllerFacts,
    ) -> Result<(Vec<Namespace>, Vec<Error>)> {
        let list = self.ask_page(admin, spec::CNS_ACTIVE_NAMESPACES, 0, "list its namespaces");
        let ids = match list {
            Ok(list) => active_namespaces(&list),
            Err(error) if admin.down.is_some() => return Err(error),
            Err(_) => (1..=facts.namespaces_max.min(IDENTIFY_BYTES as u32 / 4)).collect(),
        };
        let (mut usable, mut unusable) = (Vec::new(), Vec::new());
        for id in ids {
            let data = self.ask_page(admin, spec::CNS_NAMESPACE, id, "identify a namespace")?;
            match Namespace::of(id, &data) {
                Ok(namespace) => usable.extend(namespace),
                Err(error) => unusable.push(error),
            }
        }
        Ok((usable, unusable))
    }

    fn ask_page(&self, admin: &mut Admin<B>, cns: u32, namespace: u32, doing: &str) -> Result<Vec<u8>> {
        let data = Prp { first: admin.page.address(0), second: 0 };
        self.ask(admin, &Command::identify(cns, namespace, data), doing)?;
        Ok(admin.page.copy(IDENTIFY_BYTES))
    }

    /// Number of Queues (Base 5.27.1.5): asks for all that can be, and returns how many pairs there are.
    fn allot_queues(&self, admin: &mut Admin<B>) -> Result<u16> {
        let result = self.ask(admin, &Command::number_of_queues(u16::MAX), "tell its queues")?;
        // NSQA and NCQA, each one less than meant.
        Ok((result as u16).min((result >> 16) as u16).saturating_add(1))
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
