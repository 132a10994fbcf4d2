//! Journals of earlier versions, which other users could open and lock: they are replaced by private copies.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::folder::NEW;
use crate::error::{Error, Result};
use crate::stack::state::StateFolder;

/// Held while a journal is replaced. The file is private, so that no other user can hold it.
const TURN: &str = ".turn";
const OTHERS: u32 = 0o077;

/// What became of the journal under that name.
pub(super) enum Replaced {
    /// A private copy, locked by this process.
    By(File),
    /// Another process has just replaced it.
    Already,
    /// It stays, because a process of the same user holds it.
    Not,
}

/// Whether a journal's mode lets other users open it.
pub(super) fn is_exposed(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.mode() & OTHERS != 0)
}

/// Replaces a journal that others can open; `free` says whether this process has its lock.
///
/// # Errors
/// If it can't be replaced; it is then as it was.
pub(super) fn replace(folder: &StateFolder, name: &str, file: &File, free: bool) -> Result<Replaced> {
    // Descriptors that others already hold stay open.
    folder.close_to_others()?;
    let path = folder.join(name);
    let cannot = |error: std::io::Error| Error::os("cannot replace", &path, error);
    let turn = folder.lock(TURN)?;
    if !folder.file(name)?.is_some_and(|now| is_same(&now, file)) {
        return Ok(Replaced::Already);
    }
    if !free && is_held_by_own(file).unwrap_or(true) {
        return Ok(Replaced::Not);
    }
    let mut bytes = Vec::new();
    let mut old = folder.file(name)?.ok_or_else(|| cannot(std::io::ErrorKind::NotFound.into()))?;
    old.read_to_end(&mut bytes).map_err(cannot)?;
    let mut new = tempfile::Builder::new().prefix(NEW).tempfile_in(folder.path()).map_err(cannot)?;
    flock(new.as_file(), FlockOperation::NonBlockingLockExclusive).map_err(|error| cannot(error.into()))?;
    let written = std::io::Write::write_all(&mut new, &bytes).and_then(|()| new.as_file().sync_all());
    written.map_err(cannot)?;
    let mut file = new.persist(&path).map_err(|error| cannot(error.error))?;
    folder.sync()?;
    std::io::Seek::rewind(&mut file).map_err(cannot)?;
    // Whoever waits for this lock will find the journal replaced.
    let _ = folder.remove(TURN);
    drop(turn);
    Ok(Replaced::By(file))
}

fn is_same(one: &File, other: &File) -> bool {
    let inode = |file: &File| file.metadata().map(|found| (found.dev(), found.ino())).ok();
    inode(one).is_some_and(|found| inode(other) == Some(found))
}

/// Whether another process of this user has the file open. None if that can't be seen.
fn is_held_by_own(file: &File) -> Option<bool> {
    let own = rustix::process::geteuid().as_raw();
    let wanted = file.metadata().ok()?;
    let is_it = |found: &PathBuf| {
        fs::metadata(found).is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
    };
    let holds = |process: &Path| entries(&process.join("fd")).iter().any(is_it);
    let this = Path::new("/proc").join(std::process::id().to_string());
    let is_other = |process: &&PathBuf| {
        let name = process.file_name().unwrap_or_default().to_string_lossy();
        name.bytes().all(|byte| byte.is_ascii_digit()) && **process != this && is_of(process, own)
    };
    let processes = entries(Path::new("/proc"));
    holds(&this).then(|| processes.iter().filter(is_other).any(|process| holds(process)))
}

/// Whether a process is the user's own, not running a set-user-id program. Written by hand: procfs-core
/// rejects a file that lacks any of some forty lines.
fn is_of(process: &Path, user: u32) -> bool {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    let mut ids = ids.split_whitespace().take(2).map(str::parse);
    ids.next() == Some(Ok(user)) && ids.next() == Some(Ok(user))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
