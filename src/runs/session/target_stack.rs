//! What a target stands on: the stack that is built before it is opened, and taken down after.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::expected_caps::refuse_unable;
use super::kv;
use super::message::{PlanShown, Wanted};
use super::run::{Attendant, Options};
use super::target::{DEVICE_BYTES_MIN, OursCheck, Target, names_of, refuse_over_limit};
use super::userspace_drives;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::load::volume::layout::files_bytes;
use crate::load::volume::{MemberSource, Request};
use crate::meter::ledger::{self, Survival};
use crate::settings::{Settings, Sync};
use crate::stack::build::{BuildContext, Built, build};
use crate::stack::devices::Drive;
use crate::stack::guard::{self, Claim, Consent, claim_built};
use crate::stack::id::StackId;
use crate::stack::paths::state_dir;
use crate::stack::plan::durations::last_times;
use crate::stack::plan::{
    Confirmed, Destroyed, Exposed, Plan, PlanContext, PowerCut, Resilience, plan, properties,
};
use crate::stack::runner::Runner;
use crate::units::approx_size;

/// What it takes to build the stack of the settings; `before` is the target that is closed and taken
/// down before.
pub fn planned(settings: &Settings, facts: &Facts, before: Option<&Target>) -> Result<Plan> {
    refuse_unable(settings, facts)?;
    let standing = before.and_then(|target| target.built.as_ref()).map(Built::plan);
    let held = before.map(|target| target.claims.as_slice()).unwrap_or_default();
    let context = PlanContext { facts, state_dir: &state_dir(), own_data: &OursCheck, standing, held };
    plan(settings, &context, StackId::random())
}

/// The plan that the operator agreed to, made anew; a new one where none was.
fn agreed(settings: &Settings, options: &Options, facts: &Facts) -> Result<Plan> {
    let Some((id, lines)) = &options.agreed else { return planned(settings, facts, None) };
    let context =
        PlanContext { facts, state_dir: &state_dir(), own_data: &OursCheck, standing: None, held: &[] };
    let plan = plan(settings, &context, id.clone())?;
    if plan.lines() == *lines {
        return Ok(plan);
    }
    let what = "what would be done is no longer what was shown: the host has changed meanwhile";
    Err(Error::refused(what).hint("look at the plan again"))
}

/// What opening the settings' target takes, as the operator sees it.
pub fn for_settings(settings: &Settings, facts: &Facts) -> Result<PlanShown> {
    if settings.stack.is_built() && settings.touches_storage() {
        return Ok(shown(&planned(settings, facts, None)?, 0, Vec::new()));
    }
    let leaves = settings.leaves_kernel() && settings.touches_storage();
    let handed_over = if leaves { userspace_drives::steps(settings, facts)? } else { Vec::new() };
    Ok(plain(settings, &handed_over, 0, Vec::new(), None, None))
}

/// The plan as the operator sees it.
pub fn shown(plan: &Plan, number: u64, turns: Vec<(String, String, String)>) -> PlanShown {
    let wanted = |destroyed: &Destroyed| wanted_of(&destroyed.drive, destroyed.content.clone());
    let times = last_times(&state_dir(), plan);
    PlanShown {
        number,
        opens: None,
        turns,
        takes_down: Vec::new(),
        lines: plan.lines(),
        destroys: plan.destroys.iter().map(wanted).collect(),
        writes_bytes: plan.writes_bytes,
        wear: plan.wear(),
        properties: Some(plan.properties.clone()),
        last_time: times.all,
        times: times.each,
    }
}

/// What opening the target takes where nothing is built for it. `handed_over` are the steps by which
/// drives leave the kernel, `destroys` the devices that the operator has to agree to; without them what
/// they hold is asked when it is opened. `held` is the folder of the target that is closed first.
pub fn plain(
    settings: &Settings,
    handed_over: &[String],
    number: u64,
    turns: Vec<(String, String, String)>,
    destroys: Option<Vec<Wanted>>,
    held: Option<&Path>,
) -> PlanShown {
    let target = &settings.target;
    let line = if !settings.touches_storage() {
        "open nothing: no class touches storage".to_owned()
    } else if settings.is_keyed() {
        kv::outlook(settings, held).unwrap_or_else(|error| error.one_line())
    } else if target.devices.is_empty() {
        let bytes = files_bytes(target.count, target.size_bytes);
        format!("open {} files in {}, {} with the WAL", target.count, target.dir, approx_size(bytes))
    } else {
        let later =
            if destroys.is_some() { "" } else { "; what they hold is asked for before it is destroyed" };
        format!("open {}{later}", target.devices.join(", "))
    };
    let mut lines = vec![line];
    if !settings.is_keyed() {
        lines.push("fill what is not filled".to_owned());
    }
    lines.extend_from_slice(handed_over);
    PlanShown {
        number,
        opens: None,
        turns,
        takes_down: Vec::new(),
        lines,
        destroys: destroys.unwrap_or_default(),
        writes_bytes: 0,
        wear: Vec::new(),
        properties: None,
        times: Vec::new(),
        last_time: None,
    }
}

/// The devices of a target on which nothing is built of which the operator has to agree that all is
/// destroyed, `before` being the target that is closed and taken down first.
///
/// None where drives have left the kernel: what they hold is asked once they are back.
///
/// # Errors
/// Where the guard refuses a device.
pub fn held_by(settings: &Settings, facts: &Facts, before: &Target) -> Result<Option<Vec<Wanted>>> {
    if !before.steps_back().is_empty() {
        return Ok(None);
    }
    let names = if settings.touches_storage() { names_of(settings, facts) } else { Vec::new() };
    let stands = before.built.as_ref().map(|built| built.plan().drives()).unwrap_or_default();
    let look = |name: &String| {
        let device = facts.find(name)?;
        if stands.contains(&Drive::of(device)) {
            let content = vec!["the stack that stands now".to_owned()];
            return Ok(Some(wanted_of(&Drive::of(device), content)));
        }
        let held = before.claims.iter().find(|held| held.device().number == device.number);
        let found = match held {
            Some(held) => guard::examine_held(held, facts, DEVICE_BYTES_MIN, &OursCheck)?,
            None => guard::examine(name, facts, DEVICE_BYTES_MIN, &OursCheck)?,
        };
        Ok(found.needs_consent().then(|| wanted_of(&Drive::of(device), found.content)))
    };
    names.iter().filter_map(|name| look(name).transpose()).collect::<Result<_>>().map(Some)
}

fn wanted_of(drive: &Drive, content: Vec<String>) -> Wanted {
    Wanted {
        typed: drive.serial.clone().unwrap_or_else(|| drive.name.clone()),
        path: drive.path.clone(),
        model: drive.model.clone(),
        serial: drive.serial.clone(),
        size_bytes: drive.size_bytes,
        content,
    }
}

/// What the settings survive on this host, for the ledger, with that many drives of the stack lost.
pub fn survival(settings: &Settings, facts: &Facts, lost: u64) -> Survival {
    let wal = &settings.classes[Class::Wal.index()];
    // A class that is off makes no commits less durable.
    let commits = u8::from(!wal.enabled || settings.wal.sync != Sync::None);
    let Resilience { power_cut, drives_lost, .. } = properties(settings, facts, 0).without(lost).resilience;
    let power_cut = match power_cut.verdict() {
        PowerCut::Yes => ledger::PowerCut::Yes,
        PowerCut::No => ledger::PowerCut::No,
        PowerCut::Unknown => ledger::PowerCut::Unknown,
    };
    Survival { commits, power_cut, drives_lost }
}

/// Builds the stack of the settings, with the operator's consent where it destroys anything.
pub fn raise(
    settings: &Settings,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
) -> Result<Built> {
    let plan = agreed(settings, options, facts)?;
    // Before anything is destroyed for it.
    refuse_over_limit(plan.writes_bytes, options.written_bytes.load(Ordering::Relaxed), settings)?;
    let confirmed = confirm(plan, options, facts, attendant)?;
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

/// The same of an operator at the screen, who types serials and gives no `--destroy`.
pub(super) fn not_typed(error: Error) -> Error {
    error.hint("nothing was destroyed: open the profile again, and type each serial to allow it")
}

/// What the target is opened on, held against others as long as it is.
pub fn request(built: &Built) -> Result<(Request, Vec<Claim>)> {
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

/// The claimed device as a member.
pub fn source(claim: &Claim) -> Result<MemberSource> {
    let device = claim.device();
    let file = claim.file().try_clone().map_err(|e| Error::os("cannot hold", &device.path, e))?;
    Ok(MemberSource::Device { path: device.path.clone(), file, size_bytes: device.size_bytes })
}

/// Takes down what was built for a target that can't be opened, unless it is to stay; tells both errors.
pub fn give_up(built: Built, error: Error, attendant: &mut dyn Attendant) -> Error {
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
