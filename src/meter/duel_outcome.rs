//! The outcome of a duel, as its line of the ledger keeps it.

use serde::{Deserialize, Serialize};

/// How a duel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuelVerdict {
    /// The first value is better by the figure that counts.
    First,
    /// The second value is.
    Second,
    /// One value is better by the figure, but less survives with it.
    LessDurable,
    /// They differ by less than the margin.
    NoDifference,
    /// The pairs are not enough to tell.
    Unclear,
    /// Something forbids a verdict.
    NotJudged,
}

/// The outcome of a duel of two values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuelOutcome {
    /// How it ended; unclear if it was ended early.
    pub verdict: DuelVerdict,
    /// The name of the figure that counts.
    pub figure: String,
    /// The number of pairs that have this figure.
    pub pairs: u64,
    /// The median of its change from the first value to the second, as a fraction; none without pairs.
    pub change: Option<f64>,
    /// The interval of the change, if it is the same in all pairs; none without pairs.
    pub interval: Option<(f64, f64)>,
    /// Whether it is clear by the evidence.
    pub is_clear: bool,
    /// Differences below this fraction do not matter.
    pub margin: f64,
    /// Which value survives less, if one does: 0 or 1.
    pub less_durable: Option<usize>,
    /// Why there is no verdict, or why it is unclear.
    pub why: Option<String>,
}
