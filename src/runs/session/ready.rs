//! Making a target, the host, the engine and the meters ready for a session.

use std::sync::Arc;

use super::adjust;
use super::fallback;
use super::fill::fill;
use super::kv;
use super::retained_stack::RetainedStack;
use super::run::{Attendant, Options};
use super::target::{self, Target};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::load::workers::Workers;
use crate::load::workers::control::Writes;
use crate::meter::{Meters, Probes};
use crate::settings::Settings;
use crate::settings::knobs::Ground;
use crate::settings::profile::check;
use crate::stack::build::Built;
use crate::stack::tuning::Adjustments;

/// What drives the load on a target.
pub(super) fn engine_on(target: &Target, settings: &Settings, writes: &Arc<Writes>) -> Result<Workers> {
    let (data, wal, members) = (target.data.clone(), target.wal.clone(), target.members.len());
    let writes = writes.clone();
    Ok(if let Some((store, _)) = &target.pairs {
        Workers::of_pairs(store.clone(), data, writes)
    } else if let Some(remote) = target.remote_workers(&writes)? {
        Workers::remote(data, wal, members, writes, remote)
    } else if settings.is_simulated() {
        Workers::simulated(data, wal, members, writes, &settings.sim)
    } else {
        Workers::threaded(data, wal, members, writes)
    })
}

/// What measures it, from here on.
pub(super) fn meters_of(engine: &Workers, target: &Target, now_ns: u64) -> Meters {
    let members = target.members.clone();
    let probes = if engine.is_simulated() {
        Probes::none()
    } else {
        Probes::system(&members, &target.levels, target.built.is_some(), now_ns)
    };
    let mut meters = Meters::new(now_ns, members, probes);
    meters.engine_begins(engine.pairs().and_then(|store| store.figures()));
    meters
}

/// Makes settings that can run here, by falling back where that is allowed.
pub(super) fn settle(
    settings: &mut Settings,
    ground: Ground,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<()> {
    if options.fallbacks {
        fallback::fall_back(settings, ground, notes);
    }
    let problems = check(settings, ground);
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Err(Error::input(format!("profile `{}` can't run here:\n  {}", settings.name, list.join("\n  ")))
        .hint("`stacktune knobs` lists what each of them accepts"))
}

/// Opens the target and makes it and the host ready; what was built is left in `kept` where that fails.
pub(super) fn open_ready(
    settings: &mut Settings,
    options: &Options,
    facts: &Facts,
    fallbacks: &mut Vec<String>,
    attendant: &mut dyn Attendant,
    kept: &mut RetainedStack,
) -> Result<(Target, u64, Adjustments)> {
    let mut target = target::open(settings, options, facts, attendant, kept)?;
    let ready = make_ready(&mut target, settings, options, facts, fallbacks, attendant)
        .and_then(|sequence| Ok((sequence, adjust::begin(settings, options, facts, &mut target)?)))
        .and_then(|(sequence, mut adjustments)| match attendant.before_load(&target.members) {
            Ok(notes) => {
                target.notes.extend(notes);
                Ok((sequence, adjustments))
            }
            Err(error) => {
                adjustments.restore(target.built.as_mut().map(Built::journal))?;
                Err(error)
            }
        })
        .and_then(|ready| {
            target.leave_kernel(settings, &mut |advance| attendant.step(advance)).map(|()| ready)
        });
    match ready {
        Ok((sequence, adjustments)) => Ok((target, sequence, adjustments)),
        Err(error) => {
            if let Some(built) = target.close() {
                kept.put(built, settings.clone());
            }
            Err(error)
        }
    }
}

/// Sees that the opened target can do what the settings say, and fills it. Returns where sequence
/// numbers begin.
fn make_ready(
    target: &mut Target,
    settings: &mut Settings,
    options: &Options,
    facts: &Facts,
    fallbacks: &mut Vec<String>,
    attendant: &mut dyn Attendant,
) -> Result<u64> {
    settle(settings, Ground { facts, target: target.facts() }, options, fallbacks)?;
    if let Some((store, _)) = &target.pairs {
        kv::load(store, settings, &options.written_bytes, attendant)?;
        let losses = store.count_losses()?.map(|losses| losses.to_string());
        losses.iter().for_each(|text| attendant.notice(text));
        target.notes.extend(losses);
        // The engine's times are those of the run, and not of what was loaded and looked up before it.
        store.count_anew()?;
        return Ok(store.sequence_base());
    }
    fill(target, settings, &options.written_bytes, attendant)?;
    match &mut target.volume {
        Some(volume) if !options.read_only => volume.next_sequence_base(),
        _ => Ok(0),
    }
}
