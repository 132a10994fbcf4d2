//! The list of drives: ticked, taken, refused.

use crossterm::event::KeyCode;

use super::tests::{choose, key, letter, typed};
use super::update;
use crate::runs::session::{Candidate, OnDevice};
use crate::settings::knobs::Value;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{filling, running};
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::state::State;
use crate::ui::tui::tests::{SIZES, shown};

fn candidates() -> Vec<Candidate> {
    let of = |name: &str, about: &str, found: OnDevice| Candidate {
        name: name.into(),
        about: about.into(),
        found,
    };
    let drive = |serial: &str| format!("/dev/disk/by-id/nvme-Drive_960G_{serial}");
    vec![
        of(&drive("S1"), "/dev/nvme0n1, Drive 960G, serial S1, 894 GiB", OnDevice::Empty),
        of(&drive("S2"), "/dev/nvme1n1, Drive 960G, serial S2, 894 GiB", OnDevice::Ours),
        of(
            &drive("S3"),
            "/dev/nvme2n1, Drive 960G, serial S3, 894 GiB",
            OnDevice::Foreign(vec!["a file system (ext4)".into(), "a table of partitions (gpt)".into()]),
        ),
        of(
            "/dev/vda",
            "/dev/vda, unknown model, no serial, 100 GiB",
            OnDevice::Refused(
                "/dev/vda is in use: the system's own drive: holds / (and 1 more) – the system's own drive is \
                 never written to; choose another one"
                    .into(),
            ),
        ),
    ]
}

/// The list, opened.
fn listed(columns: u16, lines: u16) -> State {
    let mut state = running(columns, lines);
    state.listed = |_| true;
    choose(&mut state, "target.devices");
    let asked = key(&mut state, KeyCode::Enter);
    assert!(matches!(&asked[..], [Effect::ExamineDrives { .. }]), "{asked:?}");
    assert!(shown(&state).contains("being examined"));
    update(&mut state, Msg::DrivesExamined(candidates()));
    state
}

#[test]
fn several_drives_are_ticked_in_their_order_and_collected_for_the_plan() {
    let mut state = listed(160, 50);
    letter(&mut state, 'j');
    letter(&mut state, ' ');
    letter(&mut state, 'k');
    letter(&mut state, ' ');
    let screen = shown(&state);
    assert!(screen.contains("[2] /dev/disk/by-id/nvme-Drive_960G_S1") && screen.contains("[1] "), "{screen}");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    let taken = ["S2", "S1"].map(|serial| format!("/dev/disk/by-id/nvme-Drive_960G_{serial}"));
    assert_eq!(state.collected.get("target.devices"), Some(&Value::List(taken.to_vec())));

    // Collected drives are ticked; ticking one again clears it.
    letter(&mut state, 'e');
    key(&mut state, KeyCode::Esc);
    state.collected.retain(|path, _| *path == "target.devices");
    let effects = super::drives::begin(&mut state);
    assert!(
        matches!(&effects[..], [Effect::ExamineDrives { named, held, .. }] if *named == taken && held.is_empty())
    );
    update(&mut state, Msg::DrivesExamined(candidates()));
    letter(&mut state, ' ');
    letter(&mut state, 'j');
    letter(&mut state, ' ');
    key(&mut state, KeyCode::Enter);
    assert!(state.collected.is_empty(), "as in force: {:?}", state.collected);
}

#[test]
fn what_the_guard_refuses_is_not_ticked_and_says_why() {
    let mut state = listed(160, 50);
    letter(&mut state, 'G');
    letter(&mut state, ' ');
    let Some(Dialog::Drives { ticked, .. }) = &state.dialog else { panic!("{:?}", state.dialog) };
    assert!(ticked.is_empty());
    assert!(shown(&state).contains("the system's own drive: holds /"), "{}", shown(&state));
    // Their names can still be typed.
    letter(&mut state, 'e');
    assert!(matches!(state.dialog, Some(Dialog::Edit { knob: "target.devices", .. })));
    // Nothing is examined while nothing can be turned.
    let mut state = filling(80, 24);
    choose(&mut state, "target.devices");
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    assert!(state.dialog.is_none());
}

#[test]
fn a_drive_is_found_by_what_is_known_of_it() {
    let mut state = listed(120, 40);
    typed(&mut state, "/s2 FILLED");
    let screen = shown(&state);
    assert!(screen.contains("target.devices /s2 FILLED▏") && !screen.contains("_S1"), "{screen}");
    assert!(screen.contains("▸ [ ] /dev/disk/by-id/nvme-Drive_960G_S2"), "{screen}");
    // Tab ticks it, and clears the tick again.
    key(&mut state, KeyCode::Tab);
    assert!(shown(&state).contains("[1] ") && shown(&state).contains("1 ticked"), "{}", shown(&state));
    key(&mut state, KeyCode::Tab);
    assert!(shown(&state).contains("none ticked"), "{}", shown(&state));
    // Enter ticks what was looked for, and takes nothing before the whole list is shown.
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    let screen = shown(&state);
    assert!(screen.contains("[1] ") && screen.contains("_S1") && state.collected.is_empty(), "{screen}");
    // One that is ticked stays so, and what the guard refuses is not.
    typed(&mut state, "/s2");
    key(&mut state, KeyCode::Enter);
    typed(&mut state, "/vda");
    key(&mut state, KeyCode::Enter);
    typed(&mut state, "/nothing like that");
    assert!(shown(&state).contains("no drive matches"), "{}", shown(&state));
    assert_eq!(key(&mut state, KeyCode::Enter), []);
    key(&mut state, KeyCode::Esc);
    key(&mut state, KeyCode::Enter);
    let taken = vec!["/dev/disk/by-id/nvme-Drive_960G_S2".to_owned()];
    assert_eq!(state.collected.get("target.devices"), Some(&Value::List(taken)));
}

#[test]
fn a_host_without_drives_keeps_files() {
    let mut state = listed(80, 24);
    update(&mut state, Msg::DrivesExamined(Vec::new()));
    assert!(shown(&state).contains("this host has no drives"), "{}", shown(&state));
    typed(&mut state, "/x");
    key(&mut state, KeyCode::Enter);
    assert!(shown(&state).contains("none ticked: the target is files"), "{}", shown(&state));
    key(&mut state, KeyCode::Enter);
    assert!(state.dialog.is_none() && state.collected.is_empty(), "{:?}", state.collected);
}

#[test]
fn the_list_of_drives_stands_at_every_size() {
    for (columns, lines) in SIZES {
        let mut state = listed(columns, lines);
        letter(&mut state, ' ');
        letter(&mut state, 'j');
        letter(&mut state, 'j');
        insta::assert_snapshot!(format!("drives_{columns}x{lines}"), shown(&state));
    }
}
