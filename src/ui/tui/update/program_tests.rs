//! The screen of a program: its own knobs, and none of the classes'.

use std::sync::Arc;

use crossterm::event::KeyCode;

use super::choice::choose_knob;
use super::tests::{key, letter, said};
use crate::meter::window::LedgerLine;
use crate::runs::duel::Figure;
use crate::runs::duel::figures::ReportedFigure;
use crate::runs::session::message::{Phase, Status};
use crate::runs::session::{Command, DuelAsked, Event};
use crate::settings::knobs::{StackLayer, Value};
use crate::settings::{Better, Metric, Program, ProgramKnob};
use crate::ui::tui::fixture::{self, running, tell};
use crate::ui::tui::knob_list::tests::listed;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;
use crate::ui::tui::tests::shown;

fn knob(name: &str, values: &[&str], turn: &[&str]) -> ProgramKnob {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let less_durable = Vec::new();
    ProgramKnob {
        name: name.into(),
        values: words(values),
        value: values[0].into(),
        turn: words(turn),
        less_durable,
    }
}

fn status(rate: &str) -> Status {
    let size = knob("size", &["small", "large"], &[]);
    let mut program = Program {
        run: vec!["bench".into()],
        knobs: vec![size, knob("rate", &["100", "200"], &["set", "{value}"])],
        ..Program::default()
    };
    program.turn("rate", rate).unwrap();
    let mut status = fixture::status(Phase::Running);
    status.settings.program = Some(program);
    status
}

/// A screen that nobody has used before.
fn new() -> State {
    let mut state = State { listed: |_| true, first_steps: true, of_profile: None, ..running(160, 50) };
    tell(&mut state, Event::Status(Arc::new(status("100"))));
    state
}

#[test]
fn its_own_knobs_are_listed_first_and_none_of_the_classes() {
    let mut state = new();
    assert_eq!((state.layer, state.knob().path.as_str()), (StackLayer::Application, "command.rate"));
    assert_eq!(listed(&state)[..2], ["command.size", "command.rate"]);
    assert!(shown(&state).contains("turn the chosen knob, such as command.rate"), "{}", shown(&state));
    let mut seen = Vec::new();
    loop {
        seen.extend(listed(&state));
        let layer = state.layer;
        letter(&mut state, ']');
        if state.layer == layer {
            break;
        }
        assert!(!state.listing.rows.is_empty(), "{}", state.layer.name());
    }
    assert_eq!(state.layer, StackLayer::Drives);
    let tables = ["command.", "target.", "stack.", "queue.", "md.", "run."];
    assert!(seen.iter().all(|path| tables.iter().any(|table| path.starts_with(table))), "{seen:?}");
    letter(&mut state, 'm');
    assert!(said(&state).contains("a program is the load"), "{}", said(&state));
    letter(&mut state, 'D');
    assert!(said(&state).contains("none of the program's figures has `better`"), "{}", said(&state));
    // Another profile, of the classes.
    tell(&mut state, Event::Began);
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Running))));
    assert_eq!(state.knob().path, "io.buffering");
}

#[test]
fn one_that_a_command_turns_is_turned_at_once_and_another_waits_for_a_plan() {
    let mut state = new();
    let turn = Command::Turn { knob: "command.rate".into(), value: Value::Choice("200") };
    assert_eq!(key(&mut state, KeyCode::Right), [Effect::Send(turn)]);
    tell(&mut state, Event::Turned { knob: "command.rate".into(), outcome: Ok(false) });
    assert!(shown(&state).contains("turning…") && !state.is_changed(), "{}", shown(&state));
    assert_eq!(key(&mut state, KeyCode::Right), []);
    assert!(said(&state).contains("no further value"), "{}", said(&state));
    tell(&mut state, Event::Turned { knob: "command.rate".into(), outcome: Ok(true) });
    tell(&mut state, Event::Status(Arc::new(status("200"))));
    assert!(state.asked.is_empty() && state.is_changed() && !shown(&state).contains("turning…"));
    letter(&mut state, 'u');
    let size = state.find("command.size").unwrap();
    choose_knob(&mut state, size);
    assert_eq!(key(&mut state, KeyCode::Right), []);
    assert_eq!(state.collected.len(), 1);
    let plan = Command::Plan(vec![("command.size".into(), Value::Choice("large"))]);
    assert_eq!(key(&mut state, KeyCode::Enter), [Effect::Send(plan)]);
}

#[test]
fn a_turn_of_its_own_knob_is_fought_over_by_what_it_reports() {
    let mut state = new();
    let metric =
        |name: &str, better| Metric { name: name.into(), line: "(x)".into(), unit: String::new(), better };
    let mut reports = status("200");
    reports.settings.program.as_mut().unwrap().metrics =
        vec![metric("lat", Some(Better::Lower)), metric("load", None), metric("tps", Some(Better::Higher))];
    tell(&mut state, Event::Status(Arc::new(reports)));
    let line = |number, knob: &str, from: &str, to: &str| {
        let (knob, from, to) = (knob.into(), from.into(), to.into());
        Event::Ledger(Arc::new(LedgerLine { number, knob, from, to, ..LedgerLine::default() }))
    };
    tell(&mut state, line(1, "command.rate", "100", "200"));
    assert_eq!(letter(&mut state, 'D'), []);
    let screen = shown(&state);
    assert!(screen.contains("▸ tps") && screen.contains("  lat") && !screen.contains("  load"), "{screen}");
    assert!(!screen.contains("point p99"), "{screen}");
    key(&mut state, KeyCode::Down);
    let figure = Figure::Reported(ReportedFigure { name: "lat".into(), better: Some(Better::Lower) });
    let values = ["100".to_owned(), "200".to_owned()];
    let asked = DuelAsked { knob: "command.rate".into(), values, figure };
    assert_eq!(key(&mut state, KeyCode::Enter), [Effect::Send(Command::Duel(Some(asked)))]);

    // Among the knobs, the chosen one's turn is meant; in the ledger, the chosen line.
    tell(&mut state, line(2, "command.size", "small", "large"));
    key(&mut state, KeyCode::Tab);
    assert_eq!(letter(&mut state, 'D'), []);
    assert!(said(&state).contains("start the program anew"), "{}", said(&state));
}

#[test]
fn a_mark_and_a_search_know_its_knobs() {
    let mut state = new();
    letter(&mut state, 'a');
    tell(&mut state, Event::Status(Arc::new(status("200"))));
    assert_eq!(state.turned_since_mark(), Some(1));
    let back = Command::TurnBack(vec![("command.rate".into(), Value::Choice("100"))]);
    assert_eq!(letter(&mut state, '\''), [Effect::Send(back)]);
    letter(&mut state, '/');
    "large".chars().for_each(|c| drop(letter(&mut state, c)));
    key(&mut state, KeyCode::Enter);
    assert_eq!(state.knob().path, "command.size", "found by one of its values");
}
