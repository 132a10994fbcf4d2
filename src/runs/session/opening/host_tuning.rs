//! Changes that the settings make to the host itself for the duration of a session: queues, the array and the
//! page cache's budget.

use std::time::Duration;

use super::page_cache::{Dropping, drop_cached};
use crate::error::{Error, Result, describe};
use crate::host::Facts;
use crate::runs::session::targets::Target;
use crate::settings::{MdSettings, QueueSettings};
use crate::stack::build::Built;
use crate::stack::devices::Drive;
use crate::stack::journal::Journal;
use crate::stack::paths::state_dir;
use crate::stack::plan::live_values;
use crate::stack::runner::Runner;
use crate::stack::tuning::{Adjustments, CpuLatency, FailingArray, array_of, drives_of};

/// The part of the settings about the host.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct HostSpec {
    /// The run's name in the journal.
    pub profile: String,
    pub queue: QueueSettings,
    /// The settings of the stack's array that affect its level.
    pub md: MdSettings,
    /// The page cache's budget.
    pub cache_limit_bytes: Option<u64>,
    /// The longest time that an idle CPU may take to wake up.
    pub cpu_latency: Option<Duration>,
    /// The devices of the target, including the WAL's own; none if nothing touches storage.
    pub devices: Vec<String>,
    /// Cached pages of the target are dropped before the load begins.
    pub uncached: bool,
    /// The queues are left to the devices' other users.
    pub read_only: bool,
}

/// The changes made to the host.
pub(in crate::runs::session) struct HostTuning {
    adjustments: Adjustments,
    cpu_latency: CpuLatency,
    /// The stack's array, if it has one.
    array: Option<FailingArray>,
    /// Drops pages cached before the page cache got a budget, or before a block of a duel.
    dropping: Option<Dropping>,
    /// Whether cached pages of the target are still to be dropped.
    empties: bool,
    /// Why dropping them failed last time.
    stayed: Option<String>,
}

impl HostTuning {
    /// Brings the host to the state that a beginning session asks for.
    pub fn begin(spec: &HostSpec, facts: &Facts, target: &mut Target) -> Result<Self> {
        if spec.read_only && spec.queue != QueueSettings::default() {
            let what = "--read-only leaves the devices to those who use them, so queue.* can't be set";
            return Err(Error::input(what).hint("leave queue.* out, or leave --read-only out"));
        }
        let mut cpu_latency = CpuLatency::default();
        cpu_latency.set(spec.cpu_latency)?;
        let drives = drives(&spec.devices, facts, target)?;
        let mut adjustments = Adjustments::new(state_dir(), &spec.profile, drives)
            .with_array(target.built().and_then(|built| array_of(built.plan())));
        let values = live_values(&spec.queue, &spec.md);
        let entered = adjustments.apply(target.journal(), &values, spec.cache_limit_bytes)?;
        if (entered || spec.uncached) && target.is_cacheable() {
            drop_cached(&target.layout().paths()).map_err(|error| {
                let why = describe(&error);
                Error::failed(format!("the target's cached pages could not be dropped: {why}"))
            })?;
        }
        let mut array = target.built().and_then(Built::failing_array);
        if let (Some(array), Some(journal)) = (&mut array, target.journal()) {
            array.begin(journal, spec.md.array)?;
        }
        Ok(Self { adjustments, cpu_latency, array, dropping: None, empties: false, stayed: None })
    }

    /// Applies the differences to the host; if that fails, none of them, with the reason.
    pub fn turn(
        &mut self,
        from: &HostSpec,
        to: &HostSpec,
        target: &mut Target,
    ) -> std::result::Result<(), String> {
        if to.cpu_latency != from.cpu_latency {
            self.cpu_latency.set(to.cpu_latency).map_err(|error| error.one_line())?;
        }
        if let (Some(array), Some(journal)) = (&mut self.array, target.journal()) {
            array.bring_to(journal, to.md.array).map_err(|error| error.one_line())?;
        }
        let same_attributes = to.queue == from.queue && to.md == from.md;
        if same_attributes && to.cache_limit_bytes == from.cache_limit_bytes {
            return Ok(());
        }
        if from.read_only && to.queue != from.queue {
            return Err("the run is read-only: the queues belong to those who use the devices".into());
        }
        let values = live_values(&to.queue, &to.md);
        let applied = self.adjustments.apply(target.journal(), &values, to.cache_limit_bytes);
        if applied.map_err(|error| error.one_line())? && target.is_cacheable() {
            // Pages cached before count against no budget, and would serve reads forever.
            let paths = target.layout().paths();
            self.dropping = Some(Dropping::begin(paths));
        }
        Ok(())
    }

    /// Requests that cached pages of the target be dropped, by [`Self::begin_emptying`].
    pub fn empty_cache(&mut self) {
        self.empties = true;
    }

    /// Begins the requested dropping, now that no I/O under the previous setting is in flight.
    pub fn begin_emptying(&mut self, target: &Target) {
        if self.dropping.is_none() && std::mem::take(&mut self.empties) && target.is_cacheable() {
            self.dropping = Some(Dropping::begin(target.layout().paths()));
        }
    }

    /// Why cached pages stayed, if dropping them failed since the last call.
    pub fn cache_stayed(&mut self) -> Option<String> {
        self.stayed.take()
    }

    /// The array whose member can be failed, if the stack has one.
    pub fn failing_array(&self) -> Option<&FailingArray> {
        self.array.as_ref()
    }

    /// Whether cached pages are still being dropped, and a sentence if that failed.
    pub fn is_dropping(&mut self) -> (bool, Option<String>) {
        let failed = match self.dropping.take_if(|thread| thread.is_finished()).map(Dropping::join) {
            Some(Ok(Err(error))) => {
                Some(format!("the target's cached pages could not be dropped: {}", describe(&error)))
            }
            Some(Err(_)) => Some("the target's cached pages were not dropped".to_owned()),
            Some(Ok(Ok(()))) | None => None,
        };
        self.stayed = failed.clone().or_else(|| self.stayed.take());
        (self.dropping.is_some() || self.empties, failed)
    }

    /// Restores everything; `journal` is the stack's.
    ///
    /// # Errors
    /// What could not be restored; it stays in the journal, for `cleanup`.
    pub fn restore(&mut self, journal: Option<&mut Journal>) -> Result<()> {
        self.adjustments.restore(journal)
    }
}

/// The drives below the target whose queues can be set; none below plain files.
fn drives(devices: &[String], facts: &Facts, target: &Target) -> Result<Vec<Drive>> {
    if let Some(built) = target.built() {
        return drives_of(built.plan(), &Runner::default());
    }
    let mut drives = Vec::new();
    for name in devices {
        let drive = Drive::of(facts.find(name)?);
        if !drives.contains(&drive) {
            drives.push(drive);
        }
    }
    Ok(drives)
}
