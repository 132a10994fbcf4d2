//! The palette: actions by name, with their keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::dialogs::typed;
use super::frame::{dialog_cells, inner_cells_max, put, span, window};
use crate::ui::text::{fit, left};
use crate::ui::tui::keys;
use crate::ui::tui::state::State;
use crate::ui::tui::typed::Typed;

const NAME_CELLS: usize = 28;
const KEY_CELLS: usize = 8;
/// Actions shown at once.
const ROWS: usize = 12;

/// Draws the list.
pub fn render(state: &State, input: &Typed, chosen: usize, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let found = keys::named(input, state.replay.is_some());
    let inner = window(
        theme,
        buf,
        screen,
        dialog_cells(screen, inner_cells_max(screen)),
        ROWS as u16 + 5,
        &format!("run an action {}/{}", (chosen + 1).min(found.len()), found.len()),
    );
    let cells = usize::from(inner.width);
    let first = chosen.saturating_sub(ROWS - 1);
    let mut lines = vec![typed(state, input, cells), Line::default()];
    lines.extend(found.iter().enumerate().skip(first).take(ROWS).map(|(at, row)| {
        let style = if at == chosen { theme.strong } else { theme.plain };
        Line::from(vec![
            span(if at == chosen { "▸ " } else { "  " }, theme.accent),
            span(left(row.name, NAME_CELLS), style),
            span(left(row.label, KEY_CELLS), theme.accent),
            span(fit(row.help, cells.saturating_sub(NAME_CELLS + KEY_CELLS + 2)), theme.dim),
        ])
    }));
    if found.is_empty() {
        lines.push(Line::from(span("no action has a name like that", theme.dim)));
    }
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}
