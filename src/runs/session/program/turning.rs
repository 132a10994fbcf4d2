//! The command that turns a knob of the program's own while it runs.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process::Process;
use crate::runs::session::turning::turns::TurnedBy;
use crate::settings::ProgramKnob;

/// How long the command may take.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// A requested turn.
#[derive(Debug, Clone)]
pub(super) struct WantedTurn {
    /// The knob, as the program calls it.
    pub name: String,
    /// The new value.
    pub value: String,
    /// Who asked for it.
    pub by: TurnedBy,
}

/// A knob's turn in progress.
#[derive(Debug)]
pub(super) struct Turning {
    process: Process,
    pub wanted: WantedTurn,
    until: Instant,
}

/// The outcome of a knob's command.
#[derive(Debug)]
pub(super) struct Turned {
    pub wanted: WantedTurn,
    /// Why the knob was not turned, if it was not.
    pub outcome: Result<(), String>,
}

impl Turning {
    /// A turn begun by that process.
    pub fn new(process: Process, wanted: WantedTurn) -> Self {
        Self { process, wanted, until: Instant::now() + PATIENCE }
    }

    /// Its outcome; itself if it is still in progress.
    pub fn look(mut self) -> Result<Turned, Box<Self>> {
        let status = self.process.ended();
        if status.is_none() {
            if Instant::now() < self.until {
                return Err(Box::new(self));
            }
            self.process.signal(Signal::KILL);
        }
        let well = status.is_some_and(|status| status.success());
        let outcome = if well { Ok(()) } else { Err(self.process.in_words()) };
        Ok(Turned { wanted: self.wanted, outcome })
    }
}

/// The knob of that name with that value, if it has a turn command.
pub(super) fn turnable(knobs: &[ProgramKnob], wanted: &WantedTurn) -> Option<ProgramKnob> {
    let knob = knobs.iter().find(|knob| knob.name == wanted.name && !knob.turn.is_empty())?;
    Some(ProgramKnob { value: wanted.value.clone(), ..knob.clone() })
}
