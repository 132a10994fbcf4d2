//! The list of drives, each with what is on it; one that can't be taken is faint, with the guard's reason.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::frame::{put, span, window};
use crate::runs::session::{Candidate, OnDevice};
use crate::ui::text::{fit, left, width, wrap};
use crate::ui::tui::filter::Filter;
use crate::ui::tui::state::State;

const CELLS: u16 = 100;
/// Lines below the list: details of the chosen drive, and what is on it in full.
const BELOW: usize = 5;
/// Lines of the frame, around the list, and of the last remark.
const FRAME: usize = 5;

/// The drives that the filter lets through: by name, what they are, and what is on them.
pub fn rows(found: &[Candidate], filter: &Filter) -> Vec<usize> {
    let text = |row: usize| {
        let candidate = &found[row];
        format!("{} {} {}", candidate.name, candidate.about, in_brief(candidate))
    };
    filter.rows(found.len(), &text)
}

/// Draws the list.
pub fn render(
    state: &State,
    (found, ticked): (Option<&[Candidate]>, &[String]),
    (chosen, filter): (usize, &Filter),
    buf: &mut Buffer,
    screen: Rect,
) {
    let theme = &state.theme;
    let wide = CELLS.min(screen.width.saturating_sub(4));
    let cells = usize::from(wide) - 4;
    let room = usize::from(screen.height).saturating_sub(BELOW + FRAME).max(1);
    let all = found.unwrap_or_default();
    let in_sight = rows(all, filter);
    let place = in_sight.iter().position(|row| *row == chosen);
    let mut lines = match found {
        None => vec![Line::from(span("the drives are being examined…", theme.dim))],
        Some([]) => vec![Line::from(span("this host has no drives", theme.dim))],
        Some(_) if in_sight.is_empty() => vec![Line::from(span("no drive matches", theme.dim))],
        Some(found) => {
            let first = place.unwrap_or(0).saturating_sub(room - 1);
            let shown: Vec<_> = in_sight.iter().skip(first).take(room).map(|&at| (at, &found[at])).collect();
            drawn(state, &shown, ticked, (chosen, width_of_names(found, cells)), cells)
        }
    };
    // Narrowing the list down doesn't move the lines below it.
    lines.resize(lines.len().max(all.len().min(room)), Line::default());
    lines.push(Line::default());
    if !all.is_empty() {
        let candidate = place.and_then(|_| all.get(chosen));
        let text = |of: &dyn Fn(&Candidate) -> String| candidate.map_or_else(String::new, of);
        let mut below = wrap(&text(&|candidate| candidate.about.clone()), cells);
        below.extend(wrap(&text(&in_full), cells));
        below.resize(BELOW, String::new());
        lines.extend(below.into_iter().map(|line| Line::from(span(line, theme.plain))));
    }
    let take = match ticked.len() {
        0 => "none ticked: the target is files".to_owned(),
        1 => "1 ticked".to_owned(),
        many => format!("{many} ticked, in this order"),
    };
    let beside = if filter.is_typed() {
        "tab ticks · Enter ticks and shows the whole list"
    } else {
        "nothing is written before its plan is confirmed"
    };
    lines.push(Line::from(span(format!("{take} · {beside}"), theme.dim)));
    let title = filter.titled("target.devices");
    let inner = window(theme, buf, screen, wide, lines.len() as u16 + 2, &title);
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

/// Cells of the names' column.
fn width_of_names(found: &[Candidate], cells: usize) -> usize {
    found.iter().map(|candidate| width(&candidate.name)).max().unwrap_or(0).min(cells / 2) + 2
}

fn drawn(
    state: &State,
    shown: &[(usize, &Candidate)],
    ticked: &[String],
    (chosen, names): (usize, usize),
    cells: usize,
) -> Vec<Line<'static>> {
    let theme = &state.theme;
    let row = |&(at, candidate): &(usize, &Candidate)| {
        let place = ticked.iter().position(|name| *name == candidate.name);
        let tick = place.map_or_else(|| "[ ] ".to_owned(), |place| format!("[{}] ", place + 1));
        let style = match (&candidate.found, at == chosen) {
            (OnDevice::Refused(_), _) => theme.dim,
            (_, true) => theme.strong,
            (_, false) => theme.plain,
        };
        let of_found = match candidate.found {
            OnDevice::Foreign(_) => theme.warn,
            OnDevice::Refused(_) => theme.dim,
            OnDevice::Held | OnDevice::Ours | OnDevice::Empty => theme.good,
        };
        Line::from(vec![
            span(if at == chosen { "▸ " } else { "  " }, theme.accent),
            span(tick.clone(), style),
            span(left(&fit(&candidate.name, names - 2), names), style),
            span(fit(&in_brief(candidate), cells.saturating_sub(names + width(&tick) + 2)), of_found),
        ])
    };
    shown.iter().map(row).collect()
}

fn in_brief(candidate: &Candidate) -> String {
    match &candidate.found {
        OnDevice::Held => "this run's".into(),
        OnDevice::Empty => "empty".into(),
        OnDevice::Ours => "filled by stacktune".into(),
        OnDevice::Foreign(content) => format!("destroyable: holds {}", content.join(", ")),
        OnDevice::Refused(why) => format!("can't: {why}"),
    }
}

fn in_full(candidate: &Candidate) -> String {
    match &candidate.found {
        OnDevice::Held => "This run is on it.".into(),
        OnDevice::Empty => "It holds nothing that would be lost.".into(),
        OnDevice::Ours => "It has a stacktune fill, which is kept if it still fits.".into(),
        OnDevice::Foreign(content) => format!(
            "It holds {}. That is destroyed only after the plan, once its serial is typed in full.",
            content.join(", ")
        ),
        OnDevice::Refused(why) => format!("It can't be a target: {why}"),
    }
}
