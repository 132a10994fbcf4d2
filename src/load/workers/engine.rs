//! The engine: starts and stops the workers of each class, in threads or in the simulation.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::control::{Control, Shared, Writes};
use super::kv;
use super::launch::{WorkerThread, launcher};
use super::remote_workers::RemoteWorkers;
use super::simulated::Simulation;
use super::worker::Orders;
use crate::class::Class;
use crate::error::{Error, Result, describe_errno};
use crate::load::io::clock;
use crate::load::kv::Store;
use crate::load::volume::Region;
use crate::meter::cell::WorkerCell;
use crate::meter::source::{Source, WorkerSource};
use crate::settings::Sim;
use crate::settings::jobs::Job;
use crate::settings::named::Named;

/// What a class's workers are doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// There is none.
    Idle,
    /// I/O flows.
    Running,
    /// Told to stop, and I/O is still outstanding.
    Draining,
    /// Ended by too many errors: the errno.
    Tripped(i32),
    /// Ended because nothing more may be written.
    Exhausted,
    /// Ended because the interface itself failed: why.
    Broken(String),
    /// Ended with the process that they were in: why it did.
    Gone(String),
}

/// Starts and stops workers.
pub struct Workers {
    data: Arc<Region>,
    wal: Arc<Region>,
    members: usize,
    shared: [Arc<Shared>; 4],
    writes: Arc<Writes>,
    generations: [Option<Generation>; 4],
    /// How often each class was started: it goes on with other pages, not the same from the start.
    starts: [u64; 4],
    simulation: Option<Simulation>,
    /// The data set, where the classes read and write pairs.
    pairs: Option<Arc<Store>>,
    /// Where the workers are, if not in this process.
    remote: Option<Box<dyn RemoteWorkers>>,
}

/// The workers of a class under one plan.
struct Generation {
    control: Arc<Control>,
    threads: Vec<WorkerThread>,
}

impl Workers {
    /// An engine over these regions, in threads.
    pub fn threaded(data: Arc<Region>, wal: Arc<Region>, members: usize, writes: Arc<Writes>) -> Self {
        let shared = std::array::from_fn(|_| Arc::default());
        let generations = Default::default();
        Self {
            data,
            wal,
            members,
            shared,
            writes,
            generations,
            starts: [0; 4],
            simulation: None,
            pairs: None,
            remote: None,
        }
    }

    /// An engine on pairs: the region stands for them in the meters.
    pub fn of_pairs(store: Arc<Store>, data: Arc<Region>, writes: Arc<Writes>) -> Self {
        let mut engine = Self::threaded(data.clone(), data, 1, writes);
        engine.pairs = Some(store);
        engine
    }

    /// The data set, where the classes read and write pairs.
    pub fn pairs(&self) -> Option<&Arc<Store>> {
        self.pairs.as_ref()
    }

    /// An engine with its workers in another process.
    pub fn remote(
        data: Arc<Region>,
        wal: Arc<Region>,
        members: usize,
        writes: Arc<Writes>,
        remote: Box<dyn RemoteWorkers>,
    ) -> Self {
        let mut engine = Self::threaded(data, wal, members, writes);
        engine.remote = Some(remote);
        engine
    }

    /// An engine over simulated devices.
    pub fn simulated(
        data: Arc<Region>,
        wal: Arc<Region>,
        members: usize,
        writes: Arc<Writes>,
        sim: &Sim,
    ) -> Self {
        let mut engine = Self::threaded(data, wal, members, writes);
        engine.simulation = Some(Simulation::new(members, sim));
        engine
    }

    /// The run's clock: the virtual one of a simulation, else the monotonic one.
    pub fn now_ns(&self) -> u64 {
        self.simulation.as_ref().map_or_else(clock::now_ns, Simulation::now_ns)
    }

    /// Whether time passes only in [`Self::run_until`].
    pub fn is_simulated(&self) -> bool {
        self.simulation.is_some()
    }

    /// Lets simulated time pass until then; of real time nothing is to be done.
    pub fn run_until(&mut self, ns: u64) {
        if let Some(simulation) = &mut self.simulation {
            simulation.run_until(ns);
        }
    }

    /// Starts a class on these CPUs (none is any), which must be idle. Returns what its workers count.
    pub fn start(&mut self, plan: &Job, cpus: &[u32]) -> Result<Vec<Box<dyn Source>>> {
        if let Some(remote) = &mut self.remote {
            return Ok(vec![remote.start(plan, cpus)?]);
        }
        let at = plan.class.index();
        let control = Arc::new(Control::default());
        let orders: Vec<_> = (0..plan.workers).map(|number| self.orders(plan, number, &control)).collect();
        self.starts[at] += 1;
        let cells: Vec<_> = orders.iter().map(|orders| orders.cell.clone()).collect();
        orders.iter().for_each(|_| control.enter());
        let threads = match (&mut self.simulation, plan.interface) {
            _ if self.pairs.is_some() => match &self.pairs {
                Some(store) => kv::launch(cpus, orders, store)?,
                None => Vec::new(),
            },
            (Some(simulation), interface) if interface.is_simulated() => {
                simulation.start(orders);
                Vec::new()
            }
            (_, interface) => {
                let launcher = launcher(interface).ok_or_else(|| {
                    Error::input(format!("{} can't run on {} here", plan.class, interface.name()))
                })?;
                launcher(cpus, orders)?
            }
        };
        self.generations[at] = Some(Generation { control, threads });
        Ok(cells.into_iter().map(|cell| Box::new(WorkerSource::new(cell)) as Box<dyn Source>).collect())
    }

    fn orders(&self, plan: &Job, number: u64, control: &Arc<Control>) -> Orders {
        let region = if plan.class == Class::Wal { &self.wal } else { &self.data };
        Orders {
            plan: Arc::new(plan.clone()),
            number,
            generation: self.starts[plan.class.index()],
            region: region.clone(),
            control: control.clone(),
            shared: self.shared[plan.class.index()].clone(),
            writes: self.writes.clone(),
            cell: Arc::new(WorkerCell::new(plan.class, plan.rate_bytes_per_s.is_some(), self.members)),
        }
    }

    /// Tells a class's workers to drain and end.
    pub fn stop(&mut self, class: Class) {
        if let Some(remote) = &mut self.remote {
            return remote.stop(class);
        }
        if let Some(generation) = &self.generations[class.index()] {
            generation.control.stop(self.now_ns());
        }
    }

    /// What a class's workers are doing. Workers that have ended are cleared away.
    pub fn activity(&mut self, class: Class) -> Activity {
        if let Some(remote) = &mut self.remote {
            return remote.activity(class);
        }
        let at = class.index();
        let Some(generation) = &self.generations[at] else { return Activity::Idle };
        let control = generation.control.clone();
        if control.running() > 0 {
            return if control.is_stopping() { Activity::Draining } else { Activity::Running };
        }
        let threads = self.generations[at].take().map(|generation| generation.threads).unwrap_or_default();
        // A worker that panicked has told so on its own; the run goes on without it.
        let reasons: Vec<String> = threads.into_iter().filter_map(|thread| thread.join().ok()?).collect();
        match (control.tripped(), control.broken(), control.is_exhausted()) {
            (Some(errno), ..) => Activity::Tripped(errno),
            (_, Some(errno), _) => {
                Activity::Broken(reasons.into_iter().next().unwrap_or_else(|| describe_errno(errno)))
            }
            (.., true) => Activity::Exhausted,
            _ => Activity::Idle,
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        Class::ALL.into_iter().for_each(|class| self.stop(class));
        for generation in self.generations.iter_mut().filter_map(Option::take) {
            generation.threads.into_iter().for_each(|thread| drop(thread.join()));
        }
        if let Some(remote) = &mut self.remote {
            remote.end();
        }
    }
}

/// Marks a worker of the simulation as ended.
pub(super) fn end(cell: &WorkerCell, control: &Control) {
    cell.ended.store(true, Ordering::Release);
    control.leave();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::io::files::RWF_DONTCACHE;
    use crate::load::volume::{Extent, stamp};
    use crate::meter::source::Delta;
    use crate::settings::Settings;
    use crate::settings::interface::Interface;
    use crate::settings::jobs::jobs;
    use crate::settings::{Buffering, Sync};
    use crate::units::{MIB, SECOND_NS};

    const SET: u64 = 77;

    /// Two files of 4 MiB in a folder on a real file system, as data and WAL.
    struct Ground {
        _dir: tempfile::TempDir,
        data: Arc<Region>,
        wal: Arc<Region>,
    }

    fn ground() -> Ground {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let region = |id: u8, name: &str, first: u32| {
            let extent = |i: u32| {
                let path = dir.path().join(format!("{name}-{i}"));
                std::fs::write(&path, vec![1; 4 * MIB as usize]).unwrap();
                Extent { path, identity: None, member: first + i, offset_bytes: MIB }
            };
            Arc::new(Region { id, set: SET, extents: (0..2).map(extent).collect(), extent_bytes: 3 * MIB })
        };
        Ground { data: region(Region::DATA, "data", 0), wal: region(Region::WAL, "wal", 2), _dir: dir }
    }

    fn engine(ground: &Ground) -> Workers {
        Workers::threaded(
            ground.data.clone(),
            ground.wal.clone(),
            4,
            Arc::new(Writes::new(0, Arc::default())),
        )
    }

    /// Runs a class until it has done so many I/Os, drains it and returns all that it counted.
    fn run(engine: &mut Workers, plan: &Job, ios: u64) -> Delta {
        let mut sources = engine.start(plan, &[]).unwrap();
        let mut delta = Delta::new(4);
        let deadline = clock::now_ns() + 20 * SECOND_NS;
        while delta.ios < ios && clock::now_ns() < deadline {
            std::thread::sleep(Duration::from_millis(1));
            for source in &mut sources {
                source.collect(&mut delta);
            }
        }
        engine.stop(plan.class);
        while matches!(engine.activity(plan.class), Activity::Running | Activity::Draining) {
            std::thread::yield_now();
        }
        sources.iter_mut().for_each(|source| assert!(!source.collect(&mut delta), "the worker has ended"));
        delta
    }

    /// Pages of 16 KiB of a region that carry stamps.
    fn stamped_pages(region: &Region) -> u64 {
        stamped_sectors(region) / 32
    }

    /// Sectors of a region that carry the stamp of their place.
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

    fn is_supported(ground: &Ground, interface: Interface, buffering: Buffering) -> bool {
        let file = std::fs::File::open(&ground.data.extents[0].path).unwrap();
        let flags = rustix::io::ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
        let uncached =
            rustix::io::preadv2(&file, &mut [std::io::IoSliceMut::new(&mut [0; 512])], 0, flags).is_ok();
        let ring = interface != Interface::IoUring || io_uring::IoUring::new(1).is_ok();
        ring && (buffering != Buffering::Uncached || uncached)
    }

    #[test]
    fn every_interface_moves_every_class_through_every_cache() {
        for interface in [Interface::Sync, Interface::Libaio, Interface::IoUring] {
            for buffering in [Buffering::Cached, Buffering::Direct, Buffering::Uncached] {
                let ground = ground();
                if !is_supported(&ground, interface, buffering) {
                    continue;
                }
                let mut settings = Settings::default();
                settings.io.interface = interface;
                settings.io.buffering = buffering;
                settings.classes[0].depth = 16;
                let mut engine = engine(&ground);
                for plan in jobs(&settings) {
                    let delta = run(&mut engine, &plan, 40);
                    let what = format!("{} on {interface:?} {buffering:?}", plan.class);
                    assert!(delta.ios >= 40, "{what}: {} I/Os, errnos {:?}", delta.ios, delta.errnos);
                    assert_eq!(delta.errnos.iter().sum::<u64>(), 0, "{what}");
                    assert_eq!(delta.bytes, delta.ios * 16384, "{what}");
                    assert_eq!(delta.service.histogram.len(), delta.ios, "{what}");
                    let moved: u64 = delta.members.iter().map(|(read, written)| read + written).sum();
                    assert_eq!(moved, delta.bytes, "{what}");
                }
                assert!(stamped_sectors(&ground.data) >= 32 && stamped_sectors(&ground.wal) >= 32);
            }
        }
    }

    #[test]
    fn flushes_are_counted_apart_and_cover_several_writes() {
        for interface in [Interface::Sync, Interface::Libaio, Interface::IoUring] {
            let ground = ground();
            if !is_supported(&ground, interface, Buffering::Cached) {
                continue;
            }
            let mut settings = Settings::default();
            settings.io.interface = interface;
            settings.io.buffering = Buffering::Cached;
            settings.wal.sync_every = 8;
            let wal = Class::Wal.index();
            settings.classes[wal].rate_bytes_per_s = None;
            settings.classes[wal].depth = if interface == Interface::Sync { 1 } else { 4 };
            let delta = run(&mut engine(&ground), &jobs(&settings)[wal], 64);
            assert_eq!(delta.write.histogram.len(), delta.ios);
            assert_eq!(delta.service.histogram.len(), delta.ios, "every write is committed at the end");
            assert_eq!(delta.flush.histogram.len(), delta.ios.div_ceil(8), "{interface:?}");
        }
    }

    #[test]
    fn writing_stops_at_the_limit() {
        let ground = ground();
        let writes = Arc::new(Writes::new(0, Arc::default()));
        writes.limit(Some(100 * 16384 + 1));
        let mut engine = Workers::threaded(ground.data.clone(), ground.wal.clone(), 4, writes);
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sync;
        let background = Class::Background.index();
        settings.classes[background].rate_bytes_per_s = None;
        let mut sources = engine.start(&jobs(&settings)[background], &[]).unwrap();
        while engine.activity(Class::Background) != Activity::Exhausted {
            std::thread::yield_now();
        }
        let mut delta = Delta::new(4);
        sources[0].collect(&mut delta);
        assert_eq!(delta.ios, 100);
    }

    #[test]
    fn a_class_that_starts_again_draws_other_pages() {
        let ground = ground();
        let writes = Arc::new(Writes::new(0, Arc::default()));
        let mut engine = Workers::threaded(ground.data.clone(), ground.wal.clone(), 4, writes.clone());
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sync;
        settings.io.buffering = Buffering::Cached;
        let background = Class::Background.index();
        settings.classes[background].rate_bytes_per_s = None;
        let mut pages = Vec::new();
        for round in 1..=2 {
            writes.limit(Some(round * 20 * 16384));
            engine.start(&jobs(&settings)[background], &[]).unwrap();
            while engine.activity(Class::Background) != Activity::Exhausted {
                std::thread::yield_now();
            }
            pages.push(stamped_pages(&ground.data));
        }
        // 20 of 384 pages each time: by chance about one is drawn again.
        assert!(pages[1] > pages[0] + 10, "{pages:?}");
    }

    #[test]
    fn a_rate_is_held_and_response_runs_from_the_intended_start() {
        let ground = ground();
        let mut settings = Settings::default();
        settings.io.interface = Interface::Null;
        let point = Class::Point.index();
        settings.classes[point].rate_bytes_per_s = Some(100_000_000);
        let plan = &jobs(&settings)[point];
        let before_ns = clock::now_ns();
        let delta = run(&mut engine(&ground), plan, 1000);
        let most = (clock::now_ns() - before_ns) * 100_000_000 / SECOND_NS / 16384 + 1;
        assert!(delta.ios <= most, "{} of {most}", delta.ios);
        assert_eq!(delta.intended, delta.ios + delta.missed);
        assert_eq!(delta.response.histogram.len(), delta.ios);
        assert!(delta.response.histogram.mean() >= delta.service.histogram.mean());
    }

    /// A simulated run of two seconds: what each class counted.
    fn simulate(seed: u64) -> Vec<(u64, u64, u64, Vec<u64>)> {
        let ground = ground();
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sim;
        settings.sim.seed = seed;
        settings.wal.sync = Sync::Fdatasync;
        let writes = Arc::new(Writes::new(0, Arc::default()));
        let mut engine =
            Workers::simulated(ground.data.clone(), ground.wal.clone(), 4, writes, &settings.sim);
        let mut sources: Vec<_> =
            jobs(&settings).iter().flat_map(|plan| engine.start(plan, &[]).unwrap()).collect();
        engine.run_until(2 * SECOND_NS);
        assert_eq!(engine.now_ns(), 2 * SECOND_NS);
        let figures = sources.iter_mut().map(|source| {
            let mut delta = Delta::new(4);
            source.collect(&mut delta);
            let percentiles = [0.5, 0.99].map(|q| delta.service.histogram.value_at_quantile(q));
            (delta.ios, delta.missed, delta.service.max_ns, percentiles.to_vec())
        });
        figures.collect()
    }

    #[test]
    fn what_was_intended_before_a_class_stopped_is_begun_or_missed_and_nothing_after() {
        let ground = ground();
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sim;
        let point = Class::Point.index();
        settings.classes[point].rate_bytes_per_s = Some(16384 * 100_000); // far more than it can
        let writes = Arc::new(Writes::new(0, Arc::default()));
        let mut engine =
            Workers::simulated(ground.data.clone(), ground.wal.clone(), 4, writes, &settings.sim);
        let mut sources = engine.start(&jobs(&settings)[point], &[]).unwrap();
        engine.run_until(SECOND_NS / 2);
        engine.stop(Class::Point);
        engine.run_until(SECOND_NS);
        let mut delta = Delta::new(4);
        assert!(!sources[0].collect(&mut delta), "the worker has ended");
        assert_eq!(delta.intended, delta.ios + delta.missed);
        assert!(delta.intended.abs_diff(50_000) <= 1, "half a second's: {}", delta.intended);
        assert!(delta.ios > 0 && delta.missed > 0);
    }

    #[test]
    fn a_simulation_repeats_exactly_and_its_seed_matters() {
        let first = simulate(1);
        assert_eq!(first, simulate(1));
        assert_ne!(first, simulate(2));
        assert!(first.iter().all(|(ios, ..)| *ios > 100), "{first:?}");
    }
}
