//! Whether a shell could continue this program once it has stopped.

use std::fs::File;

use procfs_core::FromRead;
use procfs_core::process::Stat;
use rustix::process::getpid;

/// What job control knows of a process.
#[derive(Debug, Clone, Copy)]
struct Job {
    parent: i32,
    group: i32,
    session: i32,
}

/// Whether nobody would continue this process once it has stopped: it leads its session, or whoever started
/// its group is gone or in another session. The kernel drops SIGTSTP in that case, too.
pub fn is_without_shell() -> bool {
    is_orphaned(getpid().as_raw_nonzero().get(), |pid| {
        let stat = Stat::from_read(File::open(format!("/proc/{pid}/stat")).ok()?).ok()?;
        Some(Job { parent: stat.ppid, group: stat.pgrp, session: stat.session })
    })
}

/// A shell is an ancestor in the same session but another group. A process that can't be read counts as missing.
fn is_orphaned(pid: i32, look: impl Fn(i32) -> Option<Job>) -> bool {
    let Some(own) = look(pid) else { return true };
    let mut at = own;
    while let Some(parent) = look(at.parent).filter(|parent| parent.session == own.session) {
        if parent.group != own.group {
            return false;
        }
        at = parent;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes by number: parent, group, session.
    fn orphaned(pid: i32, jobs: &[(i32, [i32; 3])]) -> bool {
        is_orphaned(pid, |pid| {
            let job = jobs.iter().find(|job| job.0 == pid)?;
            let [parent, group, session] = job.1;
            Some(Job { parent, group, session })
        })
    }

    #[test]
    fn a_shell_waits_for_its_jobs_also_through_make() {
        let shell = (10, [1, 10, 10]);
        assert!(!orphaned(11, &[shell, (11, [10, 11, 10])]));
        assert!(!orphaned(12, &[shell, (11, [10, 11, 10]), (12, [11, 11, 10])]));
    }

    #[test]
    fn nobody_waits_for_the_command_of_a_window_or_of_a_shell_without_jobs() {
        let terminal = (5, [1, 5, 5]);
        assert!(orphaned(10, &[terminal, (10, [5, 10, 10])]), "it leads its session");
        assert!(orphaned(11, &[terminal, (10, [5, 10, 10]), (11, [10, 10, 10])]), "`sh -c` leads it");
        assert!(orphaned(11, &[(1, [0, 1, 1]), (11, [1, 11, 10])]), "the shell is gone");
        assert!(orphaned(11, &[(11, [10, 11, 10])]), "the shell can't be seen");
    }
}
