//! Turning a knob of the program's own while it runs.

use super::process::Process;
use super::running::Running;
use super::turning::{Turned, Turning};
use crate::meter::turns::ledger::Turn;
use crate::runs::session::run::Session;

impl Running {
    fn begin_turn(&mut self, name: &str, value: &str) -> Result<(), String> {
        if self.turning.is_some() {
            return Err("another knob is being turned".to_owned());
        }
        let from = self.program.value_of(name).unwrap_or_default().to_owned();
        let mut program = self.program.clone();
        program.turn(name, value)?;
        let knob = program.knobs.into_iter().find(|knob| knob.name == name && !knob.turn.is_empty());
        let knob =
            knob.ok_or_else(|| format!("command.{name} has no `turn`: it is given with --set or in steps"))?;
        let words = self.values.turn(&knob).map_err(|error| error.one_line())?;
        let process =
            Process::start(&self.site, "knob.turn", &words, &[]).map_err(|error| error.one_line())?;
        self.turning = Some(Turning::new(process, knob, from));
        Ok(())
    }

    /// How the command of a knob ended, once it has.
    fn turned(&mut self) -> Option<Turned> {
        match self.turning.take()?.look() {
            Ok(turned) => {
                self.log += &turned.log;
                if let Ok((knob, _)) = &turned.outcome {
                    // The values in commands stay those of the beginning: what runs was started with them.
                    let _ = self.program.turn(&knob.name, &knob.value);
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
    /// Turns a knob of the program's own: begun now, in force and in the ledger once its command has succeeded.
    ///
    /// # Errors
    /// Why it can't be turned, as a sentence without a full stop.
    pub fn turn_program(&mut self, name: &str, value: &str) -> Result<(), String> {
        let running = self.program.as_mut().ok_or("there is no program")?;
        running.begin_turn(name, value)?;
        self.schedule.turned = true;
        Ok(())
    }

    pub(super) fn look_at_turning(&mut self) {
        let Some(running) = self.program.as_mut().filter(|running| running.turning.is_some()) else { return };
        let turned = running.turned();
        self.schedule.turned = true;
        match turned.map(|turned| turned.outcome) {
            None => {}
            Some(Err(why)) => self.notice(why),
            Some(Ok((knob, from))) => {
                self.turns.setting += 1;
                let turn = Turn {
                    at_ns: self.now_ns(),
                    knob: format!("command.{}", knob.name),
                    from,
                    to: knob.value,
                    ..Turn::default()
                };
                for line in self.turns.ledger.turn(turn) {
                    self.recorder.line(line);
                }
            }
        }
    }
}
