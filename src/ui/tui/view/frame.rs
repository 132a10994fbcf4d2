//! What panels and dialogs are drawn with: titles, frames, lines and spans.

use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};

use crate::ui::text::{fit, width};
use crate::ui::tui::state::{Focus, State};
use crate::ui::tui::theme::Theme;

/// Cells of a dialog with its frame: on the narrowest screen, and with long text on a wide one.
const DIALOG_CELLS: [u16; 2] = [76, 110];

/// Writes a line, cut at the width.
pub fn put(buf: &mut Buffer, x: u16, y: u16, cells: u16, line: &Line) {
    if buf.area.contains((x, y).into()) {
        buf.set_line(x, y, line, cells.min(buf.area.right() - x));
    }
}

/// Draws a panel's title on a rule, with a remark beside it, and returns the area below.
pub fn panel(state: &State, buf: &mut Buffer, area: Rect, title: &str, remark: &str, focused: bool) -> Rect {
    let theme = &state.theme;
    let cells = usize::from(area.width);
    let mark = if focused { "▸ " } else { "─ " };
    let mut spans = vec![
        Span::styled(mark, if focused { theme.accent } else { theme.rule }),
        Span::styled(title.to_owned(), if focused { theme.accent.patch(theme.title) } else { theme.title }),
        Span::raw(" "),
    ];
    let used = 3 + width(title);
    if !remark.is_empty() && used + 6 < cells {
        let remark = fit(remark, cells - used - 3);
        spans.push(Span::styled(format!("{remark} "), theme.dim));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::styled("─".repeat(cells.saturating_sub(used)), theme.rule));
    put(buf, area.x, area.y, area.width, &Line::from(spans));
    Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
}

/// Whether this panel has the focus.
pub fn has_focus(state: &State, focus: Focus) -> bool {
    state.focus == focus && state.dialog.is_none()
}

/// Clears an area in the middle for a dialog, frames it, and returns the area inside.
pub fn window(theme: &Theme, buf: &mut Buffer, screen: Rect, cells: u16, lines: u16, title: &str) -> Rect {
    let area = centred(screen, cells, lines);
    Clear.render(area, buf);
    buf.set_style(area, theme.plain);
    ratatui::widgets::Block::bordered()
        .border_type(ratatui::widgets::BorderType::Rounded)
        .border_style(theme.accent)
        .title(Span::styled(format!(" {title} "), theme.title))
        .render(area, buf);
    area.inner(Margin::new(2, 1))
}

/// The cells of a dialog with its frame, given those of its longest line.
pub fn dialog_cells(screen: Rect, longest: usize) -> u16 {
    let [few, many] = DIALOG_CELLS;
    let most = screen.width.saturating_sub(4).clamp(few, many);
    u16::try_from(longest + 4).unwrap_or(most).clamp(few, most)
}

/// The most cells that a line of a dialog can have.
pub fn inner_cells_max(screen: Rect) -> usize {
    usize::from(dialog_cells(screen, usize::from(DIALOG_CELLS[1]))) - 4
}

/// The area in the middle of the screen, of that size at most.
pub fn centred(screen: Rect, cells: u16, lines: u16) -> Rect {
    let (w, h) = (cells.min(screen.width), lines.min(screen.height));
    Rect::new(screen.x + (screen.width - w) / 2, screen.y + (screen.height - h) / 2, w, h)
}

/// A span of text in a style.
pub fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}
