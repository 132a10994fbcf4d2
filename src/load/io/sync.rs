//! `sync`: `preadv2` and `pwritev2`, which block the calling thread; one worker per outstanding I/O. Flushes
//! of several files run in parallel, each but the first in a helper thread.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread::{JoinHandle, Thread};

use rustix::io::Errno;

use super::backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use super::buffers::Buffers;
use super::clock;
use super::files::Files;
use crate::error::Result;
use crate::meter::processors::tasks::SERVES;
use crate::threads;

/// Blocking system calls.
#[derive(Debug)]
pub struct SyncIo {
    files: Arc<Files>,
    buffers: Buffers,
    queued: Vec<Op>,
    flushers: Vec<Flusher>,
}

impl Queue for SyncIo {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.get(slot)
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        self.queued.push(op);
    }
}

impl Backend for SyncIo {
    type Members = Files;

    fn open_members(request: &OpenRequest) -> Result<Files> {
        Files::open(request)
    }

    fn open(files: &Arc<Files>, setup: &Setup) -> Result<Self> {
        let helpers = setup.flush_slots.min(files.len() as u32).saturating_sub(1);
        let flushers = (0..helpers).map(|_| Flusher::start(files.clone())).collect::<Result<_>>()?;
        Ok(Self {
            files: files.clone(),
            buffers: Buffers::new(setup.slots, setup.page_bytes),
            queued: Vec::with_capacity((setup.slots + setup.flush_slots) as usize),
            flushers,
        })
    }

    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        if self.queued.is_empty() {
            clock::sleep_until(wait.until_ns.unwrap_or(0));
            return Ok(());
        }
        let flushes = self.queued.iter().filter(|op| op.kind == OpKind::Flush).count();
        if flushes > 1 {
            self.flush_side_by_side(done);
            return Ok(());
        }
        while let Some(op) = self.queued.pop() {
            done.push(Done { slot: op.slot, result: self.perform(op) });
        }
        Ok(())
    }
}

impl SyncIo {
    fn perform(&mut self, op: Op) -> i32 {
        let flags = self.files.rw_flags(op.kind);
        let fd = self.files.fd(op.file);
        let buffer = match op.kind {
            OpKind::Flush => return result(rustix::fs::fdatasync(fd).map(|()| 0)),
            _ => self.buffers.get(op.slot),
        };
        loop {
            let moved = match op.kind {
                OpKind::Read => {
                    rustix::io::preadv2(fd, &mut [IoSliceMut::new(buffer)], op.offset_bytes, flags)
                }
                _ => rustix::io::pwritev2(fd, &[IoSlice::new(buffer)], op.offset_bytes, flags),
            };
            if moved != Err(Errno::INTR) {
                return result(moved);
            }
        }
    }

    /// Flushes all queued files in parallel; only flushes are queued.
    fn flush_side_by_side(&mut self, done: &mut Vec<Done>) {
        let (own, others) = self.queued.split_first().expect("there are several");
        for (flusher, op) in self.flushers.iter().zip(others) {
            flusher.ask(op.file);
        }
        let first = result(rustix::fs::fdatasync(self.files.fd(own.file)).map(|()| 0));
        done.push(Done { slot: own.slot, result: first });
        for (flusher, op) in self.flushers.iter().zip(others) {
            done.push(Done { slot: op.slot, result: flusher.answer() });
        }
        self.queued.clear();
    }
}

fn result(moved: std::result::Result<usize, Errno>) -> i32 {
    moved.map_or_else(|e| -e.raw_os_error(), |bytes| bytes as i32)
}

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const ANSWERED: u32 = 2;
const LEAVE: u32 = 3;

/// A thread that flushes one file on request. Request and reply take no lock.
#[derive(Debug)]
struct Flusher {
    shared: Arc<FlusherState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct FlusherState {
    state: AtomicU32,
    file: AtomicU32,
    result: AtomicI32,
    owner: Thread,
}

impl Flusher {
    fn start(files: Arc<Files>) -> Result<Self> {
        let shared = Arc::new(FlusherState {
            state: AtomicU32::new(IDLE),
            file: AtomicU32::new(0),
            result: AtomicI32::new(0),
            owner: std::thread::current(),
        });
        let theirs = shared.clone();
        // The name tells the meters which thread it works for.
        let name = format!("{SERVES}{}", rustix::thread::gettid().as_raw_nonzero());
        let thread = std::thread::Builder::new()
            .name(name)
            .stack_size(64 << 10)
            .spawn(move || theirs.serve(&files))
            .map_err(|error| threads::refused("flush", &error))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    fn post(&self, state: u32) {
        self.shared.state.store(state, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    fn ask(&self, file: u32) {
        self.shared.file.store(file, Ordering::Relaxed);
        self.post(ASKED);
    }

    fn answer(&self) -> i32 {
        while self.shared.state.load(Ordering::Acquire) != ANSWERED {
            std::thread::park();
        }
        self.shared.result.load(Ordering::Relaxed)
    }
}

impl FlusherState {
    fn serve(&self, files: &Files) {
        loop {
            match self.state.load(Ordering::Acquire) {
                ASKED => {
                    let file = self.file.load(Ordering::Relaxed);
                    let flushed = rustix::fs::fdatasync(files.fd(file)).map(|()| 0);
                    self.result.store(result(flushed), Ordering::Relaxed);
                    self.state.store(ANSWERED, Ordering::Release);
                    self.owner.unpark();
                }
                LEAVE => return,
                _ => std::thread::park(),
            }
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.post(LEAVE);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
