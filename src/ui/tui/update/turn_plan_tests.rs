//! A turn that destroys something under the load: shown as a plan, agreed to by typing, or cancelled.

use std::sync::Arc;

use crossterm::event::KeyCode;

use super::plan_tests::{erase_all, plan_of};
use super::tests::{choose, key, letter, said, typed};
use crate::runs::session::message::Phase;
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
    for part in ["md.array: healthy", "--fail", "the load goes on", "by md while the load runs"] {
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

/// A screen whose run is on a drive behind an IOMMU.
fn on_a_drive() -> State {
    let mut state = running(80, 24);
    let mut status = fixture::status(Phase::Running);
    let mut facts = fixture::facts();
    facts.platform.iommu_groups = 4;
    status.facts = Arc::new(facts);
    status.settings.target.devices = vec!["/dev/nvme0n1".into()];
    tell(&mut state, Event::Status(Arc::new(status)));
    state
}

#[test]
fn drives_are_handed_over_and_back_by_plans() {
    let vfio = ("io.interface", Value::Choice("vfio"));
    let type_in = |state: &mut State, text: &str| {
        letter(state, 'e');
        erase_all(state);
        typed(state, text);
        assert!(shown(state).contains("Enter adds it to the plan"), "{}", shown(state));
        key(state, KeyCode::Enter)
    };
    let mut state = on_a_drive();
    choose(&mut state, "io.interface");
    assert_eq!(type_in(&mut state, "vfio"), [], "nothing is turned");
    assert_eq!(letter(&mut state, 'p'), plan_of(std::slice::from_ref(&vfio)));
    // Another live value needs no rebuild.
    assert_eq!(letter(&mut state, 'h'), [], "simulated devices are for a profile to open");
    let live = letter(&mut state, 'h');
    assert!(
        matches!(&live[..], [Effect::Send(Command::Turn { knob, .. })] if knob == "io.interface"),
        "{live:?}"
    );
    assert!(state.collected.is_empty());
    // On files there is no drive to hand over.
    let mut files = running(80, 24);
    choose(&mut files, "io.interface");
    letter(&mut files, 'e');
    erase_all(&mut files);
    typed(&mut files, "vfio");
    key(&mut files, KeyCode::Enter);
    assert!(shown(&files).contains("the target is files"), "{}", shown(&files));
    // Once they have left, every other interface needs a plan, and the one in force needs nothing.
    let mut status = state.status.as_deref().cloned().unwrap();
    status.settings.io.interface = crate::settings::Interface::Vfio;
    tell(&mut state, Event::Status(Arc::new(status)));
    assert_eq!(type_in(&mut state, "io_uring"), []);
    assert_eq!(letter(&mut state, 'p'), plan_of(&[("io.interface", Value::Choice("io_uring"))]));
    letter(&mut state, 'e');
    erase_all(&mut state);
    typed(&mut state, "vfio");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    assert!(state.collected.is_empty(), "it stays");
}
