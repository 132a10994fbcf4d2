//! Endings in progress: a run whose last window is not yet made, or a recording.

use crate::host::TargetFacts;
use crate::meter::context::WindowContext;
use crate::meter::meters::Reading;

/// Endings in progress.
#[derive(Default)]
pub(in crate::runs::session) struct Ending {
    /// The run: its last window has been read but not yet made.
    pub run: Option<Last>,
    /// When the end of the recording was requested while the load goes on, on the workers' clock.
    pub recording_ns: Option<u64>,
}

/// The last window of a run.
pub(in crate::runs::session) struct Last {
    pub reading: Reading,
    /// Its context, without the target.
    pub context: WindowContext<'static>,
    pub target: Option<TargetFacts>,
    /// When it ended, on the workers' clock.
    pub end_ns: u64,
}
