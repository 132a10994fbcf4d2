//! Where counts come from: a worker's cell in this process, or deltas from another one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hdrhistogram::Histogram;

use super::counts::cell::{ERRNO_MAX, LATENCY_NS_MAX, LatencyCell, WorkerCell, value_of};
use super::counts::counters::{Incidents, Polls};
use super::counts::slow::SlowIo;
use super::counts::under_way::{Begun, Intents};
use super::processors::tasks::TaskTimes;
use crate::class::Class;

/// One class's counts since the last call.
#[derive(Debug)]
pub struct Delta {
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes of the completed I/Os.
    pub bytes: u64,
    /// Intended starts of a class with a rate; 0 without one.
    pub intended: u64,
    /// Dropped intended starts.
    pub missed: u64,
    /// Failures by errno.
    pub errnos: [u64; ERRNO_MAX],
    /// For interfaces that poll.
    pub polls: Polls,
    /// For interfaces that supervise their commands.
    pub incidents: Incidents,
    /// Latencies of I/Os; for the WAL, of commits.
    pub service: LatencyDelta,
    /// Latencies from the intended start.
    pub response: LatencyDelta,
    /// The WAL's writes.
    pub write: LatencyDelta,
    /// The WAL's flushes.
    pub flush: LatencyDelta,
    /// I/Os that took at least as long as `run.slow_log`,
    pub slow_ios: u64,
    /// and those of them that were kept, with times on the workers' clock.
    pub slow: Vec<SlowIo>,
    /// Bytes read and written by member.
    pub members: Vec<(u64, u64)>,
    /// CPU time of another process, if the workers run there.
    pub elsewhere: TaskTimes,
}

impl Delta {
    /// An intended start is missed: see [`super::counts::cell::WorkerCell::miss`].
    pub fn miss(&mut self, waited_ns: u64) {
        (self.intended, self.missed) = (self.intended + 1, self.missed + 1);
        self.response.add(waited_ns);
    }
}

impl LatencyDelta {
    /// Counts a sample of at least this length.
    pub fn add(&mut self, ns: u64) {
        // Anything longer than the longest distinguished latency counts as that.
        let ns = ns.clamp(1, LATENCY_NS_MAX);
        let _ = self.histogram.record(ns);
        self.max_ns = self.max_ns.max(ns);
    }
}

/// A histogram and its exact maximum.
#[derive(Debug, Clone)]
pub struct LatencyDelta {
    /// The samples, three digits, 1 ns to 60 s.
    pub histogram: Histogram<u64>,
    /// The exact maximum; 0 if there are no samples.
    pub max_ns: u64,
}

impl Default for LatencyDelta {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("these bounds are valid");
        Self { histogram, max_ns: 0 }
    }
}

impl Delta {
    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        let empty = |latency: &mut LatencyDelta| {
            if !latency.histogram.is_empty() {
                latency.histogram.reset();
            }
            latency.max_ns = 0;
        };
        let Self {
            ios,
            bytes,
            intended,
            missed,
            errnos,
            polls,
            incidents,
            service,
            response,
            write,
            flush,
            slow_ios,
            slow,
            members,
            elsewhere,
        } = self;
        *elsewhere = TaskTimes::default();
        slow.clear();
        for count in [ios, bytes, intended, missed, slow_ios] {
            *count = 0;
        }
        (*polls, *incidents) = (Polls::default(), Incidents::default());
        errnos.fill(0);
        for latency in [service, response, write, flush] {
            empty(latency);
        }
        members.fill((0, 0));
    }

    /// Empty counts for this many members.
    pub fn new(members: usize) -> Self {
        Self {
            ios: 0,
            bytes: 0,
            intended: 0,
            missed: 0,
            errnos: [0; ERRNO_MAX],
            polls: Polls::default(),
            incidents: Incidents::default(),
            service: LatencyDelta::default(),
            response: LatencyDelta::default(),
            write: LatencyDelta::default(),
            flush: LatencyDelta::default(),
            slow_ios: 0,
            slow: Vec::new(),
            members: vec![(0, 0); members],
            elsewhere: TaskTimes::default(),
        }
    }
}

/// A source of counts for a class.
pub trait Source: Send {
    /// The class.
    fn class(&self) -> Class;
    /// Adds what was counted since the last call, except latencies. Returns whether more can come.
    fn counts(&mut self, delta: &mut Delta) -> bool;
    /// Adds the latencies since the last call, which takes longer.
    fn latencies(&mut self, delta: &mut Delta);
    /// Adds everything since the last call. Returns whether more can come.
    fn collect(&mut self, delta: &mut Delta) -> bool {
        let more = self.counts(delta);
        self.latencies(delta);
        more
    }
    /// What its worker, or each of several, has in flight and intends to start next.
    fn under_way(&mut self) -> Vec<(Vec<Begun>, Option<Intents>)> {
        Vec::new()
    }
    /// The thread that does the work, if it is in this process.
    fn thread_id(&self) -> Option<i32>;
}

/// A worker of this process, with the last reading of its cell.
#[derive(Debug)]
pub struct WorkerSource {
    cell: Arc<WorkerCell>,
    ios: u64,
    bytes: u64,
    intended: u64,
    missed: u64,
    errnos: [u64; ERRNO_MAX],
    polls: Polls,
    incidents: Incidents,
    slow_ios: u64,
    latencies: [Vec<u32>; 4],
    members: Vec<(u64, u64)>,
}

impl WorkerSource {
    /// Reads that cell.
    pub fn new(cell: Arc<WorkerCell>) -> Self {
        let members = vec![(0, 0); cell.members.len()];
        Self {
            cell,
            ios: 0,
            bytes: 0,
            intended: 0,
            missed: 0,
            errnos: [0; ERRNO_MAX],
            polls: Polls::default(),
            incidents: Incidents::default(),
            slow_ios: 0,
            latencies: Default::default(),
            members,
        }
    }
}

/// The difference from the last reading, which this one replaces.
fn step(last: &mut u64, now: u64) -> u64 {
    now.wrapping_sub(std::mem::replace(last, now))
}

fn collect_latency(last: &mut Vec<u32>, cell: &LatencyCell, into: &mut LatencyDelta) {
    for (index, now) in cell.counts().enumerate() {
        if index == last.len() {
            last.push(0);
        }
        let new = now.wrapping_sub(std::mem::replace(&mut last[index], now));
        if new > 0 {
            // The value is within the histogram's bounds, as both have the same.
            let _ = into.histogram.record_n(value_of(index), u64::from(new));
        }
    }
    into.max_ns = into.max_ns.max(cell.take_max_ns());
}

impl Source for WorkerSource {
    fn class(&self) -> Class {
        self.cell.class
    }

    fn counts(&mut self, delta: &mut Delta) -> bool {
        let cell = &self.cell;
        // Read first, so that everything counted before it was set is seen below.
        let ended = cell.ended.load(Ordering::Acquire);
        delta.ios += step(&mut self.ios, cell.ios.get());
        delta.bytes += step(&mut self.bytes, cell.bytes.get());
        delta.intended += step(&mut self.intended, cell.intended.get());
        delta.missed += step(&mut self.missed, cell.missed.get());
        let polls = cell.polls.get();
        delta.polls += polls - std::mem::replace(&mut self.polls, polls);
        let incidents = cell.incidents.get();
        delta.incidents += incidents - std::mem::replace(&mut self.incidents, incidents);
        for ((last, now), into) in self.errnos.iter_mut().zip(cell.errnos.iter()).zip(&mut delta.errnos) {
            *into += step(last, now.get());
        }
        for ((last, now), into) in self.members.iter_mut().zip(&cell.members).zip(&mut delta.members) {
            into.0 += step(&mut last.0, now.read_bytes.get());
            into.1 += step(&mut last.1, now.written_bytes.get());
        }
        !ended
    }

    fn latencies(&mut self, delta: &mut Delta) {
        let cell = &self.cell;
        let [service, response, write, flush] = &mut self.latencies;
        collect_latency(service, &cell.service, &mut delta.service);
        let optional = [
            (response, &cell.response, &mut delta.response),
            (write, &cell.write, &mut delta.write),
            (flush, &cell.flush, &mut delta.flush),
        ];
        for (last, cell, into) in optional {
            if let Some(cell) = cell {
                collect_latency(last, cell, into);
            }
        }
        if let Some(slow) = &cell.slow {
            slow.take(cell.class, &mut delta.slow);
            delta.slow_ios += step(&mut self.slow_ios, slow.count());
        }
    }

    fn under_way(&mut self) -> Vec<(Vec<Begun>, Option<Intents>)> {
        vec![(self.cell.under_way.begun(), self.cell.under_way.intents())]
    }

    fn thread_id(&self) -> Option<i32> {
        Some(self.cell.thread_id.load(Ordering::Relaxed)).filter(|id| *id > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_add_up_to_the_counts() {
        let cell = Arc::new(WorkerCell::new(Class::Wal, true, 1));
        let mut source = WorkerSource::new(cell.clone());
        let mut sum = (0, 0);
        for round in 1..=5u64 {
            for i in 0..round {
                cell.ios.add(1);
                cell.service.record(1000 * i);
                cell.members[0].written_bytes.add(512);
            }
            let polls = Polls { polls: round, ..Polls::default() };
            cell.follow(polls, Incidents { timeouts: 2 * round, resets: round / 5 });
            let mut delta = Delta::new(1);
            assert!(source.collect(&mut delta));
            assert_eq!((delta.ios, delta.service.histogram.len()), (round, round));
            assert_eq!(delta.members, [(0, 512 * round)]);
            let incidents = Incidents { timeouts: 2, resets: u64::from(round == 5) };
            assert_eq!((delta.polls.polls, delta.incidents), (1, incidents), "since the last call");
            sum = (sum.0 + delta.ios, sum.1 + delta.service.histogram.len());
        }
        assert_eq!(sum, (15, 15));
        cell.ended.store(true, Ordering::Release);
        assert!(!source.collect(&mut Delta::new(1)));
    }
}
