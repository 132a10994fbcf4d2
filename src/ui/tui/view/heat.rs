//! The heat map: latency upwards on a logarithmic scale, time to the right, and how many I/Os fell where.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::charts::{decade, draw_axis, marks_at, reversed, set};
use super::frame::{panel, put, span};
use super::heat_cell::{self, SHADES, Scale, Shares, columns_in_cell, has_colors};
use crate::class::Class;
use crate::ui::text::width;
use crate::ui::tui::figures::Figures;
use crate::ui::tui::heat::{Column, Counts, FIRST_DECADE, Latencies, PER_DECADE, TailOf};
use crate::ui::tui::state::State;
use crate::units::{approx_span, format_latency};

const LABEL_CELLS: u16 = 6;
/// Cells of a title besides its remark.
const TITLE_CELLS: usize = 13;

/// The area whose columns move left with each window.
pub fn plot(area: Rect) -> Rect {
    let [width, height] = [area.width.saturating_sub(LABEL_CELLS), area.height.saturating_sub(2)];
    Rect { x: area.x + LABEL_CELLS, y: area.y + 1, width, height }
}

/// Draws the map of the chosen class, or of all.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    map(state, buf, area, state.tail_of, span_of);
}

/// Draws a map of each class, if the screen has room for them.
pub fn of_classes(state: &State, buf: &mut Buffer, areas: &[Rect; 4]) {
    for (class, area) in Class::ALL.into_iter().zip(areas).filter(|(_, area)| !area.is_empty()) {
        map(state, buf, *area, TailOf::Class(class), |_, _, _| String::new());
    }
}

/// Draws a map; its title says whose latency it is, then what `more` says of its columns in the cells left.
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
    let across = columns_in_cell(state);
    // As many as fit, whichever column of its cell the first one is.
    let many = (cells * across).saturating_sub(across - 1);
    let columns = columns(state, figures, many, latencies);
    let whose = whose(state, of);
    let more = more(state, &columns, usize::from(area.width).saturating_sub(TITLE_CELLS + width(&whose)));
    let remark = whose + &more;
    let inner = panel(state, buf, area, "latency", &remark, false);
    let plot = plot(area);
    let theme = &state.theme;
    // The same for both of two recordings, so that flipping between them shows what moved.
    let other = state.beside.as_ref();
    let other = other.map(|beside| self::columns(state, &beside.other.figures, many, latencies));
    let Some(scale) = Scale::of(columns.iter().chain(other.iter().flatten())) else {
        let none =
            if state.replay.is_some() { "the recording has none of it" } else { "no I/O in the time shown" };
        put(buf, inner.x, inner.y, inner.width, &Line::from(span(none, theme.dim)));
        return;
    };
    let rows = usize::from(plot.height);
    // The newest are at the right; the first cell and the last may lack columns.
    let cell_of = |column: &Column| column.place / across;
    let of_cells: Vec<&[Column]> = columns.chunk_by(|a, b| cell_of(a) == cell_of(b)).collect();
    let offset = cells - of_cells.len().min(cells);
    let ends: Vec<_> = of_cells.iter().map(|columns| columns[columns.len() - 1].end_ns).collect();
    let marks = marks_at(figures, &ends, cells);
    for (n, columns) in of_cells.iter().enumerate() {
        let x = plot.x + (offset + n) as u16;
        let mut counts = Counts::default();
        columns.iter().for_each(|column| counts.add(&column.counts));
        let p = [100, 2].map(|one_in| Some(scale.row_of(counts.quantile(one_in)?, rows)));
        let over_it = over_columns(state, columns, offset + n, &marks);
        let shares: Vec<_> = columns.iter().map(|column| Shares::of(column, scale)).collect();
        for row in 0..rows {
            let (symbol, style) = heat_cell::draw(state, &shares, (row, rows));
            let y = plot.bottom() - 1 - row as u16;
            let (symbol, style) = match p {
                [Some(p99), _] if p99 == row => ('─', over(state, style)),
                [_, Some(p50)] if p50 == row => ('·', over(state, style)),
                _ => ruled(state, over_it, (symbol, style)),
            };
            let style = if over_it == Over::Cursor { reversed(style) } else { style };
            set(buf, x, y, symbol, style);
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
    if state.whole_run { figures.timeline.whole(cells, latencies) } else { figures.columns(cells, latencies) }
}

/// What is drawn over a cell's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Nothing,
    Turn,
    Cursor,
}

fn over_columns(state: &State, columns: &[Column], at: usize, marks: &[(usize, u64)]) -> Over {
    let holds = |shown_end_ns| columns.iter().any(|column| column.holds(shown_end_ns));
    if state.cursor_ns().is_some_and(holds) {
        return Over::Cursor;
    }
    if marks.iter().any(|mark| mark.0 == at) { Over::Turn } else { Over::Nothing }
}

/// A cell with the line over its columns: on the cell's colour, or in place of the fainter shades, so that the bulk
/// of the I/Os stays.
fn ruled(state: &State, over_it: Over, (symbol, style): (char, Style)) -> (char, Style) {
    let theme = &state.theme;
    let (line, own) = match over_it {
        Over::Nothing => return (symbol, style),
        Over::Turn => ('┊', theme.rule),
        Over::Cursor => ('│', theme.accent),
    };
    match symbol {
        ' ' => (line, own),
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

/// Over how long, and what the lines mean.
fn span_of(state: &State, columns: &[Column], room: usize) -> String {
    let span_ns = columns
        .first()
        .zip(columns.last())
        .map_or(0, |(first, last)| last.end_ns.saturating_sub(first.end_ns));
    let span = approx_span(span_ns as f64 / 1e9);
    let whole = match (state.whole_run, state.replay.is_some()) {
        (true, _) => format!("whole run {span}"),
        (false, true) => span.clone(),
        (false, false) => format!("last {span}"),
    };
    // The shown window's; windows have none for the response times of all classes together.
    let p99_ns = state.figures().p99_ns(state.tail_of).filter(|_| !state.response);
    let p99 = p99_ns.map_or_else(String::new, |ns| format!(" {}", format_latency(ns)));
    // What the lines mean matters more than how long the map is.
    let choices = [
        format!(" · {whole} · p99{p99} ─ p50 ·"),
        format!(" {span} p99{p99}─ p50·"),
        format!(" {span} p99─ p50·"),
    ];
    choices.into_iter().find(|text| width(text) <= room).unwrap_or_else(|| " p99─ p50·".into())
}

/// The style of a line over the map: on the cell's colour.
fn over(state: &State, cell: Style) -> Style {
    let line = state.theme.strong;
    cell.bg.or(cell.fg).filter(|_| has_colors(state)).map_or(line, |bg| line.bg(bg))
}

/// The decades beside the map.
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
