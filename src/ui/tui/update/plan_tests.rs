//! Keys and events on the way to a rebuilt target.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};

use super::tests::{choose, ctrl_c, key, letter, said, typed};
use super::update;
use crate::error::Error;
use crate::runs::session::message::{Phase, PlanShown, Status};
use crate::runs::session::{Command, Event};
use crate::settings::knobs::Value;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{self, running, tell};
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::planned::Agreement;
use crate::ui::tui::state::State;
use crate::ui::tui::tests::shown;

fn planned(state: &mut State, plan: PlanShown) {
    tell(state, Event::Planned(Ok(Arc::new(plan))));
}

fn agreement(state: &State) -> &Agreement {
    let Some(Dialog::Plan(asked)) = &state.dialog else { panic!("{:?}", state.dialog) };
    asked
}

pub fn plan_of(turns: &[(&str, Value)]) -> Vec<Effect> {
    let turns = turns.iter().map(|(path, value)| ((*path).to_owned(), value.clone())).collect();
    vec![Effect::Send(Command::Plan(turns))]
}

fn build(plan: u64, typed: &[&str]) -> Vec<Effect> {
    let typed = typed.iter().map(|word| (*word).to_owned()).collect();
    vec![Effect::Send(Command::Build { plan, typed })]
}

pub fn erase_all(state: &mut State) {
    update(state, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
}

/// A screen with `raid = "md1"` and `filesystem = "ext4"` collected.
fn collected() -> State {
    let mut state = running(80, 24);
    choose(&mut state, "stack.raid");
    letter(&mut state, 'l');
    letter(&mut state, 'l');
    choose(&mut state, "stack.filesystem");
    letter(&mut state, 'l');
    state
}

const RAID: (&str, Value) = ("stack.raid", Value::Choice("md1"));
const FILESYSTEM: (&str, Value) = ("stack.filesystem", Value::Choice("ext4"));

#[test]
fn the_message_names_the_key_that_types_a_value() {
    let mut state = running(80, 24);
    choose(&mut state, "stack.mkfs_options");
    letter(&mut state, 'l');
    assert!(said(&state).ends_with("has no preset values: press Enter to type one"), "{}", said(&state));
    let mut state = collected();
    choose(&mut state, "stack.mkfs_options");
    letter(&mut state, 'l');
    assert!(
        said(&state).ends_with("has no preset values: press e to type one"),
        "Enter would plan: {}",
        said(&state)
    );
}

#[test]
fn while_another_target_is_built_the_old_figures_are_marked() {
    let mut state = running(80, 24);
    assert!(!shown(&state).contains("before this target"));
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Filling))));
    assert!(shown(&state).contains("s, before this target"), "{}", shown(&state));
}

#[test]
fn rebuild_knobs_are_collected_and_planned_with_enter() {
    let mut state = running(80, 24);
    choose(&mut state, "target.files.count");
    assert_eq!(letter(&mut state, 'l'), [], "nothing is sent");
    let more = Value::Int(6);
    assert_eq!(state.collected.get("target.files.count"), Some(&more));
    assert!(shown(&state).contains("4 → 6"), "{}", shown(&state));
    choose(&mut state, "io.page_size");
    assert_eq!(key(&mut state, KeyCode::Enter), plan_of(&[("target.files.count", more)]));
    choose(&mut state, "target.files.count");
    letter(&mut state, 'h');
    assert!(state.collected.is_empty(), "back at what is in force");
    assert_eq!(key(&mut state, KeyCode::Enter), [], "with nothing collected, the value is typed");
    assert!(matches!(state.dialog, Some(Dialog::Edit { .. })));
}

#[test]
fn several_changes_are_collected_by_steps_and_by_typing() {
    let mut state = collected();
    choose(&mut state, "stack.chunk");
    assert_eq!(letter(&mut state, 'e'), []);
    erase_all(&mut state);
    typed(&mut state, "64KiB");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    assert_eq!(state.dialog, None);
    assert_eq!(
        letter(&mut state, 'p'),
        plan_of(&[("stack.chunk", Value::Size(Some(64 << 10))), FILESYSTEM, RAID])
    );
    assert_eq!(state.collected.len(), 3, "kept until it is built");
}

#[test]
fn a_plan_can_be_asked_for_with_nothing_collected() {
    assert_eq!(letter(&mut running(80, 24), 'p'), plan_of(&[]));
    for phase in [Phase::Opening, Phase::Building, Phase::Filling, Phase::Ending] {
        let mut state = running(80, 24);
        tell(&mut state, Event::Status(Arc::new(fixture::status(phase))));
        choose(&mut state, "stack.raid");
        for c in "plh".chars() {
            assert_eq!(letter(&mut state, c), [], "{phase:?} {c}");
            assert!(!said(&state).is_empty());
        }
        assert!(state.collected.is_empty());
    }
}

#[test]
fn values_are_checked_against_the_collected_changes() {
    let mut state = running(80, 24);
    choose(&mut state, "stack.filesystem");
    letter(&mut state, 'l');
    let passing = state.passing.clone().unwrap();
    assert!(passing.reason.contains("set `target.files.count` to 1 first"), "{}", passing.reason);
    assert!(state.collected.is_empty());
    assert!(shown(&state).contains("can't"));
    let mut state = collected();
    assert_eq!(state.collected.get("stack.filesystem"), Some(&FILESYSTEM.1));
    // Without the RAID the file system can no longer be built, which its row shows.
    choose(&mut state, "stack.raid");
    letter(&mut state, 'h');
    letter(&mut state, 'h');
    assert_eq!(state.collected.get("stack.raid"), None);
    choose(&mut state, "stack.filesystem");
    state.message = None;
    assert!(shown(&state).contains("conflicts with the other collected changes"), "{}", shown(&state));
}

#[test]
fn esc_discards_the_collected_changes() {
    let mut state = collected();
    assert_eq!(key(&mut state, KeyCode::Esc), []);
    assert!(state.collected.is_empty());
    assert_eq!(said(&state), "discarded: stack.filesystem, stack.raid");
}

#[test]
fn built_changes_are_no_longer_collected() {
    let mut state = collected();
    let mut status = fixture::status(Phase::Opening);
    status.settings.stack.raid = crate::settings::Raid::Md1;
    tell(&mut state, Event::Status(Arc::new(status)));
    assert_eq!(state.collected.keys().collect::<Vec<_>>(), [&"stack.filesystem"]);
}

#[test]
fn opening_another_profile_drops_the_collected_changes_and_saving_keeps_them() {
    let mut state = collected();
    letter(&mut state, 's');
    let effects = key(&mut state, KeyCode::Enter);
    let [Effect::Save { settings, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(settings.stack.raid, crate::settings::Raid::Md1);
    update(&mut state, Msg::Loaded(Ok(Box::new(fixture::settings().into()))));
    assert!(state.collected.is_empty());
}

#[test]
fn live_knobs_still_turn_while_others_are_collected() {
    let mut state = collected();
    choose(&mut state, "scan.depth");
    let turn = Command::Turn { knob: "scan.depth".into(), value: Value::Int(256) };
    assert_eq!(letter(&mut state, 'l'), [Effect::Send(turn)]);
    assert_eq!(state.collected.len(), 2);
}

#[test]
fn a_failed_plan_shows_the_reason() {
    let mut state = collected();
    tell(&mut state, Event::Planned(Err("the members are of different sizes".into())));
    assert_eq!(said(&state), "no plan: the members are of different sizes");
    assert_eq!(state.collected.len(), 2);
}

#[test]
fn a_plan_that_destroys_takes_each_serial_after_its_end_was_seen() {
    let mut state = running(80, 24);
    planned(&mut state, fixture::plan_destroying());
    typed(&mut state, "S4EWNX0R123451y");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    assert_eq!(*agreement(&state).consent.input, *"", "not before it was read");
    assert!(shown(&state).contains("Scroll to the end of the plan first."));
    let mut pages = 0;
    while !agreement(&state).read {
        key(&mut state, KeyCode::PageDown);
        pages += 1;
    }
    assert!(pages > 2, "{pages}");
    assert!(!shown(&state).contains("Scroll to the end"), "it was");
    key(&mut state, KeyCode::Home);
    assert!(agreement(&state).read, "what was read stays read");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    assert!(shown(&state).contains("Type it first: Enter alone does not confirm."));
    let words: Vec<_> = fixture::plan_destroying().destroys.into_iter().map(|drive| drive.typed).collect();
    typed(&mut state, &words[1]);
    assert_eq!(key(&mut state, KeyCode::Enter), [], "another device's");
    erase_all(&mut state);
    for (at, word) in words.iter().enumerate() {
        assert!(shown(&state).contains(&format!("{} of 4", at + 1)));
        typed(&mut state, word);
        let effects = key(&mut state, KeyCode::Enter);
        if at < 3 {
            assert_eq!(effects, []);
        } else {
            assert_eq!(effects, build(7, &words.iter().map(String::as_str).collect::<Vec<_>>()));
        }
    }
    assert_eq!(state.dialog, None);
}

#[test]
fn a_plan_that_destroys_nothing_takes_y_after_its_end_was_seen() {
    let mut state = running(80, 24);
    planned(&mut state, fixture::plan_long());
    assert_eq!(letter(&mut state, 'y'), [], "not before it was read");
    key(&mut state, KeyCode::End);
    assert_eq!(key(&mut state, KeyCode::Enter), [], "Enter is not yes");
    assert_eq!(letter(&mut state, 'y'), build(7, &[]));
    let mut state = running(80, 24);
    planned(&mut state, fixture::plan_short());
    assert_eq!(letter(&mut state, 'y'), build(3, &[]), "all of it was seen at once");
}

#[test]
fn the_wheel_scrolls_a_plan_and_confirms_nothing() {
    let mut state = running(80, 24);
    planned(&mut state, fixture::plan_destroying());
    let wheel =
        MouseEvent { kind: MouseEventKind::ScrollDown, column: 40, row: 10, modifiers: KeyModifiers::NONE };
    while !agreement(&state).read {
        assert_eq!(update(&mut state, Msg::Mouse(wheel)), []);
    }
    assert!(agreement(&state).consent.typed.is_empty());
}

#[test]
fn esc_closes_a_plan_and_keeps_the_collected_changes() {
    for plan in [fixture::plan_destroying(), fixture::plan_long()] {
        let mut state = collected();
        planned(&mut state, plan);
        assert_eq!(key(&mut state, KeyCode::Esc), []);
        assert_eq!((&state.dialog, state.collected.len()), (&None, 2));
    }
}

#[test]
fn a_plan_that_the_run_waits_for_is_confirmed_or_declined() {
    let first = || PlanShown { number: 0, turns: Vec::new(), ..fixture::plan_destroying() };
    let mut state = fixture::filling(80, 24);
    planned(&mut state, first());
    assert_eq!(key(&mut state, KeyCode::Esc), [Effect::Send(Command::Consent(Vec::new()))]);
    planned(&mut state, PlanShown { destroys: vec![fixture::wanted()], ..first() });
    key(&mut state, KeyCode::End);
    typed(&mut state, "S4EWNX0R123456");
    assert_eq!(key(&mut state, KeyCode::Enter), build(0, &["S4EWNX0R123456"]));
    planned(&mut state, first());
    assert_eq!(ctrl_c(&mut state), [Effect::Send(Command::Quit)]);
}

#[test]
fn opening_a_profile_that_tears_down_a_stack_needs_its_plan() {
    let mut state = fixture::standing(80, 24);
    let opens = PlanShown { opens: Some("quiet".into()), turns: Vec::new(), ..fixture::plan_destroying() };
    planned(&mut state, opens);
    assert!(shown(&state).contains("Open profile quiet"), "{}", shown(&state));
    key(&mut state, KeyCode::Esc);
    assert_eq!(state.dialog, None, "and the load goes on");
}

#[test]
fn a_new_run_begins_with_an_empty_ledger() {
    let mut state = fixture::turned(80, 24);
    assert!(!state.live.ledger.is_empty());
    state.ledger_chosen = 2;
    tell(&mut state, Event::Began);
    assert!(state.live.ledger.is_empty() && state.live.window.is_none());
    assert_eq!(state.ledger_chosen, 0);
}

#[test]
fn a_plan_never_interrupts_typing_unless_the_run_waits() {
    let mut state = running(80, 24);
    letter(&mut state, 's');
    planned(&mut state, fixture::plan_short());
    assert!(matches!(state.dialog, Some(Dialog::Save { .. })));
    planned(&mut state, PlanShown { number: 0, ..fixture::plan_short() });
    assert!(agreement(&state).is_awaited());
    planned(&mut state, fixture::plan_short());
    assert!(agreement(&state).is_awaited(), "the run still waits for the first");
}

#[test]
fn an_invisible_plan_cannot_be_confirmed() {
    for plan in [fixture::plan_destroying(), fixture::plan_short()] {
        let mut state = running(60, 20);
        planned(&mut state, plan);
        for code in [KeyCode::End, KeyCode::Char('y'), KeyCode::Enter] {
            assert_eq!(key(&mut state, code), []);
        }
        assert!(!agreement(&state).read);
        key(&mut state, KeyCode::Esc);
        assert_eq!(state.dialog, None);
    }
}

#[test]
fn the_end_of_the_run_closes_a_plan() {
    let mut state = running(80, 24);
    planned(&mut state, fixture::plan_short());
    tell(&mut state, Event::Ended(Err(Error::failed("a drive was pulled"))));
    assert_eq!(state.dialog, None);
}

#[test]
fn steps_are_shown_until_the_load_runs() {
    let mut state = fixture::building(120, 40);
    assert!(shown(&state).contains("step 9 of 11"), "{}", shown(&state));
    let mut undone = state.step.clone().unwrap();
    undone.undoing = true;
    tell(&mut state, Event::Step(undone));
    assert!(shown(&state).contains("undoing 9 of 11"));
    assert!(state.is_standing(), "a signal waits for it");
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Running))));
    assert_eq!(state.step, None);
}

fn former(state: &State) -> Vec<Effect> {
    vec![Effect::Send(Command::Open { settings: state.former.clone().unwrap(), unused_steps: 0 })]
}

#[test]
fn a_failure_is_shown_in_full_and_b_rebuilds_the_previous_stack() {
    let mut state = fixture::failed(80, 24);
    let text = shown(&state).replace(['│', '\n'], " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("another process holds it"), "{text}");
    let expected = former(&state);
    assert_eq!(letter(&mut state, 'b'), expected);

    let mut state = fixture::failed(80, 24);
    key(&mut state, KeyCode::Esc);
    assert_eq!(state.dialog, None);
    letter(&mut state, 'l');
    assert!(said(&state).contains("b rebuilds the previous stack"), "{}", said(&state));
    assert_eq!(letter(&mut state, 'b'), expected, "also once the dialog is closed");

    let mut state = fixture::failed(80, 24);
    assert_eq!(letter(&mut state, 'o'), [Effect::List]);
    let mut state = fixture::failed(80, 24);
    assert_eq!(letter(&mut state, 'q'), [Effect::Send(Command::Quit), Effect::Exit]);
}

#[test]
fn the_previous_stack_stays_one_key_away_until_a_load_runs() {
    let mut state = fixture::failed(80, 24);
    letter(&mut state, 'b');
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Opening))));
    assert_eq!(letter(&mut state, 'b'), [], "not while it is built");
    tell(&mut state, Event::Ended(Err(Error::failed("the drive is still busy"))));
    let expected = former(&state);
    assert_eq!(letter(&mut state, 'b'), expected);
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Running))));
    assert_eq!(state.former, None);
    assert_eq!(letter(&mut state, 'b'), []);
}

#[test]
fn quitting_with_a_stack_in_place_asks_whether_to_keep_it() {
    let standing = || {
        let mut state = fixture::standing(80, 24);
        assert_eq!(letter(&mut state, 'q'), []);
        assert_eq!(state.dialog, Some(Dialog::Leave));
        state
    };
    let mut state = standing();
    assert_eq!(letter(&mut state, 't'), [Effect::Send(Command::Quit)]);
    assert!(shown(&state).contains("`stacktune cleanup`"), "what a second q leaves");
    assert_eq!(letter(&mut state, 'q'), [Effect::Exit]);
    let mut state = standing();
    assert_eq!(letter(&mut state, 'k'), [Effect::Send(Command::QuitKeeping)]);
    tell(&mut state, Event::Retained(vec!["umount /m".into()]));
    assert_eq!(update(&mut state, Msg::Session(Event::Ended(Ok(())))), [Effect::Exit]);
    assert_eq!(state.kept, ["umount /m"]);
    let mut state = standing();
    for c in [KeyCode::Enter, KeyCode::Char('q'), KeyCode::Char('y')] {
        assert_eq!(key(&mut state, c), []);
    }
    key(&mut state, KeyCode::Esc);
    assert_eq!((&state.dialog, state.quitting), (&None, false));
    let mut state = standing();
    assert_eq!(ctrl_c(&mut state), [Effect::Send(Command::Quit)], "asked twice");
    let mut state = running(80, 24);
    let filling = Status { standing: true, ..fixture::status(Phase::Filling) };
    tell(&mut state, Event::Status(Arc::new(filling)));
    assert_eq!(
        (letter(&mut state, 'q'), &state.dialog),
        (vec![], &Some(Dialog::Leave)),
        "while it is filled"
    );
}

#[test]
fn a_small_screen_also_asks_whether_to_keep_the_stack() {
    let mut state = fixture::standing(60, 20);
    assert_eq!(letter(&mut state, 'q'), []);
    assert!(shown(&state).contains("keeps it, Esc cancels"), "{}", shown(&state));
    assert_eq!(letter(&mut state, 'k'), [Effect::Send(Command::QuitKeeping)]);
}

#[test]
fn the_host_page_opens_scrolls_and_closes() {
    let mut state = running(80, 24);
    let mut status = fixture::status(Phase::Running);
    let mut facts = fixture::facts();
    facts.cpu.mitigations =
        (0..200).map(|n| (format!("mitigation_{n:03}"), "Mitigation: some".to_owned())).collect();
    status.facts = Arc::new(facts);
    tell(&mut state, Event::Status(Arc::new(status)));
    assert_eq!(letter(&mut state, 'H'), [Effect::ReadDevices]);
    assert!(shown(&state).contains("Debian GNU/Linux 13"));
    key(&mut state, KeyCode::End);
    assert!(shown(&state).contains("none found"), "{}", shown(&state));
    let Some(Dialog::Host { top }) = state.dialog else { panic!("{:?}", state.dialog) };
    letter(&mut state, 'k');
    assert_eq!(state.dialog, Some(Dialog::Host { top: top - 1 }));
    key(&mut state, KeyCode::Esc);
    assert_eq!(state.dialog, None);
}
