//! The generator's own CPU cost per I/O on this host, for each interface.
//!
//! Each interface runs briefly on a small file in the page cache, so this measures the CPU time of the path,
//! not storage. `null` shows the generator alone: pacing, offsets, time stamps, histograms.

pub mod pairs;

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use crate::class::Class;
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::load::io::clock;
use crate::load::volume::write_map::WriteMap;
use crate::load::volume::{Extent, Region};
use crate::load::workers::control::Writes;
use crate::load::workers::{Activity, ThreadedWorkers, Workers};
use crate::meter::source::Delta;
use crate::settings::interface::Interface;
use crate::settings::jobs::{self, Job};
use crate::settings::named::Named;
use crate::settings::{Buffering, Settings};
use crate::threads;
use crate::units::{GIB, KIB, MIB};

const PAGE_BYTES: u64 = 4096;
const FILE_BYTES: u64 = 64 * MIB;
/// The longest timer tick of distribution kernels: 250 Hz.
const TICK_NS: f64 = 4e6;
/// A part of the CPU time is shown only if it lasts at least this many ticks.
const TICKS_MIN: f64 = 5.0;

/// The cost of one kind of I/O through one interface.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// The interface's name.
    pub interface: &'static str,
    /// How it is used, in words.
    pub how: &'static str,
    /// CPU time of this process, nanoseconds per I/O.
    pub cpu_ns: f64,
    /// The part in user mode. Most kernels only sample at each timer tick where a thread is, and split its
    /// time accordingly; `None` if there are too few ticks.
    pub user_ns: Option<f64>,
    /// The part in the kernel, likewise.
    pub system_ns: Option<f64>,
    /// I/Os per second.
    pub iops: f64,
    /// For a paced class, `cpu_ns` relative to the same without a rate.
    pub over_unpaced: Option<f64>,
}

/// What a class does.
struct Shape {
    how: &'static str,
    class: Class,
    /// Its rate in I/Os per second, and how far apart starts may be that share a sleep.
    paced: Option<(u64, Duration)>,
}

/// Closed-loop scan, paced scans, point.
const SHAPES: [Shape; 4] = [
    Shape { how: "4 KiB reads, depth 128, batch 32", class: Class::Scan, paced: None },
    // A rate that a worker sustains easily, so that this shows the cost of pacing, not its limit.
    Shape {
        how: "the same at 100,000 per second",
        class: Class::Scan,
        paced: Some((100_000, Duration::from_micros(50))),
    },
    Shape {
        how: "and with run.pace = 1ms",
        class: Class::Scan,
        paced: Some((100_000, Duration::from_millis(1))),
    },
    Shape { how: "4 KiB reads, depth 1", class: Class::Point, paced: None },
];
/// Writes that are recorded in the write map.
struct Kept {
    how: &'static str,
    /// Workers of the writing class: a single one needs no atomic exchange.
    workers: u64,
    /// Size of the data that they write to: the larger it is, the less of its map is in the cache.
    data_gib: u32,
}

const KEPT: [Kept; 3] = [
    Kept { how: "a write for `verify`, 4 GiB", workers: 1, data_gib: 4 },
    Kept { how: "the same of several workers", workers: 2, data_gib: 4 },
    Kept { how: "and with 256 GiB of data", workers: 2, data_gib: 256 },
];

/// Followed by the id of the process that the file belongs to.
const FILE_PREFIX: &str = "calibrate-";
/// Length of the sleeps to measure: the default of a fast class with a rate.
const SLEEP_NS: u64 = 50_000;

/// Measures a sleep, the write map, and every interface of this host, each for `time`, on a temporary file in `dir`.
pub fn calibrate(dir: &Path, time: Duration, facts: &Facts) -> Result<Vec<Cost>> {
    remove_left_behind(dir);
    let path = dir.join(format!("{FILE_PREFIX}{}", std::process::id()));
    let mut costs = vec![sleeping(time)?];
    for kept in &KEPT {
        costs.push(keeping(&path, kept, time)?);
    }
    let region = make_file(&path)?;
    let measured = measure_all(&region, time, facts);
    std::fs::remove_file(&path).map_err(|e| Error::os("cannot remove", &path, e))?;
    costs.extend(measured?);
    Ok(costs)
}

/// Removes files left by killed processes; files that can't be removed do no harm.
fn remove_left_behind(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FILE_PREFIX)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn make_file(path: &Path) -> Result<Arc<Region>> {
    let fail = |e| Error::os("cannot write", path, e);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(fail)?;
    let noise: Vec<u8> = (0..MIB).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
    for _ in 0..FILE_BYTES / MIB {
        file.write_all(&noise).map_err(fail)?;
    }
    let extents = vec![Extent { path: path.to_owned(), identity: None, member: 0, offset_bytes: 0 }];
    Ok(Arc::new(Region { id: Region::DATA, set: 0, extents, extent_bytes: FILE_BYTES }))
}

fn measure_all(region: &Arc<Region>, time: Duration, facts: &Facts) -> Result<Vec<Cost>> {
    let mut costs = Vec::new();
    // From the cheapest to the most expensive.
    let interfaces = Interface::all().rev().filter(|interface| interface.runs_on_files());
    for interface in interfaces.filter(|interface| interface.missing_on(facts).is_none()) {
        let mut unpaced_ns = f64::NAN;
        for shape in SHAPES {
            let measured = measure(region, &plan_of(interface, &shape), time)?;
            let over_unpaced = shape.paced.map(|_| measured.cpu_ns / unpaced_ns);
            unpaced_ns = if shape.paced.is_some() { unpaced_ns } else { measured.cpu_ns };
            costs.push(Cost { interface: interface.name(), how: shape.how, over_unpaced, ..measured });
        }
    }
    Ok(costs)
}

/// The cost of a sleep, which pacing adds to the I/Os of a class: timer, interrupt, two context switches.
fn sleeping(time: Duration) -> Result<Cost> {
    let thread = threads::start("measure", move || {
        clock::sleep_precisely();
        let (cpu, start_ns) = (cpu_times_ns(), clock::now_ns());
        let (mut now_ns, mut sleeps) = (start_ns, 0.0);
        while now_ns < start_ns + time.as_nanos() as u64 {
            clock::sleep_until(now_ns + SLEEP_NS);
            now_ns = clock::now_ns();
            sleeps += 1.0;
        }
        let elapsed_s = (now_ns - start_ns) as f64 / 1e9;
        let (user, system) = cpu_times_ns();
        cost((user - cpu.0, system - cpu.1), sleeps, elapsed_s)
    })?;
    let cost = thread.join().map_err(|_| Error::failed("the measuring thread ended in a panic"))?;
    Ok(Cost { interface: "sleep", how: "a sleep of 50 µs", ..cost })
}

/// The cost of a write in the write map, which every write of a run pays besides its I/O.
fn keeping(path: &Path, kept: &Kept, time: Duration) -> Result<Cost> {
    const UNDER_WAY: u64 = 32;
    const PAGE_BYTES: u64 = 16 * KIB;
    let fail = |e| Error::os("cannot make a write map in", path, e);
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path).map_err(fail)?;
    std::fs::remove_file(path).map_err(fail)?;
    let extent = |member| Extent { path: path.to_owned(), identity: None, member, offset_bytes: 0 };
    let [data, wal] = [(Region::DATA, kept.data_gib), (Region::WAL, 1)].map(|(id, extents)| Region {
        id,
        set: 1 + u64::from(id),
        extents: (0..extents).map(extent).collect(),
        extent_bytes: GIB,
    });
    let map = WriteMap::keep(file, [&data, &wal], 1, 1).map_err(fail)?;
    map.begin([&data, &wal], [PAGE_BYTES; 2], 1).map_err(fail)?;
    let tracked = map.track(&data, PAGE_BYTES, (kept.workers, UNDER_WAY)).map_err(fail)?;
    let mut offsets = SmallRng::seed_from_u64(1);
    let mut place = || {
        let (page, extents) = (offsets.random::<u64>() % data.pages(PAGE_BYTES), u64::from(kept.data_gib));
        ((page % extents) as u32, page / extents * PAGE_BYTES)
    };
    // Subtracted below: a class draws its places even without a map.
    let drawing = repeated(time, |_| {
        black_box(place());
    });
    let both = repeated(time, |write| {
        let ((extent, at), slot) = (place(), (write % UNDER_WAY) as usize);
        tracked.completed(slot, true);
        tracked.queued(slot, extent, at, write + 1);
    });
    let without = |ns: f64| (ns - drawing.cpu_ns).max(0.0);
    Ok(Cost {
        interface: "write map",
        how: kept.how,
        cpu_ns: without(both.cpu_ns),
        user_ns: both.user_ns.map(without),
        ..both
    })
}

/// The mean cost of one call of `each`, over many calls.
fn repeated(time: Duration, mut each: impl FnMut(u64)) -> Cost {
    let (cpu, start_ns) = (cpu_times_ns(), clock::now_ns());
    let (mut count, mut now_ns) = (0, start_ns);
    while now_ns < start_ns + time.as_nanos() as u64 {
        // Rarely enough that the clock's own cost does not matter.
        for _ in 0..1024 {
            each(count);
            count += 1;
        }
        now_ns = clock::now_ns();
    }
    let (user, system) = cpu_times_ns();
    cost((user - cpu.0, system - cpu.1), count as f64, (now_ns - start_ns) as f64 / 1e9)
}

fn plan_of(interface: Interface, shape: &Shape) -> Job {
    let mut settings = Settings::default();
    settings.io.interface = interface;
    settings.io.buffering = Buffering::Cached;
    settings.io.page_size_bytes = PAGE_BYTES;
    if let Some((rate, pace)) = shape.paced {
        settings.classes[shape.class.index()].rate_bytes_per_s = Some(rate * PAGE_BYTES);
        settings.run.pace = pace;
    }
    let [scan, point, ..] = jobs::jobs(&settings);
    if shape.class == Class::Scan { scan } else { point }
}

fn measure(region: &Arc<Region>, job: &Job, time: Duration) -> Result<Cost> {
    let mut workers =
        ThreadedWorkers::new(region.clone(), region.clone(), 1, Arc::new(Writes::new(0, Arc::default())));
    let mut sources = workers.start(job, &[])?;
    // Start-up (rings, first page faults) is not part of the cost of an I/O.
    std::thread::sleep(time / 10);
    let mut skipped = Delta::new(1);
    sources.iter_mut().for_each(|source| _ = source.collect(&mut skipped));
    let (cpu, start_ns) = (cpu_times_ns(), clock::now_ns());
    std::thread::sleep(time);
    let (user, system) = cpu_times_ns();
    let mut delta = Delta::new(1);
    sources.iter_mut().for_each(|source| _ = source.collect(&mut delta));
    let elapsed_s = (clock::now_ns() - start_ns) as f64 / 1e9;
    workers.stop(job.class);
    while matches!(workers.activity(job.class), Activity::Running | Activity::Draining) {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(cost((user - cpu.0, system - cpu.1), delta.ios as f64, elapsed_s))
}

/// The cost per I/O.
fn cost((user_ns, system_ns): (f64, f64), ios: f64, elapsed_s: f64) -> Cost {
    let each = |ns: f64| ns / ios.max(1.0);
    Cost {
        interface: "",
        how: "",
        cpu_ns: each(user_ns + system_ns),
        user_ns: resolved(user_ns).map(each),
        system_ns: resolved(system_ns).map(each),
        iops: ios / elapsed_s,
        over_unpaced: None,
    }
}

/// A part of the CPU time, if it is long enough for the kernel's clock to resolve.
fn resolved(ns: f64) -> Option<f64> {
    (ns >= TICKS_MIN * TICK_NS).then_some(ns)
}

/// This process's CPU time so far, user and system, in nanoseconds.
fn cpu_times_ns() -> (f64, f64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the structure; all zeros is a valid value of it.
    #[allow(unsafe_code)]
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_few_ticks_is_unknown() {
        assert_eq!([0.0, 8e6, 40e6].map(resolved), [None, None, Some(40e6)]);
    }

    #[test]
    fn every_interface_is_measured_and_the_file_removed() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        // A killed process left its file; no process has that id.
        std::fs::write(dir.path().join(format!("{FILE_PREFIX}{}", u32::MAX)), "left").unwrap();
        let facts = Facts::read(Path::new("/"));
        // On busy CPUs, a worker may not run at all in such a short time.
        let mut tries = [60, 600, 6000]
            .map(Duration::from_millis)
            .into_iter()
            .map(|time| calibrate(dir.path(), time, &facts));
        let all_ran = |costs: &Vec<Cost>| costs.iter().all(|cost| cost.iops > 0.0);
        let costs = tries.find_map(|costs| Some(costs.unwrap()).filter(all_ran)).unwrap();
        for name in ["null", "sync"] {
            let own: Vec<_> = costs.iter().filter(|cost| cost.interface == name).collect();
            assert_eq!(own.len(), SHAPES.len());
            assert!(own.iter().all(|cost| cost.cpu_ns > 0.0), "{own:?}");
            let over: Vec<_> = own.iter().map(|cost| cost.over_unpaced.map(|over| over > 0.0)).collect();
            assert_eq!(over, [None, Some(true), Some(true), None]);
        }
        assert!(costs.iter().any(|cost| cost.interface == "sleep" && cost.cpu_ns > 0.0), "{costs:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
