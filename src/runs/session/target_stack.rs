//! The stack that a target stands on: planned, built before the target is opened, and taken down after.

use super::attendant::Attendant;
use super::consent::{OursCheck, not_typed, source};
use super::expected_caps::refuse_unable;
use super::options::Options;
use super::plan_shown::shown;
use super::resolve::{Resolved, refuse_over_limit};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::load::volume::Request;
use crate::settings::Settings;
use crate::stack::build::{BuildContext, Built, build};
use crate::stack::guard::{Claim, Consent, claim_built};
use crate::stack::id::StackId;
use crate::stack::paths::state_dir;
use crate::stack::plan::{Confirmed, Exposed, Plan, PlanContext, plan};
use crate::stack::runner::Runner;

/// What it takes to build the stack of the settings. `standing` and `held` are the plan and the devices of
/// the target that is closed and taken down before, if there is one.
pub(super) fn planned(
    settings: &Settings,
    facts: &Facts,
    standing: Option<&Plan>,
    held: &[Claim],
) -> Result<Plan> {
    refuse_unable(settings, facts)?;
    let context = PlanContext { facts, state_dir: &state_dir(), own_data: &OursCheck, standing, held };
    plan(settings, &context, StackId::random())
}

/// The plan that the operator agreed to, made anew; a new one where none was.
fn agreed(resolved: &Resolved) -> Result<Plan> {
    let Resolved { settings, options, facts, .. } = resolved;
    let Some((id, lines)) = &options.agreed else { return planned(settings, facts, None, &[]) };
    let context =
        PlanContext { facts, state_dir: &state_dir(), own_data: &OursCheck, standing: None, held: &[] };
    let plan = plan(settings, &context, id.clone())?;
    if plan.lines() == *lines {
        return Ok(plan);
    }
    let what = "what would be done is no longer what was shown: the host has changed meanwhile";
    Err(Error::refused(what).hint("look at the plan again"))
}

/// Builds the stack of the settings, with the operator's consent where it destroys anything.
pub(super) fn raise(resolved: &Resolved, attendant: &mut dyn Attendant) -> Result<Built> {
    let (settings, options) = (&resolved.settings, &resolved.options);
    let plan = agreed(resolved)?;
    // Before anything is destroyed for it.
    refuse_over_limit(plan.writes_bytes, options.written_until_now(), settings.run.max_writes_bytes)?;
    let confirmed = confirm(plan, options, &resolved.facts, attendant)?;
    let context = BuildContext {
        state_dir: state_dir(),
        profile: settings.name.clone(),
        runner: Runner::default(),
        own_data: &OursCheck,
    };
    build(confirmed, &context, &mut |advance| attendant.step(advance))
}

fn confirm(plan: Plan, options: &Options, facts: &Facts, attendant: &mut dyn Attendant) -> Result<Confirmed> {
    let consent = Consent::named(&options.destroy, facts)?.and_typed(&options.typed);
    let asked = match plan.clone().confirm(&consent) {
        Ok(confirmed) => return Ok(confirmed),
        Err(_) => attendant.plan(shown(&plan, 0, Vec::new())),
    };
    let at_screen = asked.is_some();
    let confirmed = plan.confirm(&consent.and_typed(&asked.unwrap_or_default()));
    confirmed.map_err(|error| if at_screen { not_typed(error) } else { error })
}

/// What the target is opened on, held against others as long as it is.
pub(super) fn request(built: &Built) -> Result<(Request, Vec<Claim>)> {
    match &built.plan().exposed {
        Exposed::Files { dir, data_bytes, wal_bytes } => {
            let mut request = Request::of_files(dir, 1, *data_bytes);
            request.wal_bytes = Some(*wal_bytes);
            Ok((request, Vec::new()))
        }
        Exposed::Devices(places) => {
            let claims = places
                .iter()
                .map(|place| claim_built(&place.resolve(&Runner::default())?))
                .collect::<Result<Vec<_>>>()?;
            let sources = claims.iter().map(source).collect::<Result<_>>()?;
            Ok((Request::of_devices(sources), claims))
        }
    }
}

/// Takes down what was built for a target that can't be opened, unless it is to stay; tells both errors.
pub(super) fn give_up(built: Built, error: Error, attendant: &mut dyn Attendant) -> Error {
    let ended = if attendant.keeps() {
        built.keep().map(|commands| attendant.kept(commands))
    } else {
        built.tear_down(&mut |advance| attendant.step(advance))
    };
    match ended {
        Ok(()) => error,
        Err(left) => Error { what: format!("{}; and then {}", error.what, left.what), ..error },
    }
}
