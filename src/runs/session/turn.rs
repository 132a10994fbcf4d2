//! Turning knobs while the load runs.

use std::sync::Arc;

use super::message::Event;
use super::run::{Session, Turned};
use super::target_stack::survival;
use crate::class::Class;
use crate::load::workers::Activity;
use crate::meter::ledger::Turn;
use crate::settings::Settings;
use crate::settings::knobs::{self, Ground, Knob, Scope, Value};
use crate::settings::profile::check;
use crate::settings::{change, jobs};

impl Session {
    /// Turns a knob: acknowledged at once, in force when the old I/O has drained.
    pub fn turn(&mut self, path: &str, value: &Value) {
        let outcome = self.try_turn(path, value, false).map(|()| !self.classes.any_pending());
        if outcome == Ok(false) {
            self.draining.push(path.to_owned());
        }
        self.tell(Event::Turned { knob: path.to_owned(), outcome });
        self.status();
    }

    /// Takes the last turn back.
    pub fn undo(&mut self) {
        let Some(last) = self.undo.pop() else {
            self.tell(Event::Notice("there is no turn to take back".into()));
            return;
        };
        let mut before = self.settings.clone();
        for (path, value) in &last.from {
            if let Some(knob) = knobs::find(path) {
                knob.set(&mut before, value.clone());
            }
        }
        if change::between(&self.settings, &before).scope == Scope::Rebuild {
            // Building is confirmed first; the turn stays to be taken back until then.
            let planned = self.plan(&last.from);
            self.undo.push(last);
            self.tell(Event::Planned(planned.map(Arc::new)));
            return;
        }
        for (knob, from) in last.from {
            let outcome = self.try_turn(&knob, &from, true).map(|()| !self.classes.any_pending());
            if outcome == Ok(false) {
                self.draining.push(knob.clone());
            }
            self.tell(Event::Turned { knob, outcome });
        }
        self.status();
    }

    fn try_turn(&mut self, path: &str, value: &Value, undo: bool) -> Result<(), String> {
        let knob = knobs::find(path).ok_or_else(|| format!("there is no `{path}`"))?;
        let from = knob.get(&self.settings);
        if from == *value {
            return Ok(());
        }
        let settings = self.turned_settings(knob, value)?;
        self.turn_engine(&settings)?;
        self.adjust(&settings)?;
        if !undo {
            self.undo.push(Turned { from: vec![(path.to_owned(), from.clone())] });
        }
        if knob.spec.only_reckons {
            // Nothing that is measured changes: no window is marked, and the ledger has nothing to tell.
            self.settings = settings;
            return Ok(());
        }
        let turn = Turn {
            at_ns: self.now_ns(),
            knob: path.to_owned(),
            from: from.to_string(),
            to: value.to_string(),
            undo,
            survives: {
                let lost = self.lost();
                (survival(&self.settings, &self.facts, lost), survival(&settings, &self.facts, lost))
            },
        };
        self.apply(settings);
        for line in self.ledger.turn(turn) {
            self.tell_line(line);
        }
        Ok(())
    }

    /// The settings after a turn, or why it can't be made.
    fn turned_settings(&self, knob: &Knob, value: &Value) -> Result<Settings, String> {
        let mut settings = self.settings.clone();
        knob.set(&mut settings, value.clone());
        if change::between(&self.settings, &settings).scope == Scope::Rebuild {
            return Err("it takes effect when the target is built anew: a plan says what that takes".into());
        }
        let ground = Ground { facts: &self.facts, target: self.target.facts() };
        if let Some(reason) = knob.unavailable(value, &self.settings, ground) {
            return Err(reason);
        }
        if let Some(problem) = check(&settings, ground).into_iter().next() {
            return Err(problem.to_string());
        }
        let needs_target = settings.touches_storage() && self.target.facts().is_none();
        if needs_target || settings.is_simulated() != self.is_simulated() {
            return Err("this run has no storage open: open a profile on a real interface instead".into());
        }
        Ok(settings)
    }

    /// Puts settings in force that differ in live knobs only.
    fn apply(&mut self, settings: Settings) {
        let restarts = change::between(&self.settings, &settings).restarts;
        if settings.run.max_writes_bytes != self.settings.run.max_writes_bytes {
            self.writes.limit(settings.run.max_writes_bytes);
            self.classes.forgive(true);
        }
        if settings.run.window != self.settings.run.window {
            self.change_window(settings.run.window.as_nanos() as u64);
        }
        self.settings = settings;
        self.plans = jobs::jobs(&self.settings);
        self.setting += 1;
        self.turned = true;
        for class in restarts {
            self.classes.forgive_class(class);
            self.stop_class(class);
        }
        self.settle_classes();
    }

    /// Pauses everything, or goes on. Nothing is intended while paused.
    pub fn pause(&mut self, paused: bool) {
        if self.paused == paused {
            return;
        }
        self.paused = paused;
        self.paused_in_window = true;
        self.turned = true;
        if paused {
            Class::ALL.into_iter().for_each(|class| self.stop_class(class));
        } else {
            self.settle_classes();
        }
        self.status();
    }

    /// Starts a class again that was stopped.
    pub fn restart(&mut self, class: Class) {
        self.classes.forgive_class(class);
        self.pairs.retry();
        if matches!(self.engine.activity(class), Activity::Running) {
            return;
        }
        self.turned = true;
        self.settle_classes();
        self.status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::session::Options;
    use crate::runs::session::headless::tests::Nobody;
    use crate::settings::Interface;
    use crate::units::SECOND_NS;

    #[test]
    fn a_knob_that_only_reckons_leaves_windows_and_ledger_alone_and_can_be_taken_back() {
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sim;
        let facts = Arc::new(crate::runs::record::fixture::facts());
        let mut session = Session::open(settings, Options::default(), facts, &mut Nobody).unwrap();
        session.start().unwrap();
        session.events().for_each(drop);
        let mut told = |act: &mut dyn FnMut(&mut Session), end_s: u64| {
            act(&mut session);
            session.advance(end_s * SECOND_NS);
            session.tick().unwrap();
            let (mut turned, mut lines) = (None, 0);
            for event in session.events() {
                match event {
                    Event::Window(window, _) => turned = Some(window.turned || window.setting > 0),
                    Event::Ledger(_) => lines += 1,
                    _ => {}
                }
            }
            (session.settings.run.drives, turned, lines)
        };
        let quiet = |drives| (drives, Some(false), 0);
        assert_eq!(told(&mut |s| s.turn("run.drives", &Value::Int(64)), 1), quiet(64));
        assert_eq!(told(&mut Session::undo, 2), quiet(8));
        let turned = told(&mut |s| s.turn("scan.depth", &Value::Int(8)), 3);
        assert_eq!(turned, (8, Some(true), 1), "a knob of the load does");
    }
}
