//! The admin queue: starts a controller, identifies it, and waits for its answers.
//!
//! Commands go one at a time. Starting and resetting a controller take the same steps.

use std::sync::Arc;
use std::time::Duration;

use super::bus::Bus;
use super::dma::Dma;
use super::identify::{ControllerFacts, IDENTIFY_BYTES, Namespace, active_namespaces};
use super::prp::{PAGE_BYTES, Prp};
use super::queue::QueuePair;
use super::spec::{self, ControllerCapabilities, NvmeCommand, NvmeCompletion};
use crate::error::{Error, Result};

/// Entries of the admin queues.
const ADMIN_ENTRIES: u32 = 16;

/// How long to wait before something counts as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For an I/O command, before it is aborted.
    pub command: Duration,
    /// For a command that is being aborted, before the controller is reset.
    pub abort: Duration,
    /// For an admin command, before the controller is given up.
    pub admin: Duration,
}

impl Default for Patience {
    /// The defaults of Linux's own driver (`nvme_core.io_timeout` and `admin_timeout`).
    fn default() -> Self {
        Self {
            command: Duration::from_secs(30),
            abort: Duration::from_secs(30),
            admin: Duration::from_mins(1),
        }
    }
}

/// What the status register says about a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// CSTS.RDY: it works.
    Ready,
    /// It does not work, and reports no error.
    Stopped,
    /// CSTS.CFS: a fatal error (Base 9.5).
    Fatal,
    /// All bits are ones: it is no longer there.
    Removed,
    /// It works, and the kernel wants it back.
    Recalled,
}

impl Condition {
    pub(super) fn of(csts: u32) -> Self {
        match csts {
            spec::GONE => Self::Removed,
            csts if csts & spec::CSTS_CFS != 0 => Self::Fatal,
            csts if csts & spec::CSTS_RDY != 0 => Self::Ready,
            _ => Self::Stopped,
        }
    }
}

/// The admin queue, and the state that goes with it.
pub(super) struct Admin<B> {
    pub queue: QueuePair<B>,
    /// The page that Identify writes to.
    page: Dma,
    /// Whether each I/O queue is in use, by its number less one.
    pub taken: Vec<bool>,
    /// Why no more commands are accepted.
    pub down: Option<String>,
}

impl<B: Bus> Admin<B> {
    /// The queue and its page, which the controller does not know of yet.
    pub fn new(bus: &Arc<B>, capabilities: ControllerCapabilities) -> Result<Self> {
        let entries = ADMIN_ENTRIES.min(capabilities.queue_entries_max());
        let queue = QueuePair::new(bus, 0, entries, capabilities.doorbell_stride_bytes())?;
        Ok(Self { queue, page: bus.allocate(IDENTIFY_BYTES)?, taken: Vec::new(), down: None })
    }
}

/// Refuses a controller that is gone, or that this driver does not know.
pub(super) fn refuse_unknown<B: Bus>(bus: &B, capabilities: ControllerCapabilities) -> Result<()> {
    let name = bus.name();
    if capabilities.0 == u64::MAX {
        return Err(gone(name));
    }
    if !capabilities.has_nvm_commands() {
        return Err(Error::input(format!("{name} does not support the NVM command set (CAP.CSS)")));
    }
    let page_bytes = capabilities.page_bytes_min();
    if page_bytes > PAGE_BYTES as u64 {
        let what = format!("{name} needs memory pages of {page_bytes} bytes (CAP.MPSMIN)");
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
        .hint("`nvme error-log` and `nvme smart-log` may show more once the kernel has it back")
}

/// The steps of a start, which a reset repeats.
pub(super) struct Starting<'a, B> {
    pub bus: &'a Arc<B>,
    pub capabilities: ControllerCapabilities,
    pub patience: Patience,
}

impl<B: Bus> Starting<'_, B> {
    /// Clears CC.EN and waits until CSTS.RDY is clear too (Base 3.5.1, step 1; 3.7.2).
    pub fn disable(&self) -> Result<()> {
        let cc = self.bus.read32(spec::CC);
        if cc == spec::GONE {
            return Err(gone(self.bus.name()));
        }
        self.bus.write32(spec::CC, cc & !(spec::CC_EN | spec::CC_SHN));
        let stopped = self.wait((spec::CSTS_RDY, 0), self.capabilities.ready_timeout(), "stop");
        stopped.inspect_err(|_| self.bus.isolate())
    }

    /// Sets up the admin queues (step 2), configures and enables (3 to 5), waits for CSTS.RDY (6).
    pub fn enable(&self, admin: &Admin<B>) -> Result<()> {
        let size = admin.queue.entries() - 1;
        self.bus.write32(spec::AQA, size << 16 | size);
        self.bus.write64(spec::ASQ, admin.queue.submission_address());
        self.bus.write64(spec::ACQ, admin.queue.completion_address());
        self.bus.write32(spec::CC, spec::CC_START);
        let ready = (spec::CSTS_RDY, spec::CSTS_RDY);
        self.wait(ready, self.capabilities.ready_timeout(), "become ready")
    }

    /// Waits until these bits of CSTS have the wanted value.
    pub fn wait(&self, (bits, wanted): (u32, u32), patience: Duration, doing: &str) -> Result<()> {
        let began_ns = self.bus.now_ns();
        loop {
            let csts = self.bus.read32(spec::CSTS);
            match Condition::of(csts) {
                Condition::Removed => return Err(gone(self.bus.name())),
                _ if csts & bits == wanted => return Ok(()),
                // A controller that is being stopped may still report the error that made us stop it.
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

    /// Runs an admin command to its end; returns dword 0 of its completion.
    ///
    /// # Errors
    /// Its status in words. If it does not come back or the answer is malformed, the controller is stopped
    /// and given up, because it may still write to the command's memory.
    pub fn ask(&self, admin: &mut Admin<B>, command: &NvmeCommand, doing: &str) -> Result<u32> {
        let name = self.bus.name();
        match self.answer(admin, command) {
            Ok(NvmeCompletion { status, result, .. }) if status.is_success() => Ok(result),
            Ok(NvmeCompletion { status, .. }) => {
                Err(Error::failed(format!("{name} would not {doing}: {status}")))
            }
            Err(error) => {
                let what = format!("{name} did not {doing}: {}", error.what);
                admin.down = Some(what.clone());
                // Report the reason, and not that it does not stop either.
                let _ = self.disable();
                Err(Error { what, ..error })
            }
        }
    }

    fn answer(&self, admin: &mut Admin<B>, command: &NvmeCommand) -> Result<NvmeCompletion> {
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
    pub fn identify(&self, admin: &mut Admin<B>) -> Result<ControllerFacts> {
        let data = self.ask_page(admin, spec::CNS_CONTROLLER, 0, "identify itself")?;
        let facts = ControllerFacts::of(&data, self.capabilities.page_bytes_min());
        if facts.entry_sizes_fit {
            return Ok(facts);
        }
        let what = format!("{} does not take queue entries of 64 and 16 bytes (SQES, CQES)", self.bus.name());
        Err(Error::input(what))
    }

    /// The active namespaces (Base 5.17.2.2) in their formats (NVM 4.1.5.1), and why others can't be used. A
    /// controller without that list has namespaces 1 to NN.
    pub fn namespaces(
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
        self.ask(admin, &NvmeCommand::identify(cns, namespace, data), doing)?;
        Ok(admin.page.copy(IDENTIFY_BYTES))
    }

    /// Number of Queues (Base 5.27.1.5): requests the maximum, and returns how many pairs were granted.
    pub fn allot_queues(&self, admin: &mut Admin<B>) -> Result<u16> {
        let result = self.ask(admin, &NvmeCommand::number_of_queues(u16::MAX), "report its queues")?;
        // NSQA and NCQA, both 0's based.
        Ok((result as u16).min((result >> 16) as u16).saturating_add(1))
    }
}
