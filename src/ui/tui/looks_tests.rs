//! How the screen looks where room is scarce, or figures are unusual.

use std::sync::Arc;

use crossterm::event::KeyCode;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use super::fixture::{self, filling, running, tell, turned};
use super::layout::{self, View};
use super::state::State;
use super::tests::{SIZES, press, shown};
use super::theme::Theme;
use super::view;
use crate::error::Error;
use crate::runs::session::Event;
use crate::settings::knobs::{StackLayer, find};

fn drawn(state: &State) -> Buffer {
    let mut buffer = Buffer::empty(state.screen);
    view::draw(state, &mut buffer);
    buffer
}

fn choose(state: &mut State, path: &str) {
    super::update::choose_knob(state, find(path).expect("a knob of that path"));
}

/// The line of keys.
fn keys(state: &State) -> String {
    shown(state).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_figure_and_its_scale_are_apart_at_any_speed() {
    let mut state = running(80, 24);
    state.view = View::Charts;
    let mut fast = fixture::window(70);
    fast.classes[0].mb_per_s = 41_620.0;
    tell(&mut state, Event::Window(Arc::new(fast), Arc::new(fixture::totals(71))));
    assert!(shown(&state).contains(" 41620  0–50k "), "{}", shown(&state));
}

#[test]
fn the_cursor_is_seen_over_the_heat_map_and_its_axis() {
    for theme in [Theme::mono(), Theme::sixteen(), Theme::dark()] {
        let mut state = running(80, 24);
        state.theme = theme;
        press(&mut state, &[KeyCode::Char(',')]);
        let heat = layout::areas(state.screen, state.view).unwrap().heat;
        let buffer = drawn(&state);
        let is_reversed = |x: u16, y: u16| buffer[(x, y)].modifier.contains(Modifier::REVERSED);
        let columns: Vec<_> = (heat.x..heat.right())
            .filter(|x| (heat.y + 1..heat.bottom()).all(|y| is_reversed(*x, y)))
            .collect();
        assert_eq!(columns, [heat.right() - 2], "beside the newest, through the word at the axis' end");
    }
    let mut state = turned(80, 24);
    state.theme = Theme::dark();
    let over_color = |cell: &ratatui::buffer::Cell| cell.symbol() == "┊" && cell.bg != Color::Reset;
    assert!(drawn(&state).content.iter().any(over_color), "{}", shown(&state));
}

#[test]
fn an_older_window_says_when_it_was() {
    let mut state = running(80, 24);
    (0..9).for_each(|_| press(&mut state, &[KeyCode::Char(',')]));
    assert!(
        shown(&state).contains("FROZEN · service times, wal: commits · 1.0 s at 1m 01s, 9s ago"),
        "{}",
        shown(&state)
    );
    // A window that was the newest grows old.
    let mut state = running(80, 24);
    press(&mut state, &[KeyCode::Char('f')]);
    assert!(shown(&state).contains("· last 1.0 s"), "{}", shown(&state));
    tell(&mut state, Event::Window(Arc::new(fixture::window(70)), Arc::new(fixture::totals(71))));
    assert!(shown(&state).contains("· 1.0 s at 1m 10s, 1s ago"), "{}", shown(&state));
}

#[test]
fn the_first_steps_fit_a_small_screen() {
    let new = |columns, lines| State { first_steps: true, ..running(columns, lines) };
    for (columns, lines) in SIZES {
        insta::assert_snapshot!(format!("first_steps_{columns}x{lines}"), shown(&new(columns, lines)));
    }
    let mut state = new(80, 24);
    choose(&mut state, "scan.depth");
    assert!(shown(&state).contains("turn the chosen knob, or io.buffering"), "{}", shown(&state));
}

#[test]
fn what_is_typed_to_find_a_knob_or_an_action_fits_every_screen() {
    for (name, keys) in [("search", "/depth"), ("palette", ":du")] {
        for (columns, lines) in SIZES {
            let mut state = running(columns, lines);
            press(&mut state, &keys.chars().map(KeyCode::Char).collect::<Vec<_>>());
            insta::assert_snapshot!(format!("{name}_{columns}x{lines}"), shown(&state));
        }
    }
}

#[test]
fn the_line_of_keys_offers_what_is_of_use() {
    let has = |state: &State, words: &[&str]| {
        words.iter().map(|word| keys(state).contains(word)).collect::<Vec<_>>()
    };
    let mut state = running(80, 24);
    choose(&mut state, "io.buffering");
    assert_eq!(
        has(&state, &["mute", "undo", "duel", "turn", "find", "v view"]),
        [false, false, false, true, true, true]
    );
    let mut state = running(120, 40);
    choose(&mut state, "scan.depth");
    assert!(keys(&state).contains("m mute"), "{}", keys(&state));
    let mut state = turned(80, 24);
    assert_eq!(has(&state, &["u undo", "v view", "←→ turn"]), [true; 3], "{}", keys(&state));
    assert_eq!(has(&filling(80, 24), &["turn", "pause", "mute", "quit"]), [false, false, false, true]);
    tell(&mut state, Event::Ended(Err(Error::failed("data-0 vanished"))));
    assert_eq!(has(&state, &["turn", "pause", "undo", "o open", "quit"]), [false, false, false, true, true]);
}

#[test]
fn values_stand_in_one_column_beside_names_of_any_length() {
    let mut state = running(160, 50);
    state.listed = |_| true;
    state.show_inactive = true;
    choose(&mut state, "io.interface");
    let screen = shown(&state);
    let value_at = |key: &str| {
        let line = screen
            .lines()
            .find(|line| line.starts_with(&format!(" {key} ")))
            .unwrap_or_else(|| panic!("{key}: {screen}"));
        let behind = &line[1 + key.len()..];
        1 + key.len() + behind.len() - behind.trim_start().len()
    };
    assert_eq!(value_at("registered_buffers"), value_at("registered_files"));
    assert_eq!(state.layer, StackLayer::Interface);
}

#[test]
fn the_help_has_the_keys_of_every_list() {
    let state = running(80, 24);
    let text = super::view::help::text(&state, 100);
    let text = text.into_iter().map(|(line, _)| line).collect::<Vec<_>>().join("\n");
    for list in ["values   ↑↓ choose", "profiles ↑↓ choose", "drives   ↑↓ choose", "themes   ↑↓ choose"]
    {
        assert!(text.contains(list), "{list}: {text}");
    }
}

#[test]
fn it_says_where_earlier_windows_are_no_longer_kept() {
    let mut state = running(160, 50);
    let earlier = |state: &mut State| {
        state.live.show(0);
        state.frozen = Some(Box::new(state.live.clone()));
        press(state, &[KeyCode::Char(',')]);
        shown(state)
    };
    assert!(earlier(&mut state).contains("there is no earlier window"));
    for index in 70..2000 {
        state.live.window(Arc::new(fixture::window(index)), Arc::default());
    }
    assert!(earlier(&mut state).contains("there is no earlier window"));
    state.live.forget();
    assert!(earlier(&mut state).contains("earlier windows are no longer kept"));
    state.frozen = None;
    press(&mut state, &[KeyCode::Char('L')]);
    let screen = shown(&state);
    assert!(
        screen.contains("of the last 1872 windows, in the window that ended")
            && screen.contains(": earlier windows are no longer kept"),
        "{screen}"
    );
}
