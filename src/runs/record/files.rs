//! The two ways in which a recording's files are written: whole, and line by line. Both make new files only, in a
//! folder that is held open: no link that others put there is followed.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

use crate::error::{Error, Result};

/// The end of the name of a file that is not yet renamed into place.
const NEW: &str = ".new";

/// A folder, held open: files are made in it even if its name comes to mean another.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    folder: File,
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
        Ok(Self { path: path.to_owned(), folder: folder.into() })
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
        self.folder.sync_all().map_err(|e| Error::os("cannot sync", &self.path, e))
    }

    /// Creates a file; one that exists, or a link, is an error.
    fn create(&self, name: &str, flags: OFlags) -> Result<File> {
        let flags =
            flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::from_raw_mode(0o644));
        Ok(file.map_err(|e| Error::os("cannot create", &self.path.join(name), e))?.into())
    }
}

/// Writes a file of a folder that the operator named whole, see [`HeldFolder::replace`].
///
/// # Errors
/// If the folder can't be opened or the file not be written.
pub fn replace(dir: &Path, name: &str, content: &[u8]) -> Result<()> {
    HeldFolder::open(dir)?.replace(name, content)
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
        Ok(Self { path: folder.path.join(name), file, len_bytes: 0 })
    }

    /// Hands a record to the kernel. One that could not be written completely is removed, so that the next
    /// one does not follow a torn one.
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
    fn a_replaced_file_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        replace(dir.path(), "summary.json", b"one").unwrap();
        replace(dir.path(), "summary.json", b"two").unwrap();
        assert_eq!(std::fs::read(dir.path().join("summary.json")).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        // Where it can't be put in place, neither.
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        assert!(replace(dir.path(), "folder", b"one").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_existing_file_is_not_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldFolder::open(dir.path()).unwrap();
        Appender::create(&folder, "windows.jsonl").unwrap().append(b"{}\n").unwrap();
        assert!(Appender::create(&folder, "windows.jsonl").unwrap_err().what.contains("EEXIST"));
        assert_eq!(std::fs::read(dir.path().join("windows.jsonl")).unwrap(), b"{}\n");
    }

    #[test]
    fn no_link_is_followed() {
        use std::os::unix::fs::symlink;

        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = other.path().join("victim");
        std::fs::write(&victim, "theirs").unwrap();
        for name in ["summary.json", "summary.json.new", "windows.jsonl"] {
            symlink(&victim, dir.path().join(name)).unwrap();
        }
        replace(dir.path(), "summary.json", b"ours").unwrap();
        assert_eq!(std::fs::read(dir.path().join("summary.json")).unwrap(), b"ours");
        let folder = HeldFolder::open(dir.path()).unwrap();
        assert!(Appender::create(&folder, "windows.jsonl").is_err());
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
