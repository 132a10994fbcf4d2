//! What this process's own threads cost and read: workers, their helpers in the kernel, and the rest.
//!
//! A worker's CPU time comes from its thread's clock. A worker that could run but waits for a CPU also counts
//! as busy, as it is not waiting for storage: field 2 of its `schedstat`, if the kernel has it. So does any
//! thread that serves it: if that thread is never idle, it is the limit. The process's clock includes every
//! thread, even `io_uring`'s kernel-side ones: these are threads of the process, named after the thread that
//! they serve (`iou-wrk-TID`; `iou-sqp-TID` for a polled submission queue, whose own helpers are named after
//! it). Threads that flush for a `sync` worker follow the same scheme (`flush-TID`). `read_bytes` in a
//! thread's `io` file counts what that thread requested from the block layer, so reads served by a cache are
//! not included.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::sqpoll::{self, Polled};
use crate::class::Class;
use crate::units::SECOND_NS;

/// Name prefix of `RocksDB`'s own threads.
const ENGINE: &str = "rocksdb:";
/// Name prefix of threads that work for another one, whose number follows.
pub const SERVES: &str = "flush-";

/// The threads' CPU use and reads since the last call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFigures {
    /// See [`crate::meter::window::CpuFigures::own_cores`].
    pub own_cores: f64,
    /// See [`crate::meter::window::CpuFigures::overhead_cores`].
    pub overhead_cores: f64,
    /// See [`crate::meter::window::ClassFigures::busiest_worker`], by class.
    pub busiest_worker: [Option<f64>; 4],
    /// Bytes read from storage since they were last given, by class; given only now and then.
    pub storage_reads: Option<[Option<u64>; 4]>,
}

/// CPU time that another process used for a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTimes {
    /// CPU time of the process, except what is attributed to another class.
    pub own_ns: u64,
    /// CPU time of the threads that neither work nor serve workers, likewise.
    pub overhead_ns: u64,
    /// CPU time of the class's busiest worker, including its waits for a CPU.
    pub busiest_ns: Option<u64>,
}

impl AddAssign for TaskTimes {
    fn add_assign(&mut self, other: Self) {
        self.own_ns += other.own_ns;
        self.overhead_ns += other.overhead_ns;
        self.busiest_ns = self.busiest_ns.max(other.busiest_ns);
    }
}

impl TaskFigures {
    /// Adds what another process used in this time, by class.
    pub fn add(&mut self, elsewhere: [TaskTimes; 4], elapsed_ns: u64) {
        let share = |ns: u64| ns as f64 / elapsed_ns.max(1) as f64;
        for (times, busiest) in elsewhere.into_iter().zip(&mut self.busiest_worker) {
            self.own_cores += share(times.own_ns);
            self.overhead_cores += share(times.overhead_ns);
            let there = times.busiest_ns.map(|ns| share(ns).min(1.0));
            *busiest = there.map_or(*busiest, |there| Some(busiest.unwrap_or(0.0).max(there)));
        }
    }
}

/// The CPU clocks of this process.
pub trait Clocks: Send {
    /// CPU time of the whole process in nanoseconds.
    fn process_ns(&self) -> u64;
    /// CPU time of one of its threads in nanoseconds; none if there is no such thread.
    fn thread_ns(&self, thread_id: i32) -> Option<u64>;
}

/// The kernel's clocks.
pub struct KernelClocks;

impl Clocks for KernelClocks {
    fn process_ns(&self) -> u64 {
        let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
    }

    #[allow(unsafe_code)] // rustix has no clocks of other threads
    fn thread_ns(&self, thread_id: i32) -> Option<u64> {
        const THREAD_SCHEDULER_CLOCK: i32 = 0b110;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes to the one struct it is given; a thread that is gone is an error.
        let status =
            unsafe { libc::clock_gettime((!thread_id << 3) | THREAD_SCHEDULER_CLOCK, &raw mut time) };
        (status == 0).then(|| time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64)
    }
}

/// Reads the threads of this process; or nothing, for simulated runs.
pub struct TaskProbe(Option<Tasks>);

struct Tasks {
    folder: PathBuf,
    clocks: Box<dyn Clocks>,
    threads: HashMap<i32, Thread>,
    /// How long each ring's polling thread had run, and found work, at the last reading.
    polled: HashMap<i32, Polled>,
    at_ns: u64,
    process_ns: u64,
    storage_at_ns: u64,
    /// The classes whose reads were included in the last storage reading.
    counted: [bool; 4],
    round: u64,
}

#[derive(Debug)]
struct Thread {
    kind: Kind,
    cpu_ns: u64,
    /// Workers' time in run queues.
    waited_ns: u64,
    /// At the last reading; none if it was not read.
    read_bytes: Option<u64>,
    looks: u32,
    round: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Worker(Class),
    /// A thread that serves that thread; most of these are on the kernel's side.
    Serves(i32),
    /// One that also polls that thread's submission queue, and so runs even without work.
    Polls(i32),
    /// A thread of the storage engine, which flushes and compacts.
    Engine,
    Other,
}

impl TaskProbe {
    /// For this process, starting at `now_ns`.
    pub fn open(now_ns: u64) -> Self {
        Self::under(Path::new("/proc/self/task"), Box::new(KernelClocks), now_ns)
    }

    /// For the threads in this folder, with these clocks.
    pub fn under(folder: &Path, clocks: Box<dyn Clocks>, now_ns: u64) -> Self {
        let mut tasks = Tasks {
            folder: folder.to_owned(),
            process_ns: clocks.process_ns(),
            clocks,
            threads: HashMap::new(),
            polled: HashMap::new(),
            at_ns: now_ns,
            storage_at_ns: now_ns,
            // Threads that read for classes do not exist yet, so everything that they read is included.
            counted: [true; 4],
            round: 0,
        };
        tasks.look(&[]);
        Self(Some(tasks))
    }

    /// Reads nothing: all figures stay empty, as simulated runs must repeat exactly.
    pub fn none() -> Self {
        Self(None)
    }

    /// The figures since the last call, given the workers' threads with their classes, and which classes read
    /// through the page cache. Storage reads are given when at least a second has passed since the last time.
    pub fn window(&mut self, now_ns: u64, workers: &[(i32, Class)], through_cache: [bool; 4]) -> TaskFigures {
        let tasks = self.0.as_mut();
        tasks.map(|tasks| tasks.window(now_ns, workers, through_cache)).unwrap_or_default()
    }
}

impl TaskProbe {
    /// CPU time since the last call, in nanoseconds: of the process, of all its threads that neither work nor
    /// serve workers, and of the busiest worker of each class including its waits for a CPU.
    pub fn times(&mut self, workers: &[(i32, Class)]) -> (u64, u64, [Option<u64>; 4]) {
        let Some(tasks) = &mut self.0 else { return Default::default() };
        let own_ns = tasks.own_ns();
        let (overhead_ns, busiest_ns) = tasks.look(workers);
        (own_ns, overhead_ns, busiest_ns)
    }
}

impl Tasks {
    /// CPU time of the process since the last call.
    fn own_ns(&mut self) -> u64 {
        let process_ns = self.clocks.process_ns();
        process_ns.saturating_sub(std::mem::replace(&mut self.process_ns, process_ns))
    }

    fn window(&mut self, now_ns: u64, workers: &[(i32, Class)], through_cache: [bool; 4]) -> TaskFigures {
        let elapsed_ns = now_ns.saturating_sub(std::mem::replace(&mut self.at_ns, now_ns)).max(1) as f64;
        let own_ns = self.own_ns();
        let (overhead_ns, busiest_ns) = self.look(workers);
        let storage_is_due = now_ns.saturating_sub(self.storage_at_ns) >= SECOND_NS;
        TaskFigures {
            own_cores: own_ns as f64 / elapsed_ns,
            overhead_cores: overhead_ns as f64 / elapsed_ns,
            busiest_worker: busiest_ns.map(|ns| ns.map(|ns| (ns as f64 / elapsed_ns).min(1.0))),
            storage_reads: storage_is_due.then(|| {
                self.storage_at_ns = now_ns;
                self.storage_reads(through_cache)
            }),
        }
    }

    /// Finds the threads and reads their clocks: CPU time since the last reading of all that neither work nor
    /// serve workers, and of the busiest thread that works for each class including its waits for a CPU.
    fn look(&mut self, workers: &[(i32, Class)]) -> (u64, [Option<u64>; 4]) {
        self.round += 1;
        let first = self.round == 1;
        let workers: HashMap<i32, Class> = workers.iter().copied().collect();
        let (mut overhead_ns, mut busy) = (0, Vec::new());
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let Some(cpu_ns) = self.clocks.thread_ns(id) else { continue };
            // CPU time from before a thread was first seen counts, except at the first reading.
            let thread = self.threads.entry(id).or_insert_with(|| Thread {
                kind: Kind::Other,
                cpu_ns: if first { cpu_ns } else { 0 },
                waited_ns: if first { waited_ns(&self.folder, id).unwrap_or(0) } else { 0 },
                read_bytes: (!first).then_some(0),
                looks: 0,
                round: 0,
            });
            thread.round = self.round;
            if let Some(class) = workers.get(&id) {
                thread.kind = Kind::Worker(*class);
            } else if thread.kind == Kind::Other && thread.looks < 2 {
                // Twice, because a new thread sets its name only after it has started.
                thread.looks += 1;
                thread.kind = kind(&self.folder, id);
            }
            let used_ns = cpu_ns.saturating_sub(std::mem::replace(&mut thread.cpu_ns, cpu_ns));
            match thread.kind {
                Kind::Worker(_) | Kind::Serves(_) | Kind::Polls(_) => {
                    let waited_ns = waited_ns(&self.folder, id).unwrap_or(thread.waited_ns);
                    let wait_ns =
                        waited_ns.saturating_sub(std::mem::replace(&mut thread.waited_ns, waited_ns));
                    busy.push((id, thread.kind, used_ns + wait_ns));
                }
                Kind::Other => overhead_ns += used_ns,
                Kind::Engine => {}
            }
        }
        let round = self.round;
        self.threads.retain(|_, thread| thread.round == round);
        (overhead_ns, self.busiest(&busy, &workers))
    }

    /// The time of the busiest thread that works for each class: a worker, or a thread that serves one. For a
    /// thread that polls, only the share in which it found work counts, if the kernel reports that.
    fn busiest(&mut self, busy: &[(i32, Kind, u64)], workers: &HashMap<i32, Class>) -> [Option<u64>; 4] {
        let polls = busy.iter().any(|(_, kind, _)| matches!(kind, Kind::Polls(_)));
        let polled = if polls { sqpoll::read(&self.folder) } else { HashMap::new() };
        let mut classes = workers.values().copied();
        let only = classes.next().filter(|first| classes.all(|class| class == *first));
        let mut busiest_ns = [None; 4];
        for &(id, kind, ns) in busy {
            // Thread numbers in names are the system's, which differ from ours in a container.
            let Some(class) = self.class_of(kind).or(only) else { continue };
            let share = match (kind, polled.get(&id)) {
                (Kind::Polls(_), Some(now)) => now.share_since(self.polled.get(&id)),
                // Its ring was locked: the next reading covers this time too.
                (Kind::Polls(_), None) if self.polled.contains_key(&id) => 0.0,
                _ => 1.0,
            };
            let busiest: &mut Option<u64> = &mut busiest_ns[class.index()];
            *busiest = Some(busiest.unwrap_or(0).max((ns as f64 * share) as u64));
        }
        self.polled.retain(|id, _| self.threads.contains_key(id));
        self.polled.extend(polled);
        busiest_ns
    }

    /// The class that a thread reads for.
    fn class_of(&self, kind: Kind) -> Option<Class> {
        let served = |id| self.threads.get(&id).map(|thread| thread.kind);
        let mut kind = kind;
        for _ in 0..3 {
            match kind {
                Kind::Worker(class) => return Some(class),
                Kind::Serves(id) | Kind::Polls(id) => kind = served(id)?,
                Kind::Other | Kind::Engine => return None,
            }
        }
        None
    }

    /// Bytes from storage since the last call, for the classes that read through the page cache. A class that
    /// did not do so at the last call has none yet.
    fn storage_reads(&mut self, through_cache: [bool; 4]) -> [Option<u64>; 4] {
        let counted = std::mem::replace(&mut self.counted, through_cache);
        let mut reads = std::array::from_fn(|at| (counted[at] && through_cache[at]).then_some(0));
        let mut unclaimed = 0;
        let any = through_cache.contains(&true);
        let owners: Vec<_> =
            self.threads.iter().map(|(id, t)| (*id, t.kind, self.class_of(t.kind))).collect();
        for (id, kind, class) in owners {
            let wanted = match class {
                Some(class) => through_cache[class.index()],
                // It serves a thread that we do not know: thread numbers in names are the system's, which
                // differ from ours in a container.
                None => any && !matches!(kind, Kind::Other | Kind::Engine),
            };
            let now = if wanted { read_bytes(&self.folder, id) } else { None };
            let Some(thread) = self.threads.get_mut(&id) else { continue };
            let last = std::mem::replace(&mut thread.read_bytes, now);
            let read = now.zip(last).map(|(now, last)| now.saturating_sub(last));
            match class {
                Some(class) if wanted => {
                    let sum = &mut reads[class.index()];
                    // If a thread can't be read, or could not be before, its class's reads are unknown.
                    *sum = sum.zip(read).map(|(sum, read)| sum + read);
                }
                _ => unclaimed += read.unwrap_or(0),
            }
        }
        claim(&mut reads, through_cache, unclaimed);
        reads
    }
}

/// Attributes reads of unknown origin to the only class they can belong to; if there are several, none is known.
fn claim(reads: &mut [Option<u64>; 4], through_cache: [bool; 4], unclaimed: u64) {
    if unclaimed == 0 {
        return;
    }
    let alone = through_cache.iter().filter(|reads| **reads).count() == 1;
    for read in reads {
        *read = if alone { read.map(|read| read + unclaimed) } else { None };
    }
}

fn kind(folder: &Path, id: i32) -> Kind {
    let name = std::fs::read_to_string(folder.join(id.to_string()).join("comm")).unwrap_or_default();
    if name.starts_with(ENGINE) {
        return Kind::Engine;
    }
    let of = |prefix| name.strip_prefix(prefix).and_then(|id| id.trim().parse().ok());
    let polls = of("iou-sqp-").map(Kind::Polls);
    let serves = || of("iou-wrk-").or(of(SERVES)).map(Kind::Serves);
    polls.or_else(serves).unwrap_or(Kind::Other)
}

/// Time for which a thread could have run but waited for a CPU. Parsed by hand: it is read for each thread in
/// each window, and two numbers need no parser.
fn waited_ns(folder: &Path, id: i32) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join(id.to_string()).join("schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn read_bytes(folder: &Path, id: i32) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join(id.to_string()).join("io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
