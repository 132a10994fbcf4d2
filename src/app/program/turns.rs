//! Knobs that the command line turns while the program runs.

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::runs::session::Session;
use crate::settings::Settings;
use crate::settings::knobs::{Scope, Value, of_program};
use crate::settings::values::program::MEMORY_MAX;
use crate::ui::cli::{ProgramTurn, parse_set};

/// What to turn.
enum Turned {
    /// A knob of the program's own, by name.
    OfProgram(String, String),
    /// Another, by path.
    OfStack(String, Value),
}

/// The turns that are left, the next one first.
pub(super) struct Turns(VecDeque<(u64, Turned)>);

impl Turns {
    /// The turns on the command line.
    ///
    /// # Errors
    /// Input if one can't be turned while a program runs.
    pub fn of(asked: &[ProgramTurn], settings: &Settings) -> Result<Self> {
        let mut turns = asked.iter().map(|turn| one(turn, settings)).collect::<Result<Vec<_>>>()?;
        turns.sort_by_key(|(at_ns, _)| *at_ns);
        Ok(Self(turns.into()))
    }

    /// Makes the turns that are due; returns sentences about those that failed.
    pub fn look(&mut self, session: &mut Session) -> Vec<String> {
        let mut wrong = Vec::new();
        while self.0.front().is_some_and(|(at_ns, _)| *at_ns <= session.now_ns()) {
            match self.0.pop_front() {
                Some((_, Turned::OfProgram(name, value))) => {
                    let turned = session.turn_program(&name, &value);
                    wrong.extend(turned.err().map(|why| format!("--turn command.{name}={value}: {why}")));
                }
                Some((_, Turned::OfStack(path, value))) => session.turn(&path, &value),
                None => {}
            }
        }
        wrong
    }
}

fn one(turn: &ProgramTurn, settings: &Settings) -> Result<(u64, Turned)> {
    let at_ns = turn.at.as_nanos() as u64;
    let wrong = |why: String| Error::input(format!("--turn {}={}: {why}", turn.path, turn.value));
    if let Some(name) = turn.path.strip_prefix("command.") {
        let mut program = settings.program.clone().unwrap_or_default();
        if name == MEMORY_MAX && program.memory_max_bytes.is_none() {
            return Err(wrong("the program has no memory limit from the beginning".to_owned())
                .hint("give it one: --mem SIZE"));
        }
        program.turn(name, &turn.value).map_err(wrong)?;
        if !of_program(settings).iter().any(|knob| knob.path == turn.path && knob.spec.scope == Scope::Live) {
            return Err(wrong("the knob has no `turn`".to_owned()).hint("give it with --set, or in steps"));
        }
        return Ok((at_ns, Turned::OfProgram(name.to_owned(), turn.value.clone())));
    }
    let (index, value) = parse_set(&format!("{}={}", turn.path, turn.value))?;
    let knob = &crate::settings::knobs::all()[index];
    let mut then = settings.clone();
    knob.set(&mut then, value.clone());
    if knob.scope_between(settings, &then) == Scope::Rebuild {
        return Err(wrong("it builds the stack anew".to_owned()).hint("give it with --set, or in steps"));
    }
    Ok((at_ns, Turned::OfStack(turn.path.clone(), value)))
}
