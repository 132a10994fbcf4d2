//! What a drive did, and why.

/// Why flash was read, programmed or erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The host read or wrote.
    Host,
    /// A page was written in part, so its old content had to be read.
    Part,
    /// Garbage collection moved valid pages.
    Collection,
    /// The mapping was read from flash, or written to it.
    Mapping,
    /// Log blocks were merged into data blocks.
    Merge,
    /// Wear levelling moved the content of a rarely erased block.
    Levelling,
}

/// All causes, in the order of their numbers.
pub const CAUSES: [(Cause, &str); 6] = [
    (Cause::Host, "host"),
    (Cause::Part, "part"),
    (Cause::Collection, "collection"),
    (Cause::Mapping, "mapping"),
    (Cause::Merge, "merge"),
    (Cause::Levelling, "levelling"),
];

/// What a drive has done since it was made, or since [`super::FlashDrive::forget`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that the host read.
    pub host_read_bytes: u64,
    /// Bytes that it wrote.
    pub host_written_bytes: u64,
    /// Bytes that it discarded.
    pub host_discarded_bytes: u64,
    /// Pages that the host read although they held nothing.
    pub empty_reads: u64,
    /// Flash pages that were read, by cause.
    pub reads: [u64; 6],
    /// Flash pages that were programmed, by cause.
    pub programs: [u64; 6],
    /// Blocks that were erased, by cause.
    pub erases: [u64; 6],
    /// Pages that were looked up in the mapping cache.
    pub lookups: u64,
    /// Lookups whose translation page was not there.
    pub misses: u64,
    /// Translation pages that were written to flash because they were evicted.
    pub write_backs: u64,
    /// Switch, partial and full merges (see hybrid mapping).
    pub merges: [u64; 3],
}

impl Counts {
    /// Bytes written to flash per byte written by the host; `None` if the host wrote nothing.
    pub fn amplification(&self, page_bytes: u64) -> Option<f64> {
        let flash = self.programs.iter().sum::<u64>() as f64 * page_bytes as f64;
        (self.host_written_bytes > 0).then(|| flash / self.host_written_bytes as f64)
    }

    /// Misses per lookup; `None` without lookups.
    pub fn miss_ratio(&self) -> Option<f64> {
        (self.lookups > 0).then(|| self.misses as f64 / self.lookups as f64)
    }
}
