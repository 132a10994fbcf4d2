//! The folders and files that a build has made, held open.
//!
//! A path leads wherever it leads at the moment. A build formats exactly the file that it made: its loop
//! device is attached through a descriptor, and compared with the file before each write.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstat, fsync, mkdirat, open, openat};

use crate::error::{Error, Result};
use crate::host::{Trusting, make_own_folder, open_own_folder};
use crate::printable::Shown as _;
use crate::stack::devices::{Inode, backing_inode};
use crate::stack::runner::Runner;

/// The mode of a stack's folders.
pub(super) const PRIVATE: u32 = 0o700;

/// What a build has made, by path. Each is held with `O_PATH` only: the guard would count a file that is open
/// for writing as in use.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<BTreeMap<PathBuf, OwnedFd>>);

impl Made {
    /// Makes a folder that only root can enter, and any missing parents, which stay for the next stack.
    pub fn folder(&self, dir: &Path) -> Result<()> {
        let cannot = |error: std::io::Error| Error::os("cannot create", dir, error);
        let (above, name) = parts(dir)?;
        if !self.places().contains_key(above) {
            make_own_folder(above, Trusting::Root)?;
        }
        let within = self.opened(above)?;
        mkdirat(&within, name, Mode::from_raw_mode(PRIVATE)).map_err(|error| cannot(error.into()))?;
        let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&within, name, place, Mode::empty()).map_err(|error| cannot(error.into()))?;
        self.places().insert(dir.to_owned(), made);
        Ok(())
    }

    /// Makes a fully allocated file of that size, for root alone.
    pub fn file(&self, file: &Path, bytes: u64) -> Result<()> {
        let cannot = |doing: &str, error: rustix::io::Errno| Error::os(doing, file, error);
        let (above, name) = parts(file)?;
        let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(self.opened(above)?, name, new, Mode::RUSR | Mode::WUSR);
        let made = made.map_err(|error| cannot("cannot create", error))?;
        fallocate(&made, FallocateFlags::empty(), 0, bytes).map_err(|e| cannot("cannot allocate", e))?;
        fsync(&made).map_err(|error| cannot("cannot sync", error))?;
        let place = open(descriptor(&made), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        self.places().insert(file.to_owned(), place.map_err(|error| cannot("cannot open", error))?);
        Ok(())
    }

    /// A path by which a tool opens the file that was made, wherever the file's own path leads now.
    ///
    /// # Errors
    /// Refused if the file's own path now leads elsewhere.
    pub fn path_of(&self, file: &Path) -> Result<PathBuf> {
        let made = self.inode(file)?;
        let found =
            file.symlink_metadata().ok().map(|found| Inode { device: found.dev(), number: found.ino() });
        if found != Some(made) {
            return Err(exchanged(file));
        }
        Ok(self.places().get(file).map(descriptor).unwrap_or_default())
    }

    /// Refuses a loop device that is not attached to the file that was made.
    pub fn refuse_other(&self, file: &Path, node: &Path, runner: &Runner) -> Result<()> {
        if backing_inode(runner, node)? == Some(self.inode(file)?) { Ok(()) } else { Err(exchanged(file)) }
    }

    fn inode(&self, file: &Path) -> Result<Inode> {
        let places = self.places();
        let place = places.get(file).ok_or_else(|| exchanged(file))?;
        let found = fstat(place).map_err(|error| Error::os("cannot examine", file, error))?;
        Ok(Inode { device: found.st_dev, number: found.st_ino })
    }

    /// A folder that was made, or one that nobody else can replace.
    fn opened(&self, dir: &Path) -> Result<OwnedFd> {
        match self.places().get(dir) {
            Some(made) => made.try_clone().map_err(|error| Error::os("cannot open", dir, error)),
            None => open_own_folder(dir, Trusting::Root),
        }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<PathBuf, OwnedFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path to an open descriptor, which child processes can use too.
fn descriptor(place: &OwnedFd) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), place.as_raw_fd()).into()
}

fn parts(path: &Path) -> Result<(&Path, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    parts.ok_or_else(|| Error::input(format!("{} does not name a folder or file to make", path.shown())))
}

fn exchanged(file: &Path) -> Error {
    Error::refused(format!("{} is no longer the file that was made there", file.shown()))
        .hint("somebody replaced it or its folder: choose a target.files.dir that only root can change")
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    #[test]
    fn nothing_is_made_behind_a_link_that_others_put_above_a_stacks_folder() {
        let top = tempfile::tempdir().unwrap();
        let (sticky, theirs) = (top.path().join("sticky"), top.path().join("theirs"));
        fs::create_dir(&sticky).unwrap();
        fs::set_permissions(&sticky, Permissions::from_mode(0o1777)).unwrap();
        fs::create_dir(&theirs).unwrap();
        symlink(&theirs, sticky.join("link")).unwrap();
        // Only root can give the link away; without root, every link is followed.
        let is_given = lchown(sticky.join("link"), Some(65_534), None).is_ok();
        let made = Made::default().folder(&sticky.join("link/a/stack"));
        assert_eq!((made.is_err(), theirs.join("a").exists()), (is_given, !is_given));
        let made = Made::default();
        made.folder(&sticky.join("a/b/stack")).unwrap();
        made.folder(&sticky.join("a/b/stack/inner")).unwrap();
    }
}
