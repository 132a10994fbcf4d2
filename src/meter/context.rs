//! What the meters must know about a window besides the counts.

use std::collections::BTreeMap;

use super::counts::engine::EngineFigures;
use super::programs::program::ProgramFigures;
use super::window::ClassState;
use crate::class::Class;
use crate::host::{FlashWrites, TargetFacts};
use crate::settings::interface::Interface;
use crate::settings::{ArrayState, Buffering};

/// The settings of a class in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassContext {
    /// Its state at the end of the window.
    pub state: ClassState,
    /// Whether I/O of an earlier setting was in flight when the window began, even if it has drained since.
    pub drained: bool,
    /// How its I/O enters the kernel, or bypasses it.
    pub interface: Interface,
    /// Which cache its I/O goes through.
    pub buffering: Buffering,
    /// Its rate, if it has one.
    pub rate_bytes_per_s: Option<u64>,
    /// Bytes that it can have in flight at once.
    pub in_flight_bytes_max: u64,
}

/// What a trace of the drives says about a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ByTrace {
    /// See [`super::window::Window::traced`].
    pub figures: BTreeMap<String, f64>,
    /// See [`super::window::Window::traced_p99_ns`].
    pub p99_ns: Option<u64>,
}

/// Which attributes the run itself may have set: turning one knob may change other attributes of its device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tuned {
    /// Attributes of the drives' queues.
    pub queues: bool,
    /// Attributes of the stack's md array.
    pub md: bool,
}

impl Tuned {
    /// Whether a change of what this knob turns may be the run's own doing.
    pub fn may_have_set(self, knob: &str) -> bool {
        (self.queues && knob.starts_with("queue.")) || (self.md && knob.starts_with("md."))
    }
}

/// What the meters must know about a window besides the counts.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowContext<'a> {
    /// The window's end on the run's clock.
    pub now_ns: u64,
    /// The run's time 0 on the workers' clock.
    pub began_ns: u64,
    /// How late the window ended; 0 if it was early.
    pub late_ns: u64,
    /// The intended length of a window.
    pub window_ns: u64,
    /// See [`super::window::Window::setting`].
    pub setting: u64,
    /// See [`super::window::Window::turned`].
    pub turned: bool,
    /// See [`super::window::Window::warmup`].
    pub warmup: bool,
    /// See [`super::window::Window::paused`].
    pub paused: bool,
    /// The classes, by [`Class::index`].
    pub classes: [ClassContext; 4],
    /// The state that the stack's array was asked to be in.
    pub array: ArrayState,
    /// Whether the WAL's commits survive a crash (its sync is not `none`).
    pub wal_durable: bool,
    /// Bytes of the data that scan, point and background share.
    pub data_bytes: u64,
    /// Memory available to the page cache: the host's, or its budget.
    pub memory_bytes: u64,
    /// The opened target; none in simulated runs.
    pub target: Option<&'a TargetFacts>,
    /// Whether it reads pages that were never written (read-only, on a target that we did not fill).
    pub unfilled: bool,
    /// See [`super::window::Window::written_bytes_total`].
    pub written_bytes_total: u64,
    /// Bytes of everything that the load keeps: data and WAL, or keys and values, each counted once.
    pub data_set_bytes: u64,
    /// Whether a storage engine lies between the classes and the target.
    pub pairs: bool,
    /// That engine's figures since it was opened; none while it is closed.
    pub engine: Option<EngineFigures>,
    /// Bytes of its block cache.
    pub block_cache_bytes: u64,
    /// What the program did in the window, if a program is the load; none if the classes are.
    pub program: Option<ProgramFigures>,
    /// Whether that program has ended by itself before its time.
    pub ended_early: bool,
    /// Whether puts fail for lack of space.
    pub full: bool,
    /// Whether the drives are being traced.
    pub traced: bool,
    /// What the run itself may have set in the window.
    pub tuned: Tuned,
    /// The trace's figures for the window.
    pub by_trace: ByTrace,
    /// What modelled drives have written to their flash since they were created; none if no drive is modelled.
    pub flash: Option<FlashWrites>,
}

impl WindowContext<'_> {
    /// Whether the class's I/O goes through the page cache, by its setting or by the file system's choice.
    pub fn through_cache(&self, class: Class) -> bool {
        // How much of a get comes from storage is up to the storage engine, which reads whole blocks.
        if self.pairs {
            return false;
        }
        let context = &self.classes[class.index()];
        let cacheable = context.interface.is_cacheable();
        cacheable && (context.buffering != Buffering::Direct || self.quietly_buffered().is_some())
    }

    /// Whether every running class bypasses the page cache, so that the block layer's count must equal the
    /// workers'.
    pub fn all_direct(&self) -> bool {
        let direct = |class: Class| {
            let context = &self.classes[class.index()];
            let counted = context.interface.through_block_layer();
            context.state == ClassState::Off || (counted && !self.through_cache(class))
        };
        !self.pairs && self.program.is_none() && Class::ALL.into_iter().all(direct)
    }

    /// Whether the block layer sees everything that is written.
    pub fn through_block_layer(&self) -> bool {
        let mut writers = Class::ALL.into_iter().filter(|class| class.writes());
        !writers.any(|class| {
            let context = &self.classes[class.index()];
            context.state != ClassState::Off && !context.interface.through_block_layer()
        })
    }

    /// Whether the block layer sees all of the load's I/O with storage.
    pub fn all_through_block_layer(&self) -> bool {
        let passes_by = |class: &ClassContext| {
            class.state != ClassState::Off
                && class.interface.touches_storage()
                && !class.interface.through_block_layer()
        };
        !self.classes.iter().any(passes_by)
    }

    pub(super) fn quietly_buffered(&self) -> Option<&str> {
        self.target.and_then(|target| target.quietly_buffered.as_deref())
    }
}
