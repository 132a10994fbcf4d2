//! After its start a worker allocates nothing, takes no lock and requests no memory from the system: it then
//! measures the storage, not the allocator or another thread.
//!
//! An allocator counts allocations by thread. A contended lock sleeps and wakes through the `futex` system
//! call, which is counted for the workers' threads; an uncontended one shows only in the source (see
//! `tests/house`).
#![allow(unsafe_code)] // allocators are inherently unsafe: this one counts, and calls the system's

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common;
use crate::common::skip;
use crate::common::syscalls::{self, PerThread};
use stacktune::testing::class::Class;
use stacktune::testing::load::volume::write_map::WriteMap;
use stacktune::testing::load::volume::{Extent, Region};
use stacktune::testing::load::workers::control::Writes;
use stacktune::testing::load::workers::{ThreadedWorkers, Workers};
use stacktune::testing::meter::source::{Delta, Source};
use stacktune::testing::settings::jobs::{Job, jobs};
use stacktune::testing::settings::{Arrival, Buffering, Interface, Offsets, Settings};
use stacktune::testing::units::MIB;

static ALLOCATIONS: PerThread = PerThread::new();
static CALLS: PerThread = PerThread::new();

/// Sleeping and waking, and requests for memory.
const COUNTED_CALLS: [libc::c_long; 6] =
    [libc::SYS_futex, libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise];

/// I/Os, or failures, after which a worker counts as started; then how many more are observed.
const STARTED: u64 = 4;
const LOOKED_AT: u64 = 64;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    thread_local!(static ID: Cell<i32> = const { Cell::new(0) });
    let id = ID.get();
    let id = if id == 0 { rustix::thread::gettid().as_raw_nonzero().get() } else { id };
    ID.set(id);
    ALLOCATIONS.add(id);
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the same contract.
        unsafe { System.realloc(block, layout, bytes) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

/// The data's and the WAL's files.
struct Regions {
    dir: tempfile::TempDir,
    data: Arc<Region>,
    wal: Arc<Region>,
}

fn regions(wal_files: u32) -> Regions {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let region = |id, name, files| region(dir.path(), id, name, files);
    Regions { data: region(Region::DATA, "data", 2), wal: region(Region::WAL, "wal", wal_files), dir }
}

fn region(dir: &Path, id: u8, name: &str, files: u32) -> Arc<Region> {
    let extent = |member| {
        let path = dir.join(format!("{name}-{member}"));
        std::fs::write(&path, vec![1; 4 * MIB as usize]).unwrap();
        Extent { path, identity: None, member, offset_bytes: 0 }
    };
    Arc::new(Region { id, set: 7, extents: (0..files).map(extent).collect(), extent_bytes: 4 * MIB })
}

/// A write map, as every run that writes keeps one.
fn map_of(Regions { dir, data, wal }: &Regions, plans: &[Job]) -> WriteMap {
    let path = dir.path().join("map");
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    let map = WriteMap::keep(file, [data, wal], 1, 1).unwrap();
    let page_bytes = |class| plans.iter().find(|job| job.class == class).map_or(4096, |job| job.page_bytes);
    map.begin([data, wal], [Class::Background, Class::Wal].map(page_bytes), 1).unwrap();
    map
}

/// Counts of one worker between its start and the order to stop.
#[derive(Debug)]
struct Looked {
    what: String,
    allocations_at_start: u64,
    allocations: u64,
    calls: u64,
}

/// Runs these classes together until each has done enough.
fn look(regions: &Regions, plans: &[Job], what: &str) -> Vec<Looked> {
    let writes = Arc::new(Writes::new(0, Arc::default()).keeping(Some(Arc::new(map_of(regions, plans)))));
    let mut workers = ThreadedWorkers::new(regions.data.clone(), regions.wal.clone(), 2, writes);
    // As for a trace of the workers' own I/Os.
    workers.observe().unwrap();
    let mut sources: Vec<_> = plans.iter().flat_map(|plan| workers.start(plan, &[]).unwrap()).collect();
    let mut done = vec![0; sources.len()];
    wait(&mut sources, &mut done, STARTED, what);
    let threads: Vec<_> = sources.iter().map(|source| source.thread_id().unwrap()).collect();
    let start: Vec<_> = threads.iter().map(|id| (ALLOCATIONS.get(*id), CALLS.get(*id))).collect();
    wait(&mut sources, &mut done, STARTED + LOOKED_AT, what);
    let ends = threads.iter().map(|id| (ALLOCATIONS.get(*id), CALLS.get(*id)));
    let looked = ends.zip(start).zip(&sources).map(|((end, start), source)| Looked {
        what: format!("{} on {what}", source.class()),
        allocations_at_start: start.0,
        allocations: end.0 - start.0,
        calls: end.1 - start.1,
    });
    looked.collect()
}

fn wait(sources: &mut [Box<dyn Source>], done: &mut [u64], until: u64, what: &str) {
    let began = Instant::now();
    while done.iter().any(|done| *done < until) {
        assert!(began.elapsed() < Duration::from_mins(1), "{what}: {done:?}");
        std::thread::sleep(Duration::from_millis(1));
        for (source, done) in sources.iter_mut().zip(&mut *done) {
            let mut delta = Delta::new(2);
            source.collect(&mut delta);
            *done += delta.ios + delta.errnos.iter().sum::<u64>();
        }
    }
}

/// All four classes with a light write load; with default worker settings, or with others.
fn plans(interface: Interface, buffering: Buffering, otherwise: bool) -> [Job; 4] {
    let mut settings = Settings::default();
    settings.io.interface = interface;
    settings.io.buffering = buffering;
    // Small enough for any limit on locked memory.
    let [scan, point, wal, background] = &mut settings.classes;
    scan.depth = 8;
    scan.batch = 4;
    wal.rate_bytes_per_s = Some(10_000_000);
    background.rate_bytes_per_s = Some(10_000_000);
    if otherwise {
        scan.offsets = Offsets::Zipf;
        scan.threads = 2;
        point.offsets = Offsets::Runs;
        point.rate_bytes_per_s = Some(10_000_000);
        point.arrival = Arrival::Poisson;
        wal.rate_bytes_per_s = None;
        settings.wal.sync_every = 8;
        background.threads = 2;
        // Every I/O counts as slow.
        settings.run.slow_log = Duration::from_nanos(1);
    }
    jobs(&settings)
}

/// Every interface with every class, buffered and direct; and with failing I/Os.
fn look_at_all(wal_files: u32) -> Vec<Looked> {
    let facts = stacktune::testing::host::Facts::read(Path::new("/"));
    let mut looked = Vec::new();
    for interface in [Interface::Sync, Interface::Libaio, Interface::IoUring, Interface::Null] {
        let missing = match interface {
            Interface::Libaio => facts.libaio.reason(),
            Interface::IoUring => facts.io_uring.reason(),
            _ => None,
        };
        if let Some(missing) = missing {
            skip("hot_loop", &format!("{interface:?}: {missing}"));
            continue;
        }
        for (buffering, otherwise) in [(Buffering::Cached, false), (Buffering::Direct, true)] {
            let what = format!("{interface:?} {buffering:?}");
            looked.extend(look(&regions(wal_files), &plans(interface, buffering, otherwise), &what));
        }
        if interface != Interface::Null {
            looked.extend(look_at_failures(interface));
        }
    }
    looked
}

/// Reads beyond the end of the files.
fn look_at_failures(interface: Interface) -> Vec<Looked> {
    let mut regions = regions(1);
    let data = Arc::get_mut(&mut regions.data).unwrap();
    data.extents.iter_mut().for_each(|extent| extent.offset_bytes = 8 * MIB);
    let [_, mut point, ..] = plans(interface, Buffering::Cached, false);
    point.rate_bytes_per_s = Some(500 * point.page_bytes);
    look(&regions, &[point], &format!("{interface:?}, failing"))
}

#[test]
fn a_worker_allocates_nothing_after_its_start() {
    for worker in look_at_all(2) {
        assert!(worker.allocations_at_start > 0, "nothing is counted: {worker:?}");
        assert_eq!(worker.allocations, 0, "{}", worker.what);
    }
}

#[test]
fn a_worker_waits_for_no_lock_and_takes_no_memory_after_its_start() {
    let counted = syscalls::counted(&COUNTED_CALLS, &CALLS, || {
        let all = look_at_all(1);
        // With several files to flush at once, `sync` uses helper threads, and does wait for them.
        let several = plans(Interface::Sync, Buffering::Cached, true);
        let wal = &several[Class::Wal.index()..=Class::Wal.index()];
        (all, look(&regions(2), wal, "sync, several files"))
    });
    let (all, helped) = match counted {
        Ok(counted) => counted,
        Err(reason) => {
            let test = "a_worker_waits_for_no_lock_and_takes_no_memory_after_its_start";
            return common::skip(test, &format!("system calls can't be counted here: {reason}"));
        }
    };
    assert!(helped[0].calls > 0, "nothing is counted: {helped:?}");
    for worker in all {
        assert_eq!(worker.calls, 0, "{}", worker.what);
    }
}
