//! What a drive did, and why.

/// Why flash was read, programmed or erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The host reads or writes.
    Host,
    /// A page is written in part, so that its old content is read.
    Part,
    /// Garbage is collected: what is valid moves.
    Collection,
    /// The mapping is read from flash, or written to it.
    Mapping,
    /// Log blocks are merged into data blocks.
    Merge,
    /// Blocks that are rarely erased take their turn.
    Levelling,
}

/// All causes, by their numbers.
pub const CAUSES: [(Cause, &str); 6] = [
    (Cause::Host, "host"),
    (Cause::Part, "part"),
    (Cause::Collection, "collection"),
    (Cause::Mapping, "mapping"),
    (Cause::Merge, "merge"),
    (Cause::Levelling, "levelling"),
];

/// What a drive did since it was made, or since [`super::FlashDrive::forget`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that the host read.
    pub host_read_bytes: u64,
    /// Bytes that it wrote.
    pub host_written_bytes: u64,
    /// Bytes that it discarded.
    pub host_discarded_bytes: u64,
    /// Pages that it read and that held nothing.
    pub empty_reads: u64,
    /// Flash pages that were read, by cause.
    pub reads: [u64; 6],
    /// Flash pages that were programmed, by cause.
    pub programs: [u64; 6],
    /// Blocks that were erased, by cause.
    pub erases: [u64; 6],
    /// Pages that were looked up in the mapping's cache.
    pub lookups: u64,
    /// Those whose part of the mapping was not there.
    pub misses: u64,
    /// Parts of the mapping that were written to flash because they left the cache.
    pub write_backs: u64,
    /// Merges: the log block becomes the data block; it does after the rest was copied to it; all is copied.
    pub merges: [u64; 3],
}

impl Counts {
    /// Bytes that were written to flash by those that the host wrote; none if it wrote nothing.
    pub fn amplification(&self, page_bytes: u64) -> Option<f64> {
        let flash = self.programs.iter().sum::<u64>() as f64 * page_bytes as f64;
        (self.host_written_bytes > 0).then(|| flash / self.host_written_bytes as f64)
    }

    /// Misses by lookups; none without any.
    pub fn miss_ratio(&self) -> Option<f64> {
        (self.lookups > 0).then(|| self.misses as f64 / self.lookups as f64)
    }
}
