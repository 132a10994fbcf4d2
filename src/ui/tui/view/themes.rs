//! The list of themes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::frame::{put, span, window};
use crate::ui::text::{fit, wrap};
use crate::ui::tui::filter::Filter;
use crate::ui::tui::state::State;
use crate::ui::tui::themes::ThemeEntry;

const CELLS: u16 = 60;
/// Lines below the list for what is wrong with the chosen one.
const BELOW: usize = 3;

/// The themes that the filter lets through: by name.
pub fn rows(entries: &[ThemeEntry], filter: &Filter) -> Vec<usize> {
    filter.rows(entries.len(), &|row| entries[row].name.clone())
}

/// Draws the list.
pub fn render(
    state: &State,
    entries: &[ThemeEntry],
    (chosen, filter): (usize, &Filter),
    buf: &mut Buffer,
    screen: Rect,
) {
    let theme = &state.theme;
    let cells = usize::from(CELLS) - 4;
    let room = usize::from(screen.height).saturating_sub(BELOW + 6).max(1);
    let found = rows(entries, filter);
    let place = found.iter().position(|row| *row == chosen);
    let first = place.unwrap_or(0).saturating_sub(room - 1);
    let row = |&at: &usize| {
        let entry = &entries[at];
        let style = match (&entry.theme, at == chosen) {
            (Err(_), _) => theme.dim,
            (Ok(_), true) => theme.strong,
            (Ok(_), false) => theme.plain,
        };
        let mark = span(if at == chosen { "▸ " } else { "  " }, theme.accent);
        Line::from(vec![mark, span(fit(&entry.name, cells - 2), style)])
    };
    let mut lines: Vec<_> = found.iter().skip(first).take(room).map(row).collect();
    if found.is_empty() {
        lines.push(Line::from(span("no theme matches", theme.dim)));
    }
    // Narrowing the list down doesn't move the lines below it.
    lines.resize(lines.len().max(entries.len().min(room)), Line::default());
    lines.push(Line::default());
    let (said, style) = match place.and_then(|_| entries.get(chosen)).map(|entry| &entry.theme) {
        Some(Err(why)) => (why.as_str(), theme.warn),
        _ => ("btop's theme files are in ~/.config/stacktune/themes", theme.dim),
    };
    let mut below = wrap(said, cells);
    below.resize(BELOW, String::new());
    lines.extend(below.into_iter().map(|line| Line::from(span(line, style))));
    let inner = window(theme, buf, screen, CELLS, lines.len() as u16 + 2, &filter.titled("theme"));
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}
