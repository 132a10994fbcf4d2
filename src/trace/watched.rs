//! A traced drive and the part of it that is scored, as sysfs describes it and as it is stored with a trace.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::io::{SECTOR_BYTES, TracedDrive};
use crate::error::{Error, Result};
use crate::printable;

/// A drive, and a part of it: a partition, or all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// The kernel's name of the part (`nvme0n1p1`).
    pub name: String,
    /// The whole drive, which I/O is issued to.
    pub drive: TracedDrive,
    /// Where the part begins.
    pub start_bytes: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The drive's model; none if it has none, or the kernel does not say.
    pub model: Option<String>,
    /// Its serial number, likewise.
    pub serial: Option<String>,
}

impl Watched {
    /// A block device, from its folder in sysfs.
    ///
    /// # Errors
    /// If sysfs does not describe it as expected.
    pub fn of(folder: &Path) -> Result<Self> {
        let unknown = || Error::failed(format!("{} does not describe a drive", printable::path(folder)));
        // A partition's folder is inside that of its drive, but only by its real path.
        let folder = folder.canonicalize().map_err(|_| unknown())?;
        let text = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let sectors = |name: &str| text(folder.join(name)).trim().parse::<u64>().ok();
        let is_part = folder.join("partition").exists();
        let whole = if is_part { folder.parent().ok_or_else(unknown)? } else { folder.as_path() };
        let drive = TracedDrive::parse(text(whole.join("dev")).trim()).ok_or_else(unknown)?;
        let start = if is_part { sectors("start").ok_or_else(unknown)? } else { 0 };
        let about = |name: &str| {
            let text = text(whole.join("device").join(name));
            Some(printable::line(text.trim()).into_owned()).filter(|text| !text.is_empty())
        };
        Ok(Self {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            drive,
            start_bytes: start.saturating_mul(SECTOR_BYTES),
            bytes: sectors("size").ok_or_else(unknown)?.saturating_mul(SECTOR_BYTES),
            model: about("model"),
            serial: about("serial"),
        })
    }

    /// Whether it is only a part of its drive.
    pub fn is_part(&self) -> bool {
        self.start_bytes > 0
    }

    /// Whether an I/O to the drive is within the part.
    pub fn holds(&self, drive: TracedDrive, offset_bytes: u64, bytes: u32) -> bool {
        let to = offset_bytes.saturating_add(u64::from(bytes));
        let end = self.start_bytes.saturating_add(self.bytes);
        self.drive == drive && offset_bytes >= self.start_bytes && to <= end
    }

    /// As stored with a trace.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "drive": self.drive.to_string(),
            "start_bytes": self.start_bytes,
            "bytes": self.bytes,
            "model": self.model,
            "serial": self.serial,
        })
    }

    /// From what was stored; `None` if it is something else.
    pub fn from_json(of: &Value) -> Option<Self> {
        let about = |key: &str| Some(printable::line(of[key].as_str()?).into_owned());
        Some(Self {
            name: printable::line(of["name"].as_str()?).into_owned(),
            drive: TracedDrive::parse(of["drive"].as_str()?)?,
            start_bytes: of["start_bytes"].as_u64()?,
            bytes: of["bytes"].as_u64()?,
            model: about("model"),
            serial: about("serial"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_partition_is_a_part_of_its_drive() {
        let dir = tempfile::tempdir().unwrap();
        let drive = dir.path().join("devices/sda");
        create_dir_all(drive.join("sda1")).unwrap();
        create_dir_all(drive.join("device")).unwrap();
        for (name, text) in [
            ("dev", "8:0\n"),
            ("size", "4096\n"),
            ("device/model", "QEMU NVMe Ctrl   \n"),
            ("sda1/dev", "8:1\n"),
            ("sda1/partition", "1\n"),
            ("sda1/start", "2048\n"),
            ("sda1/size", "1024\n"),
        ] {
            write(drive.join(name), text).unwrap();
        }
        symlink(drive.join("sda1"), dir.path().join("8:1")).unwrap();
        let whole = Watched::of(&drive).unwrap();
        assert_eq!((whole.drive, whole.start_bytes, whole.bytes), (TracedDrive(8 << 20), 0, 2 << 20));
        let part = Watched::of(&dir.path().join("8:1")).unwrap();
        assert_eq!((part.drive, part.start_bytes, part.bytes), (TracedDrive(8 << 20), 1 << 20, 512 << 10));
        assert_eq!((part.model.as_deref(), &part.serial), (Some("QEMU NVMe Ctrl"), &None));
        assert!(part.is_part() && !whole.is_part() && part.name == "sda1");
        assert_eq!(Watched::from_json(&part.to_json()), Some(part));
        assert!(Watched::of(dir.path()).is_err());
        assert_eq!(Watched::from_json(&json!({ "name": "x", "drive": "8", "start_bytes": 0 })), None);
    }
}
