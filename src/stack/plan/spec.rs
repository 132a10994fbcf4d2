//! What kind of stack to build.

use crate::class::Class;
use crate::settings::{ArrayState, Pairs, Settings, Stack, Sync, Target};

/// The settings that concern a stack: its layers, what lies below them, and what they hold.
#[derive(Debug, Clone, PartialEq)]
pub struct StackSpec {
    /// Array and file system.
    pub layers: Stack,
    /// The drives below them, or the files that stand in for drives.
    pub target: Target,
    /// The key-value pairs on it; none if it holds pages, or a program's files.
    pub pairs: Option<Pairs>,
    /// Whether a program makes its own files on it: nothing is filled.
    pub program: bool,
    /// Whether commits are flushed, if there are any.
    pub flushes: bool,
    /// The state that its md array is brought to, if it has a redundant one.
    pub array: ArrayState,
    /// The WAL's own place, if it has one.
    pub wal_target: Option<String>,
    /// The price of all drives in $, if the price of one is known.
    pub price: Option<f64>,
    /// Why there is no price although one was given.
    pub price_missing: Option<&'static str>,
}

impl StackSpec {
    /// Members of its array that are missing because the settings ask for it.
    pub fn lost_as_set(&self) -> u64 {
        u64::from(self.array != ArrayState::Healthy)
    }

    /// The specification given by the settings.
    pub fn of(settings: &Settings) -> Self {
        // A class that is off makes no commits less durable.
        let commits = settings.classes[Class::Wal.index()].enabled;
        Self {
            layers: settings.stack.clone(),
            target: settings.target.clone(),
            pairs: settings.is_keyed().then(|| settings.kv.pairs.clone()),
            program: settings.program.is_some(),
            flushes: !commits || settings.wal.sync != Sync::None,
            array: settings.md.on(settings.stack.raid).array,
            wal_target: settings.wal.target.clone(),
            price: settings.price(),
            price_missing: settings.price_missing(),
        }
    }
}
