//! `stacktune record` of a profile with steps.

use std::sync::Arc;

use super::inputs::{facts_with_versions, options};
use super::outlook;
use super::output::{print, print_json};
use super::signals::Interrupts;
use super::watcher::{Watcher, progress_of, report_kept, verify};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::runs::session::{Attendant as _, Session};
use crate::runs::sweep::{self, SweepEvent};
use crate::settings::Profile;
use crate::settings::profile::Sweep;
use crate::ui::cli::RecordArgs;
use crate::ui::report::{self, SweepShown};

/// The profile with its times replaced by the command line's.
fn timed(profile: &Profile, args: &RecordArgs) -> Profile {
    let mut profile = profile.clone();
    let Some(sweep) = &mut profile.sweep else { return profile };
    if let Some(time) = args.duration {
        sweep.time = time;
        sweep.steps.iter_mut().for_each(|step| step.time = None);
    }
    if let Some(warmup) = args.warmup {
        sweep.warmup = warmup;
        sweep.steps.iter_mut().for_each(|step| step.warmup = None);
    }
    profile
}

/// Refuses a knob on the command line that the steps turn.
fn refuse_turned(sweep: &Sweep, sets: &[String]) -> Result<()> {
    for set in sets {
        let path = set.split_once('=').map_or(set.as_str(), |(path, _)| path).trim();
        let by_steps = sweep.steps.iter().any(|step| step.turns.iter().any(|(knob, _)| *knob == path));
        if by_steps || sweep.product.iter().any(|axis| axis.knob == path) {
            return Err(Error::input(format!("--set {set}: the profile's steps already turn `{path}`"))
                .hint("change the steps in the profile instead"));
        }
    }
    Ok(())
}

/// Runs the command.
pub fn run(args: &RecordArgs, profile: &Profile) -> Result<()> {
    if let Some(sweep) = &profile.sweep {
        refuse_turned(sweep, &args.run.sets.set)?;
    }
    let interrupts = Interrupts::watch()?;
    let facts = facts_with_versions();
    let profile = timed(profile, args).by_identity(&facts);
    let options = options(&args.run, &profile.settings, false);
    if args.dry_run {
        return outlook::dry_run((&profile, &[]), &options, &facts, args.output.json);
    }
    let out = args.out.clone().unwrap_or_default();
    let mut watcher = Watcher { verifies: args.verify, ..Watcher::new(None, &interrupts) };
    // What uses a drive changes with each stack; the rest does not.
    let look = || Arc::new(Facts { devices: Facts::read_devices(), ..(*facts).clone() });
    let folder = sweep::prepare(&out, &profile, &options, &look, &mut watcher)?;
    let ran = sweep::run(&folder, &options, &look, args.keep, &|| interrupts.count(), &mut watcher);
    watcher.progress.done();
    let shown = SweepShown::of(&folder);
    if args.output.json {
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

impl sweep::Watcher for Watcher<'_> {
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

    fn recorded(&mut self, session: &Session) -> Result<()> {
        if self.verifies { verify(session, self) } else { Ok(()) }
    }
}
