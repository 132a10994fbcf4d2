//! Settings: everything that a knob can turn, with the defaults of Table 3 of Haas et al. (2020).
//!
//! Enters: nothing but what [`crate::settings::knobs`] sets. Leaves: plain values, read by whoever resolves them.
//!
//! Settings are plain data. What each field accepts, its name and when it is not available are defined once,
//! in [`crate::settings::knobs`].

pub mod classes;
pub mod cpus;
pub mod io;
pub mod kv;
pub mod layer;
pub mod program;
pub mod run;
pub mod stack;

use std::time::Duration;

use super::interface::Interface;
use crate::class::Class;
use crate::units::{GIB, MIB};
pub use classes::{Arrival, ClassSettings, Offsets, Sync, Wal};
pub use cpus::Cpus;
pub use io::{Buffering, Completion, Io, Prio, RingSetup, Submission};
pub use kv::{Compaction, Compression, Kv, LoadEngine, Order, Pairs, Rocksdb};
pub use layer::Layer;
pub use program::{Better, Metric, Probe, ProbeKind, Program, ProgramKnob};
pub use run::{Run, Sim, SimDevice};
pub use stack::{
    ArrayState, Bitmap, DriveState, Filesystem, IommuMode, LbaSize, MdSettings, Placement, QueueSettings,
    Raid, Stack,
};

/// The smallest page: one sector. All page sizes from here to the layout's unit divide every region.
pub const PAGE_SIZE_BYTES_MIN: u64 = 512;
/// The largest page: the layout's unit, so that every page size covers the same bytes.
pub const PAGE_SIZE_BYTES_MAX: u64 = MIB;

/// Everything that a knob can turn, with the name and description of its profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The profile's name.
    pub name: String,
    /// One line for lists.
    pub about: String,
    /// Where the data is.
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
    /// Settings of the stack's md array.
    pub md: MdSettings,
    /// Where the background writer's next page goes.
    pub placement: Placement,
    /// What the classes read and write, and `RocksDB`'s part of it.
    pub kv: Kv,
    /// The simulated devices of the `sim` interface.
    pub sim: Sim,
    /// The program that is run as the load; none if the classes are the load.
    pub program: Option<Program>,
}

/// Where the data is: on devices if any are named, else in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The folder of the files; `~` is the home folder.
    pub dir: String,
    /// The number of data files.
    pub count: u64,
    /// Bytes of each data file; the WAL's file is extra.
    pub size_bytes: u64,
    /// Block devices, with by-id names if they have any.
    pub devices: Vec<String>,
    /// The serials that the devices must have, in the same order; empty if none were recorded.
    pub serials: Vec<String>,
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
                setup: RingSetup::Default,
                prio: Prio::None,
                sqpoll_idle: Duration::from_secs(1),
                sqpoll_cpu: Cpus::Any,
                poll_sleep: Duration::ZERO,
                unsafe_noiommu: false,
            },
            classes: Class::ALL.map(ClassSettings::default_of),
            wal: Wal { sync: Sync::Fdatasync, sync_every: 1, target: None, serial: None },
            run: Run::default(),
            queue: QueueSettings::default(),
            md: MdSettings::default(),
            placement: Placement::Random,
            kv: Kv::default(),
            sim: Sim {
                device: SimDevice::Consumer,
                seed: 1,
                over_provision_percent: 7,
                mapping_cache_percent: 100,
            },
            program: None,
        }
    }
}

impl Target {
    /// Why the number of serials contradicts that of the devices, or none if it does not.
    pub fn serials_mismatch(&self) -> Option<String> {
        let (serials, devices) = (self.serials.len(), self.devices.len());
        (serials != 0 && serials != devices).then(|| {
            format!("serials: {serials}, devices: {devices}; each device has one serial, in the same order")
        })
    }
}

impl Settings {
    /// The price of all drives in $, if that of one is known and the target is drives.
    pub fn price(&self) -> Option<f64> {
        let price = self.stack.price * self.target.devices.len() as f64;
        (price > 0.0).then_some(price)
    }

    /// Why there is no price although one was given, or none.
    pub fn price_missing(&self) -> Option<&'static str> {
        (self.stack.price > 0.0 && self.target.devices.is_empty())
            .then_some("price: none, as stack.price is the price of a drive, but the target is files")
    }

    /// Whether the classes read and write through `RocksDB`.
    pub fn is_keyed(&self) -> bool {
        self.kv.engine == LoadEngine::Rocksdb
    }

    /// The class's interface, its own or the default; `RocksDB`'s I/O uses plain system calls.
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

    /// The priority of the class's I/Os, its own or the default; none where it has no effect.
    pub fn prio_of(&self, class: Class) -> Prio {
        match self.no_prio(class) {
            Some(_) => Prio::None,
            None => self.classes[class.index()].prio.unwrap_or(self.io.prio),
        }
    }

    /// Why a priority of the class's I/Os has no effect, or none.
    pub fn no_prio(&self, class: Class) -> Option<&'static str> {
        if !self.interface_of(class).through_block_layer() {
            return Some("its I/O goes through no scheduler");
        }
        let on_files = self.target.devices.is_empty() && !self.stack.is_built();
        on_files.then_some("the target is files, and the scheduler of their drive is not known")
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

    /// The interface of a class whose I/O reaches drives past the kernel's block layer, where its tracepoints don't see it.
    pub fn past_block_layer(&self) -> Option<Interface> {
        let passes_by = |of: &Interface| of.touches_storage() && !of.through_block_layer();
        let enabled = Class::ALL.into_iter().filter(|class| self.classes[class.index()].enabled);
        enabled.map(|class| self.interface_of(class)).find(passes_by)
    }

    /// Whether a stack is built under the target.
    pub fn builds_stack(&self) -> bool {
        self.stack.is_built() && self.touches_storage()
    }

    /// Whether the drives leave the kernel for the run.
    pub fn leaves_kernel(&self) -> bool {
        self.driven_by().is_some()
    }

    /// The interface for which the drives leave the kernel; none if they stay in it.
    pub fn driven_by(&self) -> Option<Interface> {
        Class::ALL.iter().map(|&class| self.interface_of(class)).find(|interface| interface.leaves_kernel())
    }
}
