//! The members with their own MB/s.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{panel, put, span};
use crate::meter::window::MemberFigures;
use crate::tui::state::State;
use crate::tui::text::{NONE, fit_end, left, mb, right};
use crate::units::mb_per_s;

const FIGURE_CELLS: usize = 7;

/// Draws it.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let inner = panel(state, buf, area, "members", "MB/s", false);
    let figures = state.figures();
    let (members, duration_ns) = match (&figures.window, &figures.totals) {
        (_, Some(totals)) if state.cumulative => (&totals.members, (totals.duration_s * 1e9) as u64),
        (Some(window), _) if !state.cumulative => (&window.members, window.duration_ns),
        _ => return,
    };
    let theme = &state.theme;
    // The block layer's own count stands beside the engine's, of devices.
    let block = members.iter().any(|m| m.block_read_bytes.is_some() || m.block_written_bytes.is_some());
    let titles: &[&str] = if block { &["read", "block", "written", "block"] } else { &["read", "written"] };
    let figures_cells = titles.len() * (FIGURE_CELLS + 1);
    let name_cells = usize::from(inner.width).saturating_sub(figures_cells).min(28);
    let mut title = left("member", name_cells);
    for text in titles {
        title += &right(text, FIGURE_CELLS + 1);
    }
    let mut lines = vec![Line::from(span(title, theme.dim))];
    let room = usize::from(inner.height).saturating_sub(1);
    let shown = if members.len() > room { room.saturating_sub(1) } else { members.len() };
    for member in &members[..shown] {
        let rates = rates(member, block, duration_ns);
        let figures: String = rates.iter().map(|rate| right(rate, FIGURE_CELLS + 1)).collect();
        let name = left(&fit_end(&member.name, name_cells.saturating_sub(1)), name_cells);
        lines.push(Line::from(vec![span(name, theme.dim), span(figures, theme.plain)]));
    }
    if shown < members.len() {
        lines.push(Line::from(span(format!("and {} more", members.len() - shown), theme.dim)));
    }
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

fn rates(member: &MemberFigures, block: bool, duration_ns: u64) -> Vec<String> {
    let rate = |bytes: u64| mb(mb_per_s(bytes, duration_ns));
    let counted = |bytes: Option<u64>| bytes.map_or_else(|| NONE.into(), rate);
    if block {
        return vec![
            rate(member.read_bytes),
            counted(member.block_read_bytes),
            rate(member.written_bytes),
            counted(member.block_written_bytes),
        ];
    }
    vec![rate(member.read_bytes), rate(member.written_bytes)]
}
