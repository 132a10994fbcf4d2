//! The log of slow I/Os: those whose service time reaches `run.slow_log`, as far as there is room.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use serde::{Deserialize, Serialize};

use crate::class::Class;

/// I/Os that a worker keeps until they are read, once per window.
const KEPT: usize = 64;
/// I/Os that a window keeps of each class: the slowest.
const KEPT_OF_WINDOW: usize = 64;
/// The slowest I/Os that totals keep.
pub const KEPT_OF_RUN: usize = 20;
/// Once windows have kept this many, they keep only the slowest of the run; all are still counted.
pub const KEPT_OF_WINDOWS: usize = 20_000;

/// The kind of a slow I/O.
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
    /// Its class.
    pub class: Class,
    /// Its kind.
    pub kind: SlowKind,
    /// When it was submitted, in nanoseconds from the run's start.
    pub at_ns: u64,
    /// Time from submission to completion.
    pub service_ns: u64,
    /// The member, by its index among the run's members.
    pub member: u64,
    /// The offset in the member's file or device; 0 for a flush.
    pub offset_bytes: u64,
    /// Its length; 0 for a flush.
    pub bytes: u64,
    /// I/Os that its worker had in flight when it completed, itself included.
    pub depth: u64,
}

/// How often a reader retries while the worker is writing.
const TRIES: usize = 100;

/// A worker's slow I/Os, read by the meters from another thread. Neither side waits for the other or allocates.
#[derive(Debug)]
pub struct SlowCell {
    /// I/Os with at least this service time are slow.
    pub threshold_ns: u64,
    slots: Box<[Slot]>,
    /// I/Os so far, kept or not.
    count: AtomicU64,
    /// Twice the number of changes to the slots so far; odd during a change.
    version: AtomicU64,
    /// Once every slot holds an unread I/O: the service time to exceed, and the value of `taken` at that time.
    full: (AtomicU64, AtomicU64),
    /// The version up to which the slots were read; only the reader writes this.
    taken: AtomicU64,
}

/// An I/O, and the version that stored it.
#[derive(Debug, Default)]
struct Slot {
    version: AtomicU64,
    values: [AtomicU64; 6],
}

/// The index of the service time in a slot's values.
const SERVICE: usize = 1;

impl SlowCell {
    /// With room for as many I/Os as a worker keeps.
    pub fn new(threshold_ns: u64) -> Self {
        let slots = (0..KEPT).map(|_| Slot::default()).collect();
        let [count, version, taken, floor, since] = Default::default();
        Self { threshold_ns, slots, count, version, full: (floor, since), taken }
    }

    /// Counts an I/O, and keeps it while it is one of the slowest that have not been read yet; only the one
    /// writer may call this. Its time is on the worker's clock, and its class is that of the worker.
    #[cold]
    pub fn keep(&self, io: SlowIo) {
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let taken = self.taken.load(Ordering::Acquire);
        let (floor, since) = (&self.full.0, &self.full.1);
        if since.load(Ordering::Relaxed) == taken && io.service_ns <= floor.load(Ordering::Relaxed) {
            return;
        }
        // I/Os that were read make room first, then the fastest.
        let rank = |slot: &&Slot| {
            let is_unread = slot.version.load(Ordering::Relaxed) > taken;
            if is_unread { slot.values[SERVICE].load(Ordering::Relaxed) } else { 0 }
        };
        let Some(slot) = self.slots.iter().min_by_key(rank) else { return };
        let least_ns = rank(&slot);
        if least_ns > 0 {
            floor.store(least_ns, Ordering::Relaxed);
            since.store(taken, Ordering::Relaxed);
            if io.service_ns <= least_ns {
                return;
            }
        }
        let version = self.version.load(Ordering::Relaxed) + 2;
        self.version.store(version - 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let member = io.member << 2 | io.kind as u64;
        let values = [io.at_ns, io.service_ns, member, io.offset_bytes, io.bytes, io.depth];
        for (slot, value) in slot.values.iter().zip(values) {
            slot.store(value, Ordering::Relaxed);
        }
        slot.version.store(version, Ordering::Relaxed);
        self.version.store(version, Ordering::Release);
    }

    /// How many I/Os were slow so far, kept or not.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Takes what was kept since the last call; only the one reader may call this. If the worker was stopped
    /// during a change, its I/Os are left for the next call.
    pub fn take(&self, class: Class, into: &mut Vec<SlowIo>) {
        let (before, taken) = (into.len(), self.taken.load(Ordering::Relaxed));
        for _ in 0..TRIES {
            let version = self.version.load(Ordering::Acquire);
            let unread = self.slots.iter().filter(|slot| slot.version.load(Ordering::Relaxed) > taken);
            into.extend(unread.map(|slot| slot.io(class)));
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version {
                self.taken.store(version, Ordering::Release);
                into[before..].sort_by_key(|io| io.at_ns);
                return;
            }
            into.truncate(before);
            std::hint::spin_loop();
        }
    }
}

impl Slot {
    fn io(&self, class: Class) -> SlowIo {
        let [at_ns, service_ns, member, offset_bytes, bytes, depth] =
            std::array::from_fn(|field| self.values[field].load(Ordering::Relaxed));
        let kind = match member & 3 {
            0 => SlowKind::Read,
            1 => SlowKind::Write,
            _ => SlowKind::Flush,
        };
        SlowIo { class, kind, at_ns, service_ns, member: member >> 2, offset_bytes, bytes, depth }
    }
}

/// The slow I/Os of a window to keep, of all classes and at most `left`, with their times since the run
/// began. Those among the slowest of the run so far (`slowest`) are kept even beyond that.
pub fn slow_of_window(
    classes: [&mut Vec<SlowIo>; 4],
    began_ns: u64,
    left: &mut usize,
    slowest: &[SlowIo],
) -> Vec<SlowIo> {
    let mut all = Vec::new();
    for ios in classes {
        keep_slowest(ios, KEPT_OF_WINDOW);
        all.extend(ios.iter().map(|io| SlowIo { at_ns: io.at_ns.saturating_sub(began_ns), ..*io }));
    }
    let least_ns = slowest.iter().map(|io| io.service_ns).min().filter(|_| slowest.len() >= KEPT_OF_RUN);
    let of_run = all.iter().filter(|io| Some(io.service_ns) > least_ns).count().min(KEPT_OF_RUN);
    keep_slowest(&mut all, of_run.max(*left));
    *left = left.saturating_sub(all.len());
    all
}

/// Keeps this many, the slowest, in order of their start.
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
    fn a_worker_keeps_its_slowest_however_many_came_before() {
        let cell = SlowCell::new(5);
        let mut taken = Vec::new();
        for window in 1..4 {
            // The slowest come last, first, or anywhere in between.
            let of = |at: u64| SlowIo { at_ns: at, ..flush(10 + (at * 7919 * window) % 1009) };
            (0..1009).for_each(|at| cell.keep(of(at)));
            taken.clear();
            cell.take(Class::Wal, &mut taken);
            let mut times: Vec<_> = taken.iter().map(|io| io.service_ns).collect();
            times.sort_unstable();
            assert_eq!(times, (1019 - KEPT as u64..1019).collect::<Vec<_>>());
            assert!(taken.is_sorted_by_key(|io| io.at_ns) && taken.iter().all(|io| *io == of(io.at_ns)));
        }
        cell.take(Class::Wal, &mut taken);
        assert_eq!((taken.len(), cell.count()), (KEPT, 3 * 1009));
    }

    #[test]
    fn a_reader_beside_the_worker_finds_each_once_and_whole() {
        const COUNT: u64 = 200_000;
        let cell = SlowCell::new(5);
        let io =
            |n: u64| SlowIo { at_ns: n, offset_bytes: n * 3, bytes: n * 5, depth: n * 7, ..flush(n + 1) };
        let mut taken = Vec::new();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..COUNT).for_each(|n| cell.keep(io(n))));
            while !writer.is_finished() {
                cell.take(Class::Wal, &mut taken);
            }
        });
        cell.take(Class::Wal, &mut taken);
        assert!(taken.iter().all(|found| *found == io(found.at_ns)), "none is torn");
        assert!(taken.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns), "none twice");
        // Each is slower than those before it, so the last ones stay.
        assert_eq!(taken.last(), Some(&io(COUNT - 1)));
    }

    #[test]
    fn the_slowest_of_a_run_are_kept_after_all_room_is_used() {
        let mut left = 0;
        let before: Vec<_> = (0..KEPT_OF_RUN as u64).map(|n| flush(100 + n)).collect();
        let mut ios = [99, 100, 101, 5000].map(|ns| SlowIo { at_ns: ns, ..flush(ns) }).to_vec();
        let [mut a, mut b, mut c] = [(); 3].map(|()| Vec::new());
        let kept = slow_of_window([&mut ios, &mut a, &mut b, &mut c], 0, &mut left, &before);
        assert_eq!(kept.iter().map(|io| io.service_ns).collect::<Vec<_>>(), [101, 5000]);
        assert_eq!(left, 0);
    }

    #[test]
    fn the_slowest_are_kept_in_order() {
        let io = |at_ns, service_ns| SlowIo { at_ns, ..flush(service_ns) };
        let mut ios = vec![io(3, 9), io(1, 2), io(2, 7)];
        keep_slowest(&mut ios, 2);
        assert_eq!(ios, [io(2, 7), io(3, 9)]);
    }
}
