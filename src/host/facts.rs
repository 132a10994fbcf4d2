//! The facts as data.

use std::path::PathBuf;

use serde::Serialize;

use super::{CgroupMemory, Health, PcieLink, Platform, Queue, Storage, Temperature};

/// Something that the host has, or the reason why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum Feature {
    /// It is there.
    Present,
    /// It is missing, and why, as a sentence without a full stop.
    Missing(String),
}

impl Feature {
    /// The reason why it is missing.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Feature::Present => None,
            Feature::Missing(reason) => Some(reason),
        }
    }
}

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

/// What uses a block device; empty means free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "what")]
pub enum Usage {
    /// The system's own drive: it holds this mount point.
    System(String),
    /// It, or a part of it, is mounted there.
    Mounted(String),
    /// It, or a part of it, is swapped on.
    Swap(String),
    /// Another device is built on it (md, device-mapper, LVM, …): that device's name.
    Holder(String),
    /// A member of md, LVM, ZFS or the like by its signature.
    Member(String),
    /// Exported to others (nvmet, LIO, nbd …).
    Exported(String),
    /// Reserved through `NVMe` reservations.
    Reserved(String),
    /// Somebody has it open exclusively.
    Claimed(String),
}

/// How an export is told of which nobody can say whether it is there.
pub(super) const PERHAPS: &str = "perhaps: ";

impl Usage {
    /// Whether it is known to be, and not only taken for one because nobody can say.
    pub fn is_sure(&self) -> bool {
        !matches!(self, Self::Exported(how) if how.starts_with(PERHAPS))
    }
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    /// The kernel's name (`nvme0n1`, `loop3`, `sda`).
    pub name: String,
    /// Its node.
    pub path: PathBuf,
    /// `major:minor`.
    pub number: String,
    /// Its names under `/dev/disk/by-id`, the most telling one first.
    pub by_id: Vec<PathBuf>,
    /// Model, where told.
    pub model: Option<String>,
    /// Serial number, where told.
    pub serial: Option<String>,
    /// Firmware revision, where told.
    pub firmware: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
    /// Logical block (sector) bytes.
    pub logical_block_bytes: u64,
    /// Physical block bytes: what the medium writes at once, as far as it tells.
    pub physical_block_bytes: u64,
    /// Whether the volatile write cache is on (`queue/write_cache` is "write back").
    pub volatile_write_cache: Option<bool>,
    /// Whether it is rotational.
    pub rotational: bool,
    /// Whether it is read-only.
    pub read_only: bool,
    /// NUMA node.
    pub numa_node: Option<u32>,
    /// The I/O scheduler in force.
    pub scheduler: Option<String>,
    /// The block layer's queue.
    pub queue: Queue,
    /// Its `NVMe` controller.
    pub controller: Option<String>,
    /// Its link, where it is on PCI Express.
    pub link: Option<PcieLink>,
    /// Its temperature, where it has a sensor.
    pub temperature: Option<Temperature>,
    /// What it tells of its own health, of an `NVMe` drive of this host that this process may ask (root);
    /// asked when all facts are read, and not when uses alone are looked at.
    pub health: Option<Health>,
    /// Its partitions' names.
    pub partitions: Vec<String>,
    /// What it is itself built on (md, device-mapper, a loop device on another device): names.
    pub members: Vec<String>,
    /// What uses it.
    pub usage: Vec<Usage>,
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
