//! `spdk`: the operator's own SPDK ([`crate::load::spdk`]), one queue pair per worker and namespace, polled.
//!
//! There is no page cache and no system call. SPDK splits a page that is too large for one of the drive's
//! commands. A flush is the drive's own command, and a durable write sets FUA.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use super::clock;
use super::polls::poll_until;
use crate::error::{Error, Result};
use crate::load::nvme::status::NvmeStatus;
use crate::load::spdk::{SCHEME, SpdkDrive, WorkerQueues};
use crate::meter::counts::counters::Polls;

/// The shim's code for a kind of operation.
const fn code(kind: OpKind) -> u32 {
    match kind {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::WriteDurable => 2,
        OpKind::Flush => 3,
    }
}

/// A member's drive, by its path.
fn drive_of(path: &Path) -> Result<SpdkDrive> {
    let text = path.to_string_lossy();
    let parts = text.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
    let member = parts.and_then(|(address, id)| Some((address, id.parse().ok()?)));
    let (address, namespace) = member.ok_or_else(|| {
        Error::input(format!("{text} is not a drive that the kernel has handed over"))
            .hint("the interface `spdk` drives whole NVMe namespaces, not files or block devices")
    })?;
    SpdkDrive::find(address, namespace)
}

/// A worker's side.
pub struct Spdk {
    queues: WorkerQueues,
    /// Operations not yet submitted.
    waiting: VecDeque<Op>,
    /// Operations that SPDK refused, reported with the next completions.
    refused: Vec<Done>,
    /// Slots with a page; the slots of flushes follow them.
    slots: u32,
    /// Operations that are queued and not yet complete.
    outstanding: u32,
    page_bytes: usize,
    sleep_ns: u64,
    polls: Polls,
}

impl Spdk {
    /// Submits waiting operations while there is room; SPDK rings one doorbell for all of them at the next
    /// poll.
    fn hand_over(&mut self) {
        while let Some(&op) = self.waiting.front() {
            match self.queues.submit(op.file, op.slot, code(op.kind), op.offset_bytes) {
                Ok(true) => {}
                Ok(false) => return,
                Err(errno) => self.refused.push(Done { slot: op.slot, result: -errno }),
            }
            self.waiting.pop_front();
        }
    }

    /// Polls all completion queues once. Returns how many operations have completed.
    fn look(&mut self, done: &mut Vec<Done>) -> std::result::Result<u32, i32> {
        self.hand_over();
        let before = done.len();
        done.append(&mut self.refused);
        let (slots, page_bytes) = (self.slots, self.page_bytes);
        self.queues.poll(|over| {
            let status = NvmeStatus(over.status as u16);
            let moved = if over.slot < slots { page_bytes as i32 } else { 0 };
            let result = if status.is_success() { moved } else { -status.errno() };
            done.push(Done { slot: over.slot, result });
        })?;
        let found = (done.len() - before) as u32;
        self.outstanding -= found;
        Ok(found)
    }
}

impl Queue for Spdk {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.queues.page(slot)
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        self.waiting.push_back(op);
        self.outstanding += 1;
    }
}

impl Backend for Spdk {
    type Members = Vec<SpdkDrive>;

    fn open_members(request: &OpenRequest) -> Result<Vec<SpdkDrive>> {
        request.paths.iter().map(|path| drive_of(path)).collect()
    }

    fn open(members: &Arc<Vec<SpdkDrive>>, setup: &Setup) -> Result<Self> {
        let operations = (setup.slots + setup.flush_slots) as usize;
        Ok(Self {
            queues: WorkerQueues::new(members, setup.page_bytes, setup.slots, setup.flush_slots)?,
            waiting: VecDeque::with_capacity(operations),
            refused: Vec::with_capacity(operations),
            slots: setup.slots,
            outstanding: 0,
            page_bytes: setup.page_bytes,
            sleep_ns: setup.poll_sleep_ns,
            polls: Polls::default(),
        })
    }

    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        if self.outstanding == 0 {
            clock::sleep_until(wait.until_ns.unwrap_or(0));
            return Ok(());
        }
        let wanted = done.len() + wait.completions.min(self.outstanding) as usize;
        let (mut polls, sleep_ns) = (self.polls, self.sleep_ns);
        let polled = poll_until(&mut polls, sleep_ns, wait.until_ns, |_| {
            let found = self.look(done)?;
            Ok((found, done.len() >= wanted))
        });
        self.polls = polls;
        polled
    }

    fn polls(&self) -> Polls {
        self.polls
    }
}
