//! The command that turns a knob of the program's own while it runs.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process::Process;
use crate::settings::ProgramKnob;

/// The command may take this long.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// A knob that is being turned.
#[derive(Debug)]
pub(super) struct Turning {
    process: Process,
    from: String,
    knob: ProgramKnob,
    until: Instant,
}

/// How the command of a knob ended.
#[derive(Debug)]
pub(super) struct Turned {
    /// The knob with its value now, and the value before; or why it was not turned.
    pub outcome: Result<(ProgramKnob, String), String>,
    /// The command's last lines.
    pub log: String,
}

impl Turning {
    /// Of a knob with its new value.
    pub fn new(process: Process, knob: ProgramKnob, from: String) -> Self {
        Self { process, from, knob, until: Instant::now() + PATIENCE }
    }

    /// How it ended; itself while it has not.
    pub fn look(mut self) -> Result<Turned, Box<Self>> {
        let status = self.process.ended();
        if status.is_none() {
            if Instant::now() < self.until {
                return Err(Box::new(self));
            }
            self.process.signal(Signal::KILL);
        }
        let log = self.process.log();
        let name = &self.knob.name;
        let failed = || format!("the knob command.{name} was not turned: {}", self.process.in_words());
        let well = status.is_some_and(|status| status.success());
        let outcome = if well { Ok((self.knob, self.from)) } else { Err(failed()) };
        Ok(Turned { outcome, log })
    }
}
