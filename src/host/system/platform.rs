//! What the kernel and the machine allow beyond plain I/O.

use serde::Serialize;

use super::drivers;
use super::hugepages::{self, Hugepages};
use super::spdk::{self, Spdk};
use crate::host::Feature;
use crate::host::root::Root;

/// What the kernel and the machine allow beyond plain I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// Number of operations of this kernel's `io_uring`; none if that can't be set up.
    pub io_uring_operations: Option<u64>,
    /// Whether a device can be handed to a program (VFIO).
    pub vfio: Feature,
    /// Number of IOMMU groups; 0 means that no IOMMU is in use.
    pub iommu_groups: u64,
    /// Whether a device can be handed to a program without an IOMMU: this kernel has VFIO's unsafe mode, and
    /// was explicitly configured to allow it.
    pub unsafe_noiommu: Feature,
    /// Whether the time that idle CPUs take to wake up can be limited (`/dev/cpu_dma_latency`).
    pub cpu_latency: Feature,
    /// Huge pages.
    pub hugepages: Hugepages,
    /// The operator's SPDK.
    pub spdk: Spdk,
    /// Kernel drivers for arrays and file systems known to be neither in the kernel nor among its modules:
    /// `f2fs`, `raid456`.
    pub lacking_drivers: Vec<String>,
    /// Whether this process is known not to be root, so that it can't attach devices or mount.
    pub unprivileged: bool,
}

impl Default for Platform {
    fn default() -> Self {
        let vfio = Feature::Missing("not looked for".to_owned());
        Self {
            io_uring_operations: None,
            unsafe_noiommu: vfio.clone(),
            cpu_latency: vfio.clone(),
            vfio,
            iommu_groups: 0,
            hugepages: Hugepages::default(),
            spdk: Spdk::default(),
            lacking_drivers: Vec::new(),
            unprivileged: false,
        }
    }
}

pub(in crate::host) fn read(root: &Root) -> Platform {
    let iommu_groups = iommu_groups(root);
    let unsafe_noiommu = unsafe_noiommu(root);
    let hugepages = hugepages::read(root);
    Platform {
        io_uring_operations: root.is_running_host().then(io_uring_operations).flatten(),
        vfio: vfio(root, iommu_groups, &unsafe_noiommu),
        iommu_groups,
        unsafe_noiommu,
        cpu_latency: cpu_latency(root),
        spdk: spdk::read(root, &hugepages),
        hugepages,
        lacking_drivers: drivers::lacking(root),
        unprivileged: root.is_running_host() && !rustix::process::geteuid().is_root(),
    }
}

fn io_uring_operations() -> Option<u64> {
    let ring = io_uring::IoUring::new(1).ok()?;
    let mut probe = io_uring::Probe::new();
    ring.submitter().register_probe(&mut probe).ok()?;
    Some((0..=u8::MAX).filter(|operation| probe.is_supported(*operation)).count() as u64)
}

fn vfio(root: &Root, iommu_groups: u64, unsafe_noiommu: &Feature) -> Feature {
    if !root.has("dev/vfio/vfio") {
        Feature::Missing("no /dev/vfio/vfio: `modprobe vfio-pci` creates it".to_owned())
    } else if iommu_groups == 0 && *unsafe_noiommu != Feature::Present {
        Feature::Missing("no IOMMU is in use: enable it in the firmware and the kernel".to_owned())
    } else {
        Feature::Present
    }
}

/// Counts only real groups: a function bound in the unsafe mode has a group that isolates nothing.
fn iommu_groups(root: &Root) -> u64 {
    let groups = root.names("sys/kernel/iommu_groups");
    let is_real = |group: &&String| {
        root.text(&format!("sys/kernel/iommu_groups/{group}/name")).is_none_or(|name| name != "vfio-noiommu")
    };
    groups.iter().filter(is_real).count() as u64
}

fn cpu_latency(root: &Root) -> Feature {
    let driver = root.text("sys/devices/system/cpu/cpuidle/current_driver");
    let reason = if driver.is_none_or(|name| name == "none") {
        "no driver of idle states (cpuidle) is in use, so there is nothing to limit"
    } else if !root.has("dev/cpu_dma_latency") {
        "no /dev/cpu_dma_latency"
    } else if root.is_running_host() && !rustix::process::geteuid().is_root() {
        "it requires root (start stacktune with sudo)"
    } else {
        return Feature::Present;
    };
    Feature::Missing(reason.to_owned())
}

fn unsafe_noiommu(root: &Root) -> Feature {
    let reason = match root.text("sys/module/vfio/parameters/enable_unsafe_noiommu_mode").as_deref() {
        Some("Y") => return Feature::Present,
        Some(_) => {
            "the kernel does not allow it: write Y to /sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
        }
        None if root.has("sys/module/vfio") => "this kernel was built without it (CONFIG_VFIO_NOIOMMU)",
        None => "VFIO is not loaded: modprobe vfio enable_unsafe_noiommu_mode=1",
    };
    Feature::Missing(reason.to_owned())
}
