//! The `[io]` table: how I/O reaches storage, the defaults of all classes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cpus::Cpus;
use crate::settings::interface::Interface;
use crate::settings::named::Named;

/// Which cache an I/O goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Buffering {
    /// Through the page cache.
    Cached,
    /// `O_DIRECT`, past the page cache.
    Direct,
    /// Buffered with drop-behind (`RWF_DONTCACHE`).
    Uncached,
}

/// The `[io]` table: defaults of all classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Io {
    /// See [`Interface`].
    pub interface: Interface,
    /// See [`Buffering`].
    pub buffering: Buffering,
    /// Bytes of a page; a power of two from 512 B to 1 MiB.
    pub page_size_bytes: u64,
    /// Register the buffers with the ring (`io_uring` only).
    pub registered_buffers: bool,
    /// Register the files with the ring (`io_uring` only).
    pub registered_files: bool,
    /// How completions arrive (rings only).
    pub completion: Completion,
    /// How I/Os are submitted (rings only).
    pub submission: Submission,
    /// When the kernel completes a ring's I/Os in the worker's thread (rings only).
    pub setup: RingSetup,
    /// The priority of the I/Os, where the scheduler acts on it.
    pub prio: Prio,
    /// With `sqpoll`, how long the kernel thread polls without work before it sleeps.
    pub sqpoll_idle: Duration,
    /// With `sqpoll`, the CPU of the kernel's thread.
    pub sqpoll_cpu: Cpus,
    /// Sleep after an empty poll; zero means none.
    pub poll_sleep: Duration,
    /// Whether drives may leave the kernel without an IOMMU that confines their memory accesses.
    pub unsafe_noiommu: bool,
}

/// How completions arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Completion {
    /// The device interrupts.
    Interrupt,
    /// The device's completion queue is polled (`IORING_SETUP_IOPOLL`).
    Iopoll,
}

/// How I/Os are submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Submission {
    /// A system call for each batch.
    Call,
    /// A thread of the kernel polls the submission queue (`IORING_SETUP_SQPOLL`).
    Sqpoll,
}

/// When the kernel does its part of a completion in the worker's thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RingSetup {
    /// As [`Self::Coop`] where the kernel has that, else as [`Self::Plain`].
    #[default]
    Default,
    /// At once: the thread is interrupted.
    Plain,
    /// When the thread next enters the kernel (`IORING_SETUP_COOP_TASKRUN`, Linux 5.19).
    Coop,
    /// When the thread asks for completions (`IORING_SETUP_DEFER_TASKRUN` and `SINGLE_ISSUER`, Linux 6.1).
    Defer,
}

/// The priority of I/Os (`ioprio_set(2)`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Prio {
    /// None: the scheduler takes the thread's nice value.
    #[default]
    None,
    /// Served only when nobody else has I/O.
    Idle,
    /// Best effort, level 7.
    Low,
    /// Best effort, level 0.
    High,
    /// Real time, level 4: before all others.
    Realtime,
}

impl Named for RingSetup {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Default, "default", "coop where the kernel has it, else plain"),
        (Self::Plain, "plain", "a completion interrupts the worker's thread"),
        (Self::Coop, "coop", "completed when the thread next enters the kernel (COOP_TASKRUN)"),
        (Self::Defer, "defer", "completed when the thread asks for completions (DEFER_TASKRUN)"),
    ];
}

impl Named for Prio {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::None, "none", "no priority of its own"),
        (Self::Idle, "idle", "served when no other I/O waits"),
        (Self::Low, "low", "best effort, the lowest level"),
        (Self::High, "high", "best effort, the highest level"),
        (Self::Realtime, "realtime", "before all others"),
    ];
}

impl Named for Buffering {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Cached, "cached", "through the page cache"),
        (Self::Direct, "direct", "O_DIRECT, bypassing the page cache"),
        (Self::Uncached, "uncached", "buffered with drop-behind (RWF_DONTCACHE)"),
    ];
}

impl Named for Completion {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Interrupt, "interrupt", "the device interrupts"),
        (Self::Iopoll, "iopoll", "the device's completion queue is polled"),
    ];
}

impl Named for Submission {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Call, "call", "a system call for each batch"),
        (Self::Sqpoll, "sqpoll", "a kernel thread polls the submission queue"),
    ];
}
