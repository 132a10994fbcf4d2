//! The block devices below a target: those directly below it, and the drives below these.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::drive::emulated::{filesystem_devices, is_emulated};
use crate::host::number_text;
use crate::host::root::Root;

/// Maximum layers below a device: a guard against cycles, although sysfs has none.
const LAYERS_MAX: u32 = 16;
/// The unit of `size` in sysfs, whatever the device's blocks are.
const SECTOR_BYTES: u64 = 512;

/// A block device of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelDevice {
    /// The kernel's name (`nvme0n1p1`).
    pub name: String,
    /// Its counters: `stat` in its folder in sysfs.
    pub stat: PathBuf,
}

/// A drive below a target. A loop device counts as one: what is below its file is not the target's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelDrive {
    /// The kernel's name of the whole drive.
    pub name: String,
    /// Its model, if reported; for a loop device `loop device`.
    pub model: Option<String>,
    /// Bytes of the whole drive.
    pub size_bytes: u64,
    /// Whether it is a real drive, as far as is known: it has a model that is not a hypervisor's.
    pub real: bool,
}

/// The block devices below a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// The devices below the file system, or the target itself if it is devices.
    pub top: Vec<LevelDevice>,
    /// The devices at the bottom of arrays and device mappers, as used there: for a partly used drive, the
    /// partition. Loop devices are not followed further.
    pub bottom: Vec<LevelDevice>,
    /// The drives that contain those at the bottom.
    pub drives: Vec<LevelDrive>,
}

impl Levels {
    /// The levels below the device of that number (major, minor), under a root (`/`).
    pub fn below(root: &Path, number: (u32, u32)) -> Self {
        let root = Root::new(root);
        Self::of(&root, &[format!("{}:{}", number.0, number.1)])
    }

    /// The levels below a file or a device of this host; empty where no block device is below (tmpfs, a network).
    pub fn below_path(path: &Path) -> Self {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let root = Root::new(Path::new("/"));
        let (Ok(metadata), Ok(path)) = (fs::metadata(path), path.canonicalize()) else {
            return Self::default();
        };
        if metadata.file_type().is_block_device() {
            return Self::of(&root, &[number_text(metadata.rdev())]);
        }
        Self::of(&root, &filesystem_devices(&root, &path, metadata.dev()).0)
    }

    fn of(root: &Root, numbers: &[String]) -> Self {
        let dir = |number: &String| fs::canonicalize(root.at(&format!("sys/dev/block/{number}"))).ok();
        let tops: Vec<PathBuf> = numbers.iter().filter_map(dir).collect();
        let bottoms: Vec<PathBuf> = tops.iter().flat_map(|top| bottom_of(top, LAYERS_MAX)).collect();
        let mut levels = Self::default();
        tops.iter().for_each(|dir| add(&mut levels.top, device(dir)));
        bottoms.iter().for_each(|dir| add(&mut levels.bottom, device(dir)));
        bottoms.iter().for_each(|dir| add(&mut levels.drives, drive(dir)));
        levels
    }

    /// Adds what is below another part of the target; each device counts once.
    pub fn join(&mut self, other: Self) {
        other.top.into_iter().for_each(|device| add(&mut self.top, Some(device)));
        other.bottom.into_iter().for_each(|device| add(&mut self.bottom, Some(device)));
        other.drives.into_iter().for_each(|drive| add(&mut self.drives, Some(drive)));
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, new: Option<T>) {
    list.extend(new.filter(|new| !list.contains(new)));
}

fn device(dir: &Path) -> Option<LevelDevice> {
    let name = dir.file_name()?.to_string_lossy().into_owned();
    Some(LevelDevice { name, stat: dir.join("stat") })
}

/// The drive that a device is, or is part of.
fn drive(dir: &Path) -> Option<LevelDrive> {
    let whole = if dir.join("partition").exists() { dir.parent()? } else { dir };
    let text = |path: &str| fs::read_to_string(whole.join(path)).ok().map(|text| text.trim().to_owned());
    let is_loop = whole.join("loop").is_dir();
    let model = if is_loop {
        Some("loop device".into())
    } else {
        text("device/model").or_else(|| text("device/device/model")).filter(|model| !model.is_empty())
    };
    Some(LevelDrive {
        name: whole.file_name()?.to_string_lossy().into_owned(),
        real: !is_loop && model.as_deref().is_some_and(|model| !is_emulated(model)),
        model,
        size_bytes: text("size")
            .and_then(|sectors| sectors.parse::<u64>().ok())
            .map_or(0, |sectors| sectors.saturating_mul(SECTOR_BYTES)),
    })
}

/// The devices at the bottom of a device. A partition of an array is on the members of the whole array.
fn bottom_of(dir: &Path, layers: u32) -> Vec<PathBuf> {
    let Some(layers) = layers.checked_sub(1) else { return vec![dir.to_owned()] };
    let whole = if dir.join("partition").exists() { dir.parent().unwrap_or(dir) } else { dir };
    let entries = fs::read_dir(whole.join("slaves")).into_iter().flatten().flatten();
    let mut members: Vec<PathBuf> = entries.filter_map(|entry| fs::canonicalize(entry.path()).ok()).collect();
    members.sort();
    if members.is_empty() {
        return vec![dir.to_owned()];
    }
    members.iter().flat_map(|member| bottom_of(member, layers)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A fake host: an array with a partition, made of a partition of one drive and of a loop device.
    fn host() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join("sys").join(path);
        let write = |path: &str, text: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        };
        write("block/nvme0n1/device/model", "Drive A\n");
        write("block/nvme0n1/size", "2000\n");
        write("block/nvme0n1/nvme0n1p1/partition", "1\n");
        write("block/nvme0n1/nvme0n1p1/size", "1000\n");
        write("block/loop3/loop/backing_file", "/srv/file\n");
        write("block/loop3/size", "500\n");
        write("block/md0/md0p1/partition", "1\n");
        for made in ["block/md0/slaves", "dev/block"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        for (member, to) in [("nvme0n1p1", "nvme0n1/nvme0n1p1"), ("loop3", "loop3")] {
            symlink(format!("../../{to}"), at(&format!("block/md0/slaves/{member}"))).unwrap();
        }
        for (number, to) in
            [("9:0", "md0"), ("9:1", "md0/md0p1"), ("259:1", "nvme0n1/nvme0n1p1"), ("259:0", "nvme0n1")]
        {
            symlink(format!("../../block/{to}"), at(&format!("dev/block/{number}"))).unwrap();
        }
        dir
    }

    fn names(devices: &[LevelDevice]) -> Vec<&str> {
        devices.iter().map(|device| device.name.as_str()).collect()
    }

    #[test]
    fn an_array_is_on_its_members_and_a_loop_device_counts_as_a_drive() {
        let host = host();
        let levels = Levels::below(host.path(), (9, 0));
        assert_eq!(names(&levels.top), ["md0"]);
        assert_eq!(names(&levels.bottom), ["loop3", "nvme0n1p1"]);
        let drives: Vec<_> =
            levels.drives.iter().map(|d| (d.model.as_deref(), d.size_bytes, d.real)).collect();
        assert_eq!(drives, [(Some("loop device"), 256_000, false), (Some("Drive A"), 1_024_000, true)]);
        let part = Levels::below(host.path(), (9, 1));
        assert_eq!((names(&part.top), part.bottom), (vec!["md0p1"], levels.bottom));
    }

    #[test]
    fn a_partition_counts_alone_and_nothing_twice() {
        let host = host();
        let mut levels = Levels::below(host.path(), (259, 1));
        assert_eq!((names(&levels.top), names(&levels.bottom)), (vec!["nvme0n1p1"], vec!["nvme0n1p1"]));
        levels.join(Levels::below(host.path(), (259, 1)));
        levels.join(Levels::below(host.path(), (259, 0)));
        assert_eq!(names(&levels.bottom), ["nvme0n1p1", "nvme0n1"]);
        assert_eq!(levels.drives.len(), 1, "one drive");
        assert_eq!(Levels::below(host.path(), (1, 1)), Levels::default());
    }
}
