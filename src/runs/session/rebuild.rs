//! Building the target anew while a session runs: planned and shown first, then done as it was shown.

use std::path::PathBuf;
use std::sync::Arc;

use super::consent::{DEVICE_BYTES_MIN, OursCheck, names_of, wanted_of};
use super::message::{Event, PlanShown, Wanted};
use super::plan_shown::{Taken, keyed, plain, shown};
use super::resolve::userspace_of;
use super::run::Session;
use super::survival::survival;
use super::target_stack::planned;
use super::targets::{Target, handover_steps};
use super::turns::{Carried, Pending, Turned};
use crate::host::Facts;
use crate::meter::ledger::Turn;
use crate::settings::Settings;
use crate::settings::knobs::{self, Conditions, Value};
use crate::settings::profile::{check, expand_home, is_demo};
use crate::stack::build::Built;
use crate::stack::devices::Drive;
use crate::stack::guard;
use crate::stack::id::StackId;
use crate::stack::plan::StackSpec;
use crate::threads;

/// A knob's path, and its values before and after, as they are shown.
type Shown = (String, String, String);

/// What a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Knobs turned on the profile that runs.
    Turns,
    /// Another profile.
    Profile {
        /// Whether what this host can't do of it is replaced (the demo).
        falls_back: bool,
        /// Steps that it has.
        unused_steps: usize,
    },
}

/// The run as it was before a plan was done.
#[derive(Debug, Clone)]
pub(super) struct Former {
    pub settings: Settings,
    pub unused_steps: usize,
    pub carried: Carried,
}

/// What another session continues with.
pub(super) struct Rebuild {
    /// Its settings.
    pub settings: Settings,
    /// See [`Options::unused_steps`](super::Options::unused_steps).
    pub unused_steps: usize,
    /// What the operator typed.
    pub typed: Vec<String>,
    /// The run until now, to continue if this can't be built.
    pub former: Former,
    /// See [`Options::agreed`](super::Options::agreed).
    pub agreed: Option<(StackId, Vec<String>)>,
    /// What the session continues with; none if it opens another profile.
    pub carried: Option<Carried>,
}

impl Session {
    /// Plans the target with those knobs turned, and reports what it takes. The load goes on meanwhile.
    pub(super) fn report_plan(&mut self, turns: &[(String, Value)]) {
        let planned = self.plan(turns);
        self.report(Event::Planned(planned.map(Arc::new)));
    }

    /// Whether opening another profile takes a plan: what stands is taken down for it.
    pub(super) fn opens_with_plan(&self) -> bool {
        self.target.built().is_some()
    }

    /// Plans to open another profile, and reports what it takes. The load goes on meanwhile.
    pub(super) fn report_plan_to_open(&mut self, settings: Settings, unused_steps: usize) {
        // What the demo can't do here it does otherwise.
        let falls_back = is_demo(&settings);
        let planned =
            self.plan_for(settings, (Vec::new(), Vec::new()), Kind::Profile { falls_back, unused_steps });
        self.report(Event::Planned(planned.map(Arc::new)));
    }

    /// What it takes to build the target anew with those knobs turned.
    pub(super) fn plan(&mut self, turns: &[(String, Value)]) -> Result<PlanShown, String> {
        let mut settings = self.resolved.settings.clone();
        let (mut from, mut shown) = (Vec::new(), Vec::new());
        for (path, value) in turns {
            let knob = knobs::find(path).ok_or_else(|| format!("there is no `{path}`"))?;
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
        // The facts of the target that stands say nothing of the one to be.
        let problems = check(&settings, Conditions { facts: &self.resolved.facts, target: None });
        if let Some(problem) =
            problems.first().filter(|_| !matches!(kind, Kind::Profile { falls_back: true, .. }))
        {
            return Err(problem.to_string());
        }
        let away = !self.target.steps_back().is_empty();
        let builds = settings.stack.is_built() && settings.touches_storage();
        if away && (builds || settings.leaves_kernel() && settings.target != self.resolved.settings.target) {
            let why = "the drives have left the kernel, so what is on them can't be examined";
            return Err(format!("{why}: go back to one of the kernel's interfaces with a plan first"));
        }
        self.turns.plans_made += 1;
        let number = self.turns.plans_made;
        let facts = Facts { devices: Facts::read_devices(), ..(*self.resolved.facts).clone() };
        let mut agreed = None;
        let shown = if settings.stack.is_built() && settings.touches_storage() {
            let standing = self.target.built().map(Built::plan);
            let budget = self.resolved.budget.with_limit(settings.run.max_writes_bytes);
            let plan = planned(&settings, &facts, standing, self.target.claims(), &budget);
            let plan = plan.map_err(|error| error.one_line())?;
            agreed = Some((plan.id.clone(), plan.lines()));
            shown(&plan, keyed(&settings), number, turns)
        } else {
            let handed_over = self.handed_over(&settings)?;
            let destroys = held_by(&settings, &facts, &self.target);
            let destroys = destroys.map_err(|error| error.one_line())?;
            let held = self.held_folder();
            // What stands may still fill it.
            let taken = Taken { handed_over, destroys, writes_bytes: None };
            plain(&settings, taken, number, turns, held.as_deref())
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
        self.turns.pending = Some(Pending { number, settings, unused_steps, from, agreed, opens });
        Ok(shown)
    }

    /// The folder of files that the run has locked; none on devices or what was built.
    fn held_folder(&self) -> Option<PathBuf> {
        let folder = self.target.built().is_none()
            && self.resolved.settings.target.devices.is_empty()
            && self.resolved.settings.touches_storage();
        folder.then(|| expand_home(&self.resolved.settings.target.dir).ok()).flatten()
    }

    /// The steps by which the drives of those settings leave the kernel, where they do.
    fn handed_over(&self, settings: &Settings) -> Result<Vec<String>, String> {
        let Some(spec) = userspace_of(settings) else { return Ok(Vec::new()) };
        if self.resolved.settings.leaves_kernel() && settings.target == self.resolved.settings.target {
            // They come back first, and the kernel does not have them now.
            let devices = settings.target.devices.join(", ");
            return Ok(vec![format!("bind {devices} to vfio-pci again")]);
        }
        let facts = Facts { devices: Facts::read_devices(), ..(*self.resolved.facts).clone() };
        handover_steps(&spec, &settings.target.devices, &facts).map_err(|error| error.one_line())
    }

    /// Takes the plan that was shown under that number, if it still waits.
    pub(super) fn take_plan(&mut self, number: u64) -> Option<Pending> {
        self.turns.pending.take_if(|pending| pending.number == number)
    }

    /// What another session needs to go on by that plan.
    pub(super) fn carry(&mut self, pending: Pending, typed: Vec<String>) -> Rebuild {
        let Pending { settings, unused_steps, from, agreed, opens, .. } = pending;
        let is_undo = self.turns.undo.last().is_some_and(|last| {
            last.from
                .iter()
                .all(|(path, value)| knobs::find(path).is_some_and(|k| k.get(&settings) == *value))
        });
        let join = |texts: Vec<String>| texts.join(", ");
        let now = |(path, _): &(String, Value)| {
            knobs::find(path).map(|knob| knob.get(&settings).to_string()).unwrap_or_default()
        };
        let turn = Turn {
            knob: join(from.iter().map(|(path, _)| path.clone()).collect()),
            from: join(from.iter().map(|(_, value)| value.to_string()).collect()),
            to: join(from.iter().map(now).collect()),
            undo: is_undo,
            survives: (
                survival(&self.resolved.stack, &self.resolved.facts, self.losses.count),
                survival(&StackSpec::of(&settings), &self.resolved.facts, 0),
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

/// The devices of a target on which nothing is built of which the operator has to agree that all is
/// destroyed, `before` being the target that is closed and taken down first.
///
/// None where drives have left the kernel: what they hold is asked once they are back.
///
/// # Errors
/// Where the guard refuses a device.
fn held_by(settings: &Settings, facts: &Facts, before: &Target) -> crate::error::Result<Option<Vec<Wanted>>> {
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
            return Ok(Some(wanted_of(&Drive::of(device), content)));
        }
        let held = before.claims().iter().find(|held| held.device().number == device.number);
        let found = match held {
            Some(held) => guard::examine_held(held, facts, DEVICE_BYTES_MIN, &OursCheck)?,
            None => guard::examine(name, facts, DEVICE_BYTES_MIN, &OursCheck)?,
        };
        Ok(found.needs_consent().then(|| wanted_of(&Drive::of(device), found.content)))
    };
    let found = threads::each(&names, "examine a device", look).into_iter();
    found.filter_map(Result::transpose).collect::<crate::error::Result<_>>().map(Some)
}
