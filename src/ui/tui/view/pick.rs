//! The list of a knob's values: one that can't be chosen is faint, with its reason.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::frame::{dialog_cells, put, span, window};
use crate::ui::text::{fit, left, width, wrap};
use crate::ui::tui::filter::Filter;
use crate::ui::tui::state::State;
use crate::ui::tui::update::pick::{meaning, rows, values};

/// Lines below the list for the reason or the meaning.
const BELOW: usize = 3;

/// Draws the list.
pub fn render(state: &State, path: &str, (chosen, filter): (usize, &Filter), buf: &mut Buffer, screen: Rect) {
    let Some(knob) = state.find(path) else { return };
    let theme = &state.theme;
    let values = values(state, knob);
    let refused: Vec<_> = values.iter().map(|value| state.unavailable(knob, value)).collect();
    let beside = |at: usize| match &refused[at] {
        Some(reason) => format!("can't: {reason}"),
        None => meaning(knob, &values[at]).to_owned(),
    };
    let names: Vec<_> = values.iter().map(ToString::to_string).collect();
    let wide = names.iter().map(|name| width(name)).max().unwrap_or(0) + 2;
    let longest = (0..values.len()).map(|at| width(&beside(at))).max().unwrap_or(0);
    let outer = dialog_cells(screen, wide + 4 + longest);
    let cells = usize::from(outer) - 4;
    let now = state.settings_for(knob).map(|settings| knob.get(&settings));
    let help = wrap(knob.spec.help, cells);
    let room = usize::from(screen.height).saturating_sub(help.len() + BELOW + 6).max(1);
    let found = rows(knob, &values, filter);
    let place = found.iter().position(|row| *row == chosen);
    let first = place.unwrap_or(0).saturating_sub(room - 1);
    let mut lines: Vec<_> = help.into_iter().map(|line| Line::from(span(line, theme.plain))).collect();
    lines.push(Line::default());
    let end = lines.len() + values.len().min(room);
    for &at in found.iter().skip(first).take(room) {
        let style = match (&refused[at], at == chosen) {
            (Some(_), _) => theme.dim,
            (None, true) => theme.strong,
            (None, false) => theme.plain,
        };
        let mark = if Some(&values[at]) == now.as_ref() { "● " } else { "  " };
        lines.push(Line::from(vec![
            span(if at == chosen { "▸ " } else { "  " }, theme.accent),
            span(mark, theme.good),
            span(left(&names[at], wide), style),
            span(fit(&beside(at), cells.saturating_sub(wide + 4)), theme.dim),
        ]));
    }
    if found.is_empty() {
        lines.push(Line::from(span("no value matches", theme.dim)));
    }
    lines.resize(end, Line::default());
    lines.push(Line::default());
    // In full, as it may not fit beside the name.
    let (text, style) = match place.map(|_| &refused[chosen]) {
        Some(Some(reason)) => (format!("{} can't be chosen: {reason}", names[chosen]), theme.warn),
        Some(None) => (meaning(knob, &values[chosen]).to_owned(), theme.plain),
        None => (String::new(), theme.plain),
    };
    let mut below = wrap(&text, cells);
    below.resize(BELOW, String::new());
    lines.extend(below.into_iter().map(|line| Line::from(span(line, style))));
    let inner = window(theme, buf, screen, outer, lines.len() as u16 + 2, &filter.titled(path));
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}
