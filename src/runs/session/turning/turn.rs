//! Turning knobs while the load runs.

use std::sync::Arc;

use super::survival::survival;
use super::turns::{Turned, TurnedBy};
use crate::class::Class;
use crate::meter::turns::ledger::Turn;
use crate::runs::session::message::Event;
use crate::runs::session::program::{Running, for_program};
use crate::runs::session::resolve::Resolved;
use crate::runs::session::run::Session;
use crate::settings::Settings;
use crate::settings::change;
use crate::settings::knobs::{self, Knob, Scope, Value};

/// Whether only settings that concern a program are set.
fn keeps_program(settings: &Settings) -> bool {
    for_program(settings.clone()).is_ok_and(|of_program| of_program == *settings)
}

impl Session {
    /// Turns a knob: acknowledged at once, and in force once the old I/O has drained.
    pub fn turn(&mut self, path: &str, value: &Value) {
        self.turn_by(path, value, &TurnedBy::Operator);
    }

    /// Turns the knob of a duel between these values: its turns share one ledger line, and can't be undone.
    pub(in crate::runs::session) fn turn_in_duel(&mut self, path: &str, value: &Value, values: [String; 2]) {
        self.turns.duel = Some((path.to_owned(), values.clone()));
        self.turn_by(path, value, &TurnedBy::Duel(values));
    }

    fn turn_by(&mut self, path: &str, value: &Value, by: &TurnedBy) {
        let outcome = self.begin_turn(path, value, by);
        self.report(Event::Turned { knob: path.to_owned(), outcome });
        self.status();
    }

    /// Undoes the last turn.
    pub fn undo(&mut self) {
        if self.program.as_ref().is_some_and(Running::is_turning) {
            let why = "a knob of the program's is being turned: undo that once it has its value";
            return self.report(Event::Notice(why.into()));
        }
        let Some(last) = self.turns.undo.pop() else {
            self.report(Event::Notice("there is no turn to undo".into()));
            return;
        };
        let mut before = self.resolved.settings.clone();
        for (path, value) in &last.from {
            if let Some(knob) = knobs::find_of(&self.resolved.settings, path) {
                knob.set(&mut before, value.clone());
            }
        }
        if change::between(&self.resolved.settings, &before).scope == Scope::Rebuild {
            // A rebuild must be confirmed first; until then the turn can still be undone.
            let planned = self.plan(&last.from);
            self.turns.undo.push(last);
            self.report(Event::Planned(planned.map(Arc::new)));
            return;
        }
        if last.from.iter().any(|(path, value)| self.destroys(path, value)) {
            self.report(Event::Notice(
                "undoing that would fail a member again: turn md.array to do it".into(),
            ));
            return;
        }
        self.turn_each(last.from, &TurnedBy::Undo);
        self.status();
    }

    /// Turns several knobs back to their earlier values; one undo reverts that. If it builds the target anew,
    /// or destroys data, the plan is shown instead.
    pub fn turn_back(&mut self, turns: Vec<(String, Value)>) {
        let mut then = self.resolved.settings.clone();
        for (path, value) in &turns {
            if let Some(knob) = knobs::find_of(&self.resolved.settings, path) {
                knob.set(&mut then, value.clone());
            }
        }
        if change::between(&self.resolved.settings, &then).scope == Scope::Rebuild {
            return self.report_plan(&turns);
        }
        if let [(path, value)] = &turns[..] {
            return self.turn_or_plan(path, value);
        }
        if turns.iter().any(|(path, value)| self.destroys(path, value)) {
            let why = "that would fail a member: turn md.array by itself, whose plan names it";
            return self.report(Event::Notice(format!("nothing was turned back: {why}")));
        }
        let before = self.turns.undo.len();
        self.turn_each(turns, &TurnedBy::Operator);
        let made = self.turns.undo.split_off(before);
        // In reverse order: each turn was possible after those before it.
        let from: Vec<_> = made.into_iter().rev().flat_map(|turned| turned.from).collect();
        if !from.is_empty() {
            self.turns.undo.push(Turned { from });
        }
        self.status();
    }

    /// Turns knobs, each as soon as possible: a value may need another knob's turn first.
    fn turn_each(&mut self, mut turns: Vec<(String, Value)>, by: &TurnedBy) {
        loop {
            let (many, mut refusals) = (turns.len(), Vec::new());
            turns.retain(|(path, value)| {
                let outcome = self.begin_turn(path, value, by);
                let event = Event::Turned { knob: path.clone(), outcome };
                let is_refused = matches!(event, Event::Turned { outcome: Err(_), .. });
                if is_refused {
                    refusals.push(event);
                } else {
                    self.report(event);
                }
                is_refused
            });
            if turns.is_empty() || turns.len() == many {
                return refusals.into_iter().for_each(|refused| self.report(refused));
            }
        }
    }

    /// Turns a knob; returns whether it is in force at once.
    fn begin_turn(&mut self, path: &str, value: &Value, by: &TurnedBy) -> Result<bool, String> {
        let knob = knobs::find_of(&self.resolved.settings, path);
        if let Some(name) = knob.and_then(Knob::of_program) {
            return self.turn_own(name, &value.to_string(), by.clone());
        }
        self.try_turn(path, value, by)?;
        let in_force = !self.classes.any_pending();
        if !in_force {
            self.turns.draining.push(path.to_owned());
        }
        Ok(in_force)
    }

    fn try_turn(&mut self, path: &str, value: &Value, by: &TurnedBy) -> Result<(), String> {
        let knob = knobs::find(path).ok_or_else(|| format!("there is no `{path}`"))?;
        let from = knob.get(&self.resolved.settings);
        if from == *value {
            return Ok(());
        }
        let turned = self.resolved.turned(knob, value, self.target.facts())?;
        if turned.settings.program.is_some() && !keeps_program(&turned.settings) {
            return Err(format!("`{path}` has no effect where a program is the load"));
        }
        let (was, now) = (&self.resolved, &turned);
        if let Some(pairs) =
            self.target.key_value().filter(|_| now.settings.kv.rocksdb != was.settings.kv.rocksdb)
        {
            pairs.turn(&now.settings.kv.rocksdb)?;
        }
        // A refused turn may have set some attributes before it failed.
        let tuned = &mut self.schedule.tuned_in_window;
        tuned.queues |= was.host.queue != now.host.queue;
        tuned.md |= was.host.md != now.host.md;
        self.host.turn(&was.host, &now.host, &mut self.target)?;
        if *by == TurnedBy::Operator {
            self.turns.undo.push(Turned { from: vec![(path.to_owned(), from.clone())] });
        }
        let idle = knob.inactive(&was.settings).is_some() && knob.inactive(&now.settings).is_some();
        if knob.spec.only_reckons || idle {
            // The measured load stays the same: no window is marked, and the ledger gets no line.
            self.resolved = turned;
            return Ok(());
        }
        let turn = Turn {
            at_ns: self.now_ns(),
            knob: path.to_owned(),
            from: from.to_string(),
            to: value.to_string(),
            undo: *by == TurnedBy::Undo,
            duel: by.values(),
            survives: {
                let (facts, lost) = (&self.resolved.facts, self.losses.count);
                let of = |resolved: &Resolved| survival((&resolved.settings, &resolved.stack), facts, lost);
                (of(&self.resolved), of(&turned))
            },
        };
        self.apply(turned);
        self.enter(turn);
        Ok(())
    }

    /// Enters a turn into the ledger. The last turn of a program's knob in a duel may come when the duel is over.
    pub(in crate::runs::session) fn enter(&mut self, turn: Turn) {
        if let Some(tap) = &self.tap {
            tap.note(self.schedule.epoch_ns + turn.at_ns, format!("turn {} = {}", turn.knob, turn.to));
        }
        let (ledger, on) = (&mut self.turns.ledger, &self.turns.duel);
        let is_late = turn
            .duel
            .as_ref()
            .is_some_and(|values| on.as_ref().is_none_or(|(knob, of)| *knob != turn.knob || of != values));
        let lines = if is_late { ledger.turn_after_duel(turn) } else { ledger.turn(turn) };
        for line in lines {
            self.recorder.line(line);
        }
    }

    /// Applies settings that differ only in live knobs.
    fn apply(&mut self, resolved: Resolved) {
        let restarts = change::between(&self.resolved.settings, &resolved.settings).restarts;
        let limit_bytes = resolved.budget.limit_bytes;
        if limit_bytes != self.resolved.budget.limit_bytes {
            self.written.writes.limit(limit_bytes);
            self.classes.forgive_exhausted();
        }
        if resolved.pace != self.resolved.pace {
            // The current window becomes that long too.
            self.schedule.next_window_ns = self.now_ns() + resolved.pace.window_ns;
        }
        self.resolved = resolved;
        self.turns.setting += 1;
        self.schedule.turned = true;
        for class in restarts {
            self.classes.forgive(class);
            self.stop_class(class);
        }
        self.settle_classes();
    }

    /// Pauses everything, or resumes. No I/O is intended while paused.
    pub fn pause(&mut self, paused: bool) {
        if self.schedule.paused == paused {
            return;
        }
        self.schedule.paused = paused;
        self.schedule.paused_in_window = true;
        self.schedule.turned = true;
        if paused {
            Class::ALL.into_iter().for_each(|class| self.stop_class(class));
        } else {
            self.settle_classes();
        }
        self.status();
    }

    /// Restarts a class that was stopped.
    pub fn restart(&mut self, class: Class) {
        self.classes.forgive(class);
        if let Some(pairs) = self.target.key_value_mut() {
            pairs.retry();
        }
        if self.classes.is_running(class) {
            return;
        }
        self.schedule.turned = true;
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
    use crate::settings::Settings;
    use crate::units::SECOND_NS;

    #[test]
    fn a_knob_that_only_affects_derived_figures_leaves_windows_and_ledger_alone() {
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sim;
        let facts = Arc::new(crate::runs::record::fixture::facts());
        let mut session = Session::open(settings, Options::default(), facts, &mut Nobody).unwrap();
        session.start().unwrap();
        session.events().for_each(drop);
        let mut after = |act: &mut dyn FnMut(&mut Session), end_s: u64| {
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
            (session.resolved.settings.run.drives, turned, lines)
        };
        let quiet = |drives| (drives, Some(false), 0);
        assert_eq!(after(&mut |s| s.turn("run.drives", &Value::Int(64)), 1), quiet(64));
        assert_eq!(after(&mut Session::undo, 2), quiet(8));
        let turned = after(&mut |s| s.turn("scan.depth", &Value::Int(8)), 3);
        assert_eq!(turned, (8, Some(true), 1), "a knob of the load does");
        // Offsets are uniform.
        let idle = after(&mut |s| s.turn("scan.zipf_theta", &Value::Float(0.5)), 5);
        assert_eq!(idle.2, 0, "one without an effect does not");
    }

    #[test]
    fn several_knobs_are_turned_back_together_and_undone_together() {
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sim;
        let facts = Arc::new(crate::runs::record::fixture::facts());
        let mut session = Session::open(settings, Options::default(), facts, &mut Nobody).unwrap();
        session.start().unwrap();
        let depths = |session: &Session| [0, 1].map(|class| session.resolved.settings.classes[class].depth);
        let marked = depths(&session);
        session.turn("scan.depth", &Value::Int(8));
        session.turn("point.depth", &Value::Int(4));
        session.events().for_each(drop);

        let back = |value: u64, path: &str| (path.to_owned(), Value::Int(value));
        session.turn_back(vec![back(marked[0], "scan.depth"), back(marked[1], "point.depth")]);
        assert_eq!(depths(&session), marked);
        let is_turned = |event: &Event| matches!(event, Event::Turned { outcome: Ok(_), .. });
        assert_eq!(session.events().filter(is_turned).count(), 2);
        session.undo();
        assert_eq!(depths(&session), [8, 4]);

        // An impossible turn is reported, and the other one is made.
        session.events().for_each(drop);
        session.turn_back(vec![back(1, "no.knob"), back(marked[1], "point.depth")]);
        assert_eq!(depths(&session), [8, marked[1]]);
        let is_refused = |event: &Event| matches!(event, Event::Turned { outcome: Err(_), .. });
        assert_eq!(session.events().filter(is_refused).count(), 1);

        // A turn that builds the target anew is shown first.
        session.turn_back(vec![back(2, "target.files.count"), back(marked[0], "scan.depth")]);
        assert_eq!(depths(&session), [8, marked[1]]);
        assert!(session.events().any(|event| matches!(event, Event::Planned(_))));
    }
}
