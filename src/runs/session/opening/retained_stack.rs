//! A stack kept between two sessions.

use super::target_stack::give_up;
use super::write_maps;
use crate::error::{Error, Result};
use crate::runs::session::attendant::Attendant;
use crate::settings::change::TargetIdentity;
use crate::stack::build::Built;
use crate::stack::supervise::Watch;

/// A stack that one session leaves to the next; or none. Dropping it leaves it to `cleanup`.
#[derive(Debug, Default)]
pub struct RetainedStack {
    stands: Option<(Built, TargetIdentity)>,
    /// The data set of pages on it, whose write map is removed with it.
    set: Option<u64>,
}

impl RetainedStack {
    /// Whether there is a stack.
    pub fn stands(&self) -> bool {
        self.stands.is_some()
    }

    /// Whether there is a stack that was built for another target.
    pub fn is_other_than(&self, target: &TargetIdentity) -> bool {
        self.stands.as_ref().is_some_and(|(_, of)| !of.is_same(target))
    }

    /// Takes it down.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn tear_down(&mut self, watch: Watch) -> Result<()> {
        let torn_down = self.stands.take().map_or(Ok(()), |(built, _)| built.tear_down(watch));
        if let Some(set) = self.set.take().filter(|_| torn_down.is_ok()) {
            write_maps::forget(set);
        }
        torn_down
    }

    /// Leaves it in place for good; returns the commands that remove it.
    pub fn keep(&mut self) -> Result<Vec<String>> {
        self.stands.take().map_or(Ok(Vec::new()), |(built, _)| built.keep())
    }

    /// Leaves a stack to the next session, or to be taken down.
    pub(in crate::runs::session) fn put(&mut self, built: Built, target: TargetIdentity) {
        self.stands = Some((built, target));
    }

    /// Sets the data set of pages that is on it.
    pub(in crate::runs::session) fn holds(&mut self, set: Option<u64>) {
        self.set = set;
    }

    /// The stack for this target; none if there is no stack.
    ///
    /// # Errors
    /// If the stack was built for another target.
    pub(in crate::runs::session) fn take_for(&mut self, target: &TargetIdentity) -> Result<Option<Built>> {
        if self.is_other_than(target) {
            return Err(Error::failed("there is another stack on these drives").hint("take that down first"));
        }
        Ok(self.stands.take().map(|(built, _)| built))
    }

    /// Takes it down because of an error, and reports both if that fails too.
    pub(in crate::runs::session) fn give_up(&mut self, error: Error, attendant: &mut dyn Attendant) -> Error {
        match self.stands.take() {
            Some((built, _)) => give_up(built, error, attendant),
            None => error,
        }
    }
}
