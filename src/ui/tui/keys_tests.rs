//! That keys and names mean one thing.

use super::*;

/// Those that mean, or will mean, a page or a mode mean it everywhere on the main screen.
const ALLOTTED: &str = "DTAKMCwIW";

#[test]
fn no_key_means_two_things_in_one_place() {
    for (i, row) in MAP.iter().enumerate() {
        for other in &MAP[i + 1..] {
            let together = row.context == other.context
                || (other.context == Main && matches!(row.context, Knobs | Ledger));
            let shared = row.keys.iter().find(|key| other.keys.contains(key));
            assert!(!together || shared.is_none(), "{shared:?}: {} and {}", row.help, other.help);
        }
    }
    for row in MAP.iter().filter(|row| matches!(row.context, Knobs | Ledger | Replay)) {
        let taken = row.keys.iter().find(|key| matches!(key, Char(c) if ALLOTTED.contains(*c)));
        assert!(taken.is_none(), "{taken:?}: {}", row.help);
    }
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
    let plain = KeyEvent::new(Char('c'), KeyModifiers::NONE);
    let ctrl = KeyEvent::new(Char('c'), KeyModifiers::CONTROL);
    assert_eq!(action(&[Knobs, Main], &plain), Some(Action::Cumulative));
    assert_eq!(action(&[Text], &ctrl), Some(Action::Quit));
    assert_eq!(action(&[Text], &plain), None);
}
