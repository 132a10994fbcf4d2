//! How warm a drive is, and when it throttles. Read by hand, as sysinfo's sensors don't say whose they are.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::host::root::Root;

/// A drive's temperature, in degrees Celsius.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Temperature {
    /// At the time the facts were read.
    pub now_c: f64,
    /// The drive may throttle from this temperature on.
    pub warning_c: Option<f64>,
    /// It may shut itself down from this temperature on.
    pub critical_c: Option<f64>,
}

/// A drive's sensor, for repeated reading. The kernel queries an `NVMe` drive at most once a second.
#[derive(Debug, Clone)]
pub(in crate::host) struct Thermometer {
    dir: PathBuf,
    /// The drive may throttle from this temperature on.
    warning_c: Option<f64>,
}

impl Thermometer {
    /// The sensor of the drive with that folder in sysfs, if it has one.
    pub(in crate::host) fn of(drive: &Path) -> Option<Self> {
        let dir = sensor(drive)?;
        let warning_c = degrees(&dir.join("temp1_max"));
        Some(Self { dir, warning_c })
    }

    /// The current degrees Celsius; none if the drive does not answer.
    pub(in crate::host) fn read_c(&self) -> Option<f64> {
        degrees(&self.dir.join("temp1_input"))
    }

    /// Whether the drive may throttle at a temperature.
    pub(in crate::host) fn is_beyond(&self, temperature_c: f64) -> bool {
        self.warning_c.is_some_and(|limit| temperature_c >= limit)
    }

    /// Whether the drive itself reports that it is too warm.
    pub(in crate::host) fn alarms(&self) -> bool {
        fs::read_to_string(self.dir.join("temp1_alarm")).is_ok_and(|text| text.trim() == "1")
    }
}

/// The temperature of the device in that folder of sysfs.
pub(in crate::host) fn read(root: &Root, dir: &str) -> Option<Temperature> {
    let sensor = sensor(&root.at(dir))?;
    Some(Temperature {
        now_c: degrees(&sensor.join("temp1_input"))?,
        warning_c: degrees(&sensor.join("temp1_max")),
        critical_c: degrees(&sensor.join("temp1_crit")),
    })
}

/// The sensor's folder, for the block device (or `NVMe` controller) in that folder.
fn sensor(dir: &Path) -> Option<PathBuf> {
    let device = dir.join("device");
    // With NVMe multipath, the device is a subsystem, whose controllers have the sensors.
    let paths = folders(&device, "nvme");
    let places = [dir.to_owned(), device.clone(), device.join("device")].into_iter().chain(paths);
    let hwmon = |place: PathBuf| [folders(&place, "hwmon"), folders(&place.join("hwmon"), "hwmon")].concat();
    places.flat_map(hwmon).find(|found| found.join("temp1_input").exists())
}

fn folders(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    let mut found: Vec<_> = named.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// A sensor gives thousandths of a degree.
fn degrees(file: &Path) -> Option<f64> {
    let thousandths: i64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Some(thousandths as f64 / 1000.0)
}
