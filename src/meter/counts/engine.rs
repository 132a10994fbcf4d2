//! What a storage engine under the classes did on its own: its log, flushes and compactions, its cache, and
//! how long it held up writes.
//!
//! The counts are the engine's own and only grow while it runs, even if it is closed and reopened; a window's
//! counts are the differences between its two ends.

use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Counts since the engine was opened, in a window, or over a run. For `RocksDB`, each names its ticker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EngineTotals {
    /// Bytes of keys and values that the application put, as the workers count them.
    pub user_written_bytes: u64,
    /// Bytes of keys and values that the application got, as the workers count them.
    pub user_read_bytes: u64,
    /// Bytes written to the log (`rocksdb.wal.bytes`).
    pub log_bytes: u64,
    /// Syncs of the log (`rocksdb.wal.synced`).
    pub log_syncs: u64,
    /// Bytes that flushes of memtables wrote (`rocksdb.flush.write.bytes`).
    pub flush_bytes: u64,
    /// Bytes that compactions read (`rocksdb.compact.read.bytes`).
    pub compaction_read_bytes: u64,
    /// Bytes that compactions wrote (`rocksdb.compact.write.bytes`).
    pub compaction_written_bytes: u64,
    /// Time for which writes were held up, summed over the waiting threads (`rocksdb.stall.micros`).
    pub stall_ns: u64,
    /// Data blocks that were in the engine's cache (`rocksdb.block.cache.data.hit`).
    pub cache_hits: u64,
    /// Data blocks that were not in it (`rocksdb.block.cache.data.miss`).
    pub cache_misses: u64,
    /// Gets that a filter answered without a read (`rocksdb.bloom.filter.useful`).
    pub filter_hits: u64,
}

impl EngineTotals {
    /// Bytes that the engine wrote: its log, flushes and compactions.
    pub fn written_bytes(&self) -> u64 {
        self.log_bytes + self.flush_bytes + self.compaction_written_bytes
    }

    /// Bytes that the engine wrote per byte that the application put; none if it put none. It is the engine's
    /// part of WA-A ([`crate::meter::written::Parts::engine`]).
    pub fn write_amplification(&self) -> Option<f64> {
        (self.user_written_bytes > 0).then(|| self.written_bytes() as f64 / self.user_written_bytes as f64)
    }

    /// The share of data blocks found in its cache, 0 to 1; none if none was looked up.
    pub fn cache_hit_share(&self) -> Option<f64> {
        let looked = self.cache_hits + self.cache_misses;
        (looked > 0).then(|| self.cache_hits as f64 / looked as f64)
    }

    /// See [`crate::meter::window::Window::counts_sum`].
    pub(in crate::meter) fn sum(self) -> u128 {
        let counts = [
            self.user_written_bytes,
            self.user_read_bytes,
            self.log_bytes,
            self.log_syncs,
            self.flush_bytes,
            self.compaction_read_bytes,
            self.compaction_written_bytes,
            self.stall_ns,
            self.cache_hits,
            self.cache_misses,
            self.filter_hits,
        ];
        counts.map(u128::from).iter().sum()
    }

    fn with(self, other: Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            user_written_bytes: by(self.user_written_bytes, other.user_written_bytes),
            user_read_bytes: by(self.user_read_bytes, other.user_read_bytes),
            log_bytes: by(self.log_bytes, other.log_bytes),
            log_syncs: by(self.log_syncs, other.log_syncs),
            flush_bytes: by(self.flush_bytes, other.flush_bytes),
            compaction_read_bytes: by(self.compaction_read_bytes, other.compaction_read_bytes),
            compaction_written_bytes: by(self.compaction_written_bytes, other.compaction_written_bytes),
            stall_ns: by(self.stall_ns, other.stall_ns),
            cache_hits: by(self.cache_hits, other.cache_hits),
            cache_misses: by(self.cache_misses, other.cache_misses),
            filter_hits: by(self.filter_hits, other.filter_hits),
        }
    }
}

impl Add for EngineTotals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::wrapping_add)
    }
}

impl AddAssign for EngineTotals {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for EngineTotals {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

/// An engine under the classes in a window or over a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EngineFigures {
    /// Its counts.
    #[serde(flatten)]
    pub counts: EngineTotals,
    /// Times of its operations in microseconds, since it was opened: `RocksDB`'s histograms.
    pub times_us: Vec<EngineTime>,
    /// Bytes of its live files at the end, including outdated pairs in them (`rocksdb.total-sst-files-size`).
    pub files_bytes: u64,
    /// Bytes that compactions still have to write, by its own estimate
    /// (`rocksdb.estimate-pending-compaction-bytes`).
    pub pending_compaction_bytes: u64,
    /// Whether writes were stopped at the end (`rocksdb.is-write-stopped`).
    pub stopped: bool,
}

/// One of the engine's histograms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EngineTime {
    /// RocksDB's name of the histogram.
    pub name: String,
    /// Samples since the engine was opened.
    pub count: u64,
    /// Their median in microseconds.
    pub p50: f64,
    /// The 99th percentile in microseconds.
    pub p99: f64,
    /// The largest in microseconds.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up_to_the_whole() {
        let at =
            |n: u64| EngineTotals { log_bytes: n, stall_ns: 2 * n, cache_hits: 3 * n, ..Default::default() };
        let sum = (at(5) - at(2)) + (at(9) - at(5));
        assert_eq!(sum, at(9) - at(2));
        assert_eq!(at(1) - at(2), EngineTotals::default(), "counts never shrink");
    }

    #[test]
    fn a_share_of_nothing_is_unknown() {
        let none = EngineTotals::default();
        assert_eq!((none.write_amplification(), none.cache_hit_share()), (None, None));
        let some = EngineTotals {
            user_written_bytes: 100,
            log_bytes: 110,
            flush_bytes: 100,
            compaction_written_bytes: 290,
            cache_hits: 1,
            cache_misses: 3,
            ..none
        };
        assert_eq!((some.write_amplification(), some.cache_hit_share()), (Some(5.0), Some(0.25)));
    }
}
