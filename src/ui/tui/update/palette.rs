//! The palette of actions.

use super::act::{act, quit};
use super::input::type_into;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::{self, Action};
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;
use crate::ui::tui::typed::Typed;

/// Handles a key.
pub fn pressed(
    state: &mut State,
    (mut input, chosen): (Typed, usize),
    action: Option<Action>,
    typed: Option<char>,
) -> Vec<Effect> {
    let found = keys::named(&input, state.replay.is_some());
    let chosen = match action {
        Some(Action::Close) => return Vec::new(),
        Some(Action::Accept) => {
            let Some(row) = found.get(chosen) else {
                state.dialog = Some(Dialog::Palette { input, chosen });
                return Vec::new();
            };
            return if row.action == Action::Quit { quit(state) } else { act(state, row.action) };
        }
        Some(Action::Up) => chosen.saturating_sub(1),
        Some(Action::Down) => (chosen + 1).min(found.len().saturating_sub(1)),
        _ if type_into(&mut input, action, typed) => 0,
        _ => chosen,
    };
    state.dialog = Some(Dialog::Palette { input, chosen });
    Vec::new()
}
