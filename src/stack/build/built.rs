//! A stack that has been built.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::stack::journal::Journal;
use crate::stack::plan::{Plan, durations};
use crate::stack::runner::Runner;
use crate::stack::supervise::Watch;
use crate::stack::tuning::FailingArray;
use crate::stack::undo::{Undoer, undo_all};

/// A stack that has been built. Dropping it leaves it to `cleanup`.
#[derive(Debug)]
pub struct Built {
    pub(super) plan: Plan,
    pub(super) journal: Journal,
    pub(super) runner: Runner,
    pub(super) state_dir: PathBuf,
    /// How long each step took; none for a step that was done only in part.
    pub(super) times: Vec<Option<Duration>>,
}

impl Built {
    /// The plan by which it was built.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Remembers how long a complete fill took.
    pub fn filled_in(&self, time: Duration) {
        let times = [self.times.as_slice(), &[Some(time)]].concat();
        durations::keep(&self.state_dir, &self.plan, &times);
    }

    /// The array whose member can be failed, in the state in which an earlier session left it; none if it has
    /// no array.
    pub fn failing_array(&self) -> Option<FailingArray> {
        FailingArray::of(&self.plan, &self.journal, &self.runner)
    }

    /// Its journal, which also takes other settings made for the stack (queue settings, cgroups).
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Takes it down, last step first. Nothing that it made is left.
    ///
    /// # Errors
    /// What could not be removed, and why; it stays in the journal for `cleanup`.
    pub fn tear_down(self, watch: Watch) -> Result<()> {
        undo_all(self.journal, &self.runner, watch)
    }

    /// The commands that do what [`Built::tear_down`] does, in order.
    pub fn commands_down(&self) -> Vec<String> {
        let record = self.journal.record();
        let undoer =
            Undoer::of((&record.header, &record.entries, record.retained), &self.runner, (true, false));
        let undos = record.entries.iter().rev().filter_map(|entry| entry.to_undo());
        undos.flat_map(|undo| undoer.commands(undo)).collect()
    }

    /// Keeps it in place; returns the commands that remove it, in order. A member of its array that was
    /// failed on purpose is replaced; md then rebuilds the array by itself.
    ///
    /// # Errors
    /// Also if the member can't be replaced; the stack is retained all the same, and `status` names the member.
    pub fn keep(mut self) -> Result<Vec<String>> {
        let whole = self.failing_array().map_or(Ok(()), |mut array| array.make_whole(&mut self.journal));
        let commands = self.commands_down();
        self.journal.keep()?;
        whole.map_err(|error| {
            let what = format!("the stack is retained, but its array stays degraded: {}", error.what);
            Error { what, ..error }
        })?;
        Ok(commands)
    }
}
