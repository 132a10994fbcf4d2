//! Marks: set, gone back to, and compared.

use std::sync::Arc;

use crossterm::event::KeyCode;

use super::tests::{key, letter, said};
use crate::runs::session::message::Phase;
use crate::runs::session::{Command, Event};
use crate::settings::knobs::{Value, find};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{self, duel, running, tell, turned};
use crate::ui::tui::keys;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;
use crate::ui::tui::tests::shown;

/// Reports settings in which these knobs are turned.
fn turn(state: &mut State, turns: &[(&str, Value)]) {
    let mut status = fixture::status(Phase::Running);
    for (path, value) in turns {
        find(path).unwrap().set(&mut status.settings, value.clone());
    }
    tell(state, Event::Status(Arc::new(status)));
}

fn value(path: &str) -> Value {
    find(path).unwrap().get(&fixture::status(Phase::Running).settings)
}

#[test]
fn a_setting_is_marked_and_gone_back_to() {
    let mut state = turned(160, 50);
    assert_eq!(letter(&mut state, '\''), []);
    assert!(said(&state).contains("a marks the one in force"), "{}", said(&state));
    assert!(!shown(&state).contains("to mark"));
    letter(&mut state, 'a');
    assert!(said(&state).contains("marked after turn 4"), "{}", said(&state));
    let screen = shown(&state);
    assert!(screen.contains("◆ marked  ") && screen.contains("◆ marked after turn 4"), "{screen}");
    assert_eq!(letter(&mut state, '\''), []);
    assert!(said(&state).contains("is in force"), "{}", said(&state));

    turn(&mut state, &[("scan.depth", Value::Int(4)), ("stack.chunk", Value::Size(Some(64 << 10)))]);
    let screen = shown(&state);
    assert!(screen.contains("◆ 2 knobs from the mark") && screen.contains("' to mark"), "{screen}");
    let back = ["stack.chunk", "scan.depth"].map(|path| (path.to_owned(), value(path)));
    assert_eq!(letter(&mut state, '\''), [Effect::Send(Command::TurnBack(back.to_vec()))]);
    assert!(said(&state).starts_with("back to the mark: stack.chunk 64KiB → "), "{}", said(&state));

    // Back at that setting, the same key clears the mark.
    turn(&mut state, &[]);
    letter(&mut state, 'a');
    assert!(state.mark.is_none() && said(&state).contains("the mark is gone"), "{}", said(&state));
}

#[test]
fn a_mark_before_the_first_turn_stands_below_it_and_a_new_run_has_none() {
    let mut state = running(160, 50);
    letter(&mut state, 'a');
    for line in fixture::ledger() {
        tell(&mut state, Event::Ledger(Arc::new(line)));
    }
    assert!(shown(&state).contains("◆ marked before the first turn"), "{}", shown(&state));
    tell(&mut state, Event::Began);
    assert!(state.mark.is_none());
    // Nothing is marked while nothing runs.
    let mut filling = fixture::filling(80, 24);
    letter(&mut filling, 'a');
    assert!(filling.mark.is_none() && said(&filling).contains("being filled"), "{}", said(&filling));
}

#[test]
fn the_marked_setting_is_compared_with_the_present_one_if_one_knob_differs() {
    let mut state = turned(160, 50);
    letter(&mut state, 'a');
    letter(&mut state, 'D');
    assert!(said(&state).contains("turn a knob, and D compares both") && state.dialog.is_none());
    turn(&mut state, &[("scan.depth", Value::Int(4))]);
    letter(&mut state, 'D');
    let marked = value("scan.depth").to_string();
    let Some(Dialog::Duel { knob, values, .. }) = &state.dialog else { panic!("{:?}", state.dialog) };
    assert_eq!((knob.as_str(), values), ("scan.depth", &[marked, "4".to_owned()]));
    key(&mut state, KeyCode::Esc);

    // With two or more knobs turned, it says which differ.
    turn(&mut state, &[("scan.depth", Value::Int(4)), ("point.depth", Value::Int(2))]);
    letter(&mut state, 'D');
    let said = said(&state);
    assert!(said.contains("turns one knob, but 2 differ") && said.contains("point.depth 2 → "), "{said}");
    assert!(state.dialog.is_none());
    // With the focus on the ledger, its chosen line is meant.
    key(&mut state, KeyCode::Tab);
    letter(&mut state, 'D');
    let line = state.live.ledger.back().unwrap().number;
    assert!(matches!(&state.dialog, Some(Dialog::Duel { line: at, .. }) if *at == line));
}

#[test]
fn while_a_duel_goes_on_no_setting_is_the_operators() {
    let mut state = turned(160, 50);
    tell(&mut state, Event::Duel(Arc::new(duel(2))));
    letter(&mut state, 'a');
    assert!(state.mark.is_none() && said(&state).contains("a duel is turning its knob"), "{}", said(&state));
}

#[test]
fn the_palette_knows_the_mark() {
    let names: Vec<_> = keys::named("mark", false).iter().map(|row| row.name).collect();
    assert!(names.starts_with(&["mark the setting", "back to the mark"]), "{names:?}");
    assert!(keys::named("mark the setting", true).is_empty(), "a recording has no setting in force");
}
