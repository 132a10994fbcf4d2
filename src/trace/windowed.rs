//! Figures of a trace for each stretch of time between two calls, such as a window of the run.
//!
//! An event counts in the stretch in which it is taken here, a few hundredths of a second late. The mapping
//! cache carries over from one stretch to the next.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;

use super::io::{LostEvents, Op, TracedIo};
use super::pairing::{Act, TraceEvent, pair};
use super::watched::Watched;

/// After this delay, the events of all CPUs have arrived.
const LATE_NS: u64 = 20_000_000;
/// Maximum open I/Os that are followed; if there are more, completions must be missing.
const OPEN_MAX: usize = 1 << 16;
/// Maximum sizes of writes that are kept for a stretch.
const SIZES_MAX: usize = 1 << 20;
/// Minimum reads and writes for a p99: ten are beyond it.
const P99_IOS_MIN: u64 = 1000;
/// Bytes of a flash page, pages that a translation page maps, and the share of the space that the cache
/// covers, in percent: the authors' values.
const PAGE_BYTES: u64 = 2048;
const TRANSLATED: u64 = 512;
const COVERED_PERCENT: u64 = 10;

/// What happened in a stretch; nothing is known if issues were lost, and no depth if completions were.
#[derive(Debug, Clone, Default, PartialEq)]
struct Stretch {
    lost: bool,
    lost_completions: bool,
    write_bytes: Vec<u32>,
    discards: u64,
    lookups: u64,
    misses: u64,
    /// Total latency of the reads, writes and discards that ended.
    taken_ns: u64,
    /// Latency, from issue to completion, of each read and write of the parts that ended.
    latencies: Option<Histogram<u64>>,
}

impl Stretch {
    fn note_latency(&mut self, ns: u64) {
        if self.latencies.is_none() {
            self.latencies = Histogram::new(3).ok(); // it grows by itself
        }
        if let Some(latencies) = &mut self.latencies {
            let _ = latencies.record(ns);
        }
    }
}

/// Figures of a stretch; `None` for those without anything to measure.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StretchFigures {
    /// The median size of writes.
    pub write_median_bytes: Option<f64>,
    /// The mean depth: total latency of the I/Os that ended in the stretch, over its length (Little's law).
    pub mean_depth: Option<f64>,
    /// Discards per second.
    pub discards_per_s: Option<f64>,
    /// Misses per lookup, for a mapping cache that covers a tenth of the space.
    pub miss_ratio: Option<f64>,
    /// The p99 latency of reads and writes that ended in the stretch, issue to completion, in ns; `None` if too few.
    pub p99_ns: Option<u64>,
}

/// Where to take the stretches of a trace; whoever takes one decides when it ends.
#[derive(Debug, Clone, Default)]
pub struct Stretches(Arc<Mutex<Stretch>>);

impl Stretches {
    /// The figures since the last call, `length_ns` ago.
    pub fn take(&self, length_ns: u64) -> StretchFigures {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stretch = std::mem::take(&mut *shared);
        (shared.lost, shared.lost_completions) = (stretch.lost, stretch.lost_completions);
        drop(shared);
        if stretch.lost || length_ns == 0 {
            return StretchFigures::default();
        }
        let Stretch { mut write_bytes, discards, lookups, misses, taken_ns, latencies, .. } = stretch;
        let lost_completions = stretch.lost_completions;
        let enough = latencies.filter(|latencies| !lost_completions && latencies.len() >= P99_IOS_MIN);
        let length = length_ns as f64;
        StretchFigures {
            write_median_bytes: median(&mut write_bytes),
            mean_depth: (!lost_completions).then_some(taken_ns as f64 / length),
            discards_per_s: Some(discards as f64 * 1e9 / length),
            miss_ratio: (lookups > 0).then(|| misses as f64 / lookups as f64),
            p99_ns: enough.map(|latencies| latencies.value_at_quantile(0.99).min(latencies.max())),
        }
    }
}

fn median(bytes: &mut [u32]) -> Option<f64> {
    let last = bytes.len().checked_sub(1)?;
    bytes.sort_unstable();
    Some(f64::midpoint(f64::from(bytes[last / 2]), f64::from(bytes[last.div_ceil(2)])))
}

/// Follows the events of a trace.
#[derive(Debug)]
pub struct Follower {
    drives: Vec<(Watched, Cache)>,
    /// Events that are not yet old enough, and issues that have not completed.
    pending: Vec<TraceEvent>,
    open: Vec<TraceEvent>,
    stretches: Stretches,
}

impl Follower {
    /// Starts following these drives; also returns where to take the figures.
    pub fn of(drives: &[Watched]) -> (Self, Stretches) {
        let stretches = Stretches::default();
        let drives = drives.iter().map(|of| (of.clone(), Cache::of(of.bytes))).collect();
        let follower = Self { drives, pending: Vec::new(), open: Vec::new(), stretches: stretches.clone() };
        (follower, stretches)
    }

    /// Notes which events are missing so far: from now on, figures that need them are unknown.
    pub fn lost(&mut self, lost: LostEvents) {
        let mut stretch = self.stretches.0.lock().unwrap_or_else(PoisonError::into_inner);
        stretch.lost |= lost.others() > 0;
        stretch.lost_completions |= lost.completions > 0;
    }

    /// Takes new events; the clock is at `now_ns`.
    pub fn take(&mut self, events: &[TraceEvent], now_ns: u64) {
        self.pending.extend_from_slice(events);
        let until_ns = now_ns.saturating_sub(LATE_NS);
        let (mut due, pending): (Vec<TraceEvent>, Vec<TraceEvent>) =
            self.pending.drain(..).partition(|event| event.at_ns <= until_ns);
        self.pending = pending;
        if due.is_empty() {
            return;
        }
        due.sort_by_key(|event| event.at_ns);
        let shared = Arc::clone(&self.stretches.0);
        let mut stretch = shared.lock().unwrap_or_else(PoisonError::into_inner);
        for event in due.iter().filter(|event| event.act == Act::Issue) {
            self.issued(event, &mut stretch);
        }
        let all: Vec<TraceEvent> = self.open.drain(..).chain(due.iter().copied()).collect();
        // Without completions, nothing can be followed.
        let paired = if stretch.lost_completions { None } else { pair(&all) };
        let Some(paired) = paired else {
            stretch.lost_completions = true;
            return;
        };
        let is_of =
            |io: &TracedIo| self.drives.iter().any(|(of, _)| of.holds(io.drive, io.offset_bytes, io.bytes));
        for io in &paired.ios {
            match io.completed_ns {
                Some(end_ns) if io.op != Op::Flush && is_of(io) => {
                    let taken_ns = end_ns - io.issued_ns;
                    stretch.taken_ns += taken_ns;
                    if io.op != Op::Discard {
                        stretch.note_latency(taken_ns);
                    }
                }
                _ => {}
            }
        }
        let can_end = |event: &TraceEvent| event.bytes > 0 || event.op == Op::Flush;
        let has_ends = all.iter().any(|event| event.act != Act::Issue);
        self.open = if has_ends { paired.open } else { all.into_iter().filter(can_end).collect() };
        if self.open.len() > OPEN_MAX {
            self.open.clear();
            stretch.lost_completions = true;
        }
    }

    /// An I/O that the driver requeues counts again when it is issued again.
    fn issued(&mut self, event: &TraceEvent, stretch: &mut Stretch) {
        if event.bytes == 0 {
            return;
        }
        let (from, to) = (event.offset_bytes, event.offset_bytes.saturating_add(u64::from(event.bytes)));
        let is_of = |of: &Watched| of.holds(event.drive, event.offset_bytes, event.bytes);
        // Other parts of the drive are others' business.
        let Some((of, cache)) = self.drives.iter_mut().find(|(of, _)| is_of(of)) else { return };
        match event.op {
            Op::Write if stretch.write_bytes.len() < SIZES_MAX => stretch.write_bytes.push(event.bytes),
            Op::Discard => stretch.discards += 1,
            Op::Write | Op::Read | Op::Flush => {}
        }
        let of_space = [from - of.start_bytes, to - of.start_bytes];
        let (lookups, misses) = cache.look_up(of_space, event.op);
        stretch.lookups += lookups;
        stretch.misses += misses;
    }
}

/// A mapping cache of whole translation pages, which evicts the least recently used.
#[derive(Debug)]
struct Cache {
    capacity: usize,
    /// When each was last used, and which one was used at each time.
    used: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
    now: u64,
}

impl Cache {
    /// A cache for a space of that size.
    fn of(space_bytes: u64) -> Self {
        let entries = u128::from(space_bytes.div_ceil(PAGE_BYTES)) * u128::from(COVERED_PERCENT) / 100;
        let capacity = usize::try_from(entries / u128::from(TRANSLATED)).unwrap_or(usize::MAX).max(1);
        Self { capacity, used: HashMap::new(), order: BTreeMap::new(), now: 0 }
    }

    /// Looks up the pages of an I/O, from one byte to another: how many there are, and how many of them miss.
    /// A discard leaves pages that it touches in part.
    fn look_up(&mut self, [from, to]: [u64; 2], op: Op) -> (u64, u64) {
        let (mut first, mut behind) = (from / PAGE_BYTES, to.div_ceil(PAGE_BYTES));
        if op == Op::Discard {
            first = from.div_ceil(PAGE_BYTES);
            behind = (to / PAGE_BYTES).max(first);
        }
        let mut misses = 0;
        if first < behind {
            for translation in first / TRANSLATED..behind.div_ceil(TRANSLATED) {
                misses += u64::from(!self.access(translation));
            }
        }
        (behind - first, misses)
    }

    /// Uses a translation page; returns whether it was there.
    fn access(&mut self, translation: u64) -> bool {
        self.now += 1;
        let before = self.used.insert(translation, self.now);
        if let Some(before) = before {
            self.order.remove(&before);
        } else if self.used.len() > self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
        self.order.insert(self.now, translation);
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::contract::{ContractSpec, score};
    use crate::trace::io::{Form, Trace, TracedDrive};

    const DRIVE: TracedDrive = TracedDrive(8 << 20);
    const MIB: u64 = 1 << 20;
    const MS: u64 = 1_000_000;

    fn event(at_ms: u64, act: Act, op: Op, offset_bytes: u64, bytes: u64) -> TraceEvent {
        TraceEvent { at_ns: at_ms * MS, offset_bytes, bytes: bytes as u32, drive: DRIVE, pid: 1, act, op }
    }

    fn watched(bytes: u64) -> Watched {
        Watched { name: "sda".into(), drive: DRIVE, start_bytes: MIB, bytes, model: None, serial: None }
    }

    #[track_caller]
    fn close(found: Option<f64>, expected: f64) {
        assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?} for {expected}");
    }

    #[test]
    fn each_stretch_has_what_was_issued_in_it() {
        let (mut follower, stretches) = Follower::of(&[watched(10 * MIB)]);
        let first = [
            event(0, Act::Issue, Op::Write, MIB, 4096),
            event(10, Act::Complete, Op::Write, MIB, 4096),
            event(20, Act::Issue, Op::Write, 2 * MIB, 8192),
            event(30, Act::Issue, Op::Discard, 3 * MIB, 4096),
            event(31, Act::Complete, Op::Discard, 3 * MIB, 4096),
            event(99, Act::Issue, Op::Write, MIB, 65536),
        ];
        follower.take(&first, 110 * MS);
        let of = stretches.take(100 * MS);
        // The last event is not old enough: earlier ones may still arrive.
        close(of.write_median_bytes, 6144.0);
        close(of.discards_per_s, 10.0);
        close(of.mean_depth, 0.11);
        // The cache has room for one translation page, and the first three I/Os are all in different ones.
        close(of.miss_ratio, 3.0 / 8.0);
        let second = [
            event(120, Act::Complete, Op::Write, 2 * MIB, 8192),
            event(121, Act::Complete, Op::Write, MIB, 65536),
            event(122, Act::Issue, Op::Write, MIB, 2048),
            // Another part of the drive.
            event(123, Act::Issue, Op::Write, 0, 2048),
            event(124, Act::Issue, Op::Discard, 0, 2048),
            event(125, Act::Complete, Op::Write, 0, 2048),
        ];
        follower.take(&second, 150 * MS);
        let of = stretches.take(100 * MS);
        close(of.write_median_bytes, 33792.0);
        // From 20 to 120, and from 99 to 121.
        close(of.mean_depth, 1.22);
        close(of.miss_ratio, 1.0 / 33.0);
        close(of.discards_per_s, 0.0);
        assert_eq!(stretches.take(100 * MS).miss_ratio, None);
        // Without completions only depth is unknown; without issues everything is.
        follower.lost(LostEvents { all: 1, completions: 1 });
        follower.take(&[event(200, Act::Issue, Op::Write, MIB, 2048)], 300 * MS);
        let of = stretches.take(100 * MS);
        assert_eq!((of.write_median_bytes, of.mean_depth), (Some(2048.0), None));
        follower.lost(LostEvents { all: 2, completions: 1 });
        follower.take(&[event(400, Act::Issue, Op::Write, MIB, 2048)], 500 * MS);
        assert_eq!(stretches.take(100 * MS), StretchFigures::default());
    }

    #[test]
    fn a_request_completed_in_parts_ends_with_the_last_one() {
        let (mut follower, stretches) = Follower::of(&[watched(10 * MIB)]);
        let request = event(0, Act::Issue, Op::Read, MIB, 65536);
        let parts = [(10, 0, 16384), (20, 16384, 32768), (30, 49152, 16384)];
        let parts = parts.map(|(at, from, bytes)| event(at, Act::Complete, Op::Read, MIB + from, bytes));
        for (number, piece) in [&[request][..], &parts[..1], &parts[1..2], &parts[2..]].iter().enumerate() {
            follower.take(piece, (100 + number as u64) * MS);
        }
        close(stretches.take(100 * MS).mean_depth, 0.3);
        assert!(follower.open.is_empty());
    }

    #[test]
    fn a_p99_is_of_the_reads_and_writes_of_the_part_that_ended() {
        let (mut follower, stretches) = Follower::of(&[watched(10 * MIB)]);
        // A read every millisecond: each takes 1 ms, except for two in a hundred, which take 9 ms.
        let took = |at: u64| if at % 100 < 2 { 9 } else { 1 };
        let mut read = |from: u64, count: u64, offset_bytes: u64| {
            let ios = (from..from + count).flat_map(|at| {
                let io = |at_ms, act| event(at_ms, act, Op::Read, offset_bytes + at % 16 * 4096, 4096);
                [io(at, Act::Issue), io(at + took(at), Act::Complete)]
            });
            let mut events: Vec<_> = ios.collect();
            events.sort_by_key(|event| event.at_ns);
            follower.take(&events, (from + count + 100) * MS);
            stretches.take(1000 * MS).p99_ns
        };
        let p99_ms = read(0, 1000, MIB).unwrap() as f64 / MS as f64;
        assert!((8.99..=9.01).contains(&p99_ms), "{p99_ms}");
        assert_eq!(read(2000, 999, MIB), None, "too few");
        assert_eq!(read(4000, 1000, 20 * MIB), None, "others' part of the drive");
        assert!(read(6000, 1000, MIB).is_some());
        // Flushes and discards don't count.
        let others = (8000..10_000).flat_map(|at| {
            let (op, bytes) = if at % 2 == 0 { (Op::Flush, 0) } else { (Op::Discard, 4096) };
            [event(at, Act::Issue, op, MIB, bytes), event(at + 1, Act::Complete, op, MIB, bytes)]
        });
        follower.take(&others.collect::<Vec<_>>(), 11_000 * MS);
        assert_eq!(stretches.take(1000 * MS).p99_ns, None);
        follower.lost(LostEvents::unknown(1));
        assert_eq!(stretches.take(1000 * MS), StretchFigures::default());
    }

    /// However the events are split, the sums are those of the whole trace.
    #[test]
    fn stretches_together_are_the_whole_trace() {
        let mut state = 3_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut events, mut ios) = (Vec::new(), Vec::new());
        for at in 0..3000 {
            let op = [Op::Read, Op::Write, Op::Write, Op::Discard][next(4) as usize];
            let (from, bytes) = (MIB + next(64) * MIB + next(200) * 2048, 2048 * (1 + next(64)));
            let took = 1 + next(40);
            events.push(event(at, Act::Issue, op, from, bytes));
            events.push(event(at + took, Act::Complete, op, from, bytes));
            ios.push(TracedIo {
                issued_ns: at * MS,
                completed_ns: Some((at + took) * MS),
                offset_bytes: from,
                bytes: bytes as u32,
                drive: DRIVE,
                pid: 1,
                op,
            });
        }
        events.sort_by_key(|event| event.at_ns);
        let taken: u64 = ios.iter().map(|io| io.completed_ns.unwrap() - io.issued_ns).sum();
        let whole = Trace::whole(ios, Form::Blktrace);
        let spec = ContractSpec { start_bytes: MIB, space_bytes: Some(65 * MIB), ..ContractSpec::default() };
        let scores = score(&whole, &spec).unwrap();
        let at_tenth = scores.misses.iter().find(|miss| miss.coverage_percent == 10).unwrap();
        let (mut follower, stretches) = Follower::of(&[watched(65 * MIB)]);
        for piece in events.chunks(77) {
            follower.take(piece, piece.last().unwrap().at_ns);
        }
        follower.take(&[], 10_000 * MS);
        let shared = stretches.0.lock().unwrap();
        assert_eq!((shared.lookups, shared.misses), (at_tenth.lookups, at_tenth.misses));
        assert_eq!(shared.taken_ns, taken);
        assert_eq!(Some(shared.discards), scores.requests.sizes[2].map(|five| five.count));
    }
}
