//! The drives below a target, read repeatedly while the load runs.

use std::fs;
use std::path::{Path, PathBuf};

use super::emulated::{below, below_path};
use super::flash::{FlashLog, FlashWrites};
use super::health::{Health, HealthLog};
use super::temperature::Thermometer;
use crate::host::root::Root;

/// A drive below a target.
#[derive(Debug, Clone)]
pub struct WatchedDrive {
    /// Its kernel name.
    pub name: String,
    /// Its serial, if reported.
    pub serial: Option<String>,
    dir: PathBuf,
    thermometer: Option<Thermometer>,
    health: Option<HealthLog>,
    flash: Option<FlashLog>,
}

/// The result of reading a drive.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// Whether it is gone, or another drive has taken its place.
    pub lost: bool,
    /// Its temperature in degrees Celsius; none if it reports none.
    pub temperature_c: Option<f64>,
    /// Whether it is at or above the temperature from which it may throttle, or reports that it is.
    pub hot: bool,
    /// Its health log, if that can be read.
    pub health: Option<Health>,
}

impl WatchedDrive {
    /// The drives below a device of that number (major, minor), through partitions, arrays and loop
    /// devices; under a root (`/`).
    pub fn below(root: &Path, number: (u32, u32)) -> Vec<Self> {
        let root = Root::new(root);
        let drives = below(&root, &format!("{}:{}", number.0, number.1)).drives;
        drives.iter().filter_map(|dir| Self::of(&root, dir)).collect()
    }

    /// The same, below a file or a device of this host.
    pub fn below_path(path: &Path) -> Vec<Self> {
        let root = Root::new(Path::new("/"));
        below_path(path).drives.iter().filter_map(|dir| Self::of(&root, dir)).collect()
    }

    fn of(root: &Root, dir: &Path) -> Option<Self> {
        let name = dir.file_name()?.to_string_lossy().into_owned();
        let log = || HealthLog::open(&controller(dir)?, &Path::new("/dev").join(&name));
        let flash = || FlashLog::open(&controller(dir)?);
        Some(Self {
            serial: serial(dir),
            thermometer: Thermometer::of(dir),
            health: root.is_running_host().then(log).flatten(),
            flash: root.is_running_host().then(flash).flatten(),
            dir: dir.to_owned(),
            name,
        })
    }

    /// Whether it reports what it writes to flash.
    pub fn reports_flash(&self) -> bool {
        self.flash.is_some()
    }

    /// What it has written to flash so far; none if it does not report that.
    pub fn flash(&self) -> Option<FlashWrites> {
        // The controller's name may belong to another drive by now.
        (serial(&self.dir) == self.serial).then(|| self.flash.as_ref()?.read())?
    }

    /// Reads it. A drive that hangs takes long to answer.
    pub fn look(&self) -> Look {
        if !self.dir.exists() || serial(&self.dir) != self.serial {
            return Look { lost: true, ..Look::default() };
        }
        let health = self.health.as_ref().and_then(HealthLog::read);
        let thermometer = self.thermometer.as_ref();
        // The kernel reads the same log: once is enough.
        let from_health = health.as_ref().and_then(|health| health.temperature_c);
        let temperature_c = from_health.or_else(|| thermometer?.read_c());
        let beyond = temperature_c.zip(thermometer).is_some_and(|(c, of)| of.is_beyond(c));
        let says_so = match &health {
            Some(health) => health.is_hot(),
            None => thermometer.is_some_and(Thermometer::alarms),
        };
        Look { lost: false, temperature_c, hot: beyond || says_so, health }
    }
}

/// `NVMe` has the serial at the controller, other drives beside the queue.
fn serial(dir: &Path) -> Option<String> {
    let text = |path: &str| fs::read_to_string(dir.join(path)).ok().map(|text| text.trim().to_owned());
    text("device/serial").or_else(|| text("serial")).filter(|serial| !serial.is_empty())
}

/// The `NVMe` controller of a drive. With multipath, the device is a subsystem with one or more of them.
fn controller(dir: &Path) -> Option<String> {
    let is_one = |name: &String| {
        let digits = name.strip_prefix("nvme").unwrap_or_default();
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    let device = fs::canonicalize(dir.join("device")).ok()?;
    let own = device.file_name().map(|name| name.to_string_lossy().into_owned());
    let entries = fs::read_dir(&device).into_iter().flatten().flatten();
    let mut paths: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(is_one).collect();
    paths.sort();
    own.filter(is_one).or_else(|| paths.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_found_with_and_without_multipath() {
        let dir = tempfile::tempdir().unwrap();
        let drive = |device: &str| {
            let device = dir.path().join(device);
            let block = device.join("nvme0n1");
            fs::create_dir_all(&block).unwrap();
            std::os::unix::fs::symlink(&device, block.join("device")).unwrap();
            block
        };
        assert_eq!(controller(&drive("nvme3")).as_deref(), Some("nvme3"));
        fs::create_dir_all(dir.path().join("nvme-subsys0/nvme1")).unwrap();
        assert_eq!(controller(&drive("nvme-subsys0")).as_deref(), Some("nvme1"));
        assert_eq!(controller(&drive("0:0:0:0")), None, "a SCSI disk");
    }

    #[test]
    fn a_drive_is_lost_when_it_is_gone_and_when_another_took_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let drive = dir.path().join("sda");
        fs::create_dir_all(drive.join("device")).unwrap();
        fs::write(drive.join("device/serial"), "S1\n").unwrap();
        let watched = WatchedDrive::of(&Root::new(dir.path()), &drive).unwrap();
        assert_eq!((watched.name.as_str(), watched.serial.as_deref()), ("sda", Some("S1")));
        assert_eq!(watched.look(), Look::default());
        fs::write(drive.join("device/serial"), "S2\n").unwrap();
        assert!(watched.look().lost);
        fs::remove_dir_all(&drive).unwrap();
        assert!(watched.look().lost);
    }
}
