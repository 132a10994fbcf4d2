//! The knobs that only the WAL has.

use super::spec::{Named, PLAIN, Scope, Spec, always, names};
use super::value::{Kind, NONE, Value};
use crate::settings::values::Sync;

pub(super) const WAL: &[Spec] = &[
    Spec {
        key: "sync",
        help: "How a commit is made durable; none models a persistent-memory log and is not durable.",
        paper: Some(
            "Without fdatasync the WAL reaches its 250 MB/s instead of 6, and the scan gains 44% (Haas et al. 2020, 4.2, Table 2).",
        ),
        kind: Kind::Choice(&names::<Sync, 3>()),
        unavailable: |v, s, _, _| {
            (s.is_keyed() && *v == Value::Choice("dsync"))
                .then(|| "RocksDB syncs its log with fdatasync, or not at all".into())
        },
        ..at!(named Sync, |s, c| s.wal.sync)
    },
    Spec {
        key: "sync_every",
        help: "Writes of a worker per flush (group commit); each write commits when the flush ends.",
        paper: Some(
            "On consumer drives, fewer flushes restore the scan's throughput; enterprise drives do not need that (Haas et al. 2020, A.1, Figure 6).",
        ),
        kind: Kind::Int { min: 1, max: 1024, steps: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] },
        inactive: |s, _| {
            (s.wal.sync != Sync::Fdatasync).then_some("only fdatasync flushes separately from the writes")
        },
        ..at!(Int, |s, c| s.wal.sync_every)
    },
    Spec {
        key: "target",
        help: "A separate file or device for the WAL; none = a region reserved on the target.",
        kind: Kind::Text("a path"),
        scope: Scope::Rebuild,
        of_target: always,
        get: |s, _| Value::Text(s.wal.target.clone().unwrap_or_default()),
        set: |s, _, value| {
            if let Value::Text(text) = value {
                let target = (!text.is_empty() && text != NONE).then_some(text);
                if target != s.wal.target {
                    // The recorded serial belongs to the earlier device.
                    s.wal.serial = None;
                    s.wal.target = target;
                }
            }
        },
        ..PLAIN
    },
    Spec {
        key: "serial",
        help: "The serial number that the WAL's separate device must have.",
        kind: Kind::Text("a serial number"),
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| s.wal.target.is_none().then_some("the WAL has no separate device"),
        get: |s, _| Value::Text(s.wal.serial.clone().unwrap_or_default()),
        set: |s, _, value| {
            if let Value::Text(text) = value {
                s.wal.serial = (!text.is_empty() && text != NONE).then_some(text);
            }
        },
        ..PLAIN
    },
];
