//! The knobs of polling: rings from both sides, and the sleep between two polls.

use std::time::Duration;

use super::classes::cpus_unavailable;
use super::io::no_ring;
use super::spec::{Conditions, Named, PLAIN, Scope, Spec, missing, names};
use super::value::{Kind, Value};
use crate::class::Class;
use crate::host::kernel_version;
use crate::settings::values::{Buffering, Completion, Cpus, RingSetup, Settings, Submission};

pub(super) const POLLING: &[Spec] = &[
    Spec {
        key: "completion",
        help: "How completions of direct I/O arrive: by interrupt, or by polling the device's queue. A polled ring refuses \
               fsync, so the WAL's flush goes through a second ring.",
        paper: Some(
            "Polling saves the interrupt: at depth 1, SPDK gains a few microseconds over the kernel (Haas et al. 2020, 4.7, Table 6).",
        ),
        kind: Kind::Choice(&names::<Completion, 2>()),
        inactive: |s, _| no_ring(s),
        unavailable: completion_unavailable,
        ..at!(named Completion, |s, c| s.io.completion)
    },
    Spec {
        key: "submission",
        help: "How I/Os are submitted: one system call per batch, or a kernel thread that polls the submission queue; its CPU \
               time counts as stacktune's.",
        kind: Kind::Choice(&names::<Submission, 2>()),
        inactive: |s, _| no_ring(s),
        unavailable: |v, _, _, conditions| match v {
            Value::Choice("sqpoll") => missing(&conditions.facts.io_uring),
            _ => None,
        },
        ..at!(named Submission, |s, c| s.io.submission)
    },
    Spec {
        key: "sqpoll_idle",
        help: "How long the kernel thread polls without work before it sleeps; the next batch then has to wake it.",
        kind: Kind::Time {
            min: Duration::from_millis(1),
            max: Duration::from_mins(1),
            steps: &[
                Duration::from_millis(1),
                Duration::from_millis(10),
                Duration::from_millis(100),
                Duration::from_secs(1),
                Duration::from_secs(10),
            ],
        },
        inactive: |s, _| no_sqpoll(s),
        ..at!(Time, |s, c| s.io.sqpoll_idle)
    },
    Spec {
        key: "sqpoll_cpu",
        help: "The CPU that the kernel thread runs on: any, or a single one.",
        kind: Kind::Cpus,
        inactive: |s, _| no_sqpoll(s),
        unavailable: |v, s, c, conditions| match v {
            Value::Cpus(Cpus::Node(_)) => Some("the kernel thread runs on one CPU, not on a node".into()),
            Value::Cpus(Cpus::List(list)) if list.len() > 1 => {
                Some("the kernel thread runs on one CPU, not on several".into())
            }
            _ => cpus_unavailable(v, s, c, conditions),
        },
        ..at!(Cpus, |s, c| s.io.sqpoll_cpu)
    },
    Spec {
        key: "setup",
        help: "When a ring's completions are processed in the worker's thread: at once by interrupting it, when it next \
               enters the kernel (coop), or when it asks for completions (defer).",
        kind: Kind::Choice(&names::<RingSetup, 4>()),
        inactive: |s, _| no_ring(s),
        unavailable: setup_unavailable,
        ..at!(named RingSetup, |s, c| s.io.setup)
    },
    Spec {
        key: "poll_sleep",
        help: "Sleep after an empty poll, for everything that polls: fewer cycles for more latency.",
        paper: Some(
            "Sleeping 50 µs between polls, with depth 1,024 and batches of 256, reads the full bandwidth at 0.12 cycles per \
             byte (Haas et al. 2020, 4.7).",
        ),
        kind: Kind::Time {
            min: Duration::ZERO,
            max: Duration::from_millis(1),
            steps: &[
                Duration::ZERO,
                Duration::from_micros(5),
                Duration::from_micros(10),
                Duration::from_micros(20),
                Duration::from_micros(50),
                Duration::from_micros(100),
                Duration::from_micros(200),
                Duration::from_micros(500),
                Duration::from_millis(1),
            ],
        },
        inactive: |s, _| nothing_polled(s),
        ..at!(Time, |s, c| s.io.poll_sleep)
    },
    Spec {
        key: "unsafe_noiommu",
        help: "Accept VFIO's unsafe mode: vfio then works without an IOMMU, but a bug in the drive or in stacktune can overwrite \
               any memory of this machine.",
        kind: Kind::Bool,
        scope: Scope::Rebuild,
        inactive: |s, _| {
            let takes_effect = s.driven_by().is_some_and(|by| by.capabilities().unsafe_noiommu);
            (!takes_effect).then_some("this interface does not work without an IOMMU")
        },
        unavailable: |v, _, _, conditions| match v {
            Value::Bool(true) => missing(&conditions.facts.platform.unsafe_noiommu),
            _ => None,
        },
        ..at!(Bool, |s, c| s.io.unsafe_noiommu)
    },
];

fn no_sqpoll(settings: &Settings) -> Option<&'static str> {
    no_ring(settings)
        .or_else(|| (settings.io.submission != Submission::Sqpoll).then_some("no submission queue is polled"))
}

fn nothing_polled(settings: &Settings) -> Option<&'static str> {
    if settings.leaves_kernel() {
        return None;
    }
    if no_ring(settings).is_some() {
        return Some("no class polls");
    }
    match (settings.io.completion, settings.io.submission) {
        (Completion::Interrupt, _) => Some("no completion queue is polled"),
        (Completion::Iopoll, Submission::Sqpoll) => Some("the kernel thread polls without sleeping"),
        (Completion::Iopoll, Submission::Call) => None,
    }
}

fn setup_unavailable(value: &Value, s: &Settings, _: Class, conditions: Conditions) -> Option<String> {
    let (flag, since) = match value {
        Value::Choice("coop") => ("IORING_SETUP_COOP_TASKRUN", (5, 19)),
        Value::Choice("defer") => ("IORING_SETUP_DEFER_TASKRUN", (6, 1)),
        _ => return None,
    };
    if no_ring(s).is_some() {
        return None;
    }
    if s.io.submission == Submission::Sqpoll {
        return Some(
            "the kernel refuses it with io.submission = sqpoll, whose kernel thread completes the I/Os"
                .into(),
        );
    }
    let kernel = &conditions.facts.kernel;
    let has = kernel_version(kernel).is_none_or(|version| version >= since);
    (!has).then(|| format!("{flag} needs Linux {}.{}, this is {kernel}", since.0, since.1))
}

fn completion_unavailable(value: &Value, s: &Settings, _: Class, conditions: Conditions) -> Option<String> {
    if *value != Value::Choice("iopoll") {
        return None;
    }
    let on_ring = |class: &&Class| s.classes[class.index()].enabled && s.interface_of(**class).has_rings();
    if let Some(class) = Class::ALL.iter().filter(on_ring).find(|&&c| s.buffering_of(c) != Buffering::Direct)
    {
        return Some(format!("only direct I/O can be polled, but {class} goes through the page cache"));
    }
    missing(&conditions.facts.io_uring).or_else(|| missing(&conditions.target?.polled))
}
