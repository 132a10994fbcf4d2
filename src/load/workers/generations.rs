//! The workers of each class in this process, one generation after another.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::control::{Control, Shared, Writes};
use super::ended::EndedIos;
use super::launch::{WorkerThread, launch};
use super::lifecycle::{Activity, Workers};
use super::observer::Observer;
use super::worker::Orders;
use crate::class::Class;
use crate::error::{Result, describe_errno};
use crate::load::io::clock;
use crate::load::volume::Region;
use crate::load::volume::write_map::Tracked;
use crate::meter::counts::cell::WorkerCell;
use crate::meter::source::{Source, WorkerSource};
use crate::settings::jobs::Job;
use crate::threads::panic_message;

/// The running generation of each class, and the state that outlives it. Dropping this stops all workers and
/// waits for their threads.
pub(super) struct Generations {
    data: Arc<Region>,
    wal: Arc<Region>,
    members: usize,
    shared: [Arc<Shared>; 4],
    writes: Arc<Writes>,
    running: [Option<Generation>; 4],
    /// How often each class was started, so that a restart draws different pages.
    starts: [u64; 4],
    /// Takes the I/Os of workers that have ended, if there is one.
    observer: Option<Arc<Observer>>,
}

/// The workers of a class under one job.
struct Generation {
    control: Arc<Control>,
    threads: Vec<WorkerThread>,
}

impl Generations {
    /// Starts out with no class running.
    pub fn new(data: Arc<Region>, wal: Arc<Region>, members: usize, writes: Arc<Writes>) -> Self {
        let shared = std::array::from_fn(|_| Arc::default());
        Self {
            data,
            wal,
            members,
            shared,
            writes,
            running: Default::default(),
            starts: [0; 4],
            observer: None,
        }
    }

    /// Observes the I/Os of all workers that start from now on.
    pub fn observe(&mut self) -> Arc<Observer> {
        self.observer.get_or_insert_default().clone()
    }

    /// Starts a class, which must be idle, by passing its workers' orders to `launch`. Returns the sources of
    /// their counts.
    pub fn start(
        &mut self,
        job: &Job,
        launch: impl FnOnce(Vec<Orders>) -> Result<Vec<WorkerThread>>,
    ) -> Result<Vec<Box<dyn Source>>> {
        let at = job.class.index();
        let control = Arc::new(Control::default());
        let tracked = self.tracked(job);
        let orders = |number| Orders { tracked: tracked.clone(), ..self.orders(job, number, &control) };
        let orders: Vec<_> = (0..job.workers).map(orders).collect();
        self.starts[at] += 1;
        let cells: Vec<_> = orders.iter().map(|orders| orders.cell.clone()).collect();
        orders.iter().for_each(|_| control.enter());
        let threads = launch(orders)?;
        self.running[at] = Some(Generation { control, threads });
        Ok(cells.into_iter().map(|cell| Box::new(WorkerSource::new(cell)) as Box<dyn Source>).collect())
    }

    fn region(&self, job: &Job) -> &Arc<Region> {
        if job.class == Class::Wal { &self.wal } else { &self.data }
    }

    /// Records the class's writes, if it writes to storage and there is a write map.
    fn tracked(&self, job: &Job) -> Option<Arc<Tracked>> {
        let map = self.writes.map().filter(|_| job.class.writes() && job.interface.touches_storage())?;
        let tracked = map.track(self.region(job), job.page_bytes, (job.workers, job.depth));
        // The load continues; verification will report that there was no map.
        tracked.inspect_err(|_| map.void()).ok().map(Arc::new)
    }

    /// Where a worker puts its I/Os, if somebody observes them; the generator alone does none.
    fn observed(&self, job: &Job) -> Option<Arc<EndedIos>> {
        let waits = job.interface.is_simulated();
        let observer = self.observer.as_ref().filter(|_| waits || job.interface.touches_storage())?;
        Some(observer.ring(waits))
    }

    fn orders(&self, job: &Job, number: u64, control: &Arc<Control>) -> Orders {
        Orders {
            job: Arc::new(job.clone()),
            number,
            generation: self.starts[job.class.index()],
            region: self.region(job).clone(),
            control: control.clone(),
            shared: self.shared[job.class.index()].clone(),
            writes: self.writes.clone(),
            tracked: None,
            observed: self.observed(job),
            cell: Arc::new(
                WorkerCell::new(job.class, job.rate_bytes_per_s.is_some(), self.members)
                    .with_room(job.depth + job.sync_every)
                    .logging_slow(job.slow_ns),
            ),
        }
    }

    /// Makes a class's workers drain and end; `now_ns` is by their clock.
    pub fn stop(&self, class: Class, now_ns: u64) {
        if let Some(generation) = &self.running[class.index()] {
            generation.control.stop(now_ns);
        }
    }

    /// What a class's workers are doing. Removes workers that have ended.
    pub fn activity(&mut self, class: Class) -> Activity {
        let at = class.index();
        let Some(generation) = &self.running[at] else { return Activity::Idle };
        let control = generation.control.clone();
        if control.running() > 0 {
            return if control.is_stopping() { Activity::Draining } else { Activity::Running };
        }
        let threads = self.running[at].take().map(|generation| generation.threads).unwrap_or_default();
        let (mut reasons, mut panicked) = (Vec::new(), None);
        for thread in threads {
            match thread.join() {
                Ok((reason, _)) => reasons.extend(reason),
                Err(payload) => panicked = panicked.or(Some(panic_message(&*payload))),
            }
        }
        if let Some(message) = panicked {
            return Activity::Panicked(message);
        }
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

impl Drop for Generations {
    fn drop(&mut self) {
        Class::ALL.into_iter().for_each(|class| self.stop(class, clock::now_ns()));
        for generation in self.running.iter_mut().filter_map(Option::take) {
            generation.threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

/// Marks a worker without a thread as ended.
pub(super) fn end(cell: &WorkerCell, control: &Control) {
    cell.ended.store(true, Ordering::Release);
    control.leave();
}

/// Workers on the regions of a volume, one thread each.
pub struct ThreadedWorkers(Generations);

impl ThreadedWorkers {
    /// Workers on these regions, which span `members` members.
    pub fn new(data: Arc<Region>, wal: Arc<Region>, members: usize, writes: Arc<Writes>) -> Self {
        Self(Generations::new(data, wal, members, writes))
    }
}

impl Workers for ThreadedWorkers {
    fn start(&mut self, job: &Job, cpus: &[u32]) -> Result<Vec<Box<dyn Source>>> {
        self.0.start(job, |orders| launch(job, cpus, orders))
    }

    fn observe(&mut self) -> Option<Arc<Observer>> {
        Some(self.0.observe())
    }

    fn stop(&mut self, class: Class) {
        self.0.stop(class, clock::now_ns());
    }

    fn activity(&mut self, class: Class) -> Activity {
        self.0.activity(class)
    }
}
