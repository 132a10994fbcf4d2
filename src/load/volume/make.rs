//! Creates files that never appear half-made under their name, and never replace another.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;

use super::own_file::{folder_of, open_ours};
use crate::marks::NEW_PREFIX;

/// Creates a file, lets `prepare` fill it, and only then gives it its name. Fails if the name is taken.
///
/// Even if the process is killed, only a fully prepared file ever has the name.
pub(super) fn place(path: &Path, prepare: &mut dyn FnMut(&File) -> io::Result<()>) -> io::Result<File> {
    let dir = folder_of(path);
    let file = match nameless(dir)? {
        Some(file) => {
            prepare(&file)?;
            file.sync_all()?;
            let open_file = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, open_file, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
            file
        }
        None => place_by_renaming(path, prepare)?,
    };
    File::open(dir)?.sync_all()?;
    Ok(file)
}

/// An unnamed file, which vanishes with the process; `None` if the file system does not support them.
fn nameless(dir: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(dir, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn place_by_renaming(path: &Path, prepare: &mut dyn FnMut(&File) -> io::Result<()>) -> io::Result<File> {
    let dir = folder_of(path);
    remove_leftovers(dir);
    let new = tempfile::Builder::new().prefix(NEW_PREFIX).tempfile_in(dir)?;
    prepare(new.as_file())?;
    new.as_file().sync_all()?;
    Ok(new.persist_noclobber(path)?)
}

/// Removes files under a temporary name, left by runs that were killed while preparing them. Only files with
/// our header are removed.
fn remove_leftovers(dir: &Path) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NEW_PREFIX)) {
        if matches!(open_ours(&entry.path(), false), Ok(Some(_))) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, read_dir};
    use std::io::{ErrorKind, Write};

    use super::*;
    use crate::load::volume::header::{Header, Role};
    use crate::load::volume::layout::Parts;
    use crate::units::MIB;

    #[test]
    fn a_file_gets_its_name_only_once_it_is_prepared() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for way in [place, place_by_renaming] {
            let mut prepare = |mut file: &File| {
                assert!(!path.exists());
                file.write_all(b"whole")
            };
            way(&path, &mut prepare).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"whole");
            assert_eq!(way(&path, &mut |_| Ok(())).unwrap_err().kind(), ErrorKind::AlreadyExists);
            fs::remove_file(&path).unwrap();
            way(&path, &mut |_| Err(ErrorKind::StorageFull.into())).unwrap_err();
            assert_eq!(read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn only_files_with_our_header_are_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mut header = Header::new(1, 0, 1, Role::Data, Parts { wal_bytes: 0, data_bytes: 15 * MIB });
        header.write_area(&File::create(at(".stacktune-ours")).unwrap()).unwrap();
        fs::write(at(".stacktune-empty"), "").unwrap();
        fs::write(at(".stacktune-theirs"), "theirs").unwrap();
        place_by_renaming(&at("file"), &mut |_| Ok(())).unwrap();
        let mut names: Vec<_> =
            read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".stacktune-empty", ".stacktune-theirs", "file"]);
    }
}
