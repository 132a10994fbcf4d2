//! The list of recordings, with the figures of the chosen one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::frame::{put, span, window};
use crate::printable::Shown as _;
use crate::runs::record::Listed;
use crate::ui::report::recordings::{date, figures, profile_and_length};
use crate::ui::text::{NONE, fit, fit_end, left, right, wrap};
use crate::ui::tui::shelf::Shelf;
use crate::ui::tui::state::State;
use crate::units::three_digits;

const CELLS_MAX: u16 = 100;
/// Rows of the list at most.
const ROWS_MAX: usize = 20;
/// Lines below the list, and those of the frame.
const BELOW: usize = 7;
const FRAME: usize = 4;

/// Draws the list.
pub fn render(state: &State, shelf: &Shelf, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let outer = CELLS_MAX.min(screen.width.saturating_sub(4));
    let cells = usize::from(outer).saturating_sub(4);
    let room = usize::from(screen.height).saturating_sub(BELOW + FRAME).clamp(1, ROWS_MAX);
    let text = |text: &str, style: Style| Line::from(span(text.to_owned(), style));
    let recordings = shelf.recordings();
    let found = shelf.rows(&shelf.filter);
    let place = found.iter().position(|row| *row == shelf.chosen);
    let first = place.unwrap_or(0).saturating_sub(room - 1);
    let rows = found.iter().skip(first).take(room);
    let mut lines: Vec<_> = rows.map(|&at| row(state, shelf, (at, &recordings[at]), cells)).collect();
    match &shelf.listed {
        None => lines.push(text("reading…", theme.dim)),
        Some(Err(error)) => {
            lines.extend(wrap(&error.one_line(), cells).iter().map(|part| text(part, theme.bad)));
        }
        Some(Ok(none)) if none.is_empty() => {
            lines.push(text("no recordings yet: r makes one of a run", theme.dim));
        }
        Some(Ok(_)) if found.is_empty() => lines.push(text("no recording matches", theme.dim)),
        Some(Ok(_)) => {}
    }
    // Narrowing the list down doesn't move the lines below it.
    lines.resize(lines.len().max(recordings.len().min(room)), Line::default());
    lines.push(Line::default());
    lines.extend(below(state, shelf, (place.and(shelf.chosen()), cells)));
    let title = match recordings.len() {
        0 => "recordings".to_owned(),
        _ => format!("recordings {}/{}", place.map_or(0, |place| place + 1), found.len()),
    };
    let title = shelf.filter.titled(&title);
    let inner = window(theme, buf, screen, outer, lines.len() as u16 + 2, &title);
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

/// A recording: whether it is marked, its date, profile, length, and all classes' throughput.
fn row(state: &State, shelf: &Shelf, (at, listed): (usize, &Listed), cells: usize) -> Line<'static> {
    const TAKEN: usize = 2 + 2 + 18 + 9 + 12;
    let theme = &state.theme;
    let (profile, length) = profile_and_length(listed);
    let mb = listed.figures.as_ref().map(|of| format!("{} MB/s", three_digits(of.mb_per_s)));
    let room = cells.saturating_sub(TAKEN);
    let style = match (at == shelf.chosen, listed.figures.is_some()) {
        (true, _) => theme.strong,
        (false, true) => theme.plain,
        (false, false) => theme.dim,
    };
    Line::from(vec![
        span(if at == shelf.chosen { "▸ " } else { "  " }, theme.accent),
        span(left(shelf.letter(listed).unwrap_or_default(), 2), theme.good),
        span(left(&date(listed), 18), theme.plain),
        span(left(&fit(&profile, room.saturating_sub(1)), room), style),
        span(right(&length, 9), theme.plain),
        span(right(&mb.unwrap_or_else(|| NONE.to_owned()), 12), theme.plain),
    ])
}

/// The chosen recording's folder and figures, and what the keys do.
fn below(state: &State, shelf: &Shelf, (chosen, cells): (Option<&Listed>, usize)) -> Vec<Line<'static>> {
    const FIGURES_LINES: usize = 2;
    let theme = &state.theme;
    let place = chosen.map_or_else(String::new, |listed| fit_end(&listed.dir.shown(), cells));
    let mut about = chosen.map_or_else(Vec::new, |listed| wrap(&figures(listed), cells));
    about.resize(FIGURES_LINES, String::new());
    let run = if state.replay.is_some() { "this recording" } else { "this run" };
    let mut lines = vec![Line::from(span(place, theme.dim))];
    lines.extend(about.into_iter().map(|line| Line::from(span(line, theme.plain))));
    let keys = if shelf.filter.is_typed() {
        "Enter reads its summary · tab marks it · Esc shows the whole list"
    } else {
        "Enter reads its summary · space marks it · c compares two · / filters"
    };
    lines.push(Line::from(span(keys, theme.dim)));
    let open = format!("`stacktune show DIR --screen` opens it once {run} is left");
    lines.push(Line::from(span(fit(&open, cells), theme.dim)));
    lines
}
