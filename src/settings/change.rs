//! What a change of settings requires.
//!
//! The table of knobs defines what a turn of each requires; a change of several requires the most that any of
//! them does.

use crate::class::Class;
use crate::settings::jobs::jobs;
use crate::settings::knobs::{self, Knob, Scope, Value};
use crate::settings::values::{Layer, Program, Settings};

/// What a change of settings requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What must be done before it takes effect.
    pub scope: Scope,
    /// The classes that restart: those whose jobs differ.
    pub restarts: Vec<Class>,
}

/// What a change from the old settings to the new requires.
pub fn between(old: &Settings, new: &Settings) -> Change {
    let differing = knobs::all_of(new).filter(|knob| knob.get(old) != knob.get(new));
    // Layers are no knob's; they are a list that is part of the stack.
    let layers = (old.stack.by_commands != new.stack.by_commands).then_some(Scope::Rebuild);
    let scope = differing.map(|knob| knob.scope_between(old, new)).chain(layers).max();
    let (before, after) = (jobs(old), jobs(new));
    let restarts = Class::ALL.into_iter().filter(|class| before[class.index()] != after[class.index()]);
    Change { scope: scope.unwrap_or(Scope::Live), restarts: restarts.collect() }
}

/// Why a run can't be turned from the old settings to the new: simulated devices stand in for the whole target.
pub fn refused(old: &Settings, new: &Settings) -> Option<&'static str> {
    match (old.is_simulated(), new.is_simulated()) {
        (false, true) => Some("simulated devices take the place of the target: open a profile with them"),
        (true, false) => Some("only simulated devices are open: open a profile with another interface"),
        _ => None,
    }
}

/// What identifies a target: settings of the same identity open the same target on the same stack; with a
/// key-value load, also the same data set in the same layout.
#[derive(Debug, Clone)]
pub struct TargetIdentity {
    knobs: Vec<Trait>,
    layers: Vec<Layer>,
    /// What makes a program's data.
    setup: Option<String>,
}

/// A knob's value, and whether it is one of the target's.
#[derive(Debug, Clone)]
struct Trait {
    of_target: bool,
    value: Value,
}

impl TargetIdentity {
    /// The identity of the settings' target.
    pub fn of(settings: &Settings) -> Self {
        let of = |knob: &Knob| Trait { of_target: knob.is_of_target(settings), value: knob.get(settings) };
        let layers = settings.stack.by_commands.clone();
        let setup = settings.program.as_ref().map(Program::setup_words);
        Self { knobs: knobs::all().iter().map(of).collect(), layers, setup }
    }

    /// Whether both are of the same target.
    pub fn is_same(&self, other: &Self) -> bool {
        let parts =
            |(one, other): (&Trait, &Trait)| (one.of_target || other.of_target) && one.value != other.value;
        self.layers == other.layers
            && self.setup == other.setup
            && !self.knobs.iter().zip(&other.knobs).any(parts)
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
