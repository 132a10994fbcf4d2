//! Records the WAL's acknowledged puts in a file elsewhere, and counts how many of them a crash has lost.
//!
//! ```text
//! bytes 0 to 15   the magic, and the set of the data set that it belongs to (little-endian)
//! from 16 on      a slot of 8 bytes for each of the WAL's pairs: the sequence number of the newest
//!                 acknowledged put, plus one; 0 means none
//! ```
//! A slot is written once its put has returned, so every put recorded was acknowledged. Whether the record
//! itself survives depends on where it is: a crash of the process spares it anywhere, a crash of the machine
//! only on another machine.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::dataset::LOGGED_MAX;
use crate::error::{Error, Result};
use crate::printable::Shown as _;

const MAGIC: &[u8; 8] = b"stkacks1";
const HEAD_BYTES: u64 = 16;
/// With a slot for each pair that the WAL may have.
const BYTES_MAX: u64 = HEAD_BYTES + 8 * LOGGED_MAX;
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// What a crash lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Losses {
    /// Acknowledged puts that have not been overwritten since.
    pub acknowledged: u64,
    /// How many of them are missing.
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

/// What a run will do with the file, as a line of its plan.
///
/// # Errors
/// Refused if something else is there.
pub fn outlook(path: &Path) -> Result<String> {
    let is_there = refuse_odd(path)?;
    if is_there {
        let file = OpenOptions::new().read(true).custom_flags(FLAGS).open(path);
        refuse_foreign(path, &file.map_err(|error| Error::os("cannot open", path, error))?)?;
    }
    let verb = if is_there { "continue" } else { "create" };
    Ok(format!("{verb} {}, which records acknowledged commits (wal.acks)", path.shown()))
}

/// Whether a file is there; refuses anything but a regular file. Links are not followed.
fn refuse_odd(path: &Path) -> Result<bool> {
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found.map_err(|error| Error::os("cannot examine", path, error))?,
    };
    if found.is_symlink() {
        return Err(foreign(path, "a symbolic link"));
    }
    if !found.is_file() || found.nlink() > 1 {
        return Err(foreign(path, "not a regular file with one name"));
    }
    Ok(true)
}

/// Refuses an open file that does not begin like ours, or is longer than ours can be.
fn refuse_foreign(path: &Path, file: &File) -> Result<()> {
    let found = file.metadata().map_err(|error| Error::os("cannot examine", path, error))?;
    let mut magic = [0; MAGIC.len()];
    let is_ours = found.is_file() && file.read_exact_at(&mut magic, 0).is_ok() && magic == *MAGIC;
    if !is_ours {
        return Err(foreign(path, "not a file of acknowledged puts"));
    }
    if found.len() > BYTES_MAX {
        return Err(foreign(path, "larger than any file of acknowledged puts"));
    }
    Ok(())
}

fn foreign(path: &Path, what: &str) -> Error {
    Error::refused(format!("wal.acks: {} is {what}", path.shown()))
        .hint("nothing was changed: choose another file")
}

fn head(set: u64) -> [u8; HEAD_BYTES as usize] {
    let mut head = [0; HEAD_BYTES as usize];
    head[..8].copy_from_slice(MAGIC);
    head[8..].copy_from_slice(&set.to_le_bytes());
    head
}

/// The open file.
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
        let cannot = |error: std::io::Error| Error::os("cannot open", path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(FLAGS);
        let is_there = refuse_odd(path)?;
        let file = options.create_new(!is_there).open(path).map_err(cannot)?;
        if !is_there {
            file.write_all_at(&head(set), 0).map_err(cannot)?;
        }
        // On a file system without locks, it goes on without one.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(Error::failed(format!("wal.acks: {} is in use by another run", path.shown()))
                .hint("wait for that run, or choose another file"));
        }
        refuse_foreign(path, &file)?;
        Ok(Self { file, path: path.to_owned(), set })
    }

    /// Assigns the file to the open data set; discards another set's records, with a note.
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
                self.path.shown()
            )
        }))
    }

    /// Discards all records.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn begin(&self) -> Result<()> {
        // Never leave it empty: an empty file would not count as ours.
        let written = self.file.set_len(HEAD_BYTES).and_then(|()| self.file.write_all_at(&head(self.set), 0));
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
            .and_then(|_| file.take(BYTES_MAX - HEAD_BYTES).read_to_end(&mut bytes));
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
        assert_eq!(Acks::open(&path, 7).unwrap_err().kind, crate::error::Kind::Failed);
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

    #[test]
    fn what_others_append_to_an_open_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acks");
        let acks = Acks::open(&path, 7).unwrap();
        acks.note(LOGGED_MAX - 1, 5).unwrap();
        let theirs = OpenOptions::new().write(true).open(&path).unwrap();
        theirs.write_all_at(&6_u64.to_le_bytes(), BYTES_MAX).unwrap();
        assert_eq!(acks.noted().unwrap(), [(LOGGED_MAX - 1, 5)]);
    }

    #[test]
    fn only_a_file_of_its_own_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let target = path("target");
        std::os::unix::fs::symlink(&target, path("link")).unwrap();
        std::fs::write(path("empty"), "").unwrap();
        drop(Acks::open(&path("ours"), 7).unwrap());
        std::fs::hard_link(path("ours"), path("second-name")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        drop(Acks::open(&path("huge"), 7).unwrap());
        let huge = OpenOptions::new().write(true).open(path("huge")).unwrap();
        huge.set_len(BYTES_MAX).unwrap();
        drop(Acks::open(&path("huge"), 7).unwrap());
        huge.set_len(3 << 30).unwrap();
        for name in ["link", "empty", "second-name", "fifo", "huge"] {
            for error in [Acks::open(&path(name), 7).unwrap_err(), outlook(&path(name)).unwrap_err()] {
                assert_eq!(error.kind, crate::error::Kind::Refused, "{name}: {error}");
            }
        }
        assert!(!target.exists(), "a link is not followed");
        assert_eq!(std::fs::read(path("empty")).unwrap(), b"");
        assert!(outlook(&path("link")).unwrap_err().what.contains("a symbolic link"));
        assert!(outlook(&path("new")).unwrap().starts_with("create "), "and nothing is created");
        assert!(!path("new").exists());
        std::fs::remove_file(path("second-name")).unwrap();
        assert!(outlook(&path("ours")).unwrap().starts_with("continue "));
    }
}
