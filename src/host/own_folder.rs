//! Folders for root to work in, which nobody else could exchange for others in the meantime.
//!
//! Whoever can replace a folder, or a link on the way to it, chooses where root's files go. What is checked
//! here stays so: only those who are trusted can change it afterwards. Without root, any folder can be used
//! that can be opened.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, open, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::trust::{Doubt, is_private, open_trusted_with};
use crate::error::{Error, Result};
use crate::printable::Shown as _;

/// The mode of a created folder: only its owner may enter it.
const FOLDER_MODE: u32 = 0o700;

/// Who, besides root, may be able to exchange a folder of root's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trusting {
    /// Nobody: where root formats or mounts, or has a library open files by name.
    Root,
    /// The user who called sudo, whose command this is: for files that are opened without following links and
    /// created under new names.
    Caller,
}

impl Trusting {
    fn user(self) -> Option<u32> {
        match self {
            Self::Root => None,
            Self::Caller => std::env::var("SUDO_UID").ok()?.parse().ok(),
        }
    }
}

/// Opens a folder to create something in it.
///
/// # Errors
/// Refused as root if anybody else could exchange it, or a folder above it.
pub fn open_own_folder(dir: &Path, trusting: Trusting) -> Result<OwnedFd> {
    open_place(dir, trusting).map_err(|doubt| doubted(dir, &doubt))
}

/// Checks the folder or, if it does not exist yet, its nearest existing parent.
///
/// # Errors
/// As [`open_own_folder`].
pub fn refuse_exchangeable(dir: &Path, trusting: Trusting) -> Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let dir = std::path::absolute(dir).map_err(|error| Error::os("cannot examine", dir, error))?;
    let there = dir.ancestors().find(|at| at.symlink_metadata().is_ok()).unwrap_or(Path::new("/"));
    open_own_folder(there, trusting).map(drop)
}

/// Creates the folder and its parents, accessible only to the owner.
///
/// # Errors
/// As [`open_own_folder`], or if it can't be created.
pub fn make_own_folder(dir: &Path, trusting: Trusting) -> Result<()> {
    make_folders(dir, trusting, FOLDER_MODE).map(drop).map_err(|doubt| match doubt {
        Doubt::Os(_, error) => Error::os("cannot create the folder", dir, error),
        doubt => doubted(dir, &doubt),
    })
}

/// Created folders, outermost first: each with the folder it is in, and its name there.
#[derive(Debug, Default)]
pub struct NewFolders(Vec<(OwnedFd, OsString)>);

impl NewFolders {
    /// Removes them as long as they are empty; returns whether any was removed.
    pub fn remove(self) -> bool {
        let remove = |(above, name): &(OwnedFd, OsString)| unlinkat(above, name, AtFlags::REMOVEDIR).is_ok();
        self.0.iter().rev().take_while(|made| remove(made)).count() > 0
    }
}

/// Creates the folder and its parents with that mode, less the umask. Each is created in one that is held
/// open, so that no link that others put in its way meanwhile is followed.
///
/// # Errors
/// The first doubt on the way, as root: others could exchange it. Or why it can't be created.
pub fn make_folders(dir: &Path, trusting: Trusting, mode: u32) -> std::result::Result<NewFolders, Doubt> {
    let absolute = std::path::absolute(dir);
    let dir = absolute.map_err(|_| Doubt::Os(dir.to_owned(), Errno::NOENT))?;
    let mut made = NewFolders::default();
    match make_in_turn(&dir, trusting, Mode::from_raw_mode(mode), &mut made) {
        Ok(_) => Ok(made),
        Err(doubt) => {
            made.remove();
            Err(doubt)
        }
    }
}

fn make_in_turn(
    dir: &Path,
    trusting: Trusting,
    mode: Mode,
    made: &mut NewFolders,
) -> std::result::Result<OwnedFd, Doubt> {
    let above = match (open_place(dir, trusting), dir.parent()) {
        (Err(Doubt::Os(_, Errno::NOENT)), Some(above)) => above,
        (opened, _) => return opened,
    };
    let above = make_in_turn(above, trusting, mode, made)?;
    // None for `..`.
    if let Some(name) = dir.file_name() {
        match mkdirat(&above, name, mode) {
            Ok(()) => made.0.push((above, name.to_owned())),
            // If somebody else created it meanwhile, it may be theirs: opening it checks that.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Doubt::Os(dir.to_owned(), error)),
        }
    }
    open_place(dir, trusting)
}

/// Opens a folder to work in; as root, only if others can't exchange it.
fn open_place(dir: &Path, trusting: Trusting) -> std::result::Result<OwnedFd, Doubt> {
    if geteuid().is_root() {
        return open_trusted_with(dir, trusting.user());
    }
    let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(dir, place, Mode::empty()).map_err(|error| Doubt::Os(dir.to_owned(), error))
}

/// Checks a folder in which a library opens files by name, following links: it may hold only regular files of
/// the user's own, and nobody else may be able to add anything.
///
/// # Errors
/// Refused, also without root, with what is wrong. A missing folder is accepted.
pub fn refuse_others_entries(dir: &Path) -> Result<()> {
    let failed = |error: Errno| Error::os("cannot examine", dir, error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match open(dir, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(odd(dir, "is not a folder")),
        folder => folder.map_err(failed)?,
    };
    refuse_writable(dir, &folder)?;
    for entry in Dir::read_from(&folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_owned();
        if [c".", c".."].contains(&name.as_c_str()) {
            continue;
        }
        let path = dir.join(OsStr::from_bytes(name.as_bytes()));
        match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            // A temporary file that is gone by now.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
            Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                // Truncating a file here would truncate it under all of its names. Sorted tables are never
                // truncated: a checkpoint of RocksDB's shares them.
                FileType::RegularFile if found.st_nlink > 1 && !name.to_bytes().ends_with(b".sst") => {
                    return Err(odd(&path, "is a file with several names (hard links)"));
                }
                FileType::RegularFile => refuse_owner(&path, &found)?,
                FileType::Symlink => return Err(odd(&path, "is a symbolic link")),
                _ => return Err(odd(&path, "is not a regular file")),
            },
        }
    }
    Ok(())
}

/// Checks a folder whose content only the user may be able to change, if it exists.
///
/// # Errors
/// Refused, also without root.
pub fn refuse_others_folder(dir: &Path) -> Result<()> {
    match open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => Ok(()),
        folder => refuse_writable(dir, &folder.map_err(|error| Error::os("cannot open", dir, error))?),
    }
}

fn refuse_writable(path: &Path, folder: &OwnedFd) -> Result<()> {
    let found = fstat(folder).map_err(|error| Error::os("cannot examine", path, error))?;
    refuse_owner(path, &found)?;
    if is_private(folder, &found) {
        return Ok(());
    }
    let path = path.shown();
    Err(Error::refused(format!("others may write to {path}")).hint(
        "nothing was changed: look at what is in it, then remove their write permission (`chmod go-w`)",
    ))
}

fn refuse_owner(path: &Path, found: &Stat) -> Result<()> {
    let is_own = found.st_uid == geteuid().as_raw();
    if is_own { Ok(()) } else { Err(odd(path, &format!("belongs to user {}", found.st_uid))) }
}

fn odd(path: &Path, what: &str) -> Error {
    Error::refused(format!("{} {what}", path.shown()))
        .hint("nothing was changed: find out who put it there, and remove it, or choose a folder of your own")
}

/// The error for a doubt about a folder in which root works.
pub fn doubted(dir: &Path, doubt: &Doubt) -> Error {
    if let Doubt::Os(at, error) = doubt {
        return Error::os("cannot open", at, *error);
    }
    let what =
        format!("{} could be exchanged for another folder while root works in it: {doubt}", dir.shown());
    Error::refused(what)
        .hint("choose a folder that only root can change, and whose parents only root can change")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, mknodat};

    use super::*;
    use crate::error::Kind;

    fn mode(path: &Path, bits: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    }

    #[test]
    fn a_library_finds_only_regular_files_of_ones_own() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("rocksdb");
        refuse_others_entries(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        mode(&dir, 0o755);
        fs::write(dir.join("CURRENT"), "").unwrap();
        refuse_others_entries(&dir).unwrap();
        let refused = |why: &str| {
            let error = refuse_others_entries(&dir).unwrap_err();
            assert!(error.kind == Kind::Refused && error.what.contains(why), "{error}");
        };
        let odd = dir.join("000001.dbtmp");
        symlink(top.path().join("none"), &odd).unwrap();
        refused("000001.dbtmp is a symbolic link");
        fs::remove_file(&odd).unwrap();
        fs::create_dir(&odd).unwrap();
        refused("000001.dbtmp is not a regular file");
        fs::remove_dir(&odd).unwrap();
        mknodat(CWD, &odd, FileType::Fifo, Mode::RUSR, 0).unwrap();
        refused("000001.dbtmp is not a regular file");
        fs::remove_file(&odd).unwrap();
        fs::hard_link(dir.join("CURRENT"), top.path().join("elsewhere")).unwrap();
        refused("CURRENT is a file with several names");
        fs::remove_file(top.path().join("elsewhere")).unwrap();
        fs::write(dir.join("000007.sst"), "").unwrap();
        fs::hard_link(dir.join("000007.sst"), top.path().join("checkpoint")).unwrap();
        refuse_others_entries(&dir).unwrap();
        if chown(dir.join("CURRENT"), Some(65_534), None).is_ok() {
            refused("CURRENT belongs to user 65534");
            chown(dir.join("CURRENT"), Some(0), None).unwrap();
        }
        mode(&dir, 0o1777);
        refused("others may write to");
        mode(&dir, 0o755);
        refuse_others_entries(&dir).unwrap();
        let link = top.path().join("link");
        symlink(&dir, &link).unwrap();
        assert!(refuse_others_entries(&link).unwrap_err().what.contains("is not a folder"));
    }

    #[test]
    fn root_makes_folders_only_where_nobody_else_can_exchange_them() {
        let top = tempfile::tempdir().unwrap();
        let theirs = top.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        symlink(top.path(), theirs.join("link")).unwrap();
        let dirs = [theirs.join("a/b"), theirs.join("link/a/b")];
        // Only root can give a folder away.
        let is_given = chown(&theirs, Some(65_534), None).is_ok();
        for dir in &dirs {
            assert_eq!(refuse_exchangeable(dir, Trusting::Root).is_err(), is_given);
            assert_eq!(make_own_folder(dir, Trusting::Root).is_err(), is_given);
            assert_eq!(dir.exists(), !is_given);
        }
        let dir = top.path().join("a/b");
        make_own_folder(&dir, Trusting::Root).unwrap();
        refuse_exchangeable(&dir, Trusting::Root).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    }
    #[test]
    fn folders_are_made_where_the_way_leads_and_removed_while_they_are_empty() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("a/../b/c");
        let made = make_folders(&dir, Trusting::Root, 0o755).unwrap();
        assert_eq!(fs::metadata(top.path().join("b/c")).unwrap().permissions().mode() & 0o700, 0o700);
        fs::write(top.path().join("b/file"), "").unwrap();
        assert!(made.remove());
        assert!(!top.path().join("b/c").exists() && top.path().join("b/file").exists());
        assert!(!make_folders(top.path(), Trusting::Root, 0o755).unwrap().remove(), "it was there");
        // Nothing is left half created.
        let cannot = make_folders(&top.path().join("d/e").join("x".repeat(300)), Trusting::Root, 0o755);
        assert!(matches!(cannot.unwrap_err(), Doubt::Os(_, Errno::NAMETOOLONG)));
        assert!(!top.path().join("d").exists());
    }

    /// Another user puts a link in the way, and takes it away, as fast as possible.
    #[test]
    fn no_folder_is_made_behind_a_link_that_others_put_in_the_way_meanwhile() {
        let top = tempfile::tempdir().unwrap();
        let (sticky, theirs) = (top.path().join("sticky"), top.path().join("theirs"));
        fs::create_dir(&sticky).unwrap();
        mode(&sticky, 0o1777);
        fs::create_dir(&theirs).unwrap();
        let (link, is_over) = (sticky.join("link"), AtomicBool::new(false));
        symlink(&theirs, top.path().join("ready")).unwrap();
        // Only root can give it away; without root every link is followed.
        let is_given = lchown(top.path().join("ready"), Some(65_534), None).is_ok();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = fs::rename(top.path().join("ready"), &link);
                    let _ = fs::rename(&link, top.path().join("ready"));
                }
            });
            for _ in 0..2000 {
                if let Ok(made) = make_folders(&link.join("a/b"), Trusting::Root, 0o755) {
                    made.remove();
                }
                if is_given {
                    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
                }
                let _ = fs::remove_dir_all(theirs.join("a"));
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
