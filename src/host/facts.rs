//! The facts as data.

use serde::Serialize;

use super::{CgroupMemory, Device, Feature, Platform, Storage};

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
}

/// The processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cpu {
    /// Model name.
    pub model: String,
    /// CPUs that are online.
    pub online: Vec<u32>,
    /// NUMA nodes.
    pub nodes: Vec<Node>,
    /// The scaling governor, where there is one.
    pub governor: Option<String>,
    /// Vulnerability mitigations in force, by vulnerability.
    pub mitigations: std::collections::BTreeMap<String, String>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
}

/// Facts about this host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// Host name.
    pub hostname: String,
    /// Distribution.
    pub distribution: String,
    /// Kernel release.
    pub kernel: String,
    /// The processor.
    pub cpu: Cpu,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Whether it is a virtual machine, and which kind.
    pub virtualization: Option<String>,
    /// `RLIMIT_MEMLOCK` in bytes; none is unlimited, or not in force for this process.
    pub memlock_bytes: Option<u64>,
    /// `io_uring` can be set up by this process.
    pub io_uring: Feature,
    /// libaio's system calls work for this process.
    pub libaio: Feature,
    /// The kernel knows `RWF_DONTCACHE` (6.14); whether a target does is another fact.
    pub dontcache: Feature,
    /// The performance-monitoring unit opens for the whole system.
    pub perf: Feature,
    /// Control of memory by cgroups.
    pub cgroup_memory: CgroupMemory,
    /// What the kernel and the machine allow beyond plain I/O.
    #[serde(flatten)]
    pub platform: Platform,
    /// What the host has to build storage of.
    #[serde(flatten)]
    pub storage: Storage,
    /// Block devices, partitions left out.
    pub devices: Vec<Device>,
}

/// Facts about an opened target: what its file system or device can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetFacts {
    /// Whether the members are block devices.
    pub devices: bool,
    /// The file system below the files, or `block device`.
    pub medium: String,
    /// Direct I/O works.
    pub direct: Feature,
    /// The smallest unit and alignment of direct I/O in bytes, the largest over the members.
    pub direct_align_bytes: u64,
    /// `RWF_DONTCACHE` works.
    pub uncached: Feature,
    /// Completions can be polled for (`IORING_SETUP_IOPOLL`).
    pub polled: Feature,
    /// The members take `NVMe` commands.
    pub nvme_commands: Feature,
    /// Why direct I/O is quietly buffered here, where it is (Btrfs with copy-on-write).
    pub quietly_buffered: Option<String>,
    /// The model of a drive below it that is emulated, where one is.
    pub emulated: Option<String>,
    /// Nothing may be written.
    pub read_only: bool,
    /// What uses the members, in words: `mounted at /srv` (only possible read-only).
    pub mounted: Option<String>,
}
