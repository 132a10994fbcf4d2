//! Deterministic runs for tests: windows with histograms, and their totals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;

use super::{Header, rebuild};
use crate::class::Class;
use crate::host::{Cpu, Device, Facts, Feature, Node};
use crate::meter::latencies::latency::summarize;
use crate::meter::source::LatencyDelta;
use crate::meter::whole_run::totals::Sums;
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::{
    Change, ClassFigures, ClassHistograms, CpuFigures, Latencies, LedgerLine, MemberFigures, TotalFigures,
    Verdict, Window,
};
use crate::runs::pitfalls::Circumstances;
use crate::units::mb_per_s;

const PAGE_BYTES: u64 = 16 << 10;
const WINDOW_NS: u64 = 1_000_000_000;
const RATED_IOS: u64 = 25_000_000 / PAGE_BYTES;

/// What a made-up run is like.
#[derive(Clone, Copy)]
pub struct Like {
    /// I/Os of the scan in the first window.
    pub scan_ios: u64,
    /// How much the windows differ from each other.
    pub jitter_ios: u64,
    /// Median commit latency.
    pub commit_ns: u64,
    /// Commits in a window.
    pub commits: u64,
    /// Windows of warm-up before the four counted ones.
    pub warmup: u64,
}

impl Default for Like {
    fn default() -> Self {
        Self { scan_ios: 60_000, jitter_ios: 500, commit_ns: 400_000, commits: RATED_IOS, warmup: 1 }
    }
}

/// A histogram of `count` samples spread evenly from half the median to one and a half times the median.
fn histogram(count: u64, median_ns: u64) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    for step in 0..100 {
        let share = count / 100 + u64::from(step < count % 100);
        histogram.record_n(median_ns / 2 + median_ns * step / 100, share).unwrap();
    }
    histogram
}

fn class(ios: u64, rated: bool, histograms: &ClassHistograms) -> ClassFigures {
    let of = |histogram: &Option<Histogram<u64>>| summarize(&delta(histogram.as_ref()));
    let bytes = ios * PAGE_BYTES;
    ClassFigures {
        ios,
        bytes,
        intended: if rated { ios } else { 0 },
        mb_per_s: mb_per_s(bytes, WINDOW_NS),
        iops: ios as f64,
        target_mb_per_s: rated.then_some(25.0),
        busiest_worker: Some(0.25),
        latencies: Latencies {
            service_ns: of(&histograms.service),
            response_ns: of(&histograms.response),
            write_ns: of(&histograms.write),
            flush_ns: of(&histograms.flush),
        },
        ..ClassFigures::default()
    }
}

/// The window of that index.
pub fn window(index: u64, like: Like) -> Window {
    let scan_ios = like.scan_ios + index % 3 * like.jitter_ios;
    let some = |count, median| Some(histogram(count, median));
    let histograms = [
        ClassHistograms { service: some(scan_ios, 2_000_000), ..Default::default() },
        ClassHistograms { service: some(9_000, 100_000), ..Default::default() },
        ClassHistograms {
            service: some(like.commits, like.commit_ns),
            response: some(like.commits, like.commit_ns + 10_000),
            write: some(like.commits, 20_000),
            flush: some(like.commits, like.commit_ns - 20_000),
        },
        ClassHistograms {
            service: some(RATED_IOS, 30_000),
            response: some(RATED_IOS, 35_000),
            ..Default::default()
        },
    ];
    let ios = [scan_ios, 9_000, like.commits, RATED_IOS];
    let classes = Class::ALL.map(|c| class(ios[c.index()], c.writes(), &histograms[c.index()]));
    let bytes = classes.iter().map(|class| class.bytes).sum::<u64>();
    // 37.5% of four CPUs for a second.
    let cycles = 1.5 * 2.5e9;
    Window {
        index,
        start_ns: index * WINDOW_NS,
        duration_ns: WINDOW_NS,
        warmup: index < like.warmup,
        total: TotalFigures {
            bytes,
            mb_per_s: mb_per_s(bytes, WINDOW_NS),
            cycles_per_byte: Some(cycles / bytes as f64),
            cycles_per_op: Some(cycles / ios.iter().sum::<u64>() as f64),
            ..TotalFigures::default()
        },
        classes,
        cpu: cpu(cycles),
        members: (0..2)
            .map(|member| MemberFigures {
                name: format!("data-{member}"),
                read_bytes: u64::midpoint(scan_ios, 9_000) * PAGE_BYTES,
                written_bytes: u64::midpoint(like.commits, RATED_IOS) * PAGE_BYTES,
                ..MemberFigures::default()
            })
            .collect(),
        histograms: Arc::new(histograms),
        ..Window::default()
    }
}

fn cpu(cycles: f64) -> CpuFigures {
    CpuFigures {
        cpus: 4,
        user: 0.125,
        system: 0.25,
        busy: 0.375,
        own_cores: 1.25,
        cycles,
        frequency_hz: Some(2.5e9),
        frequency_source: Some("/proc/cpuinfo".into()),
        ..CpuFigures::default()
    }
}

/// A run's windows: warm-up and four counted ones.
pub fn windows(like: Like) -> Vec<Window> {
    (0..like.warmup + 4).map(|index| window(index, like)).collect()
}

/// The sums of the counted windows as the meters add them up.
pub fn totals(windows: &[Window]) -> Totals {
    let mut sums = Sums::default();
    for window in windows.iter().filter(|window| rebuild::counts(window)) {
        sums.add(window, [None; 4]);
        for class in Class::ALL {
            let ClassHistograms { service, response, write, flush } = &window.histograms[class.index()];
            let deltas = [service, response, write, flush].map(|histogram| delta(histogram.as_ref()));
            sums.add_latencies(class, deltas.each_ref());
        }
    }
    sums.totals(None)
}

fn delta(histogram: Option<&Histogram<u64>>) -> LatencyDelta {
    match histogram {
        Some(histogram) => LatencyDelta { max_ns: histogram.max(), histogram: histogram.clone() },
        None => LatencyDelta::default(),
    }
}

/// A turn of the scan's depth that made it faster.
pub fn turn(number: u64) -> LedgerLine {
    LedgerLine {
        number,
        at_ns: 2_500_000_000,
        knob: "scan.depth".into(),
        from: "128".into(),
        to: "256".into(),
        scan_mb_per_s: Change {
            before: Some(983.0),
            before_range: Some((970.0, 990.0)),
            after: Some(1200.0),
            after_range: Some((1150.0, 1250.0)),
            interval: Some((0.11, 0.34)),
            verdict: Verdict::Higher,
            better: None,
        },
        windows: (3, 3),
        ..LedgerLine::default()
    }
}

/// A host.
pub fn facts() -> Facts {
    Facts {
        hostname: "alder".into(),
        distribution: "Debian GNU/Linux 13 (trixie)".into(),
        kernel: "6.12.0-amd64".into(),
        cpu: Cpu {
            model: "Model 7".into(),
            online: (0..4).collect(),
            nodes: vec![Node { id: 0, cpus: (0..4).collect() }],
            governor: Some("performance".into()),
            mitigations: BTreeMap::from([("spectre_v2".into(), "Mitigation: Retpolines".into())]),
            clocksource: Some("tsc".into()),
        },
        memory_bytes: 16 << 30,
        virtualization: None,
        memlock_bytes: None,
        io_uring: Feature::Present,
        libaio: Feature::Present,
        dontcache: Feature::Missing("the kernel is older than 6.14".into()),
        perf: Feature::Missing("perf_event_paranoid is 3".into()),
        cgroup_memory: crate::host::CgroupMemory {
            version: None,
            limit: Feature::Missing("no cgroups".into()),
        },
        platform: crate::host::Platform::default(),
        storage: crate::host::Storage::default(),
        devices: vec![device()],
    }
}

fn device() -> Device {
    Device {
        number: "259:0".into(),
        members: Vec::new(),
        name: "nvme0n1".into(),
        path: "/dev/nvme0n1".into(),
        by_id: Vec::new(),
        model: Some("Drive 1T".into()),
        serial: Some("S1".into()),
        firmware: Some("F2".into()),
        size_bytes: 1 << 40,
        logical_block_bytes: 512,
        physical_block_bytes: 512,
        volatile_write_cache: Some(true),
        rotational: false,
        read_only: false,
        numa_node: None,
        scheduler: Some("none".into()),
        queue: crate::host::Queue::default(),
        controller: None,
        link: None,
        temperature: None,
        health: None,
        lba_formats: None,
        partitions: Vec::new(),
        usage: Vec::new(),
    }
}

/// A recording's header.
pub fn header() -> Header {
    Header {
        profile: "demo".into(),
        profile_toml: "name = \"demo\"\n\n[io]\ninterface = \"io_uring\"\n".into(),
        facts: facts(),
        target: None,
        notes: Vec::new(),
        run_started: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        worth: Some((Some(500.0), 8_000_000_000_000)),
        circumstances: Circumstances::default(),
    }
}
