//! What a program's processes read and wrote, by their names.
//!
//! When a process is reaped, the kernel adds its counts to its parent's. So that short-lived programs appear
//! under their own names, processes are read many times a second, and what a parent takes over from a child
//! that was seen counts for the child. I/O of a child that was never seen counts for its parent; a child
//! whose parent had ended before it counts as far as it was seen.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::program::ProcessIo;
use crate::error::Result;
use crate::host::processes_in;
use crate::meter::beside::others_io_probe::IoCounts;
use crate::threads;

/// Time between two readings; longer where they would cost more than a hundredth of a processor.
const APART: Duration = Duration::from_millis(10);
const COST_ONE_IN: u32 = 100;
/// The most names that are kept apart.
const NAMES_MAX: usize = 32;
const NAME_CHARS_MAX: usize = 40;
/// The name of all others.
const REST: &str = "(others)";

/// Bytes read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Moved {
    read: u64,
    written: u64,
}

impl Moved {
    fn of(counts: &IoCounts) -> Self {
        Self { read: counts.read_bytes(), written: u64::try_from(counts.written()).unwrap_or(0) }
    }

    fn and(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
        }
    }

    fn without(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_sub(other.read),
            written: self.written.saturating_sub(other.written),
        }
    }
}

/// A process as it was last seen.
#[derive(Debug, Clone)]
struct Seen {
    begun: u64,
    parent: u32,
    /// The kernel's name for it, from which its name is made.
    comm: String,
    name: String,
    moved: Moved,
    /// Whether that was the first time it was seen.
    is_new: bool,
}

/// Everything seen so far.
#[derive(Debug, Default)]
struct Processes {
    seen: HashMap<u32, Seen>,
    /// I/O of children that have ended, and the name of the last: it moves to their parent once they are reaped.
    owed: HashMap<u32, (Moved, String)>,
    sums: BTreeMap<String, Moved>,
    /// Whether any counts could be read.
    is_known: bool,
    ended: bool,
}

/// Reads the processes of cgroups until it is dropped.
#[derive(Debug, Clone)]
pub struct ByName(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    proc: PathBuf,
    groups: Vec<PathBuf>,
    state: Arc<Mutex<Processes>>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
    }
}

impl ByName {
    /// Starts with the processes in these cgroups.
    ///
    /// # Errors
    /// If no more threads can be started.
    pub fn watch(groups: Vec<PathBuf>) -> Result<Self> {
        let state = Arc::new(Mutex::new(Processes::default()));
        let proc = PathBuf::from("/proc");
        let (theirs, in_groups, below) = (state.clone(), groups.clone(), proc.clone());
        threads::start("look at the program's processes", move || {
            loop {
                let began = threads::own_cpu();
                {
                    let mut state = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                    if state.ended {
                        break;
                    }
                    let pids: Vec<u32> = in_groups.iter().flat_map(|dir| processes_in(dir)).collect();
                    state.look(&below, &pids);
                }
                let cost = threads::own_cpu().saturating_sub(began);
                std::thread::sleep(APART.max(cost * COST_ONE_IN));
            }
        })?;
        Ok(Self(Arc::new(Watched { proc, groups, state })))
    }

    /// Reads a process that has exited, before it is reaped and its counts are lost.
    pub fn last_look(&self, pid: u32) {
        let mut state = self.state();
        state.end_gone(&self.0.proc);
        state.add(&self.0.proc, pid);
    }

    /// Bytes moved since the last call, by name; none where they can't be read.
    pub fn take(&self) -> Option<BTreeMap<String, ProcessIo>> {
        let mut state = self.state();
        let pids: Vec<u32> = self.0.groups.iter().flat_map(|dir| processes_in(dir)).collect();
        state.look(&self.0.proc, &pids);
        // The next reading makes the names anew: servers change theirs as they start.
        state.seen.values_mut().for_each(|seen| seen.comm.clear());
        let sums = std::mem::take(&mut state.sums);
        state.is_known.then(|| limited(sums))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Processes> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn limited(sums: BTreeMap<String, Moved>) -> BTreeMap<String, ProcessIo> {
    let mut all: Vec<(String, Moved)> = sums.into_iter().collect();
    all.sort_by_key(|(_, moved)| std::cmp::Reverse(moved.read.saturating_add(moved.written)));
    let mut named = BTreeMap::<String, ProcessIo>::new();
    for (at, (name, moved)) in all.into_iter().enumerate() {
        let name = if at < NAMES_MAX { name } else { REST.to_owned() };
        named
            .entry(name)
            .or_default()
            .add(&ProcessIo { read_bytes: moved.read, written_bytes: moved.written });
    }
    named
}

impl Processes {
    /// Reads these processes, and those seen before that have exited and left their group, until they are
    /// reaped: only then do their parents have what they moved.
    fn look(&mut self, proc: &Path, pids: &[u32]) {
        // First, so that what their parents took over from them is recognized as theirs.
        self.end_gone(proc);
        let left: Vec<u32> = self.seen.keys().copied().filter(|pid| !pids.contains(pid)).collect();
        left.iter().chain(pids).for_each(|pid| self.add(proc, *pid));
        // A parent that is gone, or not of the program, never shows what its children moved. A parent that lives
        // has been read since: what it grows by from now on is not that of a child that had moved nothing.
        self.owed.retain(|pid, (moved, _)| self.seen.contains_key(pid) && *moved != Moved::default());
    }

    /// Removes reaped processes, children before parents: a parent's counts include its reaped children's.
    fn end_gone(&mut self, proc: &Path) {
        let is_there = |pid: u32, begun: u64| {
            stat(&proc.join(pid.to_string())).is_some_and(|(_, _, still)| still == begun)
        };
        let all = self.seen.iter().map(|(pid, seen)| (seen.begun, *pid));
        let mut gone: Vec<(u64, u32)> = all.filter(|(begun, pid)| !is_there(*pid, *begun)).collect();
        gone.sort_unstable_by(|one, other| other.cmp(one));
        gone.into_iter().for_each(|(_, pid)| self.end(pid));
    }

    /// Its parent's counts will grow by what it moved, and by what its own children moved that it did not show yet.
    fn end(&mut self, pid: u32) {
        let below = self.owed.remove(&pid).map_or(Moved::default(), |(moved, _)| moved);
        let Some(ended) = self.seen.remove(&pid) else { return };
        let moved = ended.moved.and(below);
        // A process that was idle for longer does not lend its name to what another moved unseen.
        if moved != Moved::default() || ended.is_new {
            let owed = self.owed.entry(ended.parent).or_default();
            *owed = (owed.0.and(moved), ended.name);
        }
    }

    fn add(&mut self, proc: &Path, pid: u32) {
        let folder = proc.join(pid.to_string());
        let Some((comm, parent, begun)) = stat(&folder) else { return };
        let Some(counts) = IoCounts::read(&folder.join("io")) else { return };
        self.is_known = true;
        if self.seen.get(&pid).is_some_and(|seen| seen.begun != begun) {
            self.end(pid);
        }
        let moved = Moved::of(&counts);
        let known = self.seen.remove(&pid);
        let is_new = known.is_none();
        let mut grew = moved.without(known.as_ref().map_or(Moved::default(), |known| known.moved));
        let name = match known {
            Some(known) if known.comm == comm => known.name,
            _ => name_of(&folder, &comm),
        };
        if grew != Moved::default()
            && let Some((owed, child)) = self.owed.remove(&pid)
        {
            let left = owed.without(grew);
            grew = grew.without(owed);
            if left == Moved::default() {
                // The rest is what the child moved after we last read it.
                self.sum(child, grew);
                grew = Moved::default();
            } else {
                self.owed.insert(pid, (left, child));
            }
        }
        if grew != Moved::default() {
            self.sum(name.clone(), grew);
        }
        self.seen.insert(pid, Seen { begun, parent, comm, name, moved, is_new });
    }

    fn sum(&mut self, name: String, moved: Moved) {
        let sum = self.sums.entry(name).or_default();
        *sum = sum.and(moved);
    }
}

/// A process's name by the kernel, its parent, and its start. Parsed by hand: of the fields that procfs-core
/// parses, three are needed, for each process, many times a second.
fn stat(folder: &Path) -> Option<(String, u32, u64)> {
    let text = String::from_utf8_lossy(&std::fs::read(folder.join("stat")).ok()?).into_owned();
    let (head, rest) = text.rsplit_once(')')?;
    let comm = head.split_once('(')?.1.to_owned();
    let mut fields = rest.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    Some((comm, parent, fields.nth(17)?.parse().ok()?))
}

/// Its name: the kernel's, or the longer title that some set, as `PostgreSQL`'s do (`postgres: checkpointer`).
fn name_of(folder: &Path, comm: &str) -> String {
    let title = std::fs::read(folder.join("cmdline")).unwrap_or_default();
    let title =
        String::from_utf8_lossy(title.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    let says = title.strip_prefix(comm).and_then(|rest| rest.strip_prefix(": "));
    let name = match says {
        Some(says) => {
            // What it is doing now, and for whom, would make a new name every moment.
            let words =
                says.split_whitespace().take_while(|word| !word.starts_with('[') && !word.contains('('));
            format!("{comm}: {}", words.collect::<Vec<_>>().join(" "))
        }
        None => comm.to_owned(),
    };
    crate::printable::line(&name).chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of fake processes.
    struct Proc(tempfile::TempDir);

    impl Proc {
        fn set(&self, pid: u32, comm: &str, parent: u32, read: u64, written: u64) {
            let folder = self.0.path().join(pid.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            let zeros = "0 ".repeat(17);
            std::fs::write(folder.join("stat"), format!("{pid} ({comm}) S {parent} {zeros}{pid} 0\n"))
                .unwrap();
            let io =
                format!("rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n");
            std::fs::write(folder.join("io"), io).unwrap();
        }

        /// Its parent has reaped it.
        fn waited_for(&self, pid: u32) {
            std::fs::remove_dir_all(self.0.path().join(pid.to_string())).unwrap();
        }

        fn title(&self, pid: u32, title: &str) {
            std::fs::write(self.0.path().join(pid.to_string()).join("cmdline"), title).unwrap();
        }
    }

    fn sums(state: &Processes) -> Vec<(&str, u64, u64)> {
        state.sums.iter().map(|(name, moved)| (name.as_str(), moved.read, moved.written)).collect()
    }

    #[test]
    fn what_a_parent_takes_over_is_the_childs() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let mut state = Processes::default();
        let path = proc.0.path().to_owned();
        proc.set(1, "sh", 0, 4, 0);
        state.look(&path, &[1]);
        proc.set(2, "dd", 1, 100, 50);
        state.look(&path, &[1, 2]);
        assert_eq!(sums(&state), [("dd", 100, 50), ("sh", 4, 0)]);
        // It moved more before its end, which only its parent shows, and perhaps a while later.
        proc.waited_for(2);
        state.look(&path, &[1]);
        proc.set(1, "sh", 0, 4 + 170, 80);
        state.look(&path, &[1]);
        assert_eq!(sums(&state), [("dd", 170, 80), ("sh", 4, 0)]);
        proc.set(1, "sh", 0, 4 + 170 + 6, 80);
        state.look(&path, &[1]);
        assert_eq!(sums(&state), [("dd", 170, 80), ("sh", 10, 0)]);
    }

    #[test]
    fn what_a_parent_moves_meanwhile_is_not_counted_twice() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let mut state = Processes::default();
        let path = proc.0.path().to_owned();
        proc.set(1, "sh", 0, 0, 0);
        proc.set(2, "dd", 1, 100, 0);
        state.look(&path, &[1, 2]);
        proc.waited_for(2);
        proc.set(1, "sh", 0, 30, 0);
        state.look(&path, &[1]);
        proc.set(1, "sh", 0, 130, 0);
        state.look(&path, &[1]);
        assert_eq!(state.sums.values().map(|moved| moved.read).sum::<u64>(), 130);
    }

    #[test]
    fn one_that_has_ended_and_is_not_waited_for_yet_is_not_counted_again() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let mut state = Processes::default();
        let path = proc.0.path().to_owned();
        proc.set(1, "sh", 0, 100, 0);
        state.look(&path, &[1]);
        proc.set(1, "sh", 0, 107, 0);
        state.look(&path, &[]);
        // As of the last reading.
        state.add(&path, 1);
        assert_eq!(sums(&state), [("sh", 107, 0)]);
        proc.waited_for(1);
        state.look(&path, &[]);
        assert_eq!((state.seen.len(), state.owed.len()), (0, 0));
    }

    #[test]
    fn a_parent_and_its_child_that_end_between_two_looks_count_once() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let path = proc.0.path().to_owned();
        // The map's order differs each time.
        for _ in 0..50 {
            let mut state = Processes::default();
            proc.set(1, "sh", 0, 0, 0);
            proc.set(2, "dd", 1, 100, 0);
            state.look(&path, &[1, 2]);
            proc.waited_for(2);
            proc.set(1, "sh", 0, 104, 0);
            // Both have left their group; the parent has not been reaped yet.
            state.look(&path, &[]);
            assert_eq!(sums(&state), [("dd", 104, 0)]);
        }
    }

    #[test]
    fn an_idle_child_that_ended_before_is_not_named_for_what_nobody_saw() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let mut state = Processes::default();
        let path = proc.0.path().to_owned();
        proc.set(1, "sh", 0, 0, 0);
        proc.set(2, "sleep", 1, 0, 0);
        state.look(&path, &[1, 2]);
        state.look(&path, &[1, 2]);
        proc.waited_for(2);
        proc.set(1, "sh", 0, 0, 50);
        state.look(&path, &[1]);
        assert_eq!(sums(&state), [("sh", 0, 50)]);
        // A process that was seen only once may have moved all of it since.
        proc.set(3, "dd", 1, 0, 0);
        state.look(&path, &[1, 3]);
        proc.waited_for(3);
        proc.set(1, "sh", 0, 0, 120);
        state.look(&path, &[1]);
        proc.set(1, "sh", 0, 0, 121);
        state.look(&path, &[1]);
        assert_eq!(sums(&state), [("dd", 0, 70), ("sh", 0, 51)]);
    }

    #[test]
    fn what_is_owed_goes_up_with_a_parent_that_ends() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let path = proc.0.path().to_owned();
        for _ in 0..50 {
            let mut state = Processes::default();
            for (pid, parent, read) in [(1, 0, 0), (2, 1, 10), (3, 2, 100)] {
                proc.set(pid, "sh", parent, read, 0);
            }
            state.look(&path, &[1, 2, 3]);
            proc.waited_for(2);
            proc.waited_for(3);
            state.look(&path, &[1]);
            proc.set(1, "sh", 0, 110, 0);
            state.look(&path, &[1]);
            assert_eq!(sums(&state), [("sh", 110, 0)]);
        }
    }

    #[test]
    fn nothing_is_kept_for_parents_that_are_gone() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let mut state = Processes::default();
        let path = proc.0.path().to_owned();
        for pid in 10..20 {
            proc.set(pid, "dd", pid + 100, 5, 5);
            state.look(&path, &[pid]);
            proc.waited_for(pid);
        }
        state.look(&path, &[]);
        assert_eq!((state.seen.len(), state.owed.len(), sums(&state)), (0, 0, vec![("dd", 50, 50)]));
    }

    #[test]
    fn servers_say_what_they_are() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let name = |title: &str| {
            proc.set(7, "postgres", 1, 0, 0);
            proc.title(7, title);
            name_of(&proc.0.path().join("7"), "postgres")
        };
        assert_eq!(name("postgres: checkpointer \0"), "postgres: checkpointer");
        assert_eq!(name("postgres: 17/main: background writer"), "postgres: 17/main: background writer");
        assert_eq!(name("postgres: bench db [local] UPDATE"), "postgres: bench db");
        assert_eq!(name("postgres: bench db 127.0.0.1(5123) idle"), "postgres: bench db");
        assert_eq!(name("/usr/lib/postgresql/17/bin/postgres\0-D\0x"), "postgres");
    }

    #[test]
    fn names_beyond_the_limit_are_one() {
        let sums = (0..40_u64).map(|at| (format!("p{at:02}"), Moved { read: at, written: 1 })).collect();
        let limited = limited(sums);
        assert_eq!((limited.len(), limited[REST].written_bytes), (NAMES_MAX + 1, 8));
        assert_eq!(limited.values().map(|io| io.read_bytes).sum::<u64>(), (0..40).sum::<u64>());
    }
}
