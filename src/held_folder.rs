//! A folder that is held open: new files are made in it only, by exclusive creation and a rename. So no link that
//! others put there is followed, even if the folder's name comes to mean another.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

use crate::error::{Error, Result};

/// The end of the name of a file that is not yet renamed into place.
const NEW: &str = ".new";
/// Of the files in a folder that the operator named: everybody may read them, less the umask.
const SHARED: Mode = Mode::from_raw_mode(0o644);
/// Of the files in stacktune's own.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// The folder, and the mode of the files that are made in it.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    folder: File,
    file_mode: Mode,
}

impl HeldFolder {
    /// Opens a folder that the operator named.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, OFlags::empty())
    }

    /// Opens a folder that stacktune made.
    ///
    /// # Errors
    /// If it can't be opened, or its name is a link.
    pub fn open_own(path: &Path) -> Result<Self> {
        Self::open_with(path, OFlags::NOFOLLOW)
    }

    fn open_with(path: &Path, flags: OFlags) -> Result<Self> {
        let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|e| Error::os("cannot open", path, e))?;
        Ok(Self { path: path.to_owned(), folder: folder.into(), file_mode: SHARED })
    }

    /// A folder whose files are for its owner alone, opened for reading before.
    pub fn private(path: &Path, folder: OwnedFd) -> Self {
        Self { path: path.to_owned(), folder: folder.into(), file_mode: PRIVATE }
    }

    /// What it was called when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file whole: a new one of a random name, then a rename, both made durable.
    ///
    /// # Errors
    /// If that fails; the file is then as it was.
    pub fn replace(&self, name: &str, content: &[u8]) -> Result<()> {
        let new = format!(".{name}.{:016x}{NEW}", rand::random::<u64>());
        let path = self.path.join(name);
        let mut file = self.create(&new, OFlags::empty())?;
        let written = file.write_all(content).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| Ok(renameat(&self.folder, &new, &self.folder, name)?));
        if let Err(error) = renamed {
            // What is left is recognized by its name.
            let _ = unlinkat(&self.folder, &new, AtFlags::empty());
            return Err(Error::os("cannot write", &path, error));
        }
        self.sync()
    }

    /// Creates a file for writing; one that exists, or a link, is an error.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn create(&self, name: &str, flags: OFlags) -> Result<File> {
        let flags =
            flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, self.file_mode);
        Ok(file.map_err(|e| Error::os("cannot create", &self.path.join(name), e))?.into())
    }

    /// Makes what was created and removed in it durable.
    ///
    /// # Errors
    /// If it can't be synced.
    pub fn sync(&self) -> Result<()> {
        self.folder.sync_all().map_err(|error| Error::os("cannot sync", &self.path, error))
    }
}

impl AsFd for HeldFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

/// The name that a file has once it is in its place, for one that a killed process left under another.
pub fn final_name(name: &str) -> &str {
    let Some(inner) = name.strip_suffix(NEW) else { return name };
    match inner.strip_prefix('.').and_then(|inner| inner.rsplit_once('.')) {
        Some((name, random)) if random.len() == 16 => name,
        // As earlier versions named them.
        _ => inner,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_replaced_file_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldFolder::open(dir.path()).unwrap();
        folder.replace("summary.json", b"one").unwrap();
        folder.replace("summary.json", b"two").unwrap();
        assert_eq!(std::fs::read(dir.path().join("summary.json")).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        // Where it can't be put in place, neither.
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        assert!(folder.replace("folder", b"one").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn no_link_is_followed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = other.path().join("victim");
        std::fs::write(&victim, "theirs").unwrap();
        for name in ["summary.json", "summary.json.new", "windows.jsonl"] {
            symlink(&victim, dir.path().join(name)).unwrap();
        }
        let folder = HeldFolder::open(dir.path()).unwrap();
        folder.replace("summary.json", b"ours").unwrap();
        assert_eq!(std::fs::read(dir.path().join("summary.json")).unwrap(), b"ours");
        assert!(folder.create("windows.jsonl", OFlags::empty()).is_err());
        assert_eq!(std::fs::read(&victim).unwrap(), b"theirs");
        // Another folder in the place of the held one.
        let moved = other.path().join("moved");
        std::fs::rename(dir.path(), &moved).unwrap();
        symlink(other.path(), dir.path()).unwrap();
        folder.replace("host.json", b"ours").unwrap();
        assert!(moved.join("host.json").exists() && !other.path().join("host.json").exists());
        assert!(HeldFolder::open_own(dir.path()).is_err());
        std::fs::remove_file(dir.path()).unwrap();
        std::fs::rename(moved, dir.path()).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_is_known_by_its_name() {
        for name in ["a.json", ".a.json.0123456789abcdef.new", "a.json.new"] {
            assert_eq!(final_name(name), "a.json");
        }
        assert_eq!(final_name(".bashrc"), ".bashrc");
    }
}
