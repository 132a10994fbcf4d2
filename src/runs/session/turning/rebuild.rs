//! Building the target anew during a session: planned and shown first, then done exactly as shown.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::survival::survival;
use super::turns::{Carried, Pending, Turned};
use crate::host::Facts;
use crate::meter::turns::ledger::Turn;
use crate::runs::session::message::{Event, PlanShown, Wanted};
use crate::runs::session::opening::consent::{DEVICE_BYTES_MIN, OursCheck, names_of, wanted_of};
use crate::runs::session::opening::plan_shown::{Taken, keyed, plain, shown};
use crate::runs::session::opening::preflight::bytes_to_write;
use crate::runs::session::opening::target_folder::refuse_unsafe_folders;
use crate::runs::session::opening::target_stack::planned;
use crate::runs::session::resolve::{fit_files, userspace_of};
use crate::runs::session::run::Session;
use crate::runs::session::targets::{Target, handover_steps};
use crate::settings::Settings;
use crate::settings::knobs::{self, Conditions, Value};
use crate::settings::paths::expand_home;
use crate::settings::profile::{check, is_demo};
use crate::stack::build::Built;
use crate::stack::devices::Drive;
use crate::stack::guard;
use crate::stack::id::StackId;
use crate::stack::plan::StackSpec;
use crate::threads;

/// A knob's path, and its values before and after, as shown.
type Shown = (String, String, String);

/// The purpose of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Turning knobs of the current profile.
    Turns,
    /// Opening another profile.
    Profile {
        /// Whether settings that this host can't satisfy are replaced (the demo).
        falls_back: bool,
        /// The number of its steps.
        unused_steps: usize,
    },
}

/// The run as it was before a plan was carried out.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct Former {
    pub settings: Settings,
    pub unused_steps: usize,
    pub carried: Carried,
}

/// The start of another session that continues this one.
pub(in crate::runs::session) struct Rebuild {
    /// Its settings.
    pub settings: Settings,
    /// See [`Options::unused_steps`](crate::runs::session::Options::unused_steps).
    pub unused_steps: usize,
    /// The words that the operator typed.
    pub typed: Vec<String>,
    /// The run so far, to return to if the target can't be built.
    pub former: Former,
    /// See [`Options::agreed`](crate::runs::session::Options::agreed).
    pub agreed: Option<(StackId, Vec<String>)>,
    /// State carried over; none if another profile is opened.
    pub carried: Option<Carried>,
}

impl Session {
    /// Plans the target with those knobs turned, and reports the plan. The load goes on meanwhile.
    pub(in crate::runs::session) fn report_plan(&mut self, turns: &[(String, Value)]) {
        let planned = self.plan(turns);
        self.report(Event::Planned(planned.map(Arc::new)));
    }

    /// Plans to open another profile, and reports the plan, or why it can't run here; the load goes on
    /// meanwhile. If nothing needs agreement, because nothing is built, taken down, destroyed or written, the
    /// settings are returned instead.
    pub(in crate::runs::session) fn plan_to_open(
        &mut self,
        settings: Settings,
        unused_steps: usize,
    ) -> Option<Settings> {
        // For whatever the demo can't do here, it falls back.
        let falls_back = is_demo(&settings);
        let planned =
            self.plan_for(settings, (Vec::new(), Vec::new()), Kind::Profile { falls_back, unused_steps });
        let planned = planned.and_then(|plan| {
            let limit_bytes =
                self.turns.pending.as_ref().and_then(|pending| pending.settings.run.max_writes_bytes);
            let budget = self.resolved.budget.with_limit(limit_bytes);
            budget.refuse(plan.writes_bytes.unwrap_or(0)).map_err(|error| error.one_line())?;
            Ok(plan)
        });
        let quiet = |plan: &PlanShown| {
            plan.writes_bytes == Some(0) && plan.destroys.is_empty() && plan.takes_down.is_empty()
        };
        let is_plain =
            |pending: &mut Pending| !pending.settings.builds_stack() && !pending.settings.leaves_kernel();
        if planned.as_ref().is_ok_and(quiet)
            && self.target.steps_back().is_empty()
            && let Some(pending) = self.turns.pending.take_if(is_plain)
        {
            return Some(pending.settings);
        }
        self.report(Event::Planned(planned.map(Arc::new)));
        None
    }

    /// The plan to build the target anew with those knobs turned.
    pub(in crate::runs::session) fn plan(&mut self, turns: &[(String, Value)]) -> Result<PlanShown, String> {
        let mut settings = self.resolved.settings.clone();
        let (mut from, mut shown) = (Vec::new(), Vec::new());
        for (path, value) in turns {
            let knob = knobs::find_of(&settings, path).ok_or_else(|| format!("there is no `{path}`"))?;
            let old = knob.get(&self.resolved.settings);
            knob.set(&mut settings, value.clone());
            shown.push((path.clone(), old.to_string(), value.to_string()));
            from.push((path.clone(), old));
        }
        self.plan_for(settings, (from, shown), Kind::Turns)
    }

    fn plan_for(
        &mut self,
        settings: Settings,
        (from, turns): (Vec<(String, Value)>, Vec<Shown>),
        kind: Kind,
    ) -> Result<PlanShown, String> {
        if self.resolved.options.read_only {
            return Err("the run is read-only: nothing is built".into());
        }
        let options = &self.resolved.options;
        let refused = options.refuse_program(&settings).and_then(|()| options.refuse_commands(&settings));
        refused.map_err(|error| error.one_line())?;
        // The current target's facts say nothing about the new one.
        let problems = check(&settings, Conditions { facts: &self.resolved.facts, target: None });
        if let Some(problem) =
            problems.first().filter(|_| !matches!(kind, Kind::Profile { falls_back: true, .. }))
        {
            return Err(problem.to_string());
        }
        let away = !self.target.steps_back().is_empty();
        let builds = settings.builds_stack();
        if away && (builds || settings.leaves_kernel() && settings.target != self.resolved.settings.target) {
            let why = "the drives have left the kernel, so what is on them can't be examined";
            return Err(format!("{why}: go back to one of the kernel's interfaces with a plan first"));
        }
        self.turns.plans_made += 1;
        let number = self.turns.plans_made;
        let facts = Facts { devices: Facts::read_devices(), ..(*self.resolved.facts).clone() };
        let mut agreed = None;
        let shown = if builds {
            let standing = self.target.built().map(Built::plan);
            let budget = self.resolved.budget.with_limit(settings.run.max_writes_bytes);
            let plan = planned(&settings, &facts, standing, self.target.claims(), &budget);
            let plan = plan.map_err(|error| error.one_line())?;
            agreed = Some((plan.id.clone(), plan.lines()));
            shown(&plan, keyed(&settings), number, turns)
        } else {
            self.plain_plan(&settings, &facts, number, turns).map_err(|error| error.one_line())?
        };
        let (opens, unused_steps) = match kind {
            Kind::Turns => (false, self.resolved.options.unused_steps),
            Kind::Profile { unused_steps, .. } => (true, unused_steps),
        };
        let shown = PlanShown {
            opens: opens.then(|| settings.name.clone()),
            takes_down: self.target.built().map(Built::commands_down).unwrap_or_default(),
            lines: [self.target.steps_back(), shown.lines].concat(),
            ..shown
        };
        self.turns.pending =
            Some(Pending { number, settings, unused_steps, from, agreed, live: None, opens });
        Ok(shown)
    }

    /// The plan for a target without a stack.
    fn plain_plan(
        &self,
        settings: &Settings,
        facts: &Facts,
        number: u64,
        turns: Vec<Shown>,
    ) -> crate::error::Result<PlanShown> {
        refuse_unsafe_folders(settings, facts)?;
        let handed_over = self.handed_over(settings)?;
        let held = held_by(settings, facts, &self.target)?;
        let folder = self.held_folder();
        let mut fitted = settings.clone();
        if is_demo(settings) {
            fit_files(&mut fitted, &mut Vec::new())?;
        }
        let writes_bytes = match &held {
            // A program makes its own data; how much is not known.
            _ if settings.program.is_some() => None,
            Some(held) => bytes_to_write(&fitted, facts, &held.wiped, folder.as_deref())?,
            None => None,
        };
        let destroys = held.map(|held| held.wanted);
        Ok(plain(settings, Taken { handed_over, destroys, writes_bytes }, number, turns, folder.as_deref()))
    }

    /// The folder of files that the run has locked; none for devices or a stack.
    fn held_folder(&self) -> Option<PathBuf> {
        let folder = self.target.built().is_none()
            && self.resolved.settings.target.devices.is_empty()
            && !matches!(self.target, Target::Imagined(_));
        folder.then(|| expand_home(&self.resolved.settings.target.dir).ok()).flatten()
    }

    /// The steps by which the drives of those settings leave the kernel, if they do.
    fn handed_over(&self, settings: &Settings) -> crate::error::Result<Vec<String>> {
        let Some(spec) = userspace_of(settings) else { return Ok(Vec::new()) };
        if self.resolved.settings.leaves_kernel() && settings.target == self.resolved.settings.target {
            // They come back first; at the moment, the kernel does not have them.
            let devices = settings.target.devices.join(", ");
            return Ok(vec![format!("bind {devices} to vfio-pci again")]);
        }
        let facts = Facts { devices: Facts::read_devices(), ..(*self.resolved.facts).clone() };
        handover_steps(&spec, &settings.target.devices, &facts)
    }

    /// Takes the plan that was shown under that number, if it still waits.
    pub(in crate::runs::session) fn take_plan(&mut self, number: u64) -> Option<Pending> {
        self.turns.pending.take_if(|pending| pending.number == number)
    }

    /// What another session needs to continue with that plan.
    pub(in crate::runs::session) fn carry(&mut self, pending: Pending, typed: Vec<String>) -> Rebuild {
        let Pending { settings, unused_steps, from, agreed, opens, .. } = pending;
        let is_undo = self.turns.undo.last().is_some_and(|last| {
            last.from.iter().all(|(path, value)| {
                knobs::find_of(&settings, path).is_some_and(|k| k.get(&settings) == *value)
            })
        });
        let join = |texts: Vec<String>| texts.join(", ");
        let now = |(path, _): &(String, Value)| {
            let knob = knobs::find_of(&settings, path);
            knob.map(|knob| knob.get(&settings).to_string()).unwrap_or_default()
        };
        let turn = Turn {
            knob: join(from.iter().map(|(path, _)| path.clone()).collect()),
            from: join(from.iter().map(|(_, value)| value.to_string()).collect()),
            to: join(from.iter().map(now).collect()),
            undo: is_undo,
            survives: (
                survival(
                    (&self.resolved.settings, &self.resolved.stack),
                    &self.resolved.facts,
                    self.losses.count,
                ),
                survival((&settings, &StackSpec::of(&settings)), &self.resolved.facts, 0),
            ),
            ..Turn::default()
        };
        let former = Carried {
            ledger: self.turns.ledger.clone(),
            setting: self.turns.setting + 1,
            undo: self.turns.undo.clone(),
            epoch_ns: Some(self.schedule.epoch_ns),
            started: Some(self.schedule.started),
            turn: None,
        };
        let mut undo = std::mem::take(&mut self.turns.undo);
        if is_undo {
            undo.pop();
        } else if !from.is_empty() {
            undo.push(Turned { from: from.clone() });
        }
        let turn = (!from.is_empty()).then_some(turn);
        let carried = (!opens).then(|| Carried { undo, turn, ..former.clone() });
        let former = Former {
            settings: self.resolved.settings.clone(),
            unused_steps: self.resolved.options.unused_steps,
            carried: former,
        };
        Rebuild { settings, unused_steps, typed, former, agreed, carried }
    }
}

/// The content of a target's devices.
#[derive(Default)]
struct Held {
    /// Devices for which the operator must agree that everything is destroyed.
    wanted: Vec<Wanted>,
    /// Devices without a fill of ours: these are filled entirely.
    wiped: HashSet<PathBuf>,
}

/// The devices' content for a target without a stack; `before` is the target that is closed and taken down first.
///
/// None if drives have left the kernel: consent for their content is asked once they are back.
///
/// # Errors
/// If the guard refuses a device.
fn held_by(settings: &Settings, facts: &Facts, before: &Target) -> crate::error::Result<Option<Held>> {
    if !before.steps_back().is_empty() {
        return Ok(None);
    }
    let names = if settings.touches_storage() {
        names_of(&settings.target, &settings.wal, facts)
    } else {
        Vec::new()
    };
    let stands = before.built().map(|built| built.plan().drives()).unwrap_or_default();
    let look = |name: &String| {
        let device = facts.find(name)?;
        if stands.contains(&Drive::of(device)) {
            let content = vec!["the current stack".to_owned()];
            return Ok((Some(wanted_of(&Drive::of(device), content)), Some(device.path.clone())));
        }
        let held = before.claims().iter().find(|held| held.device().number == device.number);
        let found = match held {
            Some(held) => guard::examine_held(held, facts, DEVICE_BYTES_MIN, &OursCheck)?,
            None => guard::examine(name, facts, DEVICE_BYTES_MIN, &OursCheck)?,
        };
        let wiped = (!found.own_fill).then(|| device.path.clone());
        Ok((found.needs_consent().then(|| wanted_of(&Drive::of(device), found.content)), wiped))
    };
    let found: Vec<(Option<Wanted>, Option<PathBuf>)> =
        threads::each(&names, "examine a device", look).into_iter().collect::<crate::error::Result<_>>()?;
    let (wanted, wiped): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    Ok(Some(Held {
        wanted: wanted.into_iter().flatten().collect(),
        wiped: wiped.into_iter().flatten().collect(),
    }))
}
