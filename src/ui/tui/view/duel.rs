//! A running duel: a dot for each pair, the interval of the change, and the time left.

use ratatui::style::Style;
use ratatui::text::Line;

use super::frame::span;
use crate::runs::duel::{PAIRS_MIN, Report};
use crate::runs::session::message::DuelShown;
use crate::ui::report::duel::begun_again;
use crate::ui::text::{bounds, fit, width};
use crate::ui::tui::state::State;
use crate::units::{SECOND_NS, approx_span, three_digits};

/// How far the scale may reach upwards, as fractions.
const SCALES: [f64; 7] = [0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0];
/// From this many pairs on, the time left is estimated from the evidence so far.
const ESTIMATED_FROM: usize = 3;

/// Its rows, at a width of `cells`.
pub fn rows(state: &State, shown: &DuelShown, cells: usize) -> Vec<Line<'static>> {
    let theme = &state.theme;
    let report = &shown.report;
    let [a, b] = &report.values;
    let title = format!("duel of {} by {}", report.knob, report.figure.name());
    let values = format!("A {a}, B {b}");
    let one_row = format!("{title}: {values}");
    let titles = if width(&one_row) <= cells { vec![one_row] } else { vec![title, values] };
    let titles = titles.iter().map(|text| Line::from(span(fit(text, cells), theme.strong)));
    let mut rows: Vec<_> = titles.collect();
    let scale = Scale::of(report, cells);
    rows.push(Line::from(span(scale.dots(report), theme.plain)));
    rows.push(Line::from(span(scale.bar(report), theme.accent)));
    rows.push(Line::from(span(scale.axis(), theme.dim)));
    rows.extend(words(shown, theme.plain, cells));
    rows.push(Line::from(span("─".repeat(cells), theme.rule)));
    rows
}

/// Pairs, evidence and the time left.
fn words(shown: &DuelShown, style: Style, cells: usize) -> Vec<Line<'static>> {
    let report = &shown.report;
    let mut words = vec![match report.pairs.len() {
        1 => "1 pair".to_owned(),
        pairs => format!("{pairs} pairs"),
    }];
    if let Some(why) = report.dropped.last() {
        words.push(format!("{} left out: {why}", report.dropped.len()));
    }
    words.extend(begun_again(report));
    if let Some(row) = report.figures.first().filter(|row| row.pairs > 0) {
        words.extend(row.interval.map(|interval| format!("change {}", bounds(row.change, interval))));
        words.push(format!("evidence {} of {}", three_digits(row.evidence.min(9999.0)), row.threshold));
    }
    let left_s = shown.left_ns_max as f64 / SECOND_NS as f64;
    words.push(match estimate_s(shown).filter(|estimate_s| *estimate_s < left_s) {
        Some(estimate_s) => format!("about {}, {} at most", approx_span(estimate_s), approx_span(left_s)),
        None => format!("{} at most", approx_span(left_s)),
    });
    let wrapped = crate::ui::text::wrap(&words.join(" · "), cells);
    wrapped.into_iter().map(|text| Line::from(span(text, style))).collect()
}

/// Seconds until the evidence suffices, if it keeps growing at the same rate.
fn estimate_s(shown: &DuelShown) -> Option<f64> {
    let row = shown.report.figures.first()?;
    let pairs = row.pairs as f64;
    let growth = row.evidence.ln() / pairs;
    let needed = (row.threshold.ln() / growth).max(PAIRS_MIN as f64);
    let is_known = row.pairs >= ESTIMATED_FROM && growth > 0.0;
    is_known.then(|| (needed - pairs).max(1.0) * shown.pair_ns as f64 / SECOND_NS as f64)
}

/// The scale of the lanes.
struct Scale {
    cells: usize,
    /// The change at the right end, as a fraction; the left end is its inverse, the same factor the other way.
    reach: f64,
}

impl Scale {
    /// The smallest scale that holds every pair.
    fn of(report: &Report, cells: usize) -> Self {
        let differences = report.differences().into_iter();
        let far = differences.fold(report.margin, |far, difference| far.max(difference.abs().exp_m1()));
        let reach = SCALES.into_iter().find(|reach| *reach >= far).unwrap_or(SCALES[SCALES.len() - 1]);
        // An odd number of cells, so that no change has one of its own.
        Self { cells: cells.saturating_sub(1) | 1, reach }
    }

    /// The cell of a difference, given as a logarithm; what is off the scale goes to its end.
    fn cell(&self, difference: f64) -> usize {
        let end = self.reach.ln_1p();
        let share = f64::midpoint(difference.clamp(-end, end) / end, 1.0);
        (share * (self.cells - 1) as f64).round() as usize
    }

    /// A dot for each pair; several in a cell are larger.
    fn dots(&self, report: &Report) -> String {
        let mut counts = vec![0; self.cells];
        for difference in report.differences() {
            counts[self.cell(difference)] += 1;
        }
        let middle = self.cell(0.0);
        let dot = |(cell, count): (usize, &u32)| match count {
            0 if cell == middle => '│',
            0 => ' ',
            1 => '·',
            2 => '•',
            _ => '●',
        };
        counts.iter().enumerate().map(dot).collect()
    }

    /// The interval of the change, and its median; empty before the first pair.
    fn bar(&self, report: &Report) -> String {
        let middle = self.cell(0.0);
        let row = report.figures.first().filter(|row| row.pairs > 0);
        let interval = row.and_then(|row| row.interval);
        let ends = interval.map(|(low, high)| (self.cell(low.ln_1p()), self.cell(high.ln_1p())));
        let median = row.and_then(|row| row.change).map(|change| self.cell(change.ln_1p()));
        let mark = |cell: usize| match ends {
            _ if median == Some(cell) => '◆',
            Some((low, _)) if cell == low => '├',
            Some((_, high)) if cell == high => '┤',
            Some((low, high)) if (low..high).contains(&cell) => '─',
            _ if cell == middle => '│',
            _ => ' ',
        };
        (0..self.cells).map(mark).collect()
    }

    /// The ends of the scale, and what they mean.
    fn axis(&self) -> String {
        let less = self.reach / (1.0 + self.reach);
        let (left, right) = (format!("B −{:.0}%", less * 100.0), format!("B +{:.0}%", self.reach * 100.0));
        let gap = self.cells.saturating_sub(width(&left) + width(&right));
        let middle = self.cell(0.0).saturating_sub(width(&left)).min(gap.saturating_sub(1));
        format!("{left}{}0{}{right}", " ".repeat(middle), " ".repeat(gap.saturating_sub(middle + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::fixture::{report, shown};

    #[test]
    fn dots_bar_and_axis_share_a_scale() {
        let report = report(&[1.10, 1.10, 1.12, 0.98, 1.11, 1.09, 1.10, 1.12]);
        let scale = Scale::of(&report, 42);
        assert_eq!((scale.cells, scale.reach), (41, 0.25));
        let (dots, bar, axis) = (scale.dots(&report), scale.bar(&report), scale.axis());
        for lane in [&dots, &bar, &axis] {
            assert_eq!(width(lane), 41, "{lane}");
        }
        let at = |lane: &str, c: char| lane.chars().position(|other| other == c).unwrap();
        assert_eq!(at(&dots, '│'), 20);
        assert_eq!(axis.chars().nth(20), Some('0'), "{axis}");
        assert!(at(&dots, '·') < 20 && at(&bar, '◆') > 20, "{dots}\n{bar}");
        assert!(dots.contains('●'), "{dots}");
        assert!(at(&bar, '├') < at(&bar, '◆') && at(&bar, '◆') < at(&bar, '┤'), "{bar}");
    }

    #[test]
    fn a_duel_without_pairs_and_one_beyond_the_scale_are_drawn() {
        for (factors, cells) in [(&[][..], 1), (&[], 40), (&[100.0, 0.001], 3), (&[1.0; 9], 80)] {
            let report = report(factors);
            let scale = Scale::of(&report, cells);
            assert_eq!(width(&scale.dots(&report)), scale.cells);
            assert_eq!(width(&scale.bar(&report)), scale.cells);
        }
    }

    #[test]
    fn the_time_left_follows_from_the_evidence() {
        assert_eq!(estimate_s(&shown(&[1.1, 1.1])), None);
        let clear = estimate_s(&shown(&[1.1, 1.1, 1.11, 1.1])).unwrap();
        assert!((8.0..=60.0).contains(&clear), "{clear}");
        let open = estimate_s(&shown(&[1.1, 0.9, 1.1, 0.9]));
        assert!(open.is_none_or(|s| s > 60.0), "{open:?}");
    }
}
