//! The turns so far, and the plan that waits for the operator.

use std::time::SystemTime;

use crate::meter::turns::ledger::{Ledger, Turn};
use crate::settings::Settings;
use crate::settings::knobs::Value;
use crate::stack::id::StackId;

/// A turn that can be undone: of one knob, or of several that were rebuilt together.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runs::session) struct Turned {
    /// Each knob's path and its previous value.
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
    /// The stack's id and the steps that were shown; none if nothing is built.
    pub agreed: Option<(StackId, Vec<String>)>,
    /// The turn under load to be agreed to; none if the target is built anew.
    pub live: Option<(String, Value)>,
    /// Whether it opens another profile, which is a separate run with its own clock and ledger.
    pub opens: bool,
}

/// Why a knob is turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runs::session) enum TurnedBy {
    /// The operator asked for it.
    Operator,
    /// It undoes the last turn.
    Undo,
    /// A duel between these values is in progress, or restores the knob's previous value.
    Duel([String; 2]),
}

impl TurnedBy {
    /// The values of the duel that the turn belongs to; none if there is no duel.
    pub fn values(&self) -> Option<[String; 2]> {
        if let Self::Duel(values) = self { Some(values.clone()) } else { None }
    }
}

/// The turns of a session.
#[derive(Debug, Default)]
pub(in crate::runs::session) struct Turns {
    pub ledger: Ledger,
    /// Numbers the successive settings.
    pub setting: u64,
    pub undo: Vec<Turned>,
    /// The current duel: its knob's path, and its values.
    pub duel: Option<(String, [String; 2])>,
    /// Knobs that were turned and are not yet in force, by path.
    pub draining: Vec<String>,
    /// Plans shown so far, and the one that waits.
    pub plans_made: u64,
    pub pending: Option<Pending>,
}

/// State that a session passes on to one that continues with another target.
#[derive(Debug, Clone, Default)]
pub(in crate::runs::session) struct Carried {
    pub ledger: Ledger,
    pub setting: u64,
    pub undo: Vec<Turned>,
    pub epoch_ns: Option<u64>,
    pub started: Option<SystemTime>,
    /// The turn that caused it; its time is when the load resumes.
    pub turn: Option<Turn>,
}
