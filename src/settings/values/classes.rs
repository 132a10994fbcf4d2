//! What each class does, and how the WAL commits.

use serde::{Deserialize, Serialize};

use super::cpus::Cpus;
use super::io::{Buffering, Prio};
use crate::class::Class;
use crate::settings::interface::Interface;
use crate::settings::named::Named;

/// How offsets are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Offsets {
    /// Every page equally often.
    Uniform,
    /// A few pages often, scattered over the region.
    Zipf,
    /// A share of the accesses jumps, the rest is sequential.
    Runs,
}

/// How intended starts are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Arrival {
    /// Constant spacing.
    Constant,
    /// Exponential gaps with the same mean.
    Poisson,
}

/// The settings of each class. `None` inherits the `[io]` table's value.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassSettings {
    /// Whether the class runs at all.
    pub enabled: bool,
    /// Outstanding I/Os per thread.
    pub depth: u64,
    /// I/Os submitted together.
    pub batch: u64,
    /// Threads (with `sync`, each outstanding I/O has a separate thread).
    pub threads: u64,
    /// Where the threads run.
    pub cpus: Cpus,
    /// The class's rate in bytes per second, shared by its threads; `None` means unlimited.
    pub rate_bytes_per_s: Option<u64>,
    /// Spacing of the intended starts of a class with a rate.
    pub arrival: Arrival,
    /// How offsets are drawn (the WAL is always sequential).
    pub offsets: Offsets,
    /// The Zipf exponent: 0 is uniform; used where `offsets` is `zipf`.
    pub zipf_theta: f64,
    /// The share of accesses that jump, 0 (sequential) to 1 (random), for `runs`.
    pub jump_share: f64,
    /// The interface; none means that of `[io]`.
    pub interface: Option<Interface>,
    /// The buffering; none means that of `[io]`.
    pub buffering: Option<Buffering>,
    /// The page size; none means that of `[io]`.
    pub page_size_bytes: Option<u64>,
    /// The priority of its I/Os; none means that of `[io]`.
    pub prio: Option<Prio>,
}

/// How a commit is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Sync {
    /// A write, then `fdatasync`.
    Fdatasync,
    /// Each write with `RWF_DSYNC`.
    Dsync,
    /// No flush: models a persistent-memory log (Haas et al. 2020, section 4.2). Not durable.
    None,
}

/// The WAL's settings besides its class settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wal {
    /// See [`Sync`].
    pub sync: Sync,
    /// Writes per flush.
    pub sync_every: u64,
    /// A separate file or device; none means the region reserved for it on the target.
    pub target: Option<String>,
    /// The serial that a separate device must have; none if not recorded.
    pub serial: Option<String>,
}

impl ClassSettings {
    /// The row of Table 3 of Haas et al. (2020).
    pub fn default_of(class: Class) -> Self {
        let scan = class == Class::Scan;
        Self {
            enabled: true,
            depth: if scan { 128 } else { 1 },
            batch: if scan { 32 } else { 1 },
            threads: 1,
            cpus: Cpus::Any,
            rate_bytes_per_s: class.writes().then_some(250_000_000),
            arrival: Arrival::Constant,
            offsets: Offsets::Uniform,
            zipf_theta: 0.99,
            jump_share: 0.5,
            interface: None,
            buffering: None,
            page_size_bytes: None,
            prio: None,
        }
    }
}

impl Named for Offsets {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Uniform, "uniform", "every page equally often"),
        (Self::Zipf, "zipf", "a few pages often, scattered over the region"),
        (Self::Runs, "runs", "a share of the accesses jumps, the rest is sequential"),
    ];
}

impl Named for Arrival {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Constant, "constant", "evenly spaced"),
        (Self::Poisson, "poisson", "random gaps with the same mean"),
    ];
}

impl Named for Sync {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Fdatasync, "fdatasync", "a write, then a flush"),
        (Self::Dsync, "dsync", "each write durable by itself (RWF_DSYNC)"),
        (Self::None, "none", "no flush: models a persistent-memory log, not durable"),
    ];
}
