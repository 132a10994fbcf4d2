//! The knobs of the load's other engine: the data set of pairs, and `RocksDB`'s options.
//!
//! Which of them turn while the load runs is `RocksDB`'s matter: what `SetOptions` and `SetDBOptions` take is
//! live, what is fixed while a database is open takes opening it again, and what decides how the files
//! are laid out takes loading the pairs anew.

use super::spec::{Named, PLAIN, names};
use super::table::missing;
use super::value::{Kind, NONE, Value};
use super::{Ground, Scope, Spec};
use crate::class::Class;
use crate::settings::{Compaction, Compression, Filesystem, LoadEngine, Order, Settings};
use crate::units::{GIB, KIB, MIB};

/// Why a knob has no effect on the load's engine, if it has none.
pub(super) fn of_another_engine(path: &str, settings: &Settings) -> Option<&'static str> {
    const PAIRS: &[&str] = &["scan.range", "scan.whole", "point.misses", "background.reads", "wal.acks"];
    const PAGES: &[&str] = &["target.files.count", "target.files.size", "stack.data", "stack.wal"];
    const PAGES_OF_CLASSES: &[&str] = &["batch", "page_size", "buffering", "interface"];
    let (table, key) = path.split_once('.')?;
    let of_pairs = matches!(table, "kv" | "rocksdb") || PAIRS.contains(&path);
    let of_class = Class::ALL.iter().any(|class| class.name() == table);
    let of_pages = matches!(table, "io" | "sim")
        || PAGES.contains(&path)
        || (of_class && PAGES_OF_CLASSES.contains(&key))
        || matches!(path, "wal.target" | "wal.serial");
    match settings.is_keyed() {
        true if of_pages => Some("RocksDB does its own I/O, on files of its own"),
        false if of_pairs => Some("the load is of pages: load.engine = rocksdb has pairs"),
        _ => None,
    }
}

pub(super) const LOAD: &[Spec] = &[Spec {
    key: "engine",
    help: "What the classes read and write: pages by stacktune's own workers, or pairs of keys and values through RocksDB \
           on the file system of the target.",
    kind: Kind::Choice(&names::<LoadEngine, 2>()),
    scope: Scope::Rebuild,
    unavailable: engine_unavailable,
    ..at!(named LoadEngine, |s, c| s.kv.engine)
}];

fn engine_unavailable(value: &Value, s: &Settings, _: Class, ground: Ground) -> Option<String> {
    if *value != Value::Choice("rocksdb") {
        return None;
    }
    if !cfg!(feature = "rocksdb") {
        return Some("this build has no RocksDB: `make build` builds stacktune with it".into());
    }
    let bare = !s.target.devices.is_empty() || s.stack.is_built();
    if s.stack.filesystem == Filesystem::None && bare {
        return Some(
            "RocksDB keeps files, and the target has no file system: choose stack.filesystem first".into(),
        );
    }
    ground.target.is_some_and(|target| target.read_only).then(|| "the target was opened read-only".into())
}

pub(super) const PAIRS: &[Spec] = &[
    Spec {
        key: "key_size",
        help: "Bytes of a key.",
        paper: Some("16 B in all the papers' RocksDB runs (000, 3.2; 002, III; 004, 5.3.1)."),
        kind: Kind::Size {
            min: 4,
            max: 255,
            multiple: 1,
            power_of_two: false,
            optional: false,
            steps: &[4, 8, 16, 32, 64, 128, 255],
        },
        scope: Scope::Rebuild,
        ..at!(some Size, |s, c| s.kv.pairs.key_bytes)
    },
    Spec {
        key: "value_size",
        help: "Bytes of a value; they do not compress.",
        paper: Some("4,000 B and 128 B (000, 3.2 and 4.8), 2,048 B (004, 5.3.1)."),
        kind: Kind::Size {
            min: 0,
            max: 2 * MIB,
            multiple: 1,
            power_of_two: false,
            optional: false,
            steps: &[0, 128, 512, 2048, 4000, 8192, 32 * KIB, 128 * KIB, 512 * KIB, 2 * MIB],
        },
        scope: Scope::Rebuild,
        ..at!(some Size, |s, c| s.kv.pairs.value_bytes)
    },
    Spec {
        key: "pairs",
        help: "Pairs that are loaded; default is kv.share of the file system.",
        paper: Some("50 million pairs, half of the drive (000, 3.2)."),
        kind: Kind::Int {
            min: 1,
            max: 1 << 40,
            steps: &[10_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000, 1_000_000_000],
        },
        inherits: true,
        scope: Scope::Rebuild,
        get: |s, _| s.kv.pairs.count.map_or(Value::Inherit, Value::Int),
        set: |s, _, value| {
            s.kv.pairs.count = match value {
                Value::Int(count) => Some(count),
                _ => None,
            };
        },
        ..PLAIN
    },
    Spec {
        key: "share",
        help: "The keys' and values' share of the file system, where kv.pairs does not say how many.",
        paper: Some("A data set of 25% to 88% of the drive: the fuller, the slower (000, 4.4, Figure 6)."),
        kind: Kind::Percent { min: 1, max: 90, steps: &[1, 5, 10, 25, 37, 50, 62, 75, 88] },
        scope: Scope::Rebuild,
        inactive: |s, _| s.kv.pairs.count.is_some().then_some("kv.pairs says how many there are"),
        ..at!(Percent, |s, c| s.kv.pairs.share_percent)
    },
    Spec {
        key: "order",
        help: "The order in which the pairs are loaded.",
        paper: Some("Ascending keys (000, 3.2), or every key once at random (004, 5.3.1)."),
        kind: Kind::Choice(&names::<Order, 2>()),
        scope: Scope::Rebuild,
        ..at!(named Order, |s, c| s.kv.pairs.order)
    },
];

pub(super) const SCAN: &[Spec] = &[
    Spec {
        key: "range",
        help: "Pairs of a range read; one is an operation.",
        paper: Some("Scans read 128 pairs from a random key (004, 5.3.1)."),
        kind: Kind::Int { min: 1, max: 1 << 20, steps: &[1, 8, 32, 64, 128, 256, 1024, 8192] },
        ..at!(Int, |s, c| s.kv.scan_pairs)
    },
    Spec {
        key: "whole",
        help: "Each range read goes on where the last one of its thread ended, from the first key to the last and over \
               again, instead of at a random key.",
        kind: Kind::Bool,
        ..at!(Bool, |s, c| s.kv.scan_whole)
    },
];

pub(super) const POINT: &[Spec] = &[Spec {
    key: "misses",
    help: "Of 100 gets, so many ask for a key that is not there: what a filter is for.",
    kind: Kind::Percent { min: 0, max: 100, steps: &[0, 1, 5, 10, 25, 50, 75, 100] },
    ..at!(Percent, |s, c| s.kv.miss_percent)
}];

pub(super) const BACKGROUND: &[Spec] = &[Spec {
    key: "reads",
    help: "Of 100 operations of the background, so many are gets: the mix of one thread that reads and writes.",
    paper: Some("Half reads, half writes by one thread (000, 4.8)."),
    kind: Kind::Percent { min: 0, max: 100, steps: &[0, 5, 10, 25, 50, 75, 90, 95, 100] },
    ..at!(Percent, |s, c| s.kv.read_percent)
}];

pub(super) const WAL: &[Spec] = &[Spec {
    key: "acks",
    help: "A file that notes each put of the WAL once it is acknowledged: the next run counts which of them a crash has \
           taken. To outlive a power cut it must be on another machine's drive; none notes nothing.",
    kind: Kind::Text,
    scope: Scope::Rebuild,
    get: |s, _| Value::Text(s.kv.acks.clone().unwrap_or_default()),
    set: |s, _, value| {
        if let Value::Text(text) = value {
            s.kv.acks = (!text.is_empty() && text != NONE).then_some(text);
        }
    },
    unavailable: |value, s, _, _| {
        // The sequence number of its put, with which a value begins.
        let short = s.kv.pairs.value_bytes < 8 && *value != Value::Text(String::new());
        short.then(|| {
            "values of less than 8 B do not tell by which put they were written (kv.value_size)".into()
        })
    },
    ..PLAIN
}];

/// A size of a database's part.
const fn size(min: u64, max: u64, steps: &'static [u64]) -> Kind {
    Kind::Size { min, max, multiple: 1, power_of_two: false, optional: false, steps }
}

const SYNC_BYTES: Kind = size(0, GIB, &[0, 128 * KIB, 512 * KIB, MIB, 4 * MIB, 16 * MIB]);

pub(super) const ROCKSDB: &[Spec] = &[
    Spec {
        key: "direct_reads",
        help: "Reads bypass the page cache (use_direct_reads).",
        paper: Some("Direct I/O and a cache of 10 MB, so that the data does not fit into memory (000, 3.1)."),
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
        help: "Bytes of a block of a file, which a get reads whole; of files that are written from then on.",
        kind: size(KIB, 4 * MIB, &[KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 256 * KIB]),
        ..at!(some Size, |s, c| s.kv.rocksdb.block_bytes)
    },
    Spec {
        key: "block_cache",
        help: "Bytes of RocksDB's own cache of blocks.",
        paper: Some("10 MB, so that the data does not fit into it (000, 3.1; 002, III)."),
        kind: size(0, 1 << 42, &[0, 10_000_000, 32 * MIB, 128 * MIB, 512 * MIB, GIB, 4 * GIB, 16 * GIB]),
        ..at!(some Size, |s, c| s.kv.rocksdb.block_cache_bytes)
    },
    Spec {
        key: "compression",
        help: "How blocks are compressed, of files that are written from then on. The values do not compress: what it costs \
               is seen, not what it saves.",
        kind: Kind::Choice(&names::<Compression, 3>()),
        ..at!(named Compression, |s, c| s.kv.rocksdb.compression)
    },
    Spec {
        key: "write_buffer",
        help: "Bytes of a memtable (write_buffer_size): as much is flushed at a time.",
        kind: size(64 * KIB, 16 * GIB, &[MIB, 4 * MIB, 16 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, GIB]),
        ..at!(some Size, |s, c| s.kv.rocksdb.write_buffer_bytes)
    },
    Spec {
        key: "write_buffers",
        help: "Memtables in all (max_write_buffer_number): writes stop once so many wait for their flush.",
        kind: Kind::Int { min: 2, max: 64, steps: &[2, 3, 4, 6, 8, 16] },
        ..at!(Int, |s, c| s.kv.rocksdb.write_buffers)
    },
    Spec {
        key: "l0_compact",
        help: "Files of L0 that start a compaction (level0_file_num_compaction_trigger).",
        kind: Kind::Int { min: 1, max: 1024, steps: &[1, 2, 4, 8, 16, 32] },
        inactive: |s, _| single(s),
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
        help: "Bytes of L1 (max_bytes_for_level_base).",
        kind: size(MIB, 1 << 44, &[16 * MIB, 64 * MIB, 256 * MIB, 512 * MIB, GIB, 4 * GIB]),
        inactive: |s, _| single(s).or_else(|| universal(s)),
        ..at!(some Size, |s, c| s.kv.rocksdb.level_base_bytes)
    },
    Spec {
        key: "fanout",
        help: "How much larger each level is than the one above (max_bytes_for_level_multiplier).",
        paper: Some(
            "Queries are fastest at 16 and 32, compactions at 2 to 8 with enough threads (004, 5.3.2, Tables 3 and 4).",
        ),
        kind: Kind::Float { min: 1.0, max: 1000.0, steps: &[2.0, 4.0, 8.0, 10.0, 16.0, 32.0] },
        inactive: |s, _| single(s).or_else(|| universal(s)),
        ..at!(Float, |s, c| s.kv.rocksdb.fanout)
    },
    Spec {
        key: "file_size",
        help: "Bytes of a file of L1 and below (target_file_size_base).",
        paper: Some("64 MB amortises what a random access costs (004, 5.2.2)."),
        kind: size(64 * KIB, 16 * GIB, &[MIB, 4 * MIB, 16 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, GIB]),
        ..at!(some Size, |s, c| s.kv.rocksdb.file_bytes)
    },
    Spec {
        key: "compaction",
        help: "How files are merged (compaction_style).",
        kind: Kind::Choice(&names::<Compaction, 2>()),
        scope: Scope::Rebuild,
        ..at!(named Compaction, |s, c| s.kv.rocksdb.compaction)
    },
    Spec {
        key: "single_level",
        help: "One level of any size below L0, into which each flushed file is merged at once.",
        paper: Some(
            "The fastest queries and scans, and the writes of fan-out 16 from 16 threads on (004, 5.3.2).",
        ),
        kind: Kind::Bool,
        scope: Scope::Rebuild,
        inactive: |s, _| universal(s),
        ..at!(Bool, |s, c| s.kv.rocksdb.single_level)
    },
    Spec {
        key: "jobs",
        help: "Flushes and compactions at a time (max_background_jobs).",
        paper: Some("32 compaction threads are 6 to 9 times as fast as one (004, Table 4)."),
        kind: Kind::Int { min: 1, max: 128, steps: &[1, 2, 4, 8, 16, 32, 64] },
        ..at!(Int, |s, c| s.kv.rocksdb.jobs)
    },
    Spec {
        key: "subcompactions",
        help: "Threads of one compaction of L0 (max_subcompactions).",
        paper: Some("They let the single level be merged at once by many (004, 5.2.2)."),
        kind: Kind::Int { min: 1, max: 128, steps: &[1, 2, 4, 8, 16, 32, 64] },
        ..at!(Int, |s, c| s.kv.rocksdb.subcompactions)
    },
    Spec {
        key: "bytes_per_sync",
        help: "The kernel writes files out each time so many bytes of them are written; 0 when it likes.",
        kind: SYNC_BYTES,
        ..at!(some Size, |s, c| s.kv.rocksdb.bytes_per_sync)
    },
    Spec {
        key: "wal_bytes_per_sync",
        help: "The same of the log, beside the syncs of commits; 0 when the kernel likes.",
        kind: SYNC_BYTES,
        ..at!(some Size, |s, c| s.kv.rocksdb.wal_bytes_per_sync)
    },
    Spec {
        key: "bloom_bits",
        help: "Bits a key of each file's Bloom filter, of files that are written from then on; 0 is none.",
        kind: Kind::Int { min: 0, max: 32, steps: &[0, 5, 8, 10, 12, 16, 20] },
        ..at!(Int, |s, c| s.kv.rocksdb.bloom_bits)
    },
];

fn single(s: &Settings) -> Option<&'static str> {
    (s.kv.rocksdb.single_level && s.kv.rocksdb.compaction == Compaction::Level)
        .then_some("a single level is merged at once, whatever its size")
}

fn universal(s: &Settings) -> Option<&'static str> {
    (s.kv.rocksdb.compaction == Compaction::Universal).then_some("universal compaction has no levels")
}

fn direct_unavailable(value: &Value, _: &Settings, _: Class, ground: Ground) -> Option<String> {
    if *value == Value::Bool(true) { missing(&ground.target?.direct) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::knobs::refusals;

    fn refused(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = Settings::default();
        settings.kv.engine = LoadEngine::Rocksdb;
        change(&mut settings);
        refusals(&settings)
    }

    #[test]
    #[cfg(feature = "rocksdb")]
    fn pairs_need_a_file_system_and_acks_values_that_tell_their_put() {
        let bare = |s: &mut Settings| s.target.devices = vec!["/dev/nvme0n1".into()];
        assert_eq!(refused(|_| {}), "");
        assert!(
            refused(bare).starts_with("load.engine: RocksDB keeps files, and the target has no file system")
        );
        let on_ext4 = |s: &mut Settings| {
            bare(s);
            s.stack.filesystem = Filesystem::Ext4;
        };
        assert_eq!(refused(on_ext4), "");
        let told = refused(|s| (s.kv.acks, s.kv.pairs.value_bytes) = (Some("/acks".into()), 4));
        assert!(told.starts_with("wal.acks: values of less than 8 B"), "{told}");
    }

    #[test]
    #[cfg(not(feature = "rocksdb"))]
    fn a_build_without_rocksdb_says_so() {
        assert!(refused(|_| {}).starts_with("load.engine: this build has no RocksDB"));
    }
}
