//! A memory cgroup that limits the page cache to a budget.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::error::{Error, Result, describe};
use crate::host::{CgroupPlace, CgroupVersion, cgroup_place, processes_in};
use crate::printable::Shown as _;
use crate::stack::journal::{Journal, Undo};

/// The process's own memory may take up at most one part in this many of a limit when it is set: above that,
/// the kernel would kill the process rather than drop cached pages.
const OWN_SHARE_MAX: u64 = 2;

/// A cgroup that this process is in.
#[derive(Debug)]
pub(super) struct Limited {
    dir: PathBuf,
    version: CgroupVersion,
    /// The previous one.
    home: PathBuf,
    switched_on: bool,
    limit_bytes: u64,
    entry: u64,
}

impl Limited {
    /// Makes a cgroup with that limit and moves this process into it.
    pub(super) fn enter(journal: &mut Journal, limit_bytes: u64) -> Result<Self> {
        let place = cgroup_place(Path::new("/"))
            .map_err(|why| Error::input(format!("the page cache can't be limited: {why}")))?;
        let CgroupPlace { version, own, parent, switch_on } = place;
        let dir = parent.join(format!("stacktune-{}", journal.record().header.id.0));
        let entry = journal.record().entries.len() as u64;
        let undo = Undo::RemoveCgroup { dir: dir.clone(), switched_on: switch_on };
        let command = format!("mkdir {}; echo {limit_bytes} > {}", dir.shown(), version.limit());
        let limited = Self { dir, version, home: own, switched_on: switch_on, limit_bytes, entry };
        let made = journal.act(&command, Some(undo), || {
            if switch_on {
                write(&parent.join("cgroup.subtree_control"), "+memory")?;
            }
            fs::create_dir(&limited.dir).map_err(|e| Error::os("cannot create", &limited.dir, e))?;
            write(&limited.dir.join(version.limit()), &limit_bytes.to_string())?;
            write(&limited.dir.join("cgroup.procs"), &std::process::id().to_string())
        });
        match made {
            Ok(()) => Ok(limited),
            Err(error) => match limited.leave(journal) {
                Ok(()) => Err(error),
                Err(left) => Err(error.and_then(&left)),
            },
        }
    }

    /// The limit in force.
    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Sets another limit.
    pub(super) fn turn(&mut self, limit_bytes: u64) -> Result<()> {
        let own_bytes = self.own_bytes()?;
        if own_bytes > limit_bytes / OWN_SHARE_MAX {
            let own = crate::units::approx_size(own_bytes);
            return Err(Error::input(format!(
                "stacktune itself uses {own} of the limit, so the kernel would kill the process"
            ))
            .hint("raise the limit, or use fewer and smaller buffers"));
        }
        write(&self.dir.join(self.version.limit()), &limit_bytes.to_string())?;
        self.limit_bytes = limit_bytes;
        Ok(())
    }

    /// Bytes charged to it other than page cache.
    fn own_bytes(&self) -> Result<u64> {
        let file = self.dir.join("memory.stat");
        let text = fs::read_to_string(&file).map_err(|error| Error::os("cannot read", &file, error))?;
        let key = match self.version {
            CgroupVersion::V1 => "rss",
            CgroupVersion::V2 => "anon",
        };
        Ok(stat(&text, key).unwrap_or(0))
    }

    /// Moves the process back and removes the cgroup.
    pub(super) fn leave(self, journal: &mut Journal) -> Result<()> {
        if processes_in(&self.dir).contains(&std::process::id()) {
            write(&self.home.join("cgroup.procs"), &std::process::id().to_string())?;
        }
        remove(&self.dir, self.switched_on)?;
        journal.undone(self.entry);
        Ok(())
    }
}

/// A number from `memory.stat`.
fn stat(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// Writes to a file of a cgroup.
///
/// # Errors
/// Refused if it is not the kernel's; or if the kernel does not take the value.
pub(crate) fn write(file: &Path, value: &str) -> Result<()> {
    let opened = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(file);
    let written = opened.map(|mut opened| is_cgroups(&opened).then(|| opened.write_all(value.as_bytes())));
    match written {
        Ok(Some(Ok(()))) => Ok(()),
        Ok(None) => Err(not_cgroups(file)),
        Err(error) | Ok(Some(Err(error))) => {
            Err(Error::failed(format!("cannot write {value} to {}: {}", file.shown(), describe(&error))))
        }
    }
}

/// Whether it is a real cgroup file of the kernel's, not a look-alike.
pub(crate) fn is_cgroups(file: &File) -> bool {
    let kinds = [libc::CGROUP_SUPER_MAGIC, libc::CGROUP2_SUPER_MAGIC];
    rustix::fs::fstatfs(file).is_ok_and(|found| kinds.contains(&found.f_type))
}

fn not_cgroups(path: &Path) -> Error {
    Error::refused(format!("{} is not in a cgroup file system: it is left alone", path.shown()))
}

/// Removes a cgroup without processes. If `switched_on`, and nothing else there uses the memory controller,
/// disables the controller again.
///
/// # Errors
/// Refused if the folder above is not in a cgroup file system, or if processes are left in it.
pub(crate) fn remove(dir: &Path, switched_on: bool) -> Result<()> {
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else { return Err(not_cgroups(dir)) };
    let above = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(parent);
    let above = match above {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        above => above.map_err(|error| Error::os("cannot open", parent, error))?,
    };
    if !is_cgroups(&above) {
        return Err(not_cgroups(dir));
    }
    if processes_in(dir).contains(&std::process::id()) {
        write(&parent.join("cgroup.procs"), &std::process::id().to_string())?;
    }
    match unlinkat(&above, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => {}
        Err(_) if !processes_in(dir).is_empty() => {
            let pids: Vec<String> = processes_in(dir).iter().map(u32::to_string).collect();
            let pids = pids.join(", ");
            let what = format!("the cgroup {} still has processes: {pids}", dir.shown());
            return Err(Error::failed(what));
        }
        outcome => outcome.map_err(|error| Error::os("cannot remove", dir, error))?,
    }
    if switched_on && !is_limited_below(parent) {
        return write(&parent.join("cgroup.subtree_control"), "-memory");
    }
    Ok(())
}

/// Whether a cgroup below has a memory limit or enables the controller.
fn is_limited_below(parent: &Path) -> bool {
    let below = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let says = |path: &Path, name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
    below.into_iter().filter(|path| path.is_dir()).any(|path| {
        let limit = says(&path, "memory.max");
        !["", "max"].contains(&limit.trim())
            || says(&path, "cgroup.subtree_control").split_whitespace().any(|name| name == "memory")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_whole_name() {
        let text = "cache 4096\nrss_huge 7\nrss 8192\nanon_thp 3\n";
        assert_eq!(stat(text, "rss"), Some(8192));
        assert_eq!(stat(text, "anon"), None);
    }

    #[test]
    fn a_folder_that_only_looks_like_a_cgroup_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (above, group) = (dir.path(), dir.path().join("stacktune-a"));
        fs::create_dir(&group).unwrap();
        fs::write(above.join("cgroup.subtree_control"), "memory").unwrap();
        fs::write(above.join("cgroup.procs"), "").unwrap();
        assert_eq!(remove(&group, true).unwrap_err().exit_status(), 3);
        fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
        assert_eq!(remove(&group, true).unwrap_err().exit_status(), 3);
        let text = |name: &str| fs::read_to_string(above.join(name)).unwrap();
        assert!(group.exists());
        assert_eq!((text("cgroup.subtree_control").as_str(), text("cgroup.procs").as_str()), ("memory", ""));
        assert_eq!(write(&above.join("cgroup.procs"), "7").unwrap_err().exit_status(), 3);
        assert!(remove(&above.join("gone/stacktune-a"), true).is_ok());
    }
}
