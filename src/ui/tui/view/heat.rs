//! The heat map: latency upwards on a logarithmic scale, time to the right, and how many I/Os fell where.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::Line;

use super::charts::{decade, draw_axis, marks_at, reversed};
use super::frame::{panel, put, span};
use crate::class::Class;
use crate::ui::tui::figures::Figures;
use crate::ui::tui::heat::{BUCKETS, Column, Counts, FIRST_DECADE, Latencies, PER_DECADE, TailOf};
use crate::ui::tui::state::State;
use crate::ui::tui::theme::Rgb;
use crate::units::approx_span;

const LABEL_CELLS: u16 = 6;
/// The least share of a column's I/Os that has a shade of its own, as a power of ten.
const LEAST_SHARE_LOG10: f64 = -5.0;
/// From this width on, the lines' names have room.
const LEGEND_CELLS: usize = 48;
const SHADES: [&str; 4] = ["░", "▒", "▓", "█"];

/// The buckets from the bottom to the top.
#[derive(Clone, Copy)]
struct Scale {
    low: usize,
    high: usize,
}

/// Where columns move to the left with each window.
pub fn plot(area: Rect) -> Rect {
    let [width, height] = [area.width.saturating_sub(LABEL_CELLS), area.height.saturating_sub(2)];
    Rect { x: area.x + LABEL_CELLS, y: area.y + 1, width, height }
}

/// Draws that of the chosen class, or of all.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    map(state, buf, area, state.tail_of, span_of);
}

/// Draws that of each class, where the screen has room for them.
pub fn of_classes(state: &State, buf: &mut Buffer, areas: &[Rect; 4]) {
    for (class, area) in Class::ALL.into_iter().zip(areas).filter(|(_, area)| !area.is_empty()) {
        map(state, buf, *area, TailOf::Class(class), |_, _, _| String::new());
    }
}

/// Draws a map; what `more` says of its columns, and that many cells, stands in its title, behind whose latency it is.
fn map(
    state: &State,
    buf: &mut Buffer,
    area: Rect,
    of: TailOf,
    more: fn(&State, &[Column], usize) -> String,
) {
    let figures = state.figures();
    let cells = usize::from(area.width.saturating_sub(LABEL_CELLS));
    let latencies = Latencies { of, response: state.response };
    let columns = columns(state, figures, cells, latencies);
    let remark = whose(state, of) + &more(state, &columns, cells);
    let inner = panel(state, buf, area, "latency", &remark, false);
    let plot = plot(area);
    let theme = &state.theme;
    // The same for both of two recordings, so that flipping between them shows what moved.
    let other = state.beside.as_ref();
    let other = other.map(|beside| self::columns(state, &beside.other.figures, cells, latencies));
    let Some(scale) = Scale::of(columns.iter().chain(other.iter().flatten())) else {
        let none =
            if state.replay.is_some() { "the recording has none of it" } else { "it has done no I/O yet" };
        put(buf, inner.x, inner.y, inner.width, &Line::from(span(none, theme.dim)));
        return;
    };
    let rows = usize::from(plot.height);
    let offset = cells - columns.len().min(cells);
    let ends: Vec<_> = columns.iter().map(|column| column.end_ns).collect();
    let marks = marks_at(figures, &ends, cells);
    for (n, column) in columns.iter().enumerate() {
        let x = plot.x + (offset + n) as u16;
        let shares = Shares { counts: &column.counts, total: column.counts.total() as f64, scale };
        let p = [100, 2].map(|one_in| Some(scale.row_of(column.counts.quantile(one_in)?, rows)));
        let over_it = over_column(state, column, offset + n, &marks);
        for row in 0..rows {
            let (symbol, style) = cell(state, &shares, row, rows);
            let y = plot.bottom() - 1 - row as u16;
            let (symbol, style) = match p {
                [Some(p99), _] if p99 == row => ("─", over(state, style)),
                [_, Some(p50)] if p50 == row => ("·", over(state, style)),
                _ => ruled(state, over_it, (symbol, style)),
            };
            let style = if over_it == Over::Cursor { reversed(style) } else { style };
            buf.set_string(x, y, symbol, style);
        }
    }
    labels(state, buf, inner, rows, scale);
    let axis = Rect { y: plot.bottom(), height: 1, ..inner };
    if axis.y < area.bottom() {
        draw_axis(state, buf, axis, LABEL_CELLS, &ends, &marks);
    }
}

/// The columns of that map.
fn columns(state: &State, figures: &Figures, cells: usize, latencies: Latencies) -> Vec<Column> {
    let timeline = &figures.timeline;
    if state.whole_run {
        timeline.whole(cells, latencies)
    } else {
        timeline.recent(cells, latencies, figures.shown_end_ns())
    }
}

/// What lies over a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Nothing,
    Turn,
    Cursor,
}

fn over_column(state: &State, column: &Column, at: usize, marks: &[(usize, u64)]) -> Over {
    if state.cursor_ns().is_some_and(|shown_end_ns| column.holds(shown_end_ns)) {
        return Over::Cursor;
    }
    if marks.iter().any(|mark| mark.0 == at) { Over::Turn } else { Over::Nothing }
}

/// A cell with what lies over its column: a line in the colour's cell, or in place of the fainter shades, so that the
/// bulk of the I/Os stays.
fn ruled(state: &State, over_it: Over, (symbol, style): (&'static str, Style)) -> (&'static str, Style) {
    let theme = &state.theme;
    let (line, own) = match over_it {
        Over::Nothing => return (symbol, style),
        Over::Turn => ("┊", theme.rule),
        Over::Cursor => ("│", theme.accent),
    };
    match symbol {
        " " => (line, own),
        _ if has_colors(state) => (line, over(state, style)),
        symbol if over_it == Over::Turn && SHADES[..2].contains(&symbol) => (line, own),
        _ => (symbol, style),
    }
}

/// Whose latency, and which.
fn whose(state: &State, of: TailOf) -> String {
    let name = match of {
        TailOf::All => "all",
        TailOf::Class(class) => class.name(),
    };
    let what = match (state.response, of) {
        (true, _) => "response",
        (false, TailOf::Class(Class::Wal)) => "commit",
        (false, _) => "service",
    };
    format!("{name} · {what}")
}

/// Over how long, and what the lines are.
fn span_of(state: &State, columns: &[Column], cells: usize) -> String {
    let span_ns = columns
        .first()
        .zip(columns.last())
        .map_or(0, |(first, last)| last.end_ns.saturating_sub(first.end_ns));
    let span = approx_span(span_ns as f64 / 1e9);
    if cells < LEGEND_CELLS {
        return format!(" {span} p99─ p50·");
    }
    let span = match (state.whole_run, state.replay.is_some()) {
        (true, _) => format!("whole run {span}"),
        (false, true) => span,
        (false, false) => format!("last {span}"),
    };
    format!(" · {span} · p99 ─ p50 ·")
}

impl Scale {
    /// That holds all of these; none if they are empty.
    fn of<'a>(columns: impl Iterator<Item = &'a Column>) -> Option<Self> {
        let spans: Vec<_> = columns.filter_map(|column| column.counts.span()).collect();
        let low = spans.iter().map(|span| span.0).min()? / PER_DECADE * PER_DECADE;
        let high = spans.iter().map(|span| span.1).max()?.max(low + PER_DECADE - 1).min(BUCKETS - 1);
        Some(Self { low, high })
    }

    /// The buckets of a row, the lowest row first.
    fn buckets(self, row: usize, rows: usize) -> std::ops::Range<usize> {
        let all = self.high + 1 - self.low;
        let from = self.low + row * all / rows;
        let to = self.low + (row + 1) * all / rows;
        from..to.max(from + 1)
    }

    /// The row of a bucket.
    fn row_of(self, bucket: usize, rows: usize) -> usize {
        (0..rows).rev().find(|row| self.buckets(*row, rows).start <= bucket).unwrap_or(0)
    }
}

/// The shares of a column's I/Os.
struct Shares<'a> {
    counts: &'a Counts,
    total: f64,
    scale: Scale,
}

impl Shares<'_> {
    /// That of a row; none if it is empty.
    fn of_row(&self, row: usize, rows: usize) -> Option<f64> {
        let within = self.counts.within(self.scale.buckets(row, rows));
        (within > 0).then(|| within as f64 / self.total)
    }
}

/// A cell of a column: two halves where there are colours, else a shade.
fn cell(state: &State, shares: &Shares<'_>, row: usize, rows: usize) -> (&'static str, Style) {
    let theme = &state.theme;
    if !has_colors(state) {
        let Some(share) = shares.of_row(row, rows) else { return (" ", theme.plain) };
        let level = match share {
            share if share >= 0.1 => 3,
            share if share >= 0.01 => 2,
            share if share >= 0.001 => 1,
            _ => 0,
        };
        return (SHADES[level], theme.plain);
    }
    let color = |half| shares.of_row(row * 2 + half, rows * 2).map(|share| shade(&theme.heat, share));
    match (color(1), color(0)) {
        (None, None) => (" ", theme.plain),
        (Some(upper), None) => ("▀", Style::new().fg(upper)),
        (None, Some(lower)) => ("▄", Style::new().fg(lower)),
        (Some(upper), Some(lower)) => ("▀", Style::new().fg(upper).bg(lower)),
    }
}

/// Whether cells are halves in colours. ASCII has no glyph for half a cell.
fn has_colors(state: &State) -> bool {
    !state.theme.heat.is_empty() && !state.ascii
}

/// The colour of a share, from the least to all.
fn shade(colors: &[Rgb], share: f64) -> Color {
    let level = 1.0 - share.log10().max(LEAST_SHARE_LOG10) / LEAST_SHARE_LOG10;
    let (r, g, b) = colors[(level * (colors.len() - 1) as f64).round() as usize];
    Color::Rgb(r, g, b)
}

/// A line over the map: on the colour of the cell.
fn over(state: &State, cell: Style) -> Style {
    let line = state.theme.strong;
    cell.bg.or(cell.fg).filter(|_| has_colors(state)).map_or(line, |bg| line.bg(bg))
}

/// The decades beside it.
fn labels(state: &State, buf: &mut Buffer, inner: Rect, rows: usize, scale: Scale) {
    let theme = &state.theme;
    let first = scale.low.div_ceil(PER_DECADE);
    let mut last_row = None;
    for decade_at in first..=scale.high / PER_DECADE {
        let row = scale.row_of(decade_at * PER_DECADE, rows);
        if last_row == Some(row) {
            continue;
        }
        last_row = Some(row);
        let y = inner.y + (rows - 1 - row) as u16;
        let text = decade(FIRST_DECADE + i32::try_from(decade_at).unwrap_or(0));
        let text = format!("{text:>5}");
        put(buf, inner.x, y, LABEL_CELLS, &Line::from(span(text, theme.dim)));
    }
}
