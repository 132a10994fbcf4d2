//! Building a stack step by step, and taking it down: each undo is in the journal before its step acts.

use super::plan::{Confirmed, Plan};
use crate::error::Result;

/// How far a build or a tear-down is.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// The step's number, from 0.
    pub step: usize,
    /// Of so many.
    pub steps: usize,
    /// The command that runs, as the plan showed it.
    pub command: String,
    /// Bytes done and to do, where the step counts any.
    pub bytes: Option<(u64, u64)>,
}

/// Who watches: returns whether it may go on. A step in progress is finished or undone, and then
/// everything before it is.
pub type Watch<'a> = &'a mut dyn FnMut(&Advance) -> bool;

/// A stack that stands. Dropping it leaves it to `cleanup`.
#[derive(Debug)]
pub struct Built {
    plan: Plan,
}

/// Builds.
///
/// # Errors
/// Where a step fails, with the tool's own words; everything before it is undone by then, or what
/// could not be is named.
pub fn build(confirmed: Confirmed, watch: Watch) -> Result<Built> {
    let _ = (confirmed, watch);
    todo!()
}

impl Built {
    /// The plan that it was built by.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes it down, in reverse. Nothing that it made is left.
    pub fn tear_down(self, watch: Watch) -> Result<()> {
        let _ = watch;
        todo!()
    }

    /// Leaves it standing; the commands that remove it, in order.
    pub fn keep(self) -> Result<Vec<String>> {
        todo!()
    }
}
