//! Loop devices and their backing: a file, known by its inode, whatever path leads to it, or another block
//! device.

use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use crate::host::nodes::{BlockNode, number_text};
use crate::host::root::Root;

/// `LOOP_GET_STATUS64` of `linux/loop.h`.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    // Names of files and ciphers and a key, which are not asked for: 160 bytes, and two words.
    names: [[u64; 4]; 5],
    init: [u64; 2],
}

/// What is behind a loop device, or at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::host) struct Backing {
    /// The path it was specified by. Links, bind mounts and other namespaces give a file several paths.
    pub(in crate::host) path: String,
    /// What it is; none if only the path is known.
    what: Option<What>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// A file: the device of its file system, and its inode.
    File { device: u64, inode: u64 },
    /// A block device's number.
    Device(u64),
}

impl Backing {
    /// What is behind each loop device, by the device's name.
    pub(in crate::host) fn read(root: &Root, nodes: &[BlockNode]) -> Vec<(String, Self)> {
        let of = |node: &BlockNode| {
            let path = root.text(&format!("{}/loop/backing_file", node.dir))?;
            let asked = if root.is_running_host() { ask(&node.name) } else { None };
            let backing = match asked {
                Some(what) => Self { path, what: Some(what) },
                None => Self::at(root, &path),
            };
            Some((node.name.clone(), backing))
        };
        nodes.iter().filter_map(of).collect()
    }

    /// What is at a path.
    pub(in crate::host) fn at(root: &Root, path: &str) -> Self {
        let metadata = std::fs::metadata(root.at(path)).ok();
        Self { path: path.to_owned(), what: metadata.as_ref().map(What::of) }
    }

    /// Whether both are the same: by path only if nothing else is known.
    pub(in crate::host) fn is_same(&self, other: &Self) -> bool {
        match (self.what, other.what) {
            (Some(what), Some(other)) => what == other,
            _ => self.path == other.path,
        }
    }

    /// `major:minor` of the block device, if it is one.
    pub(in crate::host) fn device(&self) -> Option<String> {
        match self.what? {
            What::Device(number) => Some(number_text(number)),
            What::File { .. } => None,
        }
    }

    /// `major:minor` of the device whose file system holds the file.
    pub(in crate::host) fn file_system(&self) -> Option<String> {
        match self.what? {
            What::File { device, .. } => Some(number_text(device)),
            What::Device(_) => None,
        }
    }
}

impl What {
    fn of(metadata: &Metadata) -> Self {
        if metadata.file_type().is_block_device() {
            Self::Device(metadata.rdev())
        } else {
            Self::File { device: metadata.dev(), inode: metadata.ino() }
        }
    }

    /// Old kernels give the file system's device in place of a regular file's missing number.
    fn reported(info: &LoopInfo64) -> Self {
        if info.rdevice != 0 && info.rdevice != info.device {
            Self::Device(info.rdevice)
        } else {
            Self::File { device: info.device, inode: info.inode }
        }
    }
}

/// Asks the kernel, which knows the file itself: its path may be from another namespace, or gone.
#[allow(unsafe_code)] // no library wraps this ioctl
fn ask(name: &str) -> Option<What> {
    let file = File::open(format!("/dev/{}", name.replace('!', "/"))).ok()?;
    let mut info = LoopInfo64::default();
    // SAFETY: the ioctl fills in `info`, which has the kernel's layout and size and outlives the call.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
    (status == 0).then(|| What::reported(&info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_kernels_size() {
        assert_eq!(size_of::<LoopInfo64>(), 232);
    }

    #[test]
    fn a_block_device_is_distinguished_from_a_file_on_old_and_new_kernels() {
        let what_of = |device, rdevice| {
            What::reported(&LoopInfo64 { device, inode: 9, rdevice, ..LoopInfo64::default() })
        };
        assert_eq!(what_of(0x801, 0), What::File { device: 0x801, inode: 9 });
        assert_eq!(what_of(0x801, 0x801), What::File { device: 0x801, inode: 9 });
        assert_eq!(what_of(5, 0x801), What::Device(0x801));
    }

    #[test]
    fn the_path_decides_only_where_nothing_else_is_known() {
        let backing = |path: &str, what| Backing { path: path.into(), what };
        let file = |inode| Some(What::File { device: 1, inode });
        assert!(backing("/a", file(1)).is_same(&backing("/b", file(1))));
        assert!(!backing("/a", file(1)).is_same(&backing("/a", file(2))));
        assert!(backing("/a", None).is_same(&backing("/a", file(2))));
        assert!(!backing("/a", None).is_same(&backing("/b", file(2))));
    }
}
