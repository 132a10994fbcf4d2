//! `stacktune run` of a profile with steps: each step's program is begun and ended around its recording.

use std::path::Path;
use std::time::Duration;

use crate::app::sweep::{Steps, run_steps};
use crate::app::trace::{self, TraceUnderWay};
use crate::app::watcher::{Around, Watcher};
use crate::error::{Error, Result};
use crate::host::User;
use crate::runs::session::{Attendant, ProgramOptions, Session, for_program};
use crate::settings::Profile;
use crate::settings::knobs;
use crate::settings::profile::Sweep;
use crate::ui::cli::ProgramArgs;

/// The program of each run, and its trace.
pub(super) struct Programs {
    options: ProgramOptions,
    is_traced: bool,
    tracing: Option<TraceUnderWay>,
}

impl Programs {
    /// With these options, except the time; traced if that is asked for.
    pub fn new(options: ProgramOptions, is_traced: bool) -> Self {
        Self { options, is_traced, tracing: None }
    }
}

impl Around for Programs {
    fn opened(&mut self, session: &mut Session, time: Duration, screen: &mut Watcher) -> Result<()> {
        let interrupts = screen.interrupts;
        let options = ProgramOptions { time, ..self.options.clone() };
        // The trace of a failed run ends here at the latest.
        self.tracing = None;
        session.begin_program(options, &mut |text| screen.notice(text), &mut || interrupts.count() == 0)?;
        self.tracing = Some(trace::begin(session, self.is_traced)?);
        Ok(())
    }

    fn recorded(&mut self, session: &mut Session, dir: &Path, screen: &mut Watcher) -> Result<()> {
        screen.progress.done();
        let (tracing, stopped) = (self.tracing.take(), session.stopped_for_host());
        let kept = tracing.map_or(Ok(()), |tracing| trace::keep_all(tracing, session, dir));
        let ended = session.end_program(&mut || screen.interrupts.count() < 2);
        let all = ended.and(kept);
        // No other run may begin then.
        match (stopped, all) {
            (None, all) => all,
            (Some(stopped), Ok(())) => Err(stopped),
            (Some(stopped), Err(left)) => Err(stopped.and_then(&left)),
        }
    }
}

/// Runs the steps.
pub(super) fn run(args: &ProgramArgs, profile: &Profile, user: Option<User>) -> Result<()> {
    refuse_idle(profile)?;
    let single = [
        (!args.turns.is_empty(), "--turn"),
        (args.duel.duel.is_some(), "--duel"),
        (args.until_steady, "--until-steady"),
    ];
    for (given, option) in single {
        if given {
            return Err(Error::input(format!("{option} needs a single run, but the profile has steps")));
        }
    }
    let out = args.out.clone().unwrap_or_default();
    let steps = Steps {
        run: &args.run,
        out: &out,
        duration: args.duration,
        warmup: args.warmup,
        keep: args.keep,
        dry_run: args.dry_run,
        json: args.output.json,
        verifies: false,
    };
    trace::look(args.trace && !args.dry_run)?;
    let options = ProgramOptions {
        user,
        time: Duration::ZERO,
        is_open_ended: args.is_open_ended,
        stop_if: args.stop_if.clone(),
    };
    run_steps(&steps, profile, Some(Box::new(Programs::new(options, args.trace))))
}

/// Refuses steps that turn what has no effect where a program is the load.
fn refuse_idle(profile: &Profile) -> Result<()> {
    for step in profile.sweep.iter().flat_map(Sweep::all_steps) {
        let settings = for_program(step.settings(&profile.settings))?;
        for (path, value) in &step.turns {
            if knobs::find(path).is_some_and(|knob| knob.get(&settings) != *value) {
                let what = format!("the steps turn {path}, which has no effect where a program is the load");
                return Err(Error::input(what)
                    .hint("steps turn the target, its stack, or the program's own knobs (command.NAME)"));
            }
        }
    }
    Ok(())
}
