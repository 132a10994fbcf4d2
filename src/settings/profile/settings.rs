//! Settings: everything that a profile can say, with the defaults of the paper's Table 3.
//!
//! Settings are plain data. What each field accepts, what it is called and when it can't be chosen
//! is defined once, in [`crate::settings::knobs`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use super::kv::{Compaction, Compression, Kv, LoadEngine, Order, Pairs, Rocksdb};
pub use super::stack::{DriveState, Filesystem, Placement, QueueSettings, Raid, Stack};
use super::sweep::Sweep;
use crate::class::Class;
pub use crate::settings::interface::Interface;
pub use crate::settings::named::Named;
use crate::units::{GIB, MIB};

/// The page sizes that divide every region, from one sector to the layout's unit.
pub const PAGE_SIZE_BYTES_MIN: u64 = 512;
/// The largest page: the layout's unit, so that every page size covers the same bytes.
pub const PAGE_SIZE_BYTES_MAX: u64 = MIB;

/// Everything that a profile can say.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The profile's name.
    pub name: String,
    /// One line that lists show.
    pub about: String,
    /// Where the data lies.
    pub target: Target,
    /// The stack between the interface and the drives.
    pub stack: Stack,
    /// Defaults of all classes.
    pub io: Io,
    /// The classes, by [`Class::index`].
    pub classes: [ClassSettings; 4],
    /// How commits are made durable.
    pub wal: Wal,
    /// The run as a whole.
    pub run: Run,
    /// The block layer's queue settings of the members.
    pub queue: QueueSettings,
    /// Where the background writer's next page goes.
    pub placement: Placement,
    /// What the classes read and write, and `RocksDB`'s part of it.
    pub kv: Kv,
    /// The simulated devices of the `sim` interface.
    pub sim: Sim,
    /// The steps that `record` runs, where the profile has any.
    pub sweep: Option<Box<Sweep>>,
}

/// Where the data lies: devices if any are named, else files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The folder of the files; `~` is the home folder.
    pub dir: String,
    /// How many data files.
    pub count: u64,
    /// Bytes of each data file; the WAL's file comes on top.
    pub size_bytes: u64,
    /// Block devices, by-id names where there are some.
    pub devices: Vec<String>,
    /// The serials the devices must have, in the same order; empty where none were recorded.
    pub serials: Vec<String>,
}

/// Which cache an I/O goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Buffering {
    /// Through the page cache.
    Cached,
    /// `O_DIRECT`, past the page cache.
    Direct,
    /// Through the page cache and out of it again at once (`RWF_DONTCACHE`).
    Uncached,
}

/// The `[io]` table: defaults of all classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Io {
    /// See [`Interface`].
    pub interface: Interface,
    /// See [`Buffering`].
    pub buffering: Buffering,
    /// Bytes of a page; a power of two from 512 B to 1 MiB.
    pub page_size_bytes: u64,
    /// Register the buffers with the ring (`io_uring` only).
    pub registered_buffers: bool,
    /// Register the files with the ring (`io_uring` only).
    pub registered_files: bool,
    /// How completions are learnt of (rings only).
    pub completion: Completion,
    /// How I/Os are handed over (rings only).
    pub submission: Submission,
    /// With `sqpoll`, the kernel's thread sleeps after so long without work.
    pub sqpoll_idle: Duration,
    /// With `sqpoll`, the CPU of the kernel's thread.
    pub sqpoll_cpu: Cpus,
    /// Sleep between two looks that found nothing, of what polls; zero is none.
    pub poll_sleep: Duration,
    /// Drives may leave the kernel without an IOMMU that keeps them from memory that is not theirs.
    pub unsafe_noiommu: bool,
}

/// How completions are learnt of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Completion {
    /// The device interrupts.
    Interrupt,
    /// The device's completion queue is polled (`IORING_SETUP_IOPOLL`).
    Iopoll,
}

/// How I/Os are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Submission {
    /// A system call for each batch.
    Call,
    /// A thread of the kernel polls the submission queue (`IORING_SETUP_SQPOLL`).
    Sqpoll,
}

/// How offsets are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Offsets {
    /// Every page equally often.
    Uniform,
    /// A few pages often, scattered over the region.
    Zipf,
    /// A share of the accesses jumps, the rest follows on.
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

/// Which CPUs a class runs on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cpus {
    /// Wherever the kernel puts it.
    Any,
    /// The CPUs of a NUMA node.
    Node(u32),
    /// These CPUs, ascending, without repetition.
    List(Vec<u32>),
}

/// The settings that each class has. `None` takes the `[io]` table's value.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassSettings {
    /// Whether the class runs at all.
    pub enabled: bool,
    /// Outstanding I/Os a thread.
    pub depth: u64,
    /// I/Os submitted together.
    pub batch: u64,
    /// Threads (with `sync`, each outstanding I/O has a thread of its own).
    pub threads: u64,
    /// Where the threads run.
    pub cpus: Cpus,
    /// The class's rate in bytes a second, divided over its threads; `None` is as fast as it goes.
    pub rate_bytes_per_s: Option<u64>,
    /// Spacing of the intended starts of a rated class.
    pub arrival: Arrival,
    /// How offsets are drawn (the WAL is always sequential).
    pub offsets: Offsets,
    /// Zipf's exponent.
    pub zipf_theta: f64,
    /// The share of accesses that jump, 0 (sequential) to 1 (random), of `runs`.
    pub jump_share: f64,
    /// Own interface.
    pub interface: Option<Interface>,
    /// Own buffering.
    pub buffering: Option<Buffering>,
    /// Own page size.
    pub page_size_bytes: Option<u64>,
}

/// How a commit is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Sync {
    /// A write, then `fdatasync`.
    Fdatasync,
    /// Each write with `RWF_DSYNC`.
    Dsync,
    /// No flush: stands for a persistent-memory log (paper 001, section 4.2). Not durable.
    None,
}

/// What the WAL has beside its class settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wal {
    /// See [`Sync`].
    pub sync: Sync,
    /// One flush for this many writes.
    pub sync_every: u64,
    /// A file or device of its own, or none: the region reserved for it on the target.
    pub target: Option<String>,
    /// The serial that a device of its own must have; none where it was not recorded.
    pub serial: Option<String>,
}

/// The run as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Writing stops after so many bytes.
    pub max_writes_bytes: Option<u64>,
    /// The page cache's budget.
    pub cache_limit_bytes: Option<u64>,
    /// The length of a window.
    pub window: Duration,
    /// Seeds offsets and arrivals.
    pub seed: u64,
    /// Drives of the array for which the cores needed are told.
    pub drives: u64,
    /// Bytes a second of each of them; without, nothing is told.
    pub drive_rate_bytes_per_s: Option<u64>,
}

impl Default for Run {
    /// The array is that of the paper, section 4.3.
    fn default() -> Self {
        Self {
            max_writes_bytes: None,
            cache_limit_bytes: None,
            window: Duration::from_secs(1),
            seed: 1,
            drives: 8,
            drive_rate_bytes_per_s: Some(3_000_000_000),
        }
    }
}

/// Which simulated device the `sim` interface has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SimDevice {
    /// Fast reads, slow flushes that block everything (paper 001, sections 4.1 and A.1).
    Consumer,
    /// Flushes of 20 µs (paper 001, section A.1).
    Enterprise,
    /// The consumer device with read and write errors now and then.
    Faulty,
}

/// The `[sim]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sim {
    /// See [`SimDevice`].
    pub device: SimDevice,
    /// Seeds its latencies and faults.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "unnamed".into(),
            about: String::new(),
            target: Target {
                dir: "~/.cache/stacktune/demo".into(),
                count: 4,
                size_bytes: GIB,
                devices: Vec::new(),
                serials: Vec::new(),
            },
            stack: Stack::default(),
            io: Io {
                interface: Interface::default(),
                buffering: Buffering::Direct,
                page_size_bytes: 16 << 10,
                registered_buffers: true,
                registered_files: true,
                completion: Completion::Interrupt,
                submission: Submission::Call,
                sqpoll_idle: Duration::from_secs(1),
                sqpoll_cpu: Cpus::Any,
                poll_sleep: Duration::ZERO,
                unsafe_noiommu: false,
            },
            classes: Class::ALL.map(ClassSettings::default_of),
            wal: Wal { sync: Sync::Fdatasync, sync_every: 1, target: None, serial: None },
            run: Run::default(),
            queue: QueueSettings::default(),
            placement: Placement::Random,
            kv: Kv::default(),
            sim: Sim { device: SimDevice::Consumer, seed: 1 },
            sweep: None,
        }
    }
}

impl Target {
    /// How the number of serials contradicts that of the devices, if it does.
    pub fn serials_mismatch(&self) -> Option<String> {
        let (serials, devices) = (self.serials.len(), self.devices.len());
        (serials != 0 && serials != devices).then(|| {
            format!("serials: {serials}, devices: {devices}; each device has one serial, in the same order")
        })
    }
}

impl ClassSettings {
    /// The row of the paper's Table 3.
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
        }
    }
}

impl Settings {
    /// The price of all drives in $, where that of one is told; files have no drives of their own.
    pub fn price(&self) -> Option<f64> {
        let price = self.stack.price * self.target.devices.len() as f64;
        (price > 0.0).then_some(price)
    }

    /// Why there is no price although one was told, where there is none.
    pub fn price_missing(&self) -> Option<&'static str> {
        (self.stack.price > 0.0 && self.target.devices.is_empty())
            .then_some("price: none, as stack.price is that of a drive, and the target is files")
    }

    /// Whether the classes read and write through `RocksDB`.
    pub fn is_keyed(&self) -> bool {
        self.kv.engine == LoadEngine::Rocksdb
    }

    /// The class's interface, its own or the default; `RocksDB`'s I/O is made of plain system calls.
    pub fn interface_of(&self, class: Class) -> Interface {
        if self.is_keyed() {
            return Interface::SYSTEM_CALLS;
        }
        self.classes[class.index()].interface.unwrap_or(self.io.interface)
    }

    /// The class's buffering, its own or the default.
    pub fn buffering_of(&self, class: Class) -> Buffering {
        if self.is_keyed() {
            let direct = match class {
                Class::Scan | Class::Point => self.kv.rocksdb.direct_reads,
                // RocksDB's log always goes through the page cache.
                Class::Wal => false,
                Class::Background => self.kv.rocksdb.direct_flush,
            };
            return if direct { Buffering::Direct } else { Buffering::Cached };
        }
        self.classes[class.index()].buffering.unwrap_or(self.io.buffering)
    }

    /// The class's page size, its own or the default.
    pub fn page_size_bytes_of(&self, class: Class) -> u64 {
        self.classes[class.index()].page_size_bytes.unwrap_or(self.io.page_size_bytes)
    }

    /// Whether any enabled class runs on simulated devices.
    pub fn is_simulated(&self) -> bool {
        Class::ALL.iter().any(|&c| self.interface_of(c).is_simulated())
    }

    /// Whether any class does I/O on storage.
    pub fn touches_storage(&self) -> bool {
        Class::ALL.iter().any(|&class| self.interface_of(class).touches_storage())
    }

    /// Whether the drives leave the kernel for the run.
    pub fn leaves_kernel(&self) -> bool {
        self.driven_by().is_some()
    }

    /// The interface for which the drives leave the kernel; none where they stay with it.
    pub fn driven_by(&self) -> Option<Interface> {
        Class::ALL.iter().map(|&class| self.interface_of(class)).find(|interface| interface.leaves_kernel())
    }
}

impl Named for Buffering {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Cached, "cached", "through the page cache"),
        (Self::Direct, "direct", "O_DIRECT, past the page cache"),
        (Self::Uncached, "uncached", "RWF_DONTCACHE, through the page cache and out of it at once"),
    ];
}

impl Named for Completion {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Interrupt, "interrupt", "the device interrupts"),
        (Self::Iopoll, "iopoll", "the device's completion queue is polled"),
    ];
}

impl Named for Submission {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Call, "call", "a system call for each batch"),
        (Self::Sqpoll, "sqpoll", "a thread of the kernel polls the submission queue"),
    ];
}

impl Named for Offsets {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Uniform, "uniform", "every page equally often"),
        (Self::Zipf, "zipf", "a few pages often, scattered over the region"),
        (Self::Runs, "runs", "a share of the accesses jumps, the rest follows on"),
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
        (Self::None, "none", "no flush: stands for a persistent-memory log, not durable"),
    ];
}

impl Named for SimDevice {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Consumer, "consumer", "fast reads, slow flushes that block everything"),
        (Self::Enterprise, "enterprise", "flushes of 20 µs"),
        (Self::Faulty, "faulty", "the consumer device with errors now and then"),
    ];
}
