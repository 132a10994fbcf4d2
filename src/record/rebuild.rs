//! Totals of a run that was killed, from its windows and their histograms.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::class::Class;
use crate::meter::window::{
    ClassFigures, CpuFigures, CyclesSource, Flag, Latencies, Latency, MemberFigures, TotalFigures, Totals,
    Window,
};
use crate::units::mb_per_s;

/// A flag is one of the whole run from this share of the windows on.
const FLAG_WINDOWS_ONE_IN: usize = 10;
/// Fewer samples beyond a percentile than this make it none.
const SAMPLES_BEYOND_MIN: u64 = 10;

/// Whether a window is part of the totals.
pub fn counts(window: &Window) -> bool {
    !window.warmup
}

/// The sums over these windows; `sums` are their histograms by the log's tags.
pub fn totals(windows: &[&Window], sums: &BTreeMap<String, Histogram<u64>>) -> Totals {
    let duration_ns: u64 = windows.iter().map(|window| window.duration_ns).sum();
    let classes = Class::ALL.map(|class| class_figures(class, windows, duration_ns, sums));
    let bytes = classes.iter().map(|class| class.bytes).sum();
    let cpu = cpu(windows, duration_ns);
    Totals {
        duration_s: duration_ns as f64 / 1e9,
        windows: windows.len() as u64,
        total: TotalFigures {
            bytes,
            mb_per_s: mb_per_s(bytes, duration_ns),
            cycles_per_byte: cycles_per_byte(windows),
        },
        classes,
        cpu,
        members: members(windows),
        flags: lasting(windows.iter().flat_map(|window| &window.flags), windows.len()),
    }
}

/// Cycles over bytes, both of the windows whose cycles are known.
fn cycles_per_byte(windows: &[&Window]) -> Option<f64> {
    let known = || windows.iter().filter(|window| window.cpu.cycles > 0.0);
    let bytes: u64 = known().map(|window| window.total.bytes).sum();
    (bytes > 0).then(|| known().map(|window| window.cpu.cycles).sum::<f64>() / bytes as f64)
}

fn class_figures(
    class: Class,
    windows: &[&Window],
    duration_ns: u64,
    sums: &BTreeMap<String, Histogram<u64>>,
) -> ClassFigures {
    let all = || windows.iter().map(|window| window.class(class));
    let sum = |of: fn(&ClassFigures) -> u64| all().map(of).sum::<u64>();
    let last = all().next_back().cloned().unwrap_or_default();
    let (ios, bytes) = (sum(|f| f.ios), sum(|f| f.bytes));
    let (intended, missed) = (sum(|f| f.intended), sum(|f| f.missed));
    let not_held = missed * 100 > intended;
    let mut errnos = BTreeMap::new();
    for (errno, count) in all().flat_map(|figures| &figures.errnos) {
        *errnos.entry(errno.clone()).or_default() += count;
    }
    let latency = |suffix: &str| sums.get(&format!("{class}{suffix}")).map(latency);
    ClassFigures {
        state: last.state,
        ios,
        bytes,
        errors: sum(|f| f.errors),
        errnos,
        intended,
        missed,
        mb_per_s: mb_per_s(bytes, duration_ns),
        iops: if duration_ns == 0 { 0.0 } else { ios as f64 * 1e9 / duration_ns as f64 },
        target_mb_per_s: last.target_mb_per_s,
        not_held,
        latencies: Latencies {
            service_ns: latency(""),
            response_ns: latency(".response").filter(|_| !not_held),
            write_ns: latency(".write"),
            flush_ns: latency(".flush"),
        },
        busiest_worker: all().filter_map(|f| f.busiest_worker).reduce(f64::max),
        cache_share: None, // the bytes read are not in the windows, so a share of them can't be summed
        flags: lasting(all().flat_map(|figures| &figures.flags), windows.len()),
    }
}

/// A histogram's percentiles.
pub fn latency(histogram: &Histogram<u64>) -> Latency {
    let count = histogram.len();
    // The quantile in ten thousandths, so that the samples beyond it are counted exactly.
    let quantile = |q: u64| {
        let beyond = u128::from(count) * u128::from(10_000 - q);
        (beyond >= u128::from(SAMPLES_BEYOND_MIN) * 10_000)
            .then(|| histogram.value_at_quantile(q as f64 / 10_000.0))
    };
    Latency {
        count,
        mean: (count > 0).then(|| histogram.mean()),
        p50: quantile(5000),
        p90: quantile(9000),
        p99: quantile(9900),
        p999: quantile(9990),
        p9999: quantile(9999),
        max: (count > 0).then(|| histogram.max()),
    }
}

fn cpu(windows: &[&Window], duration_ns: u64) -> CpuFigures {
    let mean = |of: fn(&CpuFigures) -> f64| {
        let weighted: f64 = windows.iter().map(|w| of(&w.cpu) * w.duration_ns as f64).sum();
        if duration_ns == 0 { 0.0 } else { weighted / duration_ns as f64 }
    };
    let last = windows.last().map(|window| window.cpu.clone()).unwrap_or_default();
    let counted = windows.iter().all(|window| window.cpu.cycles_source == CyclesSource::Pmu);
    CpuFigures {
        cpus: last.cpus,
        user: mean(|c| c.user),
        system: mean(|c| c.system),
        interrupt: mean(|c| c.interrupt),
        steal: mean(|c| c.steal),
        busy: mean(|c| c.busy),
        own_cores: mean(|c| c.own_cores),
        overhead_cores: mean(|c| c.overhead_cores),
        cycles: windows.iter().map(|window| window.cpu.cycles).sum(),
        cycles_source: if counted { last.cycles_source } else { CyclesSource::Estimate },
        frequency_hz: last.frequency_hz,
        frequency_source: last.frequency_source,
        coarse: false,
    }
}

fn members(windows: &[&Window]) -> Vec<MemberFigures> {
    let mut sums: Vec<MemberFigures> = Vec::new();
    for member in windows.iter().flat_map(|window| &window.members) {
        let Some(sum) = sums.iter_mut().find(|sum| sum.name == member.name) else {
            sums.push(member.clone());
            continue;
        };
        let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        sum.read_bytes += member.read_bytes;
        sum.written_bytes += member.written_bytes;
        sum.block_read_bytes = both(sum.block_read_bytes, member.block_read_bytes);
        sum.block_written_bytes = both(sum.block_written_bytes, member.block_written_bytes);
    }
    sums
}

/// The flags that a tenth of the windows or more have, each once; of those that differ only in a
/// figure (`cache 97%`), the last.
fn lasting<'a>(flags: impl Iterator<Item = &'a Flag>, windows: usize) -> Vec<Flag> {
    let mut kinds: BTreeMap<&str, (usize, &Flag)> = BTreeMap::new();
    for flag in flags {
        let kind = flag.text.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default();
        let seen = kinds.get(kind.trim_end()).map_or(0, |(seen, _)| *seen);
        kinds.insert(kind.trim_end(), (seen + 1, flag));
    }
    let lasts = |seen: usize| seen * FLAG_WINDOWS_ONE_IN >= windows;
    kinds.into_values().filter(|(seen, _)| lasts(*seen)).map(|(_, flag)| flag.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let of = |samples: u64| {
            let mut histogram = Histogram::new(3).unwrap();
            (1..=samples).for_each(|value| histogram.record(value).unwrap());
            latency(&histogram)
        };
        assert_eq!((of(19).p50, of(20).p50), (None, Some(10)));
        assert_eq!((of(999).p99, of(1000).p99), (None, Some(990)));
        assert_eq!(of(9_999).p999, None);
        assert!(of(10_000).p999.is_some());
        assert_eq!(of(0), Latency::default());
    }

    #[test]
    fn flags_that_differ_in_a_figure_are_one() {
        let flag = |text: &str| Flag { text: text.into(), why: String::new(), forbids_verdict: true };
        let flags = [flag("cache 97%"), flag("steal"), flag("cache 93%")];
        assert_eq!(lasting(flags.iter(), 10), [flag("cache 93%"), flag("steal")]);
        assert_eq!(lasting(flags.iter(), 20), [flag("cache 93%")]);
    }
}
