//! The busiest thread of a program's measured command: whether its client could do more.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The most threads that are read.
const THREADS_MAX: usize = 1024;

/// How long each thread of a cgroup has run.
#[derive(Debug)]
pub struct BusiestThread {
    /// The cgroup's list of threads.
    threads: PathBuf,
    proc: PathBuf,
    /// Each thread's run time when it was last read, in ns.
    ran_ns: BTreeMap<u32, u64>,
}

impl BusiestThread {
    /// For that cgroup.
    pub fn of(group: &Path) -> Self {
        let mut threads = Self {
            threads: group.join("cgroup.threads"),
            proc: PathBuf::from("/proc"),
            ran_ns: BTreeMap::new(),
        };
        threads.window();
        threads
    }

    /// The run time in ns of the thread that ran most since the last call, among those left; none if there
    /// are none, or the kernel does not count it.
    pub fn window(&mut self) -> Option<u64> {
        let text = fs::read_to_string(&self.threads).unwrap_or_default();
        let ids = text.lines().filter_map(|line| line.parse().ok()).take(THREADS_MAX);
        let now: BTreeMap<u32, u64> = ids.filter_map(|id| Some((id, self.ran_ns(id)?))).collect();
        // A new thread has run only in this window.
        let since = |(id, ns): (&u32, &u64)| ns.saturating_sub(self.ran_ns.get(id).copied().unwrap_or(0));
        let most = now.iter().map(since).max();
        self.ran_ns = now;
        most
    }

    /// Parsed by hand: of the numbers that procfs-core parses, only the first is needed.
    fn ran_ns(&self, id: u32) -> Option<u64> {
        let text = fs::read_to_string(self.proc.join(id.to_string()).join("schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_of_a_window_is_found_among_those_that_are_left() {
        let dir = tempfile::tempdir().unwrap();
        let threads = |ran: &[(u32, u64)]| {
            let ids: Vec<String> = ran.iter().map(|(id, _)| id.to_string()).collect();
            fs::write(dir.path().join("cgroup.threads"), ids.join("\n")).unwrap();
            for (id, ns) in ran {
                let folder = dir.path().join(id.to_string());
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("schedstat"), format!("{ns} 17 3\n")).unwrap();
            }
        };
        let mut busiest = BusiestThread::of(dir.path());
        busiest.proc = dir.path().to_owned();
        assert_eq!(busiest.window(), None);
        threads(&[(7, 500), (8, 900)]);
        assert_eq!(busiest.window(), Some(900));
        threads(&[(7, 1000), (8, 950)]);
        assert_eq!(busiest.window(), Some(500));
        // One has ended, and the number of another is reused.
        threads(&[(7, 40)]);
        assert_eq!(busiest.window(), Some(0));
        threads(&[(7, 60), (9, 30)]);
        assert_eq!(busiest.window(), Some(30));
    }
}
