//! A recording's figures by window; percentiles by stretches of neighbouring windows, as in the ledger: taking only
//! the windows with enough I/Os of their own would be a biased selection.

use std::sync::Arc;

use super::figures::Figure;
use crate::class::Class;
use crate::error::Result;
use crate::meter::flag::FlagKind;
use crate::meter::latencies::stretches::StretchLevels;
use crate::meter::window::{Flag, Window};
use crate::runs::record::Recording;

/// The values of each of these figures in clean windows, oldest first.
pub fn by_window(figures: &[Figure], recording: &Recording) -> Vec<Vec<f64>> {
    let least_ns = least_ns(recording);
    let own = |figure: &Figure| {
        let clean = recording.windows.iter().filter(|window| is_clean(figure, window, least_ns));
        clean.filter_map(|window| figure.of_window(window)).collect()
    };
    let mut values: Vec<Vec<f64>> = figures.iter().map(own).collect();
    // Without a log of the samples there are only the windows' own percentiles; a note says that it is missing.
    for (values, levels) in values.iter_mut().zip(levels(figures, recording, least_ns).unwrap_or_default()) {
        if !levels.is_empty() {
            *values = levels;
        }
    }
    values
}

/// The percentiles of stretches, by figure; empty for other figures.
fn levels(figures: &[Figure], recording: &Recording, least_ns: u64) -> Result<Vec<Vec<f64>>> {
    let mut levels: Vec<Option<StretchLevels>> =
        figures.iter().map(|figure| figure.one_in().map(StretchLevels::new)).collect();
    recording.replay(|window| {
        // The percentiles of a latency are next to each other.
        let mut last = None;
        for (figure, levels) in figures.iter().zip(&mut levels) {
            let Some(levels) = levels else { continue };
            let latency = figure.key.rsplit_once('.').map(|(latency, _)| latency);
            if last.as_ref().is_none_or(|(of, _)| *of != latency) {
                let samples = figure.samples(&window).filter(|_| is_clean(figure, &window, least_ns));
                last = Some((latency, samples.map(Arc::new)));
            }
            if let Some((_, Some(samples))) = &last {
                levels.window(samples);
            }
        }
    })?;
    Ok(levels.into_iter().map(|levels| levels.map(StretchLevels::all).unwrap_or_default()).collect())
}

/// Whether this figure of a window can be compared.
fn is_clean(figure: &Figure, window: &Window, least_ns: u64) -> bool {
    let concerned = |class: &Class| figure.class.is_none_or(|own| own == *class);
    let classes = Class::ALL.iter().filter(|class| concerned(class));
    let mut flags = classes.flat_map(|&class| &window.class(class).flags).chain(&window.flags);
    let forbids = |flag: &Flag| flag.forbids_verdict || figure.is_of_processor() && flag.is(FlagKind::Others);
    window.is_clean() && window.duration_ns >= least_ns && !flags.any(forbids)
}

/// Half a window's length: a window cut short at an end spreads more than the others.
fn least_ns(recording: &Recording) -> u64 {
    let mut durations: Vec<_> = recording.windows.iter().map(|window| window.duration_ns).collect();
    durations.sort_unstable();
    durations.get(durations.len() / 2).map_or(0, |median| median / 2)
}
