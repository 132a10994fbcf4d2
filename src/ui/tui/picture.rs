//! A screen as an SVG picture, for the README.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// A cell in pixels, as a monospaced font of [`FONT`] pixels has them.
const CELL: (f64, f64) = (8.4, 18.0);
const FONT: f64 = 14.0;
const MARGIN: f64 = 12.0;
const BACKGROUND: &str = "#12161d";
const FOREGROUND: &str = "#d6dbe3";

/// The second line of every picture, by which it is recognized.
const MARK: &str = "<!-- drawn by stacktune picture -->";

/// Whether a file's text is a picture drawn by this module.
pub fn is_svg_of_ours(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.next().is_some_and(|first| first.starts_with(b"<svg ")) && lines.next() == Some(MARK.as_bytes())
}

/// The buffer as SVG, on a dark background.
pub fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (width, height) =
        (f64::from(area.width) * CELL.0 + 2.0 * MARGIN, f64::from(area.height) * CELL.1 + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.1} {height:.1}\" font-family=\"'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
         font-size=\"{FONT}\" xml:space=\"preserve\">\n\
         {MARK}\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for y in 0..area.height {
        let row: Vec<&Cell> = (0..area.width).map(|x| &buffer[(area.x + x, area.y + y)]).collect();
        backgrounds(&mut out, &row, y);
        glyphs(&mut out, &row, y);
    }
    out.push_str("</svg>\n");
    out
}

fn left(x: usize) -> f64 {
    MARGIN + x as f64 * CELL.0
}

fn top(y: u16) -> f64 {
    MARGIN + f64::from(y) * CELL.1
}

/// Foreground and background, as they are seen.
fn colors(cell: &Cell) -> (String, Option<String>) {
    let fg = hex(cell.fg).unwrap_or_else(|| FOREGROUND.into());
    let bg = hex(cell.bg);
    if cell.modifier.contains(Modifier::REVERSED) {
        return (bg.unwrap_or_else(|| BACKGROUND.into()), Some(fg));
    }
    (fg, bg)
}

fn backgrounds(out: &mut String, row: &[&Cell], y: u16) {
    let mut x = 0;
    while x < row.len() {
        let bg = colors(row[x]).1;
        let run = row[x..].iter().take_while(|cell| colors(cell).1 == bg).count();
        if let Some(bg) = bg {
            rect(out, left(x), top(y), run as f64 * CELL.0, CELL.1, &bg);
        }
        x += run;
    }
}

fn rect(out: &mut String, x: f64, y: f64, width: f64, height: f64, fill: &str) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
    );
}

/// Words as text; characters that fill a cell to its edges as shapes, as fonts leave gaps between them.
fn glyphs(out: &mut String, row: &[&Cell], y: u16) {
    let mut x = 0;
    while x < row.len() {
        let c = first_char(row[x]);
        let fg = colors(row[x]).0;
        if c == ' ' {
            x += 1;
        } else if shape(c) {
            let same = |cell: &&&Cell| first_char(cell) == c && colors(cell).0 == fg;
            let run = if c == '─' || is_block(c) { row[x..].iter().take_while(same).count() } else { 1 };
            draw_shape(out, c, left(x), top(y), run, &fg);
            x += run;
        } else {
            let same = |cell: &&&Cell| {
                let c = first_char(cell);
                c != ' ' && !shape(c) && colors(cell).0 == fg && cell.modifier == row[x].modifier
            };
            let run = row[x..].iter().take_while(same).count();
            let text: String = row[x..x + run].iter().map(|cell| cell.symbol()).collect();
            word(out, &text, left(x), top(y), &fg, row[x].modifier);
            x += run;
        }
    }
}

fn first_char(cell: &Cell) -> char {
    cell.symbol().chars().next().unwrap_or(' ')
}

fn word(out: &mut String, text: &str, x: f64, y: f64, fg: &str, modifier: Modifier) {
    let bold = if modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    let dim = if modifier.contains(Modifier::DIM) { " opacity=\"0.6\"" } else { "" };
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let baseline = y + CELL.1 * 0.75;
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{baseline:.1}\" fill=\"{fg}\"{bold}{dim}>{text}</text>");
}

fn is_block(c: char) -> bool {
    ('▁'..='█').contains(&c)
}

fn is_braille(c: char) -> bool {
    ('\u{2801}'..='\u{28ff}').contains(&c)
}

fn shape(c: char) -> bool {
    is_block(c) || is_braille(c) || "─│╭╮╰╯┊░_".contains(c)
}

#[allow(clippy::many_single_char_names)] // the usual names in geometry
fn draw_shape(out: &mut String, c: char, x: f64, y: f64, run: usize, fg: &str) {
    let (w, h) = CELL;
    let (right, bottom, mid_x, mid_y) = (x + w * run as f64, y + h, x + w / 2.0, y + h / 2.0);
    match c {
        '▁'..='█' => {
            let high = h * f64::from(c as u32 - '▁' as u32 + 1) / 8.0;
            rect(out, x, bottom - high, right - x, high, fg);
        }
        '░' => {
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"{fg}\" opacity=\"0.2\"/>"
            );
        }
        '_' => rect(out, x, bottom - 1.5, w, 1.0, fg),
        '─' => rect(out, x, mid_y - 0.5, right - x, 1.0, fg),
        '│' => rect(out, mid_x - 0.5, y, 1.0, h, fg),
        '┊' => {
            for part in 0..3 {
                rect(out, mid_x - 0.5, y + h * (f64::from(part) + 0.25) / 3.0, 1.0, h / 6.0, fg);
            }
        }
        '╭' | '╮' | '╰' | '╯' => {
            let side = if "╭╰".contains(c) { x + w } else { x };
            let end = if "╭╮".contains(c) { bottom } else { y };
            let _ = writeln!(
                out,
                "<path d=\"M{side:.1} {mid_y:.1}Q{mid_x:.1} {mid_y:.1} {mid_x:.1} {end:.1}\" stroke=\"{fg}\" fill=\"none\"/>"
            );
        }
        _ => dots(out, c, x, y, fg),
    }
}

/// Braille's dots.
fn dots(out: &mut String, c: char, x: f64, y: f64, fg: &str) {
    // Column and row of each bit.
    const PLACES: [(f64, f64); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    let bits = c as u32 - 0x2800;
    for (_, (column, row)) in PLACES.iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0) {
        let (cx, cy) = (x + CELL.0 * (0.25 + column * 0.5), y + CELL.1 * (row + 0.5) / 4.0);
        let _ = writeln!(out, "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"1.5\" fill=\"{fg}\"/>");
    }
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
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn words_are_text_and_what_fills_cells_is_drawn() {
        let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 12, 1));
        buffer.set_string(0, 0, "a<b █⣀", Style::new().fg(Color::Rgb(1, 2, 3)));
        let svg = svg(&buffer);
        assert!(svg.contains(">a&lt;b</text>"), "{svg}");
        assert!(is_svg_of_ours(svg.as_bytes()));
        assert!(!is_svg_of_ours(svg.replace(" stacktune ", " another ").as_bytes()) && !is_svg_of_ours(b""));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("fill=\"#010203\"") && svg.trim_end().ends_with("</svg>"), "{svg}");
    }
}
