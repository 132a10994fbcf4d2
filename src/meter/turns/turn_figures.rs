//! The figures of a ledger's line, from the windows on both sides of its turn.
//!
//! Rates are means over the windows. Percentiles are those of all I/Os of a side: its histograms are pooled.
//! How much a percentile varies is judged by stretches: single windows if each has enough I/Os, otherwise as
//! many neighbouring ones as together have enough.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::estimate::{self, Side, TURN_CHANGE_MIN, Together, WINDOWS_MIN};
use super::wander::Wander;
use crate::class::Class;
use crate::meter::latencies::samples::Samples;
use crate::meter::latencies::stretches::{SampleStretch, stretches};
use crate::meter::window::{Change, ClassState, LedgerLine, Verdict, Window};
use crate::settings::Better;

/// The most windows before a turn that count, except for percentiles that need more samples.
pub const BEFORE_WINDOWS: usize = 10;
/// The windows between the sides: the turn's own, and those in which the load settles.
pub(super) const GAP_WINDOWS: usize = 3;
/// The percentile that a line waits for, as one in how many samples lies beyond it.
const SLOWEST_ONE_IN: u64 = 100;

/// The classes whose latency a line has.
const LATENCIES: [Class; 2] = [Class::Point, Class::Wal];

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    /// One of a window's rates.
    Rate(usize),
    /// A latency of one of [`LATENCIES`], and its percentile, as one in how many samples lies beyond it.
    Percentile(usize, u64),
}

const CYCLES: Figure = Figure::Rate(5);

/// In the order of [`LedgerLine::changes_mut`].
const FIGURES: [Figure; 11] = [
    Figure::Rate(0),
    Figure::Rate(1),
    Figure::Percentile(0, 2),
    Figure::Percentile(0, 100),
    Figure::Rate(2),
    Figure::Percentile(1, 2),
    Figure::Percentile(1, 100),
    Figure::Rate(3),
    Figure::Rate(4),
    CYCLES,
    Figure::Rate(6),
];

/// The parts of a window that a line's figures need.
#[derive(Debug, Clone, Default)]
pub(in crate::meter) struct Measured {
    rates: [Option<f64>; 7],
    latencies: [Option<Arc<Samples>>; 2],
    /// Figures of a program, of a trace, and of modelled drives (WA-D), each with its better direction.
    metrics: BTreeMap<String, (f64, Option<Better>)>,
}

impl Measured {
    /// The figures of that window.
    pub(in crate::meter) fn of(window: &Window) -> Self {
        let running =
            |class| Some(window.class(class)).filter(|figures| figures.state == ClassState::Running);
        let rate = |class| running(class).map(|figures| figures.mb_per_s);
        let (intended, missed) = window
            .classes
            .iter()
            .fold((0, 0), |(intended, missed), of| (intended + of.intended, missed + of.missed));
        let latencies = LATENCIES.map(|class| {
            let max_ns = running(class)?.latencies.service_ns.as_ref().and_then(|latency| latency.max);
            let histogram = window.histograms[class.index()].service.as_ref()?;
            Some(Arc::new(Samples::of(histogram, max_ns)))
        });
        Self {
            rates: [
                rate(Class::Scan),
                rate(Class::Point),
                rate(Class::Wal),
                rate(Class::Background),
                window.program.is_none().then_some(window.total.mb_per_s),
                window.total.cycles_per_byte.filter(|_| !window.cpu.coarse),
                (intended > 0).then(|| missed as f64 / intended as f64),
            ],
            latencies,
            metrics: window
                .program
                .iter()
                .flat_map(|program| &program.metrics)
                .map(|(name, metric)| (name.clone(), (metric.mean, metric.better)))
                .chain(window.traced.iter().map(|(name, value)| (name.clone(), (*value, None))))
                .chain(
                    window
                        .written
                        .wa_d_of_window()
                        .map(|wa_d| ("WA-D".to_owned(), (wa_d, Some(Better::Lower)))),
                )
                .collect(),
        }
    }
}

/// The windows that count before a turn.
pub(in crate::meter) fn counted<T>(before: &[T]) -> &[T] {
    &before[before.len().saturating_sub(BEFORE_WINDOWS)..]
}

/// Whether a latency's percentile lacks samples, but would have enough with up to this many windows.
pub(in crate::meter) fn waits_for_samples(after: &[&Measured], windows_max: usize) -> bool {
    (0..LATENCIES.len()).any(|at| {
        let count: u64 = after.iter().filter_map(|of| of.latencies[at].as_ref()).map(|of| of.count()).sum();
        let needed = SLOWEST_ONE_IN * crate::meter::latencies::latency::SAMPLES_BEYOND;
        count < needed && count * windows_max as u64 >= needed * after.len() as u64
    })
}

/// Fills in a line's figures from the windows on both sides, oldest first. `judged` says whether they may have
/// verdicts, and whether cycles may have one too; `wander` is what the run does by itself.
pub(in crate::meter) fn compare(
    line: &mut LedgerLine,
    (before, after): (&[&Measured], &[&Measured]),
    (judged, cycles_judged): (bool, bool),
    wander: &Wander,
) {
    let found = FIGURES.map(|figure| match figure {
        Figure::Rate(at) => {
            let values =
                |windows: &[&Measured]| windows.iter().filter_map(|of| of.rates[at]).collect::<Vec<_>>();
            (Values::before(values(before), values(counted(before)).len()), Values::all(values(after)))
        }
        Figure::Percentile(at, one_in) => {
            let samples = |windows: &[&Measured]| {
                windows.iter().filter_map(|of| of.latencies[at].clone()).collect::<Vec<_>>()
            };
            let last = samples(counted(before)).len();
            (
                Values::pooled_before(samples(before), last, one_in),
                Values::pooled_after(&samples(after), one_in),
            )
        }
    });
    let metrics = of_program(before, after);
    let all = found.iter().chain(metrics.iter().map(|(_, sides)| sides));
    // A figure that is zero on both sides can't change clearly, not even by chance.
    let can_change = |(before, after): &&(Values, Values)| {
        before.value.zip(after.value).is_some_and(|(before, after)| before != 0.0 || after != 0.0)
    };
    let figures = all.filter(can_change).count();
    let together = Together { figures, gap: GAP_WINDOWS, change_min: TURN_CHANGE_MIN };
    let changed = |name: &str, (before, after): &(Values, Values), judged: bool| {
        changed(before, after, together, judged.then(|| wander.reach(name, together).unwrap_or(0.0)))
    };
    let names = line.changes().map(|(figure, _)| figure.name);
    for (((change, sides), figure), name) in
        line.changes_mut().into_iter().zip(&found).zip(FIGURES).zip(names)
    {
        *change = changed(name, sides, judged && (cycles_judged || figure != CYCLES));
    }
    let after_last = |name: &String| after.iter().rev().find_map(|of| of.metrics.get(name)?.1);
    line.metrics = metrics
        .into_iter()
        .map(|(name, sides)| {
            let change = Change { better: after_last(&name), ..changed(&name, &sides, judged) };
            (name, change)
        })
        .collect();
}

/// A program's figures on both sides, by name.
fn of_program(before: &[&Measured], after: &[&Measured]) -> Vec<(String, (Values, Values))> {
    let mut names: Vec<&String> = after.iter().flat_map(|of| of.metrics.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let sides = |name: &String| {
        let values = |windows: &[&Measured]| {
            windows.iter().filter_map(|of| Some(of.metrics.get(name)?.0)).collect::<Vec<_>>()
        };
        (Values::before(values(before), values(counted(before)).len()), Values::all(values(after)))
    };
    names.into_iter().map(|name| (name.clone(), sides(name))).collect()
}

/// A figure on one side.
#[derive(Debug, Default)]
struct Values {
    /// For the side as a whole.
    value: Option<f64>,
    /// By window or stretch, oldest first.
    all: Vec<f64>,
    /// How many of them, those nearest to the turn, belong to the side; the others only show how it varies.
    counted: usize,
}

impl Values {
    fn all(all: Vec<f64>) -> Self {
        let counted = all.len();
        Self::before(all, counted)
    }

    fn before(all: Vec<f64>, counted: usize) -> Self {
        let side = &all[all.len() - counted..];
        let value = (counted > 0).then(|| side.iter().sum::<f64>() / counted as f64);
        Self { value, all, counted }
    }

    fn pooled_after(windows: &[Arc<Samples>], one_in: u64) -> Self {
        let stretches = stretches(windows.iter(), one_in);
        Self::pooled(&stretches, stretches.len(), one_in)
    }

    /// Before a turn, the last windows count, and earlier ones only as far as needed.
    fn pooled_before(mut windows: Vec<Arc<Samples>>, last: usize, one_in: u64) -> Self {
        windows.reverse();
        let mut stretches = stretches(windows.iter(), one_in);
        let (mut counted, mut taken, mut samples) = (0, 0, 0);
        for stretch in &stretches {
            if taken >= last && samples / one_in >= crate::meter::latencies::latency::SAMPLES_BEYOND {
                break;
            }
            (counted, taken) = (counted + 1, taken + stretch.windows);
            samples += stretch.samples.count();
        }
        stretches.reverse();
        Self::pooled(&stretches, counted, one_in)
    }

    fn pooled(stretches: &[SampleStretch], counted: usize, one_in: u64) -> Self {
        let side = &stretches[stretches.len() - counted..];
        let value = Samples::pooled(side.iter().map(|stretch| &stretch.samples)).percentile(one_in);
        let all = stretches.iter().filter_map(|stretch| stretch.samples.level(one_in)).collect();
        Self { value: value.map(|ns| ns as f64), all, counted }
    }

    fn side(&self) -> &[f64] {
        &self.all[self.all.len().saturating_sub(self.counted)..]
    }

    fn range(&self) -> Option<(f64, f64)> {
        // A percentile of all I/Os may lie outside those of its stretches, if only by the width of a bucket.
        let value = self.value?;
        Some(
            self.side().iter().fold((value, value), |(low, high), value| (low.min(*value), high.max(*value))),
        )
    }
}

/// `wanders` is none if there may be no verdict; otherwise it is how far the figure is known to wander by itself.
fn changed(before: &Values, after: &Values, together: Together, wanders: Option<f64>) -> Change {
    let known = before.value.zip(after.value);
    let has_windows = before.counted.min(after.counted) >= WINDOWS_MIN;
    let estimate = wanders.zip(known).filter(|_| has_windows).and_then(|(wanders, wholes)| {
        let first = Side { windows: &before.all, counted: before.counted };
        let estimate = estimate::estimate(first, Side::of(&after.all), together)?;
        Some(estimate.of_wholes(wholes, together).beyond(wanders))
    });
    Change {
        before: before.value,
        before_range: before.range(),
        after: after.value,
        after_range: after.range(),
        interval: estimate.map(|estimate| (estimate.low, estimate.high)),
        verdict: estimate.map_or(Verdict::None, |estimate| estimate.verdict()),
        better: None,
    }
}

#[cfg(test)]
#[path = "turn_figures_tests.rs"]
mod tests;
