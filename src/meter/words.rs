//! Figures in words: what a turn did, and what the processor has left.

use super::engine::EngineFigures;
use super::window::{Change, ClassFigures, CpuFigures, CyclesSource, Incidents, LedgerLine, Polls, Verdict};
use crate::settings::Run;
use crate::units::{approx_size, format_latency, three_digits};

/// What polling found, of one interface: looks a second, the share of them that found nothing, and the
/// share of the time spent looking in which nothing was found.
pub fn polls_of(polls: Polls, duration_s: f64) -> Option<String> {
    let share = polls.empty_share().filter(|_| duration_s > 0.0)?;
    Some(format!(
        "{}/s, {:.1}% found nothing, {:.1}% of the time looking",
        three_digits(polls.polls as f64 / duration_s),
        polls.empty_polls as f64 / polls.polls as f64 * 100.0,
        share * 100.0
    ))
}

/// The same of all classes together.
pub fn polls(classes: &[ClassFigures; 4], duration_s: f64) -> Option<String> {
    let mut all = Polls::default();
    classes.iter().filter_map(|class| class.polls).for_each(|polls| all += polls);
    polls_of(all, duration_s)
}

/// What the storage engine did in so many seconds, a line each: what it wrote for what was put, how long
/// writes stood still (in percent of one thread's time), what its cache held, and its files. What it wrote for
/// each byte put is told of a whole run alone: of a window it says when it merged.
pub fn engine(engine: &EngineFigures, duration_s: f64, whole_run: bool) -> Vec<String> {
    let counts = &engine.counts;
    let mb_s = |bytes: u64| three_digits(bytes as f64 / 1e6 / duration_s.max(1e-9));
    let times = counts
        .write_amplification()
        .filter(|_| whole_run)
        .map_or_else(String::new, |times| format!(" (×{times:.2})"));
    let mut lines = vec![
        format!(
            "RocksDB writes {} MB/s, put {}{times}",
            mb_s(counts.written_bytes()),
            mb_s(counts.user_written_bytes)
        ),
        format!(
            "log {}, flush {}, merge {}, read {}",
            mb_s(counts.log_bytes),
            mb_s(counts.flush_bytes),
            mb_s(counts.compaction_written_bytes),
            mb_s(counts.compaction_read_bytes)
        ),
    ];
    let stalled = counts.stall_ns as f64 / 1e9 / duration_s.max(1e-9) * 100.0;
    let held = counts.cache_hit_share().map(|share| format!(", {:.0}% of blocks cached", share * 100.0));
    lines.push(format!("stalls {stalled:.0}%{}", held.unwrap_or_default()));
    let (files, pending) = (approx_size(engine.files_bytes), approx_size(engine.pending_compaction_bytes));
    let stopped = if engine.stopped { ", stopped" } else { "" };
    lines.push(format!("files {files}, {pending} to merge{stopped}"));
    lines
}

/// What became of commands that did not come back.
pub fn incidents(incidents: Incidents) -> String {
    let count = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    format!(
        "{} not back in time, {}",
        count(incidents.timeouts, "command was", "commands were"),
        count(incidents.resets, "reset of a controller", "resets of controllers")
    )
}

/// What a ledger line says of one figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The figure: `scan MB/s`, `point p99`, `WAL p99`, `total MB/s`, `cycles/byte`.
    pub figure: &'static str,
    /// In words: `scan 3503 → 5055 MB/s (+44%)`.
    pub text: String,
    /// Whether the turn made it better or worse; none without a clear change. A turn after which less
    /// is survived gains nothing.
    pub gain: Option<bool>,
}

impl LedgerLine {
    /// What the line says, a reading for each figure that has a value before or after.
    pub fn readings(&self) -> Vec<Reading> {
        let number = |value: f64| three_digits(value);
        let latency = |value: f64| format_latency(value.round() as u64);
        let figures: [(_, _, &Change, &dyn Fn(f64) -> String, _, _); 5] = [
            ("scan MB/s", "scan", &self.scan_mb_per_s, &number, " MB/s", Verdict::Higher),
            ("point p99", "point p99", &self.point_p99_ns, &latency, "", Verdict::Lower),
            ("WAL p99", "WAL p99", &self.wal_p99_ns, &latency, "", Verdict::Lower),
            ("total MB/s", "total", &self.total_mb_per_s, &number, " MB/s", Verdict::Higher),
            ("cycles/byte", "total", &self.cycles_per_byte, &number, " cycles/byte", Verdict::Lower),
        ];
        figures
            .into_iter()
            .filter(|(_, _, change, ..)| change.before.or(change.after).is_some())
            .map(|(figure, subject, change, show, unit, better)| Reading {
                figure,
                text: format!("{subject} {}", in_words(change, show, unit, self.open)),
                gain: gain(change, better).filter(|gain| !(*gain && self.is_less_safe())),
            })
            .collect()
    }
}

fn gain(change: &Change, better: Verdict) -> Option<bool> {
    matches!(change.verdict, Verdict::Higher | Verdict::Lower).then_some(change.verdict == better)
}

fn in_words(change: &Change, show: &dyn Fn(f64) -> String, unit: &str, open: bool) -> String {
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), show);
    let values = format!("{} → {}{unit}", shown(change.before), shown(change.after));
    match (change.verdict, change.before, change.after) {
        (Verdict::NoClearChange, ..) => format!("{values}, no clear change"),
        (Verdict::Higher | Verdict::Lower, Some(before), Some(after)) if before > 0.0 => {
            format!("{values} ({:+.0}%)", (after / before - 1.0) * 100.0)
        }
        (Verdict::Higher | Verdict::Lower, ..) => values,
        (Verdict::None, ..) if open => format!("{values}, measuring"),
        (Verdict::None, ..) => format!("{values}, no verdict"),
    }
}

/// Cores that the whole system kept busy.
pub fn cores_used(cpu: &CpuFigures) -> f64 {
    cpu.busy * f64::from(cpu.cpus)
}

/// The cores in words: `4.00 used, 12.0 left of 16`.
pub fn cores(cpu: &CpuFigures) -> String {
    let (used, all) = (cores_used(cpu), f64::from(cpu.cpus));
    format!("{} used, {} left of {}", three_digits(used), three_digits(all - used), cpu.cpus)
}

/// Cycles a second of a busy core: an estimate's own frequency, else counted cycles over busy time.
pub fn busy_frequency_hz(cpu: &CpuFigures, duration_s: f64) -> Option<f64> {
    let busy_s = (cpu.busy - cpu.steal) * f64::from(cpu.cpus) * duration_s;
    let counted = (busy_s > 0.0).then(|| cpu.cycles / busy_s);
    cpu.frequency_hz.or(counted).filter(|hz| *hz > 0.0)
}

/// `≈ ` before what rests on an estimate: of that no sign may be lost.
pub fn about(source: CyclesSource) -> &'static str {
    if source == CyclesSource::Estimate { "≈ " } else { "" }
}

/// The cores that the run's array would keep busy at these cycles a byte, in words: `≈ 85.7 cores for
/// 8 drives at 3 GB/s`. None where that is not asked for, or not known.
pub fn cores_needed(
    cpu: &CpuFigures,
    cycles_per_byte: Option<f64>,
    duration_s: f64,
    array: &Run,
) -> Option<String> {
    let gb_per_s = array.drive_rate_bytes_per_s? as f64 / 1e9;
    let drives = array.drives;
    let cores = cycles_per_byte? * drives as f64 * gb_per_s * 1e9 / busy_frequency_hz(cpu, duration_s)?;
    let word = if drives == 1 { "drive" } else { "drives" };
    let about = about(cpu.cycles_source);
    Some(format!("{about}{} cores for {drives} {word} at {gb_per_s} GB/s", three_digits(cores)))
}

/// What a TB costs of a stack of that price, in $.
pub fn price_per_tb(price: f64, usable_bytes: u64) -> Option<f64> {
    (usable_bytes > 0).then(|| price / (usable_bytes as f64 / 1e12))
}

/// What a GB/s of scan costs at that throughput, in $; none where nothing was scanned.
pub fn price_per_scan_gb_per_s(price: f64, scan_mb_per_s: f64) -> Option<f64> {
    (scan_mb_per_s > 0.0).then(|| price / (scan_mb_per_s / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: f64, after: f64, verdict: Verdict) -> Change {
        Change { before: Some(before), after: Some(after), verdict, ..Change::default() }
    }

    #[test]
    fn a_line_reads_as_what_the_turn_did() {
        let line = LedgerLine {
            scan_mb_per_s: change(3503.0, 5055.0, Verdict::Higher),
            point_p99_ns: change(90_000.0, 120_000.0, Verdict::Higher),
            total_mb_per_s: change(3600.0, 3610.0, Verdict::NoClearChange),
            cycles_per_byte: change(2.0, 1.0, Verdict::None),
            ..LedgerLine::default()
        };
        let readings = line.readings();
        let texts: Vec<_> = readings.iter().map(|reading| reading.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "scan 3503 → 5055 MB/s (+44%)",
                "point p99 90.0µs → 120µs (+33%)",
                "total 3600 → 3610 MB/s, no clear change",
                "total 2.00 → 1.00 cycles/byte, no verdict",
            ]
        );
        let gains: Vec<_> = readings.iter().map(|reading| reading.gain).collect();
        assert_eq!(gains, [Some(true), Some(false), None, None]);
    }

    #[test]
    fn what_is_less_durable_is_never_a_gain() {
        let mut line = LedgerLine { less_durable: true, ..LedgerLine::default() };
        line.wal_p99_ns = change(2e6, 1e5, Verdict::Lower);
        line.scan_mb_per_s = change(200.0, 100.0, Verdict::Lower);
        let gains: Vec<_> = line.readings().iter().map(|reading| reading.gain).collect();
        assert_eq!(gains, [Some(false), None]);
        line.less_durable = false;
        assert_eq!(line.readings()[1].gain, Some(true));
        line.survives_less = vec!["survives the loss of drives: 1 → 0".into()];
        assert_eq!(line.readings()[1].gain, None);
    }

    #[test]
    fn a_price_is_told_by_the_tb_and_by_what_was_scanned() {
        assert_eq!(price_per_tb(500.0, 8_000_000_000_000), Some(62.5));
        assert_eq!(price_per_scan_gb_per_s(500.0, 25_000.0), Some(20.0));
        assert_eq!((price_per_tb(500.0, 0), price_per_scan_gb_per_s(500.0, 0.0)), (None, None));
    }

    #[test]
    fn ten_cycles_a_byte_need_what_the_paper_says() {
        let cpu = CpuFigures { frequency_hz: Some(2.8e9), ..CpuFigures::default() };
        let array = Run::default();
        // 8 × 3 GB/s × 10 cycles ÷ 2.8 GHz
        let needed = cores_needed(&cpu, Some(10.0), 1.0, &array);
        assert_eq!(needed.as_deref(), Some("≈ 85.7 cores for 8 drives at 3 GB/s"));
        let one = Run { drives: 1, drive_rate_bytes_per_s: Some(500_000_000), ..array.clone() };
        let needed = cores_needed(&cpu, Some(10.0), 1.0, &one);
        assert_eq!(needed.as_deref(), Some("≈ 1.79 cores for 1 drive at 0.5 GB/s"));
        assert_eq!(cores_needed(&cpu, None, 1.0, &array), None);
        let none = Run { drive_rate_bytes_per_s: None, ..array };
        assert_eq!(cores_needed(&cpu, Some(10.0), 1.0, &none), None);
    }

    #[test]
    fn counted_cycles_tell_their_own_frequency_without_what_was_stolen() {
        let cpu = CpuFigures {
            cpus: 16,
            busy: 0.25,
            steal: 0.05,
            cycles: 16e9,
            cycles_source: CyclesSource::Pmu,
            ..CpuFigures::default()
        };
        assert_eq!(cores(&cpu), "4.00 used, 12.0 left of 16");
        assert!((busy_frequency_hz(&cpu, 1.0).unwrap() - 5e9).abs() < 1.0);
        let idle = CpuFigures { busy: 0.0, steal: 0.0, ..cpu };
        assert_eq!(cores_needed(&idle, Some(1.0), 1.0, &Run::default()), None);
    }
}
