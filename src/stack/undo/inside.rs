//! Looking into a file system that is not mounted, by mounting it where only the looking thread can see it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::thread::UnshareFlags;

use super::others::others_left_in;
use super::undoer::persist;
use crate::error::{Error, Result};
use crate::stack::runner::{Answer, MOUNT, Runner, UMOUNT, private_folder};
use crate::threads;

/// Where a file system can be mounted unseen by other processes, if there is no stacktune folder.
const INSTEAD: [&str; 4] = ["/mnt", "/media", "/srv", "/var"];

/// Why a file system could not be looked into.
pub(super) enum Closed {
    /// It can't be mounted: it is damaged or partly gone; with mount's first line.
    Damaged(String),
    /// Something else failed, which says nothing about its content.
    Failed(Error),
}

/// The names in its root folder that are not stacktune's. If it has several devices, any one leads to all of it.
pub(super) fn others_on(
    runner: &Runner,
    node: &Path,
    retained: bool,
) -> std::result::Result<Vec<String>, Closed> {
    let (runner, node) = (runner.clone(), node.to_owned());
    let look = threads::start("look into a file system", move || {
        own_namespace(&runner).map_err(Closed::Failed)?;
        look(&runner, &node, retained)
    });
    match look.map_err(Closed::Failed)?.join() {
        Ok(found) => found,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Gives this thread its own mount namespace, which ends with it.
#[allow(unsafe_code)] // rustix leaves it to the caller what a namespace means
fn own_namespace(runner: &Runner) -> Result<()> {
    // SAFETY: descriptors stay shared; only this thread's view of mounts, and its working directory, are separated.
    let parted = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
    parted.map_err(|error| {
        Error::os("cannot unshare the mount namespace", Path::new("/proc/self/ns/mnt"), error)
    })?;
    // Mounts made here must not propagate to other namespaces.
    runner.run_well(MOUNT, &["--make-rprivate", "/"].map(OsStr::new)).map(drop)
}

fn look(runner: &Runner, node: &Path, retained: bool) -> std::result::Result<Vec<String>, Closed> {
    let dir = mount_point().map_err(Closed::Failed)?;
    let mount = |options: &str| -> std::result::Result<Answer, Closed> {
        let arguments = ["-o".as_ref(), options.as_ref(), "--".as_ref(), node.as_os_str(), dir.as_os_str()];
        runner.run(MOUNT, &arguments).map_err(Closed::Failed)
    };
    let mut answer = mount("ro,nosuid,nodev,noexec")?;
    if answer.status != 0 {
        // Btrfs's own RAID that lacks one of its drives.
        let degraded = mount("ro,nosuid,nodev,noexec,degraded")?;
        answer = if degraded.status == 0 { degraded } else { answer };
    }
    if answer.status != 0 {
        return Err(closed(&answer));
    }
    let found =
        others_left_in(&dir, retained).map_err(|error| Closed::Failed(Error::os("cannot read", &dir, error)));
    // Before the thread ends, or the device would stay in use for a moment.
    let unmounted = persist(|| runner.run_well(UMOUNT, &[dir.as_os_str()]).map(drop)).map_err(Closed::Failed);
    found.and_then(|found| unmounted.map(|()| found))
}

fn mount_point() -> Result<PathBuf> {
    let instead = || INSTEAD.iter().map(PathBuf::from).find(|dir| dir.is_dir());
    private_folder("look").or_else(instead).ok_or_else(|| {
        Error::failed(format!("there is no folder to mount a file system at: none of {}", INSTEAD.join(", ")))
    })
}

fn closed(answer: &Answer) -> Closed {
    /// mount's exit status if the kernel refused the mount.
    const REFUSED_BY_KERNEL: i32 = 32;
    let why =
        answer.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").to_owned();
    // A limitation of the host says nothing about the file system.
    let is_ours =
        ["loop device", "unknown filesystem type", "permission denied"].iter().any(|ours| why.contains(ours));
    if answer.status == REFUSED_BY_KERNEL && !is_ours {
        Closed::Damaged(why)
    } else {
        Closed::Failed(Error::failed(format!("mount: {why}")))
    }
}
