//! Lists that are narrowed down by what is typed.

use crossterm::event::KeyCode;

use super::tests::{choose, key, letter, typed};
use super::update;
use crate::runs::session::Command;
use crate::settings::knobs::Value;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{listed, profile, running};
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::state::State;
use crate::ui::tui::tests::{SIZES, shown};

fn with_profiles(columns: u16, lines: u16) -> State {
    let mut state = running(columns, lines);
    letter(&mut state, 'o');
    let list = [("demo", "Four small files"), ("paper-1", "Threads"), ("quick", "The paper's, but short")];
    update(&mut state, Msg::Listed(list.map(|(name, about)| profile(name, about)).into()));
    state
}

#[test]
fn a_profile_is_found_by_its_words_and_opened() {
    for (columns, lines) in SIZES {
        let mut state = with_profiles(columns, lines);
        assert!(shown(&state).contains("/ filter"), "{}", shown(&state));
        typed(&mut state, "/PAPER");
        insta::assert_snapshot!(format!("filtered_{columns}x{lines}"), shown(&state));
        key(&mut state, KeyCode::Down);
        key(&mut state, KeyCode::Down);
        assert_eq!(key(&mut state, KeyCode::Enter), [Effect::Load("quick".into())]);
    }
}

#[test]
fn letters_that_are_keys_are_typed_and_escape_shows_the_whole_list_first() {
    let mut state = with_profiles(80, 24);
    typed(&mut state, "/qj");
    assert!(shown(&state).contains("no profile matches"), "{}", shown(&state));
    assert_eq!(key(&mut state, KeyCode::Enter), [], "nothing is chosen that is not in sight");
    key(&mut state, KeyCode::Backspace);
    assert!(shown(&state).contains("▸ quick") && !shown(&state).contains("Threads"), "{}", shown(&state));
    key(&mut state, KeyCode::Esc);
    assert!(shown(&state).contains("▸ quick") && shown(&state).contains("Threads"), "{}", shown(&state));
    // The keys of the whole list work again.
    letter(&mut state, 'k');
    assert!(shown(&state).contains("▸ paper-1"), "{}", shown(&state));
    typed(&mut state, "/x");
    key(&mut state, KeyCode::Backspace);
    key(&mut state, KeyCode::Backspace);
    letter(&mut state, 'q');
    assert_eq!(state.dialog, None);
}

#[test]
fn a_recording_is_found_marked_and_read() {
    let mut state = running(120, 40);
    letter(&mut state, 'O');
    update(&mut state, Msg::RecordingsListed(Ok(listed())));
    typed(&mut state, "/demo-2");
    assert!(shown(&state).contains("recordings 1/1 /demo-2▏"), "{}", shown(&state));
    key(&mut state, KeyCode::Tab);
    let Some(Dialog::Shelf(shelf)) = &state.dialog else { panic!("{:?}", state.dialog) };
    assert_eq!(shelf.marked, [listed()[1].dir.clone()]);
    assert_eq!(key(&mut state, KeyCode::Enter), [Effect::ReadRecordings(vec![listed()[1].dir.clone()])]);
    key(&mut state, KeyCode::Esc);
    assert!(shown(&state).contains("/demo-2▏"), "the list is as it was: {}", shown(&state));
}

#[test]
fn a_value_is_found_by_its_name() {
    let mut state = running(120, 40);
    choose(&mut state, "io.interface");
    key(&mut state, KeyCode::Enter);
    typed(&mut state, "/sync");
    key(&mut state, KeyCode::Home);
    let screen = shown(&state);
    assert!(screen.contains("io.interface /▏sync") && screen.contains("▸   sync"), "{screen}");
    let turn = Command::Turn { knob: "io.interface".into(), value: Value::Choice("sync") };
    assert_eq!(key(&mut state, KeyCode::Enter), [Effect::Send(turn)]);
}
