//! A program that was the load, in sentences.

use crate::meter::window::{CpuFigures, CyclesSource, ProgramFigures};
use crate::printable;
use crate::ui::text::count as count_text;
use crate::units::{approx_size, format_latency, grouped, three_digits};

const UNKNOWN: &str = "not available";
/// Names of processes that are shown.
const NAMES_MAX: usize = 6;

/// What it used and reported in `duration_s` seconds, with the processor's figures of that time, one line each.
pub fn program(of: &ProgramFigures, duration_s: f64, cpu: &CpuFigures) -> Vec<String> {
    let mut lines = used(of, duration_s);
    lines.extend(each(of, duration_s, cpu));
    lines.extend(of.metrics.iter().map(|(name, metric)| {
        let (name, unit) = (printable::line(name), printable::line(&metric.unit));
        let [mean, min, max] = [metric.mean, metric.min, metric.max].map(three_digits);
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("{name} {mean}{unit} ({min} to {max}, values: {})", grouped(metric.count))
    }));
    lines
}

/// What each of the units took that it counts by the second, such as transactions; none if it counts bytes, or
/// nothing.
fn each(of: &ProgramFigures, duration_s: f64, cpu: &CpuFigures) -> Option<String> {
    let named = |unit: &str| unit.strip_suffix("/s").filter(|name| !name.ends_with('B')).map(str::to_owned);
    let (unit, metric) = of.metrics.values().find_map(|metric| Some((named(&metric.unit)?, metric)))?;
    let count = metric.mean * duration_s;
    let of_each = |all: u64| all as f64 / count;
    let cpu_ns = of.cpu_ns.filter(|_| count > 0.0)?;
    let about = if cpu.cycles_source == CyclesSource::Estimate { "≈ " } else { "" };
    let mut parts = vec![format!("{} of CPU time", format_latency(of_each(cpu_ns) as u64))];
    parts.extend(
        cpu.busy_frequency_hz(duration_s)
            .map(|hz| format!("{about}{} cycles", count_text(of_each(cpu_ns) * hz / 1e9))),
    );
    for (bytes, done) in [(of.drives_read_bytes, "read"), (of.drives_written_bytes, "written")] {
        parts.extend(bytes.map(|bytes| format!("{} KB {done}", three_digits(of_each(bytes) / 1e3))));
    }
    parts.extend(of.drives_flushes.map(|flushes| format!("{} flushes", three_digits(of_each(flushes)))));
    Some(format!("each {}: {}", printable::line(&unit), parts.join(", ")))
}

/// Only what it used.
pub fn used(of: &ProgramFigures, duration_s: f64) -> Vec<String> {
    let per_s = |count: Option<u64>, unit: f64| {
        count.map_or_else(
            || UNKNOWN.to_owned(),
            |count| three_digits(count as f64 / unit / duration_s.max(1e-9)),
        )
    };
    let share = |ns: Option<u64>| {
        let percent = ns.map(|ns| ns as f64 / 1e7 / duration_s.max(1e-9));
        percent.map_or_else(|| UNKNOWN.to_owned(), |percent| format!("{percent:.1}%"))
    };
    let refaults = of.refaults.map_or_else(|| UNKNOWN.to_owned(), grouped);
    let killed = match of.oom_kills {
        Some(0) | None => String::new(),
        Some(count) => format!("; {count} of its processes were killed for memory"),
    };
    let mb = |bytes| per_s(bytes, 1e6);
    let faults = of.major_faults.map_or_else(|| UNKNOWN.to_owned(), grouped);
    // Without a server there is one part.
    let parts = match (of.server_cpu_ns, of.run_cpu_ns) {
        (Some(server), Some(run)) if server > 0 => {
            format!(": server {}, run {}", per_s(Some(server), 1e9), per_s(Some(run), 1e9))
        }
        _ => String::new(),
    };
    let mean =
        |ns: Option<f64>| ns.map_or_else(|| UNKNOWN.to_owned(), |ns| format_latency(ns.round() as u64));
    let flushes = match of.drives_flushes {
        None => UNKNOWN.to_owned(),
        Some(0) => "none".to_owned(),
        some => format!("{} a second, {} on average", per_s(some, 1.0), mean(of.drives_flush_mean_ns())),
    };
    let mut lines = vec![
        format!("program: {} cores{parts}", per_s(of.cpu_ns, 1e9)),
        format!("memory at most: {}; refaults: {refaults}; major faults: {faults}{killed}", memory(of)),
        format!(
            "MB/s at the top: read {}, written {}; of the drives: read {}, written {}",
            mb(of.top_read_bytes),
            mb(of.top_written_bytes),
            mb(of.drives_read_bytes),
            mb(of.drives_written_bytes)
        ),
        format!(
            "mean latency of reads and writes: at the top {}, of the drives {}; the drives' flushes: {flushes}",
            mean(of.top_mean_ns()),
            mean(of.drives_mean_ns()),
        ),
        format!(
            "tasks of the host waited: for I/O {} (all of them {}), for memory {}, for a CPU {}",
            share(of.io_some_ns),
            share(of.io_full_ns),
            share(of.memory_some_ns),
            share(of.cpu_some_ns)
        ),
    ];
    lines.extend(of.wa_a().map(|wa_a| {
        format!("WA-A {}: the drives' bytes per byte that the program says it wrote", three_digits(wa_a))
    }));
    lines.extend(by_name(of));
    lines
}

/// Its memory: `327 MiB, anonymous: 16.0 MiB, page cache: 301 MiB`.
fn memory(of: &ProgramFigures) -> String {
    let size = |bytes: Option<u64>| bytes.map_or_else(|| UNKNOWN.to_owned(), approx_size);
    let [all, anonymous, cache] = [of.memory_bytes, of.anonymous_bytes, of.cache_bytes].map(size);
    let swapped = match of.swapped_bytes {
        Some(0) | None => String::new(),
        Some(bytes) => format!(", swapped out: {}", approx_size(bytes)),
    };
    format!("{all}, anonymous: {anonymous}, page cache: {cache}{swapped}")
}

/// What its processes moved, those that moved most first.
fn by_name(of: &ProgramFigures) -> Option<String> {
    let Some(names) = &of.by_name else {
        return Some(format!("by process: {UNKNOWN}"));
    };
    let mut all: Vec<_> = names.iter().collect();
    all.sort_by_key(|(_, io)| std::cmp::Reverse(io.read_bytes.saturating_add(io.written_bytes)));
    let more = match all.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!("; {more} more in summary.json"),
    };
    let text = |(name, io): &(&String, &crate::meter::window::ProcessIo)| {
        let (read, written) = (approx_size(io.read_bytes), approx_size(io.written_bytes));
        format!("{} read {read}, wrote {written}", printable::line(name))
    };
    let shown: Vec<String> = all.iter().take(NAMES_MAX).map(text).collect();
    (!shown.is_empty()).then(|| format!("by process: {}{more}", shown.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::programs::program::MetricFigures;

    #[test]
    fn what_is_not_counted_is_not_available() {
        let cpu = CpuFigures { frequency_hz: Some(2e9), ..CpuFigures::default() };
        let lines = program(&ProgramFigures::default(), 2.0, &cpu).join("\n");
        assert!(lines.contains("program: not available cores") && !lines.contains('0'), "{lines}");
        let known = ProgramFigures {
            cpu_ns: Some(3_000_000_000),
            io_some_ns: Some(200_000_000),
            top_read_bytes: Some(0),
            drives_written_bytes: Some(6_000_000),
            metrics: [("tps".to_owned(), MetricFigures::of(12.0, "txn/s"))].into(),
            ..ProgramFigures::default()
        };
        let lines = program(&known, 2.0, &cpu).join("\n");
        let each = "each txn: 125ms of CPU time, ≈ 250M cycles, 250 KB written";
        for part in
            ["1.50 cores", "for I/O 10.0%", "read 0", "tps 12.0 txn/s (12.0 to 12.0, values: 1)", each]
        {
            assert!(lines.contains(part), "{part}: {lines}");
        }
    }
}
