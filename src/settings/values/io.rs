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
