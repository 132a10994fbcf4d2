//! The messages between the two processes.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::error::{Error, Kind};
use crate::json;
use crate::load::volume::Region;
use crate::load::workers::Activity;
use crate::meter::counts::counters::{Incidents, Polls};
use crate::meter::counts::slow::SlowIo;
use crate::meter::counts::under_way::{Begun, Intents};
use crate::meter::processors::tasks::TaskTimes;
use crate::meter::source::{Delta, LatencyDelta};
use crate::settings::jobs::Job;

/// A request, with the limit that holds from now on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The request.
    pub ask: Ask,
    /// Bytes at which writing stops.
    pub limit_bytes: u64,
}

/// The kinds of requests.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Drive these namespaces, by PCI address and number. Answered by [`Answer::Attached`].
    Attach(Vec<(String, u32)>),
    /// Prepare to start classes on them.
    Load(Box<Load>),
    /// Start a class on these CPUs. Answered by [`Answer::Started`].
    Start {
        /// How it runs.
        job: Box<Job>,
        /// The CPUs; none means any.
        cpus: Vec<u32>,
    },
    /// Let a class drain and end.
    Stop(Class),
    /// Report what a class is doing. Answered by [`Answer::Activity`].
    Look(Class),
    /// Report what a class, as started that time, has counted since the last such request. Answered by
    /// [`Answer::Sample`].
    Sample(u64),
    /// Report which I/Os of a class, as started that time, are in flight. Answered by [`Answer::UnderWay`].
    UnderWay(u64),
    /// End all classes; answered once no worker is left.
    Unload,
}

/// What a load works on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Load {
    /// The data region, which scan, point and background share.
    pub data: Region,
    /// The WAL's region.
    pub wal: Region,
    /// The number of members below the regions.
    pub members: usize,
    /// Where the sequence numbers of writes begin.
    pub sequence: u64,
    /// Bytes that are already written.
    pub written_bytes: u64,
    /// The write map to keep, if there is one.
    pub map: Option<PathBuf>,
}

/// An answer, with the current state.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The answer, or why there is none.
    pub answer: Result<Answer, ErrorInTransit>,
    /// Bytes submitted for writing, including earlier ones; `None` before a load.
    pub written_bytes: Option<u64>,
}

/// The kinds of answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Done.
    Done,
    /// The drives are attached.
    Attached(Attached),
    /// The class was started, as the start of that number.
    Started(u64),
    /// What the class is doing.
    Activity(Activity),
    /// What was counted.
    Sample(Box<Sample>),
    /// For each worker, its I/Os in flight, and its next intended start.
    UnderWay(Vec<(Vec<Begun>, Option<Intents>)>),
}

/// The running versions of SPDK and DPDK, and the drives' limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The versions that run: `SPDK v24.01`, `DPDK 23.11.0`.
    pub versions: (String, String),
    /// Maximum bytes of a command, the minimum over the drives.
    pub transfer_bytes_max: u64,
}

/// An [`Error`] in transit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInTransit {
    /// The exit status of its kind.
    status: u8,
    what: String,
    hint: Option<String>,
}

impl From<Error> for ErrorInTransit {
    fn from(error: Error) -> Self {
        Self { status: error.exit_status(), what: error.what, hint: error.hint }
    }
}

impl From<ErrorInTransit> for Error {
    fn from(fault: ErrorInTransit) -> Self {
        let kinds = [Kind::Input, Kind::Refused, Kind::Interrupted, Kind::Failed];
        let of = |kind: Kind| Error { kind, what: String::new(), hint: None };
        let kind = kinds.into_iter().find(|kind| of(*kind).exit_status() == fault.status);
        Error { kind: kind.unwrap_or(Kind::Failed), what: fault.what, hint: fault.hint }
    }
}

/// What a class has counted since the last request: a [`Delta`] without its zeros.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Whether more may follow.
    pub more: bool,
    /// I/Os, bytes, intended starts, missed starts.
    counts: [u64; 4],
    errnos: Vec<(usize, u64)>,
    polls: Polls,
    incidents: Incidents,
    /// The number of slow I/Os, and those that were logged.
    slow: (u64, Vec<SlowIo>),
    members: Vec<(u64, u64)>,
    /// Service, response, write, flush.
    latencies: [Latencies; 4],
    /// CPU time of the process and its worker threads.
    pub times: TaskTimes,
}

/// A histogram's nonempty buckets as value and count, and the exact maximum.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Latencies {
    buckets: Vec<(u64, u64)>,
    max_ns: u64,
}

impl From<&LatencyDelta> for Latencies {
    fn from(delta: &LatencyDelta) -> Self {
        let buckets = delta.histogram.iter_recorded();
        let buckets = buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        Self { buckets: buckets.collect(), max_ns: delta.max_ns }
    }
}

impl Latencies {
    fn add_to(&self, delta: &mut LatencyDelta) {
        for (value, count) in &self.buckets {
            // Both histograms have the same bounds.
            let _ = delta.histogram.record_n(*value, *count);
        }
        delta.max_ns = delta.max_ns.max(self.max_ns);
    }
}

impl Sample {
    /// Captures the content of a delta.
    pub fn of(delta: &Delta, more: bool, times: TaskTimes) -> Self {
        let errnos = delta.errnos.iter().copied().enumerate().filter(|(_, count)| *count > 0);
        Self {
            more,
            counts: [delta.ios, delta.bytes, delta.intended, delta.missed],
            errnos: errnos.collect(),
            polls: delta.polls,
            incidents: delta.incidents,
            slow: (delta.slow_ios, delta.slow.clone()),
            members: delta.members.clone(),
            latencies: [&delta.service, &delta.response, &delta.write, &delta.flush].map(Latencies::from),
            times,
        }
    }

    /// Adds the sample, except for its latencies.
    pub fn add_counts(&self, delta: &mut Delta) {
        let counts = [&mut delta.ios, &mut delta.bytes, &mut delta.intended, &mut delta.missed];
        for (into, count) in counts.into_iter().zip(self.counts) {
            *into += count;
        }
        for (errno, count) in &self.errnos {
            if let Some(into) = delta.errnos.get_mut(*errno) {
                *into += count;
            }
        }
        delta.polls += self.polls;
        delta.incidents += self.incidents;
        delta.slow_ios += self.slow.0;
        delta.slow.extend_from_slice(&self.slow.1);
        for (into, (read, written)) in delta.members.iter_mut().zip(&self.members) {
            (into.0, into.1) = (into.0 + read, into.1 + written);
        }
        delta.elsewhere += self.times;
    }

    /// Adds the sample's latencies.
    pub fn add_latencies(&self, delta: &mut Delta) {
        let into = [&mut delta.service, &mut delta.response, &mut delta.write, &mut delta.flush];
        into.into_iter().zip(&self.latencies).for_each(|(into, latencies)| latencies.add_to(into));
    }
}

/// Sends a message as one line.
pub fn say(stream: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    stream.write_all(&json::line(what).map_err(io::Error::other)?)
}

/// Parses a line.
pub fn understand<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    Ok(json::read(line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_contains_everything_in_a_delta() {
        let mut counted = Delta::new(2);
        (counted.ios, counted.bytes, counted.intended, counted.missed) = (3, 12288, 5, 2);
        counted.errnos[5] = 4;
        counted.members = vec![(4096, 0), (8192, 1)];
        counted.polls.count(0, 70);
        let histograms =
            [&mut counted.service, &mut counted.response, &mut counted.write, &mut counted.flush];
        for (at, latency) in (1..).zip(histograms) {
            latency.max_ns = 7_000_123 * at;
            latency.histogram.record_n(latency.max_ns, at).unwrap();
            latency.histogram.record(at).unwrap();
        }
        counted.elsewhere = TaskTimes { own_ns: 9, overhead_ns: 8, busiest_ns: Some(7) };
        let sample = Sample::of(&counted, true, counted.elsewhere);
        let line = serde_json::to_vec(&sample).unwrap();
        let heard: Sample = understand(&line).unwrap();
        let mut added = Delta::new(2);
        heard.add_counts(&mut added);
        heard.add_latencies(&mut added);
        let counts = |of: &Delta| {
            let counts = (of.ios, of.bytes, of.intended, of.missed, of.errnos);
            (counts, of.polls, of.members.clone(), of.elsewhere)
        };
        assert_eq!(counts(&added), counts(&counted));
        let latencies = |of: Delta| [of.service, of.response, of.write, of.flush];
        for (added, counted) in latencies(added).into_iter().zip(latencies(counted)) {
            assert!(added.histogram == counted.histogram && added.max_ns == counted.max_ns);
        }
    }

    #[test]
    fn an_error_is_unchanged_on_the_other_side() {
        for error in [Error::input("a").hint("b"), Error::failed("c"), Error::refused("d")] {
            let line = serde_json::to_vec(&ErrorInTransit::from(error.clone())).unwrap();
            assert_eq!(Error::from(understand::<ErrorInTransit>(&line).unwrap()), error);
        }
    }
}
