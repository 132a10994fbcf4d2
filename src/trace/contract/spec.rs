//! What is asked of a trace, and what the authors' drives are like.

use crate::error::{Error, Result};
use crate::trace::io::TracedDrive;
use crate::units::format_size;

/// Bytes of an entry of the mapping: what a page of flash holds of them is one translation page.
pub const ENTRY_BYTES: u64 = 4;
/// Coverages of the mapping cache, in percent of the space; the light goes by the third.
const COVERAGE_PERCENT: [u64; 5] = [1, 5, 10, 50, 100];
/// Flash blocks that alignment is held against; the light goes by the first.
const BLOCK_BYTES: [u64; 2] = [128 << 10, 1 << 20];
/// Logical segments, each with blocks of its own.
const SEGMENT_BYTES: u64 = 128 << 20;
/// The smallest: each takes memory.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// Channels over which pages are striped.
const CHANNELS: usize = 16;
/// The most: each segment has an open block on each.
const CHANNELS_MAX: usize = 64;
/// Coverages, and sizes of blocks: each takes a pass.
const LISTED_MAX: usize = 16;
/// Below that many times the space, writes say too little of lifetimes.
pub const TRAFFIC_MIN: f64 = 50.0;

/// One of the five rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Request scale.
    RequestScale,
    /// Locality.
    Locality,
    /// Aligned sequentiality.
    Alignment,
    /// Grouping by death time.
    Grouping,
    /// Uniform data lifetime.
    Lifetime,
}

impl Rule {
    /// All, in their order.
    pub const ALL: [Self; 5] =
        [Self::RequestScale, Self::Locality, Self::Alignment, Self::Grouping, Self::Lifetime];
}

/// What is asked of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractSpec {
    /// The drive, if the trace has several.
    pub drive: Option<TracedDrive>,
    /// Where the space begins: a partition's first byte.
    pub start_bytes: u64,
    /// How large the space is; unless it is given, it ends behind the furthest I/O.
    pub space_bytes: Option<u64>,
    /// A page of flash.
    pub page_bytes: u64,
    /// What the application's files hold at the end.
    pub file_bytes: Option<u64>,
    /// The rules that are scored; the others have no figures.
    pub rules: Vec<Rule>,
    /// Coverages of the mapping cache, in percent of the space: of locality.
    pub coverage_percent: Vec<u64>,
    /// Flash blocks that alignment is held against.
    pub block_bytes: Vec<u64>,
    /// Logical segments: of grouping by death time, besides one segment.
    pub segment_bytes: u64,
    /// Channels over which pages are striped: of grouping by death time.
    pub channels: usize,
}

impl Default for ContractSpec {
    fn default() -> Self {
        Self {
            drive: None,
            start_bytes: 0,
            space_bytes: None,
            page_bytes: 2048,
            file_bytes: None,
            rules: Rule::ALL.into(),
            coverage_percent: COVERAGE_PERCENT.into(),
            block_bytes: BLOCK_BYTES.into(),
            segment_bytes: SEGMENT_BYTES,
            channels: CHANNELS,
        }
    }
}

impl ContractSpec {
    /// Whether a rule is scored.
    pub fn asks_for(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// Refuses what no drive has, or what these tables can't hold.
    ///
    /// # Errors
    /// Of the kind `Input`.
    pub fn check(&self) -> Result<()> {
        if self.block_bytes.len().max(self.coverage_percent.len()) > LISTED_MAX {
            return Err(Error::input(format!(
                "{LISTED_MAX} blocks or coverages are scored at most: give fewer"
            )));
        }
        let page = self.page_bytes;
        // A block is a part of what a translation page maps.
        let most = page / ENTRY_BYTES * page;
        let is_block = |bytes: &u64| bytes.is_power_of_two() && (page..=most).contains(bytes);
        if let Some(wrong) = self.block_bytes.iter().find(|bytes| !is_block(bytes)) {
            let (block, page, most) = (format_size(*wrong), format_size(page), format_size(most));
            let what = format!(
                "blocks of {block}: with pages of {page}, a power of two from {page} to {most} is expected"
            );
            return Err(Error::input(what).hint("change --blocks, or --page"));
        }
        if let Some(wrong) = self.coverage_percent.iter().find(|percent| !(1..=100).contains(*percent)) {
            return Err(Error::input(format!("a cache can't cover {wrong}% of a space: give 1 to 100")));
        }
        let segment = self.segment_bytes;
        if segment < SEGMENT_BYTES_MIN || !segment.is_multiple_of(page) {
            let (segment, least) = (format_size(segment), format_size(SEGMENT_BYTES_MIN));
            return Err(Error::input(format!(
                "segments of {segment}: whole pages are expected, {least} at least"
            )));
        }
        if !(1..=CHANNELS_MAX).contains(&self.channels) {
            let what = format!("{} channels: 1 to {CHANNELS_MAX} are expected", self.channels);
            return Err(Error::input(what));
        }
        Ok(())
    }
}
