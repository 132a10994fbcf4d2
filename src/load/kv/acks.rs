//! Acknowledged puts of the WAL, recorded in a file elsewhere, and how many of them a crash has lost.
//!
//! ```text
//! bytes 0 to 15   the magic, and the set of the data set that it belongs to (little-endian)
//! from 16 on      a slot of 8 bytes for each of the WAL's pairs: one more than the sequence number of
//!                 the newest put that was acknowledged; 0 is none
//! ```
//! A slot is written once its put has returned, so what it records was acknowledged. Whether the record
//! itself survives a crash depends on where it is: a crash of the process anywhere; one of the machine only
//! on another machine.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"stkacks1";
const HEAD_BYTES: u64 = 16;

/// What a crash has lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Losses {
    /// Acknowledged puts that were not overwritten since.
    pub acknowledged: u64,
    /// Those of them that are missing.
    pub lost: u64,
}

impl std::fmt::Display for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { acknowledged, lost } = self;
        match lost {
            0 => write!(f, "all {acknowledged} previously acknowledged commits are there"),
            lost => write!(f, "{lost} of {acknowledged} previously acknowledged commits are lost"),
        }
    }
}

/// The file, open.
#[derive(Debug)]
pub struct Acks {
    file: File,
    path: PathBuf,
    set: u64,
}

impl Acks {
    /// Opens the file, or creates it. Until [`Acks::adopt`], its records may belong to another data set.
    ///
    /// # Errors
    /// Refused if it is something else.
    pub fn open(path: &Path, set: u64) -> Result<Self> {
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|error| Error::os("cannot open", path, error))?;
        // If the file system has no locks, it does without.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(Error::refused(format!("wal.acks: {} is in use by another run", path.display()))
                .hint("wait for that run, or choose another file"));
        }
        let acks = Self { file, path: path.to_owned(), set };
        let failed = |error| Error::os("cannot read", path, error);
        let mut head = [0; HEAD_BYTES as usize];
        let length = acks.file.metadata().map_err(failed)?.len();
        if length > 0 && !(acks.file.read_exact_at(&mut head, 0).is_ok() && head.starts_with(MAGIC)) {
            let what = format!("wal.acks: {} is not a file of acknowledged puts", path.display());
            return Err(Error::refused(what).hint("nothing was changed: choose another file"));
        }
        Ok(acks)
    }

    /// Assigns the file to the open data set: records of another one are discarded, with a note.
    ///
    /// # Errors
    /// If it can't be read or written.
    pub fn adopt(&self) -> Result<Option<String>> {
        let mut head = [0; HEAD_BYTES as usize];
        let read = self.file.read_exact_at(&mut head, 0).is_ok();
        if read && head[8..] == self.set.to_le_bytes() {
            return Ok(None);
        }
        let noted = self.noted()?.len();
        self.begin()?;
        Ok((noted > 0).then(|| {
            format!(
                "wal.acks: {} held {noted} acknowledged commits of another data set; they are discarded \
                 with it, unchecked",
                self.path.display()
            )
        }))
    }

    /// Discards all records.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn begin(&self) -> Result<()> {
        let mut head = [0; HEAD_BYTES as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8..].copy_from_slice(&self.set.to_le_bytes());
        let written = self.file.set_len(0).and_then(|()| self.file.write_all_at(&head, 0));
        written.map_err(|error| Error::os("cannot write", &self.path, error))
    }

    /// Records an acknowledged put.
    ///
    /// # Errors
    /// As the system reports it.
    #[inline]
    pub fn note(&self, slot: u64, sequence: u64) -> std::io::Result<()> {
        self.file.write_all_at(&(sequence + 1).to_le_bytes(), HEAD_BYTES + 8 * slot)
    }

    /// Slot and sequence number of each recorded put.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn noted(&self) -> Result<Vec<(u64, u64)>> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        let read = std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(HEAD_BYTES))
            .and_then(|_| file.read_to_end(&mut bytes));
        read.map_err(|error| Error::os("cannot read", &self.path, error))?;
        let slots = bytes.as_chunks().0.iter().map(|slot| u64::from_le_bytes(*slot));
        Ok((0..).zip(slots).filter(|(_, one_more)| *one_more > 0).map(|(slot, n)| (slot, n - 1)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_kept_for_the_next_run_but_not_for_another_data_set() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acks");
        let opened = |set| {
            let acks = Acks::open(&path, set).unwrap();
            let forgotten = acks.adopt().unwrap();
            (acks, forgotten)
        };
        let (acks, none) = opened(7);
        assert_eq!(none, None);
        for (slot, sequence) in [(3, 0), (0, 99), (3, 1 << 38)] {
            acks.note(slot, sequence).unwrap();
        }
        assert_eq!(Acks::open(&path, 7).unwrap_err().kind, crate::error::Kind::Refused);
        drop(acks);
        drop(Acks::open(&path, 8).unwrap());
        let (acks, none) = opened(7);
        assert_eq!((acks.noted().unwrap(), none), (vec![(0, 99), (3, 1 << 38)], None), "not adopted by 8");
        drop(acks);
        let (acks, forgotten) = opened(8);
        assert_eq!(acks.noted().unwrap(), []);
        assert!(forgotten.unwrap().contains("2 acknowledged commits of another data set"));
        drop(acks);
        assert_eq!(opened(9).1, None, "there was none to forget");
        std::fs::write(&path, "someone's letter").unwrap();
        assert_eq!(Acks::open(&path, 8).unwrap_err().kind, crate::error::Kind::Refused);
        assert_eq!(std::fs::read(&path).unwrap(), b"someone's letter");
    }
}
