//! What is measured, as data: one definition of each figure.
//!
//! A *window* is a span of time with the counters read at both ends; an I/O belongs to the window in which it
//! completes. MB is 10⁶ bytes, latencies are nanoseconds. The windows sum exactly to the totals.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

pub use super::beside::others_io::OthersIo;
pub use super::change::{Change, Verdict};
pub use super::counts::counters::{Incidents, Polls};
pub use super::counts::engine::EngineFigures;
use super::counts::slow::SlowIo;
pub use super::devices::{block::DriveIos, layers::ReadBelow};
pub use super::flag::Flag;
pub use super::ledger_figure::{FigureUnit, LedgerFigure};
pub use super::ledger_line::LedgerLine;
pub use super::processor::{CpuFigures, CyclesSource};
pub use super::programs::program::{ProcessIo, ProgramFigures};
use super::written::Written;
use crate::class::Class;
use crate::host::Throttling;
use crate::units::mb_per_s;

/// Percentiles of a latency, in nanoseconds; null if fewer than ten samples lie beyond it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latency {
    /// Number of samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// 99.99th percentile.
    pub p9999: Option<u64>,
    /// 99.999th percentile; absent where there are too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99999: Option<u64>,
    /// 99.9999th percentile, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999999: Option<u64>,
    /// The largest sample, however few there are.
    pub max: Option<u64>,
}

/// Latencies of a class. Flushes do not count as I/Os.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Start to completion: from the submission of the I/O's batch to the moment its worker sees the
    /// completion. For the WAL, the commit: from the start of the write to the end of the flush that covers
    /// it (with `dsync` or `none`, of the write); none if that flush failed.
    pub service_ns: Option<Latency>,
    /// Intended start to completion (or commit); for missed starts, to when they were given up. None without
    /// a rate, or with over 1% missed.
    pub response_ns: Option<Latency>,
    /// The WAL's writes alone.
    pub write_ns: Option<Latency>,
    /// The WAL's flushes alone: from submission to the end of the last file's flush.
    pub flush_ns: Option<Latency>,
}

/// The state of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "state", content = "why")]
pub enum ClassState {
    /// Doing I/O.
    #[default]
    Running,
    /// Switched off by its knob.
    Off,
    /// The whole run is paused.
    Paused,
    /// Old I/O is draining after a turn.
    Draining,
    /// stacktune stopped it, with the reason (too many errors, no writes left).
    Stopped(String),
    /// Its workers failed, with the reason: one panicked, or their interface broke.
    Failed(String),
}

/// I/O in flight at the run's end. Rates, bytes and cycles stop at the end and exclude it; latencies, errors
/// and intended starts include it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Drained {
    /// I/Os that ended after the run's end.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// I/Os still unfinished after `run.drain`. They count in the latencies with their age at that time,
    /// which is the least that they took.
    pub unfinished: u64,
}

impl Drained {
    /// Itself, unless there was nothing.
    pub(super) fn unless_none(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// A class in a window, or over a whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassFigures {
    /// The class's state at the end of it.
    pub state: ClassState,
    /// Completed I/Os; in the last window, those before the run's end.
    pub ios: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// I/O in flight at the run's end, in its last window; absent elsewhere, and if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<Drained>,
    /// I/Os and flushes that took at least as long as `run.slow_log` says; absent if there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slow_ios: u64,
    /// Failed I/Os and flushes; a short transfer counts as one.
    pub errors: u64,
    /// Failed I/Os by errno's symbol.
    pub errnos: BTreeMap<String, u64>,
    /// Intended starts of a class with a rate: submitted I/Os, and missed starts.
    pub intended: u64,
    /// Intended starts that were dropped: over a second late, or not begun when their class stopped (by a
    /// turn, a pause or on its own). After that nothing is intended until it restarts.
    pub missed: u64,
    /// Decimal MB per second.
    pub mb_per_s: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Its rate in MB/s, if it has one.
    pub target_mb_per_s: Option<f64>,
    /// Whether over 1% of the intended starts were missed: the rate is not held, and response times are meaningless.
    pub not_held: bool,
    /// Its service and response times; for the WAL also those of its writes and flushes.
    pub latencies: Latencies,
    /// The share of the time, 0 to 1, in which the busiest thread that works for the class ran, or was ready
    /// but waited for a CPU, by its clock and the scheduler's: a worker, or a thread that serves one
    /// (`io_uring`'s kernel-side threads, and those that flush). For a thread that polls a submission queue,
    /// only the share in which it found work counts, by the kernel's own count (Linux 6.9); without that, all
    /// of its time. Over a run, the time-weighted mean of the windows that have it.
    pub busiest_worker: Option<f64>,
    /// Share of read bytes served without storage I/O, 0 to 1, for classes that read through the cache: 1 −
    /// bytes that the kernel counts as fetched from storage by the workers and the kernel-side threads that
    /// serve them / bytes read. Updated at most once a second: shorter windows repeat the last one. None if
    /// there was a turn in that time.
    pub cache_share: Option<f64>,
    /// Polls of completion queues and their time, for an interface that does its own polling; none for others.
    /// Polling by a kernel thread is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<Polls>,
    /// Commands that did not complete in time, and resets of controllers because of them; none if there were
    /// none, or the interface does not supervise them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incidents: Option<Incidents>,
    /// What makes these figures untrustworthy.
    pub flags: Vec<Flag>,
}

/// For counts that are absent if there was nothing.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's form
pub fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ClassFigures {
    /// See [`Window::counts_sum`].
    fn counts_sum(&self) -> u128 {
        let Latencies { service_ns, response_ns, write_ns, flush_ns } = &self.latencies;
        let samples = [service_ns, response_ns, write_ns, flush_ns].into_iter().flatten();
        let polls = self.polls.map_or([0; 4], |polls| {
            [polls.polls, polls.empty_polls, polls.polling_ns, polls.empty_polling_ns]
        });
        let incidents = self.incidents.map_or([0; 2], |incidents| [incidents.timeouts, incidents.resets]);
        let drained = self.drained.map_or([0; 3], |drained| [drained.ios, drained.bytes, drained.unfinished]);
        [self.ios, self.bytes, self.slow_ios, self.errors, self.intended, self.missed]
            .into_iter()
            .chain(drained)
            .chain(self.errnos.values().copied())
            .chain(samples.map(|latency| latency.count))
            .chain(polls)
            .chain(incidents)
            .map(u128::from)
            .sum()
    }
}

/// A member over a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemberFigures {
    /// The file's or device's name.
    pub name: String,
    /// Bytes that the classes read from it.
    pub read_bytes: u64,
    /// Bytes that the classes wrote to it.
    pub written_bytes: u64,
    /// Bytes read, as counted by the block layer; devices only.
    pub block_read_bytes: Option<u64>,
    /// Bytes written, as counted by the block layer; devices only.
    pub block_written_bytes: Option<u64>,
    /// The temperature of the hottest drive below it, in degrees Celsius, read at most once a second; over a
    /// run, the highest of its windows. None if no drive has a readable sensor.
    pub temperature_c: Option<f64>,
    /// Whether a drive below it throttled because of its temperature: `yes` or `no` by the drives' own
    /// counts, `hot` if one was at or above its warning temperature and reports no more (an inference). The
    /// worst of the drives, and over a run of its windows. Updated once a second at most: shorter windows
    /// repeat the last one. None if no drive reports it: not `NVMe`, or not root.
    pub throttling: Option<Throttling>,
}

/// All classes together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TotalFigures {
    /// Bytes of the four classes.
    pub bytes: u64,
    /// Decimal MB per second.
    pub mb_per_s: f64,
    /// The whole system's cycles over all bytes; none if no byte moved or the cycles are unknown.
    pub cycles_per_byte: Option<f64>,
    /// The part of these cycles that others did not take ([`CpuFigures::attributable_share`]), over all
    /// bytes; none if it is unknown what others used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributable_cycles_per_byte: Option<f64>,
    /// The whole system's cycles over all I/Os.
    #[serde(default)]
    pub cycles_per_op: Option<f64>,
}

impl TotalFigures {
    /// For `bytes` in a time; cycles are divided by the bytes and I/Os of the time in which they are known.
    pub(super) fn of(bytes: u64, duration_ns: u64, cpu: &CpuFigures, over: (u64, u64)) -> Self {
        let per = |count: u64| (count > 0 && cpu.cycles > 0.0).then(|| cpu.cycles / count as f64);
        let cycles_per_byte = per(over.0);
        Self {
            bytes,
            mb_per_s: mb_per_s(bytes, duration_ns),
            cycles_per_byte,
            attributable_cycles_per_byte: cycles_per_byte
                .zip(cpu.attributable_share())
                .map(|(cycles, share)| cycles * share),
            cycles_per_op: per(over.1),
        }
    }
}

/// One window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Counts from 0 through the run.
    pub index: u64,
    /// Its start, in nanoseconds from the run's start on the run's clock.
    pub start_ns: u64,
    /// Its true length in nanoseconds, which differs a little from `run.window`.
    pub duration_ns: u64,
    /// The setting that it belongs to: the number of turns so far.
    pub setting: u64,
    /// Whether a knob was turned in it, or old I/O was still draining: left out of comparisons.
    pub turned: bool,
    /// Whether it belongs to the warm-up, at whose end a window ends: left out of totals.
    pub warmup: bool,
    /// Whether the run was paused at some time in it.
    pub paused: bool,
    /// The classes, by [`Class::index`]; by name in files.
    #[serde(with = "crate::class::by_name")]
    pub classes: [ClassFigures; 4],
    /// All classes together.
    pub total: TotalFigures,
    /// The processor's time and cycles in it, of the whole system.
    pub cpu: CpuFigures,
    /// The members, in order; the WAL's own last, if it has one.
    pub members: Vec<MemberFigures>,
    /// Others' I/O on the drives below the members; absent where nobody else can use them, or it is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_io: Vec<OthersIo>,
    /// Reads and writes of the drives below, others' included; none where the block layer does not see all of the load's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_ios: Option<DriveIos>,
    /// Bytes read below the load; absent where the block layer does not see all of its I/Os.
    #[serde(default, skip_serializing_if = "ReadBelow::is_unknown")]
    pub read: ReadBelow,
    /// The storage engine under the classes in this window; none for pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineFigures>,
    /// What a program that is the load used and reported; none if the classes are the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFigures>,
    /// How the drives were used in it, by a trace: figures by name; absent without a trace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub traced: BTreeMap<String, f64>,
    /// The p99 of the drives' I/Os by that trace, from issue to completion, in ns; absent with too few I/Os.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced_p99_ns: Option<u64>,
    /// Bytes submitted for writing since the run's target was opened, fills included.
    pub written_bytes_total: u64,
    /// Bytes written on each level below the application.
    #[serde(default)]
    pub written: Written,
    /// The slowest of the I/Os that [`ClassFigures::slow_ios`] counts, in order of their start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<SlowIo>,
    /// What makes the whole window untrustworthy.
    pub flags: Vec<Flag>,
    /// The histograms behind the latencies.
    #[serde(skip)]
    pub histograms: Arc<[ClassHistograms; 4]>,
}

impl Window {
    /// The figures of a class.
    pub fn class(&self, class: Class) -> &ClassFigures {
        &self.classes[class.index()]
    }

    /// The sum of all its counts. If those of all windows fit in 64 bits, so does any sum over windows.
    pub fn counts_sum(&self) -> u128 {
        let options = |counts: &[Option<u64>]| counts.iter().flatten().copied().map(u128::from).sum::<u128>();
        let classes = self.classes.iter().map(ClassFigures::counts_sum);
        let members = self.members.iter().map(|member| {
            let block = options(&[member.block_read_bytes, member.block_written_bytes]);
            block + u128::from(member.read_bytes) + u128::from(member.written_bytes)
        });
        let engine = self.engine.iter().map(|engine| engine.counts.sum());
        u128::from(self.duration_ns)
            + u128::from(self.total.bytes)
            + self.written.counts_sum()
            + options(&[self.read.top_bytes, self.read.drives_bytes])
            + self.drive_ios.map_or(0, |drives| u128::from(drives.ios) + u128::from(drives.ms))
            + self.program.as_ref().map_or(0, ProgramFigures::counts_sum)
            + self.others_io.iter().map(OthersIo::counts_sum).sum::<u128>()
            + classes.chain(members).chain(engine).sum::<u128>()
    }

    /// Whether the window can be compared with others: one setting, nothing draining, not paused.
    pub fn is_clean(&self) -> bool {
        !self.turned && !self.paused && !self.warmup
    }
}

/// The histograms of a class in a window; none if nothing was recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClassHistograms {
    /// See [`Latencies::service_ns`].
    pub service: Option<Histogram<u64>>,
    /// See [`Latencies::response_ns`].
    pub response: Option<Histogram<u64>>,
    /// See [`Latencies::write_ns`].
    pub write: Option<Histogram<u64>>,
    /// See [`Latencies::flush_ns`].
    pub flush: Option<Histogram<u64>>,
}
