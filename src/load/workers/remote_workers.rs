//! Workers of another process, as the engine knows them.

use super::engine::Activity;
use crate::class::Class;
use crate::error::Result;
use crate::meter::source::Source;
use crate::settings::jobs::Job;

/// A process that runs workers for this one's engine.
pub trait RemoteWorkers: Send {
    /// Starts a class there on these CPUs (none is any). Returns what tells of what its workers count.
    ///
    /// # Errors
    /// Why it can't be started there.
    fn start(&mut self, plan: &Job, cpus: &[u32]) -> Result<Box<dyn Source>>;

    /// Tells a class's workers to drain and end.
    fn stop(&mut self, class: Class);

    /// What a class's workers are doing there; [`Activity::Gone`] once for each class that ran when the
    /// process went.
    fn activity(&mut self, class: Class) -> Activity;

    /// Ends all workers, and returns when none is left.
    fn end(&mut self);
}
