//! What the process's own threads cost and read: workers, their helpers in the kernel, the rest.
//!
//! A worker's CPU time comes from its thread's clock. A worker that could run but waits for a CPU counts as
//! busy too, as it is not waiting for storage: field 2 of its `schedstat`, if the kernel has it. The
//! process's clock includes every thread, even `io_uring`'s kernel-side ones: these are threads of the
//! process, named after the thread that they serve (`iou-wrk-TID`; `iou-sqp-TID` for a polled submission
//! queue, whose own helpers are named after it). The threads that flush for a worker of `sync` follow the
//! same scheme (`flush-TID`). `read_bytes` in a thread's `io` file counts what that thread requested of the
//! block layer, so reads served by a cache are not in it.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::units::SECOND_NS;

/// Prefixes of the names of `RocksDB`'s own threads.
const ENGINE: &str = "rocksdb:";
/// Prefixes of the names of threads that work for another one, whose number follows.
pub const SERVES: &str = "flush-";

/// What the threads did since the last call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFigures {
    /// See [`super::window::CpuFigures::own_cores`].
    pub own_cores: f64,
    /// See [`super::window::CpuFigures::overhead_cores`].
    pub overhead_cores: f64,
    /// See [`super::window::ClassFigures::busiest_worker`], by class.
    pub busiest_worker: [Option<f64>; 4],
    /// Bytes that reads took from storage since this was last given, by class; only now and then.
    pub storage_reads: Option<[Option<u64>; 4]>,
}

/// CPU time that another process used for a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTimes {
    /// Of the process, as far as not attributed to another class.
    pub own_ns: u64,
    /// Of everything that neither works nor serves workers, likewise.
    pub overhead_ns: u64,
    /// Of the class's busiest worker, with its waits for a CPU.
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
    at_ns: u64,
    process_ns: u64,
    storage_at_ns: u64,
    /// Classes whose reads the last reading of storage included.
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
    /// A kernel-side thread that serves that thread.
    Serves(i32),
    /// A thread of the storage engine, which flushes and merges.
    Engine,
    Other,
}

impl TaskProbe {
    /// For this process, from that time on.
    pub fn open(now_ns: u64) -> Self {
        Self::under(Path::new("/proc/self/task"), Box::new(KernelClocks), now_ns)
    }

    /// For the threads in that folder, with those clocks.
    pub fn under(folder: &Path, clocks: Box<dyn Clocks>, now_ns: u64) -> Self {
        let mut tasks = Tasks {
            folder: folder.to_owned(),
            process_ns: clocks.process_ns(),
            clocks,
            threads: HashMap::new(),
            at_ns: now_ns,
            storage_at_ns: now_ns,
            // The threads that read for classes do not exist yet, so everything they read is included.
            counted: [true; 4],
            round: 0,
        };
        tasks.look(&[]);
        Self(Some(tasks))
    }

    /// For no process: all figures stay empty, as simulated runs must repeat exactly.
    pub fn none() -> Self {
        Self(None)
    }

    /// The figures since the last call, given the workers' threads with their classes, and which classes read
    /// through the page cache. Storage reads are given a second or more after the last time.
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
    /// serve workers, and of the busiest worker of each class including its waits for a CPU.
    fn look(&mut self, workers: &[(i32, Class)]) -> (u64, [Option<u64>; 4]) {
        self.round += 1;
        let first = self.round == 1;
        let workers: HashMap<i32, Class> = workers.iter().copied().collect();
        let (mut overhead_ns, mut busiest_ns) = (0, [None; 4]);
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let Some(cpu_ns) = self.clocks.thread_ns(id) else { continue };
            // What a thread used before it was first seen counts, except at the first reading.
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
                // Twice, as a new thread names itself only after it has started.
                thread.looks += 1;
                thread.kind = kind(&self.folder, id);
            }
            let used_ns = cpu_ns.saturating_sub(std::mem::replace(&mut thread.cpu_ns, cpu_ns));
            match thread.kind {
                Kind::Worker(class) => {
                    let waited_ns = waited_ns(&self.folder, id).unwrap_or(thread.waited_ns);
                    let wait_ns =
                        waited_ns.saturating_sub(std::mem::replace(&mut thread.waited_ns, waited_ns));
                    let busiest = &mut busiest_ns[class.index()];
                    *busiest = Some(busiest.unwrap_or(0).max(used_ns + wait_ns));
                }
                Kind::Other => overhead_ns += used_ns,
                Kind::Serves(_) | Kind::Engine => {}
            }
        }
        let round = self.round;
        self.threads.retain(|_, thread| thread.round == round);
        (overhead_ns, busiest_ns)
    }

    /// The class that a thread reads for.
    fn class_of(&self, kind: Kind) -> Option<Class> {
        let served = |id| self.threads.get(&id).map(|thread| thread.kind);
        let mut kind = kind;
        for _ in 0..3 {
            match kind {
                Kind::Worker(class) => return Some(class),
                Kind::Serves(id) => kind = served(id)?,
                Kind::Other | Kind::Engine => return None,
            }
        }
        None
    }

    /// Bytes from storage since the last call, for the classes that read through the page cache. A class that
    /// did not at the last call has none yet.
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
                // Serves a thread that we do not know: thread numbers in names are the system's, which differ
                // from ours in a container.
                None => any && !matches!(kind, Kind::Other | Kind::Engine),
            };
            let now = if wanted { read_bytes(&self.folder, id) } else { None };
            let Some(thread) = self.threads.get_mut(&id) else { continue };
            let last = std::mem::replace(&mut thread.read_bytes, now);
            let read = now.zip(last).map(|(now, last)| now.saturating_sub(last));
            match class {
                Some(class) if wanted => {
                    let sum = &mut reads[class.index()];
                    // If a thread can't be read, or could not be before, its class is unknown.
                    *sum = sum.zip(read).map(|(sum, read)| sum + read);
                }
                _ => unclaimed += read.unwrap_or(0),
            }
        }
        claim(&mut reads, through_cache, unclaimed);
        reads
    }
}

/// Attributes reads of unknown origin to the only possible class; otherwise nothing is known.
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
    let served = ["iou-wrk-", "iou-sqp-", SERVES].iter().find_map(|prefix| name.strip_prefix(prefix));
    served.and_then(|id| id.trim().parse().ok()).map_or(Kind::Other, Kind::Serves)
}

/// Time for which a thread could have run but waited for a CPU.
fn waited_ns(folder: &Path, id: i32) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join(id.to_string()).join("schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn read_bytes(folder: &Path, id: i32) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join(id.to_string()).join("io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct FakeClocks(Arc<Mutex<HashMap<i32, u64>>>);

    impl Clocks for FakeClocks {
        fn process_ns(&self) -> u64 {
            self.0.lock().unwrap().values().sum()
        }
        fn thread_ns(&self, id: i32) -> Option<u64> {
            self.0.lock().unwrap().get(&id).copied()
        }
    }

    struct Fake {
        folder: tempfile::TempDir,
        clocks: FakeClocks,
    }

    impl Fake {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), clocks: FakeClocks::default() }
        }
        fn thread(&self, id: i32, name: &str, cpu_ns: u64, read: u64) {
            let folder = self.folder.path().join(id.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
            fs::write(folder.join("io"), format!("rchar: 9\nread_bytes: {read}\nwrite_bytes: 7\n")).unwrap();
            self.clocks.0.lock().unwrap().insert(id, cpu_ns);
        }
        fn probe(&self) -> TaskProbe {
            TaskProbe::under(self.folder.path(), Box::new(self.clocks.clone()), 0)
        }
    }

    const WORKERS: [(i32, Class); 3] = [(10, Class::Scan), (11, Class::Scan), (12, Class::Point)];
    const READERS: [bool; 4] = [true, true, false, false];

    #[test]
    fn the_busiest_worker_and_the_overhead() {
        let fake = Fake::new();
        fake.thread(1, "stacktune", 5 * SECOND_NS, 0);
        let mut probe = fake.probe();
        fake.thread(1, "stacktune", 5 * SECOND_NS + 20_000_000, 0);
        fake.thread(10, "scan", 400_000_000, 0);
        fake.thread(11, "scan", 900_000_000, 0);
        fake.thread(12, "point", 100_000_000, 0);
        fake.thread(20, "iou-sqp-10", 1_000_000_000, 0);
        fake.thread(21, &format!("{SERVES}12"), 50_000_000, 0);
        let figures = probe.window(SECOND_NS, &WORKERS, [false; 4]);
        assert_eq!(figures.busiest_worker, [Some(0.9), Some(0.1), None, None]);
        assert!((figures.overhead_cores - 0.02).abs() < 1e-9, "{figures:?}");
        assert!((figures.own_cores - 2.47).abs() < 1e-9, "{figures:?}");
        // A worker that has ended is not overhead while its thread still exists.
        fake.thread(12, "point", 600_000_000, 0);
        let figures = probe.window(2 * SECOND_NS, &WORKERS[..2], [false; 4]);
        assert!(figures.overhead_cores.abs() < 1e-9, "{figures:?}");
        assert_eq!(TaskProbe::none().window(5, &WORKERS, READERS), TaskFigures::default());
    }

    #[test]
    fn a_worker_that_waits_for_a_cpu_is_not_idle() {
        let fake = Fake::new();
        let mut probe = fake.probe();
        let busiest = |probe: &mut TaskProbe, at_s: u64, cpu_ns: u64, schedstat: Option<&str>| {
            fake.thread(10, "scan", cpu_ns, 0);
            let path = fake.folder.path().join("10/schedstat");
            schedstat.map_or_else(|| fs::remove_file(&path), |text| fs::write(&path, text)).unwrap();
            probe.window(at_s * SECOND_NS, &WORKERS, [false; 4]).busiest_worker[0]
        };
        assert_eq!(busiest(&mut probe, 1, 500_000_000, Some("500000000 470000000 99\n")), Some(0.97));
        assert_eq!(busiest(&mut probe, 2, 600_000_000, Some("600000000 480000000 99\n")), Some(0.11));
        assert_eq!(busiest(&mut probe, 3, 700_000_000, None), Some(0.1), "the kernel does not report it");
        assert_eq!(busiest(&mut probe, 4, 800_000_000, Some("800000000 480000000 99\n")), Some(0.1));
    }

    #[test]
    fn reads_of_kernel_side_threads_belong_to_the_class_they_serve() {
        let fake = Fake::new();
        let mut probe = fake.probe();
        fake.thread(10, "scan", 0, 1000);
        fake.thread(12, "point", 0, 0);
        let figures = probe.window(SECOND_NS, &WORKERS, READERS);
        assert_eq!(
            figures.storage_reads,
            Some([Some(1000), Some(0), None, None]),
            "from the first second on"
        );

        fake.thread(10, "scan", 0, 1500);
        fake.thread(12, "point", 0, 3);
        fake.thread(20, "iou-wrk-10", 0, 70); // new: everything it read is of this window
        fake.thread(21, "iou-sqp-12", 0, 4);
        fake.thread(22, "iou-wrk-21", 0, 5);
        fake.thread(30, "recorder", 0, 10_000);
        assert_eq!(probe.window(3 * SECOND_NS / 2, &WORKERS, READERS).storage_reads, None, "too soon");
        let figures = probe.window(2 * SECOND_NS, &WORKERS, READERS);
        assert_eq!(figures.storage_reads, Some([Some(570), Some(12), None, None]));
    }

    #[test]
    fn a_class_that_switches_to_cached_reads_has_none_for_the_time_before() {
        let fake = Fake::new();
        let mut probe = fake.probe();
        fake.thread(10, "scan", 0, 1000);
        assert_eq!(probe.window(SECOND_NS, &WORKERS, [false; 4]).storage_reads, Some([None; 4]));
        fake.thread(10, "scan", 0, 1500);
        assert_eq!(probe.window(2 * SECOND_NS, &WORKERS, READERS).storage_reads.unwrap()[0], None);
        fake.thread(10, "scan", 0, 1600);
        assert_eq!(probe.window(3 * SECOND_NS, &WORKERS, READERS).storage_reads.unwrap()[0], Some(100));
    }

    #[test]
    fn reads_of_unknown_origin_are_never_ignored() {
        let fake = Fake::new();
        fake.thread(10, "scan", 0, 0);
        fake.thread(12, "point", 0, 0);
        let mut probe = fake.probe();
        let point = [false, true, false, false];
        for (at, through_cache, expected) in
            [(1, READERS, [None; 4]), (2, READERS, [None; 4]), (3, point, [None, Some(100), None, None])]
        {
            fake.thread(20, "iou-wrk-4711", 0, at * 100);
            let figures = probe.window(at * SECOND_NS, &WORKERS, through_cache);
            assert_eq!(figures.storage_reads, Some(expected), "at {at} s");
        }
    }

    #[test]
    fn a_thread_that_cannot_be_read_leaves_its_class_unknown() {
        let fake = Fake::new();
        fake.thread(10, "scan", 0, 0);
        fake.thread(11, "scan", 0, 0);
        fake.thread(12, "point", 0, 0);
        let mut probe = fake.probe();
        probe.window(SECOND_NS, &WORKERS, READERS);
        fs::remove_file(fake.folder.path().join("11/io")).unwrap();
        let reads = probe.window(2 * SECOND_NS, &WORKERS, READERS).storage_reads.unwrap();
        assert_eq!(reads, [None, Some(0), None, None]);
    }

    #[test]
    fn this_process_shows_its_busy_thread() {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        let task = Path::new("/proc/self/task");
        // What it ran and waited, neither of which goes back.
        let busy_ns = || KernelClocks.thread_ns(id).unwrap() + waited_ns(task, id).unwrap_or(0);
        let began = std::time::Instant::now();
        let before_open = busy_ns();
        let mut probe = TaskProbe::open(0);
        let opened = busy_ns();
        let before = KernelClocks.thread_ns(id).unwrap();
        while KernelClocks.thread_ns(id).unwrap() - before < 20_000_000 {}
        let closes = busy_ns();
        let elapsed_ns = began.elapsed().as_nanos() as u64;
        let figures = probe.window(elapsed_ns, &[(id, Class::Scan)], [false; 4]);
        let most = (busy_ns() - before_open) as f64 / elapsed_ns as f64;
        let busiest = figures.busiest_worker[0].unwrap();
        let least = (closes - opened) as f64 / elapsed_ns as f64;
        assert!(least.min(1.0) <= busiest && busiest <= most, "{least} to {most}: {figures:?}");
        assert!(KernelClocks.thread_ns(i32::MAX >> 4).is_none());
    }
}
