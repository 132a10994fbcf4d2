//! The contract with drives: how the latest I/Os of a running trace keep its five rules.

use ratatui::style::Style;

use crate::trace::Live;
use crate::trace::contract::{Light, Scores};
use crate::ui::report::{RULES, advice, rule_figures, size_table};
use crate::ui::text::{latency, left, wrap};
use crate::ui::tui::state::State;
use crate::units::grouped;

/// Cells of a light with its word, and of a rule's name.
const LIGHT_CELLS: usize = 17;
const NAME_CELLS: usize = 24;

/// The whole page.
pub fn text(state: &State, cells: usize) -> Vec<(String, Style)> {
    let (theme, tracing) = (&state.theme, &state.tracing);
    let Some(live) = &tracing.live else {
        let text = if tracing.is_on {
            "Tracing: scores follow after one second of I/O."
        } else {
            "Nothing has been traced yet. T traces the target's drives while the load runs, and this page shows how the \
             five rules of He et al. 2017 are kept."
        };
        return wrap(text, cells).into_iter().map(|line| (line, theme.dim)).collect();
    };
    let mut out = Vec::new();
    let mut add = |text: &str, style: Style| {
        out.extend(wrap(text, cells).into_iter().map(|line| (line, style)));
    };
    add(&heading(live, tracing.is_on), theme.dim);
    let window = state.figures().window.as_ref();
    if let Some(ns) = window.and_then(|window| window.traced_p99_ns) {
        let p99 = latency(Some(ns));
        let what = "of the drives' reads and writes in this window, from issue to completion";
        add(&format!("p99 {what}: {p99}."), theme.plain);
    }
    match (live.lost.all, live.lost.others()) {
        (0, _) => {}
        (completions, 0) => {
            let lost = grouped(completions);
            add(&format!("{lost} completions are missing: nothing is known of depth."), theme.warn);
        }
        (all, _) => {
            let lost = grouped(all);
            add(&format!("{lost} events are missing: nothing is judged by what is left."), theme.warn);
        }
    }
    for (name, scores) in tracing.drives.iter().zip(&live.scores) {
        out.push((String::new(), theme.plain));
        out.push((name.clone(), theme.title));
        match scores {
            Ok(scores) => drive(state, scores, cells, &mut out),
            Err(why) => out.extend(wrap(why, cells).into_iter().map(|line| (line, theme.dim))),
        }
    }
    out
}

fn heading(live: &Live, is_on: bool) -> String {
    let all = live.events;
    let of = if all > live.scored_max {
        format!("the last {} of {}", grouped(live.scored_max as u64), grouped(all as u64))
    } else {
        grouped(all as u64)
    };
    let end = if is_on { "" } else { " The trace has ended." };
    format!("By {of} issues and completions; `stacktune contract` scores a whole trace.{end}")
}

fn drive(state: &State, scores: &Scores, cells: usize, out: &mut Vec<(String, Style)>) {
    let theme = &state.theme;
    let lines = RULES.iter().zip(scores.lights()).zip(rule_figures(scores)).zip(advice(scores));
    for ((((rule, _), light), figure), advice) in lines {
        let (sign, style) = match light {
            Light::Good => ("●", theme.good),
            Light::Doubt => ("◐", theme.warn),
            Light::Poor => ("○", theme.bad),
            Light::Unjudged(_) => ("·", theme.dim),
        };
        let head = left(&format!("{sign} {}", light.name()), LIGHT_CELLS) + &left(rule, NAME_CELLS);
        let indent = LIGHT_CELLS + NAME_CELLS;
        for (i, part) in wrap(&figure, cells.saturating_sub(indent)).into_iter().enumerate() {
            let before = if i == 0 { head.clone() } else { " ".repeat(indent) };
            out.push((format!("{before}{part}"), style));
        }
        // The light of a rule that is not judged says why.
        if matches!(light, Light::Doubt | Light::Poor) {
            let advice = wrap(advice, cells.saturating_sub(2));
            out.extend(advice.into_iter().map(|part| (format!("  {part}"), theme.dim)));
        }
    }
    out.extend(size_table(scores).lines().map(|line| (line.to_owned(), theme.plain)));
}
