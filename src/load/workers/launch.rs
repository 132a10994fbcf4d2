//! Starts workers, and runs the loop of each in its own thread.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;

use super::control::Control;
use super::io_priority;
use super::worker::{Orders, Turn, Worker};
use crate::error::{Error, Result, describe};
use crate::load::io::{self, Backend, OpenRequest, Setup, Use, clock};
use crate::meter::counts::cell::WorkerCell;
use crate::settings::Named;
use crate::settings::jobs::Job;
use crate::{stopping, threads};

/// A worker's thread. It returns why its interface failed, if the interface can say.
pub type WorkerThread = JoinHandle<(Option<String>, stopping::EndingThread)>;

/// Starts a class's workers on its interface, one per order.
///
/// # Errors
/// If this build has no code for the interface, or it is simulated; if members or threads are refused.
pub(super) fn launch(job: &Job, cpus: &[u32], orders: Vec<Orders>) -> Result<Vec<WorkerThread>> {
    struct Launching<'a> {
        cpus: &'a [u32],
        orders: Vec<Orders>,
    }
    impl Use for Launching<'_> {
        type Output = Result<Vec<WorkerThread>>;

        fn backend<B: Backend>(self) -> Self::Output {
            launch_on::<B>(self.cpus, self.orders)
        }
    }
    let cannot = || Error::input(format!("{} can't run on {} here", job.class, job.interface.name()));
    io::dispatch(job.interface, Launching { cpus, orders }).ok_or_else(cannot)?
}

/// Enough for the loop and one system call; nothing recurses.
const STACK_BYTES: usize = 256 << 10;

fn launch_on<B: Backend>(cpus: &[u32], orders: Vec<Orders>) -> Result<Vec<WorkerThread>> {
    let Some(first) = orders.first() else { return Ok(Vec::new()) };
    let members = Arc::new(B::open_members(&OpenRequest {
        paths: first.region.extents.iter().map(|extent| extent.path.clone()).collect(),
        identities: first.region.extents.iter().map(|extent| extent.identity).collect(),
        writable: first.job.class.writes(),
        buffering: first.job.buffering,
    })?);
    let body: Body = Arc::new(move |orders, start| work::<B>(&members, orders, start));
    spawn(cpus, orders, STACK_BYTES, &body)
}

/// What a worker's thread runs once it is on its CPUs; returns why its interface failed.
pub(super) type Body = Arc<dyn Fn(Orders, Start) -> Option<String> + Send + Sync>;

/// Starts one thread per order, and lets them all begin together.
pub(super) fn spawn(
    cpus: &[u32],
    orders: Vec<Orders>,
    stack_bytes: usize,
    body: &Body,
) -> Result<Vec<WorkerThread>> {
    let Some(first) = orders.first() else { return Ok(Vec::new()) };
    let (job, control) = (first.job.clone(), first.control.clone());
    let (ready, readiness) = mpsc::channel();
    // Held until all are ready. Workers that already ran would slow down those still starting: they would
    // take the CPUs and, while waiting for one, hold the lock on the process's memory map.
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
    let mut threads = Vec::with_capacity(orders.len());
    for orders in orders {
        let (body, cpus) = (body.clone(), cpus.to_vec());
        let start = Start { ready: ready.clone(), gate: gate.clone() };
        let name = format!("{}-{}", job.class, orders.number);
        let thread = std::thread::Builder::new().name(name).stack_size(stack_bytes);
        let work = move || (worker_thread(&body, orders, &cpus, start), stopping::EndingThread::begin());
        match thread.spawn(work) {
            Ok(handle) => threads.push(handle),
            Err(e) => {
                give_up(&control, closed, threads);
                let why = describe(&e);
                return Err(Error::failed(format!("cannot start a worker of {}: {why}", job.class))
                    .hint(threads::RAISE));
            }
        }
    }
    drop(ready);
    match readiness.iter().find_map(Result::err) {
        None => Ok(threads),
        Some(error) => {
            give_up(&control, closed, threads);
            Err(error)
        }
    }
}

/// Ends the workers of a class that did not start completely.
fn give_up(control: &Control, closed: RwLockWriteGuard<()>, threads: Vec<WorkerThread>) {
    control.stop(clock::now_ns());
    drop(closed);
    threads.into_iter().for_each(|thread| drop(thread.join()));
}

/// How a worker reports that it is ready, and waits until all are.
pub(super) struct Start {
    ready: mpsc::Sender<Result<()>>,
    gate: Arc<RwLock<()>>,
}

impl Start {
    /// Reports that it can't work.
    pub fn fail(self, error: Error) {
        let _ = self.ready.send(Err(error));
    }

    /// Reports that it is ready; returns once all are.
    pub fn wait(self) {
        let _ = self.ready.send(Ok(()));
        drop(self.ready);
        drop(self.gate.read());
    }
}

fn setup(job: &Job, files: usize) -> Setup {
    Setup {
        page_bytes: job.page_bytes as usize,
        slots: job.depth as u32,
        flush_slots: if job.class == crate::class::Class::Wal { files as u32 } else { 0 },
        registered_buffers: job.registered_buffers,
        registered_files: job.registered_files,
        ring_setup: job.ring_setup,
        iopoll: job.polling.iopoll,
        sqpoll: job.polling.sqpoll,
        poll_sleep_ns: job.polling.sleep_ns,
    }
}

/// Reports that a worker has ended, however it ends.
struct Ending(Arc<WorkerCell>, Arc<Control>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Without this one, the others would not carry the class's whole load.
            self.1.stop(clock::now_ns());
        }
        self.0.ended.store(true, Ordering::Release);
        self.1.leave();
    }
}

fn worker_thread(body: &Body, orders: Orders, cpus: &[u32], start: Start) -> Option<String> {
    let (cell, control) = (orders.cell.clone(), orders.control.clone());
    let ending = Ending(cell.clone(), control);
    threads::report_panics_elsewhere();
    if let Err(error) = run_on(cpus).and_then(|()| io_priority::set(orders.job.prio)) {
        start.fail(error);
        return None;
    }
    let thread_id = rustix::thread::gettid().as_raw_nonzero().get();
    cell.thread_id.store(thread_id, Ordering::Relaxed);
    clock::sleep_precisely();
    // `body` drops the interface before `ending` reports the end, so that its counts are final.
    let reason = body(orders, start);
    drop(ending);
    reason
}

fn work<B: Backend>(members: &Arc<B::Members>, orders: Orders, start: Start) -> Option<String> {
    let (cell, control) = (orders.cell.clone(), orders.control.clone());
    let setup = setup(&orders.job, orders.region.extents.len());
    let mut backend = match B::open(members, &setup) {
        Ok(backend) => backend,
        Err(error) => {
            start.fail(error);
            return None;
        }
    };
    let mut done = Vec::with_capacity((setup.slots + setup.flush_slots) as usize);
    let made_ns = clock::now_ns();
    let mut worker = Worker::new(orders, made_ns);
    start.wait();
    let mut now_ns = clock::now_ns();
    worker.postpone(now_ns - made_ns);
    while let Turn::Wait(wait) = worker.turn(now_ns, &mut backend) {
        worker.hand_over(clock::now_ns());
        if let Err(errno) = backend.advance(wait, &mut done) {
            let now_ns = clock::now_ns();
            control.break_down(now_ns, errno);
            worker.drop_pending(now_ns);
            break;
        }
        now_ns = clock::now_ns();
        worker.complete(now_ns, &done);
        done.clear();
        cell.follow(backend.polls(), backend.incidents());
    }
    cell.follow(backend.polls(), backend.incidents());
    backend.reason().map(str::to_owned)
}

fn run_on(cpus: &[u32]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = rustix::thread::CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| {
        Error::input(format!("cannot run on CPUs {cpus:?}: {}", crate::error::describe(&e.into())))
            .hint("name CPUs that are online and that this process may use")
    })
}
