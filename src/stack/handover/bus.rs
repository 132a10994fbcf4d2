//! PCI functions in sysfs: reading their driver, and binding them to another.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result, describe};
use crate::printable::Shown as _;
use crate::stack::guard::holders;

/// The driver for devices driven from userspace.
pub(super) const VFIO_PCI: &str = "vfio-pci";

/// The kernel's own driver.
pub(super) const NVME: &str = "nvme";

/// PCI's class code of an NVM Express controller.
pub(super) const CLASS_NVME: &str = "0x010802";

/// After a bind, the kernel's driver starts the controller and only then creates its namespaces.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) const LOOK: Duration = Duration::from_millis(20);

/// PCI functions in sysfs.
#[derive(Debug, Clone)]
pub(super) struct PciBus {
    pub(super) root: PathBuf,
}

impl Default for PciBus {
    fn default() -> Self {
        Self { root: PathBuf::from("/sys") }
    }
}

pub(super) fn is_address(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    !text.is_empty() && text.starts_with(|c: char| c.is_ascii_hexdigit()) && text.chars().all(plain)
}

/// The part after `nvme` in the name of a namespace: `0n1`, and `0c0n1` below a multipath device.
fn is_namespace(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains('n')
}

pub(super) fn last_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

pub(super) fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).map_err(|error| {
        let what = format!("cannot write {} to {}: {}", text.trim(), file.shown(), describe(&error));
        Error::failed(what).hint("binding drivers requires root and a writable /sys")
    })
}

/// Gives a function back to the kernel's driver, if it is still where stacktune put it; idempotent.
pub(crate) fn give_back(address: &str) -> Result<()> {
    PciBus::default().give_back(address)
}

/// The commands that do the same by hand; empty if there is nothing to do.
pub(crate) fn commands(address: &str) -> Vec<String> {
    let bus = PciBus::default();
    if !is_address(address) || !bus.is_ours(address) {
        return Vec::new();
    }
    let device = bus.device(address);
    let mut commands = vec![format!("echo > {}/driver_override", device.shown())];
    if bus.driver(address).is_some() {
        commands.push(format!("echo {address} > {}/driver/unbind", device.shown()));
    }
    commands.push(format!("echo {address} > /sys/bus/pci/drivers_probe"));
    commands
}

impl PciBus {
    pub(super) fn device(&self, address: &str) -> PathBuf {
        self.root.join("bus/pci/devices").join(address)
    }

    pub(super) fn text(&self, address: &str, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.device(address).join(file)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The name of the driver that a function is bound to.
    pub(super) fn driver(&self, address: &str) -> Option<String> {
        last_of(&fs::read_link(self.device(address).join("driver")).ok()?)
    }

    /// Whether it is in the state that [`Self::bind`] leaves, or partway there.
    pub(super) fn is_ours(&self, address: &str) -> bool {
        self.text(address, "driver_override").as_deref() == Some(VFIO_PCI)
    }

    pub(super) fn has_vfio_pci(&self) -> bool {
        self.root.join("bus/pci/drivers").join(VFIO_PCI).exists()
    }

    /// Unbinds a function from its driver and binds it to another.
    pub(super) fn bind(&self, address: &str, driver: &str) -> Result<()> {
        let device = self.device(address);
        // Set first, so that no other driver takes it in between.
        write(&device.join("driver_override"), driver)?;
        if self.driver(address).is_some() {
            write(&device.join("driver/unbind"), address)?;
        }
        write(&self.root.join("bus/pci/drivers_probe"), address)?;
        match self.driver(address) {
            Some(found) if found == driver => Ok(()),
            found => {
                let found = found.unwrap_or_else(|| "no driver".to_owned());
                let what = format!("the kernel bound {address} to {found} instead of {driver}");
                Err(Error::failed(what).hint("see the kernel's log (dmesg)"))
            }
        }
    }

    pub(super) fn give_back(&self, address: &str) -> Result<()> {
        if !is_address(address) {
            return Err(Error::refused(format!("`{address}` is not a PCI address")));
        }
        // A drive that was pulled took its binding along; we never bound its replacement.
        if !self.is_ours(address) || self.text(address, "class").as_deref() != Some(CLASS_NVME) {
            return Ok(());
        }
        let device = self.device(address);
        self.refuse_held(address)?;
        write(&device.join("driver_override"), "\n")?;
        if self.driver(address).as_deref() == Some(VFIO_PCI) {
            write(&device.join("driver/unbind"), address)?;
        }
        if self.driver(address).is_none() {
            write(&self.root.join("bus/pci/drivers_probe"), address)?;
        }
        self.await_nodes(address)
    }

    /// The files through which a program drives a function that was handed over: those of its group, with or
    /// without an IOMMU, and its own.
    pub(super) fn files_of(&self, address: &str) -> Vec<PathBuf> {
        let vfio = Path::new("/dev/vfio");
        let group = fs::read_link(self.device(address).join("iommu_group")).ok().as_deref().and_then(last_of);
        let groups = group.map(|group| [vfio.join(&group), vfio.join(format!("noiommu-{group}"))]);
        let own = fs::read_dir(self.device(address).join("vfio-dev")).into_iter().flatten().flatten();
        let own = own.map(|entry| vfio.join("devices").join(entry.file_name()));
        groups.into_iter().flatten().chain(own).collect()
    }

    /// Refuses if a program still drives it: the kernel, and so we, would wait for it.
    pub(super) fn refuse_held(&self, address: &str) -> Result<()> {
        let files = self.files_of(address);
        let ends = Instant::now() + PATIENCE;
        loop {
            let holders: String = files.iter().map(|file| holders::in_words(file)).collect();
            if holders.is_empty() {
                return Ok(());
            }
            if Instant::now() >= ends {
                let what = format!("{address} is still held{holders}");
                return Err(Error::failed(what).hint("stop that program first"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until the kernel's driver has the drive and its namespaces exist.
    pub(super) fn await_nodes(&self, address: &str) -> Result<()> {
        let ends = Instant::now() + PATIENCE;
        loop {
            let bound = self.driver(address);
            if bound.as_deref() == Some(NVME) && self.has_namespace(address) {
                return Ok(());
            }
            if Instant::now() >= ends {
                let driver = bound.unwrap_or_else(|| "no driver".to_owned());
                let what = format!("the kernel did not take {address} back: it is bound to {driver}");
                return Err(Error::failed(what).hint(format!(
                    "modprobe nvme; echo {address} > /sys/bus/pci/drivers_probe; see the kernel's log (dmesg)"
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    pub(super) fn has_namespace(&self, address: &str) -> bool {
        let entries = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
        let controllers = entries(self.device(address).join("nvme")).map(|entry| entry.path());
        controllers.flat_map(entries).any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.strip_prefix(NVME).is_some_and(is_namespace)
        })
    }
}
