//! One run at a time on a target: advisory locks, which end with the process that holds them.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::printable::Shown as _;

// udev briefly holds a shared lock on a device while it examines it.
const PATIENCE: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_millis(10);

/// Who else may use the target at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// No one.
    Exclusive,
    /// Readers.
    ReadOnly,
}

/// Takes the lock on an open file, for as long as that file stays open.
///
/// # Errors
/// Refused if another process holds it, which is named if known.
pub fn take(file: &File, path: &Path, share: Share) -> Result<()> {
    let operation = match share {
        Share::Exclusive => FlockOperation::NonBlockingLockExclusive,
        Share::ReadOnly => FlockOperation::NonBlockingLockShared,
    };
    let patience_ends = Instant::now() + PATIENCE;
    loop {
        match flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => {
                let holder = holder(file);
                // A program that this process is just starting may still hold what we have closed.
                let is_other = holder.is_some_and(|pid| pid != std::process::id());
                if is_other || Instant::now() >= patience_ends {
                    return Err(in_use(path, holder));
                }
                std::thread::sleep(RETRY);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::os("cannot lock", path, error)),
        }
    }
}

/// Checks whether the lock on an open file is held, without taking it.
///
/// # Errors
/// Refused if it is held, even for reading only.
pub fn refuse_held(file: &File, path: &Path) -> Result<()> {
    if let Some(holder) = holder_of(file, &["WRITE", "READ"]) {
        return Err(in_use(path, Some(holder)));
    }
    // A holder that the kernel does not list (in a container, for example) shows when we try a shared lock; a
    // run that starts at that moment waits for ours.
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = flock(file, FlockOperation::Unlock);
            Ok(())
        }
        Err(Errno::WOULDBLOCK) => Err(in_use(path, None)),
        Err(error) => Err(Error::os("cannot lock", path, error)),
    }
}

fn in_use(path: &Path, holder: Option<u32>) -> Error {
    let who = holder.map_or_else(|| "another process".into(), |pid| format!("process {pid}"));
    Error::failed(format!("{} is in use by {who}", path.shown()))
        .hint("one run at a time on a target: stop the other one, or choose another target")
}

/// The process that holds an exclusive lock on the file, as far as the kernel reports it.
fn holder(file: &File) -> Option<u32> {
    holder_of(file, &["WRITE"])
}

fn holder_of(file: &File, kinds: &[&str]) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (dev, ino) = (metadata.dev(), metadata.ino());
    let place = format!("{:02x}:{:02x}:{ino}", major(dev), minor(dev));
    holder_in(&std::fs::read_to_string("/proc/locks").ok()?, &place, kinds)
}

/// Finds the holder of one of these kinds of locks in a listing such as `1: FLOCK  ADVISORY  WRITE 812 fd:00:94 0 EOF`.
/// Parsed by hand, because procfs-core rejects the whole listing for one line that it does not know.
fn holder_in(locks: &str, place: &str, kinds: &[&str]) -> Option<u32> {
    locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find_map(
        |fields| match fields[..] {
            [_, "FLOCK", _, kind, pid, at, ..] if at == place && kinds.contains(&kind) => {
                pid.parse().ok().filter(|pid| *pid > 0)
            }
            _ => None,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_read_from_the_kernels_listing() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fd:00:94 0 EOF\n\
                     2: FLOCK  ADVISORY  READ 8 fd:00:94 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 11 fd:00:94 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 812 fd:00:94 0 EOF\n";
        assert_eq!(holder_in(locks, "fd:00:94", &["WRITE"]), Some(812));
        assert_eq!(holder_in(locks, "fd:00:94", &["WRITE", "READ"]), Some(8));
        assert_eq!(holder_in(locks, "fd:00:95", &["WRITE"]), None);
    }

    #[test]
    fn what_this_process_still_has_open_for_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locked");
        let [held, file] = [(); 2].map(|()| File::options().create(true).append(true).open(&path).unwrap());
        take(&held, &path, Share::Exclusive).unwrap();
        let closed = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
        });
        take(&file, &path, Share::Exclusive).unwrap();
        closed.join().unwrap();
    }
}
