//! A program as the load of a session under an operator's commands.

use super::how::ProgramOptions;
use crate::error::Result;
use crate::runs::session::run::Session;

impl Session {
    /// How the session's program is run; none if the classes are the load, or nobody operates the session.
    fn operated(&self) -> Option<ProgramOptions> {
        self.resolved.options.operated.clone()
    }

    /// Begins the program and its measured part, if an operator's session has one.
    ///
    /// # Errors
    /// As [`Self::begin_program`].
    pub(in crate::runs::session) fn begin_operated(
        &mut self,
        notice: &mut dyn FnMut(&str),
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let Some(options) = self.operated() else { return Ok(()) };
        self.begin_program(options, notice, goes_on)?;
        self.run_program()
    }

    /// Restarts the measured part if it has ended by itself: an operator watches until he ends it.
    pub(in crate::runs::session) fn run_again(&mut self) {
        let ended_well = |running: &mut super::Running| {
            running.asked.is_none()
                // It would start with the old value.
                && !running.is_turning()
                && running.run.as_mut().is_some_and(|run| run.ended().is_some_and(|status| status.success()))
        };
        if self.operated().is_none() || !self.program.as_mut().is_some_and(ended_well) {
            return;
        }
        self.notice("command.run has ended, and begins again".to_owned());
        self.schedule.turned = true;
        if let Err(error) = self.run_program() {
            self.notice(error.one_line());
        }
    }
}
