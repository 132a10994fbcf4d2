//! The `[run]` table, and the table of the simulated devices.

use std::time::Duration;

use crate::settings::named::Named;

/// The run as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Writing stops after this many bytes.
    pub max_writes_bytes: Option<u64>,
    /// The page cache's budget.
    pub cache_limit_bytes: Option<u64>,
    /// The length of a window.
    pub window: Duration,
    /// How long to wait for I/O that is in flight at a run's end.
    pub drain: Duration,
    /// The longest time that an idle CPU may take to wake up during the run; none leaves it to the host.
    pub cpu_latency: Option<Duration>,
    /// Starts due within this time of each other are submitted together.
    pub pace: Duration,
    /// I/Os with at least this service time are logged as slow; zero logs none.
    pub slow_log: Duration,
    /// The seed of offsets and arrivals.
    pub seed: u64,
    /// Drives of the array for which the cores needed are derived.
    pub drives: u64,
    /// Bytes per second of each of them; without it nothing is derived.
    pub drive_rate_bytes_per_s: Option<u64>,
}

impl Default for Run {
    /// The array is that of Haas et al. (2020), section 4.3.
    fn default() -> Self {
        Self {
            max_writes_bytes: None,
            cache_limit_bytes: None,
            window: Duration::from_secs(1),
            drain: Duration::from_secs(30),
            cpu_latency: None,
            pace: Duration::from_micros(50),
            slow_log: Duration::ZERO,
            seed: 1,
            drives: 8,
            drive_rate_bytes_per_s: Some(3_000_000_000),
        }
    }
}

/// The simulated device of the `sim` interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SimDevice {
    /// Fast reads, slow flushes that block everything (Haas et al. 2020, sections 4.1 and A.1).
    Consumer,
    /// Flushes of 20 µs (Haas et al. 2020, section A.1).
    Enterprise,
    /// The consumer device with occasional read and write errors.
    Faulty,
    /// The consumer device that hangs from its 7th to its 12th second.
    Hanging,
    /// A flash model: pages, blocks, a mapping, garbage collection.
    Ftl,
}

/// The `[sim]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sim {
    /// See [`SimDevice`].
    pub device: SimDevice,
    /// The seed of its latencies and faults.
    pub seed: u64,
    /// Flash beyond the capacity of an `ftl` device, in percent of the capacity.
    pub over_provision_percent: u64,
    /// How much of an `ftl` device's mapping is in its memory.
    pub mapping_cache_percent: u64,
}

impl Named for SimDevice {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Consumer, "consumer", "fast reads, slow flushes that block everything"),
        (Self::Enterprise, "enterprise", "flushes of 20 µs"),
        (Self::Faulty, "faulty", "the consumer device with occasional errors"),
        (
            Self::Hanging,
            "hanging",
            "the consumer device that serves nothing between its 7th and its 12th second",
        ),
        (Self::Ftl, "ftl", "flash by model: mapping, garbage collection, write amplification"),
    ];
}
