//! The knobs of `[md]`: settings of the stack's md array.

use super::spec::{Conditions, Named, PLAIN, Spec, names};
use super::stack::not_redundant;
use super::value::{Kind, Value};
use crate::class::Class;
use crate::settings::values::{ArrayState, Settings};

/// How a setting of the array is read and written.
macro_rules! own_number {
    ($field:ident, $inactive:expr) => {
        Spec {
            inherits: true,
            inactive: |s, _| $inactive(s),
            get: |s, _| s.md.$field.map_or(Value::Inherit, Value::Int),
            set: |s, _, value| {
                s.md.$field = match value {
                    Value::Int(n) => Some(n),
                    _ => None,
                };
            },
            ..PLAIN
        }
    };
}

fn no_parity(settings: &Settings) -> Option<&'static str> {
    (!settings.stack.raid.has_md_parity()).then_some("there is no md array with parity")
}

/// KiB per second of each member.
const SPEED: Kind = Kind::Int {
    min: 1,
    max: 100_000_000,
    steps: &[1_000, 10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 5_000_000],
};

/// Why an array can't work without a member.
fn array_unavailable(value: &Value, s: &Settings, _: Class, _: Conditions) -> Option<String> {
    let loses = *value != Value::Choice(ArrayState::Healthy.name());
    (loses && s.stack.assume_clean && s.stack.raid.has_md_parity()).then(|| {
        "with stack.assume_clean the parity was never computed, so a lost member's data could not be \
         reconstructed: set stack.assume_clean = off"
            .to_owned()
    })
}

pub(super) const MD: &[Spec] = &[
    Spec {
        key: "array",
        help: "State of the stack's md array: healthy, degraded (its last member is marked as failed), or rebuilding (that \
               member is added back, blank). The data on that member is lost; the array can return to healthy only after a rebuild.",
        kind: Kind::Choice(&names::<ArrayState, 3>()),
        // The next run of a sweep can't have healthy again what a run before it has degraded.
        of_target: |s| s.stack.raid.is_md_redundant(),
        inactive: |s, _| not_redundant(s),
        unavailable: array_unavailable,
        ..at!(named ArrayState, |s, c| s.md.array)
    },
    Spec {
        key: "group_thread_cnt",
        help: "Threads of each NUMA node that compute an md array's parity; 0 = one for the whole array; default = the kernel's.",
        kind: Kind::Int { min: 0, max: 8192, steps: &[0, 1, 2, 4, 8, 16, 32] },
        ..own_number!(group_thread_cnt, no_parity)
    },
    Spec {
        key: "stripe_cache_size",
        help: "Stripes that an md array with parity caches, each a page of every member; default = the kernel's (256).",
        kind: Kind::Int {
            min: 17,
            max: 32_768,
            steps: &[128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768],
        },
        ..own_number!(stripe_cache_size, no_parity)
    },
    Spec {
        key: "sync_speed_min",
        help: "Speed of md's rebuild or sync during the load, in KiB per second of each member; default = the system's.",
        kind: SPEED,
        ..own_number!(sync_speed_min, not_redundant)
    },
    Spec {
        key: "sync_speed_max",
        help: "Limit of md's rebuild or sync, in KiB per second of each member; default = the system's.",
        kind: SPEED,
        ..own_number!(sync_speed_max, not_redundant)
    },
];
