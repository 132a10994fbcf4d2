//! Which step of a sweep is best by what programs report, if their profile says which way is better. A step whose
//! commits are less durable than another's is never the best.

use std::fmt::Write;

use super::by_step::{StepRow, SweepShown};
use crate::meter::spread::Spread;
use crate::settings::Better;
use crate::short_list;
use crate::ui::report::cells::{WIDTH, paragraph};
use crate::ui::report::differences::{AsRun, less_durable_by};
use crate::ui::report::figures::{self, Figure};
use crate::units::three_digits;

/// A sentence for each such figure; empty if there is none, or nothing to compare.
pub(super) fn best(shown: &SweepShown) -> String {
    let runs = shown.steps.iter().flat_map(|row| &row.runs);
    let summaries: Vec<_> =
        runs.filter_map(|run| run.recording.as_ref()).map(|recording| &recording.summary).collect();
    let metrics: Vec<_> = figures::of_runs(&summaries).into_iter().filter(Figure::is_metric).collect();
    if metrics.is_empty() {
        return String::new();
    }
    let ran: Vec<Option<AsRun>> = shown
        .steps
        .iter()
        .map(|row| AsRun::of(row.runs.iter().find_map(|run| run.recording.as_ref())?))
        .collect();
    let mut out = String::new();
    for figure in metrics {
        let better = summaries.iter().rev().find_map(|summary| figure.better(summary));
        if let Some(text) = better.and_then(|better| of_figure((shown, &ran), &figure, better)) {
            let _ = write!(out, "\n{}\n", paragraph(&text, WIDTH, "  "));
        }
    }
    out
}

/// A step with its figure, and what makes it less durable than another.
struct Ranked<'a> {
    row: &'a StepRow,
    spread: &'a Spread,
    less: Vec<String>,
}

fn of_figure(
    (shown, ran): (&SweepShown, &[Option<AsRun>]),
    figure: &Figure,
    better: Better,
) -> Option<String> {
    let mut rows: Vec<Ranked> = shown
        .steps
        .iter()
        .zip(ran)
        .filter_map(|(row, run)| {
            let less = run.as_ref().map(|of| less_durable(of, ran)).unwrap_or_default();
            Some(Ranked { row, spread: row.figures.get(&figure.key)?, less })
        })
        .collect();
    short_list::sort_by(&mut rows, |one, other| match better {
        Better::Higher => one.spread.median > other.spread.median,
        Better::Lower => one.spread.median < other.spread.median,
    });
    let first = rows.iter().position(|ranked| ranked.less.is_empty())?;
    let (before, from) = rows.split_at(first);
    let (best, others) = from.split_first()?;
    let others: Vec<&Ranked> = others.iter().filter(|ranked| ranked.less.is_empty()).collect();
    if before.is_empty() && others.is_empty() {
        return None;
    }
    let median = |ranked: &Ranked| three_digits(ranked.spread.median);
    let mut text = format!(
        "Best by {} ({} is better): {} with {}",
        figure.label,
        better.name(),
        best.row.step.label,
        median(best)
    );
    match others.first() {
        Some(second) => {
            let (second, with) = (&second.row.step.label, median(second));
            let _ = write!(text, ", then {second} with {with}; {}.", sure(best, &others, better));
        }
        None => text += "; all others are less durable.",
    }
    for ranked in before {
        let (label, with, by) = (&ranked.row.step.label, median(ranked), ranked.less.join(", "));
        let _ = write!(text, " {label} has {with}, but is less durable ({by}), which is no gain.");
    }
    Some(text)
}

/// What makes data less durable than with the settings of another step.
fn less_durable(run: &AsRun, ran: &[Option<AsRun>]) -> Vec<String> {
    let mut less: Vec<_> =
        ran.iter().flatten().flat_map(|other| less_durable_by(run, &other.settings)).collect();
    less.sort_unstable();
    less.dedup();
    less
}

/// How sure it is that the first is better than the others.
fn sure(best: &Ranked, others: &[&Ranked], better: Better) -> String {
    let overlaps = |other: &&&Ranked| match better {
        Better::Higher => other.spread.high >= best.spread.low,
        Better::Lower => other.spread.low <= best.spread.high,
    };
    let is_known = others.iter().all(|ranked| ranked.spread.runs > 1) && best.spread.runs > 1;
    match others.iter().find(overlaps) {
        Some(other) => format!("not clearly: its runs overlap with those of {}", other.row.step.label),
        None if is_known => "each of its runs is better than all others".to_owned(),
        None => "with one run of a step, how much they vary is unknown".to_owned(),
    }
}
