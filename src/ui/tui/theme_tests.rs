//! The screen in each palette, and on the largest size.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::fixture::{running, turned};
use super::glyphs::Glyphs;
use super::state::State;
use super::tests::{SIZES, shown};
use super::theme::Theme;
use super::{Paper, svg, view};

/// The screen's styles: a letter a cell, and below it what each letter is.
fn painted(state: &State) -> String {
    let mut buffer = Buffer::empty(state.screen);
    view::draw(state, &mut buffer);
    let mut styles: Vec<Style> = Vec::new();
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut row = String::new();
        for x in 0..buffer.area.width {
            let style = buffer[(x, y)].style();
            let at = styles.iter().position(|known| *known == style).unwrap_or_else(|| {
                styles.push(style);
                styles.len() - 1
            });
            let letters = (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'0'..=b'9');
            row.push(letters.map(char::from).nth(at).unwrap_or('?'));
        }
        out += &(row + "\n");
    }
    for (style, letter) in styles.iter().zip(('a'..='z').chain('A'..='Z').chain('0'..='9')) {
        let _ = writeln!(out, "{letter}: {}", words(style));
    }
    out
}

fn words(style: &Style) -> String {
    let of = |color: Option<Color>| color.unwrap_or(Color::Reset).to_string();
    let mut words = of(style.fg);
    if style.bg.is_some_and(|bg| bg != Color::Reset) {
        words += " on ";
        words += &of(style.bg);
    }
    for (modifier, name) in [
        (Modifier::BOLD, " bold"),
        (Modifier::DIM, " dim"),
        (Modifier::UNDERLINED, " underlined"),
        (Modifier::REVERSED, " reversed"),
    ] {
        words += if style.add_modifier.contains(modifier) { name } else { "" };
    }
    words
}

#[test]
fn every_palette_is_seen() {
    for (name, theme) in [
        ("dark", Theme::dark()),
        ("light", Theme::light()),
        ("sixteen", Theme::sixteen()),
        ("mono", Theme::mono()),
    ] {
        for (columns, lines) in SIZES {
            let mut state = turned(columns, lines);
            state.theme = theme.clone();
            insta::assert_snapshot!(format!("palette_{name}_{columns}x{lines}"), painted(&state));
        }
    }
}

/// If `STACKTUNE_PICTURES` names a folder, pictures of the screen at each size and in each palette are written there.
#[test]
fn a_picture_shows_what_the_screen_shows() {
    for (name, theme, glyphs) in [
        ("dark", Theme::dark(), Glyphs::Blocks),
        ("octants", Theme::dark(), Glyphs::Octants),
        ("light", Theme::light(), Glyphs::Blocks),
        ("sixteen", Theme::sixteen(), Glyphs::Blocks),
        ("ascii", Theme::mono(), Glyphs::Ascii),
    ] {
        for (columns, lines) in SIZES {
            let mut state = turned(columns, lines);
            (state.theme, state.glyphs) = (theme.clone(), glyphs);
            let paper = if name == "light" { Paper::LIGHT } else { Paper::DARK };
            let mut buffer = Buffer::empty(state.screen);
            view::draw(&state, &mut buffer);
            let svg = svg(&buffer, paper);
            assert!(
                svg.contains(">background</text>") && svg.contains(">members</text>") == (columns >= 160)
            );
            if let Ok(folder) = std::env::var("STACKTUNE_PICTURES") {
                std::fs::write(format!("{folder}/{name}-{columns}x{lines}.svg"), svg).expect("a picture");
            }
        }
    }
}

#[test]
fn a_background_of_a_theme_is_under_everything() {
    let ground = Color::Rgb(0x2e, 0x34, 0x40);
    let mut state = turned(160, 50);
    state.theme = super::themes::parse(b"theme[main_bg]=\"#2e3440\"\ntheme[main_fg]=\"#d8dee9\"").unwrap();
    for key in ['?', 's', 'o', 'D'] {
        super::tests::press(&mut state, &[crossterm::event::KeyCode::Char(key)]);
        let mut buffer = Buffer::empty(state.screen);
        view::draw(&state, &mut buffer);
        assert!(buffer.content.iter().all(|cell| cell.bg != Color::Reset), "{key}");
        assert!(buffer.content.iter().filter(|cell| cell.bg == ground).count() > 4000, "{key}");
        super::tests::press(&mut state, &[crossterm::event::KeyCode::Esc]);
    }
}

/// Nothing scrolls that the screen has room for.
#[test]
fn a_large_screen_shows_every_knob_of_a_layer() {
    use crate::settings::knobs::StackLayer;
    let mut state = running(240, 70);
    state.listed = |_| true;
    for layer in StackLayer::ALL {
        (state.layer, state.top) = (layer, 0);
        state.list_knobs();
        let screen = shown(&state);
        assert!(!screen.contains("↓ more"), "{}: {screen}", layer.name());
    }
}
