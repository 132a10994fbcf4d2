//! The knobs of `[queue]`: the block layer's queue settings of the members.

use super::spec::{Conditions, PLAIN, Spec};
use super::value::{Kind, NONE, Value};
use crate::settings::values::Settings;

/// How a numeric queue setting is read and written.
macro_rules! own_number {
    ($field:ident) => {
        Spec {
            inherits: true,
            inactive: |s, _| no_queues(s),
            unavailable: |v, s, _, conditions| queue_unavailable(stringify!($field), v, s, conditions),
            get: |s, _| s.queue.$field.map_or(Value::Inherit, Value::Int),
            set: |s, _, value| {
                s.queue.$field = match value {
                    Value::Int(n) => Some(n),
                    _ => None,
                };
            },
            ..PLAIN
        }
    };
}

/// Why the members' queues can't be set.
fn no_queues(settings: &Settings) -> Option<&'static str> {
    let on_files = settings.target.devices.is_empty() && !settings.stack.is_built();
    on_files.then_some("the target is files")
}

/// Why a device of the target does not support that queue setting; devices not yet built are checked later.
fn queue_unavailable(attribute: &str, value: &Value, s: &Settings, conditions: Conditions) -> Option<String> {
    if *value == Value::Inherit || no_queues(s).is_some() {
        return None;
    }
    if let Value::Int(kib) = value
        && attribute == "read_ahead_kb"
        && !kib.is_multiple_of(4)
    {
        return Some("the kernel reads ahead in pages of 4 KiB".into());
    }
    let devices = s.target.devices.iter().filter_map(|name| conditions.facts.find(name).ok());
    devices.into_iter().find_map(|device| {
        let (name, queue) = (&device.name, &device.queue);
        if let Some(why) = &queue.fixed {
            return Some(format!("{name}: {why}"));
        }
        match value {
            Value::Text(scheduler)
                if !queue.schedulers.contains(scheduler)
                    && !queue.loadable_schedulers.contains(scheduler) =>
            {
                Some(format!("{name} has {}, but not {scheduler}", queue.schedulers.join(", ")))
            }
            Value::Int(_) if !queue.settings.contains_key(attribute) => {
                Some(format!("{name} has no queue/{attribute}: this kernel, or its driver, lacks it"))
            }
            _ => None,
        }
    })
}

pub(super) const QUEUE: &[Spec] = &[
    Spec {
        key: "scheduler",
        help: "I/O scheduler of the members; default = the host's. Restored at the end.",
        kind: Kind::Text("a name"),
        inherits: true,
        inactive: |s, _| no_queues(s),
        unavailable: |v, s, _, conditions| queue_unavailable("scheduler", v, s, conditions),
        get: |s, _| s.queue.scheduler.clone().map_or(Value::Inherit, Value::Text),
        set: |s, _, value| {
            s.queue.scheduler = match value {
                Value::Text(name) if name.is_empty() => Some(NONE.into()),
                Value::Text(name) => Some(name),
                _ => None,
            };
        },
        ..PLAIN
    },
    Spec {
        key: "nr_requests",
        help: "Requests that each member's queue can hold; default = the host's. Restored at the end.",
        kind: Kind::Int { min: 4, max: 65_536, steps: &[32, 64, 128, 256, 512, 1023, 2048] },
        ..own_number!(nr_requests)
    },
    Spec {
        key: "read_ahead_kb",
        help: "KiB that the page cache reads ahead from the members; default = the host's.",
        kind: Kind::Int { min: 0, max: 65_536, steps: &[0, 16, 64, 128, 256, 512, 1024, 4096, 8192] },
        ..own_number!(read_ahead_kb)
    },
    Spec {
        key: "wbt_lat_usec",
        help: "Read latency in µs above which write-back is throttled; 0 = never.",
        kind: Kind::Int { min: 0, max: 10_000_000, steps: &[0, 500, 2_000, 10_000, 75_000] },
        ..own_number!(wbt_lat_usec)
    },
    Spec {
        key: "nomerges",
        help: "0 = merge adjacent requests, 1 = only those found cheaply, 2 = never.",
        kind: Kind::Int { min: 0, max: 2, steps: &[0, 1, 2] },
        ..own_number!(nomerges)
    },
    Spec {
        key: "rq_affinity",
        help: "0 = complete on any CPU, 1 = in the submitter's CPU group, 2 = on the submitter's CPU.",
        kind: Kind::Int { min: 0, max: 2, steps: &[0, 1, 2] },
        ..own_number!(rq_affinity)
    },
];
