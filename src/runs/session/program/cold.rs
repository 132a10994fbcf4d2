//! The page cache before a program is measured: what it holds of the program's folder is written back and dropped, so that
//! every run begins alike, whether its data were just made or are those of an earlier run.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Advice, Dir, FileType, Mode, OFlags, fadvise, fdatasync, fstat, open, openat};
use rustix::io::Errno;

/// Files and folders that are looked at, and folders in each other: the program may have made any number.
const ENTRIES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 32;

/// Drops what is cached of the files below a folder, which others may be changing. Returns whether all could be.
pub(super) fn drop_cached(folder: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut left = ENTRIES_MAX;
    open(folder, flags, Mode::empty()).is_ok_and(|folder| drop_below(&folder, DEPTH_MAX, &mut left))
}

fn drop_below(folder: &OwnedFd, depth: usize, left: &mut usize) -> bool {
    let Ok(entries) = Dir::read_from(folder) else { return false };
    let mut all = true;
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if *left == 0 || depth == 0 {
            return false;
        }
        *left -= 1;
        // Neither a link nor a device of another's is opened for long; a pipe is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match openat(folder, name, flags, Mode::empty()) {
            Ok(opened) => all &= drop_one(&opened, depth, left),
            // Gone, a link, or a socket: none has pages.
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => {}
            Err(_) => all = false,
        }
    }
    all
}

fn drop_one(opened: &OwnedFd, depth: usize, left: &mut usize) -> bool {
    match fstat(opened).map(|found| FileType::from_raw_mode(found.st_mode)) {
        Ok(FileType::Directory) => drop_below(opened, depth - 1, left),
        Ok(FileType::RegularFile) => {
            fdatasync(opened).and_then(|()| fadvise(opened, 0, None, Advice::DontNeed)).is_ok()
        }
        Ok(_) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_are_dropped_and_links_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/f"), [1; 5000]).unwrap();
        std::os::unix::fs::symlink("/proc/kmsg", dir.path().join("link")).unwrap();
        assert!(drop_cached(dir.path()));
        assert_eq!(std::fs::read(dir.path().join("a/b/f")).unwrap(), [1; 5000]);
        assert!(!drop_cached(&dir.path().join("none")) && !drop_cached(&dir.path().join("link")));
    }
}
