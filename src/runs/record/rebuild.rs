//! The totals of a killed run, from its windows and their histograms, by the meters' rules.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::class::Class;
use crate::meter::flag::FlagKind;
use crate::meter::source::LatencyDelta;
use crate::meter::whole_run::totals::{Sums, Totals};
use crate::meter::window::{ClassFigures, Latencies, Latency, Window};

/// One of a class's latencies: the suffix of its tag in the log, and its field in a window.
pub type Kind = (&'static str, fn(&Latencies) -> Option<&Latency>);

/// All of them.
pub const KINDS: [Kind; 4] = [
    ("", |of| of.service_ns.as_ref()),
    (".response", |of| of.response_ns.as_ref()),
    (".write", |of| of.write_ns.as_ref()),
    (".flush", |of| of.flush_ns.as_ref()),
];

/// Whether a window is part of the totals.
pub fn counts(window: &Window) -> bool {
    !window.warmup
}

/// The sums over these windows; `logged` are their histograms by the log's tags.
pub fn totals(windows: &[&Window], logged: &BTreeMap<String, Histogram<u64>>) -> Totals {
    let mut sums = Sums::default();
    for window in windows {
        sums.add(window, Class::ALL.map(|class| storage(window.class(class))));
    }
    for class in Class::ALL {
        let latencies = KINDS.map(|kind| latency(class, kind, windows, logged));
        sums.add_latencies(class, latencies.each_ref());
    }
    // It is cumulative, so the last window's holds for the whole run.
    let last = windows
        .last()
        .and_then(|window| window.flags.iter().find(|flag| flag.is(FlagKind::BlockLayerDiffers)).cloned());
    sums.totals(last)
}

/// Bytes read from storage and bytes read, if the window has the cache share. Windows below a second repeat
/// the share of the last second.
fn storage(figures: &ClassFigures) -> Option<(u64, u64)> {
    let share = figures.cache_share?;
    Some((((1.0 - share) * figures.bytes as f64).round() as u64, figures.bytes))
}

/// A latency's samples, with the exact maximum from the windows.
fn latency(
    class: Class,
    (suffix, of): Kind,
    windows: &[&Window],
    logged: &BTreeMap<String, Histogram<u64>>,
) -> LatencyDelta {
    let maxima = windows.iter().filter_map(|window| of(&window.class(class).latencies)?.max);
    match logged.get(&format!("{class}{suffix}")) {
        Some(histogram) => LatencyDelta { histogram: histogram.clone(), max_ns: maxima.max().unwrap_or(0) },
        None => LatencyDelta::default(),
    }
}
