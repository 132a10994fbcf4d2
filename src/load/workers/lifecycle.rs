//! A session's view of the workers: it starts and stops them, and asks what they are doing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::observer::Observer;
use crate::class::Class;
use crate::error::Result;
use crate::host::FlashWrites;
use crate::load::io::clock;
use crate::meter::source::Source;
use crate::settings::jobs::Job;

/// What a class's workers are doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// There are no workers.
    Idle,
    /// They do I/O.
    Running,
    /// Stopping, and I/O is still outstanding.
    Draining,
    /// Ended after too many errors: the errno.
    Tripped(i32),
    /// Ended because nothing more may be written.
    Exhausted,
    /// Ended because the interface itself failed: the reason.
    Broken(String),
    /// Ended because one of them panicked: its message.
    Panicked(String),
    /// Ended with their process: why that ended.
    Gone(String),
}

impl Activity {
    /// Whether I/O is outstanding, or will be.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Running | Self::Draining)
    }
}

/// Starts and stops the workers of each class. Dropping it stops them all and waits for them to end.
pub trait Workers {
    /// Starts a class, which must be idle, on these CPUs (none means any). Returns the sources of its counts.
    ///
    /// # Errors
    /// Why it can't be started.
    fn start(&mut self, job: &Job, cpus: &[u32]) -> Result<Vec<Box<dyn Source>>>;

    /// Observes the I/Os of all workers that start from now on; none if they are not in this process.
    fn observe(&mut self) -> Option<Arc<Observer>> {
        None
    }

    /// Makes a class's workers drain and end.
    fn stop(&mut self, class: Class);

    /// What a class's workers are doing. Removes workers that have ended.
    fn activity(&mut self, class: Class) -> Activity;

    /// The clock of the workers.
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    /// Whether time passes only in [`Self::run_until`].
    fn is_simulated(&self) -> bool {
        false
    }

    /// Runs a simulation up to that time; real time passes on its own.
    fn run_until(&mut self, _ns: u64) {}

    /// What modelled drives have written to their flash since the workers began; `None` without such drives.
    fn flash_writes(&self) -> Option<FlashWrites> {
        None
    }
}
