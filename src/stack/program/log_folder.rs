//! The folder of a program's log next to a stack: on someone else's file system, but removed with the stack.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::host::mount_point_of;
use crate::printable::Shown as _;
use crate::stack::journal::{Journal, Undo};

/// Makes it, unless it was made for the same stack before.
///
/// # Errors
/// If it can't be made.
pub fn make_log_folder(journal: &mut Journal, dir: &Path) -> Result<()> {
    let is_it = |undo: &Undo| matches!(undo, Undo::RemoveLog { dir: made, .. } if made == dir);
    if journal.record().entries.iter().any(|entry| entry.to_undo().is_some_and(is_it)) {
        return Ok(());
    }
    let above = dir.parent().unwrap_or(dir);
    let mount = mount_point_of(above).map_err(|error| Error::os("cannot examine", above, error))?;
    let undo = Undo::RemoveLog { dir: dir.to_owned(), mount };
    journal.act(&format!("mkdir {}", dir.shown()), Some(undo), || {
        let made = DirBuilder::new().mode(0o700).create(dir);
        made.map_err(|error| Error::os("cannot create", dir, error))
    })
}
