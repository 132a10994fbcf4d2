//! The two ways in which a recording's files are written: whole, and line by line.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Writes a file whole: a new file beside it, then a rename, both made durable.
pub fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let new = path.with_added_extension("new");
    let mut file = File::create(&new).map_err(|e| Error::os("cannot create", &new, e))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(|e| Error::os("cannot write", &new, e))?;
    std::fs::rename(&new, path).map_err(|e| Error::os("cannot rename into", path, e))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    sync_dir(dir)
}

/// Makes a folder's entries durable.
fn sync_dir(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|e| Error::os("cannot sync", dir, e))
}

/// A file that grows by whole records.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    len_bytes: u64,
}

impl Appender {
    /// Creates the file; an existing one is an error.
    pub fn create(path: PathBuf) -> Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = file.map_err(|e| Error::os("cannot create", &path, e))?;
        Ok(Self { path, file, len_bytes: 0 })
    }

    /// Hands a record to the kernel. One that could not be written completely is removed, so that the next
    /// one does not follow a torn one.
    pub fn append(&mut self, record: &[u8]) -> Result<()> {
        if let Err(e) = self.file.write_all(record) {
            // If this fails too, a reader still recognizes the torn record.
            let _ = self.file.set_len(self.len_bytes);
            return Err(Error::os("cannot write", &self.path, e));
        }
        self.len_bytes += record.len() as u64;
        Ok(())
    }

    /// Makes what was written durable.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::os("cannot sync", &self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.json");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_file_is_not_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("windows.jsonl");
        Appender::create(path.clone()).unwrap().append(b"{}\n").unwrap();
        assert!(Appender::create(path.clone()).unwrap_err().what.contains("EEXIST"));
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
    }
}
