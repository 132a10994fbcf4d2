//! What the page cache holds of a target: written back and dropped.

use std::io;
use std::path::{Path, PathBuf};

/// Writes back and drops what the page cache holds of these files, devices, or files of folders.
pub(super) fn drop_cached(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        if !path.is_dir() {
            drop_file(path)?;
            continue;
        }
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            // RocksDB removes its files at any time.
            let dropped = if entry.file_type()?.is_file() { drop_file(&entry.path()) } else { Ok(()) };
            dropped
                .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
        }
    }
    Ok(())
}

fn drop_file(path: &Path) -> io::Result<()> {
    let file = std::fs::File::open(path)?;
    rustix::fs::fdatasync(&file)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}
