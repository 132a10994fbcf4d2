//! Where a program works: a folder of its own on the target. As root it sees that folder at a short path, in a mount
//! namespace of its own: the folders above a stack are root's alone, and the path is the same for every stack.

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

/// Where the program sees its folder: the first of these that is empty, else the first. In the program's eyes it hides
/// what is there.
const VIEWS: [&str; 3] = ["/media", "/mnt", "/srv"];
const MODE: Mode = Mode::RWXU;

type Job = (Command, Sender<std::io::Result<Child>>);

/// The folder of a program, and the thread that starts its processes.
#[derive(Debug)]
pub struct Place {
    dir: PathBuf,
    is_new: bool,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Place {
    /// Makes the folder in that of a target for the user, or takes the one that is there.
    ///
    /// # Errors
    /// Refused if it is another's, or others could exchange the target's.
    pub fn open(target: &Path, trusting: Trusting, user: Option<&User>) -> Result<Self> {
        let ((ready, is_ready), (jobs, asked)) = (channel(), channel::<Job>());
        let (target, user) = (target.to_owned(), user.cloned());
        let thread = threads::start("start a program", move || {
            let made = make(&target, trusting, user.as_ref());
            let failed = made.is_err();
            // Its processes are killed with this thread: it ends after them.
            if ready.send(made).is_ok() && !failed {
                serve(&asked);
            }
        })?;
        let made = is_ready.recv().map_err(|_| Error::failed("the thread that starts the program ended"));
        let (dir, is_new) = made.flatten()?;
        Ok(Self { dir, is_new, jobs: Some(jobs), thread: Some(thread) })
    }

    /// The folder as the program sees it.
    pub fn dir(&self) -> &Path {
        &self.dir
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

/// The folder as the program sees it, and whether it is new.
fn make(target: &Path, trusting: Trusting, user: Option<&User>) -> Result<(PathBuf, bool)> {
    let path = target.join(PROGRAM_NAME);
    if !geteuid().is_root() {
        let (_, is_new) = own_folder(target, &path, trusting, user)?;
        return Ok((path, is_new));
    }
    own_namespace()?;
    // Opened in this namespace, as nothing of another can be bound here.
    let (folder, is_new) = own_folder(target, &path, trusting, user)?;
    let is_empty = |view: &Path| fs::read_dir(view).is_ok_and(|mut entries| entries.next().is_none());
    let views = VIEWS.map(Path::new);
    let view = views.into_iter().find(|view| is_empty(view)).or(views.into_iter().find(|view| view.is_dir()));
    let view = view.ok_or_else(|| {
        Error::failed(format!(
            "there is no folder to show the program its own at: none of {}",
            VIEWS.join(", ")
        ))
    })?;
    mount_bind(format!("/proc/thread-self/fd/{}", folder.as_raw_fd()), view)
        .map_err(|error| Error::os("cannot show the program its folder at", view, error))?;
    Ok((view.to_owned(), is_new))
}

/// Gives this thread a mount namespace of its own, which ends with it and its processes. What is unmounted elsewhere
/// goes here, too: no other stack is held.
#[allow(unsafe_code)] // rustix leaves it to the caller what a namespace means
fn own_namespace() -> Result<()> {
    // SAFETY: descriptors stay shared; only this thread's view of mounts, and its working directory, part.
    let parted = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
    parted
        .and_then(|()| mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC))
        .map_err(|error| {
            Error::os("cannot get a mount namespace of its own from", Path::new("/proc/self/ns/mnt"), error)
        })
}

/// The program's folder, which only its user enters: made, or found as it was made.
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
        // Whoever exchanged it meanwhile gets nothing that was anybody's.
        let mut entries = Dir::read_from(&folder).map_err(failed)?;
        let holds = entries.any(|entry| !entry.is_ok_and(|entry| [c".", c".."].contains(&entry.file_name())));
        if holds || found.st_uid != geteuid().as_raw() {
            return Err(Error::refused(format!("{} was exchanged by another", path.shown())));
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
