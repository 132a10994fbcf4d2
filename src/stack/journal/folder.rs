//! The folder of the journals.

use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::Result;
use crate::stack::state::StateFolder;

pub(super) const SUFFIX: &str = "jsonl";

/// The prefix of a journal's name until its first line is complete.
pub(super) const NEW: &str = ".new-";

/// The folder of the journals.
pub fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("journal")
}

/// The paths of all journals, ordered by name; empty if there is no folder.
///
/// # Errors
/// Refused if others could have written one.
pub fn all(state_dir: &Path) -> Result<Vec<PathBuf>> {
    let Some(folder) = StateFolder::open(&folder(state_dir))? else { return Ok(Vec::new()) };
    let names = folder.names()?;
    let journals = names.iter().filter(|name| Path::new(name).extension().is_some_and(|end| end == SUFFIX));
    Ok(journals.map(|name| folder.join(name)).collect())
}

/// Removes journals whose process was killed before their first line was complete: it had done nothing by then.
pub(crate) fn sweep(state_dir: &Path) {
    // Whoever reads the journals reports what is wrong with the folder.
    let Ok(Some(folder)) = StateFolder::open(&folder(state_dir)) else { return };
    for name in folder.names().unwrap_or_default().iter().filter(|name| name.starts_with(NEW)) {
        let Ok(Some(file)) = folder.file(name) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Another process may have removed it already.
            let _ = folder.remove(name);
        }
    }
}
