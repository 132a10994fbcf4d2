//! Ticking the drives of the target, from those of the host as the guard finds them.

use super::input::{PAGE, blocked, scrolled};
use super::turn;
use crate::runs::session::{Candidate, OnDevice};
use crate::settings::knobs::{Value, find};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::Action;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;

/// The drives, once they are examined; the names of the ticked ones; the chosen row.
type Picking = (Option<Vec<Candidate>>, Vec<String>, usize);

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
    state.dialog = Some(Dialog::Drives { found: None, ticked: ticked.clone(), chosen: 0 });
    vec![Effect::ExamineDrives { facts, named: ticked, held }]
}

/// Takes what was found.
pub fn examined(state: &mut State, candidates: Vec<Candidate>) {
    if let Some(Dialog::Drives { found, .. }) = &mut state.dialog {
        *found = Some(candidates);
    }
}

/// Handles a key.
pub fn pressed(
    state: &mut State,
    (found, mut ticked, chosen): Picking,
    action: Option<Action>,
) -> Vec<Effect> {
    let rows = found.as_deref().unwrap_or_default();
    let last = rows.len().saturating_sub(1);
    let chosen = match action {
        Some(Action::Close) => return Vec::new(),
        Some(Action::Edit) => {
            turn::edit(state);
            return Vec::new();
        }
        Some(Action::Accept) if found.is_some() => {
            let Some(knob) = find("target.devices") else { return Vec::new() };
            return turn::picked(state, knob, Value::List(ticked));
        }
        Some(Action::Mark) => {
            if let Some(candidate) = rows.get(chosen) {
                tick(&mut ticked, candidate);
            }
            chosen
        }
        _ => scrolled(chosen, action, PAGE, last),
    };
    state.dialog = Some(Dialog::Drives { found, ticked, chosen });
    Vec::new()
}

/// Ticks it, or no longer; what the guard refuses can only be left out.
fn tick(ticked: &mut Vec<String>, candidate: &Candidate) {
    let before = ticked.len();
    ticked.retain(|name| *name != candidate.name);
    if ticked.len() == before && !matches!(candidate.found, OnDevice::Refused(_)) {
        ticked.push(candidate.name.clone());
    }
}
