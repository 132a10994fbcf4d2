//! Picking one of a knob's values from a list.

use super::input::{PAGE, blocked, scrolled};
use super::turn;
use crate::settings::knobs::{Kind, Knob, Value};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::Action;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::{State, conditions};

/// Whether the knob has names to pick from.
pub fn has_names(knob: &Knob) -> bool {
    matches!(knob.spec.kind, Kind::Choice(_))
}

/// Whether drives are its values.
pub fn has_drives(knob: &Knob) -> bool {
    knob.path == "target.devices"
}

/// The values to pick from, those that can't be chosen here among them.
pub fn values(state: &State, knob: &Knob) -> Vec<Value> {
    let status = state.status.as_ref();
    status.map_or_else(Vec::new, |status| knob.steps(conditions(status, knob.spec.scope)))
}

/// Opens the list for the chosen knob, at the value in force.
pub fn begin(state: &mut State) {
    let knob = state.knob();
    if blocked(state) {
        return;
    }
    let Some(settings) = state.settings_for(knob) else { return };
    let now = knob.get(&settings);
    let chosen = values(state, knob).iter().position(|value| *value == now).unwrap_or(0);
    state.dialog = Some(Dialog::Pick { knob: &knob.path, chosen });
}

/// Handles a key.
pub fn pressed(state: &mut State, path: &'static str, chosen: usize, action: Option<Action>) -> Vec<Effect> {
    let Some(knob) = state.find(path) else { return Vec::new() };
    let values = values(state, knob);
    let last = values.len().saturating_sub(1);
    let chosen = match action {
        Some(Action::Close) => return Vec::new(),
        Some(Action::Edit) => {
            turn::edit(state);
            return Vec::new();
        }
        Some(Action::Accept) => {
            let value = values.get(chosen).filter(|value| state.unavailable(knob, value).is_none());
            if let Some(value) = value {
                return turn::picked(state, knob, value.clone());
            }
            chosen
        }
        _ => scrolled(chosen, action, PAGE, last),
    };
    state.dialog = Some(Dialog::Pick { knob: path, chosen });
    Vec::new()
}
