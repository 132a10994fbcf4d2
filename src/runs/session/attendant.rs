//! Who waits while a session is opened.

use super::message::{Advance, PlanShown, Progress, Wanted};
use crate::error::Result;
use crate::meter::Member;

/// Who waits while a session is opened.
pub trait Attendant {
    /// A long step makes progress. Returns whether it may continue.
    fn progress(&mut self, progress: Progress) -> bool;
    /// A sentence for the operator.
    fn notice(&mut self, text: &str);
    /// A sentence about a long step that is of no interest after it, or next to its progress.
    fn passing(&mut self, text: &str) {
        self.notice(text);
    }
    /// Devices hold data: returns what the operator types, or none if nobody can be asked.
    fn consent(&mut self, wanted: Vec<Wanted>) -> Option<Vec<String>>;
    /// The build destroys data: returns what the operator types, or none if nobody can be asked.
    fn plan(&mut self, plan: PlanShown) -> Option<Vec<String>>;
    /// A step of building or taking down makes progress. Returns whether it may continue.
    fn step(&mut self, advance: &Advance) -> bool;
    /// The target is open and filled, and the load begins when this returns; returns notes about that moment.
    ///
    /// # Errors
    /// Why it must not begin.
    fn before_load(&mut self, members: &[Member]) -> Result<Vec<String>> {
        let _ = members;
        Ok(Vec::new())
    }
    /// Whether a stack stays if its target can't be opened because the operator quits.
    fn keeps(&mut self) -> bool {
        false
    }
    /// A stack stays: these commands remove it.
    fn kept(&mut self, _commands: Vec<String>) {}
}
