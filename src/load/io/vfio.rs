//! `vfio`: stacktune's own `NVMe` driver ([`crate::load::nvme`]), one queue pair per worker and drive, polled.
//!
//! There is no page cache and no system call. A page too large for one of the drive's commands takes several
//! and completes with the last of them. A flush is the drive's own command, and a durable write sets FUA.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use super::clock;
use super::polls::poll_until;
use crate::error::{Error, Result};
use crate::load::nvme::spec::{NvmeCommand, NvmeCompletion};
use crate::load::nvme::vfio::{self, VfioBus};
use crate::load::nvme::{Bus, Condition, Controller, Lane, Namespace, Transfers};
use crate::meter::counts::counters::Incidents;
use crate::meter::counts::counters::Polls;

/// Path prefix of a member that is a namespace of a drive the kernel has handed over: `vfio:0000:01:00.0/1`.
pub const SCHEME: &str = "vfio:";

/// A namespace of a controller, as a member.
struct Drive {
    /// Its index among the controllers.
    controller: usize,
    namespace: Namespace,
}

/// The opened namespaces of a class, and their controllers.
pub struct Drives<B: Bus> {
    controllers: Vec<Arc<Controller<B>>>,
    drives: Vec<Drive>,
}

impl<B: Bus> Drives<B> {
    /// Members by controller and namespace; a controller may occur several times.
    pub fn new(members: impl IntoIterator<Item = Result<(Arc<Controller<B>>, u32)>>) -> Result<Self> {
        let mut opened = Self { controllers: Vec::new(), drives: Vec::new() };
        for member in members {
            let (controller, namespace) = member?;
            let namespace = controller.namespace(namespace)?;
            let known = opened.controllers.iter().position(|known| Arc::ptr_eq(known, &controller));
            let at = known.unwrap_or(opened.controllers.len());
            if known.is_none() {
                opened.controllers.push(controller);
            }
            opened.drives.push(Drive { controller: at, namespace });
        }
        Ok(opened)
    }
}

/// PCI address and namespace in a member's path.
fn member_of(path: &Path) -> Result<(String, u32)> {
    let text = path.to_string_lossy();
    let parts = text.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
    let member = parts.and_then(|(address, id)| Some((address.to_owned(), id.parse().ok()?)));
    member.ok_or_else(|| {
        Error::input(format!("{text} is not a drive that the kernel has handed over"))
            .hint("the interface `vfio` drives whole NVMe namespaces, not files or block devices")
    })
}

/// The interface on real drives.
pub type Vfio = Polled<VfioBus>;

/// A worker's side: a lane per controller, and the buffers.
pub struct Polled<B: Bus> {
    // Lanes are dropped first: after that no controller touches the buffers.
    lanes: Vec<Lane<B>>,
    transfers: Transfers,
    drives: Arc<Drives<B>>,
    /// Operations not yet fully submitted.
    waiting: VecDeque<Op>,
    /// How many commands of the first of them were pushed.
    pushed: u32,
    /// By slot.
    states: Box<[State]>,
    /// Operations that are queued and not yet complete.
    outstanding: u32,
    page_bytes: usize,
    sleep_ns: u64,
    polls: Polls,
    /// Why it can't continue.
    failure: Option<String>,
}

/// The progress of an operation.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Its commands that are not yet complete.
    left: u32,
    /// The errno of the first failure; 0 if none.
    errno: i32,
    /// Whether it has a buffer.
    moves: bool,
}

impl<B: Bus> Polled<B> {
    /// Makes the lanes and buffers of a worker.
    pub fn new(drives: &Arc<Drives<B>>, setup: &Setup) -> Result<Self> {
        let Some(first) = drives.controllers.first() else {
            return Err(Error::input("there is no drive to open"));
        };
        let block = drives.drives.iter().map(|drive| drive.namespace.block_bytes()).max().unwrap_or_default();
        if block > setup.page_bytes as u64 {
            let what = format!("pages of {} bytes are smaller than a block of {block}", setup.page_bytes);
            return Err(Error::input(what).hint("choose a page size of at least one logical block"));
        }
        let moved = drives.controllers.iter().map(|controller| controller.transfer_bytes_max()).min();
        let part_bytes = moved.unwrap_or(setup.page_bytes);
        let transfers = Transfers::new(&**first.bus(), setup.slots, setup.page_bytes, part_bytes)?;
        let commands = setup.slots.saturating_mul(transfers.parts()).saturating_add(setup.flush_slots);
        let lanes = drives.controllers.iter().map(|controller| Lane::open(controller, commands));
        let operations = (setup.slots + setup.flush_slots) as usize;
        Ok(Self {
            lanes: lanes.collect::<Result<_>>()?,
            transfers,
            drives: drives.clone(),
            waiting: VecDeque::with_capacity(operations),
            pushed: 0,
            states: vec![State::default(); operations].into(),
            outstanding: 0,
            page_bytes: setup.page_bytes,
            sleep_ns: setup.poll_sleep_ns,
            polls: Polls::default(),
            failure: None,
        })
    }

    /// Pushes waiting operations while there is room, and rings one doorbell per controller.
    fn hand_over(&mut self, now_ns: u64) {
        while let Some(&op) = self.waiting.front() {
            let parts = if op.kind == OpKind::Flush { 1 } else { self.transfers.parts() };
            while self.pushed < parts {
                if !self.push(op, self.pushed, now_ns) {
                    return self.ring();
                }
                self.pushed += 1;
            }
            self.pushed = 0;
            self.waiting.pop_front();
        }
        self.ring();
    }

    fn ring(&mut self) {
        self.lanes.iter_mut().for_each(Lane::ring);
    }

    /// Pushes one command of an operation; false if its lane has no room.
    #[inline]
    fn push(&mut self, op: Op, part: u32, now_ns: u64) -> bool {
        let Drive { controller, namespace } = &self.drives.drives[op.file as usize];
        let lane = &mut self.lanes[*controller];
        if lane.room() == 0 {
            return false;
        }
        let command = if op.kind == OpKind::Flush {
            NvmeCommand::flush(namespace.id)
        } else {
            let bytes = self.transfers.part_bytes() as u64;
            let data = self.transfers.lend(op.slot, part);
            let block = (op.offset_bytes + u64::from(part) * bytes) >> namespace.block_shift;
            let blocks = (bytes >> namespace.block_shift) as u32;
            match op.kind {
                OpKind::Read => NvmeCommand::read(namespace.id, block, blocks, data),
                kind => NvmeCommand::write(namespace.id, block, blocks, data, kind == OpKind::WriteDurable),
            }
        };
        lane.push(&command, op.slot, now_ns)
    }

    /// Polls all completion queues once. Returns how many completions it found.
    fn poll(&mut self, now_ns: u64, done: &mut Vec<Done>) -> Result<u32> {
        let before = done.len();
        let mut taken = 0;
        let Self { lanes, transfers, states, page_bytes, .. } = self;
        for lane in lanes {
            let mut over = |slot: u32, errno: i32| {
                let state = &mut states[slot as usize];
                if state.moves {
                    transfers.give_back(slot);
                }
                if state.errno == 0 {
                    state.errno = errno;
                }
                state.left -= 1;
                if state.left == 0 {
                    let moved = if state.moves { *page_bytes as i32 } else { 0 };
                    done.push(Done { slot, result: if state.errno == 0 { moved } else { -state.errno } });
                }
            };
            taken += lane.poll(|slot, completion: NvmeCompletion| {
                let status = completion.status;
                over(slot, if status.is_success() { 0 } else { status.errno() });
            })?;
            lane.watch(now_ns, |slot| over(slot, libc::ETIMEDOUT))?;
        }
        self.outstanding -= (done.len() - before) as u32;
        Ok(taken)
    }

    /// Polls until enough operations have completed or time is up.
    fn run(&mut self, wait: Wait, done: &mut Vec<Done>) -> Result<()> {
        let wanted = done.len() + wait.completions.min(self.outstanding) as usize;
        let (mut polls, sleep_ns) = (self.polls, self.sleep_ns);
        let polled = poll_until(&mut polls, sleep_ns, wait.until_ns, |now_ns| {
            self.hand_over(now_ns);
            let found = self.poll(now_ns, done)?;
            Ok((found, done.len() >= wanted))
        });
        self.polls = polls;
        polled
    }

    /// The errno of a failure of the interface itself.
    fn errno(&self) -> i32 {
        let gone = |lane: &Lane<B>| {
            matches!(lane.controller().condition(), Condition::Removed | Condition::Recalled)
        };
        if self.lanes.iter().any(gone) { libc::ENODEV } else { libc::EIO }
    }
}

impl<B: Bus> Queue for Polled<B> {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.transfers.buffer(slot)
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        let moves = op.kind != OpKind::Flush;
        let left = if moves { self.transfers.parts() } else { 1 };
        self.states[op.slot as usize] = State { left, errno: 0, moves };
        self.waiting.push_back(op);
        self.outstanding += 1;
    }
}

impl Backend for Polled<VfioBus> {
    type Members = Drives<VfioBus>;

    fn open_members(request: &OpenRequest) -> Result<Drives<VfioBus>> {
        Drives::new(request.paths.iter().map(|path| {
            let (address, namespace) = member_of(path)?;
            Ok((vfio::controller(&address)?, namespace))
        }))
    }

    fn open(members: &Arc<Drives<VfioBus>>, setup: &Setup) -> Result<Self> {
        Self::new(members, setup)
    }

    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        Polled::advance(self, wait, done)
    }

    fn polls(&self) -> Polls {
        self.polls
    }

    fn incidents(&self) -> Incidents {
        Polled::incidents(self)
    }

    fn reason(&self) -> Option<&str> {
        Polled::reason(self)
    }
}

impl<B: Bus> Polled<B> {
    /// See [`Backend::incidents`].
    pub fn incidents(&self) -> Incidents {
        let mut all = Incidents::default();
        self.lanes.iter().for_each(|lane| all += lane.incidents());
        all
    }

    /// See [`Backend::reason`].
    pub fn reason(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// See [`Backend::advance`].
    pub fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        if self.outstanding == 0 {
            clock::sleep_until(wait.until_ns.unwrap_or(0));
            return Ok(());
        }
        self.run(wait, done).map_err(|error| {
            self.failure = Some(error.one_line());
            self.errno()
        })
    }
}

#[cfg(test)]
#[path = "vfio_tests.rs"]
mod tests;
