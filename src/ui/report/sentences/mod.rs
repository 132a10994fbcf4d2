//! Figures in words, shared by the screen and the reports.

mod run;

pub use run::{amplification, steadiness, variability};

use crate::meter::window::{ClassFigures, CpuFigures, CyclesSource, EngineFigures, OthersIo, Polls};
use crate::settings::Run;
use crate::units::{approx_size, three_digits};

/// What polling found for one interface: polls per second, the share that came back empty, and the share of the polling
/// time that those took.
pub fn polls_of(polls: Polls, duration_s: f64) -> Option<String> {
    let share = polls.empty_share().filter(|_| duration_s > 0.0)?;
    Some(format!(
        "{}/s, {:.1}% empty, {:.1}% of the polling time",
        three_digits(polls.polls as f64 / duration_s),
        polls.empty_polls as f64 / polls.polls as f64 * 100.0,
        share * 100.0
    ))
}

/// The same for all classes together.
pub fn polls(classes: &[ClassFigures; 4], duration_s: f64) -> Option<String> {
    let mut all = Polls::default();
    classes.iter().filter_map(|class| class.polls).for_each(|polls| all += polls);
    polls_of(all, duration_s)
}

/// What the storage engine did in `duration_s` seconds, one line each: what it wrote compared with what was put, how
/// long writes stalled (in percent of one thread's time), its cache, and its files. Only a whole run shows bytes
/// written per byte put: in a window that depends on when compactions ran.
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
            "log {}, flush {}, compaction {}, read {}",
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
    lines.push(format!("files {files}, {pending} to compact{stopped}"));
    lines
}

/// The cores in words: `4.00 used, 12.0 left of 16`.
pub fn cores(cpu: &CpuFigures) -> String {
    let (used, all) = (cpu.cores_used(), f64::from(cpu.cpus));
    format!("{} used, {} left of {}", three_digits(used), three_digits(all - used), cpu.cpus)
}

/// What others used, in words: `1.85 cores (0.20 unattributed)`; none if unknown.
pub fn others(cpu: &CpuFigures) -> Option<String> {
    let unattributed = cpu.unattributed_cores.filter(|cores| *cores > 0.0);
    let unattributed = unattributed.map(|cores| format!(" ({} unattributed)", three_digits(cores)));
    Some(format!("{} cores{}", three_digits(cpu.others_cores?), unattributed.unwrap_or_default()))
}

/// What others did on a drive over that time, in words: `nvme0n1: others read 1.20 MB/s and wrote 35.0 MB/s, at least`.
pub fn others_io(of: &OthersIo, seconds: f64) -> String {
    let [read, written] =
        of.rates(seconds).map(|rate| rate.map(|rate| format!("{} MB/s", three_digits(rate))));
    let unknown = || "an unknown amount".to_owned();
    format!(
        "{}: others read {} and wrote {}, at least",
        of.drive,
        read.unwrap_or_else(unknown),
        written.unwrap_or_else(unknown)
    )
}

/// `≈ ` before a figure that is based on an estimate.
pub fn about(source: CyclesSource) -> &'static str {
    if source == CyclesSource::Estimate { "≈ " } else { "" }
}

/// The cores that the run's array would keep busy at these cycles per byte, without others' cycles, in words:
/// `≈ 85.7 cores for 8 drives at 3 GB/s`. None if no drive rate is set or the cycles are unknown.
pub fn cores_needed(
    cpu: &CpuFigures,
    cycles_per_byte: Option<f64>,
    duration_s: f64,
    array: &Run,
) -> Option<String> {
    let gb_per_s = array.drive_rate_bytes_per_s? as f64 / 1e9;
    let drives = array.drives;
    let cores = cycles_per_byte? * drives as f64 * gb_per_s * 1e9 / cpu.busy_frequency_hz(duration_s)?;
    let word = if drives == 1 { "drive" } else { "drives" };
    let about = about(cpu.cycles_source);
    Some(format!("{about}{} cores for {drives} {word} at {gb_per_s} GB/s", three_digits(cores)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn counted_cycles_give_the_frequency_without_stolen_time() {
        let cpu = CpuFigures {
            cpus: 16,
            busy: 0.25,
            steal: 0.05,
            cycles: 16e9,
            cycles_source: CyclesSource::Pmu,
            ..CpuFigures::default()
        };
        assert_eq!(cores(&cpu), "4.00 used, 12.0 left of 16");
        assert!((cpu.busy_frequency_hz(1.0).unwrap() - 5e9).abs() < 1.0);
        let idle = CpuFigures { busy: 0.0, steal: 0.0, ..cpu };
        assert_eq!(cores_needed(&idle, Some(1.0), 1.0, &Run::default()), None);
    }
}
