//! What is measured, as data: one definition of each figure.
//!
//! A *window* is a span of time in which the counters were read at both ends; an I/O belongs to the
//! window of its completion. MB is 10⁶ bytes. Latencies are nanoseconds. Totals are sums of the same
//! counters over all counted windows, so the windows sum exactly to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

pub use super::counters::{Incidents, Polls};
pub use super::engine::EngineFigures;
pub use super::flag::Flag;
use super::written::Written;
use crate::class::Class;
use crate::host::Throttling;

/// Percentiles of a latency, in nanoseconds; null where fewer than ten samples lie beyond it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Samples.
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
    /// The largest.
    pub max: Option<u64>,
}

/// Latencies of a class. Flushes do not count as I/Os.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Start to completion: from the hand-over of the batch that the I/O is in to the moment at which
    /// its worker sees the completion. Of the WAL the commit: start of the write to the end of the
    /// flush that covers it (`dsync`, `none`: of the write); none where that flush failed.
    pub service_ns: Option<Latency>,
    /// Intended start to completion (or commit); none without a rate or with over 1% missed.
    pub response_ns: Option<Latency>,
    /// The WAL's writes alone.
    pub write_ns: Option<Latency>,
    /// The WAL's flushes alone: all files of one together, from the hand-over to the last one's end.
    pub flush_ns: Option<Latency>,
}

/// What a class is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case", tag = "state", content = "why")]
pub enum State {
    /// I/O flows.
    #[default]
    Running,
    /// Switched off by its knob.
    Off,
    /// The whole run is paused.
    Paused,
    /// Old I/O is draining after a turn.
    Draining,
    /// stacktune paused it, and why (too many errors, no writes left).
    Stopped(String),
}

/// A class in a window, or over a whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassFigures {
    /// What the class was doing at the end of it.
    pub state: State,
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes of completed I/Os.
    pub bytes: u64,
    /// Failed I/Os and flushes; a transfer cut short is one.
    pub errors: u64,
    /// Failed I/Os by errno's symbol.
    pub errnos: BTreeMap<String, u64>,
    /// Intended starts, of a rated class: I/Os handed over and those missed.
    pub intended: u64,
    /// Intended starts that were dropped: over a second late, or not begun when their class stopped
    /// (by a turn, a pause or itself). Nothing is intended after that until it starts again.
    pub missed: u64,
    /// Decimal MB a second.
    pub mb_per_s: f64,
    /// I/Os a second.
    pub iops: f64,
    /// Its rate as MB/s, where it has one.
    pub target_mb_per_s: Option<f64>,
    /// Over 1% of the intended starts were missed: the rate is not held, response times mean nothing.
    pub not_held: bool,
    /// Its latencies.
    pub latencies: Latencies,
    /// The share of the time in which the busiest worker ran or could have run and waited for a CPU,
    /// 0 to 1, by the thread's own clock and the scheduler's; kernel-side threads that serve it do not
    /// count. Over a run the mean of the windows that have it, by time.
    pub busiest_worker: Option<f64>,
    /// Share of read bytes served without storage I/O, 0 to 1; of classes that read through the cache:
    /// 1 − bytes that the kernel counts as fetched from storage by the workers and the kernel-side
    /// threads that serve them / bytes read. Found once a second at most: shorter windows repeat the
    /// last one. None where a turn fell into that time.
    pub cache_share: Option<f64>,
    /// Looks at completion queues and their time, of an interface that polls by itself; none of others.
    /// What a thread of the kernel polls is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<Polls>,
    /// Commands that did not come back in time, and resets of controllers for that; none where all did,
    /// or the interface does not watch over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incidents: Option<Incidents>,
    /// What makes these figures untrustworthy.
    pub flags: Vec<Flag>,
}

/// Where the cycles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum CyclesSource {
    /// Counted by the performance-monitoring unit, user and kernel, on every CPU.
    Pmu,
    /// Busy CPU time × clock frequency.
    #[default]
    Estimate,
}

/// The processor over a window, the whole system unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuFigures {
    /// CPUs online.
    pub cpus: u32,
    /// Shares of all CPU time, 0 to 1: user (with nice).
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// Interrupts, hard and soft.
    pub interrupt: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Everything but idle and waiting for I/O; what the hypervisor took counts as busy. At least what
    /// this process's own threads' clocks say, which the kernel's ticks (the shares above) may miss.
    pub busy: f64,
    /// Cores that this process kept busy, its kernel-side workers included.
    pub own_cores: f64,
    /// Cores that stacktune itself used outside the workers (screen, meters): the CPU time of its
    /// threads that are neither workers nor serve them (kernel-side ones, and those that flush).
    pub overhead_cores: f64,
    /// Cycles of the whole system: counted, or estimated as busy time without what the hypervisor
    /// took × frequency. 0 where neither is known.
    pub cycles: f64,
    /// Where the cycles come from.
    pub cycles_source: CyclesSource,
    /// The frequency of an estimate in Hz: the mean over CPUs, each by its busy time.
    pub frequency_hz: Option<f64>,
    /// Where that frequency comes from.
    pub frequency_source: Option<String>,
    /// The window is too short for the kernel's 10 ms clock: shares are coarse.
    pub coarse: bool,
}

impl CpuFigures {
    /// Cores that the whole system kept busy.
    pub fn cores_used(&self) -> f64 {
        self.busy * f64::from(self.cpus)
    }

    /// Cycles a second of a busy core: an estimate's own frequency, else counted cycles over busy time.
    pub fn busy_frequency_hz(&self, duration_s: f64) -> Option<f64> {
        let busy_s = (self.busy - self.steal) * f64::from(self.cpus) * duration_s;
        let counted = (busy_s > 0.0).then(|| self.cycles / busy_s);
        self.frequency_hz.or(counted).filter(|hz| *hz > 0.0)
    }
}

/// A member over a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberFigures {
    /// The file's or device's name.
    pub name: String,
    /// Bytes that the classes read from it.
    pub read_bytes: u64,
    /// Bytes that the classes wrote to it.
    pub written_bytes: u64,
    /// Bytes that the block layer counted, of devices.
    pub block_read_bytes: Option<u64>,
    /// Bytes that the block layer counted, of devices.
    pub block_written_bytes: Option<u64>,
    /// The hottest of the drives below it, in degrees Celsius, read once a second at most; over a run the
    /// highest of its windows. None where no drive has a sensor that can be read.
    pub temperature_c: Option<f64>,
    /// Whether a drive below it slowed itself down for its temperature: `yes` or `no` by the drives' own
    /// counts, `hot` where one was at its warning temperature or above and does not tell more (an
    /// inference); the worst of them, over a run that of its windows. Found once a second at most: shorter
    /// windows repeat the last one. None where no drive tells: not `NVMe`, or not root.
    pub throttling: Option<Throttling>,
}

/// All classes together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TotalFigures {
    /// Bytes of the four classes.
    pub bytes: u64,
    /// Decimal MB a second.
    pub mb_per_s: f64,
    /// The whole system's cycles over all bytes; none where no byte moved or no cycles are known.
    pub cycles_per_byte: Option<f64>,
    /// The same cycles over all I/Os.
    #[serde(default)]
    pub cycles_per_op: Option<f64>,
}

/// One window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Counts from 0 through the run.
    pub index: u64,
    /// From the run's start, in nanoseconds of the run's clock.
    pub start_ns: u64,
    /// Its true length.
    pub duration_ns: u64,
    /// The setting it belongs to: counts the turns made so far.
    pub setting: u64,
    /// A knob turned in it, or old I/O still drained: left out of comparisons.
    pub turned: bool,
    /// Begun in the warm-up, with the end of which a window ends: left out of totals.
    pub warmup: bool,
    /// The run was paused at some time in it.
    pub paused: bool,
    /// The classes, by [`Class::index`]; by name in files.
    #[serde(with = "crate::class::by_name")]
    pub classes: [ClassFigures; 4],
    /// All classes together.
    pub total: TotalFigures,
    /// The processor.
    pub cpu: CpuFigures,
    /// The members, in order; the WAL's own last where it has one.
    pub members: Vec<MemberFigures>,
    /// What the storage engine under the classes did in it; none of pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineFigures>,
    /// Bytes handed over to be written since the run's target was opened, fills included.
    pub written_bytes_total: u64,
    /// Bytes written on each level below the application.
    #[serde(default)]
    pub written: Written,
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

    /// Whether the window may be compared with others: one setting, nothing draining, not paused.
    pub fn is_clean(&self) -> bool {
        !self.turned && !self.paused && !self.warmup
    }
}

impl LedgerLine {
    /// Whether the setting survives less than before: then nothing that it brings is called a gain.
    pub fn is_less_safe(&self) -> bool {
        self.less_durable || !self.survives_less.is_empty()
    }
}

/// The histograms of a class in a window; none where nothing was recorded.
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

/// A figure of the ledger before and after a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Mean over the windows before.
    pub before: Option<f64>,
    /// Smallest and largest window before.
    pub before_range: Option<(f64, f64)>,
    /// Mean over the windows after.
    pub after: Option<f64>,
    /// Smallest and largest window after.
    pub after_range: Option<(f64, f64)>,
    /// What became of it.
    pub verdict: Verdict,
}

/// What a turn did to a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Not known: no windows, or a flag forbids it.
    #[default]
    None,
    /// The ranges overlap.
    NoClearChange,
    /// Every window after lies above every one before.
    Higher,
    /// Every window after lies below every one before.
    Lower,
}

/// A line of the ledger: what a turn did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// Counts from 1.
    pub number: u64,
    /// When, from the run's start.
    pub at_ns: u64,
    /// The knob's path.
    pub knob: String,
    /// Its value before.
    pub from: String,
    /// Its value after.
    pub to: String,
    /// Whether it took the last turn back.
    pub undo: bool,
    /// `scan MB/s`.
    pub scan_mb_per_s: Change,
    /// `point p99` in ns.
    pub point_p99_ns: Change,
    /// `WAL p99` (commit) in ns.
    pub wal_p99_ns: Change,
    /// `total MB/s`.
    pub total_mb_per_s: Change,
    /// Cycles a byte.
    pub cycles_per_byte: Change,
    /// Windows compared: before, after.
    pub windows: (u64, u64),
    /// Still gathering windows.
    pub open: bool,
    /// Commits are less durable than before: never called a gain.
    pub less_durable: bool,
    /// What the stack survived before and no longer does, in words: never called a gain either.
    #[serde(default)]
    pub survives_less: Vec<String>,
    /// What forbids a verdict (no change then has one), by [`Flag::text`] after its class's name, or
    /// makes the line worth a second look.
    pub flags: Vec<String>,
}
