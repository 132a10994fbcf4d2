//! The job of each class under given settings.

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::settings::{
    Arrival, Buffering, Completion, Cpus, Interface, Io, Offsets, Placement, Prio, RingSetup, Rocksdb,
    Settings, Submission, Sync,
};

/// How a class runs. Equal jobs run alike: a class restarts exactly when its job changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The class whose job it is.
    pub class: Class,
    /// Whether it runs.
    pub enabled: bool,
    /// How its I/O enters the kernel, or bypasses it: the class's own choice, or that of `[io]`.
    pub interface: Interface,
    /// Which cache its I/O goes through, resolved likewise.
    pub buffering: Buffering,
    /// Register buffers with the ring.
    pub registered_buffers: bool,
    /// Register files with the ring.
    pub registered_files: bool,
    /// When the ring's completions are processed in the worker's thread.
    pub ring_setup: RingSetup,
    /// The priority of its I/Os.
    pub prio: Prio,
    /// How the ring is polled, from both sides.
    pub polling: Polling,
    /// Bytes of a page; for pairs, of an operation's keys and values.
    pub page_bytes: u64,
    /// Outstanding I/Os of each worker.
    pub depth: u64,
    /// I/Os submitted together.
    pub batch: u64,
    /// Threads; with `sync` one for each outstanding I/O.
    pub workers: u64,
    /// The CPUs that they run on.
    pub cpus: Cpus,
    /// Bytes per second of the class.
    pub rate_bytes_per_s: Option<u64>,
    /// Spacing of intended starts.
    pub arrival: Arrival,
    /// Starts that follow each other within this time are submitted together; 0 without a rate.
    pub pace_ns: u64,
    /// How offsets are drawn; the WAL's are sequential.
    pub offsets: Pattern,
    /// How writes become durable; [`Sync::None`] for the other classes.
    pub sync: Sync,
    /// One flush for this many writes.
    pub sync_every: u64,
    /// I/Os with at least this service time are logged as slow; 0 logs none.
    pub slow_ns: u64,
    /// The seed of offsets and arrivals.
    pub seed: u64,
    /// What the class does to pairs; none if it moves pages.
    pub pairs: Option<KvJob>,
}

/// How a class reads and writes pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvJob {
    /// Pairs per operation.
    pub pairs: u64,
    /// Whether each range read continues where the last one ended.
    pub whole: bool,
    /// Percentage of gets for missing keys.
    pub miss_percent: u64,
    /// Percentage of gets among the operations.
    pub read_percent: u64,
    /// The options that the database must be opened with: if they change, all classes drain.
    pub opened: OpenedWith,
}

/// The options that are fixed while a database is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedWith {
    /// Whether reads bypass the page cache.
    pub direct_reads: bool,
    /// Whether flushes and compactions bypass the page cache.
    pub direct_flush: bool,
}

impl OpenedWith {
    /// Taken from these options.
    pub fn of(rocksdb: &Rocksdb) -> Self {
        Self { direct_reads: rocksdb.direct_reads, direct_flush: rocksdb.direct_flush }
    }
}

/// What is polled, in place of system calls and interrupts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polling {
    /// Whether the device's completion queue is polled.
    pub iopoll: bool,
    /// A kernel thread polls the submission queue: it sleeps after this many milliseconds without work, and
    /// runs on this CPU if one is named.
    pub sqpoll: Option<(u32, Option<u32>)>,
    /// Sleep after an empty poll; 0 means none.
    pub sleep_ns: u64,
}

/// How offsets are drawn, with its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Pattern {
    /// One page after the other, wrapping.
    Sequential,
    /// Every page equally often.
    Uniform,
    /// Zipf with this exponent, hot pages scattered.
    Zipf(f64),
    /// This share jumps, the rest is sequential.
    Runs(f64),
}

/// The jobs of all classes.
pub fn jobs(settings: &Settings) -> [Job; 4] {
    Class::ALL.map(|class| job_of(settings, class))
}

/// What a class does to pairs.
fn pairs_of(settings: &Settings, class: Class) -> KvJob {
    let kv = &settings.kv;
    let of = |is: Class, value: u64, other: u64| if class == is { value } else { other };
    KvJob {
        pairs: of(Class::Scan, kv.scan_pairs, 1),
        whole: class == Class::Scan && kv.scan_whole,
        miss_percent: of(Class::Point, kv.miss_percent, 0),
        read_percent: of(Class::Background, kv.read_percent, of(Class::Point, 100, 0)),
        opened: OpenedWith::of(&kv.rocksdb),
    }
}

fn job_of(settings: &Settings, class: Class) -> Job {
    let own = &settings.classes[class.index()];
    let interface = settings.interface_of(class);
    let wal = class == Class::Wal;
    let rings = interface.has_rings();
    let pairs = settings.is_keyed().then(|| pairs_of(settings, class));
    // For sync, for example, the 128/1/1/1 threads of the paper's baseline.
    let per_io = interface.capabilities().thread_per_io;
    Job {
        class,
        enabled: own.enabled,
        interface,
        // Outside the kernel there is no page cache.
        buffering: if interface.leaves_kernel() { Buffering::Direct } else { settings.buffering_of(class) },
        registered_buffers: rings && settings.io.registered_buffers,
        registered_files: rings && settings.io.registered_files,
        ring_setup: if rings { settings.io.setup } else { RingSetup::default() },
        prio: settings.prio_of(class),
        polling: polling(&settings.io, interface),
        page_bytes: match &pairs {
            Some(pairs) => pairs.pairs * (settings.kv.pairs.key_bytes + settings.kv.pairs.value_bytes),
            None => settings.page_size_bytes_of(class),
        },
        depth: if per_io { 1 } else { own.depth },
        batch: if per_io { 1 } else { own.batch.min(own.depth) },
        workers: if per_io { own.threads * own.depth } else { own.threads },
        cpus: own.cpus.clone(),
        rate_bytes_per_s: own.rate_bytes_per_s,
        arrival: if own.rate_bytes_per_s.is_some() { own.arrival } else { Arrival::Constant },
        pace_ns: own.rate_bytes_per_s.map_or(0, |_| settings.run.pace.as_nanos() as u64),
        offsets: match (wal || logged(settings, class), own.offsets) {
            (true, _) => Pattern::Sequential,
            (_, Offsets::Uniform) => Pattern::Uniform,
            (_, Offsets::Zipf) => Pattern::Zipf(own.zipf_theta),
            (_, Offsets::Runs) => Pattern::Runs(own.jump_share),
        },
        sync: if wal { settings.wal.sync } else { Sync::None },
        sync_every: if wal && settings.wal.sync == Sync::Fdatasync { settings.wal.sync_every } else { 1 },
        slow_ns: if pairs.is_some() { 0 } else { settings.run.slow_log.as_nanos() as u64 },
        seed: settings.run.seed,
        pairs,
    }
}

fn polling(io: &Io, interface: Interface) -> Polling {
    let sleep_ns = io.poll_sleep.as_nanos() as u64;
    if interface.capabilities().polls {
        return Polling { sleep_ns, ..Polling::default() };
    }
    if !interface.has_rings() {
        return Polling::default();
    }
    let iopoll = io.completion == Completion::Iopoll;
    let cpu = match &io.sqpoll_cpu {
        Cpus::List(list) => list.first().copied(),
        Cpus::Any | Cpus::Node(_) => None,
    };
    let sqpoll = (io.submission == Submission::Sqpoll).then_some((io.sqpoll_idle.as_millis() as u32, cpu));
    // The kernel's thread also polls for completions, and does not sleep in between.
    let worker_polls = iopoll && sqpoll.is_none();
    Polling { iopoll, sqpoll, sleep_ns: if worker_polls { sleep_ns } else { 0 } }
}

/// Whether the class writes sequentially instead of in place.
fn logged(settings: &Settings, class: Class) -> bool {
    class == Class::Background && settings.placement == Placement::Log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_baseline_has_one_thread_per_outstanding_io() {
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sync;
        let workers = jobs(&settings).map(|job| (job.workers, job.depth, job.batch));
        assert_eq!(workers, [(128, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1)]);
    }

    #[test]
    fn polling_workers_sleep_between_polls_but_the_kernels_thread_does_not() {
        let mut settings = Settings::default();
        settings.io.poll_sleep = std::time::Duration::from_micros(50);
        let polling = |settings: &Settings| jobs(settings)[0].polling.clone();
        assert_eq!(polling(&settings), Polling::default(), "completions come by interrupt");
        settings.io.completion = Completion::Iopoll;
        assert_eq!(polling(&settings), Polling { iopoll: true, sqpoll: None, sleep_ns: 50_000 });
        settings.io.submission = Submission::Sqpoll;
        settings.io.sqpoll_cpu = Cpus::List(vec![3]);
        let both = Polling { iopoll: true, sqpoll: Some((1000, Some(3))), sleep_ns: 0 };
        assert_eq!(polling(&settings), both);
        settings.io.interface = Interface::Vfio;
        assert_eq!(polling(&settings), Polling { sleep_ns: 50_000, ..Polling::default() });
        settings.io.interface = Interface::Libaio;
        assert_eq!(polling(&settings), Polling::default());
    }
}
