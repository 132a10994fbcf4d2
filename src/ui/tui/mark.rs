//! A marked setting: a point to go back to, and to compare the present one with.

use crate::settings::Settings;
use crate::settings::knobs::{self, Knob, Value};

/// The settings in force when they were marked.
#[derive(Debug, Clone)]
pub struct Mark {
    settings: Box<Settings>,
    /// The ledger's newest line then; 0 before the first.
    pub line: u64,
}

/// A knob that was turned since.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The knob.
    pub knob: &'static Knob,
    /// Its marked value.
    pub marked: Value,
    /// Its present value.
    pub now: Value,
}

impl Mark {
    /// Marks these settings, after that line of the ledger.
    pub fn new(settings: Settings, line: u64) -> Self {
        Self { settings: Box::new(settings), line }
    }

    /// Every knob whose value has changed, in the order of profiles.
    pub fn differences(&self, now: &Settings) -> Vec<Difference> {
        let of =
            |knob: &'static Knob| Difference { knob, marked: knob.get(&self.settings), now: knob.get(now) };
        knobs::all_of(now).map(of).filter(|difference| difference.marked != difference.now).collect()
    }

    /// Its place in the ledger, in words.
    pub fn place(&self) -> String {
        match self.line {
            0 => "before the first turn".into(),
            line => format!("after turn {line}"),
        }
    }
}
