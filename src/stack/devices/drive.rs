//! A drive of the host, identified by its stable attributes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::{Device, Facts};
use crate::printable::Shown as _;
use crate::units::approx_size;

/// A drive of the host, identified by its stable attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drive {
    /// The kernel's name when the plan was made.
    pub name: String,
    /// Its node.
    pub path: PathBuf,
    /// `major:minor` when the plan was made.
    pub number: String,
    /// Model, if known.
    pub model: Option<String>,
    /// Serial, if known.
    pub serial: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
}

impl Drive {
    /// The drive behind a device.
    pub fn of(device: &Device) -> Self {
        Self {
            name: device.name.clone(),
            path: device.path.clone(),
            number: device.number.clone(),
            model: device.model.clone(),
            serial: device.serial.clone(),
            size_bytes: device.size_bytes,
        }
    }

    /// In one line: node, model, serial and size.
    pub(crate) fn in_full(&self) -> String {
        let model = self.model.as_deref().unwrap_or("unknown model");
        let serial =
            self.serial.as_deref().map_or("no serial".to_owned(), |serial| format!("serial {serial}"));
        format!("{}, {model}, {serial}, {}", self.path.shown(), approx_size(self.size_bytes))
    }

    /// The drive's current device.
    ///
    /// # Errors
    /// Refused if it is gone, or another one has taken its place.
    pub(crate) fn find(&self) -> Result<Device> {
        self.among(Facts::read_devices())
    }

    fn among(&self, devices: Vec<Device>) -> Result<Device> {
        let at = devices.into_iter().find(|device| device.number == self.number);
        let Some(device) = at else {
            return Err(Error::refused(format!("{} is no longer there", self.describe()))
                .hint("it was removed in the meantime; plan again"));
        };
        let same =
            device.name == self.name && device.serial == self.serial && device.size_bytes == self.size_bytes;
        if same {
            return Ok(device);
        }
        let serial = device.serial.as_deref().unwrap_or("none");
        let what = format!(
            "{} is not {}: its serial is {serial}, and it has {} bytes",
            device.path.shown(),
            self.describe(),
            device.size_bytes
        );
        Err(Error::refused(what).hint("it was replaced in the meantime; plan again"))
    }

    /// The devices that may be this drive: exactly it within the same boot. After a reboot, or after it was
    /// unplugged and plugged in again, names and numbers may have changed, and callers must check an id that
    /// is on the device.
    pub(crate) fn candidates(&self, same_boot: bool) -> Vec<Device> {
        let devices = Facts::read_devices();
        match self.among(devices.clone()) {
            Ok(device) if same_boot => vec![device],
            _ => self.alike(devices, same_boot),
        }
    }

    /// The devices with the same serial and size; with the same name, if it has no serial.
    fn alike(&self, devices: Vec<Device>, same_boot: bool) -> Vec<Device> {
        let same = |device: &Device| {
            let same_name = if self.serial.is_some() {
                device.serial == self.serial
            } else {
                // Within the same boot, a drive without a serial whose number has changed is another drive.
                !same_boot && device.name == self.name && device.serial.is_none()
            };
            same_name && device.size_bytes == self.size_bytes
        };
        devices.into_iter().filter(same).collect()
    }

    /// `/dev/nvme0n1 (serial S1)`.
    pub(crate) fn describe(&self) -> String {
        match &self.serial {
            Some(serial) => format!("{} (serial {serial})", self.path.shown()),
            None => self.path.shown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    fn drive() -> Drive {
        Drive {
            name: "nvme9n1".into(),
            path: "/dev/nvme9n1".into(),
            number: "259:99".into(),
            model: None,
            serial: Some("S1".into()),
            size_bytes: 1 << 30,
        }
    }

    fn device(drive: &Drive) -> Device {
        let Drive { name, path, number, model, serial, size_bytes } = drive.clone();
        let other = capable_host().devices.remove(0);
        Device { name, path, number, by_id: Vec::new(), model, serial, size_bytes, ..other }
    }

    #[test]
    fn a_drive_is_the_same_only_with_its_number_name_serial_and_size() {
        let same = device(&drive());
        assert_eq!(drive().among(vec![same.clone()]).unwrap().path, drive().path);
        let others = [
            Device { serial: Some("S2".into()), ..same.clone() },
            Device { serial: None, ..same.clone() },
            Device { size_bytes: 2 << 30, ..same.clone() },
            Device { name: "nvme8n1".into(), ..same.clone() },
        ];
        for other in others {
            let error = drive().among(vec![other]).unwrap_err();
            assert_eq!(error.exit_status(), 3);
            assert!(error.what.contains("is not /dev/nvme9n1 (serial S1)"), "{error}");
        }
        let gone = drive().among(vec![Device { number: "259:98".into(), ..same }]).unwrap_err();
        assert!(gone.what.contains("no longer there"), "{gone}");
    }

    #[test]
    fn a_drive_is_found_again_by_its_serial_and_without_one_by_its_name_after_a_boot() {
        let moved = Device { name: "nvme3n1".into(), number: "259:3".into(), ..device(&drive()) };
        let other = Device { serial: Some("S2".into()), ..moved.clone() };
        let found = drive().alike(vec![other, moved.clone()], true);
        assert_eq!(found, [moved]);
        let nameless = Drive { serial: None, ..drive() };
        let same_name = device(&nameless);
        assert_eq!(nameless.alike(vec![same_name.clone()], false), std::slice::from_ref(&same_name));
        assert!(nameless.alike(vec![same_name], true).is_empty());
    }
}
