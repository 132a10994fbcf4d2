//! The load's view of an interface: operations, the queue they enter, and the backend that performs them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Result;
use crate::load::volume::Identity;
use crate::meter::counts::counters::{Incidents, Polls};
use crate::settings::{Buffering, RingSetup};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// Reads a page.
    Read,
    /// Writes a page.
    Write,
    /// Writes a page that is durable on completion (`RWF_DSYNC`, FUA).
    WriteDurable,
    /// Makes all completed writes to the file durable (fdatasync).
    Flush,
}

/// An operation; its buffer has the same number as its slot.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    /// The slot; the slots of flushes follow those with buffers.
    pub slot: u32,
    /// What to do.
    pub kind: OpKind,
    /// The file's index.
    pub file: u32,
    /// The offset.
    pub offset_bytes: u64,
}

/// An operation that is complete.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// The slot.
    pub slot: u32,
    /// Bytes moved, or the negative errno.
    pub result: i32,
}

/// What to wait for after submitting the queued operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// This many completions; 0 only if nothing is outstanding.
    pub completions: u32,
    /// Until this time of the monotonic clock, if it comes first.
    pub until_ns: Option<u64>,
}

/// What a worker requires of its interface.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Bytes of a page and of each buffer.
    pub page_bytes: usize,
    /// Buffers, one for each outstanding I/O.
    pub slots: u32,
    /// Flushes that can be outstanding in addition.
    pub flush_slots: u32,
    /// Register buffers with the ring.
    pub registered_buffers: bool,
    /// Register files with the ring.
    pub registered_files: bool,
    /// When completion work runs in the worker's thread (rings only).
    pub ring_setup: RingSetup,
    /// Poll the device's completion queue (rings only).
    pub iopoll: bool,
    /// Have a kernel thread poll the submission queue (rings only): it sleeps after this many milliseconds
    /// without work, and runs on this CPU if one is named.
    pub sqpoll: Option<(u32, Option<u32>)>,
    /// Sleep after an empty poll, for interfaces that poll; 0 means none.
    pub poll_sleep_ns: u64,
}

/// Which members to open, and how.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The files or devices, by the index that operations use.
    pub paths: Vec<PathBuf>,
    /// The file or device that each path must still lead to, if known.
    pub identities: Vec<Option<Identity>>,
    /// Whether they are written.
    pub writable: bool,
    /// The cache that the I/O goes through.
    pub buffering: Buffering,
}

/// Where a worker queues its operations.
pub trait Queue {
    /// The buffer of a slot without an outstanding operation.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// Adds an operation, to be submitted by the next [`Backend::advance`]. There is room for one operation
    /// per slot.
    fn queue(&mut self, op: Op);
}

/// An interface as used by a worker on a real-time clock.
pub trait Backend: Queue + Sized {
    /// The opened members, shared by a class's workers.
    type Members: Send + Sync + 'static;

    /// Opens the members.
    fn open_members(request: &OpenRequest) -> Result<Self::Members>;

    /// Sets up a worker's side, in the worker's own thread.
    fn open(members: &Arc<Self::Members>, setup: &Setup) -> Result<Self>;

    /// Submits the queued operations, waits, and appends completions to `done`.
    ///
    /// # Errors
    /// The errno of a failure of the interface itself, after which it can't continue. Failures of single
    /// operations are completions.
    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32>;

    /// Its polls so far, for interfaces that poll.
    fn polls(&self) -> Polls {
        Polls::default()
    }

    /// Timeouts and resets so far, for interfaces that supervise their commands.
    fn incidents(&self) -> Incidents {
        Incidents::default()
    }

    /// Why [`Self::advance`] failed, if more is known than the errno.
    fn reason(&self) -> Option<&str> {
        None
    }
}
