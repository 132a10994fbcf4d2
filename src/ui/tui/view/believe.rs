//! Can I believe it? The seven pitfalls, this run's answer to each, and the figures behind them.

use ratatui::style::Style;

use crate::runs::pitfalls::{Light, pitfalls};
use crate::ui::report::sentences;
use crate::ui::text::{left, wrap};
use crate::ui::tui::state::State;

/// Cells of a light with its word.
const LIGHT_CELLS: usize = 8;
const NAME_CELLS: usize = 18;

/// The whole page.
pub fn text(state: &State, cells: usize) -> Vec<(String, Style)> {
    let theme = &state.theme;
    let figures = state.figures();
    let mut out = Vec::new();
    let (all, totals) = match (&state.replay, &state.status, &figures.totals) {
        (Some(replay), _, Some(totals)) => (replay.pitfalls.clone(), totals),
        (None, Some(status), Some(totals)) => {
            (pitfalls(&status.circumstances, totals.duration_s, &totals.steadiness, &totals.written), totals)
        }
        _ => return vec![("Nothing has been measured yet.".into(), theme.dim)],
    };
    if all.is_empty() {
        out.push(("The recording doesn't say how far the pitfalls were avoided.".into(), theme.dim));
    }
    for pitfall in all {
        let (sign, style) = match pitfall.light {
            Light::Good => ("●", theme.good),
            Light::Doubt => ("◐", theme.warn),
            Light::Bad => ("○", theme.bad),
        };
        let light = left(&format!("{sign} {}", pitfall.light.word()), LIGHT_CELLS);
        let head = format!("{light}{}", left(&pitfall.name, NAME_CELLS));
        let indent = LIGHT_CELLS + NAME_CELLS;
        for (i, part) in wrap(&pitfall.figure, cells.saturating_sub(indent)).into_iter().enumerate() {
            let before = if i == 0 { head.clone() } else { " ".repeat(indent) };
            out.push((format!("{before}{part}"), style));
        }
        if pitfall.advice.is_empty() {
            continue;
        }
        for part in wrap(&pitfall.advice, cells.saturating_sub(LIGHT_CELLS)) {
            out.push((format!("{}{part}", " ".repeat(LIGHT_CELLS)), theme.dim));
        }
    }
    let mut section = |title: &str, lines: Vec<String>| {
        if lines.is_empty() {
            return;
        }
        out.push((String::new(), theme.plain));
        out.push((title.into(), theme.title));
        for line in lines {
            for (i, part) in wrap(&line, cells.saturating_sub(2)).into_iter().enumerate() {
                out.push((format!("{}{part}", if i == 0 { "" } else { "  " }), theme.plain));
            }
        }
    };
    section("Amplification, since the measurement began", sentences::amplification(&totals.written));
    section("Steady state", sentences::steadiness(&totals.steadiness));
    section("Throughput", sentences::variability(&totals.variability).into_iter().collect());
    out
}
