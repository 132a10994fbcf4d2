//! What the settings change of the host itself while a session lasts: queues and the page cache's
//! budget.

use std::thread::JoinHandle;

use super::page_cache::drop_cached;
use super::resolve::Resolved;
use super::targets::Target;
use crate::error::{Error, Result, describe};
use crate::host::Facts;
use crate::settings::QueueSettings;
use crate::settings::Settings;
use crate::stack::devices::Drive;
use crate::stack::journal::Journal;
use crate::stack::paths::state_dir;
use crate::stack::plan::queue_values;
use crate::stack::runner::Runner;
use crate::stack::tuning::Adjustments;
use crate::stack::tuning::drives_of;

/// What is changed of the host.
pub(super) struct HostTuning {
    adjustments: Adjustments,
    /// Drops what was cached before the page cache got a budget.
    dropping: Option<JoinHandle<std::io::Result<()>>>,
}

impl HostTuning {
    /// Brings the host to what the settings of a session that begins say.
    pub fn begin(resolved: &Resolved, target: &mut Target) -> Result<Self> {
        let Resolved { settings, options, facts, .. } = resolved;
        if options.read_only && settings.queue != QueueSettings::default() {
            let what = "queue.* would be set on devices that --read-only leaves to those who use them";
            return Err(Error::input(what).hint("leave queue.* out, or leave --read-only out"));
        }
        let drives = drives(settings, facts, target)?;
        let mut adjustments = Adjustments::new(state_dir(), &settings.name, drives);
        let limit_bytes = settings.run.cache_limit_bytes;
        let entered = adjustments.apply(target.journal(), &queue_values(&settings.queue), limit_bytes)?;
        if (entered || options.uncached) && target.is_cacheable() {
            drop_cached(&target.layout().paths()).map_err(|error| {
                let why = describe(&error);
                Error::failed(format!("what is cached of the target could not be dropped: {why}"))
            })?;
        }
        Ok(Self { adjustments, dropping: None })
    }

    /// Changes of the host what differs between the settings; nothing where that fails, with the reason.
    pub fn turn(
        &mut self,
        from: &Resolved,
        to: &Settings,
        target: &mut Target,
    ) -> std::result::Result<(), String> {
        let limit_bytes = to.run.cache_limit_bytes;
        if to.queue == from.settings.queue && limit_bytes == from.settings.run.cache_limit_bytes {
            return Ok(());
        }
        if from.options.read_only && to.queue != from.settings.queue {
            return Err("the run is read-only: the queues belong to those who use the devices".into());
        }
        let applied = self.adjustments.apply(target.journal(), &queue_values(&to.queue), limit_bytes);
        if applied.map_err(|error| error.one_line())? && target.is_cacheable() {
            // What was cached before counts against no budget, and would serve reads for ever.
            let paths = target.layout().paths();
            self.dropping = Some(std::thread::spawn(move || drop_cached(&paths)));
        }
        Ok(())
    }

    /// Whether what was cached is still being dropped, and a sentence where it could not be.
    pub fn is_dropping(&mut self) -> (bool, Option<String>) {
        let failed = match self.dropping.take_if(|thread| thread.is_finished()).map(JoinHandle::join) {
            Some(Ok(Err(error))) => {
                Some(format!("what is cached of the target could not be dropped: {}", describe(&error)))
            }
            Some(Err(_)) => Some("what is cached of the target was not dropped".to_owned()),
            Some(Ok(Ok(()))) | None => None,
        };
        (self.dropping.is_some(), failed)
    }

    /// Puts everything back; `journal` is that of what was built.
    ///
    /// # Errors
    /// What could not be; it stays in the journal, for `cleanup`.
    pub fn restore(&mut self, journal: Option<&mut Journal>) -> Result<()> {
        self.adjustments.restore(journal)
    }
}

/// The drives below the target, of which the queues can be set; none below files as they are.
fn drives(settings: &Settings, facts: &Facts, target: &Target) -> Result<Vec<Drive>> {
    if let Some(built) = target.built() {
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
