//! The loop devices over a file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::sysfs::block_names;
use crate::error::Result;
use crate::stack::runner::{LOSETUP, Runner};

/// A file's identity, whatever its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inode {
    /// The device of its file system.
    pub device: u64,
    /// Its number there.
    pub number: u64,
}

/// The loop devices over a file: by its path and, if it still exists, also by its inode. A link is not
/// followed, since a stack's files are never links.
pub(crate) fn loops_over(runner: &Runner, file: &Path) -> Result<Vec<PathBuf>> {
    let file = canonical_parent(file);
    let deleted = PathBuf::from(format!("{} (deleted)", file.to_string_lossy()));
    let mut found = Vec::new();
    for name in block_names("loop") {
        let Ok(backing) = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")) else {
            continue;
        };
        let backing = Path::new(backing.trim_end_matches('\n'));
        let node = Path::new("/dev").join(&name);
        if backing == deleted || backing == file && is_over(runner, &node, &file)? {
            found.push(node);
        }
    }
    Ok(found)
}

/// Whether a loop device is over this very file, not an earlier one of the same name.
fn is_over(runner: &Runner, node: &Path, file: &Path) -> Result<bool> {
    let Ok(found) = file.symlink_metadata() else { return Ok(true) };
    Ok(backing_inode(runner, node)? == Some(Inode { device: found.dev(), number: found.ino() }))
}

/// The file behind a loop device; none if nothing is attached to it.
pub(crate) fn backing_inode(runner: &Runner, node: &Path) -> Result<Option<Inode>> {
    let arguments = ["--noheadings", "--output", "BACK-INO,BACK-MAJ:MIN"].map(AsRef::as_ref);
    let answer = runner.run_well(LOSETUP, &[&arguments[..], &[node.as_os_str()]].concat())?;
    let mut words = answer.stdout.split_whitespace();
    let (number, device) = (words.next(), words.next().and_then(|device| device.split_once(':')));
    Ok(number.zip(device).and_then(|(number, (major, minor))| {
        let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        Some(Inode { device, number: number.parse().ok()? })
    }))
}

/// A path with all links resolved except in its last part.
pub(crate) fn canonical_parent(path: &Path) -> PathBuf {
    let parts = path.parent().and_then(|dir| dir.canonicalize().ok()).zip(path.file_name());
    parts.map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name))
}
