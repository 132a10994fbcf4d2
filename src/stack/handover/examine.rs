//! Whether drives can leave the kernel: where they are on the bus, and which other devices would leave with them.

use std::fs;
use std::path::PathBuf;

use super::bus::{CLASS_NVME, NVME, PciBus, is_address, last_of};
use crate::error::{Error, Result};
use crate::host::{Device, Facts};
use crate::printable::Shown as _;
use crate::stack::devices::Drive;
use crate::stack::guard::refuse_used;

/// PCI's class code of bridges, which do not count as members of a group.
const CLASS_BRIDGE: &str = "0x0604";

/// A namespace of a drive that leaves the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserspaceDrive {
    /// The drive as the kernel knew it.
    pub drive: Drive,
    /// Its PCI address: `0000:01:00.0`.
    pub address: String,
    /// The namespace's number on its controller.
    pub namespace: u32,
    /// Its persistent names, from udev.
    pub by_id: Vec<PathBuf>,
    /// Whether it will run without an IOMMU that confines its DMA to the buffers mapped for it.
    pub no_iommu: bool,
}

/// Whether the operator accepts VFIO's unsafe mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noiommu {
    /// No: a drive without an IOMMU stays with the kernel.
    Refused,
    /// Yes.
    Accepted,
}

impl UserspaceDrive {
    /// Whether nothing is at its address any more, because it was pulled.
    pub(super) fn gone(&self) -> bool {
        !PciBus::default().device(&self.address).exists()
    }
}

/// Finds on the bus the drives that are to leave the kernel together, and checks whether they can. Does not
/// check whether the drives themselves are in use. Changes nothing.
///
/// # Errors
/// Input if a drive is not an NVMe drive on PCI; refused (3) if something else would leave with it, or if
/// there is no IOMMU to confine its DMA.
pub fn examine(drives: &[&Device], noiommu: Noiommu) -> Result<Vec<UserspaceDrive>> {
    let devices = Facts::read_devices();
    let bus = PciBus::default();
    drives.iter().map(|drive| bus.examine(drive, drives, &devices, noiommu)).collect()
}

impl PciBus {
    pub(super) fn examine(
        &self,
        device: &Device,
        together: &[&Device],
        devices: &[Device],
        noiommu: Noiommu,
    ) -> Result<UserspaceDrive> {
        let path = device.path.shown();
        let address = self.address_of(device)?;
        let controller = device.controller.as_deref();
        let goes = |name: &str| together.iter().any(|device| device.name == name);
        // The guard has already examined the drives to be handed over.
        for beside in devices.iter().filter(|beside| beside.controller.as_deref() == controller) {
            if !goes(&beside.name) {
                refuse_used(&beside.path, &beside.usage)?;
            }
        }
        let addresses: Vec<String> =
            together.iter().filter_map(|device| self.address_of(device).ok()).collect();
        let no_iommu = !self.device(&address).join("iommu_group").exists();
        if !no_iommu || noiommu == Noiommu::Refused {
            self.refuse_shared(&address, &path, &addresses)?;
        }
        let nsid = self.root.join("block").join(&device.name).join("nsid");
        let namespace = fs::read_to_string(&nsid).map_err(|error| Error::os("cannot read", &nsid, error))?;
        let namespace = namespace
            .trim()
            .parse()
            .map_err(|_| Error::failed(format!("{} does not hold a number", nsid.shown())))?;
        let by_id = device.by_id.iter().map(PathBuf::from).collect();
        Ok(UserspaceDrive { drive: Drive::of(device), address, namespace, by_id, no_iommu })
    }

    /// The PCI address of an NVMe drive.
    pub(super) fn address_of(&self, device: &Device) -> Result<String> {
        let path = device.path.shown();
        let no_nvme = || {
            Error::input(format!("{path} is not an NVMe drive on PCI Express"))
                .hint("only NVMe drives on PCI Express can be driven from userspace")
        };
        let controller = device.controller.as_ref().ok_or_else(no_nvme)?;
        let link = self.root.join("class/nvme").join(controller).join("device");
        let address = fs::canonicalize(link).ok().as_deref().and_then(last_of).ok_or_else(no_nvme)?;
        let class = self.text(&address, "class");
        if !is_address(&address) || class.as_deref() != Some(CLASS_NVME) {
            return Err(no_nvme());
        }
        match self.driver(&address).as_deref() {
            Some(NVME) => Ok(address),
            driver => {
                let driver = driver.unwrap_or("no driver");
                Err(Error::refused(format!("{path} ({address}) is bound to {driver}, not to {NVME}")))
            }
        }
    }

    /// Refuses a function that shares its IOMMU group with one that is not handed over.
    fn refuse_shared(&self, address: &str, path: &str, together: &[String]) -> Result<()> {
        let group = self.device(address).join("iommu_group");
        let Ok(members) = fs::read_dir(group.join("devices")) else {
            return Err(Error::refused(format!(
                "no IOMMU confines the memory accesses of {path} ({address})"
            ))
            .hint("enable one in the firmware (VT-d, AMD-Vi) and the kernel (intel_iommu=on for Intel's)"));
        };
        let names = members.flatten().map(|member| member.file_name().to_string_lossy().into_owned());
        let is_bridge =
            |name: &String| self.text(name, "class").is_some_and(|class| class.starts_with(CLASS_BRIDGE));
        let stays = |name: &String| name != address && !together.contains(name) && !is_bridge(name);
        let mut others: Vec<String> = names.filter(stays).collect();
        if others.is_empty() {
            return Ok(());
        }
        others.sort();
        let what = format!("{path} ({address}) shares its IOMMU group with {}", others.join(", "));
        Err(Error::refused(what)
            .hint("a group is handed over as a whole: make all its drives the target, or use a slot with its own group"))
    }
}
