//! Changes that a run makes to the host while it runs, and restores: the members' queue settings, those of
//! the array, and the page cache's budget.

use std::path::PathBuf;

use super::attributes::Attributes;
use super::cgroup::Limited;
use crate::error::Result;
use crate::stack::devices::Drive;
use crate::stack::id::StackId;
use crate::stack::journal::Journal;
use crate::stack::plan::LiveValues;

/// The changes to the host. Without a built stack they have their own journal for as long as anything is
/// changed; dropping this restores everything in it.
#[derive(Debug)]
pub struct Adjustments {
    state_dir: PathBuf,
    profile: String,
    attributes: Attributes,
    cache: Option<Limited>,
    own: Option<Journal>,
    values: LiveValues,
}

impl Adjustments {
    /// For these drives' attributes; changes nothing yet. `profile` is for `stacktune status`.
    pub fn new(state_dir: PathBuf, profile: &str, drives: Vec<Drive>) -> Self {
        Self {
            state_dir,
            profile: profile.to_owned(),
            attributes: Attributes::new(drives),
            cache: None,
            own: None,
            values: LiveValues::default(),
        }
    }

    /// The same, also for the stack's md array of that node and UUID, if it has one.
    #[must_use]
    pub fn with_array(mut self, array: Option<(PathBuf, String)>) -> Self {
        self.attributes.add_array(array);
        self
    }

    /// Applies these values to the host: all of them, or none if it fails. `stack` is the journal of the
    /// built stack. Returns whether the process has come under a budget: pages cached before do not count
    /// against it until dropped.
    ///
    /// # Errors
    /// If the kernel refuses a value, or the journal can't be written.
    pub fn apply(
        &mut self,
        mut stack: Option<&mut Journal>,
        values: &LiveValues,
        cache_limit_bytes: Option<u64>,
    ) -> Result<bool> {
        let before = (self.values.clone(), self.limit_bytes());
        let entered = before.1.is_none() && cache_limit_bytes.is_some();
        let applied = self.bring_to(stack.as_deref_mut(), values, cache_limit_bytes);
        let outcome = applied.map_err(|error| match self.bring_to(stack, &before.0, before.1) {
            Ok(()) => error,
            Err(left) => error.and_then(&left),
        });
        self.end_own_if_idle().and(outcome).map(|()| entered)
    }

    /// Restores everything.
    ///
    /// # Errors
    /// What could not be restored; it stays in the journal for `cleanup`.
    pub fn restore(&mut self, stack: Option<&mut Journal>) -> Result<()> {
        let Some(journal) = stack.or(self.own.as_mut()) else { return Ok(()) };
        let left = self.cache.take().map_or(Ok(()), |cache| cache.leave(journal));
        let restored = self.attributes.restore(journal);
        self.values = LiveValues::default();
        left.and(restored).and(self.end_own_if_idle())
    }

    fn limit_bytes(&self) -> Option<u64> {
        self.cache.as_ref().map(Limited::limit_bytes)
    }

    fn bring_to(
        &mut self,
        stack: Option<&mut Journal>,
        values: &LiveValues,
        limit_bytes: Option<u64>,
    ) -> Result<()> {
        let idle = !self.attributes.would_change(values) && self.limit_bytes() == limit_bytes;
        if idle {
            return Ok(());
        }
        if stack.is_none() && self.own.is_none() {
            let id = StackId::random();
            self.own = Some(Journal::begin(&self.state_dir, &id, &self.profile, &self.attributes.drives())?);
        }
        let Some(journal) = stack.or(self.own.as_mut()) else { return Ok(()) };
        self.attributes.apply(journal, values)?;
        self.values = values.clone();
        match (self.cache.take(), limit_bytes) {
            (None, None) => {}
            (Some(cache), None) => cache.leave(journal)?,
            (None, Some(bytes)) => self.cache = Some(Limited::enter(journal, bytes)?),
            (Some(cache), Some(bytes)) => self.cache.insert(cache).turn(bytes)?,
        }
        Ok(())
    }

    /// Removes its own journal once nothing in it is left to undo.
    fn end_own_if_idle(&mut self) -> Result<()> {
        if self.attributes.is_changed() || self.cache.is_some() {
            return Ok(());
        }
        let nothing = |journal: &Journal| journal.record().entries.iter().all(|e| e.to_undo().is_none());
        match self.own.take() {
            Some(journal) if nothing(&journal) => journal.end(),
            other => {
                self.own = other;
                Ok(())
            }
        }
    }
}

impl Drop for Adjustments {
    fn drop(&mut self) {
        // What can't be restored stays in the journal.
        let _ = self.restore(None);
    }
}
