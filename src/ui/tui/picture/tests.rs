//! A film of a run, played as a terminal plays it and as a document draws it.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use super::{Film, Paper, animated, cast, is_cast_of_ours, is_svg_of_ours};
use crate::runs::session::Event;
use crate::ui::tui::fixture::{self, duel, running_for, tell, troubled, turned};
use crate::ui::tui::state::State;
use crate::ui::tui::theme::Theme;
use crate::ui::tui::view;

/// A run with turns and a duel, and where its charts are.
pub fn film(theme: &Theme) -> (Film, Vec<Rect>) {
    let mut fights = turned(160, 50);
    tell(&mut fights, Event::Duel(Arc::new(duel(3))));
    let mut windows: Vec<_> = (40..48).chain([66, 70]).map(|windows| running_for(windows, 160, 50)).collect();
    windows.extend([turned(160, 50), fights, troubled(160, 50), fixture::empty(160, 50)]);
    let plots = view::plots(&windows[0]);
    let mut film = Film::default();
    for (second, mut state) in windows.into_iter().enumerate() {
        state.theme = theme.clone();
        film.add(Duration::from_secs(second as u64), drawn(&state), second % 5 == 4);
    }
    (film, plots)
}

fn drawn(state: &State) -> Buffer {
    let mut screen = Buffer::empty(state.screen);
    view::draw(state, &mut screen);
    screen
}

/// A cell as a terminal keeps it: symbol, colours, and whether it is bold, dim, underlined, reversed.
type Kept = (String, [vt100::Color; 2], [bool; 4]);

fn kept(cell: &Cell) -> Kept {
    let color = |color| match color {
        Color::Reset => vt100::Color::Default,
        Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
        other => panic!("{other:?} is in no theme of this test"),
    };
    let modifiers = [Modifier::BOLD, Modifier::DIM, Modifier::UNDERLINED, Modifier::REVERSED];
    let style = modifiers.map(|modifier| cell.modifier.contains(modifier));
    (cell.symbol().to_owned(), [color(cell.fg), color(cell.bg)], style)
}

fn kept_by_terminal(cell: &vt100::Cell) -> Kept {
    let symbol = if cell.has_contents() { cell.contents() } else { " " };
    let style = [cell.bold(), cell.dim(), cell.underline(), cell.inverse()];
    (symbol.to_owned(), [cell.fgcolor(), cell.bgcolor()], style)
}

#[test]
fn a_terminal_that_is_fed_the_recording_shows_each_frame_cell_by_cell() {
    for theme in [Theme::dark(), Theme::mono()] {
        let (film, _) = film(&theme);
        let text = cast(&film);
        assert!(is_cast_of_ours(text.as_bytes()) && !is_cast_of_ours(b"{\"version\":2}"));
        let mut lines = text.lines();
        let head: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!([&head["version"], &head["width"], &head["height"]], [2, 160, 50]);
        let [lines_high, columns] = [50, 160].map(|cells| NonZeroU16::new(cells).unwrap());
        let mut terminal = vt100::Parser::new(lines_high, columns, 0);
        for (number, frame) in film.frames().iter().enumerate() {
            let (at_s, kind, written): (f64, String, String) =
                serde_json::from_str(lines.next().unwrap()).unwrap();
            assert_eq!((at_s, kind.as_str()), (frame.at.as_secs_f64(), "o"));
            terminal.process(written.as_bytes());
            for at in frame.screen.area.positions() {
                let has = kept_by_terminal(terminal.screen().cell(at.y, at.x).unwrap());
                assert_eq!(has, kept(&frame.screen[at]), "frame {number}, at {at}");
            }
        }
        assert_eq!(lines.next(), None);
        assert!(terminal.screen().hide_cursor());
    }
}

#[test]
fn the_terminals_own_colours_are_written_by_their_numbers() {
    let mut screen = Buffer::empty(Rect::new(0, 0, 2, 1));
    screen[(0, 0)].set_char('"').set_fg(Color::Cyan).set_bg(Color::DarkGray);
    let mut film = Film::default();
    film.add(Duration::ZERO, screen, false);
    assert!(cast(&film).contains("\\u001b[0;38;5;6;48;5;8m\\\"\\u001b[0m "), "{}", cast(&film));
}

#[test]
fn a_film_has_as_many_frames_as_fit_a_document() {
    let (film, plots) = film(&Theme::dark());
    let svg = animated(&film, &plots, Paper::DARK);
    assert!(is_svg_of_ours(svg.as_bytes()) && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("@keyframes f").count(), film.frames().len() - 1);
    for opened in ["g", "svg", "defs", "style", "text"] {
        let count = |what: &str| svg.matches(what).count();
        let open = count(&format!("<{opened} ")) + count(&format!("<{opened}>"));
        assert_eq!(open, count(&format!("</{opened}>")), "{opened}");
    }
    if let Ok(folder) = std::env::var("STACKTUNE_PICTURES") {
        std::fs::write(format!("{folder}/moving.svg"), &svg).expect("a picture");
    }
    // Every character another one.
    let mut noise = Film::default();
    for frame in 0..40_u32 {
        let mut screen = Buffer::empty(Rect::new(0, 0, 160, 50));
        for (n, cell) in screen.content.iter_mut().enumerate() {
            cell.set_char(char::from_u32('a' as u32 + (n as u32 * 7 + frame) % 26).unwrap());
            cell.set_fg(Color::Rgb((n % 7) as u8, 0, 0));
        }
        noise.add(Duration::from_secs(u64::from(frame)), screen, false);
    }
    let svg = animated(&noise, &[], Paper::DARK);
    let frames = svg.matches("@keyframes f").count();
    assert!(frames > 0 && frames < 10, "{frames} frames, {} bytes", svg.len());
}
