//! Picking one of a knob's values from a list.

use super::filter::{self, Pressed};
use super::input::blocked;
use super::turn;
use crate::settings::knobs::{Kind, Knob, Value};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::filter::Filter;
use crate::ui::tui::keys::Action;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::{State, conditions};

/// Whether the knob has names to pick from.
pub fn has_names(knob: &Knob) -> bool {
    matches!(knob.spec.kind, Kind::Choice(_))
}

/// Whether its values are drives.
pub fn has_drives(knob: &Knob) -> bool {
    knob.path == "target.devices"
}

/// The values to pick from, including those that can't be chosen here.
pub fn values(state: &State, knob: &Knob) -> Vec<Value> {
    let status = state.status.as_ref();
    status.map_or_else(Vec::new, |status| knob.steps(conditions(status, knob.spec.scope)))
}

/// What a value means.
pub fn meaning(knob: &Knob, value: &Value) -> &'static str {
    let Kind::Choice(choices) = knob.spec.kind else { return "" };
    match value {
        Value::Choice(name) => choices.iter().find(|(known, _)| known == name).map_or("", |choice| choice.1),
        _ => "the value of all classes, in io",
    }
}

/// The rows that the filter lets through: by name and meaning.
pub fn rows(knob: &Knob, values: &[Value], filter: &Filter) -> Vec<usize> {
    filter.rows(values.len(), &|row| format!("{} {}", values[row], meaning(knob, &values[row])))
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
    state.dialog = Some(Dialog::Pick { knob: &knob.path, chosen, filter: Filter::default() });
}

/// Handles a key.
pub fn pressed(
    state: &mut State,
    path: &'static str,
    (mut chosen, mut filter): (usize, Filter),
    (action, typed): (Option<Action>, Option<char>),
) -> Vec<Effect> {
    let Some(knob) = state.find(path) else { return Vec::new() };
    let values = values(state, knob);
    let found = |filter: &Filter| rows(knob, &values, filter);
    match filter::pressed(&mut filter, chosen, (action, typed), &found) {
        Pressed::Moved(row) => chosen = row,
        Pressed::Act(Action::Close) => return Vec::new(),
        Pressed::Act(Action::Edit) => {
            turn::edit(state);
            return Vec::new();
        }
        Pressed::Act(Action::Accept) => {
            let value = values.get(chosen).filter(|value| state.unavailable(knob, value).is_none());
            if let Some(value) = value {
                return turn::picked(state, knob, value.clone());
            }
        }
        Pressed::Act(_) => {}
    }
    state.dialog = Some(Dialog::Pick { knob: path, chosen, filter });
    Vec::new()
}
