//! Charts as plain text: bars that start at zero, with the figures beside them.

use std::fmt::Write;

use super::cells::{NONE, WIDTH, left, paragraph, right};
use crate::ui::blocks;
use crate::ui::text::{fit, width};

/// Height of a chart over time.
const COLUMN_ROWS: usize = 8;
/// Height of a scatter plot.
const PLANE_ROWS: usize = 14;

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its label.
    pub label: String,
    /// Its length; none draws no bar.
    pub value: Option<f64>,
    /// The figure as text, shown beside it.
    pub text: String,
}

/// Horizontal bars from zero to the largest value, at most 80 columns wide.
pub fn bars(title: &str, bars: &[Bar]) -> String {
    let longest = |texts: &dyn Fn(&Bar) -> usize| bars.iter().map(texts).max().unwrap_or(0);
    let label_width = longest(&|bar| width(&bar.label)).min(WIDTH / 3);
    let text_width = longest(&|bar| width(&bar.text)).min(WIDTH / 3);
    // Spaces at both ends of the label, the axis, and a space before the figure.
    let bar_width = WIDTH - label_width - text_width - 5;
    let largest = bars.iter().filter_map(|bar| bar.value).fold(0.0, f64::max);
    let mut out = format!("{}\n", paragraph(title, WIDTH, "  "));
    for bar in bars {
        let label = fit(&bar.label, label_width);
        // Exact to an eighth of a cell.
        let drawn = blocks::row(eighths(bar.value.unwrap_or(0.0), largest, bar_width));
        let text = if bar.value.is_some() { bar.text.as_str() } else { NONE };
        let line = format!("  {} │{} {text}", right(&label, label_width), left(&drawn, bar_width));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let _ = writeln!(out, "  {} 0", " ".repeat(label_width));
    out
}

/// Eighths of a cell that a value takes if the largest takes that many cells.
fn eighths(value: f64, largest: f64, cells: usize) -> usize {
    if largest > 0.0 { (value.max(0.0) / largest * (cells * 8) as f64).round() as usize } else { 0 }
}

/// Vertical bars over time, from zero to the largest value, at most 80 columns wide; points that share a column are
/// averaged. `points` are seconds and values, in order.
pub fn over_time(title: &str, points: &[(f64, f64)], text: &dyn Fn(f64) -> String) -> String {
    let (Some((first_s, _)), Some((last_s, _))) = (points.first(), points.last()) else {
        return String::new();
    };
    let largest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let top = text(largest);
    let label_width = top.chars().count().max(1);
    let width = (WIDTH - label_width - 4).min(points.len());
    let drawn = |value: Option<f64>| {
        let eighths = value.map_or(0, |value| eighths(value, largest, COLUMN_ROWS));
        blocks::column(eighths, COLUMN_ROWS).collect::<Vec<char>>()
    };
    let columns: Vec<_> = columns(points, width).into_iter().map(drawn).collect();
    let mut out = format!("{}\n", paragraph(title, WIDTH, "  "));
    for row in (0..COLUMN_ROWS).rev() {
        let label = match row {
            0 => "0",
            row if row == COLUMN_ROWS - 1 => top.as_str(),
            _ => "",
        };
        let cells: String = columns.iter().map(|column| column[row]).collect();
        let _ = writeln!(out, "{}", format!("  {} │{cells}", right(label, label_width)).trim_end());
    }
    let (from, to) = (format!("{first_s:.0}s"), format!("{last_s:.0}s"));
    let gap = width.saturating_sub(from.len() + to.len());
    let _ = writeln!(out, "  {}  {from}{}{to}", " ".repeat(label_width), " ".repeat(gap.max(1)));
    out
}

/// A point in a scatter plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The horizontal coordinate.
    pub x: f64,
    /// The vertical coordinate.
    pub y: f64,
    /// Its label, written beside it if there is room.
    pub label: String,
}

/// A scatter plot whose axes start at zero, at most 80 columns wide.
pub fn plane(title: &str, x_name: &str, points: &[Point], text: &dyn Fn(f64) -> String) -> String {
    let largest = |of: fn(&Point) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let (x_most, y_most) = (largest(|point| point.x), largest(|point| point.y));
    let (top, end) = (text(y_most), text(x_most));
    let margin = top.chars().count().max(1);
    let width = WIDTH - margin - 4;
    let mut cells = vec![vec![' '; width]; PLANE_ROWS];
    let place = |value: f64, most: f64, cells: usize| {
        if most > 0.0 { (value.max(0.0) / most * (cells - 1) as f64).round() as usize } else { 0 }
    };
    let at =
        |point: &Point| (PLANE_ROWS - 1 - place(point.y, y_most, PLANE_ROWS), place(point.x, x_most, width));
    for (row, column) in points.iter().map(at) {
        cells[row][column] = '●';
    }
    for point in points {
        let (row, column) = at(point);
        let label: Vec<char> = point.label.chars().collect();
        // To the right of the point if it fits, else to its left.
        let places = [Some(column + 2), column.checked_sub(label.len() + 1)];
        let is_free = |from: &usize| {
            let around = from.saturating_sub(1)..(from + label.len() + 1).min(width);
            from + label.len() <= width
                && around.filter(|cell| *cell != column).all(|cell| cells[row][cell] == ' ')
        };
        if let Some(from) = places.into_iter().flatten().find(is_free) {
            cells[row][from..from + label.len()].copy_from_slice(&label);
        }
    }
    let mut out = format!("{}\n", paragraph(title, WIDTH, "  "));
    for (row, cells) in cells.iter().enumerate() {
        let label = match row {
            0 => top.as_str(),
            row if row == PLANE_ROWS - 1 => "0",
            _ => "",
        };
        let line = format!("  {} │{}", right(label, margin), cells.iter().collect::<String>());
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let gap = width.saturating_sub(1 + x_name.chars().count() + end.chars().count());
    let _ = writeln!(
        out,
        "  {}  0{}{x_name}{}{end}",
        " ".repeat(margin),
        " ".repeat(gap / 2),
        " ".repeat(gap - gap / 2)
    );
    out
}

/// The mean of the points in each of `count` columns of equal time.
fn columns(points: &[(f64, f64)], count: usize) -> Vec<Option<f64>> {
    let (first_s, last_s) = (points[0].0, points[points.len() - 1].0);
    let span_s = (last_s - first_s).max(f64::MIN_POSITIVE);
    let mut sums = vec![(0.0, 0_u32); count];
    for (at_s, value) in points {
        let column = ((at_s - first_s) / span_s * count as f64) as usize;
        let (sum, points) = &mut sums[column.min(count - 1)];
        *sum += value;
        *points += 1;
    }
    sums.into_iter().map(|(sum, points)| (points > 0).then(|| sum / f64::from(points))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: Option<f64>, text: &str) -> Bar {
        Bar { label: label.into(), value, text: text.into() }
    }

    #[test]
    fn bars_start_at_zero_and_end_where_their_value_is() {
        let text = bars(
            "total MB/s by io.page_size",
            &[
                bar("4KiB", Some(500.0), "500 [480–520]"),
                bar("16KiB", Some(1000.0), "1000"),
                bar("1MiB", None, ""),
            ],
        );
        let cells = |line: usize| text.lines().nth(line).unwrap().matches('█').count();
        assert_eq!(cells(1), cells(2) / 2, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn nothing_but_zeros_is_drawn_as_such() {
        assert!(!bars("zeros", &[bar("a", Some(0.0), "0")]).contains('█'));
    }

    #[test]
    fn bars_over_time_show_where_a_figure_falls() {
        let points: Vec<_> = (0..200).map(|s| (f64::from(s), if s < 100 { 2000.0 } else { 500.0 })).collect();
        let text = over_time("scan MB/s over time", &points, &|x| format!("{x:.0}"));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn points_are_plotted_and_labelled() {
        let point = |x, y, label: &str| Point { x, y, label: label.into() };
        let points = [
            point(100.0, 80.0, "1"),
            point(800.0, 90.0, "8"),
            point(1000.0, 400.0, "64"),
            point(1000.0, 1600.0, "512"),
        ];
        let text = plane("mean latency, µs", "scan MB/s", &points, &|x| format!("{x:.0}"));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches('●').count(), 4, "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn overlapping_points_are_drawn_and_lose_one_label_at_most() {
        let points: Vec<_> = (0..5).map(|n| Point { x: 0.0, y: 0.0, label: format!("{n}") }).collect();
        let text = plane("nothing", "x", &points, &|x| format!("{x:.0}"));
        assert_eq!((text.matches('●').count(), text.matches("● 0").count()), (1, 1), "{text}");
    }
}
