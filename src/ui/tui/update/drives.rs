//! Ticking the target's drives, among the host's as the guard finds them.

use super::filter::{self, Pressed};
use super::input::blocked;
use super::turn;
use crate::runs::session::{Candidate, OnDevice};
use crate::settings::knobs::{Value, find};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::filter::Filter;
use crate::ui::tui::keys::Action;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;
use crate::ui::tui::view::drives::rows;

/// Opens the list for the chosen knob, and has the drives examined.
pub fn begin(state: &mut State) -> Vec<Effect> {
    if blocked(state) {
        return Vec::new();
    }
    let (Some(status), Some(settings)) = (&state.status, state.settings_for(state.knob())) else {
        return Vec::new();
    };
    let now = &status.settings;
    let held = now.target.devices.iter().chain(&now.wal.target).cloned().collect();
    let (facts, ticked) = (status.facts.clone(), settings.target.devices);
    state.dialog =
        Some(Dialog::Drives { found: None, ticked: ticked.clone(), chosen: 0, filter: Filter::default() });
    vec![Effect::ExamineDrives { facts, named: ticked, held }]
}

/// Takes the examined drives.
pub fn examined(state: &mut State, candidates: Vec<Candidate>) {
    if let Some(Dialog::Drives { found, .. }) = &mut state.dialog {
        *found = Some(candidates);
    }
}

/// Handles a key: the drives, once they are examined, and the names of the ticked ones.
pub fn pressed(
    state: &mut State,
    (found, mut ticked): (Option<Vec<Candidate>>, Vec<String>),
    (mut chosen, mut filter): (usize, Filter),
    (action, typed): (Option<Action>, Option<char>),
) -> Vec<Effect> {
    let candidates = found.as_deref().unwrap_or_default();
    let in_sight = |filter: &Filter| rows(candidates, filter);
    // A host without drives uses files.
    let pressed = match &found {
        Some(none) if none.is_empty() && action == Some(Action::Accept) => Pressed::Act(Action::Accept),
        _ => filter::pressed(&mut filter, chosen, (action, typed), &in_sight),
    };
    match pressed {
        Pressed::Moved(row) => chosen = row,
        Pressed::Act(Action::Close) => return Vec::new(),
        Pressed::Act(Action::Edit) => {
            turn::edit(state);
            return Vec::new();
        }
        // Ticks the drive that was searched for; the whole list then shows all that are ticked.
        Pressed::Act(Action::Accept) if filter.is_typed() => {
            let looked_for = candidates.get(chosen).filter(|candidate| !ticked.contains(&candidate.name));
            looked_for.into_iter().for_each(|candidate| tick(&mut ticked, candidate));
            filter = Filter::default();
        }
        Pressed::Act(Action::Accept) if found.is_some() => {
            let Some(knob) = find("target.devices") else { return Vec::new() };
            return turn::picked(state, knob, Value::List(ticked));
        }
        Pressed::Act(Action::Mark) => {
            candidates.get(chosen).into_iter().for_each(|candidate| tick(&mut ticked, candidate));
        }
        Pressed::Act(_) => {}
    }
    state.dialog = Some(Dialog::Drives { found, ticked, chosen, filter });
    Vec::new()
}

/// Ticks a drive or clears its tick; one that the guard refuses can only be cleared.
fn tick(ticked: &mut Vec<String>, candidate: &Candidate) {
    let before = ticked.len();
    ticked.retain(|name| *name != candidate.name);
    if ticked.len() == before && !matches!(candidate.found, OnDevice::Refused(_)) {
        ticked.push(candidate.name.clone());
    }
}
