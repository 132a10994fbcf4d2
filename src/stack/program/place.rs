//! Where a program works: its own folder on the target, and a second one if its log has a place of its own.
//! As root, the program sees these at short paths, in its own mount namespace: only root may enter the
//! folders above a stack, and the path is the same for every stack.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::fs::{Dir, Mode, OFlags, fchown, fstat, mkdirat, openat};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::UnshareFlags;

use crate::error::{Error, Result, describe};
use crate::host::{Trusting, User, open_own_folder};
use crate::marks::PROGRAM_NAME;
use crate::printable::Shown as _;
use crate::threads;

/// Where the program sees its folders: those of these that are empty, else the first. For the program, they
/// hide whatever is there.
const VIEWS: [&str; 3] = ["/media", "/mnt", "/srv"];
const MODE: Mode = Mode::RWXU;

type Job = (Command, Sender<std::io::Result<Child>>);

/// The folder of a program, and the thread that starts its processes.
#[derive(Debug)]
pub struct Place {
    dir: PathBuf,
    wal: PathBuf,
    is_new: bool,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Place {
    /// Makes the program's folder on a target for the user, or reuses an existing one; likewise the folder of
    /// its log on another target, if there is one.
    ///
    /// # Errors
    /// Refused if one belongs to someone else, if only one exists, or if others could replace the target's folder.
    pub fn open(target: &Path, wal: Option<&Path>, trusting: Trusting, user: Option<&User>) -> Result<Self> {
        let ((ready, is_ready), (jobs, asked)) = (channel(), channel::<Job>());
        let targets: Vec<PathBuf> = std::iter::once(target).chain(wal).map(Path::to_owned).collect();
        let user = user.cloned();
        let thread = threads::start("start a program", move || {
            let made = make(&targets, trusting, user.as_ref());
            let failed = made.is_err();
            // Its processes are killed with this thread, so the thread outlives them.
            if ready.send(made).is_ok() && !failed {
                serve(&asked);
            }
        })?;
        let made = is_ready.recv().map_err(|_| Error::failed("the thread that starts the program ended"));
        let (dirs, is_new) = made.flatten()?;
        let [dir, wal] = [dirs.first(), dirs.last()].map(|dir| dir.cloned().unwrap_or_default());
        Ok(Self { dir, wal, is_new, jobs: Some(jobs), thread: Some(thread) })
    }

    /// The folder as the program sees it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder of its log as the program sees it; the same folder unless the log has its own.
    pub fn wal(&self) -> &Path {
        &self.wal
    }

    /// Whether it was made just now.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Starts a process there.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start(&self, command: Command) -> Result<Child> {
        let program = command.get_program().to_owned();
        let (answer, answered) = channel();
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send((command, answer)).is_ok());
        let started = if sent { answered.recv().ok() } else { None };
        let started = started.ok_or_else(|| Error::failed("the thread that starts the program ended"))?;
        started.map_err(|error| {
            Error::failed(format!("cannot start {}: {}", Path::new(&program).shown(), describe(&error)))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(asked: &Receiver<Job>) {
    while let Ok((mut command, answer)) = asked.recv() {
        let _ = answer.send(command.spawn());
    }
}

/// Makes the folders; returns them as the program sees them, and whether they are new.
fn make(targets: &[PathBuf], trusting: Trusting, user: Option<&User>) -> Result<(Vec<PathBuf>, bool)> {
    let is_root = geteuid().is_root();
    if is_root {
        own_namespace()?;
    }
    let paths: Vec<_> = targets.iter().map(|target| target.join(PROGRAM_NAME)).collect();
    refuse_halves(&paths)?;
    // Opened inside this namespace, since nothing from another one can be bound here.
    let opened = targets.iter().zip(&paths).map(|(target, path)| own_folder(target, path, trusting, user));
    let opened = opened.collect::<Result<Vec<_>>>()?;
    let is_new = opened.iter().all(|(_, is_new)| *is_new);
    if !is_root {
        return Ok((paths, is_new));
    }
    let is_empty = |view: &Path| fs::read_dir(view).is_ok_and(|mut entries| entries.next().is_none());
    let (empty, full): (Vec<_>, Vec<_>) =
        VIEWS.map(Path::new).into_iter().filter(|view| view.is_dir()).partition(|view| is_empty(view));
    let views: Vec<PathBuf> = empty.into_iter().chain(full).take(opened.len()).map(Path::to_owned).collect();
    if views.len() < opened.len() {
        let none =
            format!("too few of these folders exist to mount the program's own at: {}", VIEWS.join(", "));
        return Err(Error::failed(none));
    }
    for ((folder, _), view) in opened.iter().zip(&views) {
        mount_bind(format!("/proc/thread-self/fd/{}", folder.as_raw_fd()), view)
            .map_err(|error| Error::os("cannot show the program its folder at", view, error))?;
    }
    Ok((views, is_new))
}

/// Refuses data without its log, and a log without its data.
fn refuse_halves(paths: &[PathBuf]) -> Result<()> {
    let (there, absent): (Vec<_>, Vec<_>) = paths.iter().partition(|path| path.symlink_metadata().is_ok());
    let (Some(there), Some(absent)) = (there.first(), absent.first()) else { return Ok(()) };
    let what = format!(
        "{} is from an earlier run, but its other half, {}, is missing",
        there.shown(),
        absent.shown()
    );
    Err(Error::refused(what).hint("use that run's folders (target.files.dir, wal.target), or remove it"))
}

/// Gives this thread its own mount namespace, which ends with it and its processes. Unmounts elsewhere
/// propagate here, so that no other stack is kept busy.
#[allow(unsafe_code)] // rustix leaves it to the caller what a namespace means
fn own_namespace() -> Result<()> {
    // SAFETY: descriptors stay shared; only this thread's view of mounts, and its working directory, are separated.
    let parted = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
    parted
        .and_then(|()| mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC))
        .map_err(|error| {
            Error::os("cannot unshare the mount namespace", Path::new("/proc/self/ns/mnt"), error)
        })
}

/// The program's folder, which only its user may enter: newly made, or found as it was made.
fn own_folder(
    target: &Path,
    path: &Path,
    trusting: Trusting,
    user: Option<&User>,
) -> Result<(OwnedFd, bool)> {
    let failed = |error: Errno| Error::os("cannot use the folder", path, error);
    let above = open_own_folder(target, trusting)?;
    let name = OsStr::new(PROGRAM_NAME);
    let is_new = match mkdirat(&above, name, MODE) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(failed(error)),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(&above, name, flags, Mode::empty()).map_err(failed)?;
    let found = fstat(&folder).map_err(failed)?;
    if let (true, Some(user)) = (is_new, user) {
        // If someone swapped the folder meanwhile, chown must not give them anyone's data.
        let mut entries = Dir::read_from(&folder).map_err(failed)?;
        let holds = entries.any(|entry| !entry.is_ok_and(|entry| [c".", c".."].contains(&entry.file_name())));
        if holds || found.st_uid != geteuid().as_raw() {
            return Err(Error::refused(format!("{} was replaced by someone else", path.shown())));
        }
        fchown(&folder, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid))).map_err(failed)?;
    } else if let Some(owner) = user.map(|user| user.uid).or(Some(geteuid().as_raw()))
        && found.st_uid != owner
    {
        let what =
            format!("{} belongs to user {}, and the program runs as {owner}", path.shown(), found.st_uid);
        return Err(Error::refused(what).hint("run it as that user, with --user, or remove the folder"));
    }
    Ok((folder, is_new))
}
