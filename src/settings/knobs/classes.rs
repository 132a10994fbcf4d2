//! The knobs of the four classes.

use super::io::{
    BUFFERINGS, INTERFACES, PAGE_SIZE, PRIOS, buffering_unavailable, drives_change_hands,
    interface_unavailable, page_size_unavailable, prio_unavailable,
};
use super::spec::{Conditions, Named, PLAIN, Spec, names};
use super::value::{Kind, Value};
use crate::class::Class;
use crate::settings::interface::Interface;
use crate::settings::values::{Arrival, Buffering, Cpus, Offsets, Placement, Prio, Settings};

const POWERS_TO_1024: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

const RATES: &[u64] = &[
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    150_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// The knobs of every class.
pub(super) const CLASS: &[Spec] = &[
    Spec {
        key: "enabled",
        help: "Whether the class runs.",
        kind: Kind::Bool,
        unavailable: |v, _, class, conditions| {
            let refused =
                class.writes() && *v == Value::Bool(true) && conditions.target.is_some_and(|t| t.read_only);
            refused.then(|| "the target was opened read-only".into())
        },
        ..at!(Bool, |s, c| s.classes[c.index()].enabled)
    },
    Spec {
        key: "depth",
        help: "Outstanding I/Os of each thread.",
        paper: Some(
            "At depth 128 the array scans 6.8 GB/s; beyond that requests only wait longer (Haas et al. 2020, 3.2, Figure 2).",
        ),
        kind: Kind::Int { min: 1, max: 1024, steps: POWERS_TO_1024 },
        ..at!(Int, |s, c| s.classes[c.index()].depth)
    },
    Spec {
        key: "batch",
        help: "I/Os submitted together: this many if slots are free, or as many as are due at the rate.",
        paper: Some("The scan submits 32 at a time (Haas et al. 2020, 3.2)."),
        kind: Kind::Int { min: 1, max: 1024, steps: POWERS_TO_1024 },
        inactive: |s, c| {
            let per_io = s.interface_of(c).capabilities().thread_per_io;
            per_io.then_some("each thread submits one I/O at a time")
        },
        ..at!(Int, |s, c| s.classes[c.index()].batch)
    },
    Spec {
        key: "threads",
        help: "Threads of the class; with sync, each outstanding I/O takes a separate thread.",
        paper: Some(
            "With four scan threads instead of one the direct scan rises from 4.5 to 6.5 GB/s (Haas et al. 2020, A.2, Table 8).",
        ),
        kind: Kind::Int { min: 1, max: 256, steps: &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256] },
        ..at!(Int, |s, c| s.classes[c.index()].threads)
    },
    Spec {
        key: "cpus",
        help: "CPUs for its threads: any, a NUMA node, or a list.",
        kind: Kind::Cpus,
        unavailable: cpus_unavailable,
        ..at!(Cpus, |s, c| s.classes[c.index()].cpus)
    },
    Spec {
        key: "rate",
        help: "Bytes per second of the class, shared by its threads; none = unlimited.",
        paper: Some("The WAL and the background writer need 250 MB/s each (Haas et al. 2020, 3.2, Table 3)."),
        kind: Kind::Rate { steps: RATES },
        ..at!(Rate, |s, c| s.classes[c.index()].rate_bytes_per_s)
    },
    Spec {
        key: "arrival",
        help: "How the intended starts of a class with a rate are spaced.",
        kind: Kind::Choice(&names::<Arrival, 2>()),
        inactive: |s, c| s.classes[c.index()].rate_bytes_per_s.is_none().then_some("the class has no rate"),
        ..at!(named Arrival, |s, c| s.classes[c.index()].arrival)
    },
    Spec {
        key: "page_size",
        help: "Page size of this class.",
        kind: PAGE_SIZE,
        inherits: true,
        get: |s, c| s.classes[c.index()].page_size_bytes.map_or(Value::Inherit, |own| Value::Size(Some(own))),
        set: |s, c, value| {
            s.classes[c.index()].page_size_bytes = match value {
                Value::Size(own) => own,
                _ => None,
            };
        },
        unavailable: page_size_unavailable,
        ..PLAIN
    },
    Spec {
        key: "buffering",
        help: "The cache that this class's I/O goes through.",
        kind: BUFFERINGS,
        inactive: |s, c| {
            let outside = s.interface_of(c).leaves_kernel();
            outside.then_some("drives outside the kernel have no page cache")
        },
        unavailable: buffering_unavailable,
        ..at!(own Buffering, |s, c| s.classes[c.index()].buffering)
    },
    Spec {
        key: "interface",
        help: "I/O interface of this class.",
        kind: INTERFACES,
        widened: drives_change_hands,
        unavailable: interface_unavailable,
        ..at!(own Interface, |s, c| s.classes[c.index()].interface)
    },
    Spec {
        key: "prio",
        help: "Priority of this class's I/Os, where the drives' scheduler acts on it.",
        kind: PRIOS,
        inactive: |s, c| s.no_prio(c),
        unavailable: prio_unavailable,
        ..at!(own Prio, |s, c| s.classes[c.index()].prio)
    },
];

/// The knobs of the classes with drawn offsets.
pub(super) const RANDOM: &[Spec] = &[
    Spec {
        key: "offsets",
        help: "How offsets are drawn: every page equally, hot pages scattered, or runs.",
        paper: Some(
            "Flash reads random pages nearly as fast as sequential ones, so scans need no locality (Haas et al. 2020, 4.5).",
        ),
        kind: Kind::Choice(&names::<Offsets, 3>()),
        ..at!(named Offsets, |s, c| s.classes[c.index()].offsets)
    },
    Spec {
        key: "zipf_theta",
        help: "Zipf exponent: 0 is uniform; above 1, a handful of pages takes most accesses.",
        kind: Kind::Float {
            min: 0.0,
            max: 4.0,
            steps: &[0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.1, 1.2, 1.5, 2.0],
        },
        inactive: |s, c| (s.classes[c.index()].offsets != Offsets::Zipf).then_some("offsets are not zipf"),
        ..at!(Float, |s, c| s.classes[c.index()].zipf_theta)
    },
    Spec {
        key: "jump_share",
        help: "The share of accesses that jump: 1 is random, 0 sequential.",
        kind: Kind::Float { min: 0.0, max: 1.0, steps: &[0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0] },
        inactive: |s, c| (s.classes[c.index()].offsets != Offsets::Runs).then_some("offsets are not runs"),
        ..at!(Float, |s, c| s.classes[c.index()].jump_share)
    },
];

pub(super) const BACKGROUND: &[Spec] = &[Spec {
    key: "pattern",
    help: "Where the next page goes: in place at random, or sequentially, like a store that never updates in place.",
    paper: Some(
        "With log-structured writes, RAID 5 avoids its read-modify-write penalty (Haas et al. 2020, 4.6).",
    ),
    kind: Kind::Choice(&names::<Placement, 2>()),
    ..at!(named Placement, |s, c| s.placement)
}];

pub(super) fn cpus_unavailable(
    value: &Value,
    _: &Settings,
    _: Class,
    conditions: Conditions,
) -> Option<String> {
    let cpu = &conditions.facts.cpu;
    match value {
        Value::Cpus(Cpus::Node(id)) if !cpu.nodes.iter().any(|node| node.id == *id) => {
            Some(format!("this host has no NUMA node {id}"))
        }
        Value::Cpus(Cpus::List(list)) => {
            let absent = list.iter().find(|id| !cpu.online.contains(id))?;
            Some(format!("CPU {absent} is not online"))
        }
        _ => None,
    }
}
