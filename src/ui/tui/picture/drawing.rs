//! Cells as SVG: words as text; what fills cells to their edges as paths, since fonts leave gaps between them.
//!
//! Paths of a colour are one element, and so are texts: a moving picture has many of both. Texts are placed in pixels,
//! paths in a cell's braille dots, two to the right and four down: short numbers.

use std::fmt::Write;

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use ratatui::symbols::pixel::OCTANTS;

/// A cell in pixels, as a monospaced font of [`FONT`] pixels has them.
pub const CELL: (f64, f64) = (8.4, 18.0);
/// The font's size in pixels.
pub const FONT: u32 = 14;
/// How paths are scaled to pixels.
pub const SCALED: &str = "scale(4.2 4.5)";
/// The way back, for texts among paths.
const UNSCALED: &str = "scale(.238095 .222222)";
/// The styles that drawings need. Edges between cells are sharp; thin lines would vanish in a smaller picture if they
/// were.
pub const STYLE: &str = "path{shape-rendering:crispEdges}\
    .l,.d,.a{shape-rendering:geometricPrecision}.b,.h,.d,.a{fill:none}.b{stroke-width:4}.h{stroke-width:2}\
    .d{stroke-width:.7;stroke-linecap:round}.a{stroke-width:.23}";
/// From a cell's top to the baseline, in pixels.
const BASELINE: usize = 14;
/// A pixel, in dots.
const THIN: f64 = 0.23;

/// What a picture is drawn on: the colours of a terminal that are not the theme's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    pub background: &'static str,
    foreground: &'static str,
}

impl Paper {
    /// A dark terminal.
    pub const DARK: Self = Self { background: "#12161d", foreground: "#d6dbe3" };
    /// A light one.
    pub const LIGHT: Self = Self { background: "#fbfbf8", foreground: "#23272e" };
}

/// Elements by their attributes, in the order of their first use.
type Elements = Vec<(String, String)>;

/// What is drawn of some cells.
#[derive(Debug)]
pub struct Drawing {
    paper: Paper,
    backgrounds: Elements,
    paths: Elements,
    texts: Elements,
    /// Whether these are columns of a chart, in which a point is a dot and no letter.
    charts: bool,
}

fn of<'a>(elements: &'a mut Elements, attributes: &str) -> &'a mut String {
    let at = elements.iter().position(|(of, _)| of == attributes).unwrap_or_else(|| {
        elements.push((attributes.to_owned(), String::new()));
        elements.len() - 1
    });
    &mut elements[at].1
}

impl Drawing {
    /// An empty drawing on this paper.
    pub fn on(paper: Paper) -> Self {
        let (backgrounds, paths, texts) = Default::default();
        Self { paper, backgrounds, paths, texts, charts: false }
    }

    /// An empty drawing for columns of a chart.
    pub fn of_chart(paper: Paper) -> Self {
        Self { charts: true, ..Self::on(paper) }
    }

    /// Adds cells that lie side by side in a row, from a column on; `erases` what was there before.
    pub fn row(&mut self, row: &[&Cell], (x, y): (usize, usize), erases: bool) {
        self.backgrounds(row, (x, y), erases);
        let mut at = 0;
        while at < row.len() {
            let (c, fg) = (first_char(row[at]), self.colors(row[at]).0);
            let same = |cell: &&&Cell| first_char(cell) == c && self.colors(cell).0 == fg;
            let run = match c {
                ' ' => 1,
                _ if is_wide(c) => row[at..].iter().take_while(same).count(),
                _ if self.is_shape(c) => 1,
                _ => self.words(&row[at..]),
            };
            if self.is_shape(c) {
                self.shape(c, (2 * (x + at), 4 * y), run, &fg);
            } else if c != ' ' {
                self.text(&row[at..at + run], x + at, y, &fg);
            }
            at += run;
        }
    }

    fn backgrounds(&mut self, row: &[&Cell], (x, y): (usize, usize), erases: bool) {
        let mut at = 0;
        while at < row.len() {
            let bg = self.colors(row[at]).1;
            let run = row[at..].iter().take_while(|cell| self.colors(cell).1 == bg).count();
            if let Some(bg) = bg.or_else(|| erases.then(|| self.paper.background.to_owned())) {
                let path = of(&mut self.backgrounds, &format!("class=\"b\" stroke=\"{bg}\""));
                line(path, 2 * (x + at), 4 * y + 2, 2 * run);
            }
            at += run;
        }
    }

    /// Letters of one style from the first cell on, single spaces between them included: at more of them a new text
    /// begins, so that columns stay columns in a font of another width.
    fn words(&self, row: &[&Cell]) -> usize {
        let (fg, modifier) = (self.colors(row[0]).0, row[0].modifier);
        let is_letter = |at: usize| {
            let cell = row.get(at).filter(|cell| self.colors(cell).0 == fg && cell.modifier == modifier);
            cell.map(|cell| first_char(cell)).is_some_and(|c| c != ' ' && !self.is_shape(c))
        };
        let mut run = 1;
        loop {
            if is_letter(run) {
                run += 1;
            } else if row.get(run).is_some_and(|cell| first_char(cell) == ' ') && is_letter(run + 1) {
                run += 2;
            } else {
                return run;
            }
        }
    }

    fn text(&mut self, cells: &[&Cell], x: usize, y: usize, fg: &str) {
        let modifier = cells[0].modifier;
        let bold = if modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
        let dim = if modifier.contains(Modifier::DIM) { " opacity=\".6\"" } else { "" };
        let text: String = cells.iter().map(|cell| cell.symbol()).collect();
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let (x, y) = (number(x as f64 * CELL.0), y * CELL.1 as usize + BASELINE);
        let texts = of(&mut self.texts, &format!("fill=\"{fg}\"{bold}{dim}"));
        let _ = write!(texts, "<text x=\"{x}\" y=\"{y}\">{text}</text>");
    }

    /// Foreground and background, as they are seen.
    fn colors(&self, cell: &Cell) -> (String, Option<String>) {
        let fg = hex(cell.fg).unwrap_or_else(|| self.paper.foreground.into());
        let bg = hex(cell.bg);
        if cell.modifier.contains(Modifier::REVERSED) {
            return (bg.unwrap_or_else(|| self.paper.background.into()), Some(fg));
        }
        (fg, bg)
    }

    fn is_shape(&self, c: char) -> bool {
        is_wide(c)
            || is_braille(c)
            || octant(c).is_some()
            || "│╭╮╰╯┊_".contains(c)
            || (self.charts && c == '·')
    }

    #[allow(clippy::many_single_char_names)] // the usual names in geometry
    fn shape(&mut self, c: char, (left, top): (usize, usize), run: usize, fg: &str) {
        let (x, y, w) = (left as f64, top as f64, 2.0 * run as f64);
        let filled = format!("fill=\"{fg}\"");
        let attributes = match c {
            '▀' | '▄' => format!("class=\"h\" stroke=\"{fg}\""),
            '▁'..='█' => filled,
            _ if octant(c).is_some() => filled,
            '░' => format!("{filled} opacity=\".2\""),
            '╭' | '╮' | '╰' | '╯' => format!("class=\"a\" stroke=\"{fg}\""),
            '─' | '│' | '┊' | '_' => format!("class=\"l\" {filled}"),
            _ => format!("class=\"d\" stroke=\"{fg}\""),
        };
        let path = of(&mut self.paths, &attributes);
        match c {
            '▀' => line(path, left, top + 1, 2 * run),
            '▄' => line(path, left, top + 3, 2 * run),
            '▁'..='█' => {
                let high = f64::from(c as u32 - '▀' as u32) / 2.0;
                rect(path, x, y + 4.0 - high, w, high);
            }
            '░' => rect(path, x, y, w, 4.0),
            '_' => rect(path, x, y + 3.67, w, THIN),
            '─' => rect(path, x, y + 1.89, w, THIN),
            '│' => rect(path, x + 0.88, y, 0.24, 4.0),
            '┊' => [0.33, 1.67, 3.0].into_iter().for_each(|at| rect(path, x + 0.88, y + at, 0.24, 0.67)),
            '╭' | '╮' | '╰' | '╯' => {
                let side = if "╭╰".contains(c) { x + 2.0 } else { x };
                let end = if "╭╮".contains(c) { y + 4.0 } else { y };
                let _ = write!(path, "M{side} {0}Q{1} {0} {1} {end}", y + 2.0, x + 1.0);
            }
            '·' => dot(path, x + 1.0, y + 2.0),
            _ if let Some(parts) = octant(c) => octants(path, parts, x, y),
            _ => braille(path, c, x, y),
        }
    }

    /// Appends the paths.
    pub fn paths(&self, out: &mut String) {
        for (attributes, path) in self.backgrounds.iter().chain(&self.paths) {
            let _ = write!(out, "<path {attributes} d=\"{path}\"/>");
        }
        // Rare: something covers a chart.
        if self.charts && !self.texts.is_empty() {
            let _ = write!(out, "<g transform=\"{UNSCALED}\">");
            self.texts(out);
            out.push_str("</g>");
        }
    }

    fn texts(&self, out: &mut String) {
        for (attributes, texts) in &self.texts {
            let _ = write!(out, "<g {attributes}>{texts}</g>");
        }
    }

    /// Appends everything.
    pub fn write(&self, out: &mut String) {
        let _ = write!(out, "<g transform=\"{SCALED}\">");
        self.paths(out);
        out.push_str("</g>");
        self.texts(out);
    }
}

/// A number with two places at most.
pub fn number(x: f64) -> String {
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.strip_prefix('0').filter(|rest| !rest.is_empty()).unwrap_or(text).to_owned()
}

/// As wide as the stroke: shorter than a rectangle.
fn line(path: &mut String, x: usize, y: usize, width: usize) {
    let _ = write!(path, "M{x} {y}h{width}");
}

fn rect(path: &mut String, x: f64, y: f64, width: f64, height: f64) {
    let [x, y, width, height] = [x, y, width, height].map(number);
    let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
}

/// The end of a line without length is round.
fn dot(path: &mut String, x: f64, y: f64) {
    let _ = write!(path, "M{} {}h0", number(x), number(y));
}

fn braille(path: &mut String, c: char, x: f64, y: f64) {
    // Column and row of each bit.
    const PLACES: [(f64, f64); 8] =
        [(0.5, 0.5), (0.5, 1.5), (0.5, 2.5), (1.5, 0.5), (1.5, 1.5), (1.5, 2.5), (0.5, 3.5), (1.5, 3.5)];
    let bits = (c as u32).saturating_sub(0x2800);
    for (_, (column, row)) in PLACES.iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0) {
        dot(path, x + column, y + row);
    }
}

/// Eight parts of a cell, row by row from the top; those whose bit is set are filled.
fn octants(path: &mut String, parts: usize, x: f64, y: f64) {
    for row in 0..4_u8 {
        let y = y + f64::from(row);
        match parts >> (2 * row) & 3 {
            0 => {}
            3 => rect(path, x, y, 2.0, 1.0),
            right => rect(path, x + (right - 1) as f64, y, 1.0, 1.0),
        }
    }
}

/// The parts that a glyph fills, if it is made of them and is not one of the blocks above.
fn octant(c: char) -> Option<usize> {
    if c <= '█' || is_braille(c) {
        return None;
    }
    OCTANTS.iter().position(|octant| *octant == c)
}

fn first_char(cell: &Cell) -> char {
    cell.symbol().chars().next().unwrap_or(' ')
}

/// Whether neighbours of that character are one shape.
fn is_wide(c: char) -> bool {
    ('▀'..='█').contains(&c) || c == '─' || c == '░'
}

fn is_braille(c: char) -> bool {
    ('\u{2801}'..='\u{28ff}').contains(&c)
}

/// A colour as `#rrggbb`; the 16 colours as most terminals have them. None is the terminal's own.
fn hex(color: Color) -> Option<String> {
    let (r, g, b) = match color {
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Black => (0x1c, 0x1f, 0x26),
        Color::Red | Color::LightRed => (0xe0, 0x6c, 0x75),
        Color::Green | Color::LightGreen => (0x7e, 0xc6, 0x99),
        Color::Yellow | Color::LightYellow => (0xe5, 0xc0, 0x7b),
        Color::Blue | Color::LightBlue => (0x61, 0xaf, 0xef),
        Color::Magenta | Color::LightMagenta => (0xc6, 0x78, 0xdd),
        Color::Cyan | Color::LightCyan => (0x56, 0xb6, 0xc2),
        Color::Gray | Color::White => (0xd6, 0xdb, 0xe3),
        Color::DarkGray => (0x83, 0x8d, 0x9c),
        Color::Reset | Color::Indexed(_) => return None,
    };
    Some(format!("#{r:02x}{g:02x}{b:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octants_are_shapes_that_fill_what_their_bits_say() {
        let number = |text: &str| text.parse::<f64>().unwrap();
        for (bits, glyph) in OCTANTS.into_iter().enumerate().skip(1) {
            let mut drawing = Drawing::on(Paper::DARK);
            let mut cell = Cell::default();
            cell.set_char(glyph);
            drawing.row(&[&cell], (0, 0), false);
            assert!(drawing.texts.is_empty(), "{glyph}");
            let (attributes, path) = &drawing.paths[0];
            // Lines are half a cell high.
            let area: f64 = if attributes.contains("stroke") {
                4.0
            } else {
                let shapes = path.split('h').skip(1).filter_map(|shape| shape.split_once('v'));
                shapes.map(|(w, rest)| number(w) * number(rest.split('h').next().unwrap())).sum()
            };
            assert!((area - f64::from(bits.count_ones())).abs() < 1e-9, "{glyph} {path}");
        }
        let mut drawing = Drawing::on(Paper::DARK);
        let mut cell = Cell::default();
        cell.set_char(OCTANTS[0b1000_0110]);
        drawing.row(&[&cell], (0, 0), false);
        assert_eq!(drawing.paths[0].1, "M1 0h1v1h-1zM0 1h1v1h-1zM1 3h1v1h-1z");
    }
}
