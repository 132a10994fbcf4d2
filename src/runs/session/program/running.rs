//! A program that is set up, and its processes.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cold::drop_cached;
use super::probes::Asked;
use super::process::{Process, Site};
use super::stop_if::StopIf;
use super::turning::{self, Turning, WantedTurn};
use super::words::Values;
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::marks::{PROGRAM_NAME, SETUP_BEGINS, SETUP_NAME};
use crate::meter::programs::program::ProgramFigures;
use crate::meter::programs::program_probe::ProgramProbe;
use crate::printable::Shown as _;
use crate::runs::record::program_log;
use crate::runs::session::targets::Target;
use crate::settings::Program;
use crate::stack::journal::Journal;

const SETUP_BYTES_MAX: u64 = 1 << 20;
/// How often, and for how long, a server is asked whether it is ready.
const READY_LOOK: Duration = Duration::from_millis(200);
const READY_PATIENCE: Duration = Duration::from_mins(1);
/// A process that was asked to end is asked more firmly after this time.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a server may take to end.
const STOP_PATIENCE: Duration = Duration::from_mins(1);
/// The same if the run ends itself for the host's sake.
const URGENT_PATIENCE: Duration = Duration::from_millis(300);

/// How long the last report of a program that ends after its `{seconds}` may take, and how early it may end.
const LAST_WORDS: Duration = Duration::from_secs(3);
const EARLY: Duration = Duration::from_secs(1);

const LOOK: Duration = Duration::from_millis(20);

/// How many of the last lines are reported.
const PRINTED_LINES: usize = 20;

/// A program that is set up, and its processes.
pub(in crate::runs::session) struct Running {
    // Dropped first: it kills whatever is left of the program.
    pub(super) site: Site,
    pub(super) program: Program,
    /// `command.run` with its placeholders unfilled.
    pub(super) run_unfilled: Vec<String>,
    pub(super) values: Values,
    /// The journal of the cgroups if there is no stack, whose journal would have them.
    pub(super) own: Option<Journal>,
    pub(super) probe: ProgramProbe,
    pub(super) probes: Vec<Asked>,
    pub(super) turning: Option<Turning>,
    /// Turns waiting for it.
    pub(super) wanted: VecDeque<WantedTurn>,
    pub(super) server: Option<Process>,
    pub(super) run: Option<Process>,
    /// When the measured part's time is up, once it has begun.
    pub(super) due_at: Option<Instant>,
    /// Whether it ends by itself then: its words contain `{seconds}`.
    pub(super) ends_itself: bool,
    /// Whether it has ended by itself before that.
    pub(super) ended_early: bool,
    pub(super) stop_if: Option<StopIf>,
    /// How long the measured part runs at most.
    pub(super) time: Duration,
    /// Whether it is expected to end by itself before that.
    pub(super) is_open_ended: bool,
    /// How often it was asked to end, and when last.
    pub(super) asked: Option<(usize, Instant)>,
    /// Whether it ends for the host's sake.
    pub(super) urgent: bool,
}

impl Running {
    /// Sets the program up and starts its server, unless it may not go on, or the host can't bear it.
    pub(super) fn begin(
        &mut self,
        target: &Path,
        wal: Option<&Path>,
        notice: &mut dyn FnMut(&str),
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let (mut stop_if, mut why) = (self.stop_if.clone(), None);
        let mut goes_on = || {
            why = why.take().or_else(|| stop_if.as_mut().and_then(StopIf::look));
            why.is_none() && goes_on()
        };
        let begun = self
            .prepare(target, wal, notice, &mut goes_on)
            // Only now: making the data may take all memory, since a cap too low for an index would just kill it.
            .and_then(|()| self.limit_memory())
            .and_then(|()| self.start_server(&mut goes_on))
            .and_then(|()| self.turn_knobs(&mut goes_on));
        match why {
            Some(why) => {
                self.urgent = true;
                Err(Error::stopped(why))
            }
            None => begun,
        }
    }

    fn limit_memory(&self) -> Result<()> {
        self.program.memory_max_bytes.map_or(Ok(()), |bytes| self.site.groups.limit(bytes))
    }

    /// Sets up its folder, unless that has been done, and drops its pages from the page cache.
    fn prepare(
        &mut self,
        target: &Path,
        wal: Option<&Path>,
        notice: &mut dyn FnMut(&str),
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        if self.is_set_up(target, wal)? {
            notice("command.setup is skipped: the same command has already set up the program's folder");
        } else {
            self.set_up(goes_on)?;
            self.mark_set_up(target, wal)?;
        }
        for folder in std::iter::once(target).chain(wal) {
            if !drop_cached(&folder.join(PROGRAM_NAME), goes_on) && goes_on() {
                notice("the program's folder could not be dropped from the page cache completely");
            }
        }
        Ok(())
    }

    fn set_up(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        if self.program.setup.is_empty() {
            return Ok(());
        }
        let mut process = Process::start(&self.site, "setup", &self.program.setup, &[])?;
        let status = process.wait(goes_on);
        match status {
            None => Err(Error::interrupted("interrupted while the program was set up")),
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(Error::failed(process.in_words())),
        }
    }

    /// Whether the folder was set up by an earlier run in the same way.
    fn is_set_up(&self, target: &Path, wal: Option<&Path>) -> Result<bool> {
        if self.program.setup.is_empty() || self.site.place.is_new() {
            return Ok(false);
        }
        let folder = HeldFolder::open_own(target)?;
        if folder.has(SETUP_NAME) {
            let found = folder.read(SETUP_NAME, SETUP_BYTES_MAX)?;
            // Earlier versions wrote just the words.
            let words = found.strip_prefix(SETUP_BEGINS.as_bytes()).unwrap_or(&found);
            if words == self.set_up_as(wal).as_bytes() {
                return Ok(true);
            }
        }
        let what =
            "the program's folder on the target was made by another setup, or by one that did not finish";
        Err(Error::refused(what).hint(format!(
            "remove {}, or choose another target.files.dir",
            target.join(PROGRAM_NAME).shown()
        )))
    }

    /// The things that make setups alike: the command, and where the log is.
    fn set_up_as(&self, wal: Option<&Path>) -> String {
        let words = self.program.setup.join("\n");
        match wal {
            Some(wal) => words + "\nwal.target = " + &wal.display().to_string(),
            None => words,
        }
    }

    fn mark_set_up(&self, target: &Path, wal: Option<&Path>) -> Result<()> {
        if self.program.setup.is_empty() {
            return Ok(());
        }
        let text = format!("{SETUP_BEGINS}{}", self.set_up_as(wal));
        HeldFolder::open_own(target)?.replace(SETUP_NAME, text.as_bytes())
    }

    fn start_server(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        if self.program.start.is_empty() {
            return Ok(());
        }
        let server = self.server.insert(Process::start(&self.site, "start", &self.program.start, &[])?);
        let until = Instant::now() + self.program.ready_within.unwrap_or(READY_PATIENCE);
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
                return Err(Error::failed(format!(
                    "the server was not ready in time (command.ready_within); {}",
                    ready.in_words()
                )));
            }
            std::thread::sleep(READY_LOOK);
        }
        if server.ended().is_some() { Err(Error::failed(server.in_words())) } else { Ok(()) }
    }

    /// Turns those knobs that have a turn command to their values.
    fn turn_knobs(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        for knob in self.program.knobs.iter().filter(|knob| !knob.turn.is_empty()) {
            let mut turn = Process::start(&self.site, "knob.turn", &self.values.turn(knob)?, &[])?;
            let until = Instant::now() + turning::PATIENCE;
            let status = turn.wait(&mut || goes_on() && Instant::now() < until);
            if !status.is_some_and(|status| status.success()) {
                turn.signal(Signal::KILL);
                let what = format!("the knob command.{} was not turned: {}", knob.name, turn.in_words());
                return Err(if goes_on() { Error::failed(what) } else { Error::interrupted("interrupted") });
            }
        }
        Ok(())
    }

    /// Asks the probes that are due; returns sentences about failing ones, once for each.
    pub(super) fn ask(&mut self) -> Vec<String> {
        let Self { probes, probe, site, .. } = self;
        probes.iter_mut().filter_map(|asked| asked.look(site, probe)).collect()
    }

    /// Resources that it used and figures that it reported since the last call.
    pub(super) fn figures(&mut self) -> ProgramFigures {
        let mut figures = self.probe.window();
        // The server's cgroup exists even without a server.
        figures.server_cpu_ns = figures.server_cpu_ns.filter(|_| !self.program.start.is_empty());
        figures.metrics = self.run.as_ref().map(|run| run.output().take_values()).unwrap_or_default();
        for probe in &mut self.probes {
            probe.add_to(&mut figures);
        }
        figures
    }

    /// The last lines that it printed, each after its phase.
    pub(in crate::runs::session) fn printed(&self) -> Vec<String> {
        let lines = self.site.log.last(PRINTED_LINES).into_iter();
        lines.map(|(phase, line)| format!("{phase}: {line}")).collect()
    }

    /// From now on, keeps what it prints in a recording.
    ///
    /// # Errors
    /// If the file can't be made.
    pub(in crate::runs::session) fn keep_log_in(&self, dir: &Path) -> Result<()> {
        self.site.log.keep_in(program_log(dir)?);
        Ok(())
    }

    /// Keeps nothing more in the recording.
    ///
    /// # Errors
    /// If lines could not be written.
    pub(in crate::runs::session) fn end_log(&self) -> Result<()> {
        self.site.log.end()
    }

    /// The cgroups that its processes may be in.
    pub(in crate::runs::session) fn groups(&self) -> Vec<PathBuf> {
        self.site.groups.all()
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

    /// Whether the measured part has ended by itself, well before its time was up.
    pub(in crate::runs::session) fn has_ended_early(&self) -> bool {
        self.ended_early
    }

    /// Whether the measured part has ended; notes whether that was early.
    pub(super) fn has_ended(&mut self) -> bool {
        let ended = self.run.as_mut().is_some_and(|run| run.ended().is_some());
        let is_early = self.asked.is_none()
            && !self.is_open_ended
            && self.due_at.is_some_and(|at| Instant::now() + EARLY < at);
        self.ended_early |= ended && is_early;
        ended
    }

    pub(super) fn is_over(&mut self) -> bool {
        let Some(run) = &mut self.run else { return true };
        if run.ended().is_some() {
            return true;
        }
        let is_due = self.ends_itself && self.due_at.is_some_and(says_its_last_words);
        if self.asked.is_none() && !self.urgent && is_due {
            return false;
        }
        let (times, at) = *self.asked.get_or_insert_with(|| (0, Instant::now()));
        let patience = if self.urgent { URGENT_PATIENCE } else { PATIENCE };
        if times == 0 || at.elapsed() >= patience {
            match times {
                0 => run.signal(Signal::INT),
                1 => run.signal(Signal::TERM),
                _ => run.signal(Signal::KILL),
            }
            self.asked = Some((times + 1, Instant::now()));
        }
        false
    }

    fn stop_server(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        while !self.is_over() && goes_on() {
            std::thread::sleep(LOOK);
        }
        self.end_server(goes_on)
    }

    /// Ends the server, if there still is one.
    pub(super) fn end_server(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let mut stopped = Ok(());
        if let Some(mut server) = self.server.take() {
            // The command and the server's end share this time.
            let within =
                if self.urgent { URGENT_PATIENCE } else { self.program.stop_within.unwrap_or(STOP_PATIENCE) };
            let until = Instant::now() + within;
            let mut goes_on = || goes_on() && Instant::now() < until;
            if self.program.stop.is_empty() || server.ended().is_some() {
                server.signal(Signal::INT);
            } else {
                let stop = Process::start(&self.site, "stop", &self.program.stop, &[]);
                stopped = stop.and_then(|mut stop| {
                    let status = stop.wait(&mut goes_on);
                    let well = self.urgent || status.is_some_and(|status| status.success());
                    if well { Ok(()) } else { Err(Error::failed(stop.in_words())) }
                });
            }
            server.wait(&mut goes_on);
        }
        stopped
    }

    /// Ends what is left in order: the measured part, then the server, then everything in the cgroups.
    ///
    /// # Errors
    /// What did not end well; `cleanup` ends what is left.
    pub(in crate::runs::session) fn end(
        mut self,
        target: &mut Target,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        self.probes.clear();
        self.turning = None;
        self.wanted.clear();
        let stopped = self.stop_server(goes_on);
        let ended = match (target.journal(), self.own.take()) {
            (Some(journal), _) => self.site.groups.remove(journal),
            (None, Some(mut journal)) => self.site.groups.remove(&mut journal).and_then(|()| journal.end()),
            (None, None) => self.site.groups.end(),
        };
        ended.and(stopped).and(self.site.log.end())
    }
}

/// Whether a program due to end at that time is about to, or has just begun to: its last report must not be cut off.
fn says_its_last_words(due_at: Instant) -> bool {
    let now = Instant::now();
    now + EARLY >= due_at && now < due_at + LAST_WORDS
}
