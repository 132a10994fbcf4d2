//! The folder of a program's log beside a stack: on a file system of others, it goes with the stack.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::stack::journal::{Journal, Undo};

/// Makes it, unless it was made for the same stack before.
///
/// # Errors
/// If it can't be made.
pub fn make_log_folder(journal: &mut Journal, dir: &Path) -> Result<()> {
    let undo = Undo::RemoveLog { dir: dir.to_owned() };
    if journal.record().entries.iter().any(|entry| entry.to_undo() == Some(&undo)) {
        return Ok(());
    }
    journal.act(&format!("mkdir {}", dir.shown()), Some(undo), || {
        let made = DirBuilder::new().mode(0o700).create(dir);
        made.map_err(|error| Error::os("cannot create", dir, error))
    })
}
