//! Key-value workers: they get, put and scan ranges through RocksDB, one call at a time.
//!
//! Scan reads ranges, point gets, the WAL puts with a synced log, background puts without syncing (and gets,
//! as `background.reads` says). A worker has one call outstanding, so a class has `depth` workers per thread.
//! Pacing, offsets and meters are those of the page workers. *Service* latency runs from the call to its
//! return; for the WAL, to the return of the call that synced the log.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::control::Writes;
use super::generations::Generations;
use super::launch::{Body, WorkerThread, spawn};
use super::lifecycle::{Activity, Workers};
use super::offsets::Offsets;
use super::pacing::Pacer;
use super::worker::Orders;
use crate::class::Class;
use crate::error::Result;
use crate::load::io::clock;
use crate::load::kv::keys::Key;
use crate::load::kv::values::Values;
use crate::load::kv::{Handle, Scanner, Store};
use crate::load::volume::Region;
use crate::meter::source::Source;
use crate::settings::Sync;
use crate::settings::jobs::{Job, KvJob};
use crate::units::SECOND_NS;

/// How often a waiting worker checks whether to end.
const IDLE_NS_MAX: u64 = SECOND_NS / 20;
/// How long to wait before retrying on a full disk.
const FULL_NS: u64 = SECOND_NS / 50;
/// RocksDB's calls need more stack than a system call.
const STACK_BYTES: usize = 2 << 20;

/// Workers on a data set of pairs, one thread per outstanding call.
pub struct KvWorkers {
    generations: Generations,
    store: Arc<Store>,
}

impl KvWorkers {
    /// Workers on the data set, which `data` stands for in the meters.
    pub fn new(store: Arc<Store>, data: Arc<Region>, writes: Arc<Writes>) -> Self {
        Self { generations: Generations::new(data.clone(), data, 1, writes), store }
    }
}

impl Workers for KvWorkers {
    fn start(&mut self, job: &Job, cpus: &[u32]) -> Result<Vec<Box<dyn Source>>> {
        let store = &self.store;
        self.generations.start(job, |orders| launch(cpus, orders, store))
    }

    fn stop(&mut self, class: Class) {
        self.generations.stop(class, clock::now_ns());
    }

    fn activity(&mut self, class: Class) -> Activity {
        self.generations.activity(class)
    }
}

/// Starts a class's workers on a data set, one per order.
fn launch(cpus: &[u32], orders: Vec<Orders>, store: &Arc<Store>) -> Result<Vec<WorkerThread>> {
    let store = store.clone();
    let body: Body = Arc::new(move |orders, start| {
        let handle = match store.handle() {
            Ok(handle) => handle,
            Err(error) => {
                start.fail(error);
                return None;
            }
        };
        let scanner = handle.scanner();
        let made_ns = clock::now_ns();
        let mut worker = Worker::new(orders, &store, &handle, scanner, made_ns);
        start.wait();
        let now_ns = clock::now_ns();
        if let Some(pacer) = &mut worker.pacer {
            pacer.postpone(now_ns - made_ns);
        }
        worker.run(now_ns);
        None
    });
    spawn(cpus, orders, STACK_BYTES, &body)
}

/// The result of a call.
#[derive(Clone, Copy)]
enum Outcome {
    /// Bytes of keys and values read.
    Read(u64),
    /// Bytes of keys and values put.
    Put(u64),
    /// A failed read: the errno.
    Unread(i32),
    /// A failed put: the errno.
    Unput(i32),
}

/// A put that is not yet durable.
#[derive(Clone, Copy)]
struct Pending {
    start_ns: u64,
    intended_ns: Option<u64>,
    slot: u64,
    sequence: u64,
}

struct Worker<'a> {
    orders: Orders,
    pairs: KvJob,
    store: &'a Store,
    handle: &'a Handle,
    scanner: Scanner<'a>,
    key: Key,
    key_bytes: u64,
    values: Option<Values>,
    /// Pairs that were loaded, and the WAL's slots, whose keys follow them.
    loaded: u64,
    logged: u64,
    offsets: Offsets,
    pacer: Option<Pacer>,
    rng: SmallRng,
    sequence: u64,
    /// For the WAL, the puts since the last sync.
    pending: Vec<Pending>,
}

impl<'a> Worker<'a> {
    fn new(orders: Orders, store: &'a Store, handle: &'a Handle, scanner: Scanner<'a>, now_ns: u64) -> Self {
        let (job, data) = (orders.job.clone(), store.data());
        let (number, workers) = (orders.number, job.workers);
        let seed = orders.seed();
        let pacer = Pacer::of(&job, now_ns, number, seed.rotate_left(17));
        Self {
            pairs: job.pairs.unwrap_or_else(|| unreachable!("a class on pairs has a job of them")),
            store,
            handle,
            scanner,
            key: Key::new(data.key_bytes),
            key_bytes: data.key_bytes,
            values: job.class.writes().then(|| Values::new(store.set(), data.value_bytes)),
            loaded: data.pairs,
            logged: data.logged(),
            offsets: Offsets::new(job.offsets, data.pairs, (number, workers), 0, seed),
            pacer,
            rng: SmallRng::seed_from_u64(seed.rotate_left(34)),
            sequence: 0,
            pending: Vec::with_capacity(job.sync_every as usize),
            orders,
        }
    }

    /// Works until asked to end.
    fn run(&mut self, mut now_ns: u64) {
        loop {
            if let Some(stopped_ns) = self.orders.control.stopped_ns() {
                self.drop_pending(stopped_ns);
                break;
            }
            let intended_ns = match self.due(now_ns) {
                Ok(intended_ns) => intended_ns,
                Err(wake_ns) => {
                    clock::sleep_until(wake_ns.min(now_ns + IDLE_NS_MAX));
                    now_ns = clock::now_ns();
                    continue;
                }
            };
            if self.orders.job.class.writes() && self.orders.writes.is_spent() {
                self.orders.control.exhaust(now_ns);
                if let Some(intended_ns) = intended_ns {
                    self.orders.cell.miss(now_ns.saturating_sub(intended_ns));
                }
                self.drop_pending(now_ns);
                break;
            }
            let start_ns = now_ns;
            self.orders.cell.under_way.begin(0, start_ns, intended_ns);
            let outcome = self.operate(start_ns, intended_ns);
            now_ns = clock::now_ns();
            self.orders.cell.under_way.end(0);
            self.count(start_ns, intended_ns, now_ns, outcome);
        }
        self.sync_rest(now_ns);
    }

    /// The intended start of the next operation if it is due (none without a rate), else when to wake for it.
    #[inline]
    fn due(&mut self, now_ns: u64) -> std::result::Result<Option<u64>, u64> {
        let Some(pacer) = &mut self.pacer else { return Ok(None) };
        let cell = &self.orders.cell;
        pacer.drop_late(now_ns, cell);
        let due = pacer.due(now_ns);
        cell.intended.add(u64::from(due.is_some()));
        if due.is_none() {
            return Err(pacer.wake_ns());
        }
        pacer.advance();
        cell.under_way.intend(pacer.next_ns(), pacer.spacing_ns());
        Ok(due)
    }

    fn drop_pending(&mut self, stopped_ns: u64) {
        if let Some(pacer) = &mut self.pacer {
            pacer.drop_before(stopped_ns, stopped_ns, &self.orders.cell);
            self.orders.cell.under_way.intend_nothing();
        }
    }

    /// One operation.
    #[inline]
    fn operate(&mut self, start_ns: u64, intended_ns: Option<u64>) -> Outcome {
        match self.orders.job.class {
            Class::Scan => self.scan(),
            Class::Point => self.get(),
            Class::Wal => self.commit(start_ns, intended_ns),
            Class::Background => {
                if self.chance(self.pairs.read_percent) {
                    self.get()
                } else {
                    self.update()
                }
            }
        }
    }

    #[inline]
    fn chance(&mut self, percent: u64) -> bool {
        percent > 0 && (percent >= 100 || self.rng.random_range(0..100) < percent)
    }

    #[inline]
    fn scan(&mut self) -> Outcome {
        let read = if self.pairs.whole {
            // Each worker starts at its own key, so that none finds in the cache what another just read.
            let begin = self.loaded / self.orders.job.workers.max(1) * self.orders.number;
            self.scanner.go_on(self.key.of(begin), self.pairs.pairs)
        } else {
            self.scanner.range(self.key.of(self.offsets.next()), self.pairs.pairs)
        };
        read.map_or_else(Outcome::Unread, |(_, bytes)| Outcome::Read(bytes))
    }

    #[inline]
    fn get(&mut self) -> Outcome {
        let number = self.offsets.next();
        if self.chance(self.pairs.miss_percent) {
            let got = self.handle.get(self.key.missing(number));
            return got.map_or_else(Outcome::Unread, |_| Outcome::Read(self.key_bytes));
        }
        match self.handle.get(self.key.of(number)) {
            Ok(Some(bytes)) => Outcome::Read(self.key_bytes + bytes as u64),
            // Every such key was loaded, so it must be there.
            Ok(None) => Outcome::Unread(libc::ENODATA),
            Err(errno) => Outcome::Unread(errno),
        }
    }

    #[inline]
    fn update(&mut self) -> Outcome {
        let number = self.offsets.next();
        if self.sequence.is_multiple_of(Writes::SEQUENCES) {
            self.sequence = self.orders.writes.take_sequences(Writes::SEQUENCES);
        }
        let sequence = self.sequence;
        self.sequence += 1;
        self.put(number, sequence, false)
    }

    #[inline]
    fn commit(&mut self, start_ns: u64, intended_ns: Option<u64>) -> Outcome {
        let (slot, sequence) = self.store.next_logged(self.logged);
        let durable = self.orders.job.sync == Sync::Fdatasync;
        let sync = durable && self.pending.len() as u64 + 1 >= self.orders.job.sync_every;
        let outcome = self.put(self.loaded + slot, sequence, sync);
        if matches!(outcome, Outcome::Put(_)) {
            if !sync {
                let waiting = 1 + self.pending.len();
                self.orders.cell.under_way.begin(waiting, start_ns, intended_ns);
            }
            self.pending.push(Pending { start_ns, intended_ns, slot, sequence });
        }
        outcome
    }

    #[inline]
    fn put(&mut self, number: u64, sequence: u64, sync: bool) -> Outcome {
        let Some(values) = &mut self.values else { return Outcome::Unput(libc::EINVAL) };
        let value = values.of(number, sequence);
        match self.handle.put(self.key.of(number), value, sync) {
            Ok(()) => Outcome::Put(self.key_bytes + value.len() as u64),
            Err(errno) => Outcome::Unput(errno),
        }
    }

    #[inline]
    fn count(&mut self, start_ns: u64, intended_ns: Option<u64>, now_ns: u64, outcome: Outcome) {
        let cell = &self.orders.cell;
        let bytes = match outcome {
            Outcome::Read(bytes) => {
                cell.members[0].read_bytes.add(bytes);
                bytes
            }
            Outcome::Put(bytes) => {
                if self.store.failing().is_some() {
                    self.store.put_failed(0);
                }
                cell.members[0].written_bytes.add(bytes);
                bytes
            }
            Outcome::Unread(errno) => return self.unread(now_ns, errno),
            Outcome::Unput(errno) => return self.unput(now_ns, errno),
        };
        cell.ios.add(1);
        cell.bytes.add(bytes);
        if self.orders.job.class == Class::Wal {
            let waits = self.orders.job.sync == Sync::Fdatasync
                && (self.pending.len() as u64) < self.orders.job.sync_every;
            if !waits {
                self.committed(now_ns);
            }
            return;
        }
        cell.service.record(now_ns.saturating_sub(start_ns));
        if let (Some(response), Some(intended_ns)) = (&cell.response, intended_ns) {
            response.record(now_ns.saturating_sub(intended_ns));
        }
    }

    /// Acknowledges all puts since the last sync: they are as durable as they will get.
    #[inline]
    fn committed(&mut self, now_ns: u64) {
        let cell = &self.orders.cell;
        cell.under_way.end_from(1);
        for put in &self.pending {
            cell.service.record(now_ns.saturating_sub(put.start_ns));
            if let (Some(response), Some(intended_ns)) = (&cell.response, put.intended_ns) {
                response.record(now_ns.saturating_sub(intended_ns));
            }
            if let Err(errno) = self.store.note(put.slot, put.sequence) {
                cell.error(errno);
                self.orders.control.error(now_ns, errno);
            }
        }
        self.pending.clear();
    }

    /// At the end of the run, syncs the puts that still wait for their group to fill up.
    fn sync_rest(&mut self, now_ns: u64) {
        if self.pending.is_empty() {
            return;
        }
        match self.handle.sync() {
            Ok(()) => self.committed(clock::now_ns()),
            Err(errno) => self.unput(now_ns, errno),
        }
    }

    #[cold]
    fn unread(&mut self, now_ns: u64, errno: i32) {
        self.orders.cell.error(errno);
        self.orders.control.error(now_ns, errno);
    }

    #[cold]
    fn unput(&mut self, now_ns: u64, errno: i32) {
        self.orders.cell.error(errno);
        self.store.put_failed(errno);
        // A full disk makes puts wait; it does not stop the class.
        if matches!(errno, libc::ENOSPC | libc::EDQUOT) {
            clock::sleep_until(now_ns + FULL_NS);
        } else {
            self.orders.control.error(now_ns, errno);
        }
    }
}
