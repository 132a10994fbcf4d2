//! A turn that destroys something under the load: shown as a plan, agreed to by typing, or cancelled.

use std::sync::Arc;

use crossterm::event::KeyCode;

use super::tests::{choose, key, letter, said, typed};
use crate::runs::session::{Command, Event};
use crate::settings::knobs::Value;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{self, running, tell};
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;
use crate::ui::tui::tests::shown;

/// A screen that shows the plan of a turn that was asked for.
fn asked() -> State {
    let mut state = running(160, 50);
    state.asked.insert("md.array", Value::Choice("rebuilding"));
    tell(&mut state, Event::Planned(Ok(Arc::new(fixture::plan_turn()))));
    state
}

#[test]
fn it_is_turned_once_the_serial_was_typed_and_builds_nothing() {
    let mut state = asked();
    assert!(state.asked.is_empty(), "it is not turned yet");
    let text = shown(&state);
    for part in ["md.array: healthy", "--fail", "the load goes on", "by md beside the load"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("total time") && !text.contains("the fill included"), "{text}");
    key(&mut state, KeyCode::End);
    typed(&mut state, "S4EWNX0R123451");
    assert_eq!(key(&mut state, KeyCode::Enter), [], "the serial of another drive");
    super::update(&mut state, crate::ui::tui::message::Msg::Key(ctrl_u()));
    typed(&mut state, "S4EWNX0R123454");
    let typed = vec!["S4EWNX0R123454".to_owned()];
    assert_eq!(key(&mut state, KeyCode::Enter), [Effect::Send(Command::Build { plan: 5, typed })]);
    assert_eq!(said(&state), "turning…");
}

fn ctrl_u() -> crossterm::event::KeyEvent {
    crossterm::event::KeyEvent::new(KeyCode::Char('u'), crossterm::event::KeyModifiers::CONTROL)
}

#[test]
fn cancelled_it_leaves_the_knob_as_it_is() {
    let mut state = asked();
    assert_eq!(key(&mut state, KeyCode::Esc), []);
    assert!(state.dialog.is_none() && state.asked.is_empty());
    assert!(said(&state).contains("nothing is destroyed, and the load goes on"), "{}", said(&state));
    // A dialog that was opened meanwhile is not replaced.
    choose(&mut state, "scan.depth");
    letter(&mut state, 'e');
    tell(&mut state, Event::Planned(Ok(Arc::new(fixture::plan_turn()))));
    assert!(matches!(state.dialog, Some(Dialog::Edit { .. })));
    assert!(said(&state).contains("turn it again"), "{}", said(&state));
}
