//! What was turned so far, and the plan that waits for the operator.

use std::time::SystemTime;

use crate::meter::turns::ledger::{Ledger, Turn};
use crate::settings::Settings;
use crate::settings::knobs::Value;
use crate::stack::id::StackId;

/// A turn that can be undone: of one knob, or of those that were rebuilt together.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runs::session) struct Turned {
    /// Each knob's path and its value before.
    pub from: Vec<(String, Value)>,
}

/// A plan that waits for the operator.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct Pending {
    pub number: u64,
    pub settings: Settings,
    /// See [`Options::unused_steps`](crate::runs::session::Options::unused_steps).
    pub unused_steps: usize,
    pub from: Vec<(String, Value)>,
    /// The stack's id and the steps that were shown; none where nothing is built.
    pub agreed: Option<(StackId, Vec<String>)>,
    /// The turn under the load that was to be agreed to; none where the target is built anew.
    pub live: Option<(String, Value)>,
    /// Whether it opens another profile: a run of its own then, with its own clock and ledger.
    pub opens: bool,
}

/// Why a knob is turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runs::session) enum TurnedBy {
    /// The operator asked for it.
    Operator,
    /// It undoes the last turn.
    Undo,
    /// A duel of these values goes on, or leaves the knob as it was before.
    Duel([String; 2]),
}

impl TurnedBy {
    /// The values of the duel whose turn it is; none if it is of none.
    pub fn values(&self) -> Option<[String; 2]> {
        if let Self::Duel(values) = self { Some(values.clone()) } else { None }
    }
}

/// The turns of a session.
#[derive(Debug, Default)]
pub(in crate::runs::session) struct Turns {
    pub ledger: Ledger,
    /// Numbers the settings that were in force.
    pub setting: u64,
    pub undo: Vec<Turned>,
    /// The duel that goes on: its knob's path, and its values.
    pub duel: Option<(String, [String; 2])>,
    /// Knobs that were turned and are not yet in force, by path.
    pub draining: Vec<String>,
    /// Plans shown so far, and the one that waits.
    pub plans_made: u64,
    pub pending: Option<Pending>,
}

/// What a session leaves to one that goes on with another target.
#[derive(Debug, Clone, Default)]
pub(in crate::runs::session) struct Carried {
    pub ledger: Ledger,
    pub setting: u64,
    pub undo: Vec<Turned>,
    pub epoch_ns: Option<u64>,
    pub started: Option<SystemTime>,
    /// The turn that it is for; its time is when the load goes on.
    pub turn: Option<Turn>,
}
