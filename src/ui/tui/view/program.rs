//! A program as the load: what it reports and uses over time, in place of the classes and their charts.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::frame::{panel, put, span};
use crate::meter::window::{ProgramFigures, Window};
use crate::printable;
use crate::ui::report;
use crate::ui::text::{NONE, fit, left, paragraph, right};
use crate::ui::tui::charts::{bar, round_up};
use crate::ui::tui::layout::Areas;
use crate::ui::tui::state::State;
use crate::units::three_digits;

const NAME_CELLS: usize = 16;
const VALUE_CELLS: usize = 8;
const UNIT_CELLS: usize = 12;

/// A figure of a program in a window of that length.
type Figure = fn(&ProgramFigures, f64) -> Option<f64>;

/// What is drawn over time for every program: name, unit, figure.
const USED: [(&str, &str, Figure); 6] = [
    ("cores", "", |of, s| Some(of.cpu_ns? as f64 / 1e9 / s)),
    ("read", "MB/s", |of, s| Some(of.top_read_bytes? as f64 / 1e6 / s)),
    ("written", "MB/s", |of, s| Some(of.top_written_bytes? as f64 / 1e6 / s)),
    ("mean latency", "ms, drives", |of, _| Some(of.drives_mean_ns()? / 1e6)),
    ("waits for I/O", "% of the time", |of, s| Some(of.io_some_ns? as f64 / 1e7 / s)),
    ("memory", "MB", |of, _| Some(of.memory_bytes? as f64 / 1e6)),
];

/// Draws its panels if the shown window is of a program; returns whether it is.
pub fn render(state: &State, buf: &mut Buffer, areas: &Areas) -> bool {
    let figures = state.figures();
    let Some(window) = figures.window.as_ref().filter(|window| window.program.is_some()) else {
        return false;
    };
    let cells = usize::from(areas.classes.width.max(areas.charts.width));
    let windows = figures.windows(cells);
    metrics(state, buf, areas.classes, &windows);
    let whole = figures.totals.as_ref().filter(|_| state.cumulative);
    let (program, seconds) = match whole {
        Some(totals) => (totals.program.as_ref(), totals.duration_s),
        None => (window.program.as_ref(), window.duration_ns as f64 / 1e9),
    };
    let text = program.map(|program| report::program_used(program, seconds)).unwrap_or_default();
    // If there is room for only one of the two, it is the first.
    let [over_time, words] =
        if areas.heat.is_empty() { [areas.charts, Rect::default()] } else { [areas.charts, areas.heat] };
    used(state, buf, over_time, &windows);
    if !words.is_empty() {
        let inner = panel(state, buf, words, "program", "what it used", false);
        let lines = text.iter().flat_map(|line| lines_of(line, usize::from(inner.width)));
        for (y, line) in (inner.y..inner.bottom()).zip(lines) {
            put(buf, inner.x, y, inner.width, &Line::from(span(line, state.theme.plain)));
        }
    }
    true
}

fn lines_of(text: &str, cells: usize) -> Vec<String> {
    paragraph(text, cells.max(20), "  ").lines().map(str::to_owned).collect()
}

/// What the program reports of itself.
fn metrics(state: &State, buf: &mut Buffer, area: Rect, windows: &[Arc<Window>]) {
    let inner = panel(state, buf, area, "program", "what it reports", false);
    let reported = |window: &Window, name: &str| Some(window.program.as_ref()?.metrics.get(name)?.mean);
    let mut names: Vec<(&String, &str)> = windows
        .iter()
        .filter_map(|window| window.program.as_ref())
        .flat_map(|program| &program.metrics)
        .map(|(name, metric)| (name, metric.unit.as_str()))
        .collect();
    names.sort_unstable();
    names.dedup_by_key(|(name, _)| *name);
    if names.is_empty() {
        let text = "nothing yet: [command.metrics] says what to look for in its output";
        put(buf, inner.x, inner.y, inner.width, &Line::from(span(text, state.theme.dim)));
    }
    let below = inner.y.saturating_add(names.len().max(1) as u16).min(inner.bottom());
    for (y, (name, unit)) in (inner.y..inner.bottom()).zip(names) {
        let series: Vec<_> = windows.iter().map(|window| reported(window, name)).collect();
        row(state, buf, Rect { y, height: 1, ..inner }, (name, unit), &series);
    }
    if state.frozen.is_none() && state.replay.is_none() {
        printed(state, buf, Rect { y: below, height: inner.bottom() - below, ..inner });
    }
}

/// The last lines that it printed.
fn printed(state: &State, buf: &mut Buffer, area: Rect) {
    let first = state.printed.len().saturating_sub(usize::from(area.height));
    for (y, line) in (area.y..area.bottom()).zip(&state.printed[first..]) {
        let line = fit(&printable::line(line), usize::from(area.width));
        put(buf, area.x, y, area.width, &Line::from(span(line, state.theme.dim)));
    }
}

/// What the program uses.
fn used(state: &State, buf: &mut Buffer, area: Rect, windows: &[Arc<Window>]) {
    if area.is_empty() {
        return;
    }
    let inner = panel(state, buf, area, "uses", "over time, from 0", false);
    for (y, (name, unit, figure)) in (inner.y..inner.bottom()).zip(USED) {
        let of = |window: &Arc<Window>| figure(window.program.as_ref()?, window.duration_ns as f64 / 1e9);
        let series: Vec<_> = windows.iter().map(of).collect();
        row(state, buf, Rect { y, height: 1, ..inner }, (name, unit), &series);
    }
}

/// A figure: its latest value, and its course.
fn row(state: &State, buf: &mut Buffer, area: Rect, (name, unit): (&str, &str), series: &[Option<f64>]) {
    let theme = &state.theme;
    let last = series.iter().rev().find_map(|value| *value);
    let room = usize::from(area.width).saturating_sub(NAME_CELLS + VALUE_CELLS + UNIT_CELLS + 2);
    let shown = &series[series.len().saturating_sub(room)..];
    let end = round_up(shown.iter().flatten().copied().fold(0.0, f64::max));
    let column = |value: &Option<f64>| value.map_or(' ', |value| bar(value, end, 1)[0]);
    let bars: String = shown.iter().map(column).collect();
    let value = last.map_or_else(|| NONE.to_owned(), three_digits);
    let name = left(&fit(&printable::line(name), NAME_CELLS), NAME_CELLS);
    let unit = left(&fit(&printable::line(unit), UNIT_CELLS), UNIT_CELLS);
    let spans = vec![
        span(name, theme.dim),
        span(right(&value, VALUE_CELLS), theme.strong),
        span(format!(" {unit} "), theme.dim),
        span(bars, theme.accent),
    ];
    put(buf, area.x, area.y, area.width, &Line::from(spans));
}
