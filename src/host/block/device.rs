//! A block device, and what uses it.

use std::path::PathBuf;

use serde::Serialize;

use crate::host::drive::health::HealthLog;
use crate::host::drive::lba::LbaFormats;
use crate::host::{Health, PcieLink, Queue, Temperature};
use crate::printable::line;

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
    /// Another program has it open exclusively.
    Claimed(String),
}

/// Marks an export that may or may not exist.
pub(in crate::host) const PERHAPS: &str = "perhaps: ";

impl Usage {
    /// Whether it is known, not merely suspected.
    pub fn is_sure(&self) -> bool {
        !matches!(self, Self::Exported(how) if how.starts_with(PERHAPS))
    }
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    /// The kernel's name (`nvme0n1`, `loop3`, `sda`).
    pub name: String,
    /// Its device node.
    pub path: PathBuf,
    /// `major:minor`.
    pub number: String,
    /// Its names under `/dev/disk/by-id`, the most descriptive one first.
    pub by_id: Vec<PathBuf>,
    /// Model, if reported.
    pub model: Option<String>,
    /// Serial number, if reported.
    pub serial: Option<String>,
    /// Firmware revision, if reported.
    pub firmware: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
    /// Logical block (sector) bytes.
    pub logical_block_bytes: u64,
    /// Physical block bytes: what the medium writes at once, as far as it reports that.
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
    /// Its link, if it is on PCI Express.
    pub link: Option<PcieLink>,
    /// Its temperature, if it has a sensor.
    pub temperature: Option<Temperature>,
    /// Its health, for an `NVMe` drive of this host that this process may query (root); read with all facts,
    /// but not when only uses are read.
    pub health: Option<Health>,
    /// The sizes of logical blocks that it can be formatted with, for an `NVMe` drive of this host that this process
    /// may query (root); read like its health.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lba_formats: Option<LbaFormats>,
    /// Its partitions' names.
    pub partitions: Vec<String>,
    /// What it is itself built on (md, device-mapper, a loop device on another device): names.
    pub members: Vec<String>,
    /// What uses it.
    pub usage: Vec<Usage>,
}

impl Device {
    /// The drive's current health, on this host; none if it does not report it, or this process may not query
    /// it.
    pub fn read_health(&self) -> Option<Health> {
        HealthLog::open(self.controller.as_ref()?, &self.path)?.read()
    }

    /// The drive's current LBA formats, on this host; none if it is not `NVMe`, or this process may not ask.
    pub fn read_lba_formats(&self) -> Option<LbaFormats> {
        LbaFormats::read(self.controller.as_ref()?, &self.path)
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Usage::System(at) => write!(f, "the system's own drive: holds {}", line(at)),
            Usage::Mounted(at) => write!(f, "mounted at {}", line(at)),
            Usage::Swap(path) => write!(f, "swapped on: {}", line(path)),
            Usage::Holder(name) => write!(f, "part of {name}"),
            Usage::Member(of) => write!(f, "a member of {of} by its signature"),
            Usage::Exported(by) => write!(f, "exported by {by}"),
            Usage::Reserved(how) => write!(f, "NVMe-reserved: {how}"),
            Usage::Claimed(by) => write!(f, "{}", line(by)),
        }
    }
}
