//! The CPU cost of the key-value workers, compared with a bare loop of the same calls on the same data.
//!
//! A small data set is loaded into a temporary folder. For each class, the worker takes turns with a loop
//! that calls `RocksDB` with the same keys and values and does nothing else. The results are the CPU time of
//! the calling thread per operation for both, as medians over the rounds, and the median of the rounds'
//! ratios.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

use crate::class::Class;
use crate::error::{Error, Result, describe_errno};
use crate::load::io::clock;
use crate::load::kv::keys::{Key, mix};
use crate::load::kv::values::Values;
use crate::load::kv::{Handle, Store};
use crate::load::volume::{Extent, Region};
use crate::load::workers::control::Writes;
use crate::load::workers::{Activity, KvWorkers, Workers};
use crate::meter::processors::tasks::{Clocks, KernelClocks};
use crate::meter::source::{Delta, Source};
use crate::settings::jobs::{self, Job};
use crate::settings::{LoadEngine, Settings, Sync};
use crate::threads;

/// The cost of calling `RocksDB` for a class.
#[derive(Debug, Clone, Serialize)]
pub struct PairsCost {
    /// The class's name.
    pub class: &'static str,
    /// CPU time of the worker's thread, nanoseconds per operation: the median of the rounds.
    pub worker_ns: f64,
    /// The same for a bare loop's thread.
    pub bare_ns: f64,
    /// The median of the rounds' ratios of worker to bare loop.
    pub ratio: f64,
    /// The smallest and the largest ratio.
    pub range: (f64, f64),
}

const PAIRS: u64 = 100_000;
const VALUE_BYTES: u64 = 400;

/// Measures every class for `rounds` rounds of twice `time` each, on a temporary data set in `dir`.
///
/// # Errors
/// Input in a build without `RocksDB`.
pub fn calibrate(dir: &Path, time: Duration, rounds: usize) -> Result<Vec<PairsCost>> {
    let folder = tempfile::Builder::new().prefix("calibrate-pairs-").tempdir_in(dir);
    let folder = folder.map_err(|error| Error::os("cannot make a folder in", dir, error))?;
    let mut settings = Settings::default();
    settings.kv.engine = LoadEngine::Rocksdb;
    (settings.kv.pairs.count, settings.kv.pairs.value_bytes) = (Some(PAIRS), VALUE_BYTES);
    (settings.kv.rocksdb.direct_reads, settings.kv.rocksdb.direct_flush) = (false, false);
    for class in &mut settings.classes {
        (class.rate_bytes_per_s, class.depth) = (None, 1);
    }
    // Syncing the log would measure the drive, and differs by only one call.
    settings.wal.sync = Sync::None;
    let (store, _) = Store::open(folder.path(), &settings.kv, true)?;
    let store = Arc::new(store);
    let measured = store.load(&mut |_| {}, &false.into()).and_then(|_| {
        Class::ALL.into_iter().map(|class| one(&store, &settings, class, time, rounds)).collect()
    });
    drop(store);
    let removed = folder.path().to_owned();
    folder.close().map_err(|error| Error::os("cannot remove", &removed, error))?;
    measured
}

fn one(
    store: &Arc<Store>,
    settings: &Settings,
    class: Class,
    time: Duration,
    rounds: usize,
) -> Result<PairsCost> {
    let mut job = jobs::jobs(settings)[class.index()].clone();
    let mut costs = Vec::new();
    for round in 0..=rounds {
        // A new seed per round: neither may draw an earlier round's keys, which are in caches.
        job.seed = round as u64;
        let calls = || bare(store, &job, time, round as u64);
        // They take turns to go first, because flushing what one has left slows down the next.
        let both = if round.is_multiple_of(2) {
            (worker(store, &job, time)?, calls()?)
        } else {
            let bare_ns = calls()?;
            (worker(store, &job, time)?, bare_ns)
        };
        // The first round warms up memory for both.
        costs.extend((round > 0).then_some(both));
    }
    let median = |mut of: Vec<f64>| {
        of.sort_by(f64::total_cmp);
        of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let ratios: Vec<_> = costs.iter().map(|(worker, bare)| worker / bare).collect();
    let range = ratios.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(*x), high.max(*x)));
    Ok(PairsCost {
        class: class.name(),
        worker_ns: median(costs.iter().map(|(worker, _)| *worker).collect()),
        bare_ns: median(costs.iter().map(|(_, bare)| *bare).collect()),
        ratio: median(ratios),
        range,
    })
}

/// CPU time of the worker's thread per operation.
fn worker(store: &Arc<Store>, job: &Job, time: Duration) -> Result<f64> {
    let extents = vec![Extent { path: store.dir().to_owned(), identity: None, member: 0, offset_bytes: 0 }];
    let region = Region { id: Region::DATA, set: store.set(), extents, extent_bytes: store.data().bytes() };
    let writes = Arc::new(Writes::new(store.sequence_base(), Arc::new(AtomicU64::new(0))));
    let mut workers = KvWorkers::new(store.clone(), Arc::new(region), writes);
    let mut sources = workers.start(job, &[])?;
    let look = |source: &mut Box<dyn Source>| {
        let mut delta = Delta::new(1);
        source.counts(&mut delta);
        (delta.ios, source.thread_id().and_then(|thread| KernelClocks.thread_ns(thread)))
    };
    std::thread::sleep(time / 10);
    let (_, began_ns) = look(&mut sources[0]);
    std::thread::sleep(time);
    let (operations, ended_ns) = look(&mut sources[0]);
    workers.stop(job.class);
    while matches!(workers.activity(job.class), Activity::Running | Activity::Draining) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let cpu_ns = ended_ns.zip(began_ns).map(|(ended_ns, began_ns)| ended_ns - began_ns);
    match cpu_ns.filter(|_| operations > 0) {
        Some(cpu_ns) => Ok(cpu_ns as f64 / operations as f64),
        None => Err(Error::failed(format!("the {} worker on RocksDB has done nothing", job.class.name()))
            .hint("check that the file system has room; nothing was left there")),
    }
}

/// The same for a loop that does nothing else.
fn bare(store: &Arc<Store>, job: &Job, time: Duration, round: u64) -> Result<f64> {
    let (store, class) = (store.clone(), job.class);
    let pairs = job.pairs.map_or(1, |pairs| pairs.pairs);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let handle = store.handle()?;
    let calling = threads::start("measure", move || {
        let count = |seed, until: &dyn Fn() -> bool| calls(&handle, &store, (class, pairs, seed), until);
        let warm_ns = clock::now_ns() + time.as_nanos() as u64 / 10;
        count(2 * round, &|| clock::now_ns() > warm_ns)?;
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let began_ns = KernelClocks.thread_ns(thread);
        let calls = count(2 * round + 1, &|| stopped.load(Ordering::Relaxed))?;
        let cpu_ns =
            KernelClocks.thread_ns(thread).zip(began_ns).map(|(ended_ns, began_ns)| ended_ns - began_ns);
        cpu_ns
            .map(|ns| ns as f64 / calls.max(1) as f64)
            .ok_or_else(|| Error::failed("cannot read a thread's CPU clock"))
    })?;
    std::thread::sleep(time + time / 10);
    stop.store(true, Ordering::Relaxed);
    calling.join().unwrap_or_else(|_| Err(Error::failed("the bare loop ended in a panic")))
}

/// Calls until asked to stop, which it checks now and then; returns the number of calls. Another seed draws
/// other keys, because those read before are in caches.
fn calls(
    handle: &Handle,
    store: &Store,
    (class, pairs, seed): (Class, u64, u64),
    until: &dyn Fn() -> bool,
) -> Result<u64> {
    let data = store.data();
    let (mut key, mut values) = (Key::new(data.key_bytes), Values::new(store.set(), data.value_bytes));
    let mut scanner = handle.scanner();
    let (mut calls, mut sequence) = (0_u64, store.sequence_base());
    while !calls.is_multiple_of(64) || !until() {
        let number = mix(calls ^ seed << 40) % data.pairs;
        sequence += 1;
        let called = match class {
            Class::Scan => scanner.range(key.of(number), pairs).map(|_| ()),
            Class::Point => handle.get(key.of(number)).map(|_| ()),
            Class::Wal => {
                let number = data.pairs + calls % data.logged();
                handle.put(key.of(number), values.of(number, sequence), false)
            }
            Class::Background => handle.put(key.of(number), values.of(number, sequence), false),
        };
        called.map_err(|errno| {
            let what = format!("a RocksDB call for {} failed: {}", class.name(), describe_errno(errno));
            Error::failed(what).hint("check that the file system has room; nothing was left there")
        })?;
        calls += 1;
    }
    Ok(calls)
}
