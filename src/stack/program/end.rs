//! Killing everything in the cgroups of a program, whoever made them.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::{Error, Result};
use crate::host::processes_in;
use crate::printable::Shown as _;
use crate::stack::tuning::cgroup::{is_cgroups, remove, write};

/// How long killed processes may take to end: one that waits for a drive ends only after its I/O.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);
/// How deep nested cgroups are searched.
const DEPTH_MAX: usize = 16;

/// A cgroup and all cgroups nested in it, the innermost first.
pub(crate) fn with_those_in_it(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(dir, DEPTH_MAX, &mut found);
    found
}

fn collect(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.for_each(|entry| collect(&entry.path(), depth - 1, found));
    found.push(dir.to_owned());
}

/// Removes a cgroup and all nested in it; none may have processes any more.
///
/// # Errors
/// As [`remove`].
pub(crate) fn remove_all(dir: &Path, switched_on: bool) -> Result<()> {
    let all = with_those_in_it(dir);
    all.iter().try_for_each(|one| remove(one, switched_on && one == dir))
}

/// Kills everything in these cgroups, and waits for its end. A cgroup that is gone is empty.
///
/// # Errors
/// Refused if one is not in a cgroup file system; failed if something does not end.
pub(crate) fn end(dirs: &[PathBuf]) -> Result<()> {
    let patience_ends = Instant::now() + PATIENCE;
    loop {
        let mut left = Vec::new();
        for dir in dirs {
            left.extend(kill(dir)?);
        }
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= patience_ends {
            let left: Vec<String> = left.iter().map(u32::to_string).collect();
            return Err(Error::failed(format!(
                "processes that the program started did not end: {}",
                left.join(", ")
            )));
        }
        std::thread::sleep(LOOK);
    }
}

/// Kills everything in a cgroup and those nested in it; returns which processes were there.
fn kill(dir: &Path) -> Result<Vec<u32>> {
    let folder =
        match OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            folder => folder.map_err(|error| Error::os("cannot open", dir, error))?,
        };
    if !is_cgroups(&folder) {
        return Err(Error::refused(format!(
            "{} is not in a cgroup file system: it is left alone",
            dir.shown()
        )));
    }
    let all = with_those_in_it(dir);
    let found: Vec<(&PathBuf, u32)> =
        all.iter().flat_map(|dir| processes_in(dir).into_iter().map(move |pid| (dir, pid))).collect();
    // All at once, including processes that start meanwhile (Linux 5.14).
    let at_once = dir.join("cgroup.kill");
    if at_once.exists() && !found.is_empty() {
        write(&at_once, "1")?;
    }
    for (dir, pid) in &found {
        let pid = Pid::from_raw(pid.cast_signed());
        let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { continue };
        // The pid may have been reused: kill only a process that is still inside.
        if processes_in(dir).iter().any(|inside| Pid::from_raw(inside.cast_signed()) == pid) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
    Ok(found.into_iter().map(|(_, pid)| pid).collect())
}
