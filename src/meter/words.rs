//! Figures in words: what a turn did, and what the processor has left.

use std::fmt::Write;

use super::window::{Change, CpuFigures, LedgerLine, TotalFigures, Verdict};
use crate::units::{format_latency, three_digits};

/// What a ledger line says of one figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The figure: `scan MB/s`, `point p99`, `WAL p99`, `total MB/s`, `cycles/byte`.
    pub figure: &'static str,
    /// In words: `scan 3503 → 5055 MB/s (+44%)`.
    pub text: String,
    /// Whether the turn made it better or worse; none without a clear change. A turn that makes
    /// commits less durable gains nothing.
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
                gain: gain(change, better).filter(|gain| !(*gain && self.less_durable)),
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

/// Cores that were idle or waited for I/O.
pub fn cores_left(cpu: &CpuFigures) -> f64 {
    (1.0 - cpu.busy) * f64::from(cpu.cpus)
}

/// Cores that so many drives at so many decimal GB/s each would keep busy.
pub fn cores_needed(cycles_per_byte: f64, frequency_hz: f64, drives: u32, gb_per_s: f64) -> f64 {
    cycles_per_byte * f64::from(drives) * gb_per_s * 1e9 / frequency_hz
}

/// Cycles a second of a busy core: an estimate's own frequency, else counted cycles over busy time.
pub fn busy_frequency_hz(cpu: &CpuFigures, duration_s: f64) -> Option<f64> {
    let busy_s = (cpu.busy - cpu.steal) * f64::from(cpu.cpus) * duration_s;
    cpu.frequency_hz.or_else(|| (busy_s > 0.0 && cpu.cycles > 0.0).then(|| cpu.cycles / busy_s))
}

/// The processor in words: `1.40 of 2 cores used, 0.60 left; 8 drives at 3.00 GB/s need 12.3 cores`.
pub fn processor(
    cpu: &CpuFigures,
    total: &TotalFigures,
    duration_s: f64,
    drives: u32,
    gb_per_s: f64,
) -> String {
    let used = three_digits(cores_used(cpu));
    let mut text = format!("{used} of {} cores used, {} left", cpu.cpus, three_digits(cores_left(cpu)));
    if let (Some(cycles_per_byte), Some(hz)) = (total.cycles_per_byte, busy_frequency_hz(cpu, duration_s)) {
        let needed = three_digits(cores_needed(cycles_per_byte, hz, drives, gb_per_s));
        let (drives_word, need) = if drives == 1 { ("drive", "needs") } else { ("drives", "need") };
        let rate = three_digits(gb_per_s);
        let _ = write!(text, "; {drives} {drives_word} at {rate} GB/s {need} {needed} cores");
    }
    text
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
    }

    #[test]
    fn the_processor_in_words() {
        let cpu = CpuFigures { cpus: 16, busy: 0.25, cycles: 16e9, ..CpuFigures::default() };
        let total = TotalFigures { cycles_per_byte: Some(2.0), ..TotalFigures::default() };
        let text = processor(&cpu, &total, 1.0, 8, 3.0);
        assert_eq!(text, "4.00 of 16 cores used, 12.0 left; 8 drives at 3.00 GB/s need 12.0 cores");
        let unknown = processor(&cpu, &TotalFigures::default(), 1.0, 8, 3.0);
        assert_eq!(unknown, "4.00 of 16 cores used, 12.0 left");
    }
}
