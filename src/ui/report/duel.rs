//! A duel, as text.

use std::fmt::Write;

use super::cells::{WIDTH, left, paragraph, right};
use super::stack_properties;
use crate::meter::duel_outcome::{DuelOutcome, DuelVerdict};
use crate::meter::window::LedgerLine;
use crate::printable::line;
use crate::runs::build_duel::Cost;
use crate::runs::duel::report::DuelRow;
use crate::runs::duel::{Begins, Report};
use crate::ui::text::{bounds, fit, signed_percent, unsigned_percent, width};
use crate::units::{approx_size, approx_span, three_digits};

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
    let s = if pairs == 1 { "" } else { "s" };
    let (settling, measured) = report.block_windows;
    let left_out = match report.begins {
        Begins::Turned => format!("those of the turn and the next {settling} don't"),
        Begins::Uncached => format!("those that empty the page cache and the next {settling} don't"),
        Begins::Built => format!("the first {settling} on what was built for it don't"),
    };
    let _ = writeln!(out, "{pairs} pair{s} of blocks; {measured} windows of each block count, {left_out}");
    if dropped > 0 {
        let _ = writeln!(
            out,
            "{dropped} more do not count, the last because of: {}",
            report.dropped[dropped - 1]
        );
    }
    let lacking = report.lacking();
    if lacking > 0 {
        let _ = writeln!(
            out,
            "pairs that lack {} in one block, which keeps its value from winning: {lacking}",
            report.figure.name()
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

/// After how many pairs a duel has begun again, and why; none if it has not.
pub fn begun_again(report: &Report) -> Option<String> {
    let pairs: usize = report.unsettled.iter().map(Vec::len).sum();
    (pairs > 0).then(|| format!("begun again after {pairs}, as blocks need longer to settle"))
}

/// The cost of a duel that builds the storage for each block, one line per item.
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

fn between(change: Option<f64>, interval: Option<(f64, f64)>) -> String {
    interval.map_or_else(String::new, |interval| format!(" {}", bounds(change, interval)))
}

fn change(row: &DuelRow) -> String {
    let between = between(row.change, row.interval);
    match row.change.filter(|_| row.is_clear()) {
        Some(change) => signed_percent(change) + &between,
        None if row.pairs == 0 => "not measured: no pair counts".into(),
        None => format!("no clear difference{between}"),
    }
}

/// How it ended, in a sentence about A and B.
pub fn verdict(report: &Report) -> String {
    verdict_on(&report.outcome(), ["A", "B"])
}

/// How the duel of a ledger line ended, in a sentence about its values; none for a turn, and for a running duel.
pub fn verdict_of_line(turn: &LedgerLine) -> Option<String> {
    if turn.duel.is_empty() || turn.open {
        return None;
    }
    let values = [&turn.from, &turn.to].map(|value| line(value));
    // A recording may end before its duel does.
    let without = || "it had no verdict when the recording or the run ended".to_owned();
    let outcome = turn.duel_outcome.as_ref();
    Some(outcome.map_or_else(without, |outcome| verdict_on(outcome, values.each_ref().map(|value| &**value))))
}

/// The sentence about the values of these names. Beside the better value a sign would seem to be about that one, so
/// the change is in words that say which value it is of.
fn verdict_on(outcome: &DuelOutcome, [first, second]: [&str; 2]) -> String {
    let figure = line(&outcome.figure);
    let between = between(outcome.change, outcome.interval);
    let by = match outcome.change.filter(|_| outcome.is_clear) {
        Some(change) => {
            let word = if change < 0.0 { "lower" } else { "higher" };
            format!("{figure} {}% {word} with {second}{between}", unsigned_percent(change))
        }
        None if outcome.pairs == 0 => format!("{figure} not measured: no pair counts"),
        None => format!("{figure} no clear difference{between}"),
    };
    let why = outcome.why.as_deref().map_or("unknown".into(), line);
    match outcome.verdict {
        DuelVerdict::First => format!("{first} is better: {by}"),
        DuelVerdict::Second => format!("{second} is better: {by}"),
        DuelVerdict::LessDurable => {
            let less = if outcome.less_durable == Some(0) { first } else { second };
            format!("{less} does more, but is less durable, which is no gain: {by}")
        }
        DuelVerdict::NoDifference => {
            format!("no difference of {:.0}% or more: {by}", outcome.margin * 100.0)
        }
        DuelVerdict::Unclear => format!("unclear, {why}: {by}"),
        DuelVerdict::NotJudged => format!("can't be judged, because {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_beside_the_better_value_says_whose_it_is() {
        let outcome = DuelOutcome {
            verdict: DuelVerdict::First,
            figure: "scan MB/s".into(),
            pairs: 7,
            change: Some(-0.83),
            interval: Some((-0.85, -0.8)),
            is_clear: true,
            margin: 0.05,
            less_durable: None,
            why: None,
        };
        let said = verdict_on(&outcome, ["A", "B"]);
        assert_eq!(said, "A is better: scan MB/s 83% lower with B (−85 to −80%)");
        let mut turn = LedgerLine { from: "2".into(), to: "64".into(), ..LedgerLine::default() };
        assert_eq!(verdict_of_line(&turn), None);
        turn.duel = vec![(1, "2".into())];
        assert_eq!(
            verdict_of_line(&turn).as_deref(),
            Some("it had no verdict when the recording or the run ended")
        );
        let (verdict, change, interval) = (DuelVerdict::Second, Some(0.031), None);
        turn.duel_outcome = Some(DuelOutcome { verdict, change, interval, ..outcome });
        assert_eq!(verdict_of_line(&turn).as_deref(), Some("64 is better: scan MB/s 3.1% higher with 64"));
    }
}
