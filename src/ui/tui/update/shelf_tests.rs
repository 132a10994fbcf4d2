//! The list of recordings: chosen, marked, read, compared.

use std::path::PathBuf;

use crossterm::event::KeyCode;

use super::update;
use crate::error::Error;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{listed, replaying, running};
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::state::State;
use crate::ui::tui::tests::{SIZES, shown};

fn key(state: &mut State, code: KeyCode) -> Vec<Effect> {
    update(state, Msg::Key(code.into()))
}

fn opened(columns: u16, lines: u16) -> State {
    let mut state = running(columns, lines);
    assert_eq!(key(&mut state, KeyCode::Char('O')), [Effect::ListRecordings]);
    update(&mut state, Msg::RecordingsListed(Ok(listed())));
    state
}

fn dirs(of: &[usize]) -> Vec<PathBuf> {
    let all = listed();
    of.iter().map(|at| all[*at].dir.clone()).collect()
}

/// As wide as what `show` prints.
fn text(lines: usize) -> String {
    let all: Vec<_> = (1..=lines).map(|line| format!("{line:<8}{}", "=".repeat(72))).collect();
    all.join("\n")
}

#[test]
fn the_list_and_a_summary() {
    for (columns, lines) in SIZES {
        let mut state = opened(columns, lines);
        key(&mut state, KeyCode::Down);
        key(&mut state, KeyCode::Char(' '));
        insta::assert_snapshot!(format!("shelf_{columns}x{lines}"), shown(&state));
        assert_eq!(key(&mut state, KeyCode::Enter), [Effect::ReadRecordings(dirs(&[1]))]);
        update(&mut state, Msg::RecordingsRead(dirs(&[1]), Ok(text(60))));
        key(&mut state, KeyCode::PageDown);
        insta::assert_snapshot!(format!("shelf_summary_{columns}x{lines}"), shown(&state));
        key(&mut state, KeyCode::End);
        assert!(shown(&state).contains("60 of 60") && shown(&state).contains(&"=".repeat(72)));
        key(&mut state, KeyCode::Esc);
        assert!(shown(&state).contains("recordings 2/3"), "{}", shown(&state));
        key(&mut state, KeyCode::Esc);
        assert_eq!(state.dialog, None);
    }
}

#[test]
fn two_that_are_marked_are_compared() {
    let mut state = opened(120, 40);
    assert_eq!(key(&mut state, KeyCode::Char('c')), [], "none is marked");
    assert!(shown(&state).contains("mark two"), "{}", shown(&state));
    key(&mut state, KeyCode::Char(' '));
    assert_eq!(key(&mut state, KeyCode::Char('c')), [], "one with itself");
    key(&mut state, KeyCode::Down);
    assert_eq!(
        key(&mut state, KeyCode::Char('c')),
        [Effect::ReadRecordings(dirs(&[0, 1]))],
        "the chosen one"
    );
    update(&mut state, Msg::RecordingsRead(dirs(&[0, 1]), Ok("A and B differ".into())));
    assert!(shown(&state).contains("A and B differ") && shown(&state).contains("demo-1 and demo-2"));
    key(&mut state, KeyCode::Esc);

    // A third mark replaces the first, and marking a recording again clears its mark.
    for code in [KeyCode::Char(' '), KeyCode::Down, KeyCode::Char(' ')] {
        key(&mut state, code);
    }
    assert_eq!(key(&mut state, KeyCode::Char('c')), [Effect::ReadRecordings(dirs(&[1, 2]))]);
    key(&mut state, KeyCode::Esc);
    key(&mut state, KeyCode::Char(' '));
    let Some(Dialog::Shelf(shelf)) = &state.dialog else { panic!("{:?}", state.dialog) };
    assert_eq!(shelf.marked, dirs(&[1]));
}

#[test]
fn what_comes_too_late_or_fails_is_shown_where_it_belongs() {
    let mut state = opened(80, 24);
    key(&mut state, KeyCode::Enter);
    assert!(shown(&state).contains("reading…"), "{}", shown(&state));
    key(&mut state, KeyCode::Esc);
    key(&mut state, KeyCode::Down);
    key(&mut state, KeyCode::Enter);
    update(&mut state, Msg::RecordingsRead(dirs(&[0]), Ok("of another".into())));
    assert!(!shown(&state).contains("of another"), "{}", shown(&state));
    update(&mut state, Msg::RecordingsRead(dirs(&[1]), Err(Error::failed("windows.jsonl:1: damaged"))));
    assert!(shown(&state).contains("it can't be read: windows.jsonl:1: damaged"), "{}", shown(&state));
    key(&mut state, KeyCode::Esc);
    key(&mut state, KeyCode::Esc);
    update(&mut state, Msg::RecordingsListed(Ok(listed())));
    update(&mut state, Msg::RecordingsRead(dirs(&[1]), Ok("late".into())));
    assert_eq!(state.dialog, None);

    key(&mut state, KeyCode::Char('O'));
    assert!(shown(&state).contains("reading…"));
    update(&mut state, Msg::RecordingsListed(Err(Error::failed("cannot read /data"))));
    assert!(shown(&state).contains("cannot read /data"));
    update(&mut state, Msg::RecordingsListed(Ok(Vec::new())));
    assert!(shown(&state).contains("no recordings yet"));
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    update(&mut state, Msg::NotRead(Error::failed("cannot start a thread")));
    assert!(shown(&state).contains("cannot start a thread"));
}

#[test]
fn other_recordings_can_be_looked_at_beside_one() {
    let mut state = replaying(120, 40);
    assert_eq!(key(&mut state, KeyCode::Char('O')), [Effect::ListRecordings]);
    update(&mut state, Msg::RecordingsListed(Ok(listed())));
    assert!(shown(&state).contains("once this recording is left"), "{}", shown(&state));
}
