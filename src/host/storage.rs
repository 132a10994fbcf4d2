//! What the host offers to build storage from: controllers, arrays, mounts.

use serde::Serialize;

use super::drive::pcie::{self, PcieLink};
use super::drive::temperature::{self, Temperature};
use super::mounts::{self, MountPoint};
use super::root::Root;
use super::system::tools::{self, ToolFound};

/// An `NVMe` controller.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Controller {
    /// The kernel's name (`nvme0`).
    pub name: String,
    /// Model, if reported.
    pub model: Option<String>,
    /// Serial number, if reported.
    pub serial: Option<String>,
    /// Firmware revision, if reported.
    pub firmware: Option<String>,
    /// Its transport (`pcie`, `tcp`, `rdma`, …).
    pub transport: Option<String>,
    /// Its address on the transport.
    pub address: Option<String>,
    /// Its state.
    pub state: Option<String>,
    /// Its link, if it is on PCI Express.
    pub link: Option<PcieLink>,
    /// The type of its IOMMU group, as the kernel calls it: `DMA` (strict), `DMA-FQ` (lazy), `identity`
    /// (passthrough).
    pub iommu: Option<String>,
    /// Its temperature.
    pub temperature: Option<Temperature>,
    /// NUMA node.
    pub numa_node: Option<u32>,
}

/// An md array.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Array {
    /// The kernel's name (`md0`).
    pub name: String,
    /// Its level (`raid5`).
    pub level: Option<String>,
    /// Its state (`clean`, `active`, `read-auto`, …).
    pub state: Option<String>,
    /// Its members.
    pub members: Vec<ArrayMember>,
    /// Members that are missing.
    pub degraded: u64,
    /// What md does to it in the background: `idle`, `resync`, `recover`, `check`, ….
    pub sync_action: Option<String>,
    /// Its progress: sectors done and total sectors.
    pub sync_sectors: Option<(u64, u64)>,
    /// Bytes of a chunk, if it has chunks.
    pub chunk_bytes: Option<u64>,
}

/// A member of an md array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrayMember {
    /// The kernel's name.
    pub name: String,
    /// `in_sync`, `faulty`, `spare`, ….
    pub state: String,
}

/// What the host offers to build storage from.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Storage {
    /// `NVMe` controllers.
    pub controllers: Vec<Controller>,
    /// Queues set aside for polling in the `NVMe` driver (its parameter `poll_queues`).
    pub nvme_poll_queues: Option<u64>,
    /// md arrays.
    pub arrays: Vec<Array>,
    /// Mounts of block devices.
    pub mounts: Vec<MountPoint>,
    /// The tools that stacks are built with.
    pub tools: Vec<ToolFound>,
}

pub(super) fn read(root: &Root) -> Storage {
    let arrays = root.names("sys/block").into_iter().filter_map(|name| array(root, name));
    Storage {
        controllers: root.names("sys/class/nvme").into_iter().map(|name| controller(root, name)).collect(),
        nvme_poll_queues: root.number("sys/module/nvme/parameters/poll_queues"),
        arrays: arrays.collect(),
        mounts: mounts::block_mounts(root),
        tools: tools::find(root),
    }
}

fn controller(root: &Root, name: String) -> Controller {
    let dir = format!("sys/class/nvme/{name}");
    let text = |path: &str| root.text(&format!("{dir}/{path}"));
    Controller {
        model: text("model"),
        serial: text("serial"),
        firmware: text("firmware_rev"),
        transport: text("transport"),
        address: text("address"),
        state: text("state"),
        link: pcie::link(root, &format!("{dir}/device")),
        iommu: text("device/iommu_group/type"),
        temperature: temperature::read(root, &dir),
        numa_node: ["numa_node", "device/numa_node"].iter().find_map(|path| text(path)?.parse().ok()),
        name,
    }
}

fn array(root: &Root, name: String) -> Option<Array> {
    let dir = format!("sys/block/{name}/md");
    let text = |path: &str| root.text(&format!("{dir}/{path}"));
    let state = text("array_state")?;
    // A stopped array may remain as an empty node.
    if state == "clear" {
        return None;
    }
    let member = |entry: String| {
        let name = entry.strip_prefix("dev-")?.to_owned();
        Some(ArrayMember { name, state: root.text(&format!("{dir}/{entry}/state")).unwrap_or_default() })
    };
    Some(Array {
        level: text("level"),
        state: Some(state),
        members: root.names(&dir).into_iter().filter_map(member).collect(),
        degraded: root.number(&format!("{dir}/degraded")).unwrap_or(0),
        sync_action: text("sync_action"),
        sync_sectors: text("sync_completed").as_deref().and_then(sectors),
        chunk_bytes: root.number(&format!("{dir}/chunk_size")).filter(|bytes| *bytes > 0),
        name,
    })
}

/// `1024 / 2048`; `none` if nothing is in progress.
fn sectors(text: &str) -> Option<(u64, u64)> {
    let (done, all) = text.split_once('/')?;
    Some((done.trim().parse().ok()?, all.trim().parse().ok()?))
}
