//! Effects of keys, clicks and events.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::update;
use crate::class::Class;
use crate::error::Error;
use crate::runs::session::message::Phase;
use crate::runs::session::{Command, Event};
use crate::settings::knobs::{Value, find};
use crate::settings::profile::{Profile, builtin};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{self, running, tell, troubled, turned};
use crate::ui::tui::heat::TailOf;
use crate::ui::tui::layout::{self, View};
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::state::{Focus, State};
use crate::ui::tui::tests::shown;
use crate::ui::tui::view::knobs::{Hit, hit};

pub(super) fn key(state: &mut State, code: KeyCode) -> Vec<Effect> {
    update(state, Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

pub(super) fn letter(state: &mut State, c: char) -> Vec<Effect> {
    key(state, KeyCode::Char(c))
}

pub(super) fn typed(state: &mut State, text: &str) {
    for c in text.chars() {
        assert_eq!(letter(state, c), []);
    }
}

pub(super) fn ctrl_c(state: &mut State) -> Vec<Effect> {
    update(state, Msg::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)))
}

pub(super) fn choose(state: &mut State, path: &str) {
    super::choice::choose_knob(state, find(path).unwrap());
}

fn turn(path: &str, value: Value) -> Vec<Effect> {
    vec![Effect::Send(Command::Turn { knob: path.into(), value })]
}

pub(super) fn said(state: &State) -> &str {
    state.message.as_ref().map_or("", |message| &message.text)
}

#[test]
fn arrows_choose_knobs_and_turn_them_by_a_step() {
    let mut state = running(80, 24);
    assert_eq!(state.knob().path, "io.buffering", "a turn of which shows something");
    key(&mut state, KeyCode::Up);
    letter(&mut state, 'k');
    assert_eq!(state.knob().path, "io.page_size", "in the layer above");
    assert_eq!(key(&mut state, KeyCode::Right), turn("io.page_size", Value::Size(Some(32 << 10))));
    letter(&mut state, 'k');
    assert_eq!(state.knob().path, "io.interface");
    key(&mut state, KeyCode::End);
    assert_eq!(state.knob().path, "io.completion", "the layer's last");
}

#[test]
fn quick_turns_continue_from_the_requested_value() {
    let mut state = running(80, 24);
    choose(&mut state, "scan.depth");
    assert_eq!(letter(&mut state, 'l'), turn("scan.depth", Value::Int(256)));
    assert_eq!(letter(&mut state, 'l'), turn("scan.depth", Value::Int(512)));
    assert_eq!(letter(&mut state, 'h'), turn("scan.depth", Value::Int(256)));
    let mut status = fixture::status(Phase::Running);
    status.settings.classes[0].depth = 256;
    tell(&mut state, Event::Status(Arc::new(status)));
    assert!(state.asked.is_empty());
}

#[test]
fn unavailable_values_are_shown_skipped_and_never_sent() {
    let mut state = running(80, 24);
    choose(&mut state, "io.interface");
    // io_uring → libaio (forbidden here) → sync
    assert_eq!(letter(&mut state, 'h'), []);
    let passing = state.passing.clone().unwrap();
    assert_eq!(passing.value, Value::Choice("libaio"));
    assert!(passing.reason.contains("io_setup"), "{}", passing.reason);
    assert_eq!(letter(&mut state, 'h'), turn("io.interface", Value::Choice("sync")));
    assert_eq!(state.passing, None);

    let mut state = running(80, 24);
    choose(&mut state, "io.interface");
    assert_eq!(letter(&mut state, 'h'), []);
    assert_eq!(letter(&mut state, 'l'), [], "back at the value in force: nothing to turn");
    assert_eq!(state.passing, None);
    letter(&mut state, 'h');
    letter(&mut state, 'j');
    assert_eq!(state.passing, None, "choosing another knob forgets it");
}

#[test]
fn a_typed_value_is_checked_like_a_turned_one() {
    let mut state = running(80, 24);
    choose(&mut state, "scan.depth");
    key(&mut state, KeyCode::Enter);
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
    typed(&mut state, "2000");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    let Some(Dialog::Edit { error: Some(error), .. }) = &state.dialog else { panic!("{:?}", state.dialog) };
    assert!(error.contains("from 1 to 1024"), "{error}");
    key(&mut state, KeyCode::Backspace);
    assert_eq!(key(&mut state, KeyCode::Enter), turn("scan.depth", Value::Int(200)));
    assert_eq!(state.dialog, None);

    choose(&mut state, "io.buffering");
    letter(&mut state, 'e');
    update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
    typed(&mut state, "uncached");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    let Some(Dialog::Edit { error: Some(error), .. }) = &state.dialog else { panic!("{:?}", state.dialog) };
    assert!(error.contains("RWF_DONTCACHE"), "{error}");
}

#[test]
fn space_pauses_and_resumes() {
    let mut state = running(80, 24);
    assert_eq!(letter(&mut state, ' '), [Effect::Send(Command::Pause(true))]);
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Paused))));
    assert_eq!(letter(&mut state, ' '), [Effect::Send(Command::Pause(false))]);
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Filling))));
    assert_eq!(letter(&mut state, ' '), []);
}

#[test]
fn nothing_is_turned_before_the_load_runs_or_once_it_ends() {
    for phase in [Phase::Opening, Phase::Filling, Phase::Ending] {
        let mut state = running(80, 24);
        choose(&mut state, "scan.depth");
        key(&mut state, KeyCode::Enter);
        tell(&mut state, Event::Status(Arc::new(fixture::status(phase))));
        typed(&mut state, "7");
        assert_eq!(key(&mut state, KeyCode::Enter), [], "{phase:?}: a line opened before is not taken");
        assert!(matches!(&state.dialog, Some(Dialog::Edit { error: Some(_), .. })));
        key(&mut state, KeyCode::Esc);
        for c in "lhm2uRr".chars() {
            assert_eq!(letter(&mut state, c), [], "{phase:?} {c}");
            assert!(!said(&state).is_empty());
        }
        assert!(state.asked.is_empty());
    }
}

#[test]
fn classes_are_muted_by_their_knobs_or_numbers() {
    let mut state = running(80, 24);
    assert_eq!(letter(&mut state, 'm'), [], "[io] is of no class");
    choose(&mut state, "wal.sync");
    assert_eq!(letter(&mut state, 'm'), turn("wal.enabled", Value::Bool(false)));
    assert_eq!(letter(&mut state, 'm'), turn("wal.enabled", Value::Bool(true)));
    assert_eq!(letter(&mut state, '2'), turn("point.enabled", Value::Bool(false)));
}

#[test]
fn a_stopped_class_is_restarted() {
    let mut state = troubled(80, 24);
    assert_eq!(letter(&mut state, 'R'), [Effect::Send(Command::Restart(Class::Point))]);
    let mut state = running(80, 24);
    assert_eq!(letter(&mut state, 'R'), []);
}

#[test]
fn saving_replaces_only_after_yes() {
    let mut state = running(80, 24);
    letter(&mut state, 's');
    typed(&mut state, "demo-2");
    let effects = key(&mut state, KeyCode::Enter);
    let [Effect::Save { settings, facts, name, replace: false }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert!(Arc::ptr_eq(facts, &state.status.as_ref().unwrap().facts), "no drive is asked beside the load");
    // The store names what it saves, and finds the steps by the former name.
    assert_eq!((name.as_str(), settings.name.as_str()), ("demo-2", "demo"));
    update(&mut state, Msg::Saved("demo-2".into(), Err(Error::refused("it exists"))));
    assert_eq!(state.dialog, Some(Dialog::Replace { name: "demo-2".into() }));
    assert_eq!(key(&mut state, KeyCode::Enter), [], "Enter is not yes");
    let effects = letter(&mut state, 'y');
    assert!(matches!(effects.as_slice(), [Effect::Save { replace: true, .. }]), "{effects:?}");
    update(&mut state, Msg::Saved("demo-2".into(), Ok("/p/demo-2.toml".into())));
    assert_eq!(said(&state), "saved as /p/demo-2.toml");
}

#[test]
fn typing_replaces_the_suggested_name_and_end_keeps_it() {
    let saved_as = |keys: &dyn Fn(&mut State)| {
        let mut state = running(80, 24);
        letter(&mut state, 's');
        keys(&mut state);
        match key(&mut state, KeyCode::Enter).as_slice() {
            [Effect::Save { name, .. }] => name.clone(),
            effects => panic!("{effects:?}"),
        }
    };
    assert_eq!(saved_as(&|_| {}), "demo");
    assert_eq!(saved_as(&|state| typed(state, "quick")), "quick");
    assert_eq!(
        saved_as(&|state| {
            key(state, KeyCode::End);
            typed(state, "-2");
        }),
        "demo-2"
    );
    assert_eq!(
        saved_as(&|state| {
            key(state, KeyCode::Backspace);
            typed(state, "x");
        }),
        "x"
    );
}

#[test]
fn a_name_with_a_slash_is_not_saved() {
    let mut state = running(80, 24);
    letter(&mut state, 's');
    typed(&mut state, "/../x");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    assert!(matches!(&state.dialog, Some(Dialog::Save { error: Some(_), .. })));
}

#[test]
fn opening_a_profile_sends_its_settings() {
    let mut state = running(80, 24);
    assert_eq!(letter(&mut state, 'o'), [Effect::List]);
    let entry = |name: &str| fixture::profile(name, "");
    update(&mut state, Msg::Listed(vec![entry("a"), entry("b")]));
    letter(&mut state, 'j');
    letter(&mut state, 'j');
    assert_eq!(key(&mut state, KeyCode::Enter), [Effect::Load("b".into())]);
    let sweep = builtin("kv-figure4").unwrap().sweep;
    let profile = Profile { settings: fixture::settings(), sweep };
    let unused_steps = profile.steps();
    assert!(unused_steps > 0);
    let effects = update(&mut state, Msg::Loaded(Ok(Box::new(profile))));
    let settings = Box::new(fixture::settings());
    assert_eq!(effects, [Effect::Send(Command::Open { settings, unused_steps })], "its steps are noted");
    update(&mut state, Msg::Loaded(Err(Error::input("b.toml:3:1: unknown key"))));
    assert_eq!(said(&state), "b.toml:3:1: unknown key");
}

#[test]
fn recording_starts_and_stops() {
    let mut state = running(80, 24);
    assert_eq!(letter(&mut state, 'r'), [Effect::StartRecording("demo".into())]);
    tell(&mut state, Event::Recording(Some("/r/demo".into())));
    assert_eq!(letter(&mut state, 'r'), [Effect::Send(Command::Record(None))]);
}

#[test]
fn freezing_keeps_the_figures_while_the_run_continues() {
    let mut state = turned(160, 50);
    letter(&mut state, 'f');
    let before = crate::ui::tui::tests::shown(&state);
    for index in 70..75 {
        tell(
            &mut state,
            Event::Window(Arc::new(fixture::window(index)), Arc::new(fixture::totals(index + 1))),
        );
    }
    let after = crate::ui::tui::tests::shown(&state);
    // Only the line that says so changed: both are frozen, and the later one says how long ago that was.
    let figures =
        |text: &str| text.lines().filter(|line| !line.contains("FROZEN")).collect::<Vec<_>>().join("\n");
    assert_eq!(figures(&before), figures(&after));
    assert!(after.contains("FROZEN") && after.contains(", 5s ago"), "{after}");
    letter(&mut state, 'f');
    assert!(!crate::ui::tui::tests::shown(&state).contains("FROZEN"));
    assert_eq!(state.figures().window.as_ref().unwrap().index, 74);
}

#[test]
fn a_turn_thaws_frozen_figures() {
    let mut state = turned(160, 50);
    letter(&mut state, 'f');
    assert_eq!(letter(&mut state, 'u'), [Effect::Send(Command::Undo)]);
    assert!(
        state.frozen.is_none() && crate::ui::tui::tests::shown(&state).contains("figures are live again")
    );
}

#[test]
fn the_slowest_window_is_that_of_the_longest_io() {
    let mut state = turned(160, 50);
    let mut slow = fixture::window(70);
    slow.classes[0].latencies.service_ns.as_mut().unwrap().max = Some(900_000_000);
    for window in [slow, fixture::window(71)] {
        tell(&mut state, Event::Window(Arc::new(window), Arc::new(fixture::totals(72))));
    }
    letter(&mut state, 'L');
    assert_eq!(state.figures().window.as_ref().unwrap().index, 70);
    assert!(crate::ui::tui::tests::shown(&state).contains("900ms"));
    // For another class, that window was no different from the rest.
    state.tail_of = TailOf::Class(crate::class::Class::Wal);
    letter(&mut state, 'L');
    assert_ne!(state.figures().window.as_ref().unwrap().index, 70);
    letter(&mut state, '0');
    assert!(state.frozen.is_none());
}

#[test]
fn undo_view_focus_and_figures() {
    let mut state = turned(80, 24);
    assert_eq!(letter(&mut state, 'u'), [Effect::Send(Command::Undo)]);
    letter(&mut state, 'v');
    assert_eq!(state.view, View::Charts);
    key(&mut state, KeyCode::Tab);
    assert_eq!((state.focus, state.view), (Focus::Ledger, View::Charts), "it is always in sight");
    key(&mut state, KeyCode::Down);
    assert_eq!(state.ledger_chosen, 1);
    key(&mut state, KeyCode::End);
    assert_eq!(state.ledger_chosen, 3);
    letter(&mut state, 'v');
    assert_eq!((state.focus, state.view), (Focus::Ledger, View::System));
    letter(&mut state, 'c');
    letter(&mut state, 't');
    assert!(state.cumulative && state.response);
}

#[test]
fn enter_alone_never_consents() {
    let mut state = running(80, 24);
    tell(&mut state, Event::ConsentWanted(vec![fixture::wanted()]));
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    typed(&mut state, "y");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    key(&mut state, KeyCode::Backspace);
    typed(&mut state, "S4EWNX0R123456");
    // What it holds is longer than the window.
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    assert!(shown(&state).contains("Scroll to the end of what it holds first."), "{}", shown(&state));
    assert!(shown(&state).contains("1 more below"), "{}", shown(&state));
    key(&mut state, KeyCode::Down);
    let effects = key(&mut state, KeyCode::Enter);
    assert_eq!(effects, [Effect::Send(Command::Consent(vec!["S4EWNX0R123456".into()]))]);
    assert_eq!(state.dialog, None);
}

#[test]
fn an_invisible_question_cannot_be_answered() {
    let mut state = running(60, 20);
    tell(&mut state, Event::ConsentWanted(vec![fixture::wanted()]));
    typed(&mut state, "S4EWNX0R123456");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    assert_eq!(key(&mut state, KeyCode::Esc), [Effect::Send(Command::Consent(Vec::new()))]);
}

#[test]
fn quitting_drains_and_quitting_again_leaves_at_once() {
    let mut state = running(80, 24);
    assert_eq!(letter(&mut state, 'q'), [Effect::Send(Command::Quit)]);
    assert!(crate::ui::tui::tests::shown(&state).contains("draining…"));
    assert_eq!(letter(&mut state, 'q'), [Effect::Exit]);

    let mut state = running(80, 24);
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    letter(&mut state, 's');
    assert_eq!(update(&mut state, Msg::Key(ctrl_c)), [Effect::Send(Command::Quit)]);
    assert_eq!(update(&mut state, Msg::Session(Event::Ended(Ok(())))), [Effect::Exit]);
}

#[test]
fn a_failed_run_keeps_the_screen_until_q() {
    let mut state = running(80, 24);
    assert_eq!(update(&mut state, Msg::Session(Event::Ended(Err(Error::failed("no space"))))), []);
    assert_eq!(letter(&mut state, 'l'), []);
    assert!(crate::ui::tui::tests::shown(&state).contains("STOPPED"));
    assert_eq!(letter(&mut state, 'q'), [Effect::Send(Command::Quit), Effect::Exit]);
    assert_eq!(state.ended, Some(Err(Error::failed("no space"))));
}

#[test]
fn a_vanished_session_is_reported() {
    let mut state = running(80, 24);
    assert_eq!(update(&mut state, Msg::SessionGone), []);
    assert!(matches!(&state.ended, Some(Err(_))));
}

#[test]
fn a_refused_turn_shows_the_reason_and_is_forgotten() {
    let mut state = running(80, 24);
    choose(&mut state, "scan.depth");
    letter(&mut state, 'l');
    tell(&mut state, Event::Turned { knob: "scan.depth".into(), outcome: Ok(false) });
    assert!(!state.asked.is_empty(), "shown until the settings have it");
    tell(&mut state, Event::Turned { knob: "scan.depth".into(), outcome: Err("no memory".into()) });
    assert_eq!(said(&state), "scan.depth was not turned: no memory");
    assert!(state.asked.is_empty());
}

fn mouse(state: &mut State, kind: MouseEventKind, column: u16, row: u16) -> Vec<Effect> {
    update(state, Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
}

#[test]
fn the_mouse_chooses_turns_and_scrolls() {
    let mut state = turned(160, 50);
    let areas = layout::areas(state.screen, state.view).unwrap();
    let click = MouseEventKind::Down(MouseButton::Left);
    // The second layer; each has two rows.
    assert_eq!(mouse(&mut state, click, areas.stack.x + 3, areas.stack.y + 3), []);
    assert_eq!(state.layer, crate::settings::knobs::StackLayer::Interface);
    // Rows: interface, page_size.
    let y = areas.knobs.y + 2;
    assert_eq!(mouse(&mut state, click, areas.knobs.x + 3, y), []);
    assert_eq!(state.knob().path, "io.page_size");
    let at = |hit_wanted: Hit, state: &State| {
        let found = (areas.knobs.left()..areas.knobs.right())
            .find(|&x| hit(state, areas.knobs, (x, y).into()) == Some(hit_wanted));
        found.unwrap()
    };
    let up = at(Hit::TurnUp, &state);
    assert_eq!(mouse(&mut state, click, up, y), turn("io.page_size", Value::Size(Some(32 << 10))));
    let down = at(Hit::TurnDown, &state);
    assert_eq!(mouse(&mut state, click, down, y), turn("io.page_size", Value::Size(Some(16 << 10))));
    for wheel in [MouseEventKind::ScrollUp, MouseEventKind::ScrollDown] {
        assert_eq!(mouse(&mut state, wheel, areas.knobs.x, y), [], "the wheel turns nothing");
    }
    mouse(&mut state, MouseEventKind::ScrollDown, areas.ledger.x, areas.ledger.y + 1);
    assert_eq!((state.focus, state.ledger_chosen), (Focus::Ledger, 1));
}

#[test]
fn before_anything_is_known_keys_do_no_harm() {
    for c in " mursftcv1234Rzi[]Z0".chars() {
        let mut state = fixture::empty(80, 24);
        let effects = letter(&mut state, c);
        assert_eq!(effects, [], "{c}");
    }
}

#[test]
fn the_first_steps_go_with_esc_or_the_first_turn() {
    let new = || State { first_steps: true, ..running(80, 24) };
    let mut state = new();
    assert!(shown(&state).contains("the chosen knob"), "{}", shown(&state));
    assert_eq!(key(&mut state, KeyCode::Esc), [Effect::DropFirstSteps]);
    assert!(!shown(&state).contains("the chosen knob"));
    let mut state = new();
    let kept = update(&mut state, Msg::Session(Event::Ledger(Arc::new(fixture::ledger().remove(0)))));
    assert!(matches!(&kept[..], [Effect::Keep(line)] if line.contains("\"profile\":\"demo\"")), "{kept:?}");
    assert!(!shown(&state).contains("the chosen knob") && !state.first_steps);
}

#[test]
fn a_profile_that_is_saved_after_turns_says_what_was_turned() {
    let mut state = running(80, 24);
    let saved = |state: &mut State| {
        letter(state, 's');
        let effects = key(state, KeyCode::Enter);
        let [Effect::Save { settings, .. }] = &effects[..] else { panic!("{effects:?}") };
        settings.about.clone()
    };
    let before = state.status.as_ref().unwrap().settings.about.clone();
    assert_eq!(saved(&mut state), before);
    let mut turned = fixture::status(Phase::Running);
    turned.settings.io.buffering = crate::settings::Buffering::Cached;
    tell(&mut state, Event::Status(Arc::new(turned)));
    assert_eq!(saved(&mut state), "demo with io.buffering cached.");
}

#[test]
fn the_cursor_moves_in_what_is_typed() {
    let mut state = running(80, 24);
    letter(&mut state, 's');
    // Moving keeps the suggested name.
    key(&mut state, KeyCode::Left);
    typed(&mut state, "-x");
    assert!(shown(&state).contains("› dem-x▏o"), "{}", shown(&state));
    key(&mut state, KeyCode::Home);
    key(&mut state, KeyCode::Right);
    key(&mut state, KeyCode::Backspace);
    assert!(shown(&state).contains("› ▏em-xo"), "{}", shown(&state));
    let saved = key(&mut state, KeyCode::Enter);
    assert!(matches!(&saved[..], [Effect::Save { name, .. }] if name == "em-xo"), "{saved:?}");
    letter(&mut state, '/');
    typed(&mut state, "uffer");
    (0..9).for_each(|_| drop(key(&mut state, KeyCode::Left)));
    typed(&mut state, "b");
    key(&mut state, KeyCode::Enter);
    assert_eq!(state.knob().path, "io.buffering");
}
