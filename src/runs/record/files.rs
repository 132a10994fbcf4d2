//! The files of a recording that grow line by line, in a folder that is held open.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;

/// A file that grows by whole records.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    len_bytes: u64,
}

impl Appender {
    /// Creates the file; one that exists, or a link, is an error.
    pub fn create(folder: &HeldFolder, name: &str) -> Result<Self> {
        let file = folder.create(name, OFlags::APPEND)?;
        Ok(Self { path: folder.path().join(name), file, len_bytes: 0 })
    }

    /// Hands a record to the kernel. A record that could not be written completely is removed, so that the
    /// next one does not follow a torn one.
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
    fn an_existing_file_is_not_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldFolder::open(dir.path()).unwrap();
        Appender::create(&folder, "windows.jsonl").unwrap().append(b"{}\n").unwrap();
        assert!(Appender::create(&folder, "windows.jsonl").unwrap_err().what.contains("EEXIST"));
        assert_eq!(std::fs::read(dir.path().join("windows.jsonl")).unwrap(), b"{}\n");
    }
}
