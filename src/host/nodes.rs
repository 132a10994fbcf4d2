//! Block devices and their partitions as nodes: names, folders, numbers.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use super::root::Root;

/// A block device or a partition of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockNode {
    /// The kernel's name; `!` stands for a slash.
    pub(super) name: String,
    /// Its folder in sysfs.
    pub(super) dir: String,
    /// `major:minor`.
    pub(super) number: String,
    /// The device that it is a partition of.
    pub(super) whole: Option<String>,
}

/// All block devices and their partitions.
pub(super) fn nodes(root: &Root) -> Vec<BlockNode> {
    let mut nodes = Vec::new();
    for name in root.names("sys/block") {
        let dir = format!("sys/block/{name}");
        // The single paths of an NVMe multipath device are hidden: no node, no I/O.
        if root.number(&format!("{dir}/hidden")) == Some(1) {
            continue;
        }
        let number = root.text(&format!("{dir}/dev")).unwrap_or_default();
        // The kernel names a partition after its device.
        for part in root.names(&dir).into_iter().filter(|part| part.starts_with(&name)) {
            let dir = format!("{dir}/{part}");
            if root.has(&format!("{dir}/partition")) {
                let number = root.text(&format!("{dir}/dev")).unwrap_or_default();
                nodes.push(BlockNode { name: part, dir, number, whole: Some(name.clone()) });
            }
        }
        nodes.push(BlockNode { name, dir, number, whole: None });
    }
    nodes
}

/// What udev knows of a device, by key.
pub(super) fn udev_properties(root: &Root, number: &str) -> BTreeMap<String, String> {
    let text = root.text(&format!("run/udev/data/b{number}")).unwrap_or_default();
    let properties = text.lines().filter_map(|line| line.strip_prefix("E:")?.split_once('='));
    properties.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// `major:minor` of a block device's node.
pub(crate) fn device_number(path: &Path) -> Option<String> {
    number_of(path, FileType::BlockDevice)
}

/// `major:minor` of a character device's node.
pub(super) fn character_number(path: &Path) -> Option<String> {
    number_of(path, FileType::CharacterDevice)
}

fn number_of(path: &Path, kind: FileType) -> Option<String> {
    // The type is known without asking a file server, which may not answer.
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    let is_device = FileType::from_raw_mode(found.stx_mode.into()) == kind;
    is_device.then(|| format!("{}:{}", found.stx_rdev_major, found.stx_rdev_minor))
}

/// `major:minor` as sysfs writes it.
pub(crate) fn number_text(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}
