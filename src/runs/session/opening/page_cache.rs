//! A target's pages in the page cache: written back and dropped.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::threads;

/// Dropping cached pages, in its own thread.
#[derive(Debug)]
pub(in crate::runs::session) enum Dropping {
    Thread(JoinHandle<io::Result<()>>),
    /// No thread could be started, so it was done at once.
    Done(io::Result<()>),
}

impl Dropping {
    /// Begins with [`drop_cached`].
    pub(in crate::runs::session) fn begin(paths: Vec<PathBuf>) -> Self {
        let paths = Arc::new(paths);
        let theirs = paths.clone();
        match threads::start("drop what is cached", move || drop_cached(&theirs)) {
            Ok(thread) => Self::Thread(thread),
            Err(_) => Self::Done(drop_cached(&paths)),
        }
    }

    pub(in crate::runs::session) fn is_finished(&self) -> bool {
        match self {
            Self::Thread(thread) => thread.is_finished(),
            Self::Done(_) => true,
        }
    }

    /// Waits for its end.
    pub(in crate::runs::session) fn join(self) -> std::thread::Result<io::Result<()>> {
        match self {
            Self::Thread(thread) => thread.join(),
            Self::Done(outcome) => Ok(outcome),
        }
    }
}

/// Writes back and drops the cached pages of these files, devices, or folders of files.
pub(in crate::runs::session) fn drop_cached(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        if !path.is_dir() {
            drop_file(path)?;
            continue;
        }
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            // RocksDB may remove its files at any time.
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
