//! The generator's own cost per I/O on this host, by interface.
//!
//! Each interface runs for a short while on a small file in the page cache, so what is measured is the CPU
//! time of the path, not storage. `null` shows the generator alone: pacing, offsets, time stamps, histograms.

pub mod pairs;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::class::Class;
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::load::io::clock;
use crate::load::volume::{Extent, Region};
use crate::load::workers::control::Writes;
use crate::load::workers::{Activity, ThreadedWorkers, Workers};
use crate::meter::source::Delta;
use crate::settings::interface::Interface;
use crate::settings::jobs::{self, Job};
use crate::settings::named::Named;
use crate::settings::{Buffering, Settings};
use crate::units::MIB;

const PAGE_BYTES: u64 = 4096;
const FILE_BYTES: u64 = 64 * MIB;
/// The longest tick of the distributions' kernels: 250 Hz.
const TICK_NS: f64 = 4e6;
/// A share of the time is shown from this many ticks on.
const TICKS_MIN: f64 = 5.0;

/// The cost of one kind of I/O through one interface.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// The interface's name.
    pub interface: &'static str,
    /// How it is driven, in words.
    pub how: &'static str,
    /// CPU time of this process, nanoseconds per I/O.
    pub cpu_ns: f64,
    /// The part in user mode. Most kernels only check at each tick of their clock where a thread is, and
    /// divide its time by that; none if there are too few ticks.
    pub user_ns: Option<f64>,
    /// The part in the kernel, likewise.
    pub system_ns: Option<f64>,
    /// I/Os per second.
    pub iops: f64,
}

/// What is measured: closed-loop scan, paced scan, point.
const SHAPES: [(&str, Class, Option<u64>); 3] = [
    ("4 KiB reads, depth 128, batch 32", Class::Scan, None),
    // A rate that a worker holds easily, so that the cost of pacing shows, not its limit.
    ("the same at 100,000 per second", Class::Scan, Some(100_000 * PAGE_BYTES)),
    ("4 KiB reads, depth 1", Class::Point, None),
];

/// Measures every interface that this host has, each for `time`, on a temporary file in `dir`.
pub fn calibrate(dir: &Path, time: Duration, facts: &Facts) -> Result<Vec<Cost>> {
    let path = dir.join(format!("calibrate-{}", std::process::id()));
    let region = make_file(&path)?;
    let measured = measure_all(&region, time, facts);
    std::fs::remove_file(&path).map_err(|e| Error::os("cannot remove", &path, e))?;
    measured
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
        for (how, class, rate_bytes_per_s) in SHAPES {
            let job = plan_of(interface, class, rate_bytes_per_s);
            costs.push(Cost { interface: interface.name(), how, ..measure(region, &job, time)? });
        }
    }
    Ok(costs)
}

fn plan_of(interface: Interface, class: Class, rate_bytes_per_s: Option<u64>) -> Job {
    let mut settings = Settings::default();
    settings.io.interface = interface;
    settings.io.buffering = Buffering::Cached;
    settings.io.page_size_bytes = PAGE_BYTES;
    settings.classes[class.index()].rate_bytes_per_s = rate_bytes_per_s;
    let [scan, point, ..] = jobs::jobs(&settings);
    if class == Class::Scan { scan } else { point }
}

fn measure(region: &Arc<Region>, job: &Job, time: Duration) -> Result<Cost> {
    let mut workers =
        ThreadedWorkers::new(region.clone(), region.clone(), 1, Arc::new(Writes::new(0, Arc::default())));
    let mut sources = workers.start(job, &[])?;
    // Start-up (rings, first touches) is not part of the cost of an I/O.
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
    let ios = delta.ios.max(1) as f64;
    let (user_ns, system_ns) = (user - cpu.0, system - cpu.1);
    Ok(Cost {
        interface: "",
        how: "",
        cpu_ns: (user_ns + system_ns) / ios,
        user_ns: resolved(user_ns).map(|ns| ns / ios),
        system_ns: resolved(system_ns).map(|ns| ns / ios),
        iops: delta.ios as f64 / elapsed_s,
    })
}

/// A part of the CPU time, if it is long enough for the kernel's clock.
fn resolved(ns: f64) -> Option<f64> {
    (ns >= TICKS_MIN * TICK_NS).then_some(ns)
}

/// This process's CPU time so far, user and system, in nanoseconds.
fn cpu_times_ns() -> (f64, f64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the structure, for which zeroes are a valid value.
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
        let facts = Facts::read(Path::new("/"));
        // On processors that others keep busy, a worker may not run at all in so short a time.
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
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
