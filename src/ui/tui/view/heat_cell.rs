//! A cell of the heat map: shades without colours, else halves, or eighths if the terminal can draw them.

use ratatui::style::{Color, Style};
use ratatui::symbols::pixel::OCTANTS;

use crate::ui::tui::glyphs::Glyphs;
use crate::ui::tui::heat::{BUCKETS, Column, Counts, PER_DECADE};
use crate::ui::tui::state::State;
use crate::ui::tui::theme::{Rgb, Theme};

/// From few to many, where there are no colours.
pub const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
/// The least share of a column's I/Os that has a shade of its own, as a power of ten.
const LEAST_SHARE_LOG10: f64 = -5.0;
/// Rows and columns of eighths in a cell.
const EIGHTHS: (usize, usize) = (4, 2);

/// The buckets from the bottom to the top.
#[derive(Clone, Copy)]
pub struct Scale {
    /// The lowest.
    pub low: usize,
    /// The highest.
    pub high: usize,
}

impl Scale {
    /// The scale that holds all of these; none if they are empty.
    pub fn of<'a>(columns: impl Iterator<Item = &'a Column>) -> Option<Self> {
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
    pub fn row_of(self, bucket: usize, rows: usize) -> usize {
        (0..rows).rev().find(|row| self.buckets(*row, rows).start <= bucket).unwrap_or(0)
    }
}

/// Columns of time in a cell.
pub fn columns_in_cell(state: &State) -> usize {
    if has_colors(state) && state.glyphs == Glyphs::Octants { EIGHTHS.1 } else { 1 }
}

/// Whether cells have parts in colours. ASCII has no glyph for a part of a cell.
pub fn has_colors(state: &State) -> bool {
    !state.theme.heat.is_empty() && state.glyphs != Glyphs::Ascii
}

/// The shares of a column's I/Os.
pub struct Shares<'a> {
    place: usize,
    counts: &'a Counts,
    total: f64,
    scale: Scale,
}

impl<'a> Shares<'a> {
    /// The shares of a column on that scale.
    pub fn of(column: &'a Column, scale: Scale) -> Self {
        let total = column.counts.total() as f64;
        Self { place: column.place, counts: &column.counts, total, scale }
    }

    /// The share of a row; none if it is empty.
    fn of_row(&self, row: usize, rows: usize) -> Option<f64> {
        let within = self.counts.within(self.scale.buckets(row, rows));
        (within > 0).then(|| within as f64 / self.total)
    }
}

/// A cell in one of `rows`: its columns of time, at most [`columns_in_cell`].
pub fn draw(state: &State, columns: &[Shares<'_>], (row, rows): (usize, usize)) -> (char, Style) {
    let theme = &state.theme;
    if columns_in_cell(state) == EIGHTHS.1 {
        let (high, wide) = EIGHTHS;
        let levels = std::array::from_fn(|n| {
            let column = columns.iter().find(|column| column.place % wide == n % wide)?;
            let from_below = high - 1 - n / wide;
            column.of_row(row * high + from_below, rows * high).map(|share| level(&theme.heat, share))
        });
        return eighths(theme, levels);
    }
    let Some(column) = columns.first() else { return (' ', theme.plain) };
    if !has_colors(state) {
        let Some(share) = column.of_row(row, rows) else { return (' ', theme.plain) };
        let level = match share {
            share if share >= 0.1 => 3,
            share if share >= 0.01 => 2,
            share if share >= 0.001 => 1,
            _ => 0,
        };
        return (SHADES[level], theme.plain);
    }
    let color = |half| {
        let share = column.of_row(row * 2 + half, rows * 2);
        share.map(|share| color(&theme.heat, level(&theme.heat, share)))
    };
    match (color(1), color(0)) {
        (None, None) => (' ', theme.plain),
        (Some(upper), None) => ('▀', Style::new().fg(upper)),
        (None, Some(lower)) => ('▄', Style::new().fg(lower)),
        (Some(upper), Some(lower)) => ('▀', Style::new().fg(upper).bg(lower)),
    }
}

/// The colour of a share, by its place among the colours from the least to all.
fn level(colors: &[Rgb], share: f64) -> usize {
    let level = 1.0 - share.log10().max(LEAST_SHARE_LOG10) / LEAST_SHARE_LOG10;
    (level * (colors.len() - 1) as f64).round() as usize
}

fn color(colors: &[Rgb], level: usize) -> Color {
    let (r, g, b) = colors[level];
    Color::Rgb(r, g, b)
}

/// Eight parts, row by row from the top, in a cell that can show two colours. If any are empty they stay so, and the
/// others get their mean colour; else the parts are split at the threshold that changes them least.
fn eighths(theme: &Theme, levels: [Option<usize>; 8]) -> (char, Style) {
    let of = |level: usize| color(&theme.heat, level);
    let filled = || levels.iter().flatten().copied();
    let Some(mean_of_filled) = mean(filled()) else { return (' ', theme.plain) };
    if levels.contains(&None) {
        return (OCTANTS[pattern(levels.map(|level| level.is_some()))], Style::new().fg(of(mean_of_filled)));
    }
    let above = |threshold| filled().filter(move |level| *level >= threshold);
    let below = |threshold| filled().filter(move |level| *level < threshold);
    let moved = (0..theme.heat.len()).map(|at| (spread(above(at)) + spread(below(at)), at));
    let threshold = moved.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |(_, threshold)| threshold);
    let style = Style::new().fg(of(mean(above(threshold)).unwrap_or(mean_of_filled)));
    let style = mean(below(threshold)).map_or(style, |below| style.bg(of(below)));
    (OCTANTS[pattern(levels.map(|level| level >= Some(threshold)))], style)
}

/// The place of a glyph among the octants: a bit for each part.
fn pattern(parts: [bool; 8]) -> usize {
    parts.iter().enumerate().map(|(n, is_set)| usize::from(*is_set) << n).sum()
}

fn exact_mean(levels: impl Iterator<Item = usize>) -> Option<f64> {
    let (sum, many) = levels.fold((0, 0), |(sum, many), level| (sum + level, many + 1));
    (many > 0).then(|| sum as f64 / f64::from(many))
}

fn mean(levels: impl Iterator<Item = usize>) -> Option<usize> {
    exact_mean(levels).map(|mean| mean.round() as usize)
}

/// The sum of squared distances from their mean.
fn spread(levels: impl Iterator<Item = usize> + Clone) -> f64 {
    let mean = exact_mean(levels.clone()).unwrap_or(0.0);
    levels.map(|level| (level as f64 - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(levels: [Option<usize>; 8]) -> (char, Option<Color>, Option<Color>) {
        let (symbol, style) = eighths(&Theme::dark(), levels);
        (symbol, style.fg, style.bg)
    }

    fn dark(level: usize) -> Color {
        color(&Theme::dark().heat, level)
    }

    #[test]
    fn what_is_empty_stays_empty() {
        assert_eq!(drawn([None; 8]), (' ', Theme::dark().plain.fg, None));
        let (one, other) = (Some(7), Some(5));
        assert_eq!(drawn([one, None, one, None, None, None, None, None]), ('▘', Some(dark(7)), None));
        assert_eq!(drawn([None, one, None, other, None, one, None, other]), ('▐', Some(dark(6)), None));
    }

    #[test]
    fn full_cells_have_the_two_colours_that_change_least() {
        assert_eq!(drawn([Some(4); 8]), ('█', Some(dark(4)), None));
        let [many, few] = [Some(7), Some(1)];
        assert_eq!(drawn([few, few, few, few, many, many, many, many]), ('▄', Some(dark(7)), Some(dark(1))));
        let [most, less] = [Some(6), Some(2)];
        assert_eq!(
            drawn([less, few, few, less, many, many, most, most]),
            ('▄', Some(dark(7)), Some(dark(2)))
        );
    }

    #[test]
    fn an_octant_takes_one_cell() {
        for glyph in OCTANTS {
            assert_eq!(crate::ui::text::width(&glyph.to_string()), 1, "{glyph}");
        }
    }
}
