//! What a session does with its program, and when.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::process::{Process, Site};
use super::running::{PATIENCE, Running, URGENT_PATIENCE};
use super::stop_if::StopIf;
use crate::error::{Error, Result};
use crate::host::{Trusting, User};
use crate::meter::program::{ProgramFigures, ProgramProbe};
use crate::runs::session::run::Session;
use crate::settings::Program;
use crate::settings::values::program::filled;
use crate::stack::id::StackId;
use crate::stack::journal::Journal;
use crate::stack::paths::state_dir;
use crate::stack::program::{Groups, Place};

/// How a program is run, beside the settings.
#[derive(Debug, Clone)]
pub struct ProgramOptions {
    /// Who it is; none for the user of this process.
    pub user: Option<User>,
    /// How long it runs, warm-up included.
    pub time: Duration,
    /// When the run ends itself.
    pub stop_if: Option<StopIf>,
}

impl Session {
    /// Makes the program's folder and cgroups, and does what comes before it is measured: setup, start, ready.
    ///
    /// # Errors
    /// Refused where it can't have a folder or cgroups of its own; failed where a phase fails; interrupted where it may
    /// not go on. What was started is ended with the session.
    pub fn begin_program(
        &mut self,
        options: ProgramOptions,
        notice: &mut dyn FnMut(&str),
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let Some(program) = &self.resolved.settings.program else {
            return Err(Error::input("the profile names no program"));
        };
        if options.stop_if.as_ref().is_some_and(|of| !of.is_known()) {
            return Err(Error::input("this kernel does not count pressure, which --stop-if looks at")
                .hint("start it with psi=1, or leave --stop-if out"));
        }
        let layout = self.target.layout();
        let target: PathBuf =
            layout.members.iter().find_map(|member| member.path.clone()).unwrap_or_default();
        let levels = layout.levels.clone();
        let is_built = self.target.built().is_some();
        let trusting = if is_built { Trusting::Root } else { Trusting::Caller };
        let place = Place::open(&target, trusting, options.user.as_ref())?;
        let program = with_values(program, &options, place.dir(), self.resolved.facts.memory_bytes)?;
        let mut own = None;
        if !is_built {
            let id = StackId::random();
            own = Some(Journal::begin(&state_dir(), &id, &self.resolved.settings.name, &[])?);
        }
        let limit = program.memory_max_bytes;
        let groups = match (self.target.journal(), &mut own) {
            (Some(journal), _) | (None, Some(journal)) => Groups::make(journal, limit),
            (None, None) => Err(Error::failed("the program has no journal")),
        };
        let groups = match (groups, own.take_if(|journal| is_undone(journal))) {
            (Err(error), Some(journal)) => return Err(journal.end().err().unwrap_or(error)),
            (groups, _) => groups?,
        };
        let probe = ProgramProbe::open(groups.dir(), groups.memory(), &levels);
        let environment = program.environment.clone().into_iter().collect();
        let site = Site { groups, place, user: options.user, environment };
        let running = self.program.insert(Running {
            site,
            program,
            own,
            probe,
            server: None,
            run: None,
            stop_if: options.stop_if,
            asked: None,
            patience: PATIENCE,
            log: String::new(),
        });
        if !is_built && running.is_set_up(&target)? {
            notice("command.setup is left out: the program's folder was set up by the same words");
        } else {
            running.set_up(goes_on)?;
            if !is_built {
                running.mark_set_up(&target)?;
            }
        }
        running.start_server(goes_on)?;
        self.begin_anew();
        Ok(())
    }

    /// Ends what is left of the program in order: what is measured, then the server by `command.stop`, then everything
    /// in its cgroups. Returns the last lines of each phase.
    ///
    /// # Errors
    /// If something does not end; `cleanup` ends it.
    pub fn end_program(&mut self) -> Result<String> {
        self.program.take().map_or_else(|| Ok(String::new()), |running| running.end(&mut self.target))
    }

    /// Ends everything of the program at once.
    pub fn kill_program(&mut self) {
        if let Some(running) = &self.program {
            let _ = running.site.groups.end();
        }
    }

    /// Begins what is measured.
    pub(in crate::runs::session) fn run_program(&mut self) -> Result<()> {
        let Some(running) = &mut self.program else { return Ok(()) };
        let Program { run, metrics, .. } = &running.program;
        running.run = Some(Process::start(&running.site, "run", run, metrics)?);
        // What it used before it was measured does not count.
        running.probe.window();
        Ok(())
    }

    /// Looks whether the program has failed, and whether the host bears it.
    pub(in crate::runs::session) fn look_at_program(&mut self) {
        let Some(running) = &mut self.program else { return };
        let mut failed = running.failure();
        let goes_on =
            running.asked.is_none() && running.run.as_mut().is_some_and(|run| run.ended().is_none());
        if failed.is_none() && goes_on {
            failed = running.stop_if.as_mut().and_then(StopIf::look);
            if failed.is_some() {
                running.patience = URGENT_PATIENCE;
            }
        }
        if let Some(why) = failed {
            self.losses.failed.get_or_insert(why);
        }
    }

    /// Whether the program has ended by itself.
    pub(in crate::runs::session) fn has_program_ended(&mut self) -> bool {
        let run = self.program.as_mut().and_then(|running| running.run.as_mut());
        let ended = run.is_some_and(|run| run.ended().is_some());
        if ended {
            // It may have since it was looked at.
            self.look_at_program();
        }
        ended
    }

    /// Asks what is measured to end, harder each time; whether it has.
    pub(in crate::runs::session) fn is_program_over(&mut self) -> bool {
        let over = self.program.as_mut().is_none_or(Running::is_over);
        if over {
            self.look_at_program();
        }
        over
    }

    /// What the program used since the last window.
    pub(in crate::runs::session) fn program_figures(&mut self) -> Option<ProgramFigures> {
        let running = self.program.as_mut()?;
        let mut figures = running.probe.window();
        figures.metrics = running.run.as_ref().map(|run| run.output().take_values()).unwrap_or_default();
        Some(figures)
    }
}

fn is_undone(journal: &Journal) -> bool {
    journal.record().entries.iter().all(|entry| entry.to_undo().is_none())
}

/// The program with its placeholders replaced.
fn with_values(
    program: &Program,
    options: &ProgramOptions,
    dir: &Path,
    memory_bytes: u64,
) -> Result<Program> {
    let value = |name: &str| {
        Some(match name {
            "dir" => dir.to_str()?.to_owned(),
            "seconds" => options.time.as_secs().max(1).to_string(),
            "memory" => program.memory_max_bytes.unwrap_or(memory_bytes).to_string(),
            "cpus" => std::thread::available_parallelism().map_or(1, usize::from).to_string(),
            _ => return None,
        })
    };
    let word = |word: &String| {
        filled(word, value).map_err(|name| Error::input(format!("{{{name}}} can't be replaced in a command")))
    };
    let words = |words: &[String]| words.iter().map(word).collect::<Result<Vec<_>>>();
    let variables = program.environment.iter().map(|(name, value)| Ok((name.clone(), word(value)?)));
    Ok(Program {
        setup: words(&program.setup)?,
        start: words(&program.start)?,
        ready: words(&program.ready)?,
        run: words(&program.run)?,
        stop: words(&program.stop)?,
        environment: variables.collect::<Result<_>>()?,
        ..program.clone()
    })
}
