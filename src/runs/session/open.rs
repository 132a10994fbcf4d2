//! Opening what a session runs on: settings resolved, the target opened and filled, the host tuned.

use std::sync::Arc;

use super::attendant::Attendant;
use super::host_tuning::HostTuning;
use super::left_over::left_over;
use super::options::Options;
use super::resolve::Resolved;
use super::retained_stack::RetainedStack;
use super::targets::Target;
use crate::error::Result;
use crate::host::Facts;
use crate::load::workers::Workers;
use crate::load::workers::control::Writes;
use crate::settings::Settings;

/// What a session runs on, ready for the load.
pub(super) struct Opened {
    pub resolved: Resolved,
    // Its workers are dropped before the target: they drain while locks and claims still keep others away.
    pub workers: Box<dyn Workers>,
    pub target: Target,
    pub host: HostTuning,
    pub written: Written,
}

/// What is written, and may be.
pub(super) struct Written {
    pub writes: Arc<Writes>,
    /// What the process had written when the target began to be opened.
    opened_bytes: u64,
}

impl Written {
    /// Bytes that were written for this session.
    pub fn here_bytes(&self) -> u64 {
        self.writes.written_bytes().saturating_sub(self.opened_bytes)
    }
}

/// Opens the target of the settings on what is retained for it, else on what is built for it. What was built
/// is left in `retained` where that fails.
///
/// # Errors
/// Input where this host can't do what the settings say; refused where data is at risk; interrupted where
/// the attendant ends the fill.
pub(super) fn open(
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
    let opened_bytes = resolved.options.written_until_now();
    let mut target = Target::open(&resolved, attendant, retained)?;
    let (resolved, sequence, host) = match make_ready(&resolved, &mut target, attendant) {
        Ok(ready) => ready,
        Err(error) => {
            if let Some(built) = target.abandon() {
                retained.put(built, resolved.settings);
            }
            return Err(error);
        }
    };
    let target = target.leave_kernel(&resolved, &mut |advance| attendant.step(advance))?;
    resolved.fallbacks.iter().for_each(|text| attendant.notice(text));
    let writes = Arc::new(Writes::new(sequence, resolved.options.written_bytes.clone()));
    writes.limit(resolved.settings.run.max_writes_bytes);
    let workers = target.workers(&resolved, writes.clone())?;
    Ok(Opened { resolved, workers, target, host, written: Written { writes, opened_bytes } })
}

/// Sees that the opened target can do what the settings say, fills it, and tunes the host for it. Returns
/// where sequence numbers begin.
fn make_ready(
    resolved: &Resolved,
    target: &mut Target,
    attendant: &mut dyn Attendant,
) -> Result<(Resolved, u64, HostTuning)> {
    let resolved = resolved.on(target.facts(), target.is_mounted())?;
    let sequence = target.make_ready(&resolved, attendant)?;
    let mut host = HostTuning::begin(&resolved, target)?;
    match attendant.before_load(&target.layout().members) {
        Ok(notes) => target.note(notes),
        Err(error) => {
            host.restore(target.journal())?;
            return Err(error);
        }
    }
    Ok((resolved, sequence, host))
}
