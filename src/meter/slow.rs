//! The log of slow I/Os: those whose service time reaches `run.slow_log`, as far as there is room.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::class::Class;

/// I/Os that a worker keeps until it is read, once a window.
const KEPT: usize = 64;
/// I/Os that a window keeps of each class: the slowest.
const KEPT_OF_WINDOW: usize = 64;
/// The slowest I/Os that totals keep.
pub const KEPT_OF_RUN: usize = 20;
/// After this many, windows keep no more in this run; they are still counted.
pub const KEPT_OF_WINDOWS: usize = 20_000;

/// What was slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SlowKind {
    /// A read.
    Read,
    /// A write, without the flush that covers it.
    Write,
    /// A flush of the WAL.
    Flush,
}

impl SlowKind {
    /// The name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
        }
    }
}

/// A slow I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlowIo {
    /// Whose it was.
    pub class: Class,
    /// What it was.
    pub kind: SlowKind,
    /// When it was handed over, in nanoseconds from the run's start.
    pub at_ns: u64,
    /// How long it took from there to its completion.
    pub service_ns: u64,
    /// The member, by its place among the run's members.
    pub member: u64,
    /// Where in the member's file or device; 0 for a flush.
    pub offset_bytes: u64,
    /// Its length; 0 for a flush.
    pub bytes: u64,
    /// I/Os that its worker had under way when it completed, itself included.
    pub depth: u64,
}

/// A worker's slow I/Os, read by the meters from another thread. Neither side waits for the other or allocates.
#[derive(Debug)]
pub struct SlowCell {
    /// From this service time on an I/O is slow.
    pub threshold_ns: u64,
    slots: Box<[[AtomicU64; 6]]>,
    /// Written by the worker alone: I/Os so far, and those of them for which there was no room.
    kept: AtomicU64,
    dropped: AtomicU64,
    /// Written by the reader alone.
    taken: AtomicU64,
}

impl SlowCell {
    /// Room for as many as a window keeps.
    pub fn new(threshold_ns: u64) -> Self {
        let slots = (0..KEPT).map(|_| Default::default()).collect();
        let [kept, dropped, taken] = Default::default();
        Self { threshold_ns, slots, kept, dropped, taken }
    }

    /// Keeps an I/O, or counts it if there is no room; only the one writer may call this. Its time is on the worker's
    /// clock, and its class is that of the worker.
    #[cold]
    pub fn keep(&self, io: SlowIo) {
        let kept = self.kept.load(Ordering::Relaxed);
        if kept - self.taken.load(Ordering::Acquire) >= KEPT as u64 {
            self.dropped.store(self.dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return;
        }
        let member = io.member << 2 | io.kind as u64;
        let values = [io.at_ns, io.service_ns, member, io.offset_bytes, io.bytes, io.depth];
        for (slot, value) in self.slots[kept as usize % KEPT].iter().zip(values) {
            slot.store(value, Ordering::Relaxed);
        }
        self.kept.store(kept + 1, Ordering::Release);
    }

    /// How many were slow so far, kept or not.
    pub fn count(&self) -> u64 {
        self.kept.load(Ordering::Relaxed) + self.dropped.load(Ordering::Relaxed)
    }

    /// Takes what was kept since the last call; only the one reader may call this.
    pub fn take(&self, class: Class, into: &mut Vec<SlowIo>) {
        let (taken, kept) = (self.taken.load(Ordering::Relaxed), self.kept.load(Ordering::Acquire));
        for at in taken..kept {
            let slot = &self.slots[at as usize % KEPT];
            let [at_ns, service_ns, member, offset_bytes, bytes, depth] =
                std::array::from_fn(|field| slot[field].load(Ordering::Relaxed));
            let kind = match member & 3 {
                0 => SlowKind::Read,
                1 => SlowKind::Write,
                _ => SlowKind::Flush,
            };
            let member = member >> 2;
            into.push(SlowIo { class, kind, at_ns, service_ns, member, offset_bytes, bytes, depth });
        }
        self.taken.store(kept, Ordering::Release);
    }
}

/// Those of a window that are kept, of all classes and at most `left`, with their times since the run began.
pub fn slow_of_window(classes: [&mut Vec<SlowIo>; 4], began_ns: u64, left: &mut usize) -> Vec<SlowIo> {
    let mut all = Vec::new();
    for ios in classes {
        keep_slowest(ios, KEPT_OF_WINDOW);
        all.extend(ios.iter().map(|io| SlowIo { at_ns: io.at_ns.saturating_sub(began_ns), ..*io }));
    }
    keep_slowest(&mut all, *left);
    *left -= all.len();
    all
}

/// Keeps that many, the slowest, in the order of their begin.
pub fn keep_slowest(ios: &mut Vec<SlowIo>, count: usize) {
    if ios.len() > count {
        ios.sort_by_key(|io| std::cmp::Reverse(io.service_ns));
        ios.truncate(count);
    }
    ios.sort_by_key(|io| io.at_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush(service_ns: u64) -> SlowIo {
        let (class, kind) = (Class::Wal, SlowKind::Flush);
        SlowIo { class, kind, at_ns: 0, service_ns, member: 3, offset_bytes: 1 << 40, bytes: 0, depth: 1 }
    }

    #[test]
    fn what_is_kept_is_bounded_and_taken_once() {
        let cell = SlowCell::new(5);
        let io = |at_ns| SlowIo { at_ns, ..flush(9) };
        (0..100).for_each(|at| cell.keep(io(at)));
        let mut taken = Vec::new();
        cell.take(Class::Wal, &mut taken);
        assert_eq!((taken.len(), taken[63], cell.count()), (KEPT, io(63), 100));
        (100..103).for_each(|at| cell.keep(io(at)));
        cell.take(Class::Wal, &mut taken);
        assert_eq!(taken[KEPT..], [io(100), io(101), io(102)]);
        assert_eq!(cell.count(), 103);
    }

    #[test]
    fn the_slowest_are_kept_in_order() {
        let io = |at_ns, service_ns| SlowIo { at_ns, ..flush(service_ns) };
        let mut ios = vec![io(3, 9), io(1, 2), io(2, 7)];
        keep_slowest(&mut ios, 2);
        assert_eq!(ios, [io(2, 7), io(3, 9)]);
    }
}
