//! How the IOMMU treats a drive: the type of its group's domain, which the kernel changes only while no
//! driver has the drive (Linux 5.11).

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use super::bus::{CLASS_NVME, LOOK, NVME, PATIENCE, PciBus, is_address, last_of, write};
use crate::error::{Error, Result};
use crate::host::{Device, Facts};
use crate::printable::Shown as _;
use crate::stack::devices::Drive;
use crate::stack::guard::refuse_used;

/// The kernel's names of the types that stacktune sets and restores.
const TYPES: [&str; 3] = ["DMA", "DMA-FQ", "identity"];

/// A drive's group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IommuGroup {
    /// The drive's PCI address.
    pub address: String,
    /// The group's number.
    pub group: String,
    /// The type in force, as the kernel calls it.
    pub kind: String,
}

/// The group of a drive that is alone in its group.
///
/// # Errors
/// Input if it is not an NVMe drive on PCI; refused (3) if there is no IOMMU, if other devices are in its group,
/// or if another namespace of the drive is in use.
pub fn group_of(device: &Device) -> Result<IommuGroup> {
    PciBus::default().group_of(device, &Facts::read_devices())
}

/// The commands that change a group's type.
pub fn commands_of(address: &str, group: &str, kind: &str) -> Vec<String> {
    let driver = format!("/sys/bus/pci/drivers/{NVME}");
    vec![
        format!("echo {address} > {driver}/unbind"),
        format!("echo {kind} > /sys/kernel/iommu_groups/{group}/type"),
        format!("echo {address} > {driver}/bind"),
    ]
}

/// Changes the type of an unused drive's group; returns once the drive is back under its name.
///
/// # Errors
/// Refused if another namespace of its controller has come into use, or the drive has moved to another group;
/// failed if the kernel refuses the type, or the drive comes back under another name.
pub fn set_type(drive: &Drive, address: &str, group: &str, kind: &str) -> Result<()> {
    let bus = PciBus::default();
    bus.refuse_other((&drive.find()?, &Facts::read_devices()), address, group)?;
    bus.set_type(address, group, kind)?;
    // A namespace shows up in /sys before its node and its attributes are there.
    let ends = Instant::now() + PATIENCE;
    loop {
        match drive.find() {
            Err(_) if Instant::now() < ends => thread::sleep(LOOK),
            found => return found.map(drop),
        }
    }
}

/// Restores the group's old type, if it still has the new one; idempotent.
///
/// # Errors
/// Refused if the drive is in use, or the group named is no drive's.
pub(crate) fn restore_type(address: &str, group: &str, types: (&str, &str)) -> Result<()> {
    PciBus::default().restore_type(address, group, types, &Facts::read_devices())
}

impl PciBus {
    fn type_file(&self, group: &str) -> PathBuf {
        self.root.join("kernel/iommu_groups").join(group).join("type")
    }

    fn type_of(&self, group: &str) -> Option<String> {
        Some(fs::read_to_string(self.type_file(group)).ok()?.trim().to_owned())
    }

    fn group_number(&self, address: &str) -> Option<String> {
        last_of(&fs::read_link(self.device(address).join("iommu_group")).ok()?)
    }

    pub(super) fn group_of(&self, device: &Device, devices: &[Device]) -> Result<IommuGroup> {
        let path = device.path.shown();
        let address = self.address_of(device)?;
        let no_group = || {
            Error::input(format!(
                "{path} ({address}) is in no IOMMU group, so stack.iommu has no effect on it"
            ))
            .hint(
                "enable an IOMMU in the firmware (VT-d, AMD-Vi) and the kernel (intel_iommu=on for Intel's)",
            )
        };
        let group = self.group_number(&address).ok_or_else(no_group)?;
        let members =
            fs::read_dir(self.type_file(&group).with_file_name("devices")).map_err(|_| no_group())?;
        let names = members.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut others: Vec<String> = names.filter(|name| *name != address).collect();
        others.sort();
        if !others.is_empty() {
            let what = format!("{path} ({address}) shares its IOMMU group with {}", others.join(", "));
            return Err(Error::refused(what).hint(
                "the kernel can change the type only of single-device groups: set stack.iommu to keep",
            ));
        }
        for beside in devices.iter().filter(|beside| beside.controller == device.controller) {
            if beside.name != device.name {
                refuse_used(&beside.path, &beside.usage)?;
            }
        }
        let kind = self.type_of(&group).ok_or_else(|| {
            Error::input(format!("{} is missing", self.type_file(&group).shown()))
                .hint("it requires Linux 5.11 or later: set stack.iommu to keep")
        })?;
        Ok(IommuGroup { address, group, kind })
    }

    /// Refuses a drive that is no longer at that address, alone in that group, and unused except by its stack.
    pub(super) fn refuse_other(
        &self,
        (device, devices): (&Device, &[Device]),
        address: &str,
        group: &str,
    ) -> Result<()> {
        let now = self.group_of(device, devices)?;
        if (now.address.as_str(), now.group.as_str()) == (address, group) {
            return Ok(());
        }
        let what = format!("{} is now in another IOMMU group", device.path.shown());
        Err(Error::refused(what).hint("plan again"))
    }

    fn set_type(&self, address: &str, group: &str, kind: &str) -> Result<()> {
        if self.driver(address).is_some() {
            write(&self.device(address).join("driver/unbind"), address)?;
        }
        write(&self.type_file(group), kind)?;
        self.bind_again(address)
    }

    fn bind_again(&self, address: &str) -> Result<()> {
        if self.driver(address).is_none() {
            write(&self.root.join("bus/pci/drivers").join(NVME).join("bind"), address)?;
        }
        self.await_nodes(address)
    }

    pub(super) fn restore_type(
        &self,
        address: &str,
        group: &str,
        (old, new): (&str, &str),
        devices: &[Device],
    ) -> Result<()> {
        let known = |kind: &str| TYPES.contains(&kind);
        if !is_address(address) || !known(old) || !known(new) {
            return Err(Error::refused(format!(
                "`{address}` and `{old}` name no type of a drive's IOMMU group"
            )));
        }
        // A drive that was pulled took its group along; its replacement may be in a group of that number.
        let is_there = self.text(address, "class").as_deref() == Some(CLASS_NVME);
        if !is_there || self.group_number(address).as_deref() != Some(group) {
            return Ok(());
        }
        if self.type_of(group).as_deref() != Some(new) {
            return if self.driver(address).is_none() { self.bind_again(address) } else { Ok(()) };
        }
        let is_here = |device: &&Device| self.address_of(device).is_ok_and(|found| found == address);
        devices.iter().filter(is_here).try_for_each(|device| refuse_used(&device.path, &device.usage))?;
        self.set_type(address, group, old)
    }
}
