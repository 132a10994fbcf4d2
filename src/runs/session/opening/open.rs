//! Opening all that a session runs on: settings resolved, the target opened and filled, the host tuned.
//!
//! The settings as a whole come only this far; lower layers each take their part of the resolved settings.

use std::sync::Arc;

use super::host_tuning::HostTuning;
use super::left_over::left_over;
use super::retained_stack::RetainedStack;
use super::target_stack::{raise, refuse_unsuited};
use crate::class::Class;
use crate::error::Result;
use crate::host::Facts;
use crate::load::workers::Workers;
use crate::load::workers::control::Writes;
use crate::runs::session::attendant::Attendant;
use crate::runs::session::options::Options;
use crate::runs::session::resolve::Resolved;
use crate::runs::session::targets::{Content, FoundTarget, Target, TargetSpec};
use crate::settings::{DriveState, Settings};
use crate::stack::build::Built;

/// Everything a session runs on, ready for the load.
pub(in crate::runs::session) struct Opened {
    pub resolved: Resolved,
    // Its workers are dropped before the target: they drain while locks and claims still keep others away.
    pub workers: Box<dyn Workers>,
    pub target: Target,
    pub host: HostTuning,
    pub written: Written,
}

/// Bytes written, and the budget.
pub(in crate::runs::session) struct Written {
    pub writes: Arc<Writes>,
    /// Bytes that the process had written when opening the target began.
    opened_bytes: u64,
}

impl Written {
    /// Bytes written for this session.
    pub fn here_bytes(&self) -> u64 {
        self.writes.written_bytes().saturating_sub(self.opened_bytes)
    }
}

/// Opens the target of the settings on the stack retained for it, else on a newly built one. If that fails,
/// the stack is left in `retained`.
///
/// # Errors
/// Input if this host can't do what the settings say; refused if data is at risk; interrupted if the
/// attendant ends the fill.
pub(in crate::runs::session) fn open(
    asked: Settings,
    options: Options,
    facts: Arc<Facts>,
    attendant: &mut dyn Attendant,
    retained: &mut RetainedStack,
) -> Result<Opened> {
    if !retained.stands()
        && let Some(text) = left_over()
    {
        attendant.notice(&text);
    }
    let resolved = Resolved::new(asked, options, facts)?;
    resolved.folder_note.iter().for_each(|text| attendant.notice(text));
    let opened_bytes = resolved.budget.written_bytes();
    let mut built = stand(&resolved, attendant, retained)?;
    let (mut target, (resolved, sequence, host)) = match open_ready(&resolved, &mut built, attendant) {
        Ok(ready) => ready,
        Err(error) => {
            if let Some(built) = built {
                retained.put(built, resolved.identity);
            }
            return Err(error);
        }
    };
    if let Some(userspace) = &resolved.userspace {
        let profile = &resolved.settings.name;
        target = target.leave_kernel(userspace, profile, &mut |advance| attendant.step(advance))?;
    }
    resolved.fallbacks.iter().for_each(|text| attendant.notice(text));
    let writes = Arc::new(Writes::new(sequence, resolved.budget.count()).keeping(target.map()));
    writes.limit(resolved.budget.limit_bytes);
    let workers = target.workers(writes.clone())?;
    Ok(Opened { resolved, workers, target, host, written: Written { writes, opened_bytes } })
}

/// The stack under the target: the current one, else a newly built one; none if nothing is to be built.
fn stand(
    resolved: &Resolved,
    attendant: &mut dyn Attendant,
    retained: &mut RetainedStack,
) -> Result<Option<Built>> {
    let Resolved { options, facts, budget, .. } = resolved;
    let TargetSpec::Stack(spec) = &resolved.target else { return Ok(None) };
    refuse_unsuited(spec, options)?;
    if let Some(built) = retained.take_for(&resolved.identity)? {
        return Ok(Some(built));
    }
    raise(&resolved.stack, (spec, &resolved.settings.name), options, facts, budget, attendant).map(Some)
}

/// Opens the content and makes it ready for the load. A stack goes into the target; if that fails, it is left
/// in `built`.
fn open_ready(
    resolved: &Resolved,
    built: &mut Option<Built>,
    attendant: &mut dyn Attendant,
) -> Result<(Target, (Resolved, u64, HostTuning))> {
    let content = open_content(resolved, built.as_ref(), attendant)?;
    let mut target = Target::of(content, built.take());
    match make_ready(resolved, &mut target, attendant) {
        Ok(ready) => Ok((target, ready)),
        Err(error) => {
            *built = target.abandon();
            Err(error)
        }
    }
}

/// Opens the content, if it has the required abilities and may be filled.
fn open_content(
    resolved: &Resolved,
    built: Option<&Built>,
    attendant: &mut dyn Attendant,
) -> Result<Content> {
    let Resolved { options, facts, .. } = resolved;
    let found = FoundTarget::look(&resolved.target, built, options, facts, &mut *attendant)?;
    if let Some(target) = found.facts() {
        resolved.check_on(target)?;
    }
    resolved.budget.refuse(found.bytes_to_fill())?;
    let mut content = found.open(attendant)?;
    if let Content::Pages(pages) = &mut content
        && !resolved.options.read_only
        && let Err(why) =
            pages.keep_map([Class::Background, Class::Wal].map(|class| resolved.job(class).page_bytes))
    {
        attendant.notice(&format!("`verify` won't see lost writes: there is no write map: {why}"));
    }
    Ok(content)
}

/// Checks that the opened target can do what the settings say, fills it, and tunes the host for it. Returns
/// the first sequence number.
fn make_ready(
    resolved: &Resolved,
    target: &mut Target,
    attendant: &mut dyn Attendant,
) -> Result<(Resolved, u64, HostTuning)> {
    let resolved = resolved.on(target.facts(), target.is_mounted())?;
    let sequence = target.make_ready(
        &resolved.budget,
        (resolved.options.read_only, resolved.stack.layers.state == DriveState::Preconditioned),
        attendant,
    )?;
    let mut host = HostTuning::begin(&resolved.host, &resolved.facts, target)?;
    match attendant.before_load(&target.layout().members) {
        Ok(notes) => target.note(notes),
        Err(error) => {
            host.restore(target.journal())?;
            return Err(error);
        }
    }
    Ok((resolved, sequence, host))
}
