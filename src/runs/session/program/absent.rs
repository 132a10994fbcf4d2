//! The program of a session in a build that runs none.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::meter::programs::program::ProgramFigures;
use crate::runs::session::run::Session;
use crate::runs::session::targets::Target;
use crate::runs::session::turning::turns::TurnedBy;

/// There never is one.
pub(in crate::runs::session) enum Running {}

impl Running {
    pub(in crate::runs::session) fn end(self, _: &mut Target, _: &mut dyn FnMut() -> bool) -> Result<()> {
        match self {}
    }

    pub(in crate::runs::session) fn printed(&self) -> Vec<String> {
        match *self {}
    }

    pub(in crate::runs::session) fn keep_log_in(&self, _: &Path) -> Result<()> {
        match *self {}
    }

    pub(in crate::runs::session) fn end_log(&self) -> Result<()> {
        match *self {}
    }

    pub(in crate::runs::session) fn is_turning(&self) -> bool {
        match *self {}
    }

    pub(in crate::runs::session) fn has_ended_early(&self) -> bool {
        match *self {}
    }

    pub(in crate::runs::session) fn groups(&self) -> Vec<PathBuf> {
        match *self {}
    }
}

impl Session {
    /// Kills everything of the program at once.
    pub fn kill_program(&mut self) {}

    pub(in crate::runs::session) fn begin_operated(
        &mut self,
        _: &mut dyn FnMut(&str),
        _: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        Ok(())
    }

    pub(in crate::runs::session) fn turn_own(
        &mut self,
        _: &str,
        _: &str,
        _: TurnedBy,
    ) -> std::result::Result<bool, String> {
        Err("there is no program".to_owned())
    }

    pub(in crate::runs::session) fn run_again(&mut self) {}

    pub(in crate::runs::session) fn run_program(&mut self) -> Result<()> {
        Ok(())
    }

    pub(in crate::runs::session) fn look_at_program(&mut self) {}

    pub(in crate::runs::session) fn has_program_ended(&mut self) -> bool {
        false
    }

    pub(in crate::runs::session) fn is_program_over(&mut self) -> bool {
        true
    }

    pub(in crate::runs::session) fn program_figures(&mut self) -> Option<ProgramFigures> {
        None
    }
}
