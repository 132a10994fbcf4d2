//! Threads of a fake process, and this one's own.

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
        let folder = self.folder.path().join("task").join(id.to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
        fs::write(folder.join("io"), format!("rchar: 9\nread_bytes: {read}\nwrite_bytes: 7\n")).unwrap();
        self.clocks.0.lock().unwrap().insert(id, cpu_ns);
    }
    fn probe(&self) -> TaskProbe {
        TaskProbe::under(&self.folder.path().join("task"), Box::new(self.clocks.clone()), 0)
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
    assert_eq!(figures.busiest_worker, [Some(1.0), Some(0.1), None, None], "what serves a worker counts");
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
        let path = fake.folder.path().join("task/10/schedstat");
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
    assert_eq!(figures.storage_reads, Some([Some(1000), Some(0), None, None]), "from the first second on");

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
    fs::remove_file(fake.folder.path().join("task/11/io")).unwrap();
    let reads = probe.window(2 * SECOND_NS, &WORKERS, READERS).storage_reads.unwrap();
    assert_eq!(reads, [None, Some(0), None, None]);
}

#[test]
fn this_process_shows_its_busy_thread() {
    let id = rustix::thread::gettid().as_raw_nonzero().get();
    let task = Path::new("/proc/self/task");
    // What it ran and waited; neither goes down.
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

#[test]
fn threads_of_the_kernel_that_work_for_a_class_are_its_limit_too() {
    let fake = Fake::new();
    let mut probe = fake.probe();
    fake.thread(10, "scan", 100_000_000, 0);
    fake.thread(12, "point", 200_000_000, 0);
    fake.thread(20, "iou-wrk-10", 970_000_000, 0);
    fake.thread(21, "iou-sqp-12", 300_000_000, 0);
    fake.thread(22, "iou-wrk-21", 980_000_000, 0);
    let figures = probe.window(SECOND_NS, &WORKERS, [false; 4]);
    assert_eq!(figures.busiest_worker, [Some(0.97), Some(0.98), None, None]);
    // Threads that serve unknown workers, as in a container: their class is known only where a single class runs.
    fake.thread(30, "iou-wrk-4711", 990_000_000, 0);
    let figures = probe.window(2 * SECOND_NS, &WORKERS, [false; 4]);
    assert_eq!(figures.busiest_worker, [Some(0.0), Some(0.0), None, None]);
    fake.thread(30, "iou-wrk-4711", 1_950_000_000, 0);
    let figures = probe.window(3 * SECOND_NS, &WORKERS[..2], [false; 4]);
    assert_eq!(figures.busiest_worker[0], Some(0.96));
}

#[test]
fn a_thread_that_polls_is_busy_only_while_it_finds_work() {
    let fake = Fake::new();
    let mut probe = fake.probe();
    let ring = |work_us: u64, total_us: u64| {
        let of = |name: &str| fake.folder.path().join(name);
        fs::create_dir_all(of("fd")).unwrap();
        fs::create_dir_all(of("fdinfo")).unwrap();
        let _ = std::os::unix::fs::symlink("anon_inode:[io_uring]", of("fd/7"));
        let text = format!(
            "pos:\t0\nSqThread:\t21\nSqThreadCpu:\t1\nSqTotalTime:\t{total_us}\nSqWorkTime:\t{work_us}\n"
        );
        fs::write(of("fdinfo/7"), text).unwrap();
    };
    let busiest = |probe: &mut TaskProbe, at_s: u64| {
        fake.thread(10, "scan", 100_000_000 * at_s, 0);
        fake.thread(21, "iou-sqp-10", SECOND_NS * at_s, 0);
        probe.window(at_s * SECOND_NS, &WORKERS, [false; 4]).busiest_worker[0]
    };
    assert_eq!(busiest(&mut probe, 1), Some(1.0), "unknown: it may be the limit");
    ring(600_000, 2_000_000);
    assert_eq!(busiest(&mut probe, 2), Some(0.3));
    ring(1_580_000, 3_000_000);
    assert_eq!(busiest(&mut probe, 3), Some(0.98));
    ring(1_580_000, 4_000_000);
    assert_eq!(busiest(&mut probe, 4), Some(0.1), "the worker's own");
    fs::remove_file(fake.folder.path().join("fdinfo/7")).unwrap();
    assert_eq!(busiest(&mut probe, 5), Some(0.1), "not read this time");
}
