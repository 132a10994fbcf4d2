//! The members with their MB/s, and how warm the drives below them are.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::frame::{panel, put, span};
use crate::host::Throttling;
use crate::meter::window::{MemberFigures, ProgramFigures};
use crate::ui::report::sentences;
use crate::ui::text::{NONE, fit, left, mb, right, shortened, width};
use crate::ui::tui::state::State;
use crate::units::mb_per_s;

const FIGURE_CELLS: usize = 7;
const NAME_CELLS_MAX: usize = 28;

/// A column of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Read,
    BlockRead,
    Written,
    BlockWritten,
    Temperature,
}

/// Draws the panel.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let inner = panel(state, buf, area, "members", "MB/s", false);
    let figures = state.figures();
    let (members, duration_ns, engine, program) = match (&figures.window, &figures.totals) {
        (_, Some(totals)) if state.cumulative => {
            let duration_ns = (totals.duration_s * 1e9) as u64;
            (&totals.members, duration_ns, &totals.engine, &totals.program)
        }
        (Some(window), _) if !state.cumulative => {
            (&window.members, window.duration_ns, &window.engine, &window.program)
        }
        _ => return,
    };
    if let Some(program) = program {
        return of_program(state, buf, inner, (program, duration_ns));
    }
    let theme = &state.theme;
    let cells = usize::from(inner.width);
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let longest = names.iter().map(|name| width(name)).max().unwrap_or(0).min(NAME_CELLS_MAX);
    let columns = columns(members, cells.saturating_sub(longest));
    let name_cells = cells.saturating_sub(columns.len() * (FIGURE_CELLS + 1)).min(NAME_CELLS_MAX);
    let mut title = left(if name_cells < 6 { "" } else { "member" }, name_cells);
    for column in &columns {
        title += &right(column.title(), FIGURE_CELLS + 1);
    }
    let mut lines = vec![Line::from(span(title, theme.dim))];
    let room = usize::from(inner.height).saturating_sub(1);
    let shown = if members.len() > room { room.saturating_sub(1) } else { members.len() };
    for (member, name) in members[..shown].iter().zip(shortened(&names, name_cells)) {
        let mut spans = vec![span(left(&name, name_cells), theme.dim)];
        spans.extend(columns.iter().map(|column| {
            let troubled = *column == Column::Temperature && member.throttling > Some(Throttling::No);
            let style = if troubled { theme.warn } else { theme.plain };
            span(right(&column.figure(member, duration_ns), FIGURE_CELLS + 1), style)
        }));
        lines.push(Line::from(spans));
    }
    if shown < members.len() {
        lines.push(Line::from(span(format!("and {} more", members.len() - shown), theme.dim)));
    }
    let sentences_of = |engine| sentences::engine(engine, duration_ns as f64 / 1e9, state.cumulative);
    for line in engine.as_ref().map(sentences_of).unwrap_or_default() {
        lines.push(Line::from(span(fit(&line, cells), theme.plain)));
    }
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

/// MB/s at the top of the stack and on the drives, when a program is the load: its folder is the only member.
fn of_program(state: &State, buf: &mut Buffer, inner: Rect, (of, duration_ns): (&ProgramFigures, u64)) {
    let rate =
        |bytes: Option<u64>| bytes.map_or_else(|| NONE.into(), |bytes| mb(mb_per_s(bytes, duration_ns)));
    let rows = [
        ("", "read".to_owned(), "written".to_owned(), state.theme.dim),
        ("top", rate(of.top_read_bytes), rate(of.top_written_bytes), state.theme.plain),
        ("drives", rate(of.drives_read_bytes), rate(of.drives_written_bytes), state.theme.plain),
    ];
    let cells = usize::from(inner.width).saturating_sub(2 * (FIGURE_CELLS + 1)).min(NAME_CELLS_MAX);
    for (y, (name, read, written, style)) in (inner.y..inner.bottom()).zip(rows) {
        let figures = right(&read, FIGURE_CELLS + 1) + &right(&written, FIGURE_CELLS + 1);
        let line = Line::from(vec![span(left(name, cells), state.theme.dim), span(figures, style)]);
        put(buf, inner.x, y, inner.width, &line);
    }
}

/// The columns that fit beside the names in that many cells. For devices, the block layer's count is shown
/// beside stacktune's; if there is little room, the names matter more, and a flag reports any difference.
fn columns(members: &[MemberFigures], cells: usize) -> Vec<Column> {
    let block = members.iter().any(|m| m.block_read_bytes.is_some() || m.block_written_bytes.is_some());
    let warm = members.iter().any(|m| m.temperature_c.is_some() || m.throttling.is_some());
    let warm = warm.then_some(Column::Temperature);
    let full = [Column::Read, Column::BlockRead, Column::Written, Column::BlockWritten];
    let fits = (full.len() + usize::from(warm.is_some())) * (FIGURE_CELLS + 1) <= cells;
    let figures = if block && fits { full.to_vec() } else { vec![Column::Read, Column::Written] };
    figures.into_iter().chain(warm).collect()
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Written => "written",
            Self::BlockRead | Self::BlockWritten => "block",
            Self::Temperature => "°C",
        }
    }

    fn figure(self, member: &MemberFigures, duration_ns: u64) -> String {
        let rate = |bytes: Option<u64>| bytes.map_or_else(|| NONE.into(), |b| mb(mb_per_s(b, duration_ns)));
        match self {
            Self::Read => rate(Some(member.read_bytes)),
            Self::BlockRead => rate(member.block_read_bytes),
            Self::Written => rate(Some(member.written_bytes)),
            Self::BlockWritten => rate(member.block_written_bytes),
            Self::Temperature => temperature(member),
        }
    }
}

/// The temperature, with a word if the drive is throttled, or hot enough to be.
fn temperature(member: &MemberFigures) -> String {
    let degrees = member.temperature_c.map_or_else(|| NONE.into(), |c| format!("{c:.0}"));
    match member.throttling {
        Some(Throttling::Yes) => format!("{degrees} slow"),
        Some(Throttling::Hot) => format!("{degrees} hot"),
        Some(Throttling::No) | None => degrees,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(throttling: Option<Throttling>) -> MemberFigures {
        let counted = Some(1_000_000);
        MemberFigures {
            read_bytes: 1_000_000,
            block_read_bytes: counted,
            block_written_bytes: counted,
            temperature_c: Some(71.6),
            throttling,
            ..MemberFigures::default()
        }
    }

    #[test]
    fn a_throttled_drive_is_marked_by_a_word() {
        let all = [None, Some(Throttling::No), Some(Throttling::Hot), Some(Throttling::Yes)];
        let texts = all.map(|throttling| temperature(&member(throttling)));
        assert_eq!(texts, ["72", "72", "72 hot", "72 slow"]);
        assert!(texts.iter().all(|text| width(text) <= FIGURE_CELLS));
        assert_eq!(temperature(&MemberFigures::default()), NONE);
    }

    #[test]
    fn with_little_room_the_block_layers_count_is_dropped_before_the_names() {
        let members = [member(None)];
        assert_eq!(columns(&members, 40).len(), 5);
        assert_eq!(columns(&members, 39), [Column::Read, Column::Written, Column::Temperature]);
        let files = [MemberFigures::default()];
        assert_eq!(columns(&files, 80), [Column::Read, Column::Written]);
    }
}
