//! The cgroups of a program: whatever it starts stays in them, is counted there, and is killed there, never by name.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::end::{end, remove_all, with_those_in_it};
use crate::error::{Error, Result};
use crate::host::{CgroupPlace, CgroupVersion, cgroup_place, unified_place};
use crate::printable::Shown as _;
use crate::stack::journal::{Journal, Undo};
use crate::stack::tuning::cgroup::{is_cgroups, write};

/// A part of a program that is accounted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The server, which runs until the end.
    Server,
    /// The part that is measured.
    Run,
    /// Everything before that, and status queries.
    Rest,
}

impl Part {
    /// The name of its cgroup inside the program's; none for the program's own.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Server => Some("server"),
            Self::Run => Some("run"),
            Self::Rest => None,
        }
    }
}

/// The cgroups of one program.
#[derive(Debug)]
pub struct Groups {
    /// The first is where its processes are accounted.
    dirs: Vec<PathBuf>,
    /// Where its memory is accounted.
    memory: Option<(PathBuf, CgroupVersion)>,
    entry: u64,
    switched_on: bool,
}

/// Where the cgroups go.
struct Places {
    dirs: Vec<PathBuf>,
    memory: Option<CgroupPlace>,
}

impl Groups {
    /// Makes them; if `limited`, where memory can be limited.
    ///
    /// # Errors
    /// Input if the kernel or this host has no cgroups for it, or none that can limit memory as requested.
    pub fn make(journal: &mut Journal, limited: bool) -> Result<Self> {
        let places = places(limited)?;
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
                include_children(dir)?;
            }
            for part in [Part::Server, Part::Run] {
                let dir = groups.part(part);
                fs::create_dir(&dir).map_err(|error| Error::os("cannot create", &dir, error))?;
            }
            Ok(())
        });
        match made {
            Ok(()) => Ok(groups),
            Err(error) => match groups.remove(journal) {
                Ok(()) => Err(error),
                Err(left) => Err(error.and_then(&left)),
            },
        }
    }

    /// Limits the memory of everything in them to that much, page cache included, with no swap.
    ///
    /// # Errors
    /// If the kernel can't reclaim what they have beyond it.
    pub fn limit(&self, bytes: u64) -> Result<()> {
        let Some((dir, version)) = &self.memory else { return Ok(()) };
        let limit = dir.join(version.limit());
        let (swap, value) = match version {
            CgroupVersion::V1 => (dir.join("memory.memsw.limit_in_bytes"), bytes),
            CgroupVersion::V2 => (dir.join("memory.swap.max"), 0),
        };
        let mut limits = vec![(limit, bytes)];
        let has_swap = swap.exists();
        if has_swap {
            // Version 1 wants the limit with swap never below the one without.
            let now = fs::read_to_string(&swap).ok().and_then(|now| now.trim().parse::<u64>().ok());
            let is_raised = *version == CgroupVersion::V1 && now.is_some_and(|now| now < bytes);
            limits.insert(usize::from(!is_raised), (swap, value));
        }
        write_all(&limits)?;
        if has_swap {
            return Ok(());
        }
        // Version 1 lacks that file if the kernel does not account for swap, or has no swap at all.
        let parts = [Part::Server, Part::Run].into_iter().filter_map(Part::name).map(|name| dir.join(name));
        let files = std::iter::once(dir.clone()).chain(parts).map(|dir| dir.join("memory.swappiness"));
        files.filter(|file| file.exists()).try_for_each(|file| write(&file, "0"))
    }

    /// Where a part is accounted.
    pub fn part(&self, part: Part) -> PathBuf {
        part.name().map_or_else(|| self.dirs[0].clone(), |name| self.dirs[0].join(name))
    }

    /// The files through which a process of a part enters.
    ///
    /// # Errors
    /// If one can't be opened, or is not the kernel's.
    pub fn entrances(&self, part: Part) -> Result<Vec<File>> {
        let open = |dir: &PathBuf| {
            let path = dir.join("cgroup.procs");
            let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(&path);
            let file = file.map_err(|error| Error::os("cannot open", &path, error))?;
            if is_cgroups(&file) {
                Ok(file)
            } else {
                Err(Error::refused(format!("{} is not a cgroup", dir.shown())))
            }
        };
        std::iter::once(&self.part(part)).chain(&self.dirs[1..]).map(open).collect()
    }

    /// The cgroups that its processes may be in.
    pub fn all(&self) -> Vec<PathBuf> {
        with_those_in_it(&self.dirs[0])
    }

    /// Where its processes are accounted.
    pub fn dir(&self) -> &Path {
        &self.dirs[0]
    }

    /// Where its memory is accounted; none if the kernel does not account for it.
    pub fn memory(&self) -> Option<&(PathBuf, CgroupVersion)> {
        self.memory.as_ref()
    }

    /// Kills everything in them.
    ///
    /// # Errors
    /// If something does not end.
    pub fn end(&self) -> Result<()> {
        end(&self.dirs)
    }

    /// Kills everything in them, and removes them.
    ///
    /// # Errors
    /// What is left; it stays in the journal.
    pub fn remove(&self, journal: &mut Journal) -> Result<()> {
        self.end()?;
        self.dirs.iter().try_for_each(|dir| remove_all(dir, self.switched_on))?;
        journal.undone(self.entry);
        Ok(())
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // Kills what an error or a panic left running; the folders stay for whoever follows the journal.
        let _ = self.end();
    }
}

/// Has a cgroup of version 1 account for those below it, which older kernels don't do by themselves.
fn include_children(dir: &Path) -> Result<()> {
    let file = dir.join("memory.use_hierarchy");
    let is_off = fs::read_to_string(&file).is_ok_and(|text| text.trim() == "0");
    if is_off { write(&file, "1") } else { Ok(()) }
}

/// Writes all of these, or none.
fn write_all(limits: &[(PathBuf, u64)]) -> Result<()> {
    let mut before = Vec::new();
    for (file, bytes) in limits {
        let was = fs::read_to_string(file).unwrap_or_default();
        if let Err(error) = write(file, &bytes.to_string()) {
            // The last one first: each was possible after those before it.
            before.iter().rev().for_each(|(file, was): &(&PathBuf, String)| drop(write(file, was.trim())));
            return Err(error);
        }
        before.push((file, was));
    }
    Ok(())
}

fn places(limited: bool) -> Result<Places> {
    let (memory, unified) = (cgroup_place(Path::new("/")), unified_place(Path::new("/")));
    match (memory, unified) {
        (Ok(place), Ok(unified)) if place.version == CgroupVersion::V1 => {
            Ok(Places { dirs: vec![unified, place.parent.clone()], memory: Some(place) })
        }
        (Ok(place), _) => Ok(Places { dirs: vec![place.parent.clone()], memory: Some(place) }),
        (Err(why), _) if limited => {
            Err(Error::input(format!("the program's memory can't be limited: {why}"))
                .hint("leave command.memory_max out"))
        }
        (Err(_), Ok(unified)) => Ok(Places { dirs: vec![unified], memory: None }),
        (Err(_), Err(why)) => {
            let what = format!("stacktune ends a program through its cgroup, but can't give it one: {why}");
            Err(Error::input(what).hint("run `systemd-run --user --scope -p Delegate=yes stacktune …`"))
        }
    }
}
