//! Values and profiles that are picked from a list.

use std::sync::Arc;

use crossterm::event::KeyCode;

use super::tests::{choose, key, letter, said};
use super::update;
use crate::runs::session::message::Phase;
use crate::runs::session::{Command, Event};
use crate::settings::knobs::Value;
use crate::settings::profile::{Profile, builtin};
use crate::settings::{Interface, Program, Settings};
use crate::ui::tui::ProfileEntry;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{self, filling, running, tell};
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::tests::{SIZES, shown};

#[test]
fn a_value_is_picked_by_its_name_and_one_that_cannot_be_says_why() {
    let mut state = running(120, 40);
    choose(&mut state, "io.interface");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    let screen = shown(&state);
    assert!(screen.contains("● io_uring") && screen.contains("can't: this container forbids"), "{screen}");
    key(&mut state, KeyCode::Home);
    while !shown(&state).contains("▸   libaio") {
        key(&mut state, KeyCode::Down);
    }
    assert_eq!(key(&mut state, KeyCode::Enter), [], "it can't be chosen");
    assert!(shown(&state).contains("libaio can't be chosen: this container forbids"), "{}", shown(&state));
    while !shown(&state).contains("▸   sync") {
        key(&mut state, KeyCode::Up);
    }
    let turn = Command::Turn { knob: "io.interface".into(), value: Value::Choice("sync") };
    assert_eq!(key(&mut state, KeyCode::Enter), [Effect::Send(turn)]);
    assert!(state.dialog.is_none());

    // `e` types instead; a knob without names is typed at once.
    key(&mut state, KeyCode::Enter);
    key(&mut state, KeyCode::Char('e'));
    assert!(matches!(state.dialog, Some(Dialog::Edit { .. })));
    key(&mut state, KeyCode::Esc);
    choose(&mut state, "scan.depth");
    key(&mut state, KeyCode::Enter);
    assert!(matches!(state.dialog, Some(Dialog::Edit { .. })));
}

#[test]
fn lists_of_values_stand_at_every_size() {
    for (columns, lines) in SIZES {
        let mut state = running(columns, lines);
        choose(&mut state, "io.interface");
        key(&mut state, KeyCode::Enter);
        insta::assert_snapshot!(format!("pick_{columns}x{lines}"), shown(&state));
    }
}

#[test]
fn settings_that_are_no_longer_the_profiles_are_marked_until_they_are_saved() {
    let mut state = running(80, 24);
    let mut status = fixture::status(Phase::Running);
    status.settings.io.page_size_bytes *= 2;
    assert!(shown(&state).starts_with(" demo  running"), "{}", shown(&state));
    tell(&mut state, Event::Status(Arc::new(status)));
    assert!(shown(&state).starts_with(" demo*  running"), "{}", shown(&state));
    update(&mut state, Msg::Saved("mine".into(), Ok("/mine.toml".into())));
    assert!(shown(&state).starts_with(" mine  running"), "{}", shown(&state));
    assert_eq!(state.ran.saved, [std::path::PathBuf::from("/mine.toml")]);
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Running))));
    assert!(shown(&state).starts_with(" mine*  running"), "{}", shown(&state));
    // Another profile has its own name.
    tell(&mut state, Event::Began);
    assert!(shown(&state).contains(" demo  running"), "{}", shown(&state));
}

#[test]
fn back_in_the_former_run_its_turned_settings_are_still_marked() {
    let mut state = running(80, 24);
    let mut turned = fixture::status(Phase::Running);
    turned.settings.io.page_size_bytes *= 2;
    tell(&mut state, Event::Status(Arc::new(turned.clone())));
    tell(&mut state, Event::Began);
    let mut other = fixture::status(Phase::Opening);
    other.settings.name = "other".into();
    tell(&mut state, Event::Status(Arc::new(other.clone())));
    tell(&mut state, Event::Former(Box::new(turned.settings.clone())));
    tell(&mut state, Event::Ended(Err(crate::error::Error::failed("mkfs failed"))));
    letter(&mut state, 'b');
    tell(&mut state, Event::Status(Arc::new(turned)));
    assert!(shown(&state).contains(" demo*  running"), "{}", shown(&state));
    // Another profile begins with its own.
    tell(&mut state, Event::Began);
    other.phase = Phase::Running;
    tell(&mut state, Event::Status(Arc::new(other)));
    assert!(shown(&state).contains(" other  running"), "{}", shown(&state));
}

#[test]
fn a_profile_that_cannot_run_here_is_not_opened_over_a_running_load() {
    let profile = || {
        let mut profile = builtin("table2-4-direct").unwrap();
        profile.settings.io.interface = Interface::Libaio;
        Msg::Loaded(Ok(Box::new(Profile { settings: profile.settings, sweep: None })))
    };
    let mut state = running(160, 50);
    assert_eq!(update(&mut state, profile()), []);
    let said = said(&state);
    assert!(said.contains("can't run here, and the load goes on: `io.interface` can't be libaio"), "{said}");
    // If no load would be lost, the run itself says why.
    let mut state = filling(160, 50);
    let effects = update(&mut state, profile());
    assert!(matches!(&effects[..], [Effect::Send(Command::Open { .. })]), "{effects:?}");
}

#[test]
fn a_program_and_a_drive_that_is_not_here_are_not_opened_from_the_list() {
    let named = |name: &str, of: Option<Program>| {
        let settings =
            Settings { name: name.into(), program: of, ..fixture::status(Phase::Running).settings };
        ProfileEntry { settings: Some(Box::new(settings)), ..fixture::profile(name, "A profile") }
    };
    let program = Program { run: vec!["fio".into()], ..Program::default() };
    let elsewhere = ProfileEntry {
        absent: Some("there is no block device /dev/elsewhere on this host".into()),
        ..named("elsewhere", None)
    };
    let list = vec![named("fio", Some(program.clone())), elsewhere];
    let mut state = running(160, 50);
    letter(&mut state, 'o');
    update(&mut state, Msg::Listed(list.clone()));
    for why in ["can't: its load is a program: `stacktune run` runs it", "can't: there is no block device"] {
        assert!(shown(&state).contains(why), "{}", shown(&state));
        assert_eq!(key(&mut state, KeyCode::Enter), []);
        letter(&mut state, 'j');
    }

    // A screen that runs programs opens it; a target that has left the kernel comes back.
    let mut status = fixture::status(Phase::Running);
    status.runs_programs = true;
    status.settings.io.interface = Interface::Vfio;
    status.settings.target.devices = vec!["/dev/elsewhere".into()];
    tell(&mut state, Event::Status(Arc::new(status)));
    update(&mut state, Msg::Listed(list));
    assert!(!shown(&state).contains("can't: "), "{}", shown(&state));
}

#[test]
fn the_list_of_profiles_says_what_can_not_run_here_and_does_not_open_it() {
    let of = |name: &str, change: fn(&mut Settings)| {
        let mut settings = fixture::status(Phase::Running).settings;
        settings.name = name.into();
        change(&mut settings);
        ProfileEntry { settings: Some(Box::new(settings)), ..fixture::profile(name, "A profile") }
    };
    let list = || {
        let broken = Some("it is broken: broken.toml:3:1: there is no `scan.dept`".to_owned());
        Msg::Listed(vec![
            of("fits", |_| {}),
            of("libaio", |settings| settings.io.interface = Interface::Libaio),
            of("two", |settings| {
                settings.io.interface = Interface::Spdk;
                settings.stack.raid = crate::settings::Raid::Md5;
            }),
            ProfileEntry { refused: broken, ..fixture::profile("broken", "") },
        ])
    };
    for (columns, lines) in SIZES {
        let mut state = running(columns, lines);
        letter(&mut state, 'o');
        update(&mut state, list());
        letter(&mut state, 'j');
        letter(&mut state, 'j');
        insta::assert_snapshot!(format!("profiles_{columns}x{lines}"), shown(&state));
        assert_eq!(key(&mut state, KeyCode::Enter), []);
        assert!(matches!(state.dialog, Some(Dialog::Open { chosen: 2, .. })));
        letter(&mut state, 'g');
        assert_eq!(key(&mut state, KeyCode::Enter), [Effect::Load("fits".into())]);
    }
}
