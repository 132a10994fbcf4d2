//! A duel, as text.

use std::fmt::Write;

use super::cells::{left, paragraph, right};
use super::stack_properties;
use crate::runs::build_duel::Cost;
use crate::runs::duel::report::{DuelRow, Verdict};
use crate::runs::duel::{Begins, Report};
use crate::ui::text::{bounds, fit, signed_percent, width};
use crate::units::{approx_size, approx_span, three_digits};

/// Width of sentences.
const WIDTH: usize = 80;
/// That of the figures' names, which may be longer.
const NAMES: usize = 14;
const NAMES_MAX: usize = 32;

/// The verdict in a sentence, and a line for each figure.
pub fn duel(report: &Report) -> String {
    let [first, second] = &report.values;
    let mut out = String::new();
    let _ = writeln!(out, "duel of {}: A {first}, B {second}", report.knob);
    let _ = writeln!(out, "{}", verdict(report));
    let (pairs, dropped) = (report.pairs.len(), report.dropped.len());
    let (settling, measured) = report.block_windows;
    let left_out = match report.begins {
        Begins::Turned => format!("those of the turn and the next {settling} don't"),
        Begins::Uncached => format!("those that empty the page cache and the next {settling} don't"),
        Begins::Built => format!("the first {settling} on what was built for it don't"),
    };
    let _ = writeln!(out, "{pairs} pairs of blocks; {measured} windows of each block count, {left_out}");
    if dropped > 0 {
        let _ = writeln!(
            out,
            "{dropped} more do not count, the last because of: {}",
            report.dropped[dropped - 1]
        );
    }
    let rows = || report.figures.iter().filter(|row| row.pairs > 0);
    // A program's figures have names of its own.
    let longest = rows().map(|row| width(row.figure.name()) + 2).max().unwrap_or(0);
    let names = longest.clamp(NAMES, NAMES_MAX);
    let _ = writeln!(out, "\n{}{}{}", left("", names), left("B against A", 30), right("evidence", 18));
    for row in rows() {
        let (change, evidence) = (change(row), format!("{} of {}", evidence(row.evidence), row.threshold));
        let name = fit(row.figure.name(), names - 1);
        let _ = writeln!(out, "{}{}{}", left(&name, names), left(&change, 30), right(&evidence, 18));
    }
    let _ = writeln!(out, "\nseed {}: the order of each pair was a coin's choice", report.seed);
    out
}

/// What a duel costs for whose blocks the storage is built, a line each.
pub fn cost(cost: &Cost) -> String {
    let mut out = String::new();
    let Cost { builds, builds_max, .. } = cost;
    let _ = writeln!(out, "each block is built anew: {builds} builds at least, {builds_max} at most");
    let written = cost.writes_bytes.map_or("an unknown amount".to_owned(), approx_size);
    let _ = writeln!(out, "  {builds} builds write {written}, fills included; the load's writes are extra");
    let load = approx_span(cost.load_time.as_secs_f64());
    let _ = match cost.build_time {
        Some(time) => {
            let time = approx_span(time.as_secs_f64());
            writeln!(
                out,
                "  {builds} builds take about {time}, estimated from the last of each; the load {load}"
            )
        }
        None => writeln!(
            out,
            "  how long builds take is estimated after the first of each; the load takes {load}"
        ),
    };
    for sentence in stack_properties::wear(&cost.wear) {
        let _ = writeln!(out, "{}", paragraph(&sentence, WIDTH, "  "));
    }
    out
}

fn evidence(evidence: f64) -> String {
    if evidence < 10_000.0 { three_digits(evidence) } else { format!("{evidence:.0e}") }
}

fn change(row: &DuelRow) -> String {
    let between = row.interval.map_or_else(String::new, |interval| format!(" {}", bounds(interval)));
    match row.change.filter(|_| row.is_clear()) {
        Some(change) => signed_percent(change) + &between,
        None if row.pairs == 0 => "not measured: no pair counts".into(),
        None => format!("no clear difference{between}"),
    }
}

/// How it ended, in a sentence about A and B.
pub fn verdict(report: &Report) -> String {
    let row = report.figures.first();
    let by = row.map_or_else(String::new, |row| format!("{} {}", row.figure.name(), change(row)));
    let why = report.why.as_deref().unwrap_or("unknown");
    match report.verdict {
        Verdict::First => format!("A is better: {by}"),
        Verdict::Second => format!("B is better: {by}"),
        Verdict::LessDurable => {
            let less = if report.less_durable == Some(0) { "A" } else { "B" };
            format!("{less} does more, but is less durable, which is no gain: {by}")
        }
        Verdict::NoDifference => {
            format!("no difference of {:.0}% or more: {by}", report.margin * 100.0)
        }
        Verdict::Unclear => format!("unclear, {why}: {by}"),
        Verdict::NotJudged => format!("can't be judged, because {why}"),
    }
}
