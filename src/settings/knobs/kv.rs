//! The knobs of the key-value load: its engine, the data set, and what each class does to the pairs.

use super::spec::{Conditions, Named, PLAIN, Scope, Spec, always, names};
use super::value::{Kind, NONE, Value};
use crate::class::Class;
use crate::settings::values::{Filesystem, LoadEngine, Order, Settings};
use crate::units::{KIB, MIB};

/// Why a knob has no effect on the load's engine, if it has none.
pub(super) fn of_another_engine(path: &str, settings: &Settings) -> Option<&'static str> {
    const PAIRS: &[&str] = &["scan.range", "scan.whole", "point.misses", "background.reads", "wal.acks"];
    const PAGES: &[&str] = &["target.files.count", "target.files.size", "stack.data", "stack.wal"];
    const PAGES_OF_CLASSES: &[&str] = &["batch", "page_size", "buffering", "interface", "prio"];
    let (table, key) = path.split_once('.')?;
    let of_pairs = matches!(table, "kv" | "rocksdb") || PAIRS.contains(&path);
    let of_class = Class::ALL.iter().any(|class| class.name() == table);
    let of_pages = matches!(table, "io" | "sim")
        || PAGES.contains(&path)
        || (of_class && PAGES_OF_CLASSES.contains(&key))
        || matches!(path, "wal.target" | "wal.serial");
    match settings.is_keyed() {
        true if of_pages => Some("RocksDB does its own I/O, on its own files"),
        false if of_pairs => Some("the load is pages: set load.engine = rocksdb for key-value pairs"),
        _ => None,
    }
}

pub(super) const LOAD: &[Spec] = &[Spec {
    key: "engine",
    help: "What the classes read and write: pages by stacktune's own workers, or key-value pairs through RocksDB on the \
           target's file system.",
    kind: Kind::Choice(&names::<LoadEngine, 2>()),
    scope: Scope::Rebuild,
    of_target: always,
    unavailable: engine_unavailable,
    ..at!(named LoadEngine, |s, c| s.kv.engine)
}];

fn engine_unavailable(value: &Value, s: &Settings, _: Class, conditions: Conditions) -> Option<String> {
    if *value != Value::Choice("rocksdb") {
        return None;
    }
    if !cfg!(feature = "rocksdb") {
        return Some("this build has no RocksDB: `make build` builds stacktune with it".into());
    }
    let bare = !s.target.devices.is_empty() || s.stack.is_built();
    if s.stack.filesystem == Filesystem::None && bare {
        return Some(
            "RocksDB needs a file system, and the target has none: set stack.filesystem first".into(),
        );
    }
    conditions.target.is_some_and(|target| target.read_only).then(|| "the target was opened read-only".into())
}

pub(super) const PAIRS: &[Spec] = &[
    Spec {
        key: "key_size",
        help: "Bytes of a key.",
        paper: Some(
            "16 B in every paper's RocksDB runs (Didona et al. 2021, 3.2; Saha et al. 2021, III; Ransom et al. 2025, 5.3.1).",
        ),
        kind: Kind::Size {
            min: 4,
            max: 255,
            multiple: 1,
            power_of_two: false,
            optional: false,
            steps: &[4, 8, 16, 32, 64, 128, 255],
        },
        scope: Scope::Rebuild,
        of_target: always,
        ..at!(some Size, |s, c| s.kv.pairs.key_bytes)
    },
    Spec {
        key: "value_size",
        help: "Bytes of a value; they do not compress.",
        paper: Some(
            "4,000 B and 128 B (Didona et al. 2021, 3.2 and 4.8), 2,048 B (Ransom et al. 2025, 5.3.1).",
        ),
        kind: Kind::Size {
            min: 0,
            max: 2 * MIB,
            multiple: 1,
            power_of_two: false,
            optional: false,
            steps: &[0, 128, 512, 2048, 4000, 8192, 32 * KIB, 128 * KIB, 512 * KIB, 2 * MIB],
        },
        scope: Scope::Rebuild,
        of_target: always,
        ..at!(some Size, |s, c| s.kv.pairs.value_bytes)
    },
    Spec {
        key: "pairs",
        help: "Pairs to load; default = kv.share of the file system.",
        paper: Some("50 million pairs, half of the drive (Didona et al. 2021, 3.2)."),
        kind: Kind::Int {
            min: 1,
            max: 1 << 40,
            steps: &[10_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000, 1_000_000_000],
        },
        inherits: true,
        scope: Scope::Rebuild,
        of_target: always,
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
        help: "Share of the file system that keys and values take; used where kv.pairs is default.",
        paper: Some(
            "Data sets of 25% to 88% of the drive: the fuller, the slower (Didona et al. 2021, 4.4, Figure 6).",
        ),
        kind: Kind::Percent { min: 1, max: 90, steps: &[1, 5, 10, 25, 37, 50, 62, 75, 88] },
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| s.kv.pairs.count.is_some().then_some("kv.pairs sets the number of pairs"),
        ..at!(Percent, |s, c| s.kv.pairs.share_percent)
    },
    Spec {
        key: "order",
        help: "Load order of the pairs.",
        paper: Some(
            "Ascending keys (Didona et al. 2021, 3.2), or every key once at random (Ransom et al. 2025, 5.3.1).",
        ),
        kind: Kind::Choice(&names::<Order, 2>()),
        scope: Scope::Rebuild,
        of_target: always,
        ..at!(named Order, |s, c| s.kv.pairs.order)
    },
];

pub(super) const SCAN: &[Spec] = &[
    Spec {
        key: "range",
        help: "Pairs per range read; a range read is one operation.",
        paper: Some("Scans read 128 pairs from a random key (Ransom et al. 2025, 5.3.1)."),
        kind: Kind::Int { min: 1, max: 1 << 20, steps: &[1, 8, 32, 64, 128, 256, 1024, 8192] },
        ..at!(Int, |s, c| s.kv.scan_pairs)
    },
    Spec {
        key: "whole",
        help: "Each range read continues where its thread's last one ended, from the first key to the last and around again, \
               instead of starting at a random key.",
        kind: Kind::Bool,
        ..at!(Bool, |s, c| s.kv.scan_whole)
    },
];

pub(super) const POINT: &[Spec] = &[Spec {
    key: "misses",
    help: "Percentage of gets for missing keys, which Bloom filters answer.",
    kind: Kind::Percent { min: 0, max: 100, steps: &[0, 1, 5, 10, 25, 50, 75, 100] },
    ..at!(Percent, |s, c| s.kv.miss_percent)
}];

pub(super) const BACKGROUND: &[Spec] = &[Spec {
    key: "reads",
    help: "Percentage of gets among the background's operations: a mixed load in one thread.",
    paper: Some("Half reads, half writes by one thread (Didona et al. 2021, 4.8)."),
    kind: Kind::Percent { min: 0, max: 100, steps: &[0, 5, 10, 25, 50, 75, 90, 95, 100] },
    ..at!(Percent, |s, c| s.kv.read_percent)
}];

pub(super) const WAL: &[Spec] = &[Spec {
    key: "acks",
    help: "A file that records each acknowledged put of the WAL: the next run counts those that a crash has lost. To \
               survive a power cut it must be on another machine's drive; none = nothing is recorded.",
    kind: Kind::Text("a path"),
    scope: Scope::Rebuild,
    get: |s, _| Value::Text(s.kv.acks.clone().unwrap_or_default()),
    set: |s, _, value| {
        if let Value::Text(text) = value {
            s.kv.acks = (!text.is_empty() && text != NONE).then_some(text);
        }
    },
    unavailable: |value, s, _, _| {
        // A value begins with the sequence number of its put.
        let short = s.kv.pairs.value_bytes < 8 && *value != Value::Text(String::new());
        short.then(|| "values below 8 B cannot hold the number of their put (kv.value_size)".into())
    },
    ..PLAIN
}];
