//! Existing files: stacktune's own, or ones that it leaves alone.

use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::process::geteuid;

use super::header::Found;
use crate::error::{Error, Result};
use crate::printable::Shown as _;

/// An existing file of ours.
#[derive(Debug)]
pub struct OurFile {
    /// Open for reading, and for writing if requested.
    pub file: File,
    /// Its header, which may be damaged but is not absent.
    pub found: Found,
    /// Its length.
    pub size_bytes: u64,
    /// The space that it takes on the disk.
    pub allocated_bytes: u64,
}

/// The folder of a path; the current one for a bare name.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file of ours, if there is one.
///
/// # Errors
/// Refused if something is there that stacktune did not make.
pub fn open_ours(path: &Path, writable: bool) -> Result<Option<OurFile>> {
    let there = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        outcome => outcome.map_err(|error| Error::os("cannot examine", path, error))?,
    };
    refuse_odd(path, &there)?;
    let failed = |error| Error::os("cannot open", path, error);
    let opened = OpenOptions::new()
        .read(true)
        .write(writable)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let file = opened.map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !same_file(&metadata, &there) {
        return Err(foreign(path, "replaced while it was opened"));
    }
    match Found::read(&file).map_err(|error| Error::os("cannot read the header of", path, error))? {
        Found::Absent => Err(foreign(path, "not a file that stacktune made")),
        found => {
            let (size_bytes, allocated_bytes) = (metadata.len(), metadata.blocks() * 512);
            Ok(Some(OurFile { file, found, size_bytes, allocated_bytes }))
        }
    }
}

pub(super) fn refuse_odd(path: &Path, metadata: &Metadata) -> Result<()> {
    let kind = metadata.file_type();
    let odd = if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_block_device() {
        "a block device: name it under `devices`"
    } else if !kind.is_file() {
        "not a regular file"
    } else if metadata.nlink() > 1 {
        "a file with several names (hard links)"
    } else if metadata.uid() != geteuid().as_raw() && !geteuid().is_root() {
        "another user's file"
    } else {
        return Ok(());
    };
    Err(foreign(path, odd))
}

pub(super) fn foreign(path: &Path, what: &str) -> Error {
    Error::refused(format!("{} is {what}", path.shown()))
        .hint("nothing was changed: move it elsewhere, or choose another folder for the target")
}

pub(super) fn same_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}
