//! What is asked of a trace, and what the authors' drives are like.

use crate::trace::io::Drive;

/// Coverages of the mapping cache, in percent of the space.
pub const COVERAGE_PERCENT: [u64; 5] = [1, 5, 10, 50, 100];
/// Flash blocks that alignment is held against; the light goes by the first.
pub const BLOCK_BYTES: [u64; 2] = [128 << 10, 1 << 20];
/// Logical segments, each with blocks of its own.
pub const SEGMENT_BYTES: u64 = 128 << 20;
/// Channels over which pages are striped.
pub const CHANNELS: usize = 16;
/// Below that many times the space, writes say too little of lifetimes.
pub const TRAFFIC_MIN: f64 = 50.0;

/// What is asked of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// The drive, if the trace has several.
    pub drive: Option<Drive>,
    /// Where the space begins: a partition's first byte.
    pub start_bytes: u64,
    /// How large the space is; unless it is given, it ends behind the furthest I/O.
    pub space_bytes: Option<u64>,
    /// A page of flash.
    pub page_bytes: u64,
    /// What the application's files hold at the end.
    pub file_bytes: Option<u64>,
}

impl Default for Spec {
    fn default() -> Self {
        Self { drive: None, start_bytes: 0, space_bytes: None, page_bytes: 2048, file_bytes: None }
    }
}
