//! What the settings change of the host itself while a session lasts: queues and the page cache's
//! budget.

use std::thread::JoinHandle;

use super::classes::{drop_cached, paths_of};
use super::run::{Options, Session};
use super::target::Target;
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::settings::{QueueSettings, Settings};
use crate::stack::build::Built;
use crate::stack::devices::Drive;
use crate::stack::paths::state_dir;
use crate::stack::plan::queue_values;
use crate::stack::runner::Runner;
use crate::stack::tuning::{Adjustments, drives_of};

/// Brings the host to what the settings of a session that begins say.
pub(super) fn begin(
    settings: &Settings,
    options: &Options,
    facts: &Facts,
    target: &mut Target,
) -> Result<Adjustments> {
    let (queue, limit_bytes) = (&settings.queue, settings.run.cache_limit_bytes);
    if options.read_only && *queue != QueueSettings::default() {
        let what = "queue.* would be set on devices that --read-only leaves to those who use them";
        return Err(Error::input(what).hint("leave queue.* out, or leave --read-only out"));
    }
    let drives = drives(settings, facts, target)?;
    let mut adjustments = Adjustments::new(state_dir(), &settings.name, drives);
    let entered =
        adjustments.apply(target.built.as_mut().map(Built::journal), &queue_values(queue), limit_bytes)?;
    if (entered || options.uncached) && target.is_cacheable() {
        let paths = [paths_of(&target.data), paths_of(&target.wal)].concat();
        drop_cached(&paths).map_err(|error| {
            Error::failed(format!(
                "what is cached of the target could not be dropped: {}",
                crate::error::describe(&error)
            ))
        })?;
    }
    Ok(adjustments)
}

/// Memory that the page cache can have of the target.
pub(super) fn cache_bytes_max(settings: &Settings, facts: &Facts) -> u64 {
    settings.run.cache_limit_bytes.unwrap_or(u64::MAX).min(facts.memory_bytes)
}

/// The drives below the target, of which the queues can be set; none below files as they are.
fn drives(settings: &Settings, facts: &Facts, target: &Target) -> Result<Vec<Drive>> {
    if let Some(built) = &target.built {
        return drives_of(built.plan(), &Runner::default());
    }
    if !settings.touches_storage() {
        return Ok(Vec::new());
    }
    let mut drives = Vec::new();
    let wal = settings.wal.target.iter().filter(|name| facts.find(name).is_ok());
    for name in settings.target.devices.iter().chain(wal) {
        let drive = Drive::of(facts.find(name)?);
        if !drives.contains(&drive) {
            drives.push(drive);
        }
    }
    Ok(drives)
}

impl Session {
    /// Changes of the host what the settings change of it; nothing where that fails, with the reason.
    pub(super) fn adjust(&mut self, settings: &Settings) -> std::result::Result<(), String> {
        let limit_bytes = settings.run.cache_limit_bytes;
        if settings.queue == self.settings.queue && limit_bytes == self.settings.run.cache_limit_bytes {
            return Ok(());
        }
        if self.options.read_only && settings.queue != self.settings.queue {
            return Err("the run is read-only: the queues belong to those who use the devices".into());
        }
        let journal = self.target.built.as_mut().map(Built::journal);
        let applied = self.adjustments.apply(journal, &queue_values(&settings.queue), limit_bytes);
        if applied.map_err(|error| error.one_line())? && self.target.is_cacheable() {
            // What was cached before counts against no budget, and would serve reads for ever.
            let paths = [paths_of(&self.target.data), paths_of(&self.target.wal)].concat();
            self.dropping = Some(std::thread::spawn(move || drop_cached(&paths)));
        }
        Ok(())
    }

    /// Tells where the cache could not be dropped. Returns whether it is still being dropped.
    pub(super) fn is_dropping(&mut self) -> bool {
        match self.dropping.take_if(|thread| thread.is_finished()).map(JoinHandle::join) {
            Some(Ok(Err(error))) => {
                let why = crate::error::describe(&error);
                self.notice(format!("what is cached of the target could not be dropped: {why}"));
            }
            Some(Err(_)) => self.notice("what is cached of the target was not dropped".into()),
            Some(Ok(Ok(()))) | None => {}
        }
        self.dropping.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    #[test]
    fn the_page_cache_can_have_no_more_than_its_budget_or_what_there_is() {
        let facts = Facts { memory_bytes: 1 << 30, ..capable_host() };
        let mut settings = Settings::default();
        assert_eq!(cache_bytes_max(&settings, &facts), 1 << 30);
        settings.run.cache_limit_bytes = Some(1 << 28);
        assert_eq!(cache_bytes_max(&settings, &facts), 1 << 28, "data of 512 MiB does not fit in that");
        settings.run.cache_limit_bytes = Some(1 << 40);
        assert_eq!(cache_bytes_max(&settings, &facts), 1 << 30);
    }
}
