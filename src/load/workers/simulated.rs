//! Workers on simulated devices: all run in the calling thread on a virtual clock, exactly repeatable.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::control::{Control, Writes};
use super::generations::{Generations, end};
use super::launch::launch;
use super::lifecycle::{Activity, Workers};
use super::observer::Observer;
use super::worker::{Orders, Turn, Worker};
use crate::class::Class;
use crate::error::Result;
use crate::host::{FlashSource, FlashWrites};
use crate::load::io::sim::{SimQueue, SimulatedDevice};
use crate::load::io::{Done, Wait};
use crate::load::volume::Region;
use crate::meter::counts::cell::WorkerCell;
use crate::meter::source::Source;
use crate::settings::Sim;
use crate::settings::jobs::Job;

/// Workers on simulated devices, one device per member. A class on another interface (`null`, for example)
/// runs in threads beside them.
pub struct SimulatedWorkers {
    generations: Generations,
    simulation: Simulation,
}

impl SimulatedWorkers {
    /// Workers on these regions, which span `members` members.
    pub fn new(data: Arc<Region>, wal: Arc<Region>, members: usize, writes: Arc<Writes>, sim: &Sim) -> Self {
        let simulation = Simulation::new(members, data.extent_bytes + wal.extent_bytes, sim);
        Self { generations: Generations::new(data, wal, members, writes), simulation }
    }
}

impl Workers for SimulatedWorkers {
    fn start(&mut self, job: &Job, cpus: &[u32]) -> Result<Vec<Box<dyn Source>>> {
        let Self { generations, simulation } = self;
        generations.start(job, |orders| {
            if !job.interface.is_simulated() {
                return launch(job, cpus, orders);
            }
            simulation.start(orders);
            Ok(Vec::new())
        })
    }

    fn observe(&mut self) -> Option<Arc<Observer>> {
        Some(self.generations.observe())
    }

    fn stop(&mut self, class: Class) {
        self.generations.stop(class, self.simulation.now_ns);
    }

    fn activity(&mut self, class: Class) -> Activity {
        self.generations.activity(class)
    }

    fn now_ns(&self) -> u64 {
        self.simulation.now_ns
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn run_until(&mut self, ns: u64) {
        self.simulation.run_until(ns);
    }

    fn flash_writes(&self) -> Option<FlashWrites> {
        let mut sum =
            FlashWrites { host_bytes: 0, flash_bytes: 0, unit_bytes: 1, source: FlashSource::Model };
        for device in &self.simulation.devices {
            let [host_bytes, flash_bytes] = device.written_bytes()?;
            sum.host_bytes += host_bytes;
            sum.flash_bytes += flash_bytes;
        }
        Some(sum)
    }
}

/// Simulated devices and the workers on them.
struct Simulation {
    now_ns: u64,
    devices: Vec<SimulatedDevice>,
    workers: Vec<Simulated>,
    events: BinaryHeap<Reverse<Event>>,
    /// Orders simultaneous events, and numbers workers uniquely.
    counter: u64,
}

struct Simulated {
    id: u64,
    worker: Worker,
    queue: SimQueue,
    wait: Wait,
    done: Vec<Done>,
    outstanding: u32,
    /// The device of each file.
    devices: Vec<usize>,
    ending: (Arc<WorkerCell>, Arc<Control>),
}

/// A future completion.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u64,
    order: u64,
    worker: u64,
    slot: u32,
    result: i32,
}

impl Simulation {
    /// One device of `capacity_bytes` per member.
    fn new(members: usize, capacity_bytes: u64, sim: &Sim) -> Self {
        let devices = (0..members as u64).map(|number| SimulatedDevice::new(sim, number, capacity_bytes));
        Self {
            now_ns: 0,
            devices: devices.collect(),
            workers: Vec::new(),
            events: BinaryHeap::new(),
            counter: 0,
        }
    }

    /// Adds a class's workers; they start now.
    fn start(&mut self, orders: Vec<Orders>) {
        for orders in orders {
            let queue = SimQueue::new(orders.job.depth as u32, orders.job.page_bytes as usize);
            let devices = orders.region.extents.iter().map(|extent| extent.member as usize).collect();
            let ending = (orders.cell.clone(), orders.control.clone());
            let worker = Worker::new(orders, self.now_ns);
            self.counter += 1;
            let wait = Wait { completions: 0, until_ns: Some(self.now_ns) };
            let (id, done) = (self.counter, Vec::new());
            self.workers.push(Simulated { id, worker, queue, wait, done, outstanding: 0, devices, ending });
        }
    }

    /// Advances time to `end_ns`.
    fn run_until(&mut self, end_ns: u64) {
        loop {
            self.run_ready();
            let event = self.events.peek().map(|Reverse(event)| event.at_ns);
            let wake = self.workers.iter().filter_map(|w| w.wait.until_ns).min();
            match [event, wake].into_iter().flatten().min() {
                Some(next_ns) if next_ns <= end_ns => self.now_ns = self.now_ns.max(next_ns),
                _ => break,
            }
            self.deliver();
        }
        self.now_ns = self.now_ns.max(end_ns);
    }

    /// Gives workers the completions that are due now.
    fn deliver(&mut self) {
        while let Some(Reverse(event)) = self.events.peek()
            && event.at_ns <= self.now_ns
        {
            let done = Done { slot: event.slot, result: event.result };
            if let Some(worker) = self.workers.iter_mut().find(|worker| worker.id == event.worker) {
                worker.done.push(done);
            }
            self.events.pop();
        }
    }

    /// Runs every worker whose wait is over, until none is left.
    fn run_ready(&mut self) {
        let mut i = 0;
        while i < self.workers.len() {
            if !self.workers[i].is_ready(self.now_ns) {
                i += 1;
            } else if self.turn(i) {
                let (cell, control) = self.workers.remove(i).ending;
                end(&cell, &control);
            }
        }
    }

    /// One step of a worker; true if it has ended.
    fn turn(&mut self, at: usize) -> bool {
        let (now_ns, w) = (self.now_ns, &mut self.workers[at]);
        w.outstanding -= w.done.len() as u32;
        w.worker.complete(now_ns, &w.done);
        w.done.clear();
        let Turn::Wait(wait) = w.worker.turn(now_ns, &mut w.queue) else { return true };
        w.worker.hand_over(now_ns);
        let page_bytes = w.queue.page_bytes();
        for op in w.queue.drain() {
            let (at_ns, result) = self.devices[w.devices[op.file as usize]].take(now_ns, op, page_bytes);
            self.counter += 1;
            w.outstanding += 1;
            let (order, worker, slot) = (self.counter, w.id, op.slot);
            self.events.push(Reverse(Event { at_ns: at_ns.max(now_ns + 1), order, worker, slot, result }));
        }
        w.wait = Wait { completions: wait.completions.min(w.outstanding), ..wait };
        // Time advances even if a worker waits for nothing.
        if w.wait.completions == 0 {
            w.wait.until_ns = Some(wait.until_ns.unwrap_or(now_ns).max(now_ns + 1));
        }
        false
    }
}

impl Simulated {
    fn is_ready(&self, now_ns: u64) -> bool {
        let enough = self.wait.completions > 0 && self.done.len() as u32 >= self.wait.completions;
        enough || self.wait.until_ns.is_some_and(|until_ns| until_ns <= now_ns)
    }
}
