//! The cgroups of a program: whatever it starts stays in them, is counted there, and is ended there, never by its name.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::{Error, Result};
use crate::host::{CgroupPlace, CgroupVersion, cgroup_place, unified_place};
use crate::printable::Shown as _;
use crate::stack::journal::{Journal, Undo};
use crate::stack::tuning::cgroup::{inside, is_cgroups, remove, write};

/// How long the kernel may take to end what was killed: what waits for a drive ends after its I/O.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// The cgroups of one program.
#[derive(Debug)]
pub struct Groups {
    /// The first one is where its processes are counted.
    dirs: Vec<PathBuf>,
    /// The one with its memory.
    memory: Option<(PathBuf, CgroupVersion)>,
    entry: u64,
    switched_on: bool,
}

/// Where they are to be.
struct Places {
    dirs: Vec<PathBuf>,
    memory: Option<CgroupPlace>,
}

impl Groups {
    /// Makes them; all that enters them together has no more than that much memory, page cache included, and no swap.
    ///
    /// # Errors
    /// Refused where the kernel or this host has no cgroups for it, or none that limit memory where that is asked for.
    pub fn make(journal: &mut Journal, memory_max_bytes: Option<u64>) -> Result<Self> {
        let places = places(memory_max_bytes.is_some())?;
        let name = format!("stacktune-{}", journal.record().header.id.0);
        let dirs: Vec<PathBuf> = places.dirs.iter().map(|parent| parent.join(&name)).collect();
        let switched_on = places.memory.as_ref().is_some_and(|place| place.switch_on);
        let memory = places.memory.map(|place| (place.parent.join(&name), place.version));
        let entry = journal.record().entries.len() as u64;
        let groups = Self { dirs, memory, entry, switched_on };
        let undo = Undo::EndProgram { dirs: groups.dirs.clone(), switched_on };
        let shown: Vec<_> = groups.dirs.iter().map(|dir| dir.shown()).collect();
        let made = journal.act(&format!("mkdir {}", shown.join(" ")), Some(undo), || {
            if let (true, Some(parent)) = (switched_on, groups.dirs[0].parent()) {
                write(&parent.join("cgroup.subtree_control"), "+memory")?;
            }
            for dir in &groups.dirs {
                fs::create_dir(dir).map_err(|error| Error::os("cannot create", dir, error))?;
            }
            memory_max_bytes.map_or(Ok(()), |bytes| groups.limit(bytes))
        });
        match made {
            Ok(()) => Ok(groups),
            Err(error) => match groups.remove(journal) {
                Ok(()) => Err(error),
                Err(left) => Err(Error { what: format!("{}; and then {}", error.what, left.what), ..error }),
            },
        }
    }

    fn limit(&self, bytes: u64) -> Result<()> {
        let Some((dir, version)) = &self.memory else { return Ok(()) };
        write(&dir.join(version.limit()), &bytes.to_string())?;
        let (swap, value) = match version {
            CgroupVersion::V1 => ("memory.memsw.limit_in_bytes", bytes),
            CgroupVersion::V2 => ("memory.swap.max", 0),
        };
        if dir.join(swap).exists() {
            return write(&dir.join(swap), &value.to_string());
        }
        // A kernel that does not count swap has version 1 without that file, or no swap at all.
        let swappiness = dir.join("memory.swappiness");
        if swappiness.exists() { write(&swappiness, "0") } else { Ok(()) }
    }

    /// The files through which a process enters.
    ///
    /// # Errors
    /// If one can't be opened, or is not the kernel's.
    pub fn entrances(&self) -> Result<Vec<File>> {
        let open = |dir: &PathBuf| {
            let path = dir.join("cgroup.procs");
            let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(&path);
            let file = file.map_err(|error| Error::os("cannot open", &path, error))?;
            if is_cgroups(&file) {
                Ok(file)
            } else {
                Err(Error::refused(format!("{} is no cgroup", dir.shown())))
            }
        };
        self.dirs.iter().map(open).collect()
    }

    /// Where its processes are counted.
    pub fn dir(&self) -> &Path {
        &self.dirs[0]
    }

    /// Where its memory is counted; none where the kernel does not.
    pub fn memory(&self) -> Option<&(PathBuf, CgroupVersion)> {
        self.memory.as_ref()
    }

    /// Ends everything in them.
    ///
    /// # Errors
    /// If something does not end.
    pub fn end(&self) -> Result<()> {
        end(&self.dirs)
    }

    /// Ends everything in them, and removes them.
    ///
    /// # Errors
    /// What is left; it stays in the journal.
    pub fn remove(&self, journal: &mut Journal) -> Result<()> {
        self.end()?;
        self.dirs.iter().try_for_each(|dir| remove(dir, self.switched_on))?;
        journal.undone(self.entry);
        Ok(())
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // What was left by an error or a panic; the folders stay for whoever follows the journal.
        let _ = self.end();
    }
}

fn places(limited: bool) -> Result<Places> {
    let (memory, unified) = (cgroup_place(Path::new("/")), unified_place(Path::new("/")));
    match (memory, unified) {
        (Ok(place), Ok(unified)) if place.version == CgroupVersion::V1 => {
            Ok(Places { dirs: vec![unified, place.parent.clone()], memory: Some(place) })
        }
        (Ok(place), _) => Ok(Places { dirs: vec![place.parent.clone()], memory: Some(place) }),
        (Err(why), _) if limited => {
            Err(Error::refused(format!("the program's memory can't be limited: {why}"))
                .hint("leave command.memory_max out"))
        }
        (Err(_), Ok(unified)) => Ok(Places { dirs: vec![unified], memory: None }),
        (Err(_), Err(why)) => {
            let what = format!("a program is ended by its cgroup, and it can't have one: {why}");
            Err(Error::refused(what).hint("`systemd-run --user --scope -p Delegate=yes stacktune …` has one"))
        }
    }
}

/// Ends everything in these cgroups. One that is gone has nothing in it.
///
/// # Errors
/// Refused where one is in no cgroup file system; failed if something does not end.
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
            return Err(Error::failed(format!("what the program started does not end: {}", left.join(", "))));
        }
        std::thread::sleep(LOOK);
    }
}

/// Kills what is in a cgroup now; returns what was.
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
    let found = inside(dir);
    // All at once, with what is started meanwhile (Linux 5.14).
    let at_once = dir.join("cgroup.kill");
    if at_once.exists() && !found.is_empty() {
        write(&at_once, "1")?;
    }
    for pid in &found {
        let pid = Pid::from_raw(pid.cast_signed());
        let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { continue };
        // The number may be another process's by now: only what is still inside is meant.
        if inside(dir).iter().any(|inside| Pid::from_raw(inside.cast_signed()) == pid) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
    Ok(found)
}
