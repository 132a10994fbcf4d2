//! What a duel came to, as its line of the ledger keeps it.

use serde::{Deserialize, Serialize};

/// How a duel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuelVerdict {
    /// The first value is better by the figure that counts.
    First,
    /// The second value is.
    Second,
    /// It is better by the figure, but less survives with it.
    LessDurable,
    /// They differ by less than the margin.
    NoDifference,
    /// The pairs did not suffice.
    Unclear,
    /// Something forbids a verdict.
    NotJudged,
}

/// What a duel of two values came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuelOutcome {
    /// How it ended; unclear where it was ended early.
    pub verdict: DuelVerdict,
    /// The name of the figure that counts.
    pub figure: String,
    /// The number of pairs that have it.
    pub pairs: u64,
    /// The median of its change from the first value to the second, as a fraction; none without pairs.
    pub change: Option<f64>,
    /// What that is between, if it is the same in all pairs; none without pairs.
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
