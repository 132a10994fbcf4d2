//! A worker's counts while it runs, read by the meters from another thread.
//!
//! Each cell has one writer, so a count is a plain load, add and store: no lock, no read-modify-write
//! on the bus. Counters only grow (and wrap); the meters keep the last reading and take the difference. The
//! reader never resets anything, so nothing can be lost or counted twice.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::counters::{Incidents, Polls};
use super::slow::SlowCell;
use super::under_way::UnderWay;
use crate::class::Class;

/// The largest latency that is distinguished; longer ones count as this.
pub const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Error numbers that are distinguished; larger ones count as the last.
pub const ERRNO_MAX: usize = 134;

const SUB_BUCKET_BITS: u32 = 11; // three significant digits: 2048 sub-buckets
const HALF_BITS: u32 = SUB_BUCKET_BITS - 1;
const HALF: usize = 1 << HALF_BITS;
const BUCKETS: usize = index_of(LATENCY_NS_MAX) + 1;

/// The bucket of a value, in the layout of an `HdrHistogram` of three digits from 1 ns.
pub const fn index_of(value: u64) -> usize {
    let bucket = u64::BITS - (value | ((1 << SUB_BUCKET_BITS) - 1)).leading_zeros() - SUB_BUCKET_BITS;
    (((bucket + 1) as usize) << HALF_BITS) + (value >> bucket) as usize - HALF
}

/// The smallest value of a bucket.
pub const fn value_of(index: usize) -> u64 {
    match (index >> HALF_BITS).checked_sub(1) {
        None => index as u64,
        Some(bucket) => ((index & (HALF - 1)) + HALF) as u64 * (1 << bucket),
    }
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the one writer may call this.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// An interface's actions on commands that did not complete.
#[derive(Debug, Default)]
pub struct IncidentCell([Counter; 2]);

impl IncidentCell {
    #[inline]
    fn follow(&self, incidents: Incidents) {
        let Incidents { timeouts, resets } = incidents;
        for (counter, now) in self.0.iter().zip([timeouts, resets]) {
            counter.add(now - counter.get());
        }
    }

    /// What was counted so far.
    pub fn get(&self) -> Incidents {
        let [timeouts, resets] = self.0.each_ref().map(Counter::get);
        Incidents { timeouts, resets }
    }
}

/// The results of an interface's polling.
#[derive(Debug, Default)]
pub struct PollCell([Counter; 4]);

impl PollCell {
    #[inline]
    fn follow(&self, polls: Polls) {
        let Polls { polls, empty_polls, polling_ns, empty_polling_ns } = polls;
        if polls == 0 {
            return; // most interfaces never poll
        }
        for (counter, now) in self.0.iter().zip([polls, empty_polls, polling_ns, empty_polling_ns]) {
            counter.add(now - counter.get());
        }
    }

    /// What was counted so far.
    pub fn get(&self) -> Polls {
        let [polls, empty_polls, polling_ns, empty_polling_ns] = self.0.each_ref().map(Counter::get);
        Polls { polls, empty_polls, polling_ns, empty_polling_ns }
    }
}

/// A histogram with one writer; its pages are touched only where values fall.
#[derive(Debug)]
pub struct LatencyCell {
    counts: Box<[AtomicU32; BUCKETS]>,
    /// One past the highest bucket ever used: readers need look no further.
    used: AtomicU32,
    max_ns: AtomicU64,
}

impl Default for LatencyCell {
    fn default() -> Self {
        // Through a vector, for a zeroed allocation that is never on the stack.
        let counts: Vec<AtomicU32> = (0..BUCKETS).map(|_| AtomicU32::new(0)).collect();
        let counts = counts.into_boxed_slice().try_into().expect("the vector has that length");
        Self { counts, used: AtomicU32::new(0), max_ns: AtomicU64::new(0) }
    }
}

impl LatencyCell {
    /// Records a latency; only the one writer may call this.
    #[inline]
    pub fn record(&self, ns: u64) {
        let ns = ns.min(LATENCY_NS_MAX);
        let index = index_of(ns);
        let count = &self.counts[index];
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
        if index >= self.used.load(Relaxed) as usize {
            self.used.store(index as u32 + 1, Relaxed);
        }
        if ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(ns, Relaxed);
        }
    }

    /// The count of each bucket up to the highest used one; each wraps at 2³².
    pub fn counts(&self) -> impl Iterator<Item = u32> {
        let used = self.used.load(Relaxed) as usize;
        self.counts[..used].iter().map(|count| count.load(Relaxed))
    }

    /// The largest latency since the last call. One recorded during the call may count for the next
    /// call.
    pub fn take_max_ns(&self) -> u64 {
        self.max_ns.swap(0, Relaxed)
    }
}

/// A worker's counts for one member.
#[derive(Debug, Default)]
pub struct MemberCell {
    /// Bytes read.
    pub read_bytes: Counter,
    /// Bytes written.
    pub written_bytes: Counter,
}

/// Everything that a worker counts.
#[derive(Debug)]
pub struct WorkerCell {
    /// The class that the worker belongs to.
    pub class: Class,
    /// Completed I/Os; flushes do not count.
    pub ios: Counter,
    /// Bytes of completed I/Os.
    pub bytes: Counter,
    /// Intended starts of a rated class.
    pub intended: Counter,
    /// See [`crate::meter::window::ClassFigures::missed`].
    pub missed: Counter,
    /// Failed I/Os and flushes by errno.
    pub errnos: Box<[Counter; ERRNO_MAX]>,
    /// For interfaces that poll.
    pub polls: PollCell,
    /// For interfaces that supervise their commands.
    pub incidents: IncidentCell,
    /// Start to completion; for the WAL, to the end of the flush.
    pub service: LatencyCell,
    /// Intended start to completion or commit, for a class with a rate.
    pub response: Option<LatencyCell>,
    /// The WAL's writes.
    pub write: Option<LatencyCell>,
    /// The WAL's flushes.
    pub flush: Option<LatencyCell>,
    /// Bytes of each member, in the target's order.
    pub members: Box<[MemberCell]>,
    /// Its I/Os in flight, and its next intended start.
    pub under_way: UnderWay,
    /// Its slow I/Os, if they are logged.
    pub slow: Option<SlowCell>,
    /// The worker's thread, 0 until it has started.
    pub thread_id: AtomicI32,
    /// Set once the worker has finished counting.
    pub ended: AtomicBool,
}

impl WorkerCell {
    /// A cell for a worker of the class on this many members.
    pub fn new(class: Class, rated: bool, members: usize) -> Self {
        let wal = class == Class::Wal;
        Self {
            class,
            ios: Counter::default(),
            bytes: Counter::default(),
            intended: Counter::default(),
            missed: Counter::default(),
            errnos: Box::new(std::array::from_fn(|_| Counter::default())),
            polls: PollCell::default(),
            incidents: IncidentCell::default(),
            service: LatencyCell::default(),
            response: rated.then(LatencyCell::default),
            write: wal.then(LatencyCell::default),
            flush: wal.then(LatencyCell::default),
            members: (0..members).map(|_| MemberCell::default()).collect(),
            under_way: UnderWay::new(0),
            slow: None,
            thread_id: AtomicI32::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// The same with room for this many I/Os in flight, including commits that wait for their flush.
    pub fn with_room(self, slots: u64) -> Self {
        Self { under_way: UnderWay::new(slots as usize), ..self }
    }

    /// The same with a log of the I/Os that take at least this long; 0 means none.
    pub fn logging_slow(self, threshold_ns: u64) -> Self {
        Self { slow: (threshold_ns > 0).then(|| SlowCell::new(threshold_ns)), ..self }
    }

    /// Counts an intended start as missed after this wait: a client would have waited at least as long.
    #[inline]
    pub fn miss(&self, waited_ns: u64) {
        self.missed.add(1);
        if let Some(response) = &self.response {
            response.record(waited_ns);
        }
    }

    /// Copies what the interface has counted so far; only the one writer may call this.
    #[inline]
    pub fn follow(&self, polls: Polls, incidents: Incidents) {
        self.polls.follow(polls);
        if incidents != Incidents::default() {
            self.incidents.follow(incidents);
        }
    }

    /// Counts a failed I/O or flush.
    pub fn error(&self, errno: i32) {
        let at = usize::try_from(errno).unwrap_or(0).min(ERRNO_MAX - 1);
        self.errnos[at].add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;

    #[test]
    fn buckets_are_those_of_an_hdr_histogram() {
        let theirs = Histogram::<u64>::new_with_bounds(1, LATENCY_NS_MAX, 3).unwrap();
        for value in (0..36).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1, 3 << bit]) {
            let value = value.min(LATENCY_NS_MAX);
            let index = index_of(value);
            assert_eq!(value_of(index), theirs.lowest_equivalent(value), "of {value}");
            assert_eq!(index_of(value_of(index)), index, "of {value}");
        }
        assert_eq!(index_of(0), 0);
    }

    #[test]
    fn records_can_be_read_from_another_thread() {
        let cell = LatencyCell::default();
        for ns in [5, 5, 100_000, 90_000_000_000] {
            cell.record(ns);
        }
        let counts: Vec<_> = cell.counts().enumerate().filter(|(_, n)| *n > 0).collect();
        assert_eq!(counts, [(5, 2), (index_of(100_000), 1), (index_of(LATENCY_NS_MAX), 1)]);
        assert_eq!(cell.take_max_ns(), LATENCY_NS_MAX);
        assert_eq!(cell.take_max_ns(), 0);
    }
}
