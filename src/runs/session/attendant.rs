//! Who waits while a session is opened.

use super::message::{Advance, PlanShown, Progress, Wanted};
use crate::error::Result;
use crate::meter::Member;

/// Who waits while a session is opened.
pub trait Attendant {
    /// A long step goes on. Returns whether it may.
    fn progress(&mut self, progress: Progress) -> bool;
    /// A sentence for the operator.
    fn notice(&mut self, text: &str);
    /// A sentence about a long step that nobody needs after it, or beside its progress.
    fn passing(&mut self, text: &str) {
        self.notice(text);
    }
    /// Devices hold something: what the operator types, or none if nobody can be asked.
    fn consent(&mut self, wanted: Vec<Wanted>) -> Option<Vec<String>>;
    /// What is to be built destroys something: what the operator types, or none if nobody can be asked.
    fn plan(&mut self, plan: PlanShown) -> Option<Vec<String>>;
    /// A step of building or taking down goes on. Returns whether it may.
    fn step(&mut self, advance: &Advance) -> bool;
    /// The target is open and filled, and the load begins with the return; what to note of that moment.
    ///
    /// # Errors
    /// What forbids that it begins.
    fn before_load(&mut self, members: &[Member]) -> Result<Vec<String>> {
        let _ = members;
        Ok(Vec::new())
    }
    /// Whether what was built stays where its target can't be opened, as the operator quits.
    fn keeps(&mut self) -> bool {
        false
    }
    /// What was built stays: the commands that remove it.
    fn kept(&mut self, _commands: Vec<String>) {}
}
