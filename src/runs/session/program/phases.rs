//! A session's dealings with its program, phase by phase.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{Mode, OFlags, open, syncfs};

use super::cold::occupied_below;
use super::how::ProgramOptions;
use super::probes::Asked;
use super::process::{Process, Site};
use super::running::Running;
use super::stop_if::StopIf;
use super::words::Values;
use crate::error::{Error, Result};
use crate::host::Trusting;
use crate::marks::PROGRAM_NAME;
use crate::meter::programs::program::ProgramFigures;
use crate::meter::programs::program_probe::ProgramProbe;
use crate::runs::session::run::Session;
use crate::runs::session::targets::Target;
use crate::stack::id::StackId;
use crate::stack::journal::Journal;
use crate::stack::paths::state_dir;
use crate::stack::program::{Groups, Part, Place, make_log_folder};

impl Session {
    /// Makes the program's folder and cgroups, and runs the phases before it is measured: setup, start, ready.
    ///
    /// # Errors
    /// Refused if it can't have its own folder; input if this host has no cgroups for it; failed if a phase fails;
    /// stopped if the host can't bear it, interrupted if it may not go on. Whatever was started is ended with the
    /// session.
    pub fn begin_program(
        &mut self,
        options: ProgramOptions,
        notice: &mut dyn FnMut(&str),
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let Some(program) = &self.resolved.settings.program else {
            return Err(Error::input("the profile names no program"));
        };
        refuse_unknown_pressure(&options)?;
        let layout = self.target.layout();
        let mut paths = layout.members.iter().filter_map(|member| member.path.clone());
        let (target, wal) = (paths.next().unwrap_or_default(), paths.next());
        let levels = layout.levels.clone();
        let is_built = self.target.built().is_some();
        let wal = log_beside(&mut self.target)?.or(wal);
        let trusting = if is_built { Trusting::Root } else { Trusting::Caller };
        let place = Place::open(&target, wal.as_deref(), trusting, options.user.as_ref())?;
        let folders = [place.dir(), place.wal()];
        let values = Values::of(program, &options, folders, self.resolved.facts.memory_bytes);
        let run_unfilled = program.run.clone();
        let program = values.program(program)?;
        let mut own = None;
        if !is_built {
            let id = StackId::random();
            own = Some(Journal::begin(&state_dir(), &id, &self.resolved.settings.name, &[])?);
        }
        let is_limited = program.memory_max_bytes.is_some();
        let groups = match (self.target.journal(), &mut own) {
            (Some(journal), _) | (None, Some(journal)) => Groups::make(journal, is_limited),
            (None, None) => Err(Error::failed("the program has no journal")),
        };
        let groups = match (groups, own.take_if(|journal| is_undone(journal))) {
            (Err(error), Some(journal)) => return Err(journal.end().err().unwrap_or(error)),
            (groups, _) => groups?,
        };
        let parts = [Part::Server, Part::Run].map(|part| groups.part(part));
        let probe = ProgramProbe::open((groups.dir(), parts), groups.memory(), &levels)?;
        let probes = program.probes.iter().cloned().map(Asked::new).collect();
        let environment = program.environment.clone().into_iter().collect();
        let by_name = probe.by_name().clone();
        let site = Site { groups, place, user: options.user, environment, by_name, log: Arc::default() };
        let running = self.program.insert(Running {
            site,
            program,
            run_unfilled,
            values,
            own,
            probe,
            probes,
            turning: None,
            wanted: VecDeque::new(),
            server: None,
            run: None,
            due_at: None,
            ends_itself: false,
            ended_early: false,
            stop_if: options.stop_if,
            time: options.time,
            is_open_ended: options.is_open_ended,
            asked: None,
            urgent: false,
        });
        running.begin(&target, wal.as_deref(), notice, goes_on)?;
        self.begin_anew();
        Ok(())
    }

    /// Ends what is left of the program in order: its measured part, then the server by `command.stop`, then
    /// everything in its cgroups. If it may not go on, everything is killed without asking.
    ///
    /// # Errors
    /// What did not end well; `cleanup` ends what is left.
    pub fn end_program(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        self.program.take().map_or(Ok(()), |running| running.end(&mut self.target, goes_on))
    }

    /// Kills everything of the program at once.
    pub fn kill_program(&mut self) {
        if let Some(running) = &self.program {
            let _ = running.site.groups.end();
        }
    }

    /// Writes back cached pages of the target's file systems. Returns when that began, by the clock of a trace.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write_back(&mut self) -> Result<u64> {
        let began_ns = self.classes.now_ns();
        for folder in self.target.layout().members.iter().filter_map(|member| member.path.as_ref()) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let written = open(folder, flags, Mode::empty()).and_then(syncfs);
            written.map_err(|error| Error::os("cannot write back cached pages of", folder, error))?;
        }
        Ok(began_ns)
    }

    /// The space that the program's files occupy, if their file system is new and all could be visited.
    pub fn program_bytes(&self) -> Option<u64> {
        self.target.built()?;
        self.program.as_ref()?;
        let folder = self.target.layout().members.iter().find_map(|member| member.path.clone())?;
        occupied_below(&folder.join(PROGRAM_NAME))
    }

    /// Begins the measured part.
    pub(in crate::runs::session) fn run_program(&mut self) -> Result<()> {
        let Some(running) = &mut self.program else { return Ok(()) };
        // Resources used before the measurement do not count.
        running.probe.window();
        // Knobs may have been turned before a restart.
        let words = running.values.as_turned(&running.program).words(&running.run_unfilled)?;
        running.run = Some(Process::start(&running.site, "run", &words, &running.program.metrics)?);
        running.due_at = Some(Instant::now() + running.time);
        running.ends_itself = Values::say_how_long(&running.run_unfilled);
        Ok(())
    }

    /// Checks whether the program has failed, and whether the host can bear it.
    pub(in crate::runs::session) fn look_at_program(&mut self) {
        let Some(running) = &mut self.program else { return };
        let mut failed = running.failure();
        let runs = running.run.as_mut().is_some_and(|run| run.ended().is_none());
        if failed.is_none() && runs {
            failed = running.stop_if.as_mut().and_then(StopIf::look);
            running.urgent |= failed.is_some();
            let noted = if running.asked.is_none() { running.ask() } else { Vec::new() };
            noted.into_iter().for_each(|text| self.notice(text));
        }
        self.look_at_turning();
        if let Some(why) = failed.filter(|_| self.losses.failed.is_none()) {
            if self.resolved.options.operated.is_some() {
                self.notice(why.clone());
            }
            self.losses.failed = Some(why);
        }
    }

    /// Whether the program has ended by itself.
    pub(in crate::runs::session) fn has_program_ended(&mut self) -> bool {
        let ended = self.program.as_mut().is_some_and(Running::has_ended);
        if ended {
            // It may have failed since the last check.
            self.look_at_program();
        }
        ended
    }

    /// Asks the measured part to end, more firmly each time; returns whether it has. If the host can't bear the
    /// program, its server ends at once, too.
    pub(in crate::runs::session) fn is_program_over(&mut self) -> bool {
        let over = self.program.as_mut().is_none_or(Running::is_over);
        self.look_at_program();
        if let Some(running) = self.program.as_mut().filter(|running| over && running.urgent) {
            // Nothing of it may burden the host while the recording is written; `end` reports what is left.
            let _ = running.end_server(&mut || true).and_then(|()| running.site.groups.end());
        }
        over
    }

    /// Why the run ended for the host's sake (`--stop-if`), if it did.
    pub fn stopped_for_host(&self) -> Option<Error> {
        self.program.as_ref().filter(|running| running.urgent)?;
        self.losses.failed.clone().map(Error::stopped)
    }

    /// Resources that the program used since the last window.
    pub(in crate::runs::session) fn program_figures(&mut self) -> Option<ProgramFigures> {
        let running = self.program.as_mut()?;
        Some(running.figures())
    }
}

/// Makes the folder of the program's log beside the stack, if its plan has one.
fn log_beside(target: &mut Target) -> Result<Option<PathBuf>> {
    let log = target.built().and_then(|built| built.plan().log.clone());
    if let (Some(log), Some(journal)) = (&log, target.journal()) {
        make_log_folder(journal, log)?;
    }
    Ok(log)
}

fn refuse_unknown_pressure(options: &ProgramOptions) -> Result<()> {
    if options.stop_if.as_ref().is_none_or(StopIf::is_known) {
        return Ok(());
    }
    Err(Error::input("this kernel does not report pressure, which --stop-if needs")
        .hint("boot it with psi=1, or leave --stop-if out"))
}

fn is_undone(journal: &Journal) -> bool {
    journal.record().entries.iter().all(|entry| entry.to_undo().is_none())
}
