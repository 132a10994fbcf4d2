//! A file that a command writes under a new name.

use std::fs::File;
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::host::{Trusting, refuse_exchangeable};
use crate::printable::Shown as _;
use crate::stack::system_folder::refuse_system_folder;

/// The folder in which to make a file that does not exist yet.
///
/// # Errors
/// If the file exists, or its folder doesn't; for root, also in system folders, or where others could swap it.
pub fn folder_of(out: &Path) -> Result<HeldFolder> {
    if out.symlink_metadata().is_ok() {
        let error = Error::input(format!("{} exists already", out.shown()));
        return Err(error.hint("choose another file with --out, or remove it"));
    }
    let dir = out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    refuse_system_folder("--out", dir)?;
    refuse_exchangeable(dir, Trusting::Caller)?;
    HeldFolder::open(dir)
}

/// Makes the file in its folder.
///
/// # Errors
/// If it can't be made.
pub fn make(folder: &HeldFolder, out: &Path) -> Result<File> {
    let name = out.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Error::input(format!("{} does not name a file", out.shown())))?;
    folder.create(name, OFlags::empty())
}
