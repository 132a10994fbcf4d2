//! Which step of a sweep is best by what programs report, where their profile says which way that gets better.

use std::fmt::Write;

use super::by_step::{StepRow, SweepShown};
use crate::meter::spread::Spread;
use crate::settings::Better;
use crate::short_list;
use crate::ui::report::cells::paragraph;
use crate::ui::report::figures::{self, Figure};
use crate::units::three_digits;

const WIDTH: usize = 80;

/// A sentence for each such figure; empty where there is none, or nothing to compare.
pub(super) fn best(shown: &SweepShown) -> String {
    let runs = shown.steps.iter().flat_map(|row| &row.runs);
    let summaries: Vec<_> =
        runs.filter_map(|run| run.recording.as_ref()).map(|recording| &recording.summary).collect();
    let mut out = String::new();
    for figure in figures::of_runs(&summaries).into_iter().filter(Figure::is_metric) {
        let better = summaries.iter().rev().find_map(|summary| figure.better(summary));
        if let Some(text) = better.and_then(|better| of_figure(shown, &figure, better)) {
            let _ = write!(out, "\n{}\n", paragraph(&text, WIDTH, "  "));
        }
    }
    out
}

fn of_figure(shown: &SweepShown, figure: &Figure, better: Better) -> Option<String> {
    let mut rows: Vec<(&StepRow, &Spread)> =
        shown.steps.iter().filter_map(|row| Some((row, row.figures.get(&figure.key)?))).collect();
    short_list::sort_by(&mut rows, |(_, one), (_, other)| match better {
        Better::Higher => one.median > other.median,
        Better::Lower => one.median < other.median,
    });
    let ((best, spread), others) = rows.split_first()?;
    let second = others.first()?;
    let overlaps = |(_, other): &&(&StepRow, &Spread)| match better {
        Better::Higher => other.high >= spread.low,
        Better::Lower => other.low <= spread.high,
    };
    let is_known = rows.iter().all(|(_, spread)| spread.runs > 1);
    let sure = match others.iter().find(overlaps) {
        Some((other, _)) => format!("not clearly: its runs overlap with those of {}", other.step.label),
        None if is_known => "each of its runs is better than all others".to_owned(),
        None => "with one run of a step, how much they vary is unknown".to_owned(),
    };
    Some(format!(
        "Best by {} ({} is better): {} with {}, then {} with {}; {sure}.",
        figure.label,
        better.name(),
        best.step.label,
        three_digits(spread.median),
        second.0.step.label,
        three_digits(second.1.median),
    ))
}
