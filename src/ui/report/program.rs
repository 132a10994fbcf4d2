//! A program that was the load, in sentences.

use crate::meter::window::ProgramFigures;
use crate::printable;
use crate::units::{approx_size, grouped, three_digits};

const UNKNOWN: &str = "not available";

/// What it used and reported in `duration_s` seconds, one line each.
pub fn program(of: &ProgramFigures, duration_s: f64) -> Vec<String> {
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
    let size = |bytes: Option<u64>| bytes.map_or_else(|| UNKNOWN.to_owned(), approx_size);
    let refaults = of.refaults.map_or_else(|| UNKNOWN.to_owned(), grouped);
    let killed = match of.oom_kills {
        Some(0) | None => String::new(),
        Some(count) => format!("; {count} of its processes were killed for memory"),
    };
    let mb = |bytes| per_s(bytes, 1e6);
    let mut lines = vec![
        format!("program: {} cores", per_s(of.cpu_ns, 1e9)),
        format!(
            "memory at most: {}, page cache: {}; refaults: {refaults}{killed}",
            size(of.memory_bytes),
            size(of.cache_bytes)
        ),
        format!(
            "MB/s at the top: read {}, written {}; of the drives: read {}, written {}",
            mb(of.top_read_bytes),
            mb(of.top_written_bytes),
            mb(of.drives_read_bytes),
            mb(of.drives_written_bytes)
        ),
        format!(
            "tasks of the host waited: for I/O {} (all of them {}), for memory {}, for a CPU {}",
            share(of.io_some_ns),
            share(of.io_full_ns),
            share(of.memory_some_ns),
            share(of.cpu_some_ns)
        ),
    ];
    lines.extend(of.metrics.iter().map(|(name, metric)| {
        let (name, unit) = (printable::line(name), printable::line(&metric.unit));
        let [mean, min, max] = [metric.mean, metric.min, metric.max].map(three_digits);
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("{name} {mean}{unit} ({min} to {max}, values: {})", grouped(metric.count))
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::program::MetricFigures;

    #[test]
    fn what_is_not_counted_is_not_available() {
        let lines = program(&ProgramFigures::default(), 2.0).join("\n");
        assert!(lines.contains("program: not available cores") && !lines.contains('0'), "{lines}");
        let known = ProgramFigures {
            cpu_ns: Some(3_000_000_000),
            io_some_ns: Some(200_000_000),
            top_read_bytes: Some(0),
            metrics: [("tps".to_owned(), MetricFigures::of(12.0, "txn/s"))].into(),
            ..ProgramFigures::default()
        };
        let lines = program(&known, 2.0).join("\n");
        for part in ["1.50 cores", "for I/O 10.0%", "read 0", "tps 12.0 txn/s (12.0 to 12.0, values: 1)"] {
            assert!(lines.contains(part), "{part}: {lines}");
        }
    }
}
