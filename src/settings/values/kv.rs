//! Settings of the load's engine: pages, or RocksDB with its data set and options.

use crate::settings::named::Named;
use crate::units::{KIB, MIB, format_size};

/// What the classes read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadEngine {
    /// Pages, by stacktune's own workers.
    Pages,
    /// Pairs of keys and values, through `RocksDB` on a file system.
    Rocksdb,
}

/// The order in which the pairs are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Ascending keys.
    Sequential,
    /// Every key once, in an order drawn at random.
    Random,
}

/// How a file's blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// How files are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compaction {
    /// Each level is one sorted run, `fanout` times as large as the one above.
    Level,
    /// Sorted runs of similar size are merged.
    Universal,
}

/// The data set: what is loaded, and what identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Pairs that are loaded; none means `share_percent` of the file system.
    pub count: Option<u64>,
    /// The data set's share of the file system, if no count is given.
    pub share_percent: u64,
    /// How they are loaded.
    pub order: Order,
}

impl Pairs {
    /// Pairs on a file system of this many bytes.
    pub fn count_on(&self, filesystem_bytes: u64) -> u64 {
        let share = u128::from(filesystem_bytes) * u128::from(self.share_percent) / 100;
        self.count.unwrap_or((share / u128::from(self.key_bytes + self.value_bytes)) as u64).max(1)
    }
}

/// `RocksDB`'s options, as far as they are knobs. The defaults are `RocksDB`'s own, except direct I/O, which
/// keeps the page cache out of the figures, and compression, which is off.
#[derive(Debug, Clone, PartialEq)]
pub struct Rocksdb {
    /// Reads bypass the page cache.
    pub direct_reads: bool,
    /// Flushes and compactions bypass the page cache.
    pub direct_flush: bool,
    /// Bytes of a block of a file.
    pub block_bytes: u64,
    /// Bytes of the block cache.
    pub block_cache_bytes: u64,
    /// How blocks are compressed.
    pub compression: Compression,
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Memtables, including the one being written.
    pub write_buffers: u64,
    /// Files of L0 that start a compaction.
    pub l0_compact: u64,
    /// Files of L0 that slow writes down.
    pub l0_slow: u64,
    /// Files of L0 that stop writes.
    pub l0_stop: u64,
    /// Bytes of L1.
    pub level_base_bytes: u64,
    /// How much larger each level is than the one above.
    pub fanout: f64,
    /// Bytes of a file of L1.
    pub file_bytes: u64,
    /// How files are merged.
    pub compaction: Compaction,
    /// One level below L0, of any size (Ransom et al. 2025, section 5.2.2).
    pub single_level: bool,
    /// Concurrent flushes and compactions, if these have no number of their own.
    pub jobs: u64,
    /// Concurrent compactions; 0 derives them from the jobs.
    pub compactions: u64,
    /// Concurrent flushes; 0 derives them from the jobs.
    pub flushes: u64,
    /// Threads of one compaction.
    pub subcompactions: u64,
    /// Files are synced incrementally each time this many bytes are written; 0 means never.
    pub bytes_per_sync: u64,
    /// The same for the log.
    pub wal_bytes_per_sync: u64,
    /// Bits per key of each file's filter; 0 means no filter.
    pub bloom_bits: u64,
}

impl Rocksdb {
    /// Everything that determines the layout of the files, in words: data sets with different words differ.
    pub fn layout(&self) -> String {
        let l0 = format!("merged from {} files of L0", self.l0_compact);
        let levels = match self.compaction {
            Compaction::Level if self.single_level => "single level".to_owned(),
            Compaction::Level => {
                let l1 = format_size(self.level_base_bytes);
                format!("levels of fan-out {}, L1 of {l1}, {l0}", self.fanout)
            }
            Compaction::Universal => format!("{}, {l0}", Compaction::Universal.name()),
        };
        let [files, blocks, memtables] =
            [self.file_bytes, self.block_bytes, self.write_buffer_bytes].map(format_size);
        let (compression, bits) = (self.compression.name(), self.bloom_bits);
        format!(
            "{levels}, files of {files}, blocks of {blocks}, memtables of {memtables}, compression {compression}, filters of {bits} bits"
        )
    }

    /// How many compactions and flushes run at once: their own numbers, else `RocksDB`'s split of the jobs.
    pub fn background(&self) -> (u64, u64) {
        let flushes = (self.jobs / 4).max(1);
        let compactions = self.jobs.saturating_sub(flushes).max(1);
        let of = |own: u64, by_jobs: u64| if own == 0 { by_jobs } else { own };
        (of(self.compactions, compactions), of(self.flushes, flushes))
    }
}

impl Default for Rocksdb {
    fn default() -> Self {
        Self {
            direct_reads: true,
            direct_flush: true,
            block_bytes: 4 * KIB,
            block_cache_bytes: 32 * MIB,
            compression: Compression::None,
            write_buffer_bytes: 64 * MIB,
            write_buffers: 2,
            l0_compact: 4,
            l0_slow: 20,
            l0_stop: 36,
            level_base_bytes: 256 * MIB,
            fanout: 10.0,
            file_bytes: 64 * MIB,
            compaction: Compaction::Level,
            single_level: false,
            jobs: 2,
            compactions: 0,
            flushes: 0,
            subcompactions: 1,
            bytes_per_sync: 0,
            wal_bytes_per_sync: 0,
            bloom_bits: 0,
        }
    }
}

/// The settings of the load's engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Kv {
    /// What the classes read and write.
    pub engine: LoadEngine,
    /// The data set: how many pairs, and of what size.
    pub pairs: Pairs,
    /// Pairs per range read.
    pub scan_pairs: u64,
    /// Whether range reads follow each other from the first key to the last, instead of starting at a random key.
    pub scan_whole: bool,
    /// Percentage of gets for missing keys.
    pub miss_percent: u64,
    /// Percentage of gets among the background's operations.
    pub read_percent: u64,
    /// Where acknowledged puts of the WAL are recorded.
    pub acks: Option<String>,
    /// The engine's options.
    pub rocksdb: Rocksdb,
}

impl Default for Kv {
    /// The data set is that of Didona et al. (2021), section 3.2.
    fn default() -> Self {
        Self {
            engine: LoadEngine::Pages,
            pairs: Pairs {
                key_bytes: 16,
                value_bytes: 4000,
                count: None,
                share_percent: 25,
                order: Order::Sequential,
            },
            scan_pairs: 128,
            scan_whole: false,
            miss_percent: 0,
            read_percent: 0,
            acks: None,
            rocksdb: Rocksdb::default(),
        }
    }
}

impl Named for LoadEngine {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Pages, "pages", "pages of files and devices, by stacktune's own workers"),
        (Self::Rocksdb, "rocksdb", "pairs of keys and values, through RocksDB on a file system"),
    ];
}

impl Named for Order {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Sequential, "sequential", "ascending keys"),
        (Self::Random, "random", "every key once, in an order drawn at random"),
    ];
}

impl Named for Compression {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::None, "none", "not at all"),
        (Self::Lz4, "lz4", "LZ4: fast"),
        (Self::Zstd, "zstd", "Zstandard: smaller"),
    ];
}

impl Named for Compaction {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Level, "level", "each level is one sorted run, larger than the one above"),
        (Self::Universal, "universal", "sorted runs of similar size are merged"),
    ];
}
