//! Finds, creates and sizes stacktune's files, and never confuses them with those of others.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use super::header::{Found, Header, Role};
use super::lock;
pub use super::lock::Share;
use super::make;
pub use super::own_file::{OurFile, folder_of, open_ours};
use super::own_file::{foreign, refuse_odd, same_file};
use crate::error::{Error, Result};
pub use crate::marks::WAL_NAME;
use crate::marks::{LOCK_NAME, LOCK_TEXT, data_name};
use crate::printable::Shown as _;
use crate::units::approx_size;

/// The data file of that index.
pub fn data_path(dir: &Path, index: u64) -> PathBuf {
    dir.join(data_name(index))
}

/// Locks a folder. For reading only, nothing is created: without the lock file there is nothing to lock.
pub fn lock_folder(dir: &Path, share: Share) -> Result<Option<File>> {
    let path = dir.join(LOCK_NAME);
    loop {
        let Some((file, metadata)) = open_lock(&path, share)? else {
            if share == Share::ReadOnly {
                return Ok(None);
            }
            match make::place(&path, &mut |mut file| file.write_all(LOCK_TEXT)) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(Error::os("cannot make", &path, error));
                }
                _ => continue,
            }
        };
        lock::take(&file, dir, share)?;
        // A set that was removed in the meantime took its lock file with it.
        if std::fs::symlink_metadata(&path).is_ok_and(|there| same_file(&there, &metadata)) {
            return Ok(Some(file));
        }
    }
}

/// Opens the lock file, if it exists.
///
/// # Errors
/// Refused if something else has its name.
fn open_lock(path: &Path, share: Share) -> Result<Option<(File, Metadata)>> {
    let mut options = OpenOptions::new();
    options.read(true).write(share == Share::Exclusive).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(foreign(path, "a symbolic link"));
        }
        opened => opened.map_err(|error| Error::os("cannot open", path, error))?,
    };
    let unreadable = |error| Error::os("cannot read", path, error);
    let metadata = file.metadata().map_err(unreadable)?;
    match share {
        Share::Exclusive => refuse_odd(path, &metadata)?,
        Share::ReadOnly if !metadata.is_file() => return Err(foreign(path, "not a regular file")),
        Share::ReadOnly => {}
    }
    let mut text = Vec::new();
    let read = (&mut file).take(LOCK_TEXT.len() as u64 + 1).read_to_end(&mut text);
    read.map_err(unreadable)?;
    if text == LOCK_TEXT { Ok(Some((file, metadata))) } else { Err(foreign(path, "not stacktune's")) }
}

/// Checks whatever has the name of a folder's lock file.
///
/// # Errors
/// Refused if something is there that stacktune did not make.
pub fn refuse_foreign_lock(dir: &Path) -> Result<()> {
    open_lock(&dir.join(LOCK_NAME), Share::Exclusive).map(drop)
}

/// Checks whether another run uses the files of a folder, and creates nothing.
///
/// # Errors
/// Refused if one does, or something else has the lock file's name.
pub fn refuse_locked(dir: &Path) -> Result<()> {
    match open_lock(&dir.join(LOCK_NAME), Share::ReadOnly)? {
        Some((file, _)) => lock::refuse_held(&file, dir),
        None => Ok(()),
    }
}

/// Checks whatever has the name of a member's file.
///
/// # Errors
/// Refused if something is there that stacktune did not make.
pub fn refuse_foreign(path: &Path) -> Result<()> {
    open_ours(path, false).map(drop)
}

/// Creates a member's file, which never exists under its name without its header.
pub fn create(path: &Path, header: &mut Header) -> Result<File> {
    let bytes = header.parts.member_bytes();
    let made = make::place(path, &mut |file| {
        header.write_area(file)?;
        allocate(file, bytes)
    });
    made.map_err(|error| Error::os("cannot make", path, error))
}

/// Gives a file its length, and reserves its space if the file system can.
pub fn allocate(file: &File, size_bytes: u64) -> io::Result<()> {
    file.set_len(size_bytes)?;
    match fallocate(file, FallocateFlags::empty(), 0, size_bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Removes our data files from that index on, as they no longer belong to a set.
pub fn remove_surplus(dir: &Path, first: u64) {
    for path in (first..).map(|index| data_path(dir, index)) {
        let ours = open_ours(&path, false).ok().flatten().map(|file| file.found);
        let data = matches!(ours, Some(Found::Valid(Header { role: Role::Data, .. })));
        // The first file that is not ours ends the sequence, and stays.
        if !data || std::fs::remove_file(&path).is_err() {
            return;
        }
    }
}

/// The folder itself or, if it does not exist yet, its nearest existing parent.
pub fn nearest_folder(dir: &Path) -> &Path {
    dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("."))
}

/// Free bytes for this user where `dir` is, or will be.
pub fn free_bytes(dir: &Path) -> Result<u64> {
    let there = nearest_folder(dir);
    let stat = statvfs(there).map_err(|error| Error::os("cannot read the free space of", there, error))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Fails if `needed_bytes` more do not fit.
pub fn check_room(dir: &Path, needed_bytes: u64) -> Result<()> {
    let free = free_bytes(dir)?;
    if needed_bytes <= free {
        return Ok(());
    }
    let (needs, has) = (approx_size(needed_bytes), approx_size(free));
    Err(Error::failed(format!("{} needs {needs} more, but its file system has {has} free", dir.shown()))
        .hint("free some space, or choose a smaller `target.files.size`"))
}
