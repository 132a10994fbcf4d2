//! The figures by which recordings are compared: of whole runs and of windows.

use std::collections::BTreeMap;

use crate::class::Class;
use crate::meter::latencies::samples::Samples;
use crate::meter::programs::program::MetricFigures;
use crate::meter::window::{ClassFigures, Latencies, Latency, ProgramFigures, Window};
use crate::printable;
use crate::runs::record::Summary;
use crate::runs::record::summary::ClassSummary;
use crate::settings::Better;
use crate::units::{SECOND_NS, three_digits};

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number with three digits.
    Plain,
    /// Nanoseconds.
    Latency,
    /// A fraction of 1.
    Share,
    /// A count: shown, never judged.
    Count,
}

/// A figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Its path in `summary.json`; a count there that is a rate here has a name of its own.
    pub key: String,
    /// Its name in tables.
    pub label: String,
    /// Its class; none means all together.
    pub class: Option<Class>,
    /// How it is written.
    pub unit: Unit,
    /// Whether the text shows it (JSON has all).
    pub in_text: bool,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    MbPerS,
    Iops,
    Errors,
    Missed,
    Latency(Sort, &'static str),
    TotalMbPerS,
    TotalIops,
    CyclesPerByte,
    AttributablePerByte,
    CyclesPerOp,
    CpuBusy,
    WaA,
    WaD,
    WaTotal,
    Space,
    /// What a program reports, by the name in its key.
    Metric,
    Program(OfProgram),
}

/// A figure of a program over a run of that length.
type OfProgram = fn(&ProgramFigures, f64) -> Option<f64>;

/// One of a class's latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Service,
    Response,
    Write,
    Flush,
}

const SORTS: [(Sort, &str, &str); 4] = [
    (Sort::Service, "service_ns", ""),
    (Sort::Response, "response_ns", "response "),
    (Sort::Write, "write_ns", "write "),
    (Sort::Flush, "flush_ns", "flush "),
];
const PERCENTILES: [(&str, &str, bool); 9] = [
    ("mean", "mean", false),
    ("p50", "p50", true),
    ("p90", "p90", false),
    ("p99", "p99", true),
    ("p999", "p99.9", true),
    ("p9999", "p99.99", false),
    ("p99999", "p99.999", false),
    ("p999999", "p99.9999", false),
    ("max", "max", false),
];

/// The most that a table has room for.
const LABEL_CHARS_MAX: usize = 20;
const METRICS: &str = "program.metrics.";
const MEAN: &str = ".mean";

/// What is measured of every program.
const OF_PROGRAMS: [(&str, &str, Unit, OfProgram); 23] = [
    ("cpu_cores", "program's cores", Unit::Plain, |of, s| rate(of.cpu_ns, 1e9, s)),
    ("server_cpu_cores", "  of its server", Unit::Plain, |of, s| rate(of.server_cpu_ns, 1e9, s)),
    ("run_cpu_cores", "  of its run", Unit::Plain, |of, s| rate(of.run_cpu_ns, 1e9, s)),
    ("run_thread_share", "  its busiest thread", Unit::Share, |of, s| rate(of.run_thread_ns, 1e9, s)),
    ("top_read_mb_per_s", "read MB/s", Unit::Plain, |of, s| rate(of.top_read_bytes, 1e6, s)),
    ("top_written_mb_per_s", "written MB/s", Unit::Plain, |of, s| rate(of.top_written_bytes, 1e6, s)),
    ("drives_read_mb_per_s", "drives read MB/s", Unit::Plain, |of, s| rate(of.drives_read_bytes, 1e6, s)),
    ("drives_written_mb_per_s", "drives written MB/s", Unit::Plain, |of, s| {
        rate(of.drives_written_bytes, 1e6, s)
    }),
    ("top_mean_ns", "mean latency, top", Unit::Latency, |of, _| of.top_mean_ns()),
    ("drives_mean_ns", "  of the drives", Unit::Latency, |of, _| of.drives_mean_ns()),
    ("drives_flushes_per_s", "  their flushes/s", Unit::Plain, |of, s| rate(of.drives_flushes, 1.0, s)),
    ("drives_flush_mean_ns", "  each takes", Unit::Latency, |of, _| of.drives_flush_mean_ns()),
    ("wa_a", "WA-A by its count", Unit::Plain, |of, _| of.wa_a()),
    ("io_some_share", "waited for I/O", Unit::Share, |of, s| rate(of.io_some_ns, 1e9, s)),
    ("io_full_share", "  all of them", Unit::Share, |of, s| rate(of.io_full_ns, 1e9, s)),
    ("memory_some_share", "waited for memory", Unit::Share, |of, s| rate(of.memory_some_ns, 1e9, s)),
    ("cpu_some_share", "waited for a CPU", Unit::Share, |of, s| rate(of.cpu_some_ns, 1e9, s)),
    ("memory_bytes", "memory, MB", Unit::Count, |of, _| of.memory_bytes.map(|bytes| bytes as f64 / 1e6)),
    ("anonymous_bytes", "anonymous, MB", Unit::Count, |of, _| {
        of.anonymous_bytes.map(|bytes| bytes as f64 / 1e6)
    }),
    ("cache_bytes", "page cache, MB", Unit::Count, |of, _| of.cache_bytes.map(|bytes| bytes as f64 / 1e6)),
    ("major_faults", "major faults", Unit::Count, |of, _| of.major_faults.map(|count| count as f64)),
    ("refaults", "refaults", Unit::Count, |of, _| of.refaults.map(|count| count as f64)),
    ("oom_kills", "killed for memory", Unit::Count, |of, _| of.oom_kills.map(|count| count as f64)),
];

fn rate(count: Option<u64>, unit: f64, seconds: f64) -> Option<f64> {
    count.map(|count| count as f64 / unit / seconds)
}

/// The figures that these runs can have, in the order of tables: what programs report and are measured by comes first.
pub fn of_runs(runs: &[&Summary]) -> Vec<Figure> {
    let programs = || runs.iter().filter_map(|run| run.program.as_ref());
    if programs().next().is_none() {
        return all();
    }
    let figure = |key: String, label: &str, unit, what| {
        let label = printable::line(label).into_owned();
        Figure { key, label, class: None, unit, in_text: true, what }
    };
    let metrics: BTreeMap<&str, &str> =
        programs().flat_map(|of| &of.metrics).map(|(name, of)| (name.as_str(), of.unit.as_str())).collect();
    let metrics = metrics.into_iter().map(|(name, unit)| {
        let whole = format!("{name}, {unit}");
        let fits = !unit.is_empty() && whole.chars().count() < LABEL_CHARS_MAX;
        let label: String = if fits { whole } else { name.chars().take(LABEL_CHARS_MAX - 1).collect() };
        figure(format!("{METRICS}{name}{MEAN}"), &label, Unit::Plain, What::Metric)
    });
    let others = OF_PROGRAMS
        .into_iter()
        .map(|(key, label, unit, what)| figure(format!("program.{key}"), label, unit, What::Program(what)));
    metrics.chain(others).chain(all()).collect()
}

/// All figures of classes, and of all together, in the order of tables.
pub fn all() -> Vec<Figure> {
    let mut figures: Vec<_> = Class::ALL.into_iter().flat_map(of_class).collect();
    let totals = [
        ("mb_per_s", "total MB/s", Unit::Plain, What::TotalMbPerS),
        ("iops", "total IOPS", Unit::Plain, What::TotalIops),
        ("cycles_per_byte", "cycles/byte", Unit::Plain, What::CyclesPerByte),
        ("attributable_cycles_per_byte", "  without others", Unit::Plain, What::AttributablePerByte),
        ("cycles_per_op", "cycles/op", Unit::Plain, What::CyclesPerOp),
        ("cpu_busy", "CPU busy", Unit::Share, What::CpuBusy),
    ];
    figures.extend(totals.map(|(key, label, unit, what)| Figure {
        key: format!("total.{key}"),
        label: label.into(),
        class: None,
        unit,
        in_text: true,
        what,
    }));
    let cumulative = [
        ("wa_a", "WA-A", What::WaA),
        ("wa_d", "WA-D", What::WaD),
        ("wa_total", "WA end to end", What::WaTotal),
        ("space_amplification", "space", What::Space),
    ];
    figures.extend(cumulative.map(|(key, label, what)| Figure {
        key: key.into(),
        label: label.into(),
        class: None,
        unit: Unit::Plain,
        in_text: true,
        what,
    }));
    figures
}

fn of_class(class: Class) -> Vec<Figure> {
    let figure = |key: &str, label: &str, unit, in_text, what| Figure {
        key: format!("classes.{class}.{key}"),
        label: format!("{} {label}", short(class)),
        class: Some(class),
        unit,
        in_text,
        what,
    };
    let mut figures = vec![
        figure("mb_per_s", "MB/s", Unit::Plain, true, What::MbPerS),
        figure("iops", "IOPS", Unit::Plain, false, What::Iops),
    ];
    for (sort, key, label) in SORTS {
        if class != Class::Wal && matches!(sort, Sort::Write | Sort::Flush) {
            continue;
        }
        figures.extend(PERCENTILES.iter().map(|(percentile, name, in_text)| {
            let (key, label) = (format!("{key}.{percentile}"), format!("{label}{name}"));
            figure(&key, &label, Unit::Latency, *in_text, What::Latency(sort, percentile))
        }));
    }
    figures.push(figure("errors", "errors", Unit::Count, true, What::Errors));
    figures.push(figure("missed", "missed", Unit::Count, class.writes(), What::Missed));
    figures
}

/// The class, short enough for a row's label.
fn short(class: Class) -> &'static str {
    match class {
        Class::Background => "bg",
        other => other.name(),
    }
}

impl Figure {
    /// The figure for the whole run.
    pub fn of_run(&self, summary: &Summary) -> Option<f64> {
        let class = self.class.map(|class| summary.class(class));
        // A class that did nothing has no figures, not zeros.
        let class = class.filter(|figures| figures.ios + figures.errors + figures.intended > 0);
        let value = match self.what {
            // If a program is the load, classes do nothing.
            What::TotalMbPerS | What::TotalIops if summary.program.is_some() => None,
            What::TotalMbPerS => Some(summary.total.mb_per_s),
            What::TotalIops => Some(Class::ALL.iter().map(|&class| summary.class(class).iops).sum()),
            What::CyclesPerByte => summary.total.cycles_per_byte,
            What::AttributablePerByte => summary.total.attributable_cycles_per_byte,
            What::CyclesPerOp => summary.total.cycles_per_op,
            What::WaA => summary.wa_a,
            What::WaD => summary.wa_d,
            What::WaTotal => summary.wa_total,
            What::Space => summary.space_amplification,
            What::CpuBusy => Some(summary.total.cpu_busy),
            What::MbPerS => class.map(|figures| figures.mb_per_s),
            What::Iops => class.map(|figures| figures.iops),
            What::Errors => class.map(|figures| figures.errors as f64),
            What::Missed => class.map(|figures| figures.missed as f64),
            What::Latency(sort, name) => {
                percentile(class.and_then(|figures| run_latency(figures, summary, sort)), name)
            }
            What::Metric => self.metric(summary.program.as_ref()),
            What::Program(of) => summary.program.as_ref().and_then(|program| of(program, summary.duration_s)),
        };
        value.filter(|x| x.is_finite())
    }

    /// The figure for a window.
    pub fn of_window(&self, window: &Window) -> Option<f64> {
        let class = self.class.map(|class| window.class(class));
        let value = match self.what {
            What::TotalMbPerS | What::TotalIops if window.program.is_some() => None,
            What::TotalMbPerS => Some(window.total.mb_per_s),
            What::TotalIops => Some(window.classes.iter().map(|class| class.iops).sum()),
            What::CyclesPerByte => window.total.cycles_per_byte,
            What::AttributablePerByte => window.total.attributable_cycles_per_byte,
            What::CyclesPerOp => window.total.cycles_per_op,
            // Cumulative: a single window has no such figure.
            What::WaA | What::WaD | What::WaTotal | What::Space => None,
            What::CpuBusy => Some(window.cpu.busy),
            What::MbPerS => class.map(|figures| figures.mb_per_s),
            What::Iops => class.map(|figures| figures.iops),
            What::Errors => class.map(|figures| figures.errors as f64),
            What::Missed => class.map(|figures| figures.missed as f64),
            What::Latency(sort, name) => {
                percentile(class.and_then(|figures| window_latency(figures, sort)), name)
            }
            What::Metric => self.metric(window.program.as_ref()),
            What::Program(of) => {
                let seconds = window.duration_ns as f64 / SECOND_NS as f64;
                window.program.as_ref().and_then(|program| of(program, seconds))
            }
        };
        value.filter(|x| x.is_finite())
    }

    /// For a percentile, the number of samples of which one lies beyond it.
    pub fn one_in(&self) -> Option<u64> {
        let What::Latency(_, name) = self.what else { return None };
        match name {
            "p50" => Some(2),
            "p90" => Some(10),
            "p99" => Some(100),
            "p999" => Some(1000),
            "p9999" => Some(10_000),
            "p99999" => Some(100_000),
            "p999999" => Some(1_000_000),
            _ => None,
        }
    }

    /// The samples of a window behind a latency.
    pub fn samples(&self, window: &Window) -> Option<Samples> {
        let What::Latency(sort, _) = self.what else { return None };
        let class = self.class?;
        let latency = window_latency(window.class(class), sort)?;
        let of = &window.histograms[class.index()];
        let histogram = match sort {
            Sort::Service => &of.service,
            Sort::Response => &of.response,
            Sort::Write => &of.write,
            Sort::Flush => &of.flush,
        };
        Some(Samples::of(histogram.as_ref()?, latency.max))
    }

    /// What a program reports under the name in the key.
    fn metric(&self, program: Option<&ProgramFigures>) -> Option<f64> {
        self.reported(program).map(|metric| metric.mean)
    }

    fn reported<'a>(&self, program: Option<&'a ProgramFigures>) -> Option<&'a MetricFigures> {
        program?.metrics.get(self.key.strip_prefix(METRICS)?.strip_suffix(MEAN)?)
    }

    /// Which way is better by the profile of a run, for what a program reports.
    pub fn better(&self, summary: &Summary) -> Option<Better> {
        self.reported(summary.program.as_ref())?.better
    }

    /// Whether it is what a program reports of itself.
    pub fn is_metric(&self) -> bool {
        matches!(self.what, What::Metric)
    }

    /// Whether it is a response latency that is meaningless because the rate was not held.
    pub fn is_not_held(&self, summary: &Summary) -> bool {
        let response = matches!(self.what, What::Latency(Sort::Response, _));
        response && self.class.is_some_and(|class| summary.class(class).response_not_held)
    }

    /// Whether only whole runs have it.
    pub fn is_cumulative(&self) -> bool {
        matches!(self.what, What::WaA | What::WaD | What::WaTotal | What::Space)
    }

    /// Whether it is derived from the cycle count.
    pub fn is_cycles(&self) -> bool {
        matches!(self.what, What::CyclesPerByte | What::AttributablePerByte | What::CyclesPerOp)
    }

    /// Whether it includes others' use of the processor, or is affected by it.
    pub fn is_of_processor(&self) -> bool {
        self.is_cycles() || matches!(self.what, What::CpuBusy)
    }

    /// The figure and, in the same unit, its range: `12.3ms [11.9–13.1]`.
    pub fn text(&self, value: f64, range: Option<(f64, f64)>) -> String {
        let (scale, unit) = match self.unit {
            Unit::Count => return format!("{value:.0}"),
            Unit::Plain => (1.0, ""),
            Unit::Share => (0.01, "%"),
            Unit::Latency => match value.round() as u64 {
                0..1000 => (1.0, "ns"),
                1000..999_500 => (1e3, "µs"),
                999_500..999_500_000 => (1e6, "ms"),
                _ => (SECOND_NS as f64, "s"),
            },
        };
        let text = |x: f64| three_digits(x / scale);
        let range = range.map_or_else(String::new, |(low, high)| format!(" [{}–{}]", text(low), text(high)));
        format!("{}{unit}{range}", text(value))
    }
}

fn run_latency<'a>(figures: &'a ClassSummary, summary: &'a Summary, sort: Sort) -> Option<&'a Latency> {
    match sort {
        Sort::Service => figures.service_ns.as_ref(),
        Sort::Response => figures.response_ns.as_ref(),
        Sort::Write => summary.classes.wal.write_ns.as_ref(),
        Sort::Flush => summary.classes.wal.flush_ns.as_ref(),
    }
}

fn window_latency(figures: &ClassFigures, sort: Sort) -> Option<&Latency> {
    let Latencies { service_ns, response_ns, write_ns, flush_ns } = &figures.latencies;
    match sort {
        Sort::Service => service_ns.as_ref(),
        Sort::Response => response_ns.as_ref().filter(|_| !figures.not_held),
        Sort::Write => write_ns.as_ref(),
        Sort::Flush => flush_ns.as_ref(),
    }
}

fn percentile(latency: Option<&Latency>, name: &str) -> Option<f64> {
    let latency = latency?;
    let ns = match name {
        "mean" => return latency.mean,
        "p50" => latency.p50,
        "p90" => latency.p90,
        "p99" => latency.p99,
        "p999" => latency.p999,
        "p9999" => latency.p9999,
        "p99999" => latency.p99999,
        "p999999" => latency.p999999,
        _ => latency.max,
    };
    ns.map(|ns| ns as f64)
}
