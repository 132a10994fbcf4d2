//! How far a long step is.

/// A long step.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is done (`filling data-0`).
    pub what: String,
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes in all.
    pub all_bytes: u64,
    /// Bytes a second so far.
    pub rate_bytes_per_s: f64,
}
