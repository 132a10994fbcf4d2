//! Building the target anew while a session runs: planned and shown first, then done as it was shown.

use std::sync::Arc;

use super::message::{Event, PlanShown};
use super::run::{Carried, Session, Turned};
use super::standing::{self, survival};
use super::target::touches_storage;
use crate::host::Facts;
use crate::knobs::{self, Ground, Value};
use crate::meter::ledger::Turn;
use crate::profile::{Settings, check};
use crate::stack::build::Built;
use crate::stack::plan::StackId;

/// A plan that waits for the operator.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub number: u64,
    pub settings: Settings,
    pub from: Vec<(String, Value)>,
    /// The stack's id and the steps that were shown; none where nothing is built.
    pub agreed: Option<(StackId, Vec<String>)>,
}

/// What another session is to go on with.
pub(super) struct Rebuild {
    /// Its settings.
    pub settings: Settings,
    /// What the operator typed.
    pub typed: Vec<String>,
    /// The settings until now.
    pub former: Settings,
    /// See [`Options::agreed`](super::Options::agreed).
    pub agreed: Option<(StackId, Vec<String>)>,
    pub carried: Carried,
}

impl Session {
    /// Plans the target with those knobs turned, and tells what it takes. The load goes on meanwhile.
    pub(super) fn tell_plan(&mut self, turns: &[(String, Value)]) {
        let planned = self.plan(turns);
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
        if self.options.read_only {
            return Err("the run is read-only: nothing is built".into());
        }
        // The facts of the target that stands say nothing of the one to be.
        let problems = check(&settings, Ground { facts: &self.facts, target: None });
        if let Some(problem) = problems.first() {
            return Err(problem.to_string());
        }
        self.plans_made += 1;
        let number = self.plans_made;
        let mut agreed = None;
        let mut shown = if settings.stack.is_built() && touches_storage(&settings) {
            let facts = Facts { devices: Facts::read_devices(), ..(*self.facts).clone() };
            let plan =
                standing::planned(&settings, &facts, Some(&self.target)).map_err(|error| error.one_line())?;
            agreed = Some((plan.id.clone(), plan.lines()));
            standing::shown(&plan, number, shown)
        } else {
            standing::plain(&settings, number, shown)
        };
        shown.takes_down = self.target.built.as_ref().map(Built::commands_down).unwrap_or_default();
        self.pending = Some(Pending { number, settings, from, agreed });
        Ok(shown)
    }

    /// Takes the plan that was shown under that number, if it still waits.
    pub(super) fn take_plan(&mut self, number: u64) -> Option<Pending> {
        self.pending.take_if(|pending| pending.number == number)
    }

    /// What another session needs to go on by that plan.
    pub(super) fn carry(&mut self, pending: Pending, typed: Vec<String>) -> Rebuild {
        let Pending { settings, from, agreed, .. } = pending;
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
            survives: (survival(&self.settings, &self.facts), survival(&settings, &self.facts)),
            ..Turn::default()
        };
        let mut undo = std::mem::take(&mut self.undo);
        if is_undo {
            undo.pop();
        } else if !from.is_empty() {
            undo.push(Turned { from: from.clone() });
        }
        Rebuild {
            former: self.settings.clone(),
            typed,
            agreed,
            carried: Carried {
                ledger: std::mem::take(&mut self.ledger),
                setting: self.setting + 1,
                undo,
                epoch_ns: Some(self.epoch_ns()),
                started: Some(self.started()),
                turn: (!from.is_empty()).then_some(turn),
            },
            settings,
        }
    }
}
