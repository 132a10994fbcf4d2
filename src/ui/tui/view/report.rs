//! A recording's summary, or a comparison, as `show` and `compare` print it: 80 columns wide, scrolled.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget};

use super::frame::{put, span, window};
use crate::ui::text::fit;
use crate::ui::tui::state::State;

/// Columns of the text.
const CELLS: u16 = 80;
/// Cells and lines of a frame around it, with its margin.
const FRAME: (u16, u16) = (4, 2);

/// Draws the text; a screen that is no wider than it has no frame.
pub fn render(
    state: &State,
    (title, text): (&str, Option<&str>),
    top: usize,
    buf: &mut Buffer,
    screen: Rect,
) {
    let theme = &state.theme;
    let text = text.unwrap_or("reading…");
    let (lines, rows) = size(Some(text), screen);
    let seen = (top + rows).min(lines);
    let place = format!("{}–{seen} of {lines}", top + 1);
    let inner = if screen.width >= CELLS + FRAME.0 {
        let title = format!("{} · {place} · Esc closes", fit(title, 40));
        window(theme, buf, screen, CELLS + FRAME.0, rows as u16 + FRAME.1, &title)
    } else {
        Clear.render(screen, buf);
        buf.set_style(screen, theme.plain);
        put(buf, screen.x, screen.y, screen.width, &Line::from(span(fit(title, 78), theme.title)));
        let keys = Rect { y: screen.bottom() - 1, height: 1, ..screen };
        put(buf, keys.x, keys.y, keys.width, &Line::from(span(format!("{place} · Esc closes"), theme.dim)));
        Rect { y: screen.y + 1, height: screen.height.saturating_sub(FRAME.1), ..screen }
    };
    for (y, line) in (inner.y..inner.bottom()).zip(text.lines().skip(top)) {
        put(buf, inner.x, y, inner.width, &Line::from(span(line.to_owned(), theme.plain)));
    }
}

/// The number of the text's lines, and how many are visible at once.
pub fn size(text: Option<&str>, screen: Rect) -> (usize, usize) {
    let lines = text.map_or(1, |text| text.lines().count()).max(1);
    let most = if screen.width >= CELLS + FRAME.0 {
        screen.height.saturating_sub(FRAME.1 + 2)
    } else {
        screen.height.saturating_sub(FRAME.1)
    };
    (lines, lines.min(usize::from(most)).max(1))
}
