//! The folder of the journals.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};

pub(super) const SUFFIX: &str = "jsonl";

/// The name of a journal until its first line is complete.
pub(super) const NEW: &str = ".new-";

/// The folder of the journals.
pub fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("journal")
}

/// The paths of all journals, ordered by name; empty if there is no folder.
pub fn all(state_dir: &Path) -> Result<Vec<PathBuf>> {
    let dir = folder(state_dir);
    let entries = match fs::read_dir(&dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| Error::os("cannot read", &dir, error))?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let paths: std::io::Result<Vec<_>> = paths.collect();
    let mut paths = paths.map_err(|error| Error::os("cannot read", &dir, error))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == SUFFIX));
    paths.sort();
    Ok(paths)
}

/// Removes journals whose process was killed before their first line was complete: nothing had been done by then.
pub(crate) fn sweep(state_dir: &Path) {
    let entries = fs::read_dir(folder(state_dir)).into_iter().flatten().flatten();
    let new = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NEW));
    for path in new.map(|entry| entry.path()) {
        let free = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if File::open(&path).is_ok_and(|file| free(&file)) {
            // Another process may have removed it already.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Makes a folder and its parents, durably.
pub(super) fn make_durable_folder(dir: &Path) -> Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
    fs::create_dir_all(dir).map_err(|error| Error::os("cannot create", dir, error))?;
    missing.iter().filter_map(|dir| dir.parent()).try_for_each(sync_folder)
}

pub(super) fn sync_folder(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| Error::os("cannot sync", dir, error))
}
