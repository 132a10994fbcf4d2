//! The result of reading every pair back.

use std::fmt;

use serde::Serialize;

/// How many pairs are as written, and how many are not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PairsReport {
    /// Pairs with the value that was put.
    pub pairs_ok: u64,
    /// Loaded pairs that are missing.
    pub missing: u64,
    /// Pairs with keys that are not stacktune's.
    pub foreign: u64,
    /// Values of another pair, or of another length.
    pub misplaced: u64,
    /// Values whose bytes are not those that were put.
    pub damaged: u64,
    /// The first few wrong ones, in words.
    pub first: Vec<String>,
    /// Whether everything was checked; otherwise it was stopped.
    pub complete: bool,
}

impl PairsReport {
    /// Whether everything was checked and is as it was put.
    pub fn is_clean(&self) -> bool {
        self.complete && self.wrong() == 0
    }

    fn wrong(&self) -> u64 {
        self.missing + self.foreign + self.misplaced + self.damaged
    }
}

impl fmt::Display for PairsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pairs_ok, missing, foreign, misplaced, damaged, first, complete } = self;
        // An older value of a pair looks just as good: nothing records which was put last.
        write!(f, "lost writes: not checked in RocksDB\n{pairs_ok} pairs hold a value that was put")?;
        let kinds =
            [("missing", missing), ("foreign", foreign), ("misplaced", misplaced), ("damaged", damaged)];
        for (name, count) in kinds.into_iter().filter(|(_, count)| **count > 0) {
            write!(f, ", {count} {name}")?;
        }
        for what in first {
            write!(f, "\n  {what}")?;
        }
        if !complete {
            write!(f, "\n  not everything was checked: it was stopped")?;
        }
        Ok(())
    }
}
