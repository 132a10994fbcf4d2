//! The plan for rebuilding the target.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::dialogs::typed;
use super::frame::{put, span, window};
use crate::ui::tui::planned::{Agreement, Tone};
use crate::ui::tui::state::State;
use crate::ui::tui::theme::Theme;

const CELLS_MAX: u16 = 100;
/// Cells and lines of the frame and its margin.
const FRAME: (u16, u16) = (4, 2);
/// The input line, counted from the last line.
const INPUT_FROM_END: usize = 2;

fn outer_cells(screen: Rect) -> u16 {
    CELLS_MAX.min(screen.width.saturating_sub(4))
}

fn cells(screen: Rect) -> usize {
    usize::from(outer_cells(screen).saturating_sub(FRAME.0))
}

/// How many of the plan's lines are visible at once on this screen.
pub fn rows(asked: &Agreement, screen: Rect) -> usize {
    let foot = asked.foot(cells(screen), 0).len();
    usize::from(screen.height.saturating_sub(FRAME.1)).saturating_sub(foot).max(1)
}

/// How far the plan can be scrolled on this screen.
pub fn overhang(asked: &Agreement, screen: Rect) -> usize {
    asked.lines(cells(screen)).len().saturating_sub(rows(asked, screen))
}

/// Draws the plan.
pub fn render(state: &State, asked: &Agreement, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let (lines, rows) = (asked.lines(cells(screen)), rows(asked, screen));
    let top = asked.top.min(lines.len().saturating_sub(rows));
    let shown = rows.min(lines.len());
    let foot = asked.foot(cells(screen), lines.len() - top - shown);
    let height = u16::try_from(shown + foot.len()).unwrap_or(u16::MAX).saturating_add(FRAME.1);
    let title = if asked.destroys() { "plan · this destroys data" } else { "plan" };
    let inner = window(theme, buf, screen, outer_cells(screen), height, title);
    let input = (asked.destroys() && asked.read).then(|| shown + foot.len() - 1 - INPUT_FROM_END);
    let all = lines.iter().skip(top).take(shown).chain(&foot);
    for (at, (y, (text, tone))) in (inner.y..inner.bottom()).zip(all).enumerate() {
        let line = match input {
            Some(input) if input == at => typed(state, &asked.consent.input, usize::from(inner.width)),
            _ => Line::from(span(text.clone(), style(theme, *tone))),
        };
        put(buf, inner.x, y, inner.width, &line);
    }
}

fn style(theme: &Theme, tone: Tone) -> Style {
    match tone {
        Tone::Heading => theme.title,
        Tone::Plain => theme.plain,
        Tone::Dim => theme.dim,
        Tone::Bad => theme.bad,
        Tone::Warn => theme.warn,
    }
}
