//! Charts of a sweep: over the knobs that it turns, or over time.

use std::cmp::Ordering;
use std::fmt::Write;

use super::by_step::{StepRow, SweepShown};
use crate::meter::spread::Spread;
use crate::settings::knobs;
use crate::short_list;
use crate::ui::report::chart::{self, Bar};
use crate::ui::report::figures::{self, Figure};
use crate::units::SECOND_NS;

/// The figures that charts show.
const CHARTED: [&str; 4] =
    ["total.mb_per_s", "classes.point.service_ns.p99", "classes.wal.service_ns.p99", "total.cycles_per_byte"];

/// Bars over the values of the one or two knobs that the steps turn, if one of them is a number; a sweep of one step is
/// shown over time.
pub(super) fn charts(shown: &SweepShown) -> String {
    if let [row] = &shown.steps[..] {
        return over_time(shown, row);
    }
    let Some((knobs, rows)) = by_knobs(shown) else { return String::new() };
    let mut out = String::new();
    for figure in charted(shown) {
        let bars: Vec<_> = rows.iter().map(|(value, row)| bar(value, row, &figure)).collect();
        if bars.iter().any(|bar| bar.value.is_some()) {
            let _ = write!(out, "\n{}", chart::bars(&format!("{} by {knobs}", figure.label), &bars));
        }
    }
    out
}

/// What programs report, then what is charted of classes.
fn charted(shown: &SweepShown) -> Vec<Figure> {
    let runs = shown.steps.iter().flat_map(|row| &row.runs);
    let summaries: Vec<_> =
        runs.filter_map(|run| run.recording.as_ref()).map(|recording| &recording.summary).collect();
    let mut all = figures::of_runs(&summaries);
    all.retain(|figure| figure.is_metric() || CHARTED.contains(&figure.key.as_str()));
    short_list::sort_by_key(&mut all, |figure| CHARTED.iter().position(|key| *key == figure.key));
    all
}

fn bar(value: &str, row: &StepRow, figure: &Figure) -> Bar {
    let spread = row.figures.get(&figure.key);
    let words = |spread: &Spread| {
        let range = (spread.runs > 1).then_some((spread.low, spread.high));
        let estimate = if figure.is_cycles() && row.is_estimated() { "≈" } else { "" };
        format!("{estimate}{}", figure.text(spread.median, range))
    };
    Bar {
        label: value.to_owned(),
        value: spread.map(|spread| spread.median),
        text: spread.map(words).unwrap_or_default(),
    }
}

/// The one or two knobs that all steps turn and nothing else, as text, with each step by its values in order; none if
/// neither is a number. Of two, the one with more numbers varies fastest.
fn by_knobs(shown: &SweepShown) -> Option<(String, Vec<(String, &StepRow)>)> {
    let paths: Vec<&str> = shown.steps.first()?.step.turns.iter().map(|(path, _)| path.as_str()).collect();
    let alike =
        |row: &StepRow| row.step.turns.iter().map(|(path, _)| path.as_str()).eq(paths.iter().copied());
    if !(1..=2).contains(&paths.len()) || !shown.steps.iter().all(alike) {
        return None;
    }
    let mut axes: Vec<_> = (0..paths.len()).map(|at| Axis::of(shown, at)).collect();
    short_list::sort_by_key(&mut axes, |axis| (axis.numbers, axis.values.len()));
    if !axes.last()?.numbers {
        return None;
    }
    let mut rows: Vec<_> = shown.steps.iter().collect();
    rows.sort_by_key(|row| axes.iter().map(|axis| axis.rank(row)).collect::<Vec<_>>());
    let label = |row: &StepRow| axes.iter().map(|axis| axis.value(row)).collect::<Vec<_>>().join(" ");
    let title = axes.iter().map(|axis| paths[axis.at]).collect::<Vec<_>>().join(" and ");
    Some((title, rows.into_iter().map(|row| (label(row), row)).collect()))
}

/// A knob that every step turns.
struct Axis<'a> {
    /// Its index among their turns.
    at: usize,
    /// Its values: numbers ascending, others in the order of the steps.
    values: Vec<&'a str>,
    /// Whether they are numbers.
    numbers: bool,
}

impl<'a> Axis<'a> {
    fn of(shown: &'a SweepShown, at: usize) -> Self {
        let mut values: Vec<&str> = Vec::new();
        for (_, value) in shown.steps.iter().map(|row| &row.step.turns[at]) {
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        let knob = shown.steps.first().and_then(|row| knobs::find(&row.step.turns[at].0));
        // A program's own knobs are in no table.
        let number = |value: &&str| match knob {
            Some(knob) => knob.parse(value).ok()?.as_number(),
            None => value.parse().ok(),
        };
        let numbers = values.iter().all(|value| number(value).is_some());
        if numbers {
            values.sort_by(|one, other| number(one).partial_cmp(&number(other)).unwrap_or(Ordering::Equal));
        }
        Self { at, values, numbers }
    }

    fn value<'b>(&self, row: &'b StepRow) -> &'b str {
        &row.step.turns[self.at].1
    }

    fn rank(&self, row: &StepRow) -> Option<usize> {
        self.values.iter().position(|value| *value == self.value(row))
    }
}

/// The first complete run of a step, window by window.
fn over_time(shown: &SweepShown, row: &StepRow) -> String {
    let Some(recording) = row.runs.iter().find_map(|run| run.recording.as_deref()) else {
        return String::new();
    };
    let mut out = String::new();
    for figure in charted(shown) {
        let points: Vec<_> = recording
            .windows
            .iter()
            .filter_map(|window| {
                let at_s = (window.start_ns + window.duration_ns) as f64 / SECOND_NS as f64;
                Some((at_s, figure.of_window(window)?))
            })
            .collect();
        // With fewer, a chart adds nothing to the table.
        if points.len() >= 10 {
            let title = format!("{} over time, {}", figure.label, recording.name());
            let _ = write!(out, "\n{}", chart::over_time(&title, &points, &|value| figure.text(value, None)));
        }
    }
    out
}
