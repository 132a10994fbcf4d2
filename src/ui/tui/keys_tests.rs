//! Each key and each name has only one meaning.

use crossterm::event::{KeyCode, KeyModifiers};

use super::*;

/// Keys for a page or a mode, or reserved for one (none yet), mean the same everywhere on the main screen.
const ALLOTTED: [(char, Option<Action>); 9] = [
    ('D', Some(Action::Duel)),
    ('T', Some(Action::Trace)),
    ('C', Some(Action::Contract)),
    ('A', None),
    ('K', None),
    ('M', None),
    ('w', None),
    ('I', None),
    ('W', None),
];

#[test]
fn no_key_means_two_things_in_one_place() {
    for (i, row) in MAP.iter().enumerate() {
        for other in &MAP[i + 1..] {
            let together = row.context == other.context
                || (other.context == Main && matches!(row.context, Knobs | Ledger))
                || [row.context, other.context].contains(&Always);
            let shared = row.keys.iter().find(|key| other.keys.contains(key));
            assert!(!together || shared.is_none(), "{shared:?}: {} and {}", row.help, other.help);
        }
    }
    for row in MAP.iter().filter(|row| matches!(row.context, Knobs | Ledger | Replay | Main)) {
        for (allotted, action) in ALLOTTED.iter().filter(|(c, _)| row.keys.contains(&Char(*c))) {
            let is_it = row.context == Main && *action == Some(row.action);
            assert!(is_it, "{allotted}: {}", row.help);
        }
    }
}

#[test]
fn a_recordings_keys_take_the_place_of_those_that_need_a_run_or_scroll() {
    let scrolls = [Action::PageUp, Action::PageDown, Action::First, Action::Last];
    for row in MAP.iter().filter(|row| row.context == Replay) {
        for other in MAP.iter().filter(|other| matches!(other.context, Knobs | Ledger | Main)) {
            let shared = row.keys.iter().find(|key| other.keys.contains(key));
            let gives_way = other.action.needs_run() || scrolls.contains(&other.action);
            assert!(gives_way || shared.is_none(), "{shared:?}: {} and {}", row.help, other.help);
        }
    }
}

#[test]
fn what_a_key_with_shift_or_ctrl_is_not_bound_to_is_the_key_alone_or_nothing() {
    let press = |code, modifiers| KeyEvent::new(code, modifiers);
    let shift_left = press(KeyCode::Left, KeyModifiers::SHIFT);
    assert_eq!(action(&[Knobs, Main], &shift_left), Some(Action::Earlier));
    assert_eq!(action(&[Text], &shift_left), Some(Action::CursorLeft));
    let ctrl_left = press(KeyCode::Left, KeyModifiers::CONTROL);
    assert_eq!(action(&[Knobs, Main], &ctrl_left), None);
    let ctrl_z = press(KeyCode::Char('z'), KeyModifiers::CONTROL);
    assert_eq!(action(&[Palette], &ctrl_z), Some(Action::Suspend));
}

#[test]
fn every_action_of_the_screen_has_one_name() {
    let rows = || MAP.iter().filter(|row| !row.name.is_empty());
    for (i, row) in rows().enumerate() {
        assert!(rows().skip(i + 1).all(|other| other.name != row.name), "{}", row.name);
        let on_recording = matches!(row.action, Action::Replay(_));
        assert_eq!(named(row.name, on_recording)[0].action, row.action, "{}", row.name);
    }
    let moves = [Action::Up, Action::Down, Action::PageUp, Action::PageDown, Action::First, Action::Last];
    let unnamed = [Action::Enter, Action::Palette];
    for row in MAP.iter().filter(|row| matches!(row.context, Knobs | Ledger | Main)) {
        let is_move = moves.contains(&row.action) || unnamed.contains(&row.action);
        assert!(row.name.is_empty() == is_move, "{}", row.help);
    }
    assert!(named("no such thing", false).is_empty());
    assert!(named("undo", true).is_empty() && named("play", false).is_empty());
}

#[test]
fn the_letter_c_is_not_ctrl_c() {
    let plain = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE);
    let ctrl = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(action(&[Knobs, Main], &plain), Some(Action::Cumulative));
    assert_eq!(action(&[Text], &ctrl), Some(Action::Quit));
    assert_eq!(action(&[Text], &plain), None);
}

#[test]
fn every_key_has_a_part_of_the_help() {
    for row in MAP {
        assert!(
            SECTIONS.iter().any(|(_, context)| *context == row.context),
            "{:?}: {}",
            row.context,
            row.help
        );
    }
}

/// After a change of a key: `UPDATE_HELP=1 make quick NAME=help`.
#[test]
fn the_help_has_every_key() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/help/keys.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- keys: generated -->\n", "<!-- keys: end -->");
    let (head, rest) = text.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let mut part = String::new();
    for (title, context) in SECTIONS {
        let rows = MAP.iter().filter(|row| row.context == context && !row.label.is_empty());
        // A bar would end the cell.
        let row = |row: &Binding| format!("| {} | {} |\n", row.label.replace('|', "\\|"), row.help);
        let rows: String = rows.map(row).collect();
        part.extend(["\n## ", title, "\n\n| key | what it does |\n|---|---|\n", &rows]);
    }
    let wanted = format!("{head}{begin}{part}\n{end}{tail}");
    if std::env::var_os("UPDATE_HELP").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(
            text == wanted,
            "assets/help/keys.md differs from the keys: UPDATE_HELP=1 make quick NAME=help"
        );
    }
}
