//! A stack that has been built.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::Result;
use crate::stack::journal::Journal;
use crate::stack::plan::{Plan, durations};
use crate::stack::runner::Runner;
use crate::stack::supervise::Watch;
use crate::stack::undo::{Undoer, undo_all};

/// A stack that has been built. Dropping it leaves it to `cleanup`.
#[derive(Debug)]
pub struct Built {
    pub(super) plan: Plan,
    pub(super) journal: Journal,
    pub(super) runner: Runner,
    pub(super) state_dir: PathBuf,
    /// How long each step took; none for a step that was not done completely.
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
        let undoer = Undoer::of((&record.header, &record.entries, record.kept), &self.runner, (true, false));
        let undos = record.entries.iter().rev().filter_map(|entry| entry.to_undo());
        undos.flat_map(|undo| undoer.commands(undo)).collect()
    }

    /// Keeps it in place; returns the commands that remove it, in order.
    pub fn keep(self) -> Result<Vec<String>> {
        let commands = self.commands_down();
        self.journal.keep()?;
        Ok(commands)
    }
}
