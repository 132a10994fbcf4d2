//! Building the target anew while a session runs: planned and shown first, then done as it was shown.

use std::path::PathBuf;
use std::sync::Arc;

use super::message::{Event, PlanShown};
use super::run::{Carried, Session, Turned};
use super::target_stack::{self, survival};
use super::userspace_drives;
use crate::host::Facts;
use crate::meter::ledger::Turn;
use crate::settings::Settings;
use crate::settings::knobs::{self, Ground, Value};
use crate::settings::profile::{check, expand_home, is_demo};
use crate::stack::build::Built;
use crate::stack::id::StackId;

/// A knob's path, and its values before and after, as they are shown.
type Shown = (String, String, String);

/// What a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Knobs turned on the profile that runs.
    Turns,
    /// Another profile.
    Profile {
        /// What this host can't do of it is replaced (the demo).
        falls_back: bool,
    },
}

/// A plan that waits for the operator.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub number: u64,
    pub settings: Settings,
    pub from: Vec<(String, Value)>,
    /// The stack's id and the steps that were shown; none where nothing is built.
    pub agreed: Option<(StackId, Vec<String>)>,
    /// Whether it opens another profile: a run of its own then, with its own clock and ledger.
    pub opens: bool,
}

/// The run as it was before a plan was done.
#[derive(Debug, Clone)]
pub(super) struct Former {
    pub settings: Settings,
    pub carried: Carried,
}

/// What another session is to go on with.
pub(super) struct Rebuild {
    /// Its settings.
    pub settings: Settings,
    /// What the operator typed.
    pub typed: Vec<String>,
    /// The run until now, to go on with where this can't be built.
    pub former: Former,
    /// See [`Options::agreed`](super::Options::agreed).
    pub agreed: Option<(StackId, Vec<String>)>,
    /// What the session goes on with; none where it opens another profile.
    pub carried: Option<Carried>,
}

impl Session {
    /// Plans the target with those knobs turned, and tells what it takes. The load goes on meanwhile.
    pub(super) fn tell_plan(&mut self, turns: &[(String, Value)]) {
        let planned = self.plan(turns);
        self.tell(Event::Planned(planned.map(Arc::new)));
    }

    /// Whether opening another profile takes a plan: what stands is taken down for it.
    pub(super) fn opens_by_plan(&self) -> bool {
        self.target.built.is_some()
    }

    /// Plans to open another profile, and tells what it takes. The load goes on meanwhile.
    pub(super) fn tell_plan_to_open(&mut self, settings: Settings) {
        // What the demo can't do here it does otherwise.
        let falls_back = is_demo(&settings);
        let planned = self.plan_for(settings, (Vec::new(), Vec::new()), Kind::Profile { falls_back });
        self.tell(Event::Planned(planned.map(Arc::new)));
    }

    /// What it takes to build the target anew with those knobs turned.
    pub(super) fn plan(&mut self, turns: &[(String, Value)]) -> Result<PlanShown, String> {
        let mut settings = self.settings.clone();
        let (mut from, mut shown) = (Vec::new(), Vec::new());
        for (path, value) in turns {
            let knob = knobs::find(path).ok_or_else(|| format!("there is no `{path}`"))?;
            let old = knob.get(&self.settings);
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
        if self.options.read_only {
            return Err("the run is read-only: nothing is built".into());
        }
        // The facts of the target that stands say nothing of the one to be.
        let problems = check(&settings, Ground { facts: &self.facts, target: None });
        if let Some(problem) = problems.first().filter(|_| kind != Kind::Profile { falls_back: true }) {
            return Err(problem.to_string());
        }
        let away = !self.target.steps_back().is_empty();
        let builds = settings.stack.is_built() && settings.touches_storage();
        if away && (builds || settings.leaves_kernel() && settings.target != self.settings.target) {
            let why = "the drives have left the kernel, and what they hold can't be looked at";
            return Err(format!("{why}: go back to one of the kernel's interfaces by a plan first"));
        }
        self.plans_made += 1;
        let number = self.plans_made;
        let facts = Facts { devices: Facts::read_devices(), ..(*self.facts).clone() };
        let mut agreed = None;
        let shown = if settings.stack.is_built() && settings.touches_storage() {
            let plan = target_stack::planned(&settings, &facts, Some(&self.target))
                .map_err(|error| error.one_line())?;
            agreed = Some((plan.id.clone(), plan.lines()));
            target_stack::shown(&plan, number, turns)
        } else {
            let handed_over = self.handed_over(&settings)?;
            let destroys = target_stack::held_by(&settings, &facts, &self.target);
            let destroys = destroys.map_err(|error| error.one_line())?;
            let held = self.held_folder();
            target_stack::plain(&settings, &handed_over, number, turns, destroys, held.as_deref())
        };
        let opens = kind != Kind::Turns;
        let shown = PlanShown {
            opens: opens.then(|| settings.name.clone()),
            takes_down: self.target.built.as_ref().map(Built::commands_down).unwrap_or_default(),
            lines: [self.target.steps_back(), shown.lines].concat(),
            ..shown
        };
        self.pending = Some(Pending { number, settings, from, agreed, opens });
        Ok(shown)
    }

    /// The folder of files that the run has locked; none on devices or what was built.
    fn held_folder(&self) -> Option<PathBuf> {
        let folder = self.target.built.is_none()
            && self.settings.target.devices.is_empty()
            && self.settings.touches_storage();
        folder.then(|| expand_home(&self.settings.target.dir).ok()).flatten()
    }

    /// The steps by which the drives of those settings leave the kernel, where they do.
    fn handed_over(&self, settings: &Settings) -> Result<Vec<String>, String> {
        if !settings.leaves_kernel() {
            return Ok(Vec::new());
        }
        if self.settings.leaves_kernel() && settings.target == self.settings.target {
            // They come back first, and the kernel does not tell of them now.
            let devices = settings.target.devices.join(", ");
            return Ok(vec![format!("bind {devices} to vfio-pci again")]);
        }
        let facts = Facts { devices: Facts::read_devices(), ..(*self.facts).clone() };
        userspace_drives::steps(settings, &facts).map_err(|error| error.one_line())
    }

    /// Takes the plan that was shown under that number, if it still waits.
    pub(super) fn take_plan(&mut self, number: u64) -> Option<Pending> {
        self.pending.take_if(|pending| pending.number == number)
    }

    /// What another session needs to go on by that plan.
    pub(super) fn carry(&mut self, pending: Pending, typed: Vec<String>) -> Rebuild {
        let Pending { settings, from, agreed, opens, .. } = pending;
        let is_undo = self.undo.last().is_some_and(|last| {
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
                survival(&self.settings, &self.facts, self.lost()),
                survival(&settings, &self.facts, 0),
            ),
            ..Turn::default()
        };
        let former = Carried {
            ledger: self.ledger.clone(),
            setting: self.setting + 1,
            undo: self.undo.clone(),
            epoch_ns: Some(self.epoch_ns()),
            started: Some(self.started()),
            turn: None,
        };
        let mut undo = std::mem::take(&mut self.undo);
        if is_undo {
            undo.pop();
        } else if !from.is_empty() {
            undo.push(Turned { from: from.clone() });
        }
        let turn = (!from.is_empty()).then_some(turn);
        let carried = (!opens).then(|| Carried { undo, turn, ..former.clone() });
        let former = Former { settings: self.settings.clone(), carried: former };
        Rebuild { settings, typed, former, agreed, carried }
    }
}
