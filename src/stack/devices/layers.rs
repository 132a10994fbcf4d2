//! The device that a command layer makes: finding it by its path, and the devices it stands on.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::node;
use crate::error::Result;
use crate::host::number_text;

/// Maximum depth of layers below a device; sysfs has no cycles, but a cycle must not hang us.
const DEPTH_MAX: u32 = 16;
/// Digits of a stack's id.
const ID_DIGITS: usize = 16;

/// The kernel's node of the block device at that path, which may be a link or another node; none if there is none.
///
/// # Errors
/// Refused if that node belongs to another device.
pub(crate) fn layer_node(path: &Path) -> Result<Option<PathBuf>> {
    let found = fs::metadata(path).ok().filter(|found| found.file_type().is_block_device());
    let Some(found) = found else { return Ok(None) };
    let number = number_text(found.rdev());
    let name = fs::canonicalize(Path::new("/sys/dev/block").join(&number)).ok();
    let name = name.and_then(|dir| Some(dir.file_name()?.to_string_lossy().into_owned()));
    // A stale node whose device is gone.
    let Some(name) = name else { return Ok(None) };
    // A stale node's number may meanwhile belong to someone else's device.
    let mapped = fs::read_to_string(Path::new("/sys/class/block").join(&name).join("dm/name"));
    if mapped.is_ok_and(|mapped| !shares_id(&mapped, &path.to_string_lossy())) {
        return Ok(None);
    }
    node::of(&name)
}

/// Whether a stack's id in the path also occurs in the name.
fn shares_id(name: &str, path: &str) -> bool {
    let ids = path.split(|c: char| !c.is_ascii_hexdigit()).flat_map(|run| {
        let last = run.len().checked_sub(ID_DIGITS).map_or(0, |last| last + 1);
        (0..last).map(move |at| &run[at..at + ID_DIGITS])
    });
    ids.into_iter().any(|id| name.contains(id))
}

/// The kernel's name of a node.
fn name_of(node: &Path) -> String {
    node.strip_prefix("/dev").unwrap_or(node).to_string_lossy().replace('/', "!")
}

/// The names in a `slaves` or `holders` folder of a block device in sysfs.
fn listed(sys: &Path, name: &str, list: &str) -> Vec<String> {
    let entries = fs::read_dir(sys.join(name).join(list)).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The lowest devices below this one that are not in `own`; the device itself if it stands on nothing.
pub(crate) fn foreign_ground(node: &Path, own: &[PathBuf]) -> Vec<String> {
    let own: Vec<String> = own.iter().map(|node| name_of(node)).collect();
    let mut found = Vec::new();
    ground(Path::new("/sys/class/block"), &name_of(node), &own, DEPTH_MAX, &mut found);
    found.sort();
    found.dedup();
    found
}

fn ground(sys: &Path, name: &str, own: &[String], depth: u32, found: &mut Vec<String>) {
    if own.iter().any(|own| own == name) {
        return;
    }
    // A partition stands on the devices below its drive or array, which are not the stack's.
    let below = listed(sys, name, "slaves");
    if below.is_empty() || depth == 0 {
        found.push(name.to_owned());
        return;
    }
    below.iter().for_each(|below| ground(sys, below, own, depth - 1, found));
}

/// The devices built on a node, each with its device-mapper name.
pub(crate) fn holders_of(node: &Path) -> Vec<(PathBuf, Option<String>)> {
    let sys = Path::new("/sys/class/block");
    let holder = |name: String| {
        let mapped = fs::read_to_string(sys.join(&name).join("dm/name")).ok();
        (Path::new("/dev").join(name.replace('!', "/")), mapped.map(|mapped| mapped.trim().to_owned()))
    };
    listed(sys, &name_of(node), "holders").into_iter().map(holder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_device_stands_on_all_that_is_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path();
        for (name, below) in
            [("dm-1", vec!["dm-0"]), ("dm-0", vec!["sda", "sdb"]), ("sda", vec![]), ("sdb", vec![])]
        {
            let slaves = sys.join(name).join("slaves");
            fs::create_dir_all(&slaves).unwrap();
            below.iter().for_each(|below| symlink(sys.join(below), slaves.join(below)).unwrap());
        }
        let foreign = |name: &str, own: &[&str]| {
            let own: Vec<_> = own.iter().map(ToString::to_string).collect();
            let mut found = Vec::new();
            ground(sys, name, &own, DEPTH_MAX, &mut found);
            found
        };
        assert_eq!(foreign("dm-1", &["sda", "sdb"]), [""; 0]);
        assert_eq!(foreign("dm-1", &["dm-0"]), [""; 0]);
        assert_eq!(foreign("dm-1", &["sda"]), ["sdb"]);
        assert_eq!(foreign("sdb", &["sda"]), ["sdb"], "it stands on nothing");
    }

    #[test]
    fn a_mapping_of_another_name_is_not_the_layers() {
        let path = "/dev/mapper/stac0123456789abcdef-data";
        assert!(shares_id("stac0123456789abcdef-data\n", path));
        assert!(!shares_id("theirs-data", path) && !shares_id("", path));
        assert!(!shares_id("0123456789abcdee", path));
    }

    #[test]
    fn only_a_block_device_is_a_layers() {
        assert_eq!(layer_node(Path::new("/dev/mapper/no-such")).unwrap(), None);
        assert_eq!(layer_node(Path::new("/dev/null")).unwrap(), None);
    }
}
