//! A profile with steps, for `stacktune record` and `stacktune run`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::inputs::{facts_with_versions, options};
use super::outlook;
use super::output::{print, print_json};
use super::signals::Interrupts;
use super::watcher::{Around, Watcher, progress_of, report_kept, verify};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::runs::session::{Attendant as _, Options, Session};
use crate::runs::sweep::{self, SweepEvent};
use crate::settings::Profile;
use crate::settings::profile::Sweep;
use crate::ui::cli::{RecordArgs, RunArgs};
use crate::ui::report::{self, SweepShown};

/// How a profile's steps are run.
pub(super) struct Steps<'a> {
    /// The options of every run.
    pub run: &'a RunArgs,
    /// The folder to write to.
    pub out: &'a Path,
    /// The times that replace the profile's.
    pub duration: Option<Duration>,
    pub warmup: Option<Duration>,
    /// Whether the last stack stays.
    pub keep: bool,
    pub dry_run: bool,
    pub json: bool,
    /// Whether each target is read back.
    pub verifies: bool,
}

impl Steps<'_> {
    /// The profile with its times replaced by the command line's.
    fn timed(&self, mut profile: Profile) -> Profile {
        let Some(sweep) = &mut profile.sweep else { return profile };
        if let Some(time) = self.duration {
            sweep.time = time;
            sweep.steps.iter_mut().for_each(|step| step.time = None);
        }
        if let Some(warmup) = self.warmup {
            sweep.warmup = warmup;
            sweep.steps.iter_mut().for_each(|step| step.warmup = None);
        }
        profile
    }
}

/// Refuses a knob on the command line that the steps turn.
fn refuse_turned(sweep: &Sweep, sets: &[String]) -> Result<()> {
    for set in sets {
        let path = set.split_once('=').map_or(set.as_str(), |(path, _)| path).trim();
        let by_steps = sweep.steps.iter().any(|step| step.turns.iter().any(|(knob, _)| *knob == path));
        let of_program = path.strip_prefix("command.").is_some_and(|name| {
            let mut steps = sweep.steps.iter().flat_map(|step| &step.program);
            steps.any(|(knob, _)| knob == name) || sweep.program.iter().any(|(knob, _)| knob == name)
        });
        if by_steps || of_program || sweep.product.iter().any(|axis| axis.knob == path) {
            return Err(Error::input(format!("--set {set}: the profile's steps already turn `{path}`"))
                .hint("change the steps in the profile instead"));
        }
    }
    Ok(())
}

/// Runs the command.
pub fn run(args: &RecordArgs, profile: &Profile) -> Result<()> {
    let out = args.out.clone().unwrap_or_default();
    let steps = Steps {
        run: &args.run,
        out: &out,
        duration: args.duration,
        warmup: args.warmup,
        keep: args.keep,
        dry_run: args.dry_run,
        json: args.output.json,
        verifies: args.verify,
    };
    run_steps(&steps, profile, None)
}

/// Runs a profile's steps; `around` takes care of a program that is the load.
pub(super) fn run_steps(steps: &Steps, profile: &Profile, around: Option<Box<dyn Around>>) -> Result<()> {
    if let Some(sweep) = &profile.sweep {
        refuse_turned(sweep, &steps.run.sets.set)?;
    }
    let interrupts = Interrupts::watch()?;
    let facts = facts_with_versions();
    let profile = steps.timed(profile.clone()).by_identity(&facts);
    let options = Options { program: around.is_some(), ..options(steps.run, &profile.settings, false) };
    if steps.dry_run {
        return outlook::dry_run((&profile, &[]), &options, &facts, steps.json);
    }
    let mut watcher = Watcher { verifies: steps.verifies, around, ..Watcher::new(None, &interrupts) };
    // Only what uses a drive changes from stack to stack.
    let look = || Arc::new(Facts { devices: Facts::read_devices(), ..(*facts).clone() });
    let folder = sweep::prepare(steps.out, &profile, &options, &look, &mut watcher)?;
    let ran = sweep::run(&folder, &options, &look, steps.keep, &|| interrupts.count(), &mut watcher);
    watcher.progress.done();
    let shown = SweepShown::of(&folder);
    if steps.json {
        print_json(&shown)?;
    } else {
        print(&report::sweep(&shown))?;
    }
    let ended = ran?;
    report_kept(&ended.kept);
    if ended.interrupted {
        let left = ended.left;
        return Err(Error::interrupted(format!("interrupted: {left} runs are left"))
            .hint("the same command continues with them"));
    }
    shown.failure().map_or(Ok(()), Err)
}

impl sweep::SweepWatcher for Watcher<'_> {
    fn on_event(&mut self, event: SweepEvent) {
        match event {
            SweepEvent::Begins { run, label, number, of, time } => {
                let repeat = run.repeat;
                self.notice(&format!("run {number} of {of}: {label} (repeat {repeat})"));
                self.progress = progress_of(Some(time));
            }
            SweepEvent::Done => self.progress.done(),
            SweepEvent::NotRun(not_run) => self.notice(&format!("not run: {}", not_run.why)),
            SweepEvent::Event(event) => self.watch(&event),
        }
    }

    fn waits(&mut self, what: &str) -> bool {
        self.progress.waits(what);
        self.interrupts.count() == 0
    }

    fn opened(&mut self, session: &mut Session, time: Duration) -> Result<()> {
        self.with_around(|around, watcher| around.opened(session, time, watcher))
    }

    fn recorded(&mut self, session: &mut Session, dir: &Path) -> Result<()> {
        self.with_around(|around, watcher| around.recorded(session, dir, watcher))?;
        if self.verifies { verify(session, self) } else { Ok(()) }
    }
}
