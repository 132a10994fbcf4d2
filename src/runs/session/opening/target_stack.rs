//! The stack that a target stands on: planned, built before the target is opened, and taken down after.

use super::consent::{OursCheck, check_serials, not_typed, refuse_stray_consent};
use super::plan_shown::shown;
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::runs::session::attendant::Attendant;
use crate::runs::session::options::Options;
use crate::runs::session::resolve::refuse_unable;
use crate::runs::session::targets::BuiltSpec;
use crate::runs::session::write_budget::WriteBudget;
use crate::settings::{Kv, Settings};
use crate::stack::build::{BuildContext, Built, build};
use crate::stack::guard::{Claim, Consent};
use crate::stack::id::StackId;
use crate::stack::paths::state_dir;
use crate::stack::plan::{Confirmed, Plan, PlanContext, StackSpec, plan};
use crate::stack::runner::Runner;

/// The plan to build the stack of the settings, if nothing but missing consent speaks against it. `standing` and
/// `held` are the plan and the devices of the target that is closed and taken down first, if there is one.
///
/// # Errors
/// The same as for a run: both decide by [`refuse_unsuited`], [`check_serials`], the plan and the budget.
pub(in crate::runs::session) fn planned(
    settings: &Settings,
    facts: &Facts,
    standing: Option<&Plan>,
    held: &[Claim],
    budget: &WriteBudget,
) -> Result<Plan> {
    refuse_unable(settings, facts)?;
    let spec = BuiltSpec::of(settings);
    refuse_unsuited(&spec, &Options::default())?;
    check_serials(&spec.target, &spec.wal, facts)?;
    let context = PlanContext { facts, state_dir: &state_dir(), own_data: &OursCheck, standing, held };
    let plan = plan(&StackSpec::of(settings), &context, StackId::random())?;
    budget.refuse(plan.writes_bytes)?;
    Ok(plan)
}

/// The plan that the operator agreed to, made anew; a new one if there was none.
fn agreed(spec: &StackSpec, options: &Options, facts: &Facts) -> Result<Plan> {
    let context =
        PlanContext { facts, state_dir: &state_dir(), own_data: &OursCheck, standing: None, held: &[] };
    let Some((id, lines)) = &options.agreed else { return plan(spec, &context, StackId::random()) };
    let plan = plan(spec, &context, id.clone())?;
    if plan.lines() == *lines {
        return Ok(plan);
    }
    let what = "the plan is no longer the one that was shown: the host has changed since";
    Err(Error::refused(what).hint("review the plan again"))
}

/// Refuses options that do not work on a stack.
pub(in crate::runs::session) fn refuse_unsuited(spec: &BuiltSpec, options: &Options) -> Result<()> {
    if options.read_only {
        let what = "building a stack means writing, but --read-only writes nothing";
        return Err(Error::input(what).hint("set stack.* to none, or leave --read-only out"));
    }
    if spec.wal.target.is_some() && !spec.program {
        let what = "wal.target names a place outside the target, and a stack holds the WAL itself";
        return Err(Error::input(what).hint("leave wal.target out, or build no stack"));
    }
    Ok(())
}

/// The plan of a stack that a run builds, if nothing but missing consent speaks against it.
///
/// # Errors
/// Whatever else speaks against it, before anything is destroyed for it.
fn decided(
    stack: &StackSpec,
    spec: &BuiltSpec,
    options: &Options,
    facts: &Facts,
    budget: &WriteBudget,
) -> Result<Plan> {
    refuse_unsuited(spec, options)?;
    check_serials(&spec.target, &spec.wal, facts)?;
    refuse_stray_consent(&options.destroy, &spec.target.devices, facts)?;
    let plan = agreed(stack, options, facts)?;
    budget.refuse(plan.writes_bytes)?;
    Ok(plan)
}

/// Builds a stack, with the operator's consent if it destroys anything. `profile` names the run in the journal.
pub(in crate::runs::session) fn raise(
    stack: &StackSpec,
    (spec, profile): (&BuiltSpec, &str),
    options: &Options,
    facts: &Facts,
    budget: &WriteBudget,
    attendant: &mut dyn Attendant,
) -> Result<Built> {
    let plan = decided(stack, spec, options, facts, budget)?;
    let confirmed = confirm(plan, spec.kv.as_ref(), options, facts, attendant)?;
    let context = BuildContext {
        state_dir: state_dir(),
        profile: profile.to_owned(),
        runner: Runner::default(),
        own_data: &OursCheck,
    };
    build(confirmed, &context, &mut |advance| attendant.step(advance))
}

fn confirm(
    plan: Plan,
    kv: Option<&Kv>,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
) -> Result<Confirmed> {
    let consent = Consent::named(&options.destroy, facts)?.and_typed(&options.typed);
    let consent = consent.and_commands(&options.commands);
    let asked = match plan.clone().confirm(&consent) {
        Ok(confirmed) => return Ok(confirmed),
        Err(_) => attendant.plan(shown(&plan, kv, 0, Vec::new())),
    };
    let at_screen = asked.is_some();
    let confirmed = plan.confirm(&consent.and_typed(&asked.unwrap_or_default()));
    confirmed.map_err(|error| if at_screen { not_typed(error) } else { error })
}

/// Takes down the stack of a target that can't be opened, unless it is to stay; reports both errors.
pub(in crate::runs::session) fn give_up(built: Built, error: Error, attendant: &mut dyn Attendant) -> Error {
    let ended = if attendant.keeps() {
        built.keep().map(|commands| attendant.kept(commands))
    } else {
        built.tear_down(&mut |advance| attendant.step(advance))
    };
    match ended {
        Ok(()) => error,
        Err(left) => error.and_then(&left),
    }
}
