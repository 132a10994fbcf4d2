//! The progress of a long step.

/// A long step.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done (`filling data-0`).
    pub what: String,
    /// Bytes done.
    pub done_bytes: u64,
    /// Total bytes.
    pub all_bytes: u64,
    /// Bytes per second so far.
    pub rate_bytes_per_s: f64,
}
