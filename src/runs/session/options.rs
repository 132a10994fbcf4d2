//! How a session may be opened, besides its settings.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::program::ProgramOptions;
use crate::error::{Error, Result};
use crate::settings::{Layer, Settings};
use crate::stack::guard::Consent;
use crate::stack::id::StackId;

/// How a session may be opened, besides its settings.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Scan and point only; nothing is opened for writing.
    pub read_only: bool,
    /// Devices whose content may be destroyed.
    pub destroy: Vec<String>,
    /// The layers whose commands may be run: all layers of the profile on the command line, or none.
    pub commands: Vec<Layer>,
    /// Whether settings that this host can't satisfy are replaced, with a note (the demo); otherwise they are refused.
    pub fallbacks: bool,
    /// Windows that begin within this time are marked, and left out of totals.
    pub warmup: Duration,
    /// Bytes that this process has written, over all its sessions: opening another profile does not reset the
    /// count, since the disk has taken them all the same.
    pub written_bytes: Arc<AtomicU64>,
    /// What the operator typed for devices whose content may be destroyed.
    pub typed: Vec<String>,
    /// The stack's id and steps that the operator agreed to: nothing else is built.
    pub agreed: Option<(StackId, Vec<String>)>,
    /// Whether pairs are loaded anew, even if the folder holds them.
    pub anew: bool,
    /// Steps of the profile: this run does none of them, which the screen and recordings note.
    pub unused_steps: usize,
    /// Whether cached pages of the target are written back and dropped before the load begins.
    pub uncached: bool,
    /// The load is the settings' program; without this, settings with one are refused.
    pub program: bool,
    /// How the program is run in a session under an operator's commands.
    pub operated: Option<ProgramOptions>,
}

impl Options {
    /// Refuses settings with a program unless it is to be run.
    ///
    /// # Errors
    /// Input, naming the command that runs it.
    pub(super) fn refuse_program(&self, settings: &Settings) -> Result<()> {
        if settings.program.is_none() || self.program {
            return Ok(());
        }
        let what = "the profile's load is a program ([command])";
        Err(Error::input(what).hint("`stacktune run` runs it and measures it"))
    }

    /// Refuses settings with layers whose commands were not allowed.
    ///
    /// # Errors
    /// Input, naming the first.
    pub(super) fn refuse_commands(&self, settings: &Settings) -> Result<()> {
        if !settings.touches_storage() {
            return Ok(());
        }
        Consent::default().and_commands(&self.commands).refuse_commands(&settings.stack.by_commands)
    }
}
