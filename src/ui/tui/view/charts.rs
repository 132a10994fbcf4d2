//! MB/s and latency over time, one strip per class, with the turns marked.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::frame::{panel, put, span};
use crate::class::Class;
use crate::ui::text::{NONE, latency, left, mb, right, width, windows_span};
use crate::ui::tui::charts::{bar, decades, dot, line, round_up};
use crate::ui::tui::figures::Figures;
use crate::ui::tui::past::Point;
use crate::ui::tui::state::State;
use crate::units::{approx_span, format_latency};

/// Width of the numbers beside a strip.
const LABEL_CELLS: u16 = 18;
/// The same with the scale beside the number, if a strip has one row.
const LABEL_CELLS_ONE_ROW: u16 = 25;
/// Rows of the tallest strip.
const ROWS_MAX: u16 = 4;
/// From this many rows on, both kinds fit one above the other.
const BOTH_ROWS: u16 = 11;

/// The strips of one kind of figure, one per class.
struct Strips {
    title: &'static str,
    remark: String,
    /// The number beside the strip, and its scale in words.
    labels: [(String, String); 4],
    /// Whether to draw bars instead of lines.
    is_bars: bool,
    /// The labels' width.
    label_cells: u16,
    /// The column of the window being viewed, unless it is the newest.
    cursor: Option<usize>,
    /// One column per window, the newest last; in each, the lowest row first.
    columns: [Vec<Vec<char>>; 4],
}

/// Makes the strips of these windows, each that many rows high.
type Draw = fn(&State, &[Point], usize) -> Strips;

/// One of the two kinds, and its place.
struct Place {
    area: Rect,
    draw: Draw,
    /// Rows of each strip.
    rows: u16,
    label_cells: u16,
}

/// The charts' places: side by side if there is room, else one above the other.
fn places(area: Rect) -> impl Iterator<Item = Place> {
    let halves: [Rect; 2] = if area.width >= 76 {
        Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(area)
    } else if area.height >= BOTH_ROWS {
        Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(area)
    } else {
        [area, Rect::default()]
    };
    let kinds: [(Draw, u16); 2] = [(throughput, LABEL_CELLS_ONE_ROW), (tails, LABEL_CELLS)];
    let both = halves.into_iter().zip(kinds).filter(|(half, _)| !half.is_empty());
    both.map(|(area, (draw, one_row_cells))| {
        let rows = (area.height.saturating_sub(2) / 4).clamp(1, ROWS_MAX);
        Place { area, draw, rows, label_cells: if rows == 1 { one_row_cells } else { LABEL_CELLS } }
    })
}

/// The areas whose columns move left with each window.
pub fn plots(area: Rect) -> impl Iterator<Item = Rect> {
    places(area).map(|Place { area, rows, label_cells, .. }| {
        let (y, height) = (area.y + 1, (4 * rows).min(area.height - 1));
        Rect { x: area.x + label_cells, y, width: area.width.saturating_sub(label_cells), height }
    })
}

/// Draws the charts.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    for Place { area: place, draw, rows, label_cells } in places(area) {
        let cells = usize::from(place.width.saturating_sub(label_cells));
        let points = state.figures().points(cells);
        let cursor = cursor_at(state, &points, cells);
        let strips = Strips { label_cells, cursor, ..draw(state, &points, usize::from(rows)) };
        let inner = panel(state, buf, place, strips.title, &strips.remark, false);
        let ends: Vec<_> = points.iter().map(|point| point.end_ns).collect();
        let marks = marks_at(state.figures(), &ends, cells);
        for class in Class::ALL {
            let strip = Rect { y: inner.y + rows * class.index() as u16, height: rows, ..inner };
            draw_strip(state, buf, strip, class, &strips, &marks);
        }
        let axis = Rect { y: inner.y + 4 * rows, height: 1, ..inner };
        if axis.y < place.bottom() {
            draw_axis(state, buf, axis, label_cells, &ends, &marks);
        }
    }
}

/// The point of the window being viewed.
fn read<'a>(state: &State, points: &'a [Point]) -> Option<&'a Point> {
    let is_read = |point: &&Point| Some(point.end_ns) == state.cursor_ns();
    points.iter().find(is_read).or(points.last())
}

/// The column of the window being viewed, unless it is the newest.
fn cursor_at(state: &State, points: &[Point], cells: usize) -> Option<usize> {
    let shown = state.cursor_ns()?;
    Some(cells.saturating_sub(points.len()) + points.iter().position(|point| point.end_ns == shown)?)
}

/// The points of the other recording, if there are two: both share their scales.
fn others(state: &State, cells: usize) -> Vec<Point> {
    state.beside.as_ref().map_or_else(Vec::new, |beside| beside.other.figures.points(cells))
}

fn throughput(state: &State, points: &[Point], rows: usize) -> Strips {
    let mut labels: [(String, String); 4] = Default::default();
    let mut columns: [Vec<Vec<char>>; 4] = Default::default();
    let others = others(state, points.len());
    for class in Class::ALL {
        let at = class.index();
        // Some room above keeps the strips apart.
        let both = points.iter().chain(&others);
        let end = round_up(both.map(|p| p.mb_per_s[at]).fold(0.0, f64::max) * 1.05);
        let now = read(state, points).map_or_else(|| NONE.into(), |p| mb(p.mb_per_s[at]));
        labels[at] = (now, format!("0–{}", scale_end(end)));
        columns[at] = points.iter().map(|p| bar(p.mb_per_s[at], end, rows)).collect();
    }
    Strips {
        title: "MB/s",
        remark: "from 0".into(),
        labels,
        is_bars: true,
        label_cells: LABEL_CELLS,
        cursor: None,
        columns,
    }
}

/// The end of a scale of MB/s, in so few cells that it never touches the figure before it: `10k` for 10,000.
fn scale_end(end: f64) -> String {
    match end {
        end if end >= 1e6 => format!("{}M", end / 1e6),
        end if end >= 1e4 => format!("{}k", end / 1e3),
        end => ((end * 1000.0).round() / 1000.0).to_string(),
    }
}

fn tails(state: &State, points: &[Point], rows: usize) -> Strips {
    let response = state.response;
    let over = |at: usize| {
        let pooled = &state.figures().pooled[at];
        let latency = if response { pooled.response } else { pooled.service };
        latency.p99.map(|p99| format!("of {}", windows_span(p99.span_ns)))
    };
    let of = |p: &Point| if response { p.response_p99_ns } else { p.service_p99_ns };
    let others = others(state, points.len());
    let scale = decades(points.iter().chain(&others).flat_map(of).flatten());
    let mut labels: [(String, String); 4] = Default::default();
    let mut columns: [Vec<Vec<char>>; 4] = Default::default();
    for at in 0..4 {
        labels[at].0 = read(state, points).map_or_else(|| NONE.into(), |p| latency(of(p)[at]));
        labels[at].1 = over(at).unwrap_or_default();
        let Some(scale) = scale else { continue };
        let dots: Vec<_> = points.iter().map(|p| of(p)[at].map(|ns| dot(ns, scale, rows))).collect();
        let before = |i: usize| i.checked_sub(1).and_then(|i| dots[i]);
        columns[at] = (0..dots.len()).map(|i| line(before(i), dots[i], rows)).collect();
    }
    let scale = scale.map_or_else(String::new, |(low, high)| format!(" {}–{}", decade(low), decade(high)));
    let mut remark = format!("{}, log{scale}", if response { "response" } else { "service" });
    // One-row strips have no room for it beside them.
    if rows == 1 {
        let pooled = Class::ALL.into_iter().filter_map(|class| Some((class, over(class.index())?)));
        remark.extend(pooled.map(|(class, over)| format!(", {class} {over}")));
    }
    Strips { title: "p99", remark, labels, is_bars: false, label_cells: LABEL_CELLS, cursor: None, columns }
}

/// A power of ten of nanoseconds: `10µs`.
pub fn decade(power: i32) -> String {
    let text = format_latency(10f64.powi(power) as u64);
    // The scale ends at round numbers.
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = text[..text.len() - unit.len()].trim_end_matches('0').trim_end_matches('.');
    let zeros = usize::try_from(power.rem_euclid(3)).unwrap_or(0);
    if number.is_empty() { text } else { format!("1{}{unit}", "0".repeat(zeros)) }
}

/// The columns in which a turn was made, each with the ledger number of its last turn; `ends_ns` are the columns'.
pub fn marks_at(figures: &Figures, ends_ns: &[u64], cells: usize) -> Vec<(usize, u64)> {
    let offset = cells.saturating_sub(ends_ns.len());
    let Some(first_ns) = ends_ns.first() else { return Vec::new() };
    let kept = figures.ends_ns();
    let is_before = |ns: u64| kept.is_some_and(|[first_ns, _]| first_ns < ns);
    let is_after = |ns: u64| kept.is_some_and(|[_, last_ns]| last_ns > ns);
    let last_ns = ends_ns[ends_ns.len() - 1];
    let mut marks: Vec<(usize, u64)> = Vec::new();
    for line in &figures.ledger {
        let at = ends_ns.partition_point(|end_ns| *end_ns < line.at_ns).min(ends_ns.len() - 1);
        // Turns before the first column are not shown, nor those after the last.
        let is_out = (line.at_ns < first_ns.saturating_sub(1) && is_before(*first_ns))
            || (line.at_ns > last_ns && is_after(last_ns));
        if is_out {
            continue;
        }
        match marks.last_mut() {
            Some(last) if last.0 == offset + at => last.1 = line.number,
            _ => marks.push((offset + at, line.number)),
        }
    }
    marks
}

fn draw_strip(
    state: &State,
    buf: &mut Buffer,
    area: Rect,
    class: Class,
    strips: &Strips,
    marks: &[(usize, u64)],
) {
    let theme = &state.theme;
    let at = class.index();
    let (now, scale) = &strips.labels[at];
    let number = right(now, usize::from(LABEL_CELLS) - 11);
    let label =
        Line::from(vec![span(left(class.name(), 10), theme.class(class)), span(number, theme.strong)]);
    put(buf, area.x, area.y, LABEL_CELLS, &label);
    let cells = strips.label_cells;
    if area.height > 1 && !scale.is_empty() {
        let text = right(scale, usize::from(cells) - 1);
        put(buf, area.x, area.y + 1, cells, &Line::from(span(text, theme.dim)));
    } else if cells > LABEL_CELLS {
        let text = right(scale, usize::from(cells - LABEL_CELLS));
        put(buf, area.x + LABEL_CELLS - 1, area.y, cells, &Line::from(span(text, theme.dim)));
    }
    let left = area.x + cells;
    let cells = usize::from(area.width.saturating_sub(cells));
    let rules = marks.iter().map(|mark| (mark.0, '┊', theme.rule));
    for (column, c, style) in rules.chain(strips.cursor.map(|column| (column, '│', theme.accent))) {
        for y in area.top()..area.bottom() {
            set(buf, left + column as u16, y, c, style);
        }
    }
    let columns = &strips.columns[at];
    let offset = cells.saturating_sub(columns.len());
    for (i, column) in columns.iter().enumerate() {
        for (row, &c) in column.iter().enumerate().filter(|(_, c)| **c != ' ') {
            // A turn is shown as a cut through the bars; the axis has its number.
            let cut = marks.iter().any(|(column, _)| *column == offset + i) && c != '_';
            let style = if c == '_' || cut && strips.is_bars { theme.rule } else { theme.class(class) };
            let style = if strips.cursor == Some(offset + i) { reversed(style) } else { style };
            set(buf, left + (offset + i) as u16, area.bottom() - 1 - row as u16, c, style);
        }
    }
}

/// The time, and the turns by their numbers in the ledger.
pub fn draw_axis(
    state: &State,
    buf: &mut Buffer,
    area: Rect,
    label_cells: u16,
    ends_ns: &[u64],
    marks: &[(usize, u64)],
) {
    let theme = &state.theme;
    let (Some(first_ns), Some(last_ns)) = (ends_ns.first(), ends_ns.last()) else { return };
    let cells = usize::from(area.width.saturating_sub(label_cells));
    let left = area.x + label_cells;
    let mut row = vec!['─'; cells];
    let mut write = |at: usize, text: &str| {
        let free = row.get(at..at + width(text)).is_some_and(|part| part.iter().all(|c| *c == '─'));
        if free {
            row.splice(at..at + width(text), text.chars());
        }
    };
    for (column, number) in marks {
        write(*column, &format!("▴{number}"));
    }
    let [first, last] = times(state, *first_ns, *last_ns);
    // With few windows there is room for only one of the two; the end matters more.
    write(cells.saturating_sub(width(&last)), &last);
    let offset = cells.saturating_sub(ends_ns.len());
    write(offset, &first);
    let is_free = |at: usize| row.get(at) == Some(&'─');
    let text: String = row.iter().collect();
    put(buf, left, area.y, cells as u16, &Line::from(span(text, theme.dim)));
    // A label under the cursor stays readable.
    let cursor = state.cursor_ns().filter(|ns| ns <= last_ns);
    let cursor = cursor.map(|ns| offset + ends_ns.partition_point(|end_ns| *end_ns < ns));
    if let Some(column) = cursor {
        let x = left + column as u16;
        if is_free(column) {
            set(buf, x, area.y, '│', theme.accent);
        } else if let Some(cell) = buf.cell_mut((x, area.y)) {
            cell.set_style(reversed(theme.accent));
        }
    }
    let turns = match label_cells {
        _ if marks.is_empty() => "",
        8.. => "▴ turns",
        _ => "▴turn",
    };
    put(buf, area.x, area.y, label_cells, &Line::from(span(turns, theme.dim)));
}

/// The labels at the ends of the axis: how long ago that was, or the time in a recording.
fn times(state: &State, first_ns: u64, last_ns: u64) -> [String; 2] {
    let seconds = |ns: u64| approx_span(ns as f64 / 1e9);
    if let Some(replay) = &state.replay {
        let [first, last] = [first_ns, last_ns].map(|ns| seconds(replay.since_ns(ns)));
        return [format!("{first} "), format!(" {last}")];
    }
    let now_ns = state.figures().ends_ns().map_or(last_ns, |[_, now_ns]| now_ns);
    let ago = |ns: u64| format!("-{}", seconds(now_ns.saturating_sub(ns)));
    [ago(first_ns) + " ", if last_ns < now_ns { format!(" {}", ago(last_ns)) } else { " now".into() }]
}

/// A style under the cursor.
pub fn reversed(style: Style) -> Style {
    style.add_modifier(Modifier::REVERSED)
}

/// Writes a cell, if it is on the screen.
pub fn set(buf: &mut Buffer, x: u16, y: u16, c: char, style: Style) {
    if let Some(cell) = buf.cell_mut((x, y)) {
        cell.set_char(c).set_style(style);
    }
}

#[cfg(test)]
mod tests {
    use super::{decade, scale_end};
    use crate::ui::text::width;
    use crate::ui::tui::charts::round_up;

    #[test]
    fn a_scale_of_mb_per_s_leaves_a_cell_before_it() {
        assert_eq!([0.015, 2500.0, 8000.0, 10_000.0].map(scale_end), ["0.015", "2500", "8000", "10k"]);
        assert_eq!([15_000.0, 250_000.0, 1.5e6].map(scale_end), ["15k", "250k", "1.5M"]);
        for exponent in -3..8 {
            for mb_per_s in [1.0, 1.2, 1.7, 2.2, 9.9] {
                let end = scale_end(round_up(mb_per_s * 10f64.powi(exponent)));
                assert!(width(&end) <= 5, "{end}");
            }
        }
    }

    #[test]
    fn decades_read_as_round_numbers() {
        assert_eq!([1, 3, 4, 5, 6, 7, 9].map(decade), ["10ns", "1µs", "10µs", "100µs", "1ms", "10ms", "1s"]);
    }
}
