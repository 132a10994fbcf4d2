//! The knobs of `[rocksdb]`: `RocksDB`'s options.
//!
//! Options that `SetOptions` and `SetDBOptions` accept are live; those fixed while a database is open require
//! reopening it; those that decide the layout of the files require reloading the pairs.

use super::spec::{Conditions, Named, PLAIN, Scope, Spec, always, missing, names};
use super::value::{Kind, Value};
use crate::class::Class;
use crate::settings::values::{Compaction, Compression, Settings};
use crate::units::{GIB, KIB, MIB};

/// The size of a part of the database.
const fn size(min: u64, max: u64, steps: &'static [u64]) -> Kind {
    Kind::Size { min, max, multiple: 1, power_of_two: false, optional: false, steps }
}

const SYNC_BYTES: Kind = size(0, GIB, &[0, 128 * KIB, 512 * KIB, MIB, 4 * MIB, 16 * MIB]);

pub(super) const ROCKSDB: &[Spec] = &[
    Spec {
        key: "direct_reads",
        help: "Reads bypass the page cache (use_direct_reads).",
        paper: Some(
            "Direct I/O and a cache of 10 MB, so that the data does not fit in memory (Didona et al. 2021, 3.1).",
        ),
        kind: Kind::Bool,
        scope: Scope::Reopen,
        unavailable: direct_unavailable,
        ..at!(Bool, |s, c| s.kv.rocksdb.direct_reads)
    },
    Spec {
        key: "direct_flush",
        help: "Flushes and compactions bypass the page cache (use_direct_io_for_flush_and_compaction).",
        kind: Kind::Bool,
        scope: Scope::Reopen,
        unavailable: direct_unavailable,
        ..at!(Bool, |s, c| s.kv.rocksdb.direct_flush)
    },
    Spec {
        key: "block_size",
        help: "Block size (block_size): a get reads a whole block. Applies to files written from then on.",
        kind: size(KIB, 4 * MIB, &[KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 256 * KIB]),
        of_target: Settings::is_keyed,
        ..at!(some Size, |s, c| s.kv.rocksdb.block_bytes)
    },
    Spec {
        key: "block_cache",
        help: "Size of RocksDB's block cache.",
        paper: Some(
            "10 MB, so that the data does not fit in it (Didona et al. 2021, 3.1; Saha et al. 2021, III).",
        ),
        kind: size(0, 1 << 42, &[0, 10_000_000, 32 * MIB, 128 * MIB, 512 * MIB, GIB, 4 * GIB, 16 * GIB]),
        ..at!(some Size, |s, c| s.kv.rocksdb.block_cache_bytes)
    },
    Spec {
        key: "compression",
        help: "Block compression, for files written from then on. The values do not compress: this shows what compression \
               costs, not what it saves.",
        kind: Kind::Choice(&names::<Compression, 3>()),
        of_target: Settings::is_keyed,
        ..at!(named Compression, |s, c| s.kv.rocksdb.compression)
    },
    Spec {
        key: "write_buffer",
        help: "Size of a memtable (write_buffer_size), which is flushed as a whole.",
        kind: size(64 * KIB, 16 * GIB, &[MIB, 4 * MIB, 16 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, GIB]),
        of_target: Settings::is_keyed,
        ..at!(some Size, |s, c| s.kv.rocksdb.write_buffer_bytes)
    },
    Spec {
        key: "write_buffers",
        help: "Maximum number of memtables (max_write_buffer_number): writes stop while all of them wait for a flush.",
        kind: Kind::Int { min: 2, max: 64, steps: &[2, 3, 4, 6, 8, 16] },
        ..at!(Int, |s, c| s.kv.rocksdb.write_buffers)
    },
    Spec {
        key: "l0_compact",
        help: "Files of L0 that start a compaction (level0_file_num_compaction_trigger).",
        kind: Kind::Int { min: 1, max: 1024, steps: &[1, 2, 4, 8, 16, 32] },
        inactive: |s, _| single(s),
        of_target: |s| s.is_keyed() && single(s).is_none(),
        ..at!(Int, |s, c| s.kv.rocksdb.l0_compact)
    },
    Spec {
        key: "l0_slow",
        help: "Files of L0 that slow writes down (level0_slowdown_writes_trigger).",
        kind: Kind::Int { min: 1, max: 4096, steps: &[8, 12, 20, 32, 64, 128] },
        ..at!(Int, |s, c| s.kv.rocksdb.l0_slow)
    },
    Spec {
        key: "l0_stop",
        help: "Files of L0 that stop writes (level0_stop_writes_trigger).",
        kind: Kind::Int { min: 1, max: 4096, steps: &[12, 24, 36, 64, 128, 256] },
        ..at!(Int, |s, c| s.kv.rocksdb.l0_stop)
    },
    Spec {
        key: "level_base",
        help: "Size of L1 (max_bytes_for_level_base).",
        kind: size(MIB, 1 << 44, &[16 * MIB, 64 * MIB, 256 * MIB, 512 * MIB, GIB, 4 * GIB]),
        inactive: |s, _| single(s).or_else(|| universal(s)),
        of_target: has_levels,
        ..at!(some Size, |s, c| s.kv.rocksdb.level_base_bytes)
    },
    Spec {
        key: "fanout",
        help: "How much larger each level is than the one above (max_bytes_for_level_multiplier).",
        paper: Some(
            "Queries are fastest at 16 and 32, compactions at 2 to 8 with enough threads (Ransom et al. 2025, 5.3.2, Tables 3 and 4).",
        ),
        kind: Kind::Float { min: 1.0, max: 1000.0, steps: &[2.0, 4.0, 8.0, 10.0, 16.0, 32.0] },
        inactive: |s, _| single(s).or_else(|| universal(s)),
        // If turned while the load runs, the levels change gradually; a run that begins with another value has other levels.
        of_target: has_levels,
        ..at!(Float, |s, c| s.kv.rocksdb.fanout)
    },
    Spec {
        key: "file_size",
        help: "Size of a file in L1 and below (target_file_size_base).",
        paper: Some("64 MB amortizes the cost of a random access (Ransom et al. 2025, 5.2.2)."),
        kind: size(64 * KIB, 16 * GIB, &[MIB, 4 * MIB, 16 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, GIB]),
        of_target: Settings::is_keyed,
        ..at!(some Size, |s, c| s.kv.rocksdb.file_bytes)
    },
    Spec {
        key: "compaction",
        help: "Compaction style (compaction_style).",
        kind: Kind::Choice(&names::<Compaction, 2>()),
        scope: Scope::Rebuild,
        of_target: always,
        ..at!(named Compaction, |s, c| s.kv.rocksdb.compaction)
    },
    Spec {
        key: "single_level",
        help: "A single level below L0, of any size, into which each flushed file is compacted at once.",
        paper: Some(
            "The fastest queries and scans; from 16 threads on, writes as fast as with fan-out 16 (Ransom et al. 2025, 5.3.2).",
        ),
        kind: Kind::Bool,
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| universal(s),
        ..at!(Bool, |s, c| s.kv.rocksdb.single_level)
    },
    Spec {
        key: "jobs",
        help: "Concurrent flushes and compactions (max_background_jobs): RocksDB gives a quarter of them, at least one, to \
               flushes, and the rest to compactions.",
        kind: Kind::Int { min: 1, max: 128, steps: &[1, 2, 4, 8, 16, 32, 64] },
        inactive: |s, _| {
            (s.kv.rocksdb.compactions > 0 && s.kv.rocksdb.flushes > 0)
                .then_some("rocksdb.compactions and rocksdb.flushes say how many of each")
        },
        ..at!(Int, |s, c| s.kv.rocksdb.jobs)
    },
    Spec {
        key: "compactions",
        help: "Concurrent compactions (max_background_compactions); 0 = what rocksdb.jobs leaves them.",
        paper: Some("32 compaction threads are 6 to 9 times as fast as one (Ransom et al. 2025, Table 4)."),
        kind: Kind::Int { min: 0, max: 128, steps: &[0, 1, 2, 4, 8, 16, 32, 64] },
        ..at!(Int, |s, c| s.kv.rocksdb.compactions)
    },
    Spec {
        key: "flushes",
        help: "Concurrent flushes (max_background_flushes); 0 = what rocksdb.jobs leaves them.",
        kind: Kind::Int { min: 0, max: 128, steps: &[0, 1, 2, 4, 8, 16, 32] },
        ..at!(Int, |s, c| s.kv.rocksdb.flushes)
    },
    Spec {
        key: "subcompactions",
        help: "Threads of one compaction of L0 (max_subcompactions).",
        paper: Some("They let several threads merge the single level at once (Ransom et al. 2025, 5.2.2)."),
        kind: Kind::Int { min: 1, max: 128, steps: &[1, 2, 4, 8, 16, 32, 64] },
        ..at!(Int, |s, c| s.kv.rocksdb.subcompactions)
    },
    Spec {
        key: "bytes_per_sync",
        help: "Files are synced incrementally each time this many bytes are written; 0 = left to the kernel.",
        kind: SYNC_BYTES,
        ..at!(some Size, |s, c| s.kv.rocksdb.bytes_per_sync)
    },
    Spec {
        key: "wal_bytes_per_sync",
        help: "The same for the log, besides the syncs of commits; 0 = left to the kernel.",
        kind: SYNC_BYTES,
        ..at!(some Size, |s, c| s.kv.rocksdb.wal_bytes_per_sync)
    },
    Spec {
        key: "bloom_bits",
        help: "Bits per key of each file's Bloom filter, for files written from then on; 0 = no filter.",
        kind: Kind::Int { min: 0, max: 32, steps: &[0, 5, 8, 10, 12, 16, 20] },
        of_target: Settings::is_keyed,
        ..at!(Int, |s, c| s.kv.rocksdb.bloom_bits)
    },
];

/// Whether the pairs are on levels of growing size.
fn has_levels(s: &Settings) -> bool {
    s.is_keyed() && single(s).is_none() && universal(s).is_none()
}

fn single(s: &Settings) -> Option<&'static str> {
    (s.kv.rocksdb.single_level && s.kv.rocksdb.compaction == Compaction::Level)
        .then_some("a single level is compacted at once, whatever its size")
}

fn universal(s: &Settings) -> Option<&'static str> {
    (s.kv.rocksdb.compaction == Compaction::Universal).then_some("universal compaction has no levels")
}

fn direct_unavailable(value: &Value, _: &Settings, _: Class, conditions: Conditions) -> Option<String> {
    if *value == Value::Bool(true) { missing(&conditions.target?.direct) } else { None }
}
