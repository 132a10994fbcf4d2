//! Workers of every class in threads and in the simulation.

use std::sync::Arc;
use std::time::Duration;

use super::control::Writes;
use super::generations::Generations;
use super::launch::{Body, spawn};
use super::*;
use crate::class::Class;
use crate::load::io::clock;
use crate::load::io::files::RWF_DONTCACHE;
use crate::load::volume::{Extent, Region, stamp};
use crate::meter::source::Delta;
use crate::settings::Settings;
use crate::settings::jobs::{Job, jobs};
use crate::settings::{Buffering, Interface, Sync};
use crate::skips::skip;
use crate::units::{MIB, SECOND_NS};

const SET: u64 = 77;

/// Two files of 4 MiB in a folder on a real file system, as data and WAL.
struct Regions {
    _dir: tempfile::TempDir,
    data: Arc<Region>,
    wal: Arc<Region>,
}

fn regions() -> Regions {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let region = |id: u8, name: &str, first: u32| {
        let extent = |i: u32| {
            let path = dir.path().join(format!("{name}-{i}"));
            std::fs::write(&path, vec![1; 4 * MIB as usize]).unwrap();
            Extent { path, identity: None, member: first + i, offset_bytes: MIB }
        };
        Arc::new(Region { id, set: SET, extents: (0..2).map(extent).collect(), extent_bytes: 3 * MIB })
    };
    Regions { data: region(Region::DATA, "data", 0), wal: region(Region::WAL, "wal", 2), _dir: dir }
}

fn threaded(regions: &Regions) -> ThreadedWorkers {
    ThreadedWorkers::new(
        regions.data.clone(),
        regions.wal.clone(),
        4,
        Arc::new(Writes::new(0, Arc::default())),
    )
}

/// Runs a class until it has done that many I/Os, drains it and returns all its counts.
fn run(workers: &mut dyn Workers, job: &Job, ios: u64) -> Delta {
    let mut sources = workers.start(job, &[]).unwrap();
    let mut delta = Delta::new(4);
    let deadline = clock::now_ns() + 20 * SECOND_NS;
    while delta.ios < ios && clock::now_ns() < deadline {
        std::thread::sleep(Duration::from_millis(1));
        for source in &mut sources {
            source.collect(&mut delta);
        }
    }
    workers.stop(job.class);
    while matches!(workers.activity(job.class), Activity::Running | Activity::Draining) {
        std::thread::yield_now();
    }
    sources.iter_mut().for_each(|source| assert!(!source.collect(&mut delta), "the worker has ended"));
    delta
}

/// Pages of 16 KiB of a region that carry stamps.
fn stamped_pages(region: &Region) -> u64 {
    stamped_sectors(region) / 32
}

/// Sectors of a region that carry the stamp of their location.
fn stamped_sectors(region: &Region) -> u64 {
    let mut stamped = 0;
    for (index, extent) in region.extents.iter().enumerate() {
        let bytes = std::fs::read(&extent.path).unwrap();
        for at in (extent.offset_bytes..extent.offset_bytes + region.extent_bytes).step_by(512) {
            let sector = &bytes[at as usize..at as usize + 512];
            if sector.iter().any(|byte| *byte != 1) {
                stamp::check(sector, SET, region.id, index as u32, at).expect("what is written is whole");
                stamped += 1;
            }
        }
    }
    stamped
}

/// Whether this host can run the case; if not, adds it to the list of skips.
fn is_supported(test: &str, regions: &Regions, interface: Interface, buffering: Buffering) -> bool {
    let file = std::fs::File::open(&regions.data.extents[0].path).unwrap();
    let flags = rustix::io::ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
    let uncached =
        rustix::io::preadv2(&file, &mut [std::io::IoSliceMut::new(&mut [0; 512])], 0, flags).is_ok();
    let ring = interface != Interface::IoUring || io_uring::IoUring::new(1).is_ok();
    let supported = ring && (buffering != Buffering::Uncached || uncached);
    if !supported {
        skip(test, &format!("no {interface:?} {buffering:?} here"));
    }
    supported
}

#[test]
fn every_interface_moves_every_class_through_every_cache() {
    for interface in [Interface::Sync, Interface::Libaio, Interface::IoUring] {
        for buffering in [Buffering::Cached, Buffering::Direct, Buffering::Uncached] {
            let regions = regions();
            let test = "every_interface_moves_every_class_through_every_cache";
            if !is_supported(test, &regions, interface, buffering) {
                continue;
            }
            let mut settings = Settings::default();
            settings.io.interface = interface;
            settings.io.buffering = buffering;
            settings.classes[0].depth = 16;
            let mut workers = threaded(&regions);
            for job in jobs(&settings) {
                let delta = run(&mut workers, &job, 40);
                let what = format!("{} on {interface:?} {buffering:?}", job.class);
                assert!(delta.ios >= 40, "{what}: {} I/Os, errnos {:?}", delta.ios, delta.errnos);
                assert_eq!(delta.errnos.iter().sum::<u64>(), 0, "{what}");
                assert_eq!(delta.bytes, delta.ios * 16384, "{what}");
                assert_eq!(delta.service.histogram.len(), delta.ios, "{what}");
                let moved: u64 = delta.members.iter().map(|(read, written)| read + written).sum();
                assert_eq!(moved, delta.bytes, "{what}");
            }
            assert!(stamped_sectors(&regions.data) >= 32 && stamped_sectors(&regions.wal) >= 32);
        }
    }
}

#[test]
fn flushes_are_counted_separately_and_cover_several_writes() {
    for interface in [Interface::Sync, Interface::Libaio, Interface::IoUring] {
        let regions = regions();
        let test = "flushes_are_counted_separately_and_cover_several_writes";
        if !is_supported(test, &regions, interface, Buffering::Cached) {
            continue;
        }
        let mut settings = Settings::default();
        settings.io.interface = interface;
        settings.io.buffering = Buffering::Cached;
        settings.wal.sync_every = 8;
        let wal = Class::Wal.index();
        settings.classes[wal].rate_bytes_per_s = None;
        settings.classes[wal].depth = if interface == Interface::Sync { 1 } else { 4 };
        let delta = run(&mut threaded(&regions), &jobs(&settings)[wal], 64);
        assert_eq!(delta.write.histogram.len(), delta.ios);
        assert_eq!(delta.service.histogram.len(), delta.ios, "every write is committed at the end");
        assert_eq!(delta.flush.histogram.len(), delta.ios.div_ceil(8), "{interface:?}");
    }
}

#[test]
fn writing_stops_at_the_limit() {
    let regions = regions();
    let writes = Arc::new(Writes::new(0, Arc::default()));
    writes.limit(Some(100 * 16384 + 1));
    let mut workers = ThreadedWorkers::new(regions.data.clone(), regions.wal.clone(), 4, writes);
    let mut settings = Settings::default();
    settings.io.interface = Interface::Sync;
    let background = Class::Background.index();
    settings.classes[background].rate_bytes_per_s = None;
    let mut sources = workers.start(&jobs(&settings)[background], &[]).unwrap();
    while workers.activity(Class::Background) != Activity::Exhausted {
        std::thread::yield_now();
    }
    let mut delta = Delta::new(4);
    sources[0].collect(&mut delta);
    assert_eq!(delta.ios, 100);
}

#[test]
fn a_restarted_class_draws_other_pages() {
    let regions = regions();
    let writes = Arc::new(Writes::new(0, Arc::default()));
    let mut workers = ThreadedWorkers::new(regions.data.clone(), regions.wal.clone(), 4, writes.clone());
    let mut settings = Settings::default();
    settings.io.interface = Interface::Sync;
    settings.io.buffering = Buffering::Cached;
    let background = Class::Background.index();
    settings.classes[background].rate_bytes_per_s = None;
    let mut pages = Vec::new();
    for round in 1..=2 {
        writes.limit(Some(round * 20 * 16384));
        workers.start(&jobs(&settings)[background], &[]).unwrap();
        while workers.activity(Class::Background) != Activity::Exhausted {
            std::thread::yield_now();
        }
        pages.push(stamped_pages(&regions.data));
    }
    // 20 of 384 pages each time: about one repeats by chance.
    assert!(pages[1] > pages[0] + 10, "{pages:?}");
}

#[test]
fn a_rate_is_held_and_response_runs_from_the_intended_start() {
    let regions = regions();
    let mut settings = Settings::default();
    settings.io.interface = Interface::Null;
    let point = Class::Point.index();
    settings.classes[point].rate_bytes_per_s = Some(100_000_000);
    let job = &jobs(&settings)[point];
    let before_ns = clock::now_ns();
    let delta = run(&mut threaded(&regions), job, 1000);
    let most = (clock::now_ns() - before_ns) * 100_000_000 / SECOND_NS / 16384 + 1;
    assert!(delta.ios <= most, "{} of {most}", delta.ios);
    assert_eq!(delta.intended, delta.ios + delta.missed);
    assert_eq!(delta.response.histogram.len(), delta.intended);
    assert!(delta.response.histogram.mean() >= delta.service.histogram.mean());
}

/// What each class counted in a simulated run of one second.
fn simulate(seed: u64) -> Vec<(u64, u64, u64, Vec<u64>)> {
    let regions = regions();
    let mut settings = Settings::default();
    settings.io.interface = Interface::Sim;
    settings.sim.seed = seed;
    settings.wal.sync = Sync::Fdatasync;
    let writes = Arc::new(Writes::new(0, Arc::default()));
    let mut workers =
        SimulatedWorkers::new(regions.data.clone(), regions.wal.clone(), 4, writes, &settings.sim);
    let mut sources: Vec<_> =
        jobs(&settings).iter().flat_map(|job| workers.start(job, &[]).unwrap()).collect();
    workers.run_until(SECOND_NS);
    assert_eq!(workers.now_ns(), SECOND_NS);
    let figures = sources.iter_mut().map(|source| {
        let mut delta = Delta::new(4);
        source.collect(&mut delta);
        let percentiles = [0.5, 0.99].map(|q| delta.service.histogram.value_at_quantile(q));
        (delta.ios, delta.missed, delta.service.max_ns, percentiles.to_vec())
    });
    figures.collect()
}

#[test]
fn intents_before_a_class_stopped_are_begun_or_missed() {
    let regions = regions();
    let mut settings = Settings::default();
    settings.io.interface = Interface::Sim;
    let point = Class::Point.index();
    settings.classes[point].rate_bytes_per_s = Some(16384 * 100_000); // far more than the device can do
    let writes = Arc::new(Writes::new(0, Arc::default()));
    let mut workers =
        SimulatedWorkers::new(regions.data.clone(), regions.wal.clone(), 4, writes, &settings.sim);
    let mut sources = workers.start(&jobs(&settings)[point], &[]).unwrap();
    workers.run_until(SECOND_NS / 2);
    workers.stop(Class::Point);
    workers.run_until(SECOND_NS);
    let mut delta = Delta::new(4);
    assert!(!sources[0].collect(&mut delta), "the worker has ended");
    assert_eq!(delta.intended, delta.ios + delta.missed);
    assert!(delta.intended.abs_diff(50_000) <= 1, "half a second's: {}", delta.intended);
    assert!(delta.ios > 0 && delta.missed > 0);
    assert_eq!(delta.response.histogram.len(), delta.intended, "those missed with what they waited");
}

/// A simulated second of a scan at 100,000 I/Os per second: I/Os, and mean response less mean service.
fn paced(pace: Duration) -> (u64, f64) {
    let regions = regions();
    let mut settings = Settings::default();
    (settings.io.interface, settings.run.pace) = (Interface::Sim, pace);
    settings.classes[Class::Scan.index()].rate_bytes_per_s = Some(16384 * 100_000);
    let writes = Arc::new(Writes::new(0, Arc::default()));
    let mut workers =
        SimulatedWorkers::new(regions.data.clone(), regions.wal.clone(), 4, writes, &settings.sim);
    let mut sources = workers.start(&jobs(&settings)[Class::Scan.index()], &[]).unwrap();
    workers.run_until(SECOND_NS);
    let mut delta = Delta::new(4);
    sources[0].collect(&mut delta);
    assert_eq!(delta.missed, 0);
    (delta.intended, delta.response.histogram.mean() - delta.service.histogram.mean())
}

#[test]
fn starts_made_together_hold_the_rate_and_count_from_when_they_were_intended() {
    let [exact, together] = [0, 50].map(|us| paced(Duration::from_micros(us)));
    for (intended, _) in [exact, together] {
        assert!(intended.abs_diff(100_000) <= 100, "{intended}");
    }
    assert!(exact.1 < 2_000.0, "{exact:?}");
    assert!((2_000.0..50_000.0).contains(&(together.1 - exact.1)), "{exact:?}, {together:?}");
}

#[test]
fn a_simulation_repeats_exactly_and_its_seed_matters() {
    let first = simulate(1);
    assert_eq!(first, simulate(1));
    assert_ne!(first, simulate(2));
    assert!(first.iter().all(|(ios, ..)| *ios > 100), "{first:?}");
}

#[test]
fn a_worker_that_panics_ends_its_class_with_what_it_said() {
    let regions = regions();
    let writes = Arc::new(Writes::new(0, Arc::default()));
    let mut generations = Generations::new(regions.data.clone(), regions.wal.clone(), 4, writes);
    let job = Job { workers: 3, ..jobs(&Settings::default())[0].clone() };
    let body: Body = Arc::new(|orders, start| {
        start.wait();
        assert!(orders.number != 1, "page {} is odd", 7);
        while !orders.control.is_stopping() {
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    });
    generations.start(&job, |orders| spawn(&[], orders, 256 << 10, &body)).unwrap();
    let ended =
        std::iter::repeat_with(|| generations.activity(job.class)).find(|activity| !activity.is_busy());
    assert_eq!(ended, Some(Activity::Panicked("page 7 is odd".into())));
    assert_eq!(generations.activity(job.class), Activity::Idle, "it is reported once");
}
