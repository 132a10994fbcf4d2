//! What `attest` found, as text.

use std::fmt::Write;

use super::cells::{NONE, WIDTH, left, paragraph, right};
use crate::runs::attest::{Bundle, Check, CheckOutcome, CheckVerdict, Unit};
use crate::ui::text::{bounds, signed_percent};
use crate::units::{approx_decimal, format_latency, three_digits};

const VERDICT: usize = 6;
const TITLE: usize = 23;
const FIGURE: usize = 11;
/// The indentation of what to know about a check, below its title.
const INDENT: &str = "      ";

/// A table of all checks, and the number of each outcome.
pub fn attest(bundle: &Bundle) -> String {
    let columns = [right("stacktune", FIGURE), right("other", FIGURE), right("differs", 9)].concat();
    let mut out = format!("{}{columns}  allowed\n", left("", VERDICT + TITLE));
    bundle.checks.iter().for_each(|outcome| out.push_str(&lines(outcome)));
    let count = |verdict| bundle.count(verdict);
    let _ = writeln!(
        out,
        "\n{} passed, {} failed, {} not checkable here",
        count(CheckVerdict::Pass),
        count(CheckVerdict::Fail),
        count(CheckVerdict::NotCheckable)
    );
    out
}

/// A check in one line, and what to know about it below.
fn lines(outcome: &CheckOutcome) -> String {
    let row = outcome.check.row();
    let figure = |of: Option<f64>| of.map_or_else(|| NONE.to_owned(), |of| figure(of, outcome.unit));
    let allowed = outcome
        .allowed
        .filter(|(low, high)| low < high)
        .map_or_else(String::new, |allowed| bounds(None, allowed));
    let line = [
        left(verdict(outcome.verdict), VERDICT),
        left(row.title, TITLE),
        right(&figure(outcome.ours), FIGURE),
        right(&figure(outcome.theirs), FIGURE),
        right(&outcome.difference.map_or_else(String::new, signed_percent), 9),
        format!("  {allowed}"),
    ];
    let line = format!("{}\n", line.concat().trim_end());
    let notes =
        [outcome.beside.as_deref().map(|beside| format!("compared with {beside}")), outcome.why.clone()];
    let notes: Vec<_> = notes.into_iter().flatten().collect();
    let notes = paragraph(&format!("{INDENT}{}", notes.join(": ")), WIDTH, INDENT);
    if notes.trim().is_empty() { line } else { format!("{line}{notes}\n") }
}

fn verdict(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Pass => "pass",
        CheckVerdict::Fail => "FAIL",
        CheckVerdict::NotCheckable => NONE,
    }
}

fn figure(of: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => format_latency(of.round() as u64),
        Unit::Bytes => approx_decimal(of.round() as u64),
        Unit::Cores | Unit::Evidence => three_digits(of),
        Unit::CyclesPerSecond => format!("{} GHz", three_digits(of / 1e9)),
        Unit::Pages => format!("{of:.0}"),
    }
}

/// What is checked next, in words.
pub fn begins(checks: &[Check]) -> String {
    let titles: Vec<_> = checks.iter().map(|check| check.row().title).collect();
    format!("checking {}", titles.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_a_line_with_both_figures_or_the_reason() {
        let pairs = vec![(101_000.0, 100_000.0); 3];
        let pass = lines(&CheckOutcome::of_pairs(Check::LatencyP50, "fio-3.33", pairs));
        for part in ["pass  read latency p50", "101µs", "100µs", "+1.0%", "compared with fio-3.33"] {
            assert!(pass.contains(part), "{part}: {pass}");
        }
        let fail = lines(&CheckOutcome::of(Check::LostWrites, "planted", 59.0, 60.0));
        assert!(fail.contains(" 59 ") && fail.contains(" 60 ") && fail.contains("FAIL"), "{fail}");
        let none = lines(&CheckOutcome::not_checkable(Check::Cycles, "perf is not installed"));
        assert!(none.contains("perf is not installed") && !none.contains("pass"), "{none}");
        assert!(
            [pass, fail, none].iter().flat_map(|text| text.lines()).all(|line| line.chars().count() <= WIDTH)
        );
        assert_eq!(begins(&[Check::OwnCpu, Check::Cycles]), "checking own CPU, cycles");
    }
}
