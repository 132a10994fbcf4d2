//! A process of a program in one of its phases.

use std::io::pipe;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::log::ProgramLog;
use super::output::Output;
use crate::error::{Error, Result, describe};
use crate::host::User;
use crate::meter::programs::program_io::ByName;
use crate::settings::Metric;
use crate::stack::program::{Groups, Part, Place, Start};

const LOOK: Duration = Duration::from_millis(20);

/// Phases whose answers would fill the log.
const ASKED_OFTEN: [&str; 2] = ["ready", PROBES];

/// The phase of the probes' commands.
pub(super) const PROBES: &str = "probes";

/// The means to start a program's processes.
#[derive(Debug)]
pub(super) struct Site {
    // Dropped first: its processes must end before the thread that started them.
    pub groups: Groups,
    pub place: Place,
    pub user: Option<User>,
    pub environment: Vec<(String, String)>,
    pub by_name: ByName,
    pub log: Arc<ProgramLog>,
}

/// A process, and everything in its process group.
#[derive(Debug)]
pub(super) struct Process {
    phase: &'static str,
    child: Child,
    by_name: ByName,
    output: Arc<Output>,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts a phase.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start(site: &Site, phase: &'static str, words: &[String], metrics: &[Metric]) -> Result<Self> {
        let (from, to) =
            pipe().map_err(|error| Error::failed(format!("cannot make a pipe: {}", describe(&error))))?;
        let start = Start {
            words,
            environment: &site.environment,
            folder: site.place.dir(),
            user: site.user.as_ref(),
        };
        let part = match phase {
            "start" => Part::Server,
            "run" => Part::Run,
            _ => Part::Rest,
        };
        let command = start.command(site.groups.entrances(part)?, to)?;
        let child = site.place.start(command)?;
        let by_name = site.by_name.clone();
        let log = (!ASKED_OFTEN.contains(&phase)).then(|| (site.log.clone(), phase));
        Ok(Self { phase, child, by_name, output: Output::read(from, metrics, log)?, status: None })
    }

    /// Its exit status, once it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() && self.has_exited() {
            // Its counts, and its children's, are lost when it is reaped.
            self.by_name.last_look(self.child.id());
            self.status = self.child.try_wait().ok().flatten();
            if self.status.is_some() {
                self.output.settle();
            }
        }
        self.status
    }

    /// Whether it has exited, reaped or not.
    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options).map_or(true, |status| status.is_some())
    }

    /// Waits for its end while `goes_on`; none if it has not ended by then.
    pub fn wait(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Option<ExitStatus> {
        while self.ended().is_none() && goes_on() {
            std::thread::sleep(LOOK);
        }
        self.status
    }

    /// Signals it and its group, unless it has ended: its pid may have been reused then.
    pub fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            let _ = kill_process_group(Pid::from_child(&self.child), signal);
        }
    }

    /// How it ended, with its last line: `run ended with status 3: no space`.
    pub fn in_words(&self) -> String {
        let how = match self.status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => format!("ended with status {code}"),
            Some((None, Some(signal))) => format!("was ended by signal {signal}"),
            _ => "has not ended".to_owned(),
        };
        let said = self.output.last_line().map_or_else(String::new, |line| format!(": {line}"));
        format!("command.{} {how}{said}", self.phase)
    }

    /// Its output.
    pub fn output(&self) -> &Output {
        &self.output
    }
}
