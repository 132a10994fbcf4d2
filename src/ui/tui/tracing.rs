//! A trace of the target's drives, made while the load runs: what the screen knows of it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Result;
use crate::runs::session::Tap;
use crate::trace::Live;

/// What the screen knows of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tracing {
    /// Whether one is under way.
    pub is_on: bool,
    /// Where the run takes its figures of each window.
    pub tap: Option<Tap>,
    /// The names of its drives.
    pub drives: Vec<String>,
    /// How the rules were kept, when last reported.
    pub live: Option<Arc<Live>>,
}

impl Tracing {
    /// Whether one is under way.
    pub fn is_on(&self) -> bool {
        self.is_on
    }
}

/// News of a trace.
#[derive(Debug, Clone)]
pub enum Said {
    /// Drives of these names are traced from now on; each window's figures can be taken there.
    Began(Vec<String>, Tap),
    /// How the rules are kept.
    Live(Arc<Live>),
    /// It has ended: what was traced, or why nothing was.
    Ended(Result<String>),
}

/// What is asked of a trace.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// Trace these drives, by their folders in sysfs, on these processors.
    Begin(Vec<PathBuf>, Vec<u32>),
    /// End the trace and keep it: in this recording, or else in a new folder named after this profile.
    End(Option<PathBuf>, String),
}
