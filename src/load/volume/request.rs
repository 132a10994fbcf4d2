//! What to open, and how to lock it first.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::files;
use super::lock::{self, Share};
use super::member::MemberSource;
use crate::error::{Error, Result};
use crate::host::{Trusting, make_own_folder};

/// What to open.
#[derive(Debug)]
pub struct Request {
    /// The members: all files of one folder, or all devices.
    pub data: Vec<MemberSource>,
    /// Bytes of each data file, including the header; not used for devices.
    pub file_bytes: u64,
    /// The WAL's own file or device. Without one it is in the file `wal` beside the data files, or in the
    /// region that each device reserves for it.
    pub wal: Option<MemberSource>,
    /// Bytes of the WAL's own file; `None` means a quarter of the data.
    pub wal_bytes: Option<u64>,
    /// Whether to open nothing for writing.
    pub read_only: bool,
    /// What uses the members, in words, if the guard found any use (read-only).
    pub mounted: Option<String>,
    /// The lock of the data files' folder, if already taken ([`Request::take_lock`]).
    pub lock: Option<File>,
}

impl Request {
    /// Creates and locks the folder of the data files, so that a conflict with another run shows before
    /// anything is destroyed for this one.
    ///
    /// # Errors
    /// Refused if another run uses them, or the WAL's own file.
    pub fn take_lock(&mut self) -> Result<()> {
        if self.data.first().is_some_and(|source| !source.is_device()) {
            let dir = one_folder(&self.data)?;
            refuse_in_the_way(&self.data, self.wal.is_some())?;
            make_own_folder(&dir, Trusting::Caller)?;
            self.lock = files::lock_folder(&dir, Share::Exclusive)?;
        }
        self.refuse_locked_wal()
    }

    /// Checks whether another run uses the files, and creates nothing.
    ///
    /// # Errors
    /// Refused if one does.
    pub fn refuse_locked(&self) -> Result<()> {
        let data = self.data.first().filter(|source| !source.is_device());
        data.map_or(Ok(()), |source| files::refuse_locked(files::folder_of(source.path())))?;
        self.refuse_locked_wal()
    }

    fn refuse_locked_wal(&self) -> Result<()> {
        let Some(MemberSource::File { path }) = &self.wal else { return Ok(()) };
        match files::open_ours(path, false)? {
            Some(ours) => lock::refuse_held(&ours.file, path),
            None => Ok(()),
        }
    }

    /// `count` data files of `size_bytes` in a folder.
    pub fn of_files(dir: &Path, count: u64, size_bytes: u64) -> Self {
        let data = (0..count).map(|index| MemberSource::File { path: files::data_path(dir, index) });
        Self {
            data: data.collect(),
            file_bytes: size_bytes,
            wal: None,
            wal_bytes: None,
            read_only: false,
            mounted: None,
            lock: None,
        }
    }

    /// These devices ([`MemberSource::Device`]).
    pub fn of_devices(devices: Vec<MemberSource>) -> Self {
        Self {
            data: devices,
            file_bytes: 0,
            wal: None,
            wal_bytes: None,
            read_only: false,
            mounted: None,
            lock: None,
        }
    }
}

/// Checks whatever is already where a target's files will go, before any of them is created: the data files,
/// the lock of their folder, and the WAL's file unless the WAL is elsewhere.
///
/// # Errors
/// Refused if something is there that stacktune did not make.
pub fn refuse_in_the_way(data: &[MemberSource], own_wal: bool) -> Result<()> {
    let files = data.iter().filter(|source| !source.is_device()).map(MemberSource::path);
    files.clone().try_for_each(files::refuse_foreign)?;
    let Some(dir) = files.map(files::folder_of).next() else { return Ok(()) };
    if !own_wal {
        files::refuse_foreign(&dir.join(files::WAL_NAME))?;
    }
    files::refuse_foreign_lock(dir)
}

/// The folder that contains all data files.
pub(super) fn one_folder(data: &[MemberSource]) -> Result<PathBuf> {
    let dir = files::folder_of(data[0].path());
    if data.iter().any(|source| files::folder_of(source.path()) != dir) {
        return Err(Error::input("the data files of a target must be in one folder"));
    }
    Ok(dir.to_owned())
}
