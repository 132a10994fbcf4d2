//! A run as a recording of a terminal, in the second version of asciinema's format: a line of JSON for each frame.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::film::Film;
use crate::ui::text::width;

/// The beginning of every recording, by which it is recognized.
const MARK: &str = "{\"version\":2,\"title\":\"stacktune, drawn by stacktune picture\",";

/// Whether a file's text is a recording made by this module.
pub fn is_cast_of_ours(text: &[u8]) -> bool {
    text.starts_with(MARK.as_bytes())
}

/// The film at its own pace.
pub fn cast(film: &Film) -> String {
    let area = film.frames().first().map(|frame| frame.screen.area).unwrap_or_default();
    let mut out = format!(
        "{MARK}\"width\":{},\"height\":{},\"idle_time_limit\":2.0,\"env\":{{\"TERM\":\"xterm-256color\"}}}}\n",
        area.width, area.height
    );
    let mut before = None;
    for frame in film.frames() {
        let text = written(before, &frame.screen);
        // Control characters are not JSON.
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\u{1b}', "\\u001b");
        let _ = writeln!(out, "[{:.3}, \"o\", \"{text}\"]", frame.at.as_secs_f64());
        before = Some(&frame.screen);
    }
    out
}

/// What is written to a terminal that shows one screen, or nothing yet, so that it shows another.
fn written(before: Option<&Buffer>, now: &Buffer) -> String {
    let mut out = if before.is_some() { String::new() } else { "\u{1b}[0m\u{1b}[?25l\u{1b}[2J".to_owned() };
    let mut pen: Option<&Cell> = None;
    for y in 0..now.area.height {
        let mut next = None;
        for x in 0..now.area.width {
            let cell = &now[(x, y)];
            if before.is_some_and(|before| before[(x, y)] == *cell) {
                continue;
            }
            if next != Some(x) {
                let _ = write!(out, "\u{1b}[{};{}H", y + 1, x + 1);
            }
            if !pen.is_some_and(|pen| (pen.fg, pen.bg, pen.modifier) == (cell.fg, cell.bg, cell.modifier)) {
                style(&mut out, cell);
                pen = Some(cell);
            }
            out.push_str(cell.symbol());
            next = Some(x + width(cell.symbol()) as u16);
        }
    }
    out
}

fn style(out: &mut String, cell: &Cell) {
    out.push_str("\u{1b}[0");
    for (modifier, code) in [
        (Modifier::BOLD, ";1"),
        (Modifier::DIM, ";2"),
        (Modifier::UNDERLINED, ";4"),
        (Modifier::REVERSED, ";7"),
    ] {
        if cell.modifier.contains(modifier) {
            out.push_str(code);
        }
    }
    color(out, 38, cell.fg);
    color(out, 48, cell.bg);
    out.push('m');
}

fn color(out: &mut String, of: u8, color: Color) {
    let index = match color {
        Color::Reset => return,
        Color::Rgb(r, g, b) => {
            let _ = write!(out, ";{of};2;{r};{g};{b}");
            return;
        }
        Color::Indexed(index) => index,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    let _ = write!(out, ";{of};5;{index}");
}
