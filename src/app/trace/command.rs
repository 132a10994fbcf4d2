//! A command that runs while drives are traced: in the caller's folder, as the caller or the user named. Nothing that
//! it starts outlives the trace.

use std::io::{BufRead, BufReader, PipeReader, Read as _, pipe};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::app::output::print;
use crate::error::{Error, Result, describe};
use crate::host::User;
use crate::printable;
use crate::stack::id::StackId;
use crate::stack::journal::Journal;
use crate::stack::paths::state_dir;
use crate::stack::program::{Groups, Part, Start};
use crate::threads;

/// The longest line of its output; the rest counts as another line.
const LINE_BYTES_MAX: u64 = 4096;
/// How long it may take to end once asked; after that it is killed.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// A running command.
pub struct RunningCommand {
    name: String,
    child: Child,
    status: Option<ExitStatus>,
    output: JoinHandle<()>,
    groups: Groups,
    journal: Journal,
}

impl RunningCommand {
    /// Starts a command as that user; with none, as this process's.
    ///
    /// # Errors
    /// Input if there is no such program; refused where it can't be ended with all that it starts.
    pub fn start(words: &[String], user: Option<&User>) -> Result<Self> {
        let mut journal = Journal::begin(&state_dir(), &StackId::random(), "trace", &[])?;
        let groups = match Groups::make(&mut journal, false) {
            Ok(groups) => groups,
            Err(error) if journal.record().entries.iter().all(|entry| entry.to_undo().is_none()) => {
                return Err(journal.end().err().unwrap_or(error));
            }
            Err(error) => return Err(error),
        };
        match started(words, user, &groups) {
            Ok((child, output)) => {
                let name = printable::line(words.first().map_or("", String::as_str)).into_owned();
                Ok(Self { name, child, status: None, output, groups, journal })
            }
            Err(error) => {
                let removed = groups.remove(&mut journal).and_then(|()| journal.end());
                Err(removed.err().unwrap_or(error))
            }
        }
    }

    /// Whether it is still running.
    pub fn goes_on(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_none()
    }

    /// Ends it with all that it started.
    ///
    /// # Errors
    /// If it failed before it was asked to end, or if something does not end: `cleanup` ends that.
    pub fn end(mut self) -> Result<()> {
        let ended_itself = !self.goes_on();
        if !ended_itself {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::TERM);
            let until = Instant::now() + PATIENCE;
            while self.goes_on() && Instant::now() < until {
                std::thread::sleep(LOOK);
            }
        }
        self.groups.remove(&mut self.journal)?;
        self.journal.end()?;
        // Nothing writes to the pipe any more.
        let _ = self.output.join();
        let name = &self.name;
        match self.status.filter(|_| ended_itself).map(|status| (status.code(), status.signal())) {
            None | Some((Some(0), _)) => Ok(()),
            Some((Some(code), _)) => Err(Error::failed(format!("{name} ended with status {code}"))),
            Some((None, signal)) => {
                Err(Error::failed(format!("{name} was ended by signal {}", signal.unwrap_or_default())))
            }
        }
    }
}

fn started(words: &[String], user: Option<&User>, groups: &Groups) -> Result<(Child, JoinHandle<()>)> {
    let failed = |what: &str, error: &std::io::Error| Error::failed(format!("{what}: {}", describe(error)));
    let folder =
        std::env::current_dir().map_err(|error| failed("there is no folder to run it in", &error))?;
    let (from, to) = pipe().map_err(|error| failed("cannot make a pipe", &error))?;
    let start = Start { words, environment: &[], folder: &folder, user };
    let mut command = start.command(groups.entrances(Part::Run)?, to)?;
    let child = command.spawn().map_err(|error| failed("cannot start it", &error))?;
    // This closes our end of the pipe.
    drop(command);
    Ok((child, threads::start("read what the command prints", move || pass_on(from))?))
}

/// Passes the command's output on, line by line.
fn pass_on(from: PipeReader) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        let text = String::from_utf8_lossy(&line);
        // Its reader may be gone; the command goes on.
        let _ = print(&format!("{}\n", printable::line(text.trim_end_matches(['\n', '\r']))));
        line.clear();
    }
}
