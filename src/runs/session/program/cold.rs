//! The page cache before a program is measured: cached pages of the program's folder are written back and
//! dropped, so that every run begins alike, whether its data was just made or is an earlier run's.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Advice, Dir, FileType, Mode, OFlags, Stat, fadvise, fdatasync, fstat, open, openat};
use rustix::io::Errno;

/// The most files and folders that are visited, and the depth of folders: the program may have made any number.
const ENTRIES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 32;
/// The unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// What is done with each file; returns whether that went well.
type Visit<'a> = dyn FnMut(&OwnedFd, &Stat) -> bool + 'a;

/// Drops cached pages of the files below a folder, which others may be changing, unless it may not go on. Returns
/// whether that worked for all.
pub(super) fn drop_cached(folder: &Path, goes_on: &mut dyn FnMut() -> bool) -> bool {
    visit_below(folder, &mut |file, _| {
        goes_on() && fdatasync(file).and_then(|()| fadvise(file, 0, None, Advice::DontNeed)).is_ok()
    })
}

/// The bytes that the files below a folder occupy, each counted once; none if not all could be visited.
pub(super) fn occupied_below(folder: &Path) -> Option<u64> {
    let (mut bytes, mut seen) = (0, HashSet::new());
    let all = visit_below(folder, &mut |_, found| {
        if seen.insert((found.st_dev, found.st_ino)) {
            bytes += found.st_blocks as u64 * BLOCK_BYTES;
        }
        true
    });
    all.then_some(bytes)
}

fn visit_below(folder: &Path, visit: &mut Visit) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut left = ENTRIES_MAX;
    open(folder, flags, Mode::empty()).is_ok_and(|folder| visit_in(&folder, DEPTH_MAX, &mut left, visit))
}

fn visit_in(folder: &OwnedFd, depth: usize, left: &mut usize, visit: &mut Visit) -> bool {
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
        // No link or device of others' is kept open, and a pipe does not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match openat(folder, name, flags, Mode::empty()) {
            Ok(opened) => all &= visit_one(&opened, depth, left, visit),
            // Gone, a link, or a socket: these have no cached pages.
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => {}
            Err(_) => all = false,
        }
    }
    all
}

fn visit_one(opened: &OwnedFd, depth: usize, left: &mut usize, visit: &mut Visit) -> bool {
    let Ok(found) = fstat(opened) else { return false };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => visit_in(opened, depth - 1, left, visit),
        FileType::RegularFile => visit(opened, &found),
        _ => true,
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
        std::fs::hard_link(dir.path().join("a/b/f"), dir.path().join("again")).unwrap();
        assert!(drop_cached(dir.path(), &mut || true));
        // 5,000 bytes take two blocks of 4 KiB, or other amounts on other file systems.
        let occupied = occupied_below(dir.path()).unwrap();
        assert!((5000..10_000).contains(&occupied), "{occupied}");
        assert_eq!(occupied_below(&dir.path().join("none")), None);
        assert_eq!(std::fs::read(dir.path().join("a/b/f")).unwrap(), [1; 5000]);
        assert!(
            !drop_cached(&dir.path().join("none"), &mut || true)
                && !drop_cached(&dir.path().join("link"), &mut || true)
        );
    }
}
