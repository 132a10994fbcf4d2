//! A worker: chooses the operations to submit next, and interprets their completions.
//!
//! It calls neither the clock nor the kernel. It gets the time as an argument and queues operations, so the same code
//! runs in a thread on a real interface and in the simulation.
//!
//! Latencies: *service* runs from the submission of a batch until the worker sees the completion, *response*
//! from the intended start. For the WAL, both end with the commit.

use std::sync::Arc;

use super::commit::{Commits, Written};
use super::control::{Control, Shared, Writes};
use super::ended::{EndedIo, EndedIos};
use super::offsets::Offsets;
use super::pacing::Pacer;
use crate::class::Class;
use crate::load::io::{Done, Op, OpKind, Queue, Wait};
use crate::load::volume::Region;
use crate::load::volume::stamp::Stamper;
use crate::load::volume::write_map::Tracked;
use crate::meter::counts::cell::WorkerCell;
use crate::meter::counts::slow::{SlowIo, SlowKind};
use crate::settings::Sync;
use crate::settings::jobs::{Job, Pattern};
use crate::units::SECOND_NS;

/// How often an idle worker checks whether to end.
const IDLE_NS_MAX: u64 = SECOND_NS / 20;

/// What a worker is started with.
pub struct Orders {
    /// Its class's job.
    pub job: Arc<Job>,
    /// Which of the class's workers it is.
    pub number: u64,
    /// How often the class was started before, so that a restart draws new pages instead of repeating itself.
    pub generation: u64,
    /// The region that it reads or writes.
    pub region: Arc<Region>,
    /// Stops it.
    pub control: Arc<Control>,
    /// State of its class that outlives it.
    pub shared: Arc<Shared>,
    /// State of all classes that outlives it.
    pub writes: Arc<Writes>,
    /// Records its class's writes, if there is a write map.
    pub tracked: Option<Arc<Tracked>>,
    /// Where it puts each I/O that has ended, if that is observed.
    pub observed: Option<Arc<EndedIos>>,
    /// Its counters.
    pub cell: Arc<WorkerCell>,
}

impl Orders {
    /// The seed of its random draws: different for each class, worker and start.
    pub fn seed(&self) -> u64 {
        let job = &self.job;
        let seed = job.seed ^ ((job.class.index() as u64 + 1) << 56) ^ (self.number << 32);
        seed.wrapping_add(self.generation.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// Submit the queued operations, then wait.
    Wait(Wait),
    /// Nothing is outstanding and nothing more will come.
    Ended,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    start_ns: u64,
    intended_ns: u64,
    offset_bytes: u64,
    file: u32,
}

/// A worker.
pub struct Worker {
    orders: Orders,
    kind: OpKind,
    /// Whether writes reach storage and so count against the limit.
    wears: bool,
    page_bytes: u64,
    batch: u32,
    offsets: Offsets,
    pacer: Option<Pacer>,
    commits: Option<Commits>,
    /// The files that the flush under way syncs.
    synced: Box<[u32]>,
    stamper: Option<Stamper>,
    /// The next sequence number, and how many are left of those taken.
    sequence: (u64, u64),
    slots: Box<[Slot]>,
    /// Index of its first slot among all slots of its class.
    first_slot: usize,
    free: Vec<u32>,
    /// Slots queued since the last submission; the next one starts them.
    fresh: Vec<u32>,
    outstanding: u32,
    /// An I/O with at least this service time goes to the log of slow I/Os.
    slow_ns: u64,
}

impl Worker {
    /// A worker that starts at `now_ns`.
    pub fn new(orders: Orders, now_ns: u64) -> Self {
        let job = orders.job.clone();
        let (number, workers, page_bytes) = (orders.number, job.workers, job.page_bytes);
        let depth = job.depth as u32;
        let seed = orders.seed();
        let position = orders.shared.position(number as usize).div_ceil(page_bytes);
        let region = &orders.region;
        let offsets = Offsets::new(job.offsets, region.pages(page_bytes), (number, workers), position, seed);
        let pacer = Pacer::of(&job, now_ns, number, seed.rotate_left(17));
        let stamper = job.class.writes().then(|| Stamper::new(region.set, region.id));
        let flushes = job.class == Class::Wal && job.sync == Sync::Fdatasync;
        Self {
            kind: match (job.class.writes(), job.sync) {
                (false, _) => OpKind::Read,
                (true, Sync::Dsync) => OpKind::WriteDurable,
                (true, _) => OpKind::Write,
            },
            wears: job.class.writes() && job.interface.touches_storage(),
            page_bytes,
            batch: job.batch as u32,
            offsets,
            pacer,
            commits: flushes.then(|| Commits::new(job.sync_every, region.extents.len())),
            synced: vec![0; if flushes { region.extents.len() } else { 0 }].into(),
            stamper,
            sequence: (0, 0),
            first_slot: number as usize * depth as usize,
            slots: vec![Slot::default(); depth as usize].into(),
            free: (0..depth).rev().collect(),
            fresh: Vec::with_capacity(depth as usize),
            outstanding: 0,
            slow_ns: orders.cell.slow.as_ref().map_or(u64::MAX, |slow| slow.threshold_ns),
            orders,
        }
    }

    /// Delays its start by `by_ns`.
    pub fn postpone(&mut self, by_ns: u64) {
        if let Some(pacer) = &mut self.pacer {
            pacer.postpone(by_ns);
        }
    }

    /// Queues the operations to submit now.
    pub fn turn(&mut self, now_ns: u64, queue: &mut impl Queue) -> Turn {
        let ending = self.orders.control.is_stopping();
        if let Some(stopped_ns) = self.orders.control.stopped_ns() {
            self.drop_pending(stopped_ns);
        }
        if let Some(wait) = self.commit_turn(now_ns, ending, queue) {
            return Turn::Wait(wait);
        }
        if ending {
            return self.drain();
        }
        let wait = if self.pacer.is_some() {
            self.issue_due(now_ns, queue)
        } else {
            self.issue_batch(now_ns, queue)
        };
        if let Some(wait) = wait {
            return Turn::Wait(wait);
        }
        self.drop_pending(now_ns);
        self.drain()
    }

    /// Drops starts intended before the class stopped but not yet issued. They count as missed, like those
    /// over a second late, because no I/O will report them. Later calls have no effect.
    pub fn drop_pending(&mut self, stopped_ns: u64) {
        if let Some(pacer) = &mut self.pacer {
            pacer.drop_before(stopped_ns, stopped_ns, &self.orders.cell);
            self.orders.cell.under_way.intend_nothing();
        }
    }

    fn drain(&mut self) -> Turn {
        if self.outstanding > 0 {
            // One at a time; otherwise all would be timed as if they had ended with the last.
            return Turn::Wait(Wait { completions: 1, until_ns: None });
        }
        if self.orders.job.offsets == Pattern::Sequential {
            let position = self.offsets.position() * self.page_bytes;
            self.orders.shared.keep_position(self.orders.number as usize, position);
        }
        Turn::Ended
    }

    /// Handles commits: waits for a flush in progress, and begins one that is due once no write is
    /// outstanding.
    fn commit_turn(&mut self, now_ns: u64, ending: bool, queue: &mut impl Queue) -> Option<Wait> {
        let commits = self.commits.as_mut()?;
        if commits.flushing() == 0 && commits.is_due(ending) && self.outstanding == 0 {
            let first = self.slots.len() as u32;
            for (i, file) in commits.begin(now_ns).enumerate() {
                self.synced[i] = file;
                queue.queue(Op { slot: first + i as u32, kind: OpKind::Flush, file, offset_bytes: 0 });
            }
        }
        let left = match commits.flushing() {
            0 if commits.is_due(ending) => self.outstanding,
            left => left,
        };
        (left > 0).then_some(Wait { completions: left, until_ns: None })
    }

    /// Closed loop: queues one batch. `None` at the write limit.
    fn issue_batch(&mut self, now_ns: u64, queue: &mut impl Queue) -> Option<Wait> {
        let room = self.commits.as_ref().map_or(u32::MAX, Commits::room);
        let batch = self.batch.min(room);
        if batch == 0 {
            return Some(Wait { completions: self.outstanding, until_ns: None });
        }
        if self.free.len() as u32 >= batch {
            for _ in 0..batch {
                if !self.issue(now_ns, None, queue) {
                    return None;
                }
            }
        }
        // With room for another batch the worker does not wait, but it reaps completions first, while their
        // buffers are still in the CPU's cache.
        let missing = batch.saturating_sub(self.free.len() as u32);
        Some(Wait { completions: missing, until_ns: None })
    }

    /// Open loop: queues what is due, at most a batch. `None` at the write limit.
    fn issue_due(&mut self, now_ns: u64, queue: &mut impl Queue) -> Option<Wait> {
        if let Some(pacer) = &mut self.pacer {
            pacer.drop_late(now_ns, &self.orders.cell);
        }
        let mut intended = 0;
        for _ in 0..self.batch {
            let room = self.commits.as_ref().map_or(u32::MAX, Commits::room);
            if self.free.is_empty() || room == 0 {
                break;
            }
            let Some(pacer) = &mut self.pacer else { break };
            let Some(intended_ns) = pacer.due(now_ns) else { break };
            pacer.advance();
            intended += 1;
            if !self.issue(now_ns, Some(intended_ns), queue) {
                // It was intended, but no I/O will report it.
                self.orders.cell.miss(now_ns.saturating_sub(intended_ns));
                self.orders.cell.intended.add(intended);
                return None;
            }
        }
        self.orders.cell.intended.add(intended);
        let mut wake_ns = now_ns;
        if let Some(pacer) = &self.pacer {
            self.orders.cell.under_way.intend(pacer.next_ns(), pacer.spacing_ns());
            wake_ns = pacer.wake_ns();
        }
        let full = self.free.is_empty() || self.commits.as_ref().is_some_and(|commits| commits.room() == 0);
        Some(if self.outstanding == 0 {
            Wait { completions: 0, until_ns: Some(wake_ns.min(now_ns + IDLE_NS_MAX)) }
        } else {
            Wait { completions: 1, until_ns: (!full).then_some(wake_ns) }
        })
    }

    /// Queues one I/O. At the write limit, stops the class and returns false.
    #[inline]
    fn issue(&mut self, now_ns: u64, intended_ns: Option<u64>, queue: &mut impl Queue) -> bool {
        if self.wears && !self.orders.writes.take(self.page_bytes) {
            self.orders.control.exhaust(now_ns);
            return false;
        }
        let Some(slot) = self.free.pop() else { return true };
        let region = &self.orders.region;
        let (index, offset_bytes) = region.place(self.offsets.next(), self.page_bytes);
        if let Some(stamper) = &self.stamper {
            let (mut sequence, mut left) = self.sequence;
            if left == 0 {
                // Workers that share a region take one at a time, so that numbers follow the order of writes.
                left = if self.orders.job.workers == 1 { Writes::SEQUENCES } else { 1 };
                sequence = self.orders.writes.take_sequences(left);
            }
            self.sequence = (sequence + 1, left - 1);
            stamper.stamp(queue.buffer(slot), index as u32, offset_bytes, sequence);
            if let Some(tracked) = &self.orders.tracked {
                tracked.queued(self.first_slot + slot as usize, index as u32, offset_bytes, sequence);
            }
        }
        let file = index as u32;
        let intended_ns = intended_ns.unwrap_or(0);
        self.slots[slot as usize] = Slot { start_ns: 0, intended_ns, offset_bytes, file };
        queue.queue(Op { slot, kind: self.kind, file, offset_bytes });
        if let Some(commits) = &mut self.commits {
            commits.issued();
        }
        self.fresh.push(slot);
        self.outstanding += 1;
        true
    }

    /// Marks the queued operations as submitted now.
    #[inline]
    pub fn hand_over(&mut self, now_ns: u64) {
        if let Some(commits) = &mut self.commits
            && self.outstanding == 0
        {
            commits.handed_over(now_ns);
        }
        let paced = self.pacer.is_some();
        for slot in self.fresh.drain(..) {
            let at = &mut self.slots[slot as usize];
            at.start_ns = now_ns;
            let intended_ns = paced.then_some(at.intended_ns);
            self.orders.cell.under_way.begin(slot as usize, now_ns, intended_ns);
        }
    }

    /// Processes completions seen at `now_ns`.
    pub fn complete(&mut self, now_ns: u64, done: &[Done]) {
        let (mut ios, mut bytes) = (0, 0);
        if let Some(tracked) = &self.orders.tracked {
            let pages = done.iter().filter(|done| (done.slot as usize) < self.slots.len());
            pages.for_each(|done| tracked.fetch(self.first_slot + done.slot as usize));
        }
        for done in done {
            if let Some(at) = (done.slot as usize).checked_sub(self.slots.len()) {
                self.flushed(now_ns, at, done.result);
                continue;
            }
            let slot = self.slots[done.slot as usize];
            self.observe(self.kind, slot, now_ns);
            self.free.push(done.slot);
            self.orders.cell.under_way.end(done.slot as usize);
            self.outstanding -= 1;
            let whole = u64::try_from(done.result) == Ok(self.page_bytes);
            if let Some(tracked) = &self.orders.tracked {
                tracked.completed(self.first_slot + done.slot as usize, whole);
            }
            if whole {
                ios += 1;
                bytes += self.page_bytes;
                self.succeeded(now_ns, slot);
            } else {
                // A short transfer counts as a media error, like one reported by an errno.
                self.failed(now_ns, if done.result < 0 { -done.result } else { libc::EIO });
            }
        }
        self.orders.cell.ios.add(ios);
        self.orders.cell.bytes.add(bytes);
    }

    /// Puts an I/O that has ended into the ring, if that is observed.
    #[inline]
    fn observe(&self, kind: OpKind, slot: Slot, end_ns: u64) {
        let Some(ring) = &self.orders.observed else { return };
        ring.put(EndedIo {
            start_ns: slot.start_ns,
            end_ns,
            offset_bytes: slot.offset_bytes,
            bytes: if kind == OpKind::Flush { 0 } else { self.page_bytes as u32 },
            region: self.orders.region.id,
            file: slot.file as u16,
            kind,
        });
    }

    #[inline]
    fn succeeded(&mut self, now_ns: u64, slot: Slot) {
        let cell = &self.orders.cell;
        let member = &cell.members[self.orders.region.extents[slot.file as usize].member as usize];
        let counter = if self.kind == OpKind::Read { &member.read_bytes } else { &member.written_bytes };
        counter.add(self.page_bytes);
        let service_ns = now_ns.saturating_sub(slot.start_ns);
        if service_ns >= self.slow_ns {
            let kind = if self.kind == OpKind::Read { SlowKind::Read } else { SlowKind::Write };
            self.slow(kind, slot, service_ns);
        }
        if let Some(write) = &cell.write {
            write.record(service_ns);
        }
        if let Some(commits) = &mut self.commits {
            let intended_ns = self.pacer.is_some().then_some(slot.intended_ns);
            cell.under_way.begin(self.slots.len() + commits.waiting(), slot.start_ns, intended_ns);
            commits.written(slot.file, Written { start_ns: slot.start_ns, intended_ns });
            return;
        }
        cell.service.record(service_ns);
        if let Some(response) = &cell.response {
            response.record(now_ns.saturating_sub(slot.intended_ns));
        }
    }

    /// Logs a slow I/O or flush.
    #[cold]
    fn slow(&self, kind: SlowKind, slot: Slot, service_ns: u64) {
        let Orders { region, cell, .. } = &self.orders;
        let Some(slow) = &cell.slow else { return };
        slow.keep(SlowIo {
            class: cell.class,
            kind,
            at_ns: slot.start_ns,
            service_ns,
            member: region.extents[slot.file as usize].member.into(),
            offset_bytes: slot.offset_bytes,
            bytes: if kind == SlowKind::Flush { 0 } else { self.page_bytes },
            depth: u64::from(self.outstanding) + 1,
        });
    }

    #[cold]
    fn failed(&self, now_ns: u64, errno: i32) {
        self.orders.cell.error(errno);
        self.orders.control.error(now_ns, errno);
    }

    /// Handles the end of the flush of one of the files.
    fn flushed(&mut self, now_ns: u64, at: usize, result: i32) {
        if result < 0 {
            self.failed(now_ns, -result);
        }
        if let Some(start_ns) = self.commits.as_ref().and_then(Commits::flush_started_ns) {
            let slot = Slot { start_ns, file: self.synced[at], ..Slot::default() };
            self.observe(OpKind::Flush, slot, now_ns);
        }
        let Some(commits) = &mut self.commits else { return };
        let Some(flushed) = commits.synced(result >= 0) else { return };
        let cell = &self.orders.cell;
        cell.under_way.end_from(self.slots.len());
        let flush_ns = now_ns.saturating_sub(flushed.started_ns);
        if let (true, Some(flush)) = (flushed.durable, &cell.flush) {
            flush.record(flush_ns);
        }
        let slow = (flush_ns >= self.slow_ns).then_some((flushed.started_ns, flush_ns));
        for write in commits.take_written().filter(|_| flushed.durable) {
            cell.service.record(now_ns.saturating_sub(write.start_ns));
            if let (Some(response), Some(intended_ns)) = (&cell.response, write.intended_ns) {
                response.record(now_ns.saturating_sub(intended_ns));
            }
        }
        if let Some((start_ns, flush_ns)) = slow {
            self.slow(SlowKind::Flush, Slot { start_ns, ..Slot::default() }, flush_ns);
        }
    }
}
