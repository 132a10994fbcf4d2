//! A folder that is held open: files in it are created exclusively and renamed into place, or appended to. No
//! link that others put there is followed, even if the folder's name comes to mean another folder.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::printable;
use crate::regular_file;

/// The suffix of a file that has not been renamed into place yet.
const NEW: &str = ".new";
/// The mode of files in a folder that the operator named: everybody may read them, less the umask.
const SHARED: Mode = Mode::from_raw_mode(0o644);
/// The mode of files in stacktune's own folders.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// The mode of folders in a folder that the operator named.
const SHARED_FOLDER: Mode = Mode::from_raw_mode(0o755);
/// The flags for opening a folder.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The folder, and the mode of the files created in it.
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
        let folder = rustix::fs::open(path, FOLDER | flags, Mode::empty());
        let folder = folder.map_err(|e| Error::os("cannot open", path, e))?;
        Ok(Self { path: path.to_owned(), folder: folder.into(), file_mode: SHARED })
    }

    /// Opens the folder of that name in it; `None` if there is none.
    ///
    /// # Errors
    /// If it can't be opened, is a link, or not a folder.
    pub fn folder(&self, name: &str) -> Result<Option<Self>> {
        let path = self.path.join(name);
        match openat(&self.folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(folder) => Ok(Some(Self { path, folder: folder.into(), file_mode: self.file_mode })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let path = printable::path(&path);
                Err(Error::failed(format!("{path} is not a folder, or a link, which is not followed")))
            }
            Err(error) => Err(Error::os("cannot open", &path, error)),
        }
    }

    /// Opens the folder of that name in it, which must be empty, and is created if there is none.
    ///
    /// # Errors
    /// As for [`Self::folder`]; if it can't be created, or is not empty.
    pub fn empty_folder(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        match mkdirat(&self.folder, name, SHARED_FOLDER) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(Error::os("cannot create", &path, error)),
        }
        let gone = || Error::os("cannot open", &path, Errno::NOENT);
        let folder = self.folder(name)?.ok_or_else(gone)?;
        if !folder.names()?.is_empty() {
            return Err(Error::failed(format!("{} is not empty", printable::path(&path))));
        }
        Ok(folder)
    }

    /// The names in it.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn names(&self) -> Result<Vec<OsString>> {
        let failed = |error: Errno| Error::os("cannot read", &self.path, error);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Whether there is anything of that name in it.
    pub fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// The content of a regular file in it, of at most that many bytes; a link is not followed.
    ///
    /// # Errors
    /// If it can't be read, is not a regular file, or is larger.
    pub fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>> {
        let failed = |error| Error::os("cannot read", &self.path.join(name), error);
        regular_file::open_in(&self.folder, name)
            .and_then(|file| regular_file::read_opened(file, bytes_max))
            .map_err(failed)
    }

    /// Removes a file in it.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn remove(&self, name: &OsStr) -> Result<()> {
        unlinkat(&self.folder, name, AtFlags::empty())
            .map_err(|error| Error::os("cannot remove", &self.path.join(name), error))
    }

    /// Appends to a file in it, which is created if there is none, and makes that durable.
    ///
    /// # Errors
    /// If it can't be written; if it is not a regular file, or has another name, under which it may be others'.
    pub fn append(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let cannot = |error: std::io::Error| Error::os("cannot write", &path, error);
        // Opening a pipe would block.
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
        let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, self.file_mode).map_err(|error| cannot(error.into()))?;
        let mut file = File::from(file);
        let found = file.metadata().map_err(cannot)?;
        if !found.is_file() || found.nlink() > 1 {
            let what = "is not a regular file with a single name";
            return Err(Error::failed(format!("{} {what}", printable::path(&path))));
        }
        file.write_all(content).and_then(|()| file.sync_all()).map_err(cannot)
    }

    /// A folder whose files are for its owner alone, from a descriptor that is open for reading.
    pub fn private(path: &Path, folder: OwnedFd) -> Self {
        Self { path: path.to_owned(), folder: folder.into(), file_mode: PRIVATE }
    }

    /// Its path when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a whole file: a new one with a random name, then a rename, both made durable.
    ///
    /// # Errors
    /// If that fails; unless only the last sync failed, the file is then unchanged.
    pub fn replace(&self, name: &str, content: &[u8]) -> Result<()> {
        let new = format!(".{name}.{:016x}{NEW}", rand::random::<u64>());
        let path = self.path.join(name);
        let mut file = self.create(&new, OFlags::empty())?;
        let written = file.write_all(content).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| Ok(renameat(&self.folder, &new, &self.folder, name)?));
        if let Err(error) = renamed {
            // If it can't be removed, it is recognized by its name.
            let _ = unlinkat(&self.folder, &new, AtFlags::empty());
            return Err(Error::os("cannot write", &path, error));
        }
        self.sync()
    }

    /// Creates a file for writing; if it exists, or is a link, that is an error.
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

/// The final name of a file that a killed process may have left under a temporary one.
pub fn final_name(name: &str) -> &str {
    let Some(inner) = name.strip_suffix(NEW) else { return name };
    match inner.strip_prefix('.').and_then(|inner| inner.rsplit_once('.')) {
        Some((name, random)) if random.len() == 16 => name,
        // The form that earlier versions used.
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
        // Nor is anything left where it can't be renamed into place.
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
        // Another folder takes the place of the held one.
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
    fn a_folder_in_it_is_made_or_opened_but_no_link_followed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = HeldFolder::open(dir.path()).unwrap();
        assert!(folder.folder("run").unwrap().is_none());
        folder.empty_folder("run").unwrap().replace("host.json", b"{}").unwrap();
        assert_eq!(folder.folder("run").unwrap().unwrap().names().unwrap(), ["host.json"]);
        assert!(folder.empty_folder("run").unwrap_err().what.ends_with("is not empty"));
        folder.folder("run").unwrap().unwrap().remove(OsStr::new("host.json")).unwrap();
        folder.empty_folder("run").unwrap();
        symlink(other.path(), dir.path().join("link")).unwrap();
        for error in [folder.folder("link").unwrap_err(), folder.empty_folder("link").unwrap_err()] {
            assert!(error.what.contains("a link, which is not followed"), "{error}");
        }
        let victim = other.path().join("victim");
        std::fs::write(&victim, "theirs").unwrap();
        symlink(&victim, dir.path().join("a")).unwrap();
        std::fs::hard_link(&victim, dir.path().join("b")).unwrap();
        for name in ["a", "b"] {
            assert!(folder.append(name, b"ours").is_err());
        }
        assert!(folder.read("a", 100).is_err() && folder.has("a") && !folder.has("c"));
        assert_eq!(std::fs::read(&victim).unwrap(), b"theirs");
        folder.append("c", b"1").unwrap();
        folder.append("c", b"2").unwrap();
        assert_eq!(folder.read("c", 100).unwrap(), b"12");
    }

    #[test]
    fn what_a_killed_process_left_is_known_by_its_name() {
        for name in ["a.json", ".a.json.0123456789abcdef.new", "a.json.new"] {
            assert_eq!(final_name(name), "a.json");
        }
        assert_eq!(final_name(".bashrc"), ".bashrc");
    }
}
