//! The knobs of `[run]` and `[sim]`: the run as a whole, and simulated devices.

use std::time::Duration;

use super::memory::cache_limit_unavailable;
use super::spec::{Named, PLAIN, Scope, Spec, missing, names};
use super::value::{Kind, Value};
use crate::settings::values::{Settings, SimDevice};
use crate::units::{GIB, MIB};

/// Rates from a SATA drive's to the newest NVMe drives'.
const DRIVE_RATES: &[u64] = &[
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    3_000_000_000,
    5_000_000_000,
    7_000_000_000,
    10_000_000_000,
    14_000_000_000,
];

pub(super) const RUN: &[Spec] = &[
    Spec {
        key: "max_writes",
        help: "Writing stops after this many bytes, to limit wear.",
        kind: Kind::Size {
            min: MIB,
            max: 1 << 50,
            multiple: 1,
            power_of_two: false,
            optional: true,
            steps: &[GIB, 5 * GIB, 20 * GIB, 100 * GIB, 500 * GIB, 1 << 40, 10 << 40],
        },
        ..at!(Size, |s, c| s.run.max_writes_bytes)
    },
    Spec {
        key: "cache_limit",
        help: "Page cache budget, as the memory limit of a cgroup that stacktune joins; none = unlimited.",
        paper: Some("The page cache is limited to 10 GB for 500 GB of data (Haas et al. 2020, 3.2)."),
        kind: Kind::Size {
            min: 64 * MIB,
            max: 1 << 50,
            multiple: 1,
            power_of_two: false,
            optional: true,
            steps: &[256 * MIB, GIB, 2 * GIB, 4 * GIB, 10 * GIB, 20 * GIB, 50 * GIB, 100 * GIB],
        },
        unavailable: cache_limit_unavailable,
        ..at!(Size, |s, c| s.run.cache_limit_bytes)
    },
    Spec {
        key: "window",
        help: "Length of a window; the screen shows the figures of the last complete one.",
        kind: Kind::Time {
            min: Duration::from_millis(100),
            max: Duration::from_secs(10),
            steps: &[
                Duration::from_millis(100),
                Duration::from_millis(200),
                Duration::from_millis(500),
                Duration::from_secs(1),
                Duration::from_secs(2),
                Duration::from_secs(5),
                Duration::from_secs(10),
            ],
        },
        ..at!(Time, |s, c| s.run.window)
    },
    Spec {
        key: "drain",
        help: "How long the end of a run or recording waits for I/O under way; what has not ended by then counts with its age.",
        kind: Kind::Time {
            min: Duration::from_millis(100),
            max: Duration::from_mins(1),
            steps: &[
                Duration::from_secs(1),
                Duration::from_secs(5),
                Duration::from_secs(10),
                Duration::from_secs(30),
                Duration::from_mins(1),
            ],
        },
        only_reckons: true,
        ..at!(Time, |s, c| s.run.drain)
    },
    Spec {
        key: "cpu_latency",
        help: "The longest time that an idle CPU may take to wake up, requested while the run lasts (/dev/cpu_dma_latency): 0 \
               keeps all CPUs from sleeping; default = the host's.",
        kind: Kind::Time {
            min: Duration::ZERO,
            max: Duration::from_secs(1),
            steps: &[
                Duration::ZERO,
                Duration::from_micros(1),
                Duration::from_micros(10),
                Duration::from_micros(50),
                Duration::from_micros(200),
                Duration::from_millis(1),
            ],
        },
        inherits: true,
        inactive: |s, _| s.is_simulated().then_some("simulated devices use a virtual clock"),
        unavailable: |v, s, _, conditions| match v {
            Value::Time(_) if !s.is_simulated() => missing(&conditions.facts.platform.cpu_latency),
            _ => None,
        },
        get: |s, _| s.run.cpu_latency.map_or(Value::Inherit, Value::Time),
        set: |s, _, value| {
            s.run.cpu_latency = match value {
                Value::Time(time) => Some(time),
                _ => None,
            };
        },
        ..PLAIN
    },
    Spec {
        key: "pace",
        help: "Intended starts of a class within this time of each other share a sleep: a sleep each would cost more CPU than its I/O (calibrate shows both). Response latency counts from the intended start, so it includes the wait; 0 = each on time.",
        kind: Kind::Time {
            min: Duration::ZERO,
            max: Duration::from_millis(1),
            steps: &[
                Duration::ZERO,
                Duration::from_micros(20),
                Duration::from_micros(50),
                Duration::from_micros(100),
                Duration::from_micros(200),
                Duration::from_micros(500),
                Duration::from_millis(1),
            ],
        },
        inactive: |s, _| {
            s.classes.iter().all(|of| of.rate_bytes_per_s.is_none()).then_some("no class has a rate")
        },
        ..at!(Time, |s, c| s.run.pace)
    },
    Spec {
        key: "slow_log",
        help: "I/Os and flushes that take this long are counted, and the slowest kept with their time, place, size and \
               depth; 0 = off.",
        kind: Kind::Time {
            min: Duration::ZERO,
            max: Duration::from_mins(1),
            steps: &[
                Duration::ZERO,
                Duration::from_millis(1),
                Duration::from_millis(10),
                Duration::from_millis(100),
                Duration::from_secs(1),
            ],
        },
        inactive: |s, _| s.is_keyed().then_some("operations on RocksDB have no place on the drive"),
        ..at!(Time, |s, c| s.run.slow_log)
    },
    Spec {
        key: "drives",
        help: "Drives of a planned array: the cores that it would need are derived from the measured cycles per byte.",
        paper: Some(
            "8 drives at 3 GB/s and 10 cycles per byte need 85 cores of 2.8 GHz (Haas et al. 2020, 4.3).",
        ),
        kind: Kind::Int { min: 1, max: 1024, steps: &[1, 2, 4, 8, 12, 16, 24, 32, 48, 64] },
        only_reckons: true,
        ..at!(Int, |s, c| s.run.drives)
    },
    Spec {
        key: "drive_rate",
        help: "Bytes per second of each drive of that array; none = the cores needed are not shown.",
        kind: Kind::Rate { steps: DRIVE_RATES },
        only_reckons: true,
        ..at!(Rate, |s, c| s.run.drive_rate_bytes_per_s)
    },
    Spec {
        key: "seed",
        help: "Seed of offsets and arrivals, so that a run can be repeated.",
        kind: Kind::Int { min: 0, max: i64::MAX as u64, steps: &[] },
        scope: Scope::Rebuild,
        ..at!(Int, |s, c| s.run.seed)
    },
];

pub(super) const SIM: &[Spec] = &[
    Spec {
        key: "device",
        help: "The simulated device of the sim interface.",
        kind: Kind::Choice(&names::<SimDevice, 5>()),
        scope: Scope::Rebuild,
        inactive: |s, _| (!s.is_simulated()).then_some("nothing is simulated"),
        ..at!(named SimDevice, |s, c| s.sim.device)
    },
    Spec {
        key: "seed",
        help: "Seed of its latencies and faults.",
        kind: Kind::Int { min: 0, max: i64::MAX as u64, steps: &[] },
        scope: Scope::Rebuild,
        inactive: |s, _| (!s.is_simulated()).then_some("nothing is simulated"),
        ..at!(Int, |s, c| s.sim.seed)
    },
    Spec {
        key: "over_provision",
        help: "Flash beyond an ftl device's capacity, in percent of it; with less, garbage is collected more often.",
        kind: Kind::Int { min: 0, max: 1000, steps: &[7, 12, 28, 50, 100] },
        scope: Scope::Rebuild,
        inactive: |s, _| without_flash(s),
        ..at!(Int, |s, c| s.sim.over_provision_percent)
    },
    Spec {
        key: "mapping_cache",
        help: "How much of an ftl device's map fits in its memory, in percent; each miss reads flash.",
        paper: Some("A cache of 10% is that of the paper's realistic drive (He et al. 2017)."),
        kind: Kind::Int { min: 1, max: 100, steps: &[1, 5, 10, 50, 100] },
        scope: Scope::Rebuild,
        inactive: |s, _| without_flash(s),
        ..at!(Int, |s, c| s.sim.mapping_cache_percent)
    },
];

fn without_flash(settings: &Settings) -> Option<&'static str> {
    let has_flash = settings.is_simulated() && settings.sim.device == SimDevice::Ftl;
    (!has_flash).then_some("no device models flash (sim.device = ftl)")
}
