//! Whether the drive below a file or a device is emulated by a hypervisor.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::host::root::Root;
use crate::host::{mounts, number_text};

/// Prefixes of the models of emulated drives.
const MODELS: [&str; 5] = ["QEMU ", "VMware Virtual", "VBOX", "ORCL-VBOX", "VirtualBox"];
/// Maximum layers below a device: a guard against cycles, although sysfs has none.
const LAYERS_MAX: u32 = 16;

/// The model of an emulated drive below the file or device, through partitions, arrays and loop devices; none
/// if no drive is known to be emulated.
pub fn emulated_drive(file: &File) -> Option<String> {
    emulated_model(&below_open(file)?.drives)
}

/// Everything below a file or a device, by its folders in sysfs.
#[derive(Debug, Default)]
pub(in crate::host) struct Below {
    /// The drives.
    pub drives: Vec<PathBuf>,
    /// The md arrays on the way to them.
    pub arrays: Vec<PathBuf>,
    /// The ids of the Btrfs file systems on the way to them.
    pub btrfs: Vec<String>,
}

impl Below {
    fn of(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), |mut found, one| {
            found.drives.extend(one.drives);
            found.arrays.extend(one.arrays);
            found.btrfs.extend(one.btrfs);
            found
        })
    }
}

fn below_open(file: &File) -> Option<Below> {
    let metadata = file.metadata().ok()?;
    let root = Root::new(Path::new("/"));
    if metadata.file_type().is_block_device() {
        return Some(below_device(&root, &number_text(metadata.rdev()), LAYERS_MAX));
    }
    // A newly created file has no name yet, so only its folder is known.
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    Some(below_filesystem(&root, &path, metadata.dev(), LAYERS_MAX))
}

fn below_file(root: &Root, path: &Path, layers: u32) -> Below {
    let Ok(metadata) = fs::metadata(root.at(&path.to_string_lossy())) else { return Below::default() };
    below_filesystem(root, path, metadata.dev(), layers)
}

/// What lies below the file system with that device number, which holds that path.
fn below_filesystem(root: &Root, path: &Path, device: u64, layers: u32) -> Below {
    let (devices, btrfs) = filesystem_devices(root, path, device);
    let mut found = Below::of(devices.iter().map(|number| below_device(root, number, layers)));
    found.drives.dedup();
    found.btrfs.extend(btrfs);
    found
}

/// The devices of the file system with that device number, which holds that path; of Btrfs all of them, and
/// the file system's id.
pub(in crate::host) fn filesystem_devices(
    root: &Root,
    path: &Path,
    device: u64,
) -> (Vec<String>, Option<String>) {
    if rustix::fs::major(device) != 0 {
        return (vec![number_text(device)], None);
    }
    mounted_devices(root, path).unwrap_or_default()
}

/// Btrfs gives its files numbers that belong to no device: the mount names one device, and sysfs the others.
/// Also returns the file system's id.
fn mounted_devices(root: &Root, path: &Path) -> Option<(Vec<String>, Option<String>)> {
    let source = mounts::source_of(root, path)?;
    let number = number_text(fs::metadata(root.at(&source)).ok()?.rdev());
    let name = Path::new(&source).file_name()?.to_string_lossy().into_owned();
    let of_filesystem = |id: &String| root.has(&format!("sys/fs/btrfs/{id}/devices/{name}"));
    let filesystem = root.names("sys/fs/btrfs").into_iter().find(of_filesystem);
    let of = |id: &String| root.names(&format!("sys/fs/btrfs/{id}/devices"));
    let fellows = filesystem.as_ref().map(of).unwrap_or_default();
    let fellow = |name: &String| root.text(&format!("sys/class/block/{name}/dev"));
    let fellows = fellows.iter().filter_map(fellow).filter(|fellow| *fellow != number);
    let devices = std::iter::once(number.clone()).chain(fellows.collect::<Vec<_>>()).collect();
    Some((devices, filesystem))
}

fn below_device(root: &Root, number: &str, layers: u32) -> Below {
    let dir = fs::canonicalize(root.at(&format!("sys/dev/block/{number}")));
    dir.map(|dir| below_dir(root, &dir, layers)).unwrap_or_default()
}

fn below_dir(root: &Root, dir: &Path, layers: u32) -> Below {
    let Some(layers) = layers.checked_sub(1) else { return Below::default() };
    if dir.join("partition").exists() {
        return dir.parent().map(|whole| below_dir(root, whole, layers)).unwrap_or_default();
    }
    if let Ok(file) = fs::read_to_string(dir.join("loop/backing_file")) {
        return below_file(root, Path::new(file.trim()), layers);
    }
    let members = fs::read_dir(dir.join("slaves")).into_iter().flatten().flatten();
    let members = members.filter_map(|entry| fs::canonicalize(entry.path()).ok());
    let mut found = Below::of(members.map(|member| below_dir(root, &member, layers)));
    if found.drives.is_empty() {
        found.drives.push(dir.to_owned());
    }
    if dir.join("md").is_dir() {
        found.arrays.push(dir.to_owned());
    }
    found
}

/// The first model of an emulated drive.
fn emulated_model(drives: &[PathBuf]) -> Option<String> {
    drives.iter().find_map(|dir| {
        let text = |path: &str| fs::read_to_string(dir.join(path)).ok().map(|text| text.trim().to_owned());
        let model = text("device/model").or_else(|| text("device/device/model"))?;
        is_emulated(&model).then_some(model)
    })
}

/// Whether a model is a hypervisor's.
pub(in crate::host) fn is_emulated(model: &str) -> bool {
    MODELS.iter().any(|known| model.starts_with(known))
}

/// What lies below the device of that number, through partitions, arrays and loop devices.
pub(in crate::host) fn below(root: &Root, number: &str) -> Below {
    below_device(root, number, LAYERS_MAX)
}

/// The same, below a file or a device.
pub(in crate::host) fn below_path(path: &Path) -> Below {
    let root = Root::new(Path::new("/"));
    let Ok(metadata) = fs::metadata(path) else { return Below::default() };
    if metadata.file_type().is_block_device() {
        return below_device(&root, &number_text(metadata.rdev()), LAYERS_MAX);
    }
    let Ok(path) = path.canonicalize() else { return Below::default() };
    below_file(&root, &path, LAYERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn an_unnamed_file_is_on_the_drives_of_its_folder() {
        let dir = tempfile::tempdir_in(std::env::temp_dir()).unwrap();
        let file = tempfile::tempfile_in(dir.path()).unwrap();
        assert_eq!(below_open(&file).unwrap().drives, below_path(dir.path()).drives);
    }

    /// A host with an array on a partition of one drive and on another drive whole.
    fn host(first: &str, second: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let make = |path: &str| fs::create_dir_all(at(path)).unwrap();
        make("sys/block/nvme0n1/nvme0n1p1");
        make("sys/block/nvme0n1/device");
        make("sys/block/nvme1n1/device");
        make("sys/block/md0/slaves");
        make("sys/dev/block");
        fs::write(at("sys/block/nvme0n1/nvme0n1p1/partition"), "1\n").unwrap();
        fs::write(at("sys/block/nvme0n1/device/model"), first).unwrap();
        fs::write(at("sys/block/nvme1n1/device/model"), second).unwrap();
        symlink("../../nvme0n1/nvme0n1p1", at("sys/block/md0/slaves/nvme0n1p1")).unwrap();
        symlink("../../nvme1n1", at("sys/block/md0/slaves/nvme1n1")).unwrap();
        for (number, device) in [("259:0", "nvme0n1"), ("259:1", "nvme1n1"), ("9:0", "md0")] {
            symlink(format!("../../block/{device}"), at(&format!("sys/dev/block/{number}"))).unwrap();
        }
        symlink("../../block/nvme0n1/nvme0n1p1", at("sys/dev/block/259:2")).unwrap();
        dir
    }

    fn found(host: &tempfile::TempDir, number: &str) -> Option<String> {
        emulated_model(&below(&Root::new(host.path()), number).drives)
    }

    #[test]
    fn an_emulated_drive_is_known_through_partitions_and_arrays() {
        let emulated = "QEMU NVMe Ctrl                          \n";
        let host = host(emulated, "KIOXIA KCMY1RUG3T84\n");
        for number in ["259:0", "259:2", "9:0"] {
            assert_eq!(found(&host, number).as_deref(), Some("QEMU NVMe Ctrl"), "{number}");
        }
        assert_eq!(found(&host, "259:1"), None);
        assert_eq!(found(&host, "7:0"), None, "a device that is not there");
    }

    #[test]
    fn real_drives_are_not_emulated() {
        let host = host("Samsung SSD 990 PRO\n", "Amazon EC2 NVMe Instance Storage\n");
        assert_eq!(found(&host, "9:0"), None);
    }

    #[test]
    fn the_mount_nearest_to_a_file_is_its_source() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:40 / /mnt/a rw shared:1 - btrfs /dev/nvme0n1 rw\n\
             31 22 0:41 / /mnt/a\\040b rw - btrfs /dev/nvme1n1 rw\n";
        fs::write(dir.path().join("proc/self/mountinfo"), mounts).unwrap();
        let source = |path: &str| mounts::source_of(&Root::new(dir.path()), Path::new(path));
        assert_eq!(source("/mnt/a/file").as_deref(), Some("/dev/nvme0n1"));
        assert_eq!(source("/mnt/ab").as_deref(), Some("/dev/sda1"));
        assert_eq!(source("/mnt/a b/file").as_deref(), Some("/dev/nvme1n1"));
    }
}
