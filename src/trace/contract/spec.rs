//! What to ask of a trace, and the parameters of the authors' drives.

use crate::error::{Error, Result};
use crate::trace::io::TracedDrive;
use crate::units::format_size;

/// Bytes of a mapping entry: as many as fit in a flash page make a translation page.
pub const ENTRY_BYTES: u64 = 4;
/// Coverages of the mapping cache, in percent of the space; the third determines the light.
const COVERAGE_PERCENT: [u64; 5] = [1, 5, 10, 50, 100];
/// Sizes of flash blocks to check alignment against; the first determines the light.
const BLOCK_BYTES: [u64; 2] = [128 << 10, 1 << 20];
/// Size of the logical segments, each of which has its own blocks.
const SEGMENT_BYTES: u64 = 128 << 20;
/// The smallest size: each segment takes memory.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// Channels that pages are striped over.
const CHANNELS: usize = 16;
/// The most channels: each segment has an open block on each.
const CHANNELS_MAX: usize = 64;
/// Maximum number of coverages and of block sizes: each takes a pass.
const LISTED_MAX: usize = 16;
/// Writes of less than this many times the space say too little about lifetimes.
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
    /// All rules, in their order.
    pub const ALL: [Self; 5] =
        [Self::RequestScale, Self::Locality, Self::Alignment, Self::Grouping, Self::Lifetime];
}

/// What to ask of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractSpec {
    /// The drive, if the trace has several.
    pub drive: Option<TracedDrive>,
    /// Where the space begins: a partition's first byte.
    pub start_bytes: u64,
    /// Bytes of the space; by default, it ends after the furthest I/O.
    pub space_bytes: Option<u64>,
    /// Bytes of a flash page.
    pub page_bytes: u64,
    /// Bytes that the application's files hold at the end.
    pub file_bytes: Option<u64>,
    /// The rules to score; the others have no figures.
    pub rules: Vec<Rule>,
    /// For locality: coverages of the mapping cache, in percent of the space.
    pub coverage_percent: Vec<u64>,
    /// For alignment: sizes of flash blocks to check against.
    pub block_bytes: Vec<u64>,
    /// For grouping by death time: bytes of the logical segments, besides a run with a single segment.
    pub segment_bytes: u64,
    /// For grouping by death time: channels that pages are striped over.
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
    /// Whether a rule is to be scored.
    pub fn asks_for(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// Refuses what no drive has, or what our tables can't hold.
    ///
    /// # Errors
    /// Of the kind `Input`.
    pub fn check(&self) -> Result<()> {
        if self.block_bytes.len().max(self.coverage_percent.len()) > LISTED_MAX {
            return Err(Error::input(format!(
                "at most {LISTED_MAX} blocks or coverages are scored: give fewer"
            )));
        }
        let page = self.page_bytes;
        // A block must be within what one translation page maps.
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
