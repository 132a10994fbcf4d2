//! The search for a knob.

use super::choice::{choose_knob, step};
use super::input::type_into;
use crate::settings::knobs::StackLayer;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::Action;
use crate::ui::tui::state::{Focus, ListRow, State};
use crate::ui::tui::typed::Typed;

/// Begins a search.
pub fn begin(state: &mut State) {
    state.focus = Focus::Knobs;
    let before = (state.layer, state.knob().path.as_str());
    state.dialog = Some(Dialog::Search { input: Typed::default(), before });
}

/// Handles a key of a search.
pub fn searched(
    state: &mut State,
    (mut input, before): (Typed, (StackLayer, &'static str)),
    action: Option<Action>,
    typed: Option<char>,
) {
    match action {
        Some(Action::Accept) if has_found(state) => {
            let found = state.knob();
            choose_knob(state, found);
            return;
        }
        Some(Action::Accept | Action::Close) => {
            if let Some(knob) = state.find(before.1) {
                choose_knob(state, knob);
            }
            return;
        }
        _ => {}
    }
    let changed = type_into(&mut input, action, typed);
    state.dialog = Some(Dialog::Search { input, before });
    match action {
        Some(Action::Up) => step(state, -1),
        Some(Action::Down) => step(state, 1),
        _ if changed => {
            state.list_knobs();
            choose_best(state);
        }
        _ => {}
    }
}

fn has_found(state: &State) -> bool {
    state.listing.rows.iter().any(|row| matches!(row, ListRow::Knob(_)))
}

/// Chooses the first knob, whose path is nearest to what is typed.
fn choose_best(state: &mut State) {
    let first = state.listing.rows.iter().position(|row| matches!(row, ListRow::Knob(_)));
    state.chosen = first.unwrap_or(0);
    state.top = 0;
    state.scroll_to_chosen();
}
