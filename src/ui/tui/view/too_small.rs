//! What a screen shows that is too small: the size it needs.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::frame::{put, span};
use crate::ui::text::wrap;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::layout::MIN;
use crate::ui::tui::state::State;

/// Draws the message.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    if area.is_empty() {
        return;
    }
    let needs = format!("stacktune needs {}×{}, has {}×{}.", MIN.0, MIN.1, area.width, area.height);
    let more = "The load is still running. Enlarge the terminal, or quit with Ctrl-C.";
    let more = match state.dialog {
        Some(Dialog::Leave) => {
            "A stack is still in place: t tears it down and quits, k keeps it, Esc cancels."
        }
        _ => more,
    };
    let mut lines: Vec<_> = wrap(&needs, usize::from(area.width))
        .into_iter()
        .map(|text| Line::from(span(text, state.theme.strong)))
        .collect();
    let rest = wrap(more, usize::from(area.width)).into_iter();
    lines.extend(rest.map(|text| Line::from(span(text, state.theme.plain))));
    for (y, line) in (area.y..area.bottom()).zip(&lines) {
        put(buf, area.x, y, area.width, line);
    }
}
