//! The facts as data.

use serde::Serialize;

use super::system::tools;
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
    /// The kind of virtual machine, if it is one.
    pub virtualization: Option<String>,
    /// `RLIMIT_MEMLOCK` in bytes; none means unlimited, or not applicable to this process.
    pub memlock_bytes: Option<u64>,
    /// Whether this process can set up `io_uring`.
    pub io_uring: Feature,
    /// Whether libaio's system calls work for this process.
    pub libaio: Feature,
    /// Whether the kernel has `RWF_DONTCACHE` (6.14); whether a target supports it is another fact.
    pub dontcache: Feature,
    /// Whether the performance-monitoring unit opens for the whole system.
    pub perf: Feature,
    /// Control of memory by cgroups.
    pub cgroup_memory: CgroupMemory,
    /// What the kernel and the machine allow beyond plain I/O.
    #[serde(flatten)]
    pub platform: Platform,
    /// What the host offers to build storage from.
    #[serde(flatten)]
    pub storage: Storage,
    /// Block devices, without partitions.
    pub devices: Vec<Device>,
}

impl Facts {
    /// Adds the tools' versions, by running each of them. Only for this host.
    #[must_use]
    pub fn with_tool_versions(mut self) -> Self {
        tools::add_versions(&mut self.storage.tools);
        self
    }
}

/// Facts about an opened target: what its file system or device supports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetFacts {
    /// Whether the members are block devices.
    pub devices: bool,
    /// The file system below the files, or `block device`.
    pub medium: String,
    /// Whether direct I/O works.
    pub direct: Feature,
    /// The smallest unit and alignment of direct I/O in bytes, the largest over the members.
    pub direct_align_bytes: u64,
    /// Whether `RWF_DONTCACHE` works.
    pub uncached: Feature,
    /// Whether completions can be polled for (`IORING_SETUP_IOPOLL`).
    pub polled: Feature,
    /// Whether the members accept `NVMe` commands.
    pub nvme_commands: Feature,
    /// Why direct I/O is silently buffered here, if it is (Btrfs with copy-on-write).
    pub quietly_buffered: Option<String>,
    /// The model of an emulated drive below it, if any.
    pub emulated: Option<String>,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// What uses the members, in words: `mounted at /srv` (only possible read-only).
    pub mounted: Option<String>,
}
