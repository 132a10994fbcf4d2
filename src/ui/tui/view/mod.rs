//! Drawing: one file per panel; each reads the state and writes cells.

mod believe;
mod charts;
mod classes;
mod cpu;
pub mod dialogs;
mod header;
pub mod help;
mod hints;
pub mod knobs;
mod ledger;
mod members;
mod notes;
pub mod pages;
pub mod plan;
mod too_small;

use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};

use super::dialog::Dialog;
use super::layout;
use super::state::{Focus, State};
use super::theme::Theme;
use crate::printable::{is_line, is_obeyed};
use crate::ui::text::{fit, width};

/// Draws a panel into its place.
type Render = fn(&State, &mut Buffer, Rect);

/// Draws the whole screen.
pub fn draw(state: &State, buf: &mut Buffer) {
    let screen = buf.area;
    buf.set_style(screen, state.theme.plain);
    let Some(areas) = layout::areas(screen, state.view) else {
        too_small::render(state, buf, screen);
        return;
    };
    header::render(state, buf, areas.header);
    knobs::render(state, buf, areas.knobs);
    classes::render(state, buf, areas.classes);
    let panels: [(Rect, Render); 5] = [
        (areas.charts, charts::render),
        (areas.cpu, cpu::render),
        (areas.members, members::render),
        (areas.notes, notes::render),
        (areas.ledger, ledger::render),
    ];
    for (area, render) in panels {
        if !area.is_empty() {
            render(state, buf, area);
        }
    }
    hints::message(state, buf, areas.message);
    hints::keys(state, buf, areas.hints);
    match &state.dialog {
        None => {}
        Some(
            Dialog::Help { top } | Dialog::Host { top } | Dialog::Believe { top } | Dialog::Failed { top },
        ) => {
            pages::render(state, *top, buf, screen);
        }
        Some(Dialog::Plan(asked)) => plan::render(state, asked, buf, screen),
        Some(dialog) => dialogs::render(state, dialog, buf, screen),
    }
    drop_obeyed(buf);
}

/// Removes from the cells what a terminal would obey: ratatui drops control characters alone.
fn drop_obeyed(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if !is_line(cell.symbol()) {
            let symbol = cell.symbol().replace(is_obeyed, "");
            cell.set_symbol(if symbol.is_empty() { " " } else { &symbol });
        }
    }
}

/// Writes a line, cut at the width.
fn put(buf: &mut Buffer, x: u16, y: u16, cells: u16, line: &Line) {
    if buf.area.contains((x, y).into()) {
        buf.set_line(x, y, line, cells.min(buf.area.right() - x));
    }
}

/// Draws a panel's title on a rule, with a remark beside it, and returns the area below.
fn panel(state: &State, buf: &mut Buffer, area: Rect, title: &str, remark: &str, focused: bool) -> Rect {
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
fn has_focus(state: &State, focus: Focus) -> bool {
    state.focus == focus && state.dialog.is_none()
}

/// Clears an area in the middle for a dialog, frames it, and returns the area inside.
fn window(theme: &Theme, buf: &mut Buffer, screen: Rect, cells: u16, lines: u16, title: &str) -> Rect {
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

fn centred(screen: Rect, cells: u16, lines: u16) -> Rect {
    let (w, h) = (cells.min(screen.width), lines.min(screen.height));
    Rect::new(screen.x + (screen.width - w) / 2, screen.y + (screen.height - h) / 2, w, h)
}

/// A span of text in a style.
fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}
