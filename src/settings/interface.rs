//! The interfaces that an I/O can take, with a row of capabilities for each.
//!
//! Everything that depends on the interface asks its row. Variants are named here, in the interface's own
//! file and in the launch table of [`crate::load::io`]; a test in `tests/house` forbids them elsewhere.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::named::Named;
use crate::host::{Facts, Feature};

/// How an I/O enters the kernel, or bypasses it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Interface {
    /// `preadv2`/`pwritev2`, one thread per outstanding I/O.
    Sync,
    /// The kernel's older asynchronous interface.
    Libaio,
    /// The kernel's ring interface.
    #[default]
    IoUring,
    /// `NVMe` commands through `io_uring`, past the block layer.
    NvmePassthrough,
    /// Completes at once: the generator's own cost.
    Null,
    /// Seeded devices on a virtual clock.
    Sim,
    /// stacktune's own driver, for drives taken from the kernel.
    Vfio,
    /// The operator's SPDK in a separate process, for drives taken from the kernel.
    Spdk,
}

/// What an interface's I/O passes through on its way to storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The kernel's block layer, which counts it; files and devices, cached or direct.
    BlockLayer,
    /// The kernel's `NVMe` driver, past the block layer; whole drives, never cached.
    NvmeDriver,
    /// A driver outside the kernel, which takes its drives over for the run.
    UserspaceDriver,
    /// Nothing: no data is read or written.
    Nowhere,
    /// Simulated devices on a virtual clock.
    Simulation,
}

/// What an interface is and can do.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// The interface.
    pub interface: Interface,
    /// Its name in profiles.
    pub name: &'static str,
    /// A short description, for lists.
    pub about: &'static str,
    /// The path that its I/O takes to storage.
    pub path: Path,
    /// What it needs from the host.
    pub needs: fn(&Facts) -> &Feature,
    /// Whether each outstanding I/O takes a thread, so that a worker's depth and batch are 1.
    pub thread_per_io: bool,
    /// Whether it shares rings with the kernel: buffers and files can be registered, and either side can be
    /// polled. Rings and registered buffers are locked memory.
    pub rings: bool,
    /// Whether completions are always polled for, without interrupts.
    pub polls: bool,
    /// Whether its workers run in a separate process.
    pub own_process: bool,
    /// Whether it can drive drives without an IOMMU, if the operator accepts that.
    pub unsafe_noiommu: bool,
}

/// A plain interface through the kernel's block layer that every host has; rows state what differs.
const PLAIN: Capabilities = Capabilities {
    interface: Interface::Sync,
    name: "",
    about: "",
    path: Path::BlockLayer,
    needs: |_| &Feature::Present,
    thread_per_io: false,
    rings: false,
    polls: false,
    own_process: false,
    unsafe_noiommu: false,
};

/// Whether this build has stacktune's own driver.
static OWN_DRIVER: LazyLock<Feature> = LazyLock::new(|| {
    if cfg!(feature = "userspace") {
        return Feature::Present;
    }
    Feature::Missing("this build lets no drives leave the kernel: `make build` builds one that does".into())
});

/// The rows, in the order of the variants.
const ROWS: &[Capabilities] = &[
    Capabilities {
        interface: Interface::Sync,
        name: "sync",
        about: "preadv2 and pwritev2, one thread per outstanding I/O",
        thread_per_io: true,
        ..PLAIN
    },
    Capabilities {
        interface: Interface::Libaio,
        name: "libaio",
        about: "the kernel's older asynchronous interface",
        needs: |facts| &facts.libaio,
        ..PLAIN
    },
    Capabilities {
        interface: Interface::IoUring,
        name: "io_uring",
        about: "submission and completion rings shared with the kernel",
        needs: |facts| &facts.io_uring,
        rings: true,
        ..PLAIN
    },
    Capabilities {
        interface: Interface::NvmePassthrough,
        name: "nvme_passthrough",
        about: "NVMe commands through io_uring, past the block layer",
        path: Path::NvmeDriver,
        needs: |facts| &facts.io_uring,
        rings: true,
        ..PLAIN
    },
    Capabilities {
        interface: Interface::Null,
        name: "null",
        about: "completes at once: the generator's own cost",
        path: Path::Nowhere,
        ..PLAIN
    },
    Capabilities {
        interface: Interface::Sim,
        name: "sim",
        about: "simulated devices on a virtual clock",
        path: Path::Simulation,
        ..PLAIN
    },
    Capabilities {
        interface: Interface::Vfio,
        name: "vfio",
        about: "stacktune's own polling driver: the drives leave the kernel for the run",
        path: Path::UserspaceDriver,
        needs: |_| &OWN_DRIVER,
        polls: true,
        unsafe_noiommu: true,
        ..PLAIN
    },
    Capabilities {
        interface: Interface::Spdk,
        name: "spdk",
        about: "your own SPDK, in a separate process: the drives leave the kernel for the run",
        path: Path::UserspaceDriver,
        needs: |facts| &facts.platform.spdk.usable,
        polls: true,
        own_process: true,
        ..PLAIN
    },
];

impl Interface {
    /// The number of interfaces.
    pub const COUNT: usize = ROWS.len();
    /// What programs that only make system calls use, such as storage engines.
    pub const SYSTEM_CALLS: Self = Self::Sync;

    /// All of them, in the order of their rows.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        ROWS.iter().map(|row| row.interface)
    }

    /// Its row.
    pub fn capabilities(self) -> &'static Capabilities {
        &ROWS[self as usize]
    }

    /// Why this host can't run it, or none if it can.
    pub fn missing_on(self, facts: &Facts) -> Option<&str> {
        (self.capabilities().needs)(facts).reason()
    }

    fn path(self) -> Path {
        self.capabilities().path
    }

    /// Whether its drives leave the kernel for the run.
    pub fn leaves_kernel(self) -> bool {
        self.path() == Path::UserspaceDriver
    }

    /// Whether the kernel's block layer sees, and counts, its I/O.
    pub fn through_block_layer(self) -> bool {
        self.path() == Path::BlockLayer
    }

    /// Whether its I/O can go through the page cache.
    pub fn is_cacheable(self) -> bool {
        self.path() == Path::BlockLayer
    }

    /// Whether it runs on simulated devices and their clock.
    pub fn is_simulated(self) -> bool {
        self.path() == Path::Simulation
    }

    /// Whether its I/O reaches storage.
    pub fn touches_storage(self) -> bool {
        !matches!(self.path(), Path::Nowhere | Path::Simulation)
    }

    /// Whether it runs on ordinary files in real time.
    pub fn runs_on_files(self) -> bool {
        matches!(self.path(), Path::BlockLayer | Path::Nowhere)
    }

    /// Whether it shares rings with the kernel.
    pub fn has_rings(self) -> bool {
        self.capabilities().rings
    }
}

impl Named for Interface {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &{
        let mut names = [(Self::Sync, "", ""); Self::COUNT];
        let mut i = 0;
        while i < ROWS.len() {
            assert!(ROWS[i].interface as usize == i, "the rows are in the order of the variants");
            names[i] = (ROWS[i].interface, ROWS[i].name, ROWS[i].about);
            i += 1;
        }
        names
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_consistent() {
        for row in ROWS {
            let Capabilities { name, path, .. } = *row;
            assert_eq!(Interface::named(name), Some(row.interface));
            assert_eq!(row.interface.name(), name);
            assert!(!row.about.is_empty() && !row.about.ends_with('.'), "{name}");
            let userspace = path == Path::UserspaceDriver;
            assert_eq!(row.polls, userspace, "{name}: only drivers outside the kernel always poll");
            assert!(userspace || !(row.own_process || row.unsafe_noiommu), "{name}");
            let kernel = matches!(path, Path::BlockLayer | Path::NvmeDriver);
            assert!(
                kernel || !(row.rings || row.thread_per_io),
                "{name}: rings and threads enter the kernel"
            );
            assert!(!(row.rings && row.thread_per_io), "{name}");
        }
    }
}
