//! What the kernel and the machine allow beyond plain I/O.

use serde::Serialize;

use super::root::Root;
use super::spdk::{self, Spdk};
use super::{Feature, drivers};

/// Pages of a larger size, set aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Hugepages {
    /// How many there are of the default size.
    pub total: u64,
    /// How many of them are free.
    pub free: u64,
    /// Bytes of each.
    pub size_bytes: u64,
}

/// What the kernel and the machine allow beyond plain I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// Operations that this kernel's `io_uring` knows; none where that can't be set up.
    pub io_uring_operations: Option<u64>,
    /// A device can be handed to a program (VFIO).
    pub vfio: Feature,
    /// Groups of devices that the IOMMU keeps apart; 0 is no IOMMU in use.
    pub iommu_groups: u64,
    /// Pages of a larger size.
    pub hugepages: Hugepages,
    /// The operator's SPDK.
    pub spdk: Spdk,
    /// Kernel drivers for arrays and file systems that are known to be neither in the kernel nor among
    /// its modules: `f2fs`, `raid456`.
    pub lacking_drivers: Vec<String>,
}

impl Default for Platform {
    fn default() -> Self {
        let vfio = Feature::Missing("not looked for".to_owned());
        Self {
            io_uring_operations: None,
            vfio,
            iommu_groups: 0,
            hugepages: Hugepages::default(),
            spdk: Spdk::default(),
            lacking_drivers: Vec::new(),
        }
    }
}

pub(super) fn read(root: &Root) -> Platform {
    let iommu_groups = root.names("sys/kernel/iommu_groups").len() as u64;
    let hugepages = hugepages(root);
    Platform {
        io_uring_operations: root.is_running_host().then(io_uring_operations).flatten(),
        vfio: vfio(root, iommu_groups),
        iommu_groups,
        spdk: spdk::read(root, &hugepages),
        hugepages,
        lacking_drivers: drivers::lacking(root),
    }
}

fn io_uring_operations() -> Option<u64> {
    let ring = io_uring::IoUring::new(1).ok()?;
    let mut probe = io_uring::Probe::new();
    ring.submitter().register_probe(&mut probe).ok()?;
    Some((0..=u8::MAX).filter(|operation| probe.is_supported(*operation)).count() as u64)
}

fn vfio(root: &Root, iommu_groups: u64) -> Feature {
    let without_iommu =
        root.text("sys/module/vfio/parameters/enable_unsafe_noiommu_mode").is_some_and(|on| on == "Y");
    if !root.has("dev/vfio/vfio") {
        Feature::Missing("no /dev/vfio/vfio: `modprobe vfio-pci` makes it".to_owned())
    } else if iommu_groups == 0 && !without_iommu {
        Feature::Missing("no IOMMU is in use: switch it on in the firmware and the kernel".to_owned())
    } else {
        Feature::Present
    }
}

fn hugepages(root: &Root) -> Hugepages {
    let text = root.text("proc/meminfo").unwrap_or_default();
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    Hugepages {
        total: number("HugePages_Total"),
        free: number("HugePages_Free"),
        size_bytes: number("Hugepagesize") * 1024,
    }
}
