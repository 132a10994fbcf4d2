//! Turning knobs of the program's own while it runs: one after the other, each by its command, in force and
//! in the ledger once the command has succeeded.

use super::process::Process;
use super::running::Running;
use super::turning::{Turned, Turning, WantedTurn, turnable};
use crate::meter::turns::ledger::{Survival, Turn};
use crate::runs::session::message::Event;
use crate::runs::session::resolve::Resolved;
use crate::runs::session::run::Session;
use crate::runs::session::turning::survival::survival;
use crate::runs::session::turning::turns::{self, TurnedBy};
use crate::settings::knobs::{self, Value};
use crate::settings::values::program::MEMORY_MAX;

impl Running {
    /// Whether one of its own knobs is being turned, or waits to be.
    pub(in crate::runs::session) fn is_turning(&self) -> bool {
        self.turning.is_some() || !self.wanted.is_empty()
    }

    /// Queues a turn after those that wait; returns whether the knob has that value already. Of several values
    /// waiting for one knob, only the last is still wanted; if that drops a waiting undo, it is returned.
    fn want(&mut self, wanted: WantedTurn) -> Result<(bool, Option<WantedTurn>), String> {
        self.program.clone().turn(&wanted.name, &wanted.value)?;
        if turnable(&self.program.knobs, &wanted).is_none() {
            return Err("the knob has no `turn`: its value is given with --set, or in steps".to_owned());
        }
        let waits = self.wanted.iter().position(|waits| waits.name == wanted.name);
        let given_up = waits.and_then(|at| self.wanted.remove(at)).filter(|waits| waits.by == TurnedBy::Undo);
        let under_way = self.turning.as_ref().filter(|turning| turning.wanted.name == wanted.name);
        let value = under_way.map(|turning| turning.wanted.value.as_str());
        let value = value.or_else(|| self.program.value_of(&wanted.name));
        let has_it = value == Some(wanted.value.as_str());
        let in_force = has_it && under_way.is_none();
        if !has_it {
            self.wanted.push_back(wanted);
        }
        Ok((in_force, given_up))
    }

    /// Begins the next waiting turn, unless one is in progress; returns the outcome of one that could not begin.
    fn begin_next(&mut self) -> Option<Turned> {
        if self.turning.is_some() {
            return None;
        }
        let wanted = self.wanted.pop_front()?;
        let begun = turnable(&self.program.knobs, &wanted)
            .ok_or_else(|| "the knob has no `turn`".to_owned())
            .and_then(|knob| self.values.turn(&knob).map_err(|error| error.one_line()))
            .and_then(|words| {
                Process::start(&self.site, "knob.turn", &words, &[]).map_err(|error| error.one_line())
            });
        match begun {
            Ok(process) => {
                self.turning = Some(Turning::new(process, wanted));
                None
            }
            Err(why) => Some(Turned { wanted, outcome: Err(why) }),
        }
    }

    /// The outcome of a knob's command, once it has ended.
    fn turned(&mut self) -> Option<Turned> {
        match self.turning.take()?.look() {
            Ok(turned) => {
                if turned.outcome.is_ok() {
                    // In `stop` and the probes the values stay the initial ones: the server was started with them.
                    let _ = self.program.turn(&turned.wanted.name, &turned.wanted.value);
                }
                Some(turned)
            }
            Err(turning) => {
                self.turning = Some(*turning);
                None
            }
        }
    }
}

impl Session {
    /// Turns one of the program's own knobs: now, or after those that are being turned.
    ///
    /// # Errors
    /// Why it can't be turned, as a sentence without a full stop.
    pub fn turn_program(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.turn_own(name, value, TurnedBy::Operator).map(drop)
    }

    /// The same; returns whether it has that value already.
    pub(in crate::runs::session) fn turn_own(
        &mut self,
        name: &str,
        value: &str,
        by: TurnedBy,
    ) -> Result<bool, String> {
        let running = self.program.as_mut().ok_or("there is no program")?;
        let wanted = WantedTurn { name: name.to_owned(), value: value.trim().to_owned(), by };
        if name == MEMORY_MAX {
            return self.limit_program(wanted);
        }
        let (in_force, given_up) = running.want(wanted)?;
        given_up.into_iter().for_each(|wanted| self.can_be_undone(&wanted.name, &wanted.value));
        self.look_at_turning();
        Ok(in_force)
    }

    /// Limits the program's memory, which is in force at once.
    fn limit_program(&mut self, wanted: WantedTurn) -> Result<bool, String> {
        let running = self.program.as_mut().ok_or("there is no program")?;
        let mut turned = running.program.clone();
        turned.turn(&wanted.name, &wanted.value)?;
        let now = running.program.memory_max_bytes.ok_or("the program began without a memory limit")?;
        let Some(bytes) = turned.memory_max_bytes.filter(|bytes| *bytes != now) else { return Ok(true) };
        let limited = running.site.groups.limit(bytes).map_err(|error| error.one_line());
        if limited.is_ok() {
            running.program = turned;
        }
        self.schedule.turned = true;
        self.take_turned(Turned { wanted, outcome: limited });
        Ok(false)
    }

    pub(super) fn look_at_turning(&mut self) {
        let Some(running) = &mut self.program else { return };
        let was_turning = running.turning.is_some();
        let ended = running.turned();
        let next = running.begin_next();
        self.schedule.turned |= was_turning || running.turning.is_some();
        ended.into_iter().chain(next).for_each(|turned| self.take_turned(turned));
    }

    fn take_turned(&mut self, turned: Turned) {
        let WantedTurn { name, value, by } = turned.wanted;
        let path = format!("command.{name}");
        if let Err(why) = &turned.outcome {
            if by == TurnedBy::Undo {
                self.can_be_undone(&name, &value);
            }
            if self.resolved.options.operated.is_none() {
                self.notice(format!("the knob {path} was not turned: {why}"));
            }
        } else {
            let before = self.survives();
            let Some(program) = &mut self.resolved.settings.program else { return };
            let from = program.text_of(&name).unwrap_or_default();
            let _ = program.turn(&name, &value);
            self.turns.setting += 1;
            let turn = Turn {
                at_ns: self.now_ns(),
                knob: path.clone(),
                from: from.clone(),
                to: value,
                undo: by == TurnedBy::Undo,
                duel: by.values(),
                survives: (before, self.survives()),
            };
            self.enter(turn);
            if by == TurnedBy::Operator {
                self.can_be_undone(&name, &from);
            }
        }
        self.report(Event::Turned { knob: path, outcome: turned.outcome.map(|()| true) });
        self.status();
    }

    /// What the current settings survive.
    fn survives(&self) -> Survival {
        let Resolved { settings, stack, facts, .. } = &self.resolved;
        survival((settings, stack), facts, self.losses.count)
    }

    /// Makes the last turn of one of the program's own knobs undoable; the knob had that value before.
    fn can_be_undone(&mut self, name: &str, from: &str) {
        let path = format!("command.{name}");
        let knob = knobs::find_of(&self.resolved.settings, &path);
        let from: Option<Value> = knob.and_then(|knob| knob.parse(from).ok());
        self.turns.undo.extend(from.map(|from| turns::Turned { from: vec![(path, from)] }));
    }
}
