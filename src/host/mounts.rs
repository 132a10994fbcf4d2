//! Mounts and their mount points.

use std::path::{Path, PathBuf};

use procfs_core::process::MountInfo;
use serde::Serialize;

use super::root::Root;

/// A mount of a block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MountPoint {
    /// Where.
    pub dir: String,
    /// What, as it was named.
    pub source: String,
    /// The file system's type.
    pub filesystem: String,
    /// Its options.
    pub options: String,
}

/// A mount, of which the source may be several devices.
pub(super) struct Mount {
    /// `major:minor` of the file system.
    pub(super) number: String,
    /// The folder of the file system that is its top.
    pub(super) top: String,
    pub(super) point: String,
    pub(super) kind: String,
    pub(super) source: String,
    /// The mount's own options, then the file system's; each in alphabetical order.
    pub(super) options: Vec<String>,
}

impl Mount {
    /// The devices of the source: bcachefs joins its devices with colons.
    pub(super) fn sources(&self) -> impl Iterator<Item = &str> {
        self.source.split(':')
    }
}

/// The mounts of this process.
pub(super) fn own(root: &Root) -> Vec<Mount> {
    read(root, "proc/self/mountinfo")
}

/// The mounts of this process, and those of PID 1 in case this one has another namespace.
pub(super) fn all(root: &Root) -> Vec<Mount> {
    [own(root), read(root, "proc/1/mountinfo")].into_iter().flatten().collect()
}

fn read(root: &Root, file: &str) -> Vec<Mount> {
    root.text(file).unwrap_or_default().lines().filter_map(mount).collect()
}

/// The source of the mount that a path lies in.
pub(super) fn source_of(root: &Root, path: &Path) -> Option<String> {
    let around = own(root).into_iter().filter(|mount| path.starts_with(&mount.point));
    // A later mount hides an earlier one.
    around.max_by_key(|mount| mount.point.len()).map(|mount| mount.source)
}

/// The sources of everything mounted at exactly that folder in this process's namespace, the lowest
/// first.
pub(crate) fn mounted_at(dir: &Path) -> std::io::Result<Vec<String>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    let here = text.lines().filter_map(mount).filter(|mount| Path::new(&mount.point) == dir);
    Ok(here.map(|mount| mount.source).collect())
}

/// Where the file system that a folder lies on is mounted, in this process's namespace.
pub(crate) fn mount_point_of(dir: &Path) -> std::io::Result<PathBuf> {
    let dir = dir.canonicalize()?;
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    let around = text.lines().filter_map(mount).map(|mount| PathBuf::from(mount.point));
    let around = around.filter(|point| dir.starts_with(point));
    Ok(around.max_by_key(|point| point.as_os_str().len()).unwrap_or_else(|| PathBuf::from("/")))
}

/// A mount point at or below that folder in this process's namespace; none if there is none.
pub(crate) fn mounted_below(dir: &Path) -> std::io::Result<Option<PathBuf>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    let mut points = text.lines().filter_map(mount).map(|mount| PathBuf::from(mount.point));
    Ok(points.find(|point| point.starts_with(dir)))
}

/// The paths of a folder: its own, and those at which bind mounts show it.
pub(crate) fn paths_of(dir: &Path) -> Vec<PathBuf> {
    paths_among(&own(&Root::new(Path::new("/"))), dir)
}

fn paths_among(mounts: &[Mount], dir: &Path) -> Vec<PathBuf> {
    let around = mounts.iter().filter(|mount| dir.starts_with(&mount.point));
    // A later mount hides an earlier one.
    let Some(around) = around.max_by_key(|mount| mount.point.len()) else { return vec![dir.to_owned()] };
    let within = dir.strip_prefix(&around.point).map(|within| Path::new(&around.top).join(within));
    let Ok(within) = within else { return vec![dir.to_owned()] };
    let same = mounts.iter().filter(|mount| mount.number == around.number);
    let shown =
        same.filter_map(|mount| Some(Path::new(&mount.point).join(within.strip_prefix(&mount.top).ok()?)));
    [dir.to_owned()].into_iter().chain(shown).collect()
}

/// A line that procfs rejects is still a mount: the guard must not miss it.
fn plain(line: &str) -> Option<Mount> {
    let (place, what) = line.split_once(" - ")?;
    let place: Vec<&str> = place.split(' ').collect();
    let [_, _, number, top, point, own, ..] = place.as_slice() else { return None };
    let mut what = what.splitn(3, ' ');
    let (kind, source) = (what.next()?, what.next()?);
    let options = own.split(',').chain(what.next().into_iter().flat_map(|all| all.split(',')));
    Some(Mount {
        number: (*number).to_owned(),
        top: unescape(top),
        point: unescape(point),
        kind: kind.to_owned(),
        source: unescape(source),
        options: options.map(str::to_owned).collect(),
    })
}

fn mount(line: &str) -> Option<Mount> {
    let Ok(parsed) = MountInfo::from_line(line) else { return plain(line) };
    let MountInfo { majmin, root, mount_point, mount_options, fs_type, mount_source, super_options, .. } =
        parsed;
    let option = |(name, value): (String, Option<String>)| match value {
        Some(value) => format!("{name}={value}"),
        None => name,
    };
    let options = [mount_options, super_options].map(|options| {
        let mut options: Vec<String> = options.into_iter().map(option).collect();
        options.sort();
        options
    });
    Some(Mount {
        number: majmin,
        top: unescape(&root),
        point: unescape(&mount_point.to_string_lossy()),
        kind: fs_type,
        // procfs reads a source of this name as none.
        source: mount_source.map_or_else(|| "none".to_owned(), |source| unescape(&source)),
        options: options.concat(),
    })
}

/// The mounts of block devices.
pub(super) fn block_mounts(root: &Root) -> Vec<MountPoint> {
    let mut found: Vec<MountPoint> = Vec::new();
    // Only the file system of a device has a number that is not one of the kernel's anonymous ones.
    let is_block = |mount: &Mount| mount.source.starts_with("/dev/") || !mount.number.starts_with("0:");
    for mount in all(root).into_iter().filter(is_block) {
        let point = MountPoint {
            dir: mount.point,
            source: mount.source,
            filesystem: mount.kind,
            options: mount.options.join(","),
        };
        if !found.contains(&point) {
            found.push(point);
        }
    }
    found
}

/// Undoes the kernel's octal escapes, which procfs leaves in mountinfo: `\040` is a space.
pub(super) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| byte == b'\\');
        let octal = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(byte));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_with_its_escapes_and_several_sources() {
        let line = r"36 25 0:45 /sub /mnt/my\040disk rw,noatime shared:1 - bcachefs /dev/sda:/dev/sdb rw";
        let mount = mount(line).unwrap();
        assert_eq!((mount.point.as_str(), mount.top.as_str()), ("/mnt/my disk", "/sub"));
        assert_eq!(mount.number, "0:45");
        assert_eq!(mount.sources().collect::<Vec<_>>(), ["/dev/sda", "/dev/sdb"]);
        assert_eq!(mount.options, ["noatime", "rw", "rw"]);
    }

    #[test]
    fn a_mount_without_a_source_or_with_unknown_fields_is_not_lost() {
        let mount = mount("1 0 0:50 / / rw shared:2 strange:7 - ext4 none rw,data=ordered").unwrap();
        assert_eq!((mount.source.as_str(), mount.kind.as_str()), ("none", "ext4"));
        assert_eq!(mount.options, ["rw", "data=ordered", "rw"]);
    }

    #[test]
    fn a_line_that_procfs_refuses_is_still_a_mount() {
        let unknown_group =
            r"36 25 8:1 /sub /mnt/my\040disk rw,noatime shared:new - ext4 /dev/sda1 rw,data=ordered";
        let without_options = "36 25 8:1 / /mnt ro - ext4 /dev/sda1";
        for line in [unknown_group, without_options] {
            assert!(MountInfo::from_line(line).is_err(), "procfs reads {line}");
        }

        let full = mount(unknown_group).unwrap();
        assert_eq!((full.point.as_str(), full.top.as_str()), ("/mnt/my disk", "/sub"));
        assert_eq!((full.number.as_str(), full.kind.as_str()), ("8:1", "ext4"));
        assert_eq!(full.source, "/dev/sda1");
        assert_eq!(full.options, ["rw", "noatime", "rw", "data=ordered"]);

        let short = mount(without_options).unwrap();
        assert_eq!((short.point.as_str(), short.source.as_str()), ("/mnt", "/dev/sda1"));
        assert_eq!(short.options, ["ro"]);

        assert!(mount("36 25 8:1 / /mnt rw shared:1").is_none(), "without a file system it is no mount");
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stays() {
        assert_eq!(unescape(r"a\b"), r"a\b");
        assert_eq!(unescape(r"a\04"), r"a\04");
        assert_eq!(unescape(r"a\134"), r"a\");
    }
}
