//! The folder of stacktune's state, and the files in it.
//!
//! Whoever runs `cleanup`, often root, undoes what a journal lists. So a journal is trusted only if nobody else could
//! have written it: every folder above it, the folder itself and its files are examined as they are opened.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::fs::{access, chmodat, fchmod, flock, fstat, mkdirat, openat, statfs, unlinkat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::host::{Doubt, is_private, open_trusted};
use crate::printable::Shown as _;

/// The mode of a folder: only its owner may enter it.
const FOLDER_MODE: u32 = 0o700;

/// Kernel file systems, in which nobody can create files.
const OF_KERNEL: [i64; 4] =
    [libc::PROC_SUPER_MAGIC, libc::SYSFS_MAGIC, libc::CGROUP_SUPER_MAGIC, libc::CGROUP2_SUPER_MAGIC];

/// A folder that only the effective user can change, held open.
#[derive(Debug)]
pub struct StateFolder(HeldFolder);

impl StateFolder {
    /// Opens it; none if it does not exist.
    ///
    /// # Errors
    /// Refused if others could change what is in it, or replace it.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        match open_trusted(path) {
            Err(Doubt::Os(_, Errno::NOENT)) => Ok(None),
            Err(doubt) => Err(doubted(path, &doubt)),
            Ok(place) => Self::of(path, &place).map(Some),
        }
    }

    /// Opens it, durably making it and the folders above it if necessary. Others can't enter it, whatever the umask.
    ///
    /// # Errors
    /// As [`StateFolder::open`], or if it can't be made.
    pub fn make(path: &Path) -> Result<Self> {
        let made = Self::of(path, &make(path)?)?;
        made.close_to_others()?;
        Ok(made)
    }

    /// Lets only its owner enter it: earlier versions left read permission to the umask.
    ///
    /// # Errors
    /// If its mode can't be changed.
    pub fn close_to_others(&self) -> Result<()> {
        if mode(&self.found()?) == FOLDER_MODE {
            return Ok(());
        }
        fchmod(&self.0, Mode::from_raw_mode(FOLDER_MODE))
            .map_err(|error| Error::os("cannot restrict access to", self.path(), error))
    }

    /// Checks whether it could be opened, or made, for writing. Makes nothing.
    ///
    /// # Errors
    /// As [`StateFolder::open`], or if nothing can be made there.
    pub fn refuse_unusable(path: &Path) -> Result<()> {
        let there = path.ancestors().find(|at| at.symlink_metadata().is_ok()).unwrap_or(Path::new("/"));
        if there == path {
            Self::open(path)?;
        } else {
            open_trusted(there).map_err(|doubt| doubted(path, &doubt))?;
        }
        let failed = |error: Errno| Error::os("cannot create files in", there, error);
        access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(failed)?;
        // Root may write there, but these file systems take no files.
        match statfs(there).map_err(failed)?.f_type {
            kind if OF_KERNEL.contains(&kind) => Err(failed(Errno::NOTSUP)),
            _ => Ok(()),
        }
    }

    fn of(path: &Path, place: &OwnedFd) -> Result<Self> {
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(place, ".", folder, Mode::empty());
        let folder = folder.map_err(|error| Error::os("cannot open", path, error))?;
        let opened = Self(HeldFolder::private(path, folder));
        let found = opened.found()?;
        match is_private(&opened.0, &found) {
            true => Ok(opened),
            false if found.st_uid == rustix::process::geteuid().as_raw() => {
                Err(doubted(path, &Doubt::Writable(path.to_owned())))
            }
            false => Err(doubted(path, &Doubt::Owner(path.to_owned(), found.st_uid))),
        }
    }

    fn found(&self) -> Result<Stat> {
        fstat(&self.0).map_err(|error| Error::os("cannot examine", self.0.path(), error))
    }

    /// Its path when it was opened.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Waits for a lock on a file of that name, shared by this user's processes and held until the file is closed.
    ///
    /// # Errors
    /// If it can't be made or locked.
    pub fn lock(&self, name: &str) -> Result<File> {
        let path = self.join(name);
        let failed = |error: Errno| Error::os("cannot lock", &path, error);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
        flock(&file, FlockOperation::LockExclusive).map_err(failed)?;
        Ok(file.into())
    }

    /// The path of an entry with that name.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Opens a file in it; none if it does not exist.
    ///
    /// # Errors
    /// Refused if it is a link, no regular file, or others may have written it.
    pub fn file(&self, name: &str) -> Result<Option<File>> {
        self.opened(name, OFlags::RDWR)
    }

    /// Opens a file in it only for reading, as on a read-only file system; none if it does not exist.
    ///
    /// # Errors
    /// As [`StateFolder::file`].
    pub fn file_to_read(&self, name: &str) -> Result<Option<File>> {
        self.opened(name, OFlags::RDONLY)
    }

    fn opened(&self, name: &str, access: OFlags) -> Result<Option<File>> {
        let path = self.join(name);
        let failed = |error: Errno| Error::os("cannot open", &path, error);
        // Opening anything but a regular file could block or have side effects, so its type is checked first.
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            found => refuse_odd(&path, &found.map_err(failed)?, None)?,
        }
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.0, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => file.map_err(failed)?,
        };
        refuse_odd(&path, &fstat(&file).map_err(failed)?, Some(file.as_fd()))?;
        Ok(Some(file.into()))
    }

    /// The content of a file in it; none if there is no such file.
    ///
    /// # Errors
    /// As [`StateFolder::file`], or if it can't be read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(mut file) = self.file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = file.read_to_end(&mut bytes);
        read.map(|_| Some(bytes)).map_err(|error| Error::os("cannot read", &self.join(name), error))
    }

    /// Replaces a file in it, or makes it, durably.
    ///
    /// # Errors
    /// If it can't be written; the old one then stays.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.0.replace(name, bytes)
    }

    /// Removes a file in it.
    ///
    /// # Errors
    /// If there is none, or it can't be removed.
    pub fn remove(&self, name: &str) -> Result<()> {
        unlinkat(&self.0, name, AtFlags::empty())
            .map_err(|error| Error::os("cannot remove", &self.join(name), error))
    }

    /// The names in it that are valid text, in order.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn names(&self) -> Result<Vec<String>> {
        let failed = |error: Errno| Error::os("cannot read", self.0.path(), error);
        let entries = rustix::fs::Dir::read_from(&self.0).map_err(failed)?;
        let names =
            entries.map(|entry| Ok(entry.map_err(failed)?.file_name().to_str().ok().map(str::to_owned)));
        let mut names: Vec<String> = names.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        names.retain(|name| ![".", ".."].contains(&name.as_str()));
        names.sort();
        Ok(names)
    }

    /// Makes what was created and removed in it durable.
    ///
    /// # Errors
    /// If it can't be synced.
    pub fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}

/// Opens a folder, making the missing parts of its path.
fn make(path: &Path) -> Result<OwnedFd> {
    match (open_trusted(path), path.parent().zip(path.file_name())) {
        (Err(Doubt::Os(_, Errno::NOENT)), Some((above, name))) => {
            let folder = make(above)?;
            let failed = |error: Errno| Error::os("cannot create", path, error);
            let mode = Mode::from_raw_mode(FOLDER_MODE);
            match mkdirat(&folder, name, mode) {
                // Another process has just made it.
                Err(Errno::EXIST) => {}
                made => {
                    made.map_err(failed)?;
                    // Restore the owner's bits that the umask removed.
                    chmodat(&folder, name, mode, AtFlags::empty()).map_err(failed)?;
                }
            }
            sync(&folder, above)?;
            open_trusted(path).map_err(|doubt| doubted(path, &doubt))
        }
        (opened, _) => opened.map_err(|doubt| doubted(path, &doubt)),
    }
}

fn sync(folder: &OwnedFd, path: &Path) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let synced = openat(folder, ".", flags, Mode::empty()).and_then(rustix::fs::fsync);
    synced.map_err(|error| Error::os("cannot sync", path, error))
}

fn mode(found: &Stat) -> u32 {
    found.st_mode & 0o777
}

fn doubted(path: &Path, doubt: &Doubt) -> Error {
    let refused = || Error::refused(format!("the state folder {} can't be trusted: {doubt}", path.shown()));
    match doubt {
        Doubt::Os(at, error) => Error::os("cannot open", at, *error),
        Doubt::Owner(..) => refused().hint(
            "set XDG_STATE_HOME to a folder of your own, or leave it unset (root's default is /var/lib/stacktune)",
        ),
        Doubt::Writable(at) => refused().hint(format!(
            "others may have put journals there: look at what is in it, then run `chmod go-w {}`, or set \
             XDG_STATE_HOME to a folder of your own",
            crate::stack::runner::quoted(at.as_os_str())
        )),
    }
}

fn refuse_odd(path: &Path, found: &Stat, file: Option<BorrowedFd>) -> Result<()> {
    let odd = match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => "a symbolic link".to_owned(),
        FileType::RegularFile if found.st_nlink > 1 => "a file with a second name (a hard link)".to_owned(),
        FileType::RegularFile if file.is_none_or(|file| is_private(file, found)) => return Ok(()),
        FileType::RegularFile if found.st_uid != rustix::process::geteuid().as_raw() => {
            format!("owned by user {}", found.st_uid)
        }
        FileType::RegularFile => "a file that others may write to".to_owned(),
        _ => "not a regular file".to_owned(),
    };
    let path = path.shown();
    Err(Error::refused(format!("{path} is {odd}, so it is not trusted")).hint(format!(
        "look at what it is and who put it there (`ls -l {path}`); stacktune runs again once it is removed"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_file_systems_hold_no_state() {
        for path in ["/proc/stacktune", "/sys/stacktune"] {
            let error = StateFolder::refuse_unusable(Path::new(path)).unwrap_err();
            assert!(error.what.starts_with("cannot create files in /"), "{error}");
        }
    }
}
