//! What it takes to go from one settings to another.
//!
//! The table of knobs says what a turn of each takes; a change of several takes the most that any of
//! them does.

use crate::class::Class;
use crate::settings::jobs::jobs;
use crate::settings::knobs::{self, Scope};
use crate::settings::values::Settings;

/// What a change of settings takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What must be done before it is in force.
    pub scope: Scope,
    /// The classes that restart: those whose jobs differ.
    pub restarts: Vec<Class>,
}

/// The change from one settings to another.
pub fn between(old: &Settings, new: &Settings) -> Change {
    let differing = knobs::all().iter().filter(|knob| knob.get(old) != knob.get(new));
    let scope = differing.map(|knob| knob.scope_between(old, new)).max();
    let (before, after) = (jobs(old), jobs(new));
    let restarts = Class::ALL.into_iter().filter(|class| before[class.index()] != after[class.index()]);
    Change { scope: scope.unwrap_or(Scope::Live), restarts: restarts.collect() }
}

/// Whether both settings open the same target on the same stack; with a key-value load, also the same
/// data set in the same layout.
pub fn same_target(one: &Settings, other: &Settings) -> bool {
    !knobs::all().iter().any(|knob| knob.parts_targets(one, other))
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
