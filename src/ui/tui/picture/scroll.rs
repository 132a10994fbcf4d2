//! Charts in a moving picture. With each window their columns move one to the left, so they are drawn once, side by
//! side, and moved behind an opening.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;

use super::drawing::{CELL, Drawing, Paper, SCALED, number};
use super::film::Played;

/// Columns of charts, each kept once.
#[derive(Debug, Default)]
pub(super) struct Columns {
    all: Vec<Vec<Cell>>,
}

/// What a chart shows from a frame on, as long as its columns only move: until its scale changes or a turn is marked.
#[derive(Debug)]
pub(super) struct Stretch {
    from: usize,
    /// Its columns; the last ones are shown at its end.
    columns: Vec<usize>,
    /// The frames from which on it is moved, and by how many columns in all.
    moves: Vec<(usize, usize)>,
}

impl Columns {
    fn number(&mut self, column: Vec<Cell>) -> usize {
        self.all.iter().position(|known| *known == column).unwrap_or_else(|| {
            self.all.push(column);
            self.all.len() - 1
        })
    }

    /// The stretches of the chart in an area.
    pub fn stretches(&mut self, area: Rect, frames: &[Played<'_>]) -> Vec<Stretch> {
        let mut found: Vec<Stretch> = Vec::new();
        for (n, frame) in frames.iter().enumerate() {
            let columns: Vec<_> = area.columns().map(|of| self.number(cells(frame.screen, of))).collect();
            if !found.last_mut().is_some_and(|last| last.goes_on(n, &columns)) {
                found.push(Stretch { from: n, columns, moves: Vec::new() });
            }
        }
        found
    }

    /// The columns that a stretch shows from a frame on.
    #[cfg(test)]
    pub fn shown(&self, stretch: &Stretch, frame: usize) -> impl Iterator<Item = &Vec<Cell>> {
        let moves = stretch.moves.iter().take_while(|(from, _)| *from <= frame);
        let by = moves.last().map_or(0, |(_, by)| *by);
        stretch.columns[by..].iter().map(|column| &self.all[*column])
    }

    /// Appends how each column is drawn.
    pub fn define(&self, out: &mut String, paper: Paper) {
        out.push_str("<defs>");
        for (n, column) in self.all.iter().enumerate().filter(|(_, column)| !is_blank(column)) {
            let mut drawing = Drawing::of_chart(paper);
            column.iter().enumerate().for_each(|(y, cell)| drawing.row(&[cell], (0, y), false));
            let _ = write!(out, "<g id=\"c{n}\">");
            drawing.paths(out);
            out.push_str("</g>");
        }
        out.push_str("</defs>\n");
    }

    /// Appends a chart. Without animation, it shows its last state. `name` is how the names of its animations
    /// begin.
    pub fn draw(&self, out: &mut String, area: Rect, name: &str, stretches: &[Stretch]) {
        let [x, width] = [area.x, area.width].map(|cells| number(f64::from(cells) * CELL.0));
        let [y, height] = [area.y, area.height].map(|cells| number(f64::from(cells) * CELL.1));
        let _ = write!(
            out,
            "<svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><g transform=\"{SCALED}\">"
        );
        for (n, stretch) in stretches.iter().enumerate() {
            let hidden = if n + 1 < stretches.len() { " visibility=\"hidden\"" } else { "" };
            let moved = 2 * stretch.moved();
            let _ = write!(
                out,
                "<g class=\"f\" style=\"animation-name:{name}{n}\"{hidden} transform=\"translate(-{moved})\">"
            );
            for (at, column) in stretch.columns.iter().enumerate().filter(|(_, n)| !is_blank(&self.all[**n]))
            {
                let _ = write!(out, "<use href=\"#c{column}\" x=\"{}\"/>", 2 * at);
            }
            out.push_str("</g>");
        }
        out.push_str("</g></svg>\n");
    }
}

impl Stretch {
    fn moved(&self) -> usize {
        self.moves.last().map_or(0, |(_, by)| *by)
    }

    /// Takes a frame's columns if they are the former ones, moved to the left, and new ones after them.
    fn goes_on(&mut self, frame: usize, columns: &[usize]) -> bool {
        let shown = &self.columns[self.columns.len() - columns.len()..];
        let Some(by) = (0..columns.len()).find(|by| shown[*by..] == columns[..columns.len() - by]) else {
            return false;
        };
        if by > 0 {
            self.moves.push((frame, self.moved() + by));
            self.columns.extend_from_slice(&columns[columns.len() - by..]);
        }
        true
    }

    /// When it is shown, and where; `at` is when each frame is shown, `until` when the next stretch is.
    pub fn keyframes(&self, name: &str, at: impl Fn(usize) -> String, until: Option<usize>) -> String {
        let mut css = format!("@keyframes {name}{{");
        if self.from > 0 {
            css.push_str("0%{visibility:hidden}");
        }
        let _ = write!(css, "{}{{visibility:visible;transform:none}}", at(self.from));
        for (frame, by) in &self.moves {
            let _ = write!(css, "{}{{transform:translate(-{}px)}}", at(*frame), 2 * by);
        }
        if let Some(until) = until {
            let _ = write!(css, "{}{{visibility:hidden}}", at(until));
        }
        css + "}"
    }

    /// The first frame.
    pub fn from(&self) -> usize {
        self.from
    }
}

fn cells(screen: &Buffer, column: Rect) -> Vec<Cell> {
    column.positions().map(|at| screen[at].clone()).collect()
}

fn is_blank(column: &[Cell]) -> bool {
    let blank = |cell: &Cell| cell.symbol() == " " && cell.bg == ratatui::style::Color::Reset;
    column.iter().all(|cell| blank(cell) && !cell.modifier.contains(ratatui::style::Modifier::REVERSED))
}
