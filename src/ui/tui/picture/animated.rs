//! A run as a moving SVG picture: CSS alone, so that it plays where documents show pictures. Where it does not play,
//! or the reader wants nothing to move, it is the last screen.
//!
//! A frame is what has changed since the one before it, drawn over that, and hidden until its time; charts are moved.

use std::fmt::Write;
use std::ops::Range;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Color;

use super::drawing::{Drawing, Paper};
use super::film::{Film, Played};
use super::scroll::Columns;
use super::svg::{END, head};

/// The most that a document's reader has to load.
const BYTES_MAX: usize = 400 * 1024;
/// At least one frame in twenty stays, however large the picture is.
const ONE_IN_MAX: usize = 20;
/// Up to two cells between changed ones are redrawn, which takes less than another start.
const GAP: u16 = 2;

/// The film as SVG, with as many of its frames as fit; `charts` are the areas whose columns move to the left.
pub fn animated(film: &Film, charts: &[Rect], paper: Paper) -> String {
    let mut one_in = 1;
    loop {
        let (frames, all_s) = film.played(one_in);
        let svg = draw(&frames, all_s, charts, paper);
        if svg.len() <= BYTES_MAX || one_in == ONE_IN_MAX {
            return svg;
        }
        one_in += 1;
    }
}

fn draw(frames: &[Played<'_>], all_s: f64, charts: &[Rect], paper: Paper) -> String {
    let mut columns = Columns::default();
    let scrolls: Vec<_> = charts.iter().map(|area| columns.stretches(*area, frames)).collect();
    let at = |frame: usize| format!("{:.2}%", frames[frame].from_s * 100.0 / all_s);
    let mut style = format!(
        ".f{{animation:{all_s:.2}s step-end infinite}}\
         @media(prefers-reduced-motion:reduce){{.f{{animation:none}}}}"
    );
    for n in 1..frames.len() {
        let _ = write!(style, "@keyframes f{n}{{0%{{visibility:hidden}}{}{{visibility:visible}}}}", at(n));
    }
    for (chart, stretches) in scrolls.iter().enumerate() {
        for (n, stretch) in stretches.iter().enumerate() {
            let until = stretches.get(n + 1).map(super::scroll::Stretch::from);
            style += &stretch.keyframes(&format!("s{chart}-{n}"), at, until);
        }
    }
    let area = frames.first().map_or(Rect::default(), |frame| frame.screen.area);
    let mut out = head(area, &style, paper);
    columns.define(&mut out, paper);
    for (n, frame) in frames.iter().enumerate() {
        let before = n.checked_sub(1).map(|before| frames[before].screen);
        if n > 0 {
            let _ = write!(out, "<g class=\"f\" style=\"animation-name:f{n}\">");
        }
        changes(before, frame.screen, charts, paper).write(&mut out);
        out.push_str(if n > 0 { "</g>\n" } else { "\n" });
    }
    for (chart, (area, stretches)) in charts.iter().zip(&scrolls).enumerate() {
        columns.draw(&mut out, *area, &format!("s{chart}-"), stretches);
    }
    out + END
}

/// What is new on a screen, except in the charts; everything, if there is no screen before it.
fn changes(before: Option<&Buffer>, now: &Buffer, charts: &[Rect], paper: Paper) -> Drawing {
    let mut drawing = Drawing::on(paper);
    for y in 0..now.area.height {
        for part in changed(before, now, y, charts) {
            let x = usize::from(part.start);
            let row: Vec<&Cell> = part.map(|x| &now[(x, y)]).collect();
            drawing.row(&row, (x, usize::from(y)), before.is_some());
        }
    }
    drawing
}

fn changed(before: Option<&Buffer>, now: &Buffer, y: u16, charts: &[Rect]) -> Vec<Range<u16>> {
    let mut found: Vec<Range<u16>> = Vec::new();
    for x in 0..now.area.width {
        let at = (x, y);
        let is_in_chart = charts.iter().any(|chart| chart.contains(at.into()));
        if is_in_chart || before.is_some_and(|before| before[at] == now[at]) {
            continue;
        }
        match found.last_mut() {
            Some(last) if x - last.end <= GAP => last.end = x + 1,
            _ => found.push(x..x + 1),
        }
    }
    // A letter may have been wider than its cell: what is blank beside it is erased as well.
    let is_blank = |x: u16| {
        let blank = |cell: &Cell| cell.symbol() == " " && cell.bg == Color::Reset && cell.modifier.is_empty();
        now.cell((x, y)).is_some_and(blank) && !charts.iter().any(|chart| chart.contains((x, y).into()))
    };
    for part in &mut found {
        part.start -= u16::from(part.start > 0 && is_blank(part.start - 1));
        part.end += u16::from(is_blank(part.end));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::picture::tests::film;
    use crate::ui::tui::theme::Theme;

    #[test]
    fn what_is_drawn_adds_up_to_each_frame() {
        let (film, charts) = film(&Theme::dark());
        let (frames, _) = film.played(1);
        let mut columns = Columns::default();
        let scrolls: Vec<_> = charts.iter().map(|area| columns.stretches(*area, &frames)).collect();
        let mut drawn = Buffer::empty(frames[0].screen.area);
        for (n, frame) in frames.iter().enumerate() {
            let before = n.checked_sub(1).map(|before| frames[before].screen);
            for y in 0..drawn.area.height {
                for x in changed(before, frame.screen, y, &charts).into_iter().flatten() {
                    drawn[(x, y)] = frame.screen[(x, y)].clone();
                }
            }
            for (area, stretches) in charts.iter().zip(&scrolls) {
                let shown = stretches.iter().rev().find(|stretch| stretch.from() <= n).unwrap();
                for (x, column) in area.columns().zip(columns.shown(shown, n)) {
                    x.positions().zip(column).for_each(|(at, cell)| drawn[at] = cell.clone());
                }
            }
            assert!(drawn == *frame.screen, "frame {n}");
        }
        assert!(charts.len() == 3 && scrolls.iter().all(|stretches| stretches.len() < frames.len() - 4));
    }
}
