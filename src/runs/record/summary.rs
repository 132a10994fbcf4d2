//! `summary.json`: a run's totals.
//!
//! ```text
//! schema, stacktune      layout version; stacktune's version
//! profile                the profile's name
//! duration_s, windows    of the counted windows; warmup_s, warmup_windows are beside them
//! interrupted            ended early by a signal or the operator
//! failure                why the run failed, or null
//! rebuilt                the run was killed: computed from its windows when read
//! classes.{scan,point,wal,background}
//!     state, why         running, off, paused, draining, stopped or failed (and why) at the end
//!     bytes, ios         of completed I/Os (flushes do not count)
//!     errors, errnos     failed I/Os, and those by errno
//!     slow_ios           I/Os and flushes as slow as run.slow_log says; absent if there were none
//!     drained            {ios,bytes,unfinished} of I/O in flight at the end, which latencies, errors and
//!                        intended starts include, but bytes and ios leave out; absent if there was none
//!     intended, missed   starts of a class with a rate; those dropped, over a second late
//!     mb_per_s, iops     MB are 10^6 bytes
//!     target_mb_per_s    the rate asked for, or null
//!     response_not_held  over 1% missed: response times are meaningless
//!     service_ns         {count,mean,p50,p90,p99,p999,p9999,max}; the WAL's is the commit; p99999 and
//!                        p999999 only where ten samples lie beyond them
//!     response_ns        likewise, from the intended start; null without a rate or if not held
//!     write_ns, flush_ns likewise, for the wal only
//!     polls              {polls,empty_polls,polling_ns,empty_polling_ns} of interfaces that poll; absent elsewhere
//!     incidents          {timeouts,resets} of commands that did not complete in time; absent if all did
//!     flags              what makes these figures untrustworthy, as short texts
//! total
//!     bytes, mb_per_s    of the four classes
//!     cycles_per_byte    the whole system's cycles over these bytes; null if none moved
//!     attributable_cycles_per_byte   of these cycles, those that others did not take; absent if unknown
//!     cycles_per_op      the same cycles over all I/Os
//!     cycles_source      "pmu" or "estimate"
//!     cpu_busy           share of all CPU time, 0 to 1
//!     cpu                shares, cores, the clock's frequency and its source
//! members                bytes by member, the block layer's count of devices, how warm the drives
//!                        below got, in degrees Celsius, and whether they throttled
//!                        (yes, no, hot, or null: unknown)
//! engine                 for a load on RocksDB, absent elsewhere: what it did by its own counts, as defined by
//!                        the fields of meter::counts::engine
//!     user_{written,read}_bytes                  keys and values that the classes put and got
//!     log_bytes, log_syncs, flush_bytes, compaction_{read,written}_bytes, stall_ns,
//!     cache_{hits,misses}, filter_hits           in the counted windows
//!     times_us           [{name,count,p50,p99,max}], RocksDB's own histograms since it was opened
//!     files_bytes, pending_compaction_bytes, stopped   at the end
//! program                of a program that is the load, absent elsewhere: the fields of meter::programs::program; null: not counted
//!     {,server_,run_}cpu_ns, run_thread_ns, refaults, major_faults, oom_kills   of its cgroup; memory_bytes, cache_bytes at most
//!     {top,drives}_{read_bytes,written_bytes,ios,ms} of the block layer; {cpu_some,io_some,io_full,memory_some}_ns of the host
//!     by_name: {read_bytes,written_bytes} of its processes; application_{,drives_}bytes by a probe, and the drives' meanwhile
//!     metrics            {count,mean,min,max,unit,better} by name, from its output and its probes
//! wa_a                   bytes that the drives took over bytes that the application wrote, since the
//!                        measurement began; for what is a drive see `crate::meter::written`
//! wa_a_parts             {engine,file_system,raid}: their product is wa_a
//! wa_d                   bytes written to flash over bytes that the drives took, by their own counters
//! wa_total               wa_a x wa_d
//! space_amplification    bytes in use on the file system over bytes of the data set, at most
//! written                the bytes behind these
//! steady                 {state,at_s,level_since_s,capacities_written,capacities_needed,figures,burst,steady}: warming, steady
//!                        (since at_s) or changed (at at_s), in seconds from the run's start; burst and
//!                        steady are {from_s,to_s,mb_per_s,iops,wa_a,wa_d}
//! variability            {of_s,spans,swing,deviation,stalled_s,classes_stalled_s.{scan,…}} of the throughput
//! slowest                [{class,kind,at_ns,service_ns,member,offset_bytes,bytes,depth}] of the slowest I/Os that
//!                        run.slow_log kept, 20 at most; absent if there were none
//! pitfalls               [{name,light,figure,advice}]: good, doubt or bad
//!                        (each of these is null, or absent, if unknown)
//! cost                   null unless a drive's price is known
//!     price              of all drives, in $
//!     usable_bytes       of the stack
//!     per_usable_tb      price / (usable_bytes / 10^12)
//!     per_scan_gb_per_s  price / (classes.scan.mb_per_s / 1000); null if nothing was scanned
//! flags, flag_notes      of the whole run; what each flag means and whether it forbids a verdict
//! ```
//! A percentile with fewer than ten samples beyond it is null, and so is a latency without samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::names::SCHEMA;
use crate::class::Class;
use crate::meter::counts::slow::SlowIo;
use crate::meter::price;
use crate::meter::whole_run::steady_state::Steadiness;
use crate::meter::whole_run::totals::Totals;
use crate::meter::whole_run::variability::Variability;
use crate::meter::window::{
    ClassFigures, ClassState, CpuFigures, CyclesSource, Drained, EngineFigures, Flag, Incidents, Latency,
    MemberFigures, OthersIo, Polls, ProgramFigures, is_zero,
};
use crate::meter::written::{Parts, Written};
use crate::runs::pitfalls::{Circumstances, Pitfall, pitfalls};

/// The JSON Schema of this file, in every recording of this version: made from the types below by a test.
pub const SUMMARY_SCHEMA: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/summary.schema.json"));

/// The content of `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// The layout's version.
    pub schema: u32,
    /// stacktune's version.
    pub stacktune: String,
    /// The profile's name.
    pub profile: String,
    /// Seconds in counted windows.
    pub duration_s: f64,
    /// Windows in the totals: all but those of the warm-up.
    pub windows: u64,
    /// Seconds of warm-up, left out.
    pub warmup_s: f64,
    /// Windows of warm-up, left out.
    pub warmup_windows: u64,
    /// Whether it ended early, by a signal or the operator.
    pub interrupted: bool,
    /// Why the run failed, if it did.
    pub failure: Option<String>,
    /// Whether the run did not end normally, so that the figures were computed from its windows.
    pub rebuilt: bool,
    /// Each class's totals, under its name.
    pub classes: Classes,
    /// All classes together.
    pub total: Total,
    /// The members' totals, in the target's order; the WAL's own is last.
    pub members: Vec<MemberFigures>,
    /// I/O by others on the drives below them; absent if nobody else can use them, or it is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_io: Vec<OthersIo>,
    /// The work of the storage engine under the classes; absent for pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineFigures>,
    /// Resource use and report of the program that is the load; absent if the classes are the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFigures>,
    /// Bytes that the drives took per byte that the application wrote.
    #[serde(default)]
    pub wa_a: Option<f64>,
    /// The factors of `wa_a`.
    #[serde(default)]
    pub wa_a_parts: Parts,
    /// Bytes written to flash per byte that the drives took.
    #[serde(default)]
    pub wa_d: Option<f64>,
    /// Write amplification from the application to the flash.
    #[serde(default)]
    pub wa_total: Option<f64>,
    /// Maximum bytes in use on the file system per byte of the data set.
    #[serde(default)]
    pub space_amplification: Option<f64>,
    /// The bytes behind these.
    #[serde(default)]
    pub written: Written,
    /// Whether the run was steady.
    #[serde(default)]
    pub steady: Steadiness,
    /// How much its throughput varied.
    #[serde(default)]
    pub variability: Variability,
    /// The slowest I/Os of those that `run.slow_log` kept; absent if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowIo>,
    /// How the pitfalls of measuring were avoided; empty in recordings without this.
    #[serde(default)]
    pub pitfalls: Vec<Pitfall>,
    /// The drives' price per capacity and throughput, if their price is known.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// What makes the whole run untrustworthy.
    pub flags: Vec<String>,
    /// What each flag of the run and of its classes means.
    pub flag_notes: BTreeMap<String, FlagNote>,
}

/// The drives' price per capacity and throughput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cost {
    /// The price of all drives, in $.
    pub price: f64,
    /// Usable bytes of the stack.
    pub usable_bytes: u64,
    /// $ per 10¹² usable bytes.
    pub per_usable_tb: Option<f64>,
    /// $ per GB/s of scan; none if nothing was scanned.
    pub per_scan_gb_per_s: Option<f64>,
}

impl Cost {
    fn of((price, usable_bytes): (Option<f64>, u64), scan_mb_per_s: f64) -> Option<Self> {
        let price = price?;
        Some(Self {
            price,
            usable_bytes,
            per_usable_tb: price::price_per_tb(price, usable_bytes),
            per_scan_gb_per_s: price::price_per_scan_gb_per_s(price, finite(scan_mb_per_s)),
        })
    }
}

/// The four classes by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Classes {
    /// Table scans.
    pub scan: ClassSummary,
    /// Point reads.
    pub point: ClassSummary,
    /// The write-ahead log.
    pub wal: WalSummary,
    /// The background writer.
    pub background: ClassSummary,
}

/// A class over the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassSummary {
    /// Its state at the end.
    #[serde(flatten)]
    pub state: ClassState,
    /// Bytes of completed I/Os.
    pub bytes: u64,
    /// Completed I/Os.
    pub ios: u64,
    /// I/O still in flight at the run's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<Drained>,
    /// I/Os and flushes at least as slow as `run.slow_log`; absent if there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slow_ios: u64,
    /// Failed I/Os.
    pub errors: u64,
    /// Failed I/Os by errno.
    pub errnos: BTreeMap<String, u64>,
    /// Intended starts, for a class with a rate.
    pub intended: u64,
    /// Intended starts that were dropped.
    pub missed: u64,
    /// Decimal MB per second.
    pub mb_per_s: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Its rate in MB/s, if it has one.
    pub target_mb_per_s: Option<f64>,
    /// Whether over 1% of the intended starts were missed.
    pub response_not_held: bool,
    /// Start to completion; for the WAL, the commit.
    pub service_ns: Option<Latency>,
    /// Intended start to completion.
    pub response_ns: Option<Latency>,
    /// Polls of completion queues, for an interface that polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<Polls>,
    /// Commands that did not complete in time, and resets of controllers because of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incidents: Option<Incidents>,
    /// Short texts; see [`Summary::flag_notes`].
    pub flags: Vec<String>,
}

/// The WAL over the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WalSummary {
    /// The part that every class has.
    #[serde(flatten)]
    pub class: ClassSummary,
    /// From a write's start to its own end, in nanoseconds, without the flush.
    pub write_ns: Option<Latency>,
    /// From a flush's start to its end, in nanoseconds.
    pub flush_ns: Option<Latency>,
}

/// All classes together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Total {
    /// Bytes of the four classes.
    pub bytes: u64,
    /// Decimal MB per second.
    pub mb_per_s: f64,
    /// I/Os per second of the four classes.
    #[serde(default)]
    pub iops: f64,
    /// The whole system's cycles over all bytes.
    pub cycles_per_byte: Option<f64>,
    /// The same without the cycles that others used; absent if those are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributable_cycles_per_byte: Option<f64>,
    /// The whole system's cycles over all I/Os.
    #[serde(default)]
    pub cycles_per_op: Option<f64>,
    /// Counted or estimated.
    pub cycles_source: CyclesSource,
    /// Share of all CPU time, 0 to 1.
    pub cpu_busy: f64,
    /// The processor in detail.
    pub cpu: CpuFigures,
}

/// What a flag means.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FlagNote {
    /// The reason, in a sentence.
    pub why: String,
    /// Whether it forbids a verdict on storage.
    pub forbids_verdict: bool,
    /// Different reasons of individual classes, by name; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub why_by_class: BTreeMap<String, String>,
}

/// The parts of a run that [`Totals`] do not contain.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Frame {
    pub profile: String,
    pub warmup_s: f64,
    pub warmup_windows: u64,
    pub interrupted: bool,
    pub failure: Option<String>,
    pub rebuilt: bool,
    /// See [`super::Header::worth`].
    pub worth: Option<(Option<f64>, u64)>,
    /// See [`super::Header::circumstances`].
    pub circumstances: Option<Circumstances>,
}

impl Summary {
    /// The summary of these totals.
    pub(super) fn of(totals: &Totals, frame: Frame) -> Self {
        let class = |class: Class| ClassSummary::of(&totals.classes[class.index()]);
        let wal = &totals.classes[Class::Wal.index()].latencies;
        Self {
            schema: SCHEMA,
            stacktune: env!("CARGO_PKG_VERSION").to_owned(),
            profile: frame.profile,
            duration_s: finite(totals.duration_s),
            windows: totals.windows,
            warmup_s: frame.warmup_s,
            warmup_windows: frame.warmup_windows,
            interrupted: frame.interrupted,
            failure: frame.failure,
            rebuilt: frame.rebuilt,
            classes: Classes {
                scan: class(Class::Scan),
                point: class(Class::Point),
                wal: WalSummary {
                    class: class(Class::Wal),
                    write_ns: held(wal.write_ns.as_ref()),
                    flush_ns: held(wal.flush_ns.as_ref()),
                },
                background: class(Class::Background),
            },
            total: Total::of(totals),
            members: totals.members.clone(),
            others_io: totals.others_io.clone(),
            engine: totals.engine.clone(),
            program: totals.program.clone(),
            wa_a: totals.written.wa_a(),
            wa_a_parts: totals.written.parts(),
            wa_d: totals.written.wa_d(),
            wa_total: totals.written.wa_total(),
            space_amplification: totals.written.space_amplification(),
            written: totals.written.clone(),
            steady: totals.steadiness.clone(),
            variability: totals.variability.clone(),
            slowest: totals.slowest.clone(),
            // They concern the classes' load only.
            pitfalls: frame
                .circumstances
                .as_ref()
                .filter(|_| totals.program.is_none())
                .map_or_else(Vec::new, |of| {
                    pitfalls(of, totals.duration_s, &totals.steadiness, &totals.written)
                }),
            cost: frame.worth.and_then(|worth| Cost::of(worth, totals.classes[Class::Scan.index()].mb_per_s)),
            flags: texts(&totals.flags),
            flag_notes: flag_notes(totals),
        }
    }

    /// The figures of a class.
    pub fn class(&self, class: Class) -> &ClassSummary {
        match class {
            Class::Scan => &self.classes.scan,
            Class::Point => &self.classes.point,
            Class::Wal => &self.classes.wal.class,
            Class::Background => &self.classes.background,
        }
    }

    /// Whether one of these flags forbids a verdict on storage.
    pub fn forbids_verdict(&self, flags: &[String]) -> bool {
        flags.iter().any(|flag| self.flag_notes.get(flag).is_some_and(|note| note.forbids_verdict))
    }

    /// Why a class, or the run, has a flag.
    pub fn why(&self, class: Option<Class>, flag: &str) -> &str {
        let Some(note) = self.flag_notes.get(flag) else { return "" };
        class.and_then(|class| note.why_by_class.get(class.name())).unwrap_or(&note.why)
    }

    /// Whether I/Os failed with this errno.
    pub fn failed_with(&self, errno: &str) -> bool {
        Class::ALL.into_iter().any(|class| self.class(class).errnos.contains_key(errno))
    }

    /// The I/O errors in one line, if there were any: `3 I/O errors: scan 2 (EIO), wal 1 (ENOSPC)`.
    pub fn errors_line(&self) -> Option<String> {
        let failed = || Class::ALL.into_iter().map(|c| (c, self.class(c))).filter(|(_, f)| f.errors > 0);
        let count: u64 = failed().map(|(_, figures)| figures.errors).sum();
        let parts: Vec<_> = failed()
            .map(|(class, figures)| {
                let errnos: Vec<_> = figures.errnos.keys().map(String::as_str).collect();
                if errnos.is_empty() {
                    format!("{class} {}", figures.errors)
                } else {
                    format!("{class} {} ({})", figures.errors, errnos.join(", "))
                }
            })
            .collect();
        let noun = if count == 1 { "I/O error" } else { "I/O errors" };
        (count > 0).then(|| format!("{count} {noun}: {}", parts.join(", ")))
    }
}

impl ClassSummary {
    fn of(figures: &ClassFigures) -> Self {
        let response = held(figures.latencies.response_ns.as_ref());
        Self {
            state: figures.state.clone(),
            bytes: figures.bytes,
            ios: figures.ios,
            drained: figures.drained,
            slow_ios: figures.slow_ios,
            errors: figures.errors,
            errnos: figures.errnos.clone(),
            intended: figures.intended,
            missed: figures.missed,
            mb_per_s: finite(figures.mb_per_s),
            iops: finite(figures.iops),
            target_mb_per_s: figures.target_mb_per_s,
            response_not_held: figures.not_held,
            service_ns: held(figures.latencies.service_ns.as_ref()),
            response_ns: response.filter(|_| !figures.not_held),
            polls: figures.polls,
            incidents: figures.incidents,
            flags: texts(&figures.flags),
        }
    }
}

impl Total {
    fn of(totals: &Totals) -> Self {
        Self {
            bytes: totals.total.bytes,
            mb_per_s: finite(totals.total.mb_per_s),
            iops: finite(totals.classes.iter().map(|class| class.iops).sum()),
            cycles_per_byte: totals.total.cycles_per_byte.filter(|x| x.is_finite()),
            attributable_cycles_per_byte: totals.total.attributable_cycles_per_byte.filter(|x| x.is_finite()),
            cycles_per_op: totals.total.cycles_per_op.filter(|x| x.is_finite()),
            cycles_source: totals.cpu.cycles_source,
            cpu_busy: finite(totals.cpu.busy),
            cpu: totals.cpu.clone(),
        }
    }
}

/// A latency that has samples.
fn held(latency: Option<&Latency>) -> Option<Latency> {
    latency.filter(|latency| latency.count > 0).cloned()
}

/// A rate over zero time counts as 0, since JSON has no infinity.
fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

fn texts(flags: &[Flag]) -> Vec<String> {
    flags.iter().map(|flag| flag.text.clone()).collect()
}

/// What each flag of the run and its classes means.
fn flag_notes(totals: &Totals) -> BTreeMap<String, FlagNote> {
    let mut notes = BTreeMap::new();
    for flag in totals.classes.iter().flat_map(|class| &class.flags).chain(&totals.flags) {
        let Flag { text, why, forbids_verdict, .. } = flag.clone();
        notes.insert(text, FlagNote { why, forbids_verdict, why_by_class: BTreeMap::new() });
    }
    for class in Class::ALL {
        for flag in &totals.classes[class.index()].flags {
            if let Some(note) = notes.get_mut(&flag.text).filter(|note| note.why != flag.why) {
                note.why_by_class.insert(class.name().to_owned(), flag.why.clone());
            }
        }
    }
    notes
}
