//! A program that is set up, and what is under way of it.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process::{Process, Site};
use super::stop_if::StopIf;
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::marks::PROGRAM_NAME;
use crate::meter::program::ProgramProbe;
use crate::printable::Shown as _;
use crate::runs::session::targets::Target;
use crate::settings::Program;
use crate::stack::journal::Journal;

/// The file beside the program's folder that says by what it was set up.
const SETUP_NAME: &str = "stacktune-setup";
const SETUP_BYTES_MAX: u64 = 1 << 20;
/// A server is asked this often whether it is ready, for this long.
const READY_LOOK: Duration = Duration::from_millis(200);
const READY_PATIENCE: Duration = Duration::from_mins(1);
/// What is asked to end is asked harder after this.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The same for a server that `command.stop` ends.
const STOP_PATIENCE: Duration = Duration::from_mins(1);
/// The same where the run ends itself for the host's sake.
pub(super) const URGENT_PATIENCE: Duration = Duration::from_millis(300);

const LOOK: Duration = Duration::from_millis(20);

/// A program that is set up, and what is under way of it.
pub(in crate::runs::session) struct Running {
    // Dropped first: it ends whatever of the program is left.
    pub(super) site: Site,
    pub(super) program: Program,
    /// Where nothing was built, whose journal would have the cgroups.
    pub(super) own: Option<Journal>,
    pub(super) probe: ProgramProbe,
    pub(super) server: Option<Process>,
    pub(super) run: Option<Process>,
    pub(super) stop_if: Option<StopIf>,
    /// How often it was asked to end, and when last.
    pub(super) asked: Option<(usize, Instant)>,
    pub(super) patience: Duration,
    pub(super) log: String,
}

impl Running {
    pub(super) fn set_up(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        if self.program.setup.is_empty() {
            return Ok(());
        }
        let mut process = Process::start(&self.site, "setup", &self.program.setup, &[])?;
        let status = process.wait(goes_on);
        self.log += &process.log();
        match status {
            None => Err(Error::interrupted("interrupted while the program was set up")),
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(Error::failed(process.in_words())),
        }
    }

    /// Whether the folder was set up by an earlier run in the same way.
    pub(super) fn is_set_up(&self, target: &Path) -> Result<bool> {
        if self.program.setup.is_empty() || self.site.place.is_new() {
            return Ok(false);
        }
        let folder = HeldFolder::open_own(target)?;
        let words = self.program.setup.join("\n");
        if folder.has(SETUP_NAME) && folder.read(SETUP_NAME, SETUP_BYTES_MAX)? == words.as_bytes() {
            return Ok(true);
        }
        let what =
            "the program's folder on the target holds what another setup made, or one that was not finished";
        Err(Error::refused(what).hint(format!(
            "remove {}, or choose another target.files.dir",
            target.join(PROGRAM_NAME).shown()
        )))
    }

    pub(super) fn mark_set_up(&self, target: &Path) -> Result<()> {
        if self.program.setup.is_empty() {
            return Ok(());
        }
        HeldFolder::open_own(target)?.replace(SETUP_NAME, self.program.setup.join("\n").as_bytes())
    }

    pub(super) fn start_server(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        if self.program.start.is_empty() {
            return Ok(());
        }
        let server = self.server.insert(Process::start(&self.site, "start", &self.program.start, &[])?);
        let until = Instant::now() + READY_PATIENCE;
        while !self.program.ready.is_empty() {
            let mut ready = Process::start(&self.site, "ready", &self.program.ready, &[])?;
            let status = ready.wait(&mut || goes_on() && Instant::now() < until);
            if status.is_some_and(|status| status.success()) {
                break;
            }
            ready.signal(Signal::KILL);
            if server.ended().is_some() {
                return Err(Error::failed(server.in_words()));
            }
            if !goes_on() {
                return Err(Error::interrupted("interrupted while the server started"));
            }
            if Instant::now() >= until {
                return Err(Error::failed(format!("the server was not ready in time; {}", ready.in_words())));
            }
            std::thread::sleep(READY_LOOK);
        }
        if server.ended().is_some() { Err(Error::failed(server.in_words())) } else { Ok(()) }
    }

    /// Why the run can't go on; none if it can.
    pub(super) fn failure(&mut self) -> Option<String> {
        match self.probe.oom_kills() {
            0 => {}
            killed => {
                return Some(format!(
                    "the kernel killed {killed} of the program's processes for memory (command.memory_max)"
                ));
            }
        }
        if self.asked.is_some() {
            return None;
        }
        if let Some(run) = &mut self.run
            && run.ended().is_some_and(|status| !status.success())
        {
            return Some(run.in_words());
        }
        let server = self.server.as_mut()?;
        server.ended().map(|_| server.in_words())
    }

    pub(super) fn is_over(&mut self) -> bool {
        let Some(run) = &mut self.run else { return true };
        if run.ended().is_some() {
            return true;
        }
        let (times, at) = *self.asked.get_or_insert_with(|| (0, Instant::now()));
        if times == 0 || at.elapsed() >= self.patience {
            match times {
                0 => run.signal(Signal::INT),
                1 => run.signal(Signal::TERM),
                _ => run.signal(Signal::KILL),
            }
            self.asked = Some((times + 1, Instant::now()));
        }
        false
    }

    fn stop_server(&mut self) -> Result<()> {
        while !self.is_over() {
            std::thread::sleep(LOOK);
        }
        let urgent = self.patience < PATIENCE;
        let patience = if urgent { URGENT_PATIENCE } else { STOP_PATIENCE };
        let mut stopped = Ok(());
        if let Some(mut server) = self.server.take() {
            if self.program.stop.is_empty() || server.ended().is_some() {
                server.signal(Signal::INT);
            } else {
                let stop = Process::start(&self.site, "stop", &self.program.stop, &[]);
                stopped = stop.and_then(|mut stop| {
                    let status = stop.wait_for(patience);
                    self.log += &stop.log();
                    let well = urgent || status.is_some_and(|status| status.success());
                    if well { Ok(()) } else { Err(Error::failed(stop.in_words())) }
                });
            }
            server.wait_for(patience);
            self.log += &server.log();
        }
        if let Some(run) = &self.run {
            self.log += &run.log();
        }
        stopped
    }

    /// Ends what is left in order: what is measured, then the server, then everything in the cgroups. Returns the last
    /// lines of each phase.
    ///
    /// # Errors
    /// If something does not end; `cleanup` ends it.
    pub(in crate::runs::session) fn end(mut self, target: &mut Target) -> Result<String> {
        let stopped = self.stop_server();
        let ended = match (target.journal(), self.own.take()) {
            (Some(journal), _) => self.site.groups.remove(journal),
            (None, Some(mut journal)) => self.site.groups.remove(&mut journal).and_then(|()| journal.end()),
            (None, None) => self.site.groups.end(),
        };
        ended.and(stopped).map(|()| self.log)
    }
}
