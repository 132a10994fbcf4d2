//! `stacktune record`: a profile run without a terminal.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use super::signals::Interrupts;
use super::watcher::{Watcher, tell_kept, verify};
use super::{facts_with_versions, options, print, print_json, profile, tell};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::runs::record::Summary;
use crate::runs::record::refuse_folder;
use crate::runs::session::headless::{self, Until};
use crate::runs::session::{Options, Session};
use crate::settings::knobs::Ground;
use crate::settings::profile::{by_identity, check};
use crate::settings::{Profile, Settings};
use crate::ui::cli::RecordArgs;
use crate::ui::report::{self, Progress};
use crate::units::approx_span;

/// A run is measured for this long unless the command line says otherwise.
const MEASURED: Duration = Duration::from_secs(30);
/// A run until it is steady ends then at the latest.
const AT_MOST: Duration = Duration::from_hours(2);

/// Runs the command.
pub fn run(args: &RecordArgs) -> Result<()> {
    let (profile, demo) = profile(Some(&args.profile), &args.run.sets.set)?;
    refuse_arguments(args, &profile)?;
    if profile.sweep.is_some() {
        return super::sweep::run(args, &profile);
    }
    // Before hours are spent on a fill.
    let out = args.out.clone().unwrap_or_default();
    if !args.dry_run {
        refuse_folder(&out)?;
    }
    let interrupts = Interrupts::watch()?;
    let facts = facts_with_versions();
    let settings = by_identity(&profile.settings, &facts);
    let warmup = args.warmup.unwrap_or_default();
    let options = Options { warmup, ..options(&args.run, demo) };
    let array = settings.run.clone();
    let measured = if args.until_steady { args.at_most.or(Some(AT_MOST)) } else { args.duration };
    let time = warmup + measured.unwrap_or(MEASURED);
    let until = Until { time, steady: args.until_steady };
    let progress = Progress::new(stderr(), stderr().is_terminal(), Some(time));
    let mut watcher = Watcher { progress, interrupts: &interrupts };
    if args.dry_run {
        return dry_run(&settings, &facts, args.output.json);
    }
    let mut session = Session::open(settings, options, facts, &mut watcher)?;
    let mut on_event = |event| watcher.watch(&event);
    let recorded = headless::record(&mut session, &out, until, &|| interrupts.count(), &mut on_event);
    watcher.progress.done();
    let whole = recorded.as_ref().is_ok_and(|summary| summary.failure.is_none());
    let (verified, dismantled) = take_down(session, args, whole, &mut watcher);
    let summary = match (recorded, &dismantled) {
        (Err(error), Err(left)) => {
            return Err(Error { what: format!("{}; and then {}", error.what, left.what), ..error });
        }
        (recorded, _) => recorded?,
    };
    if args.until_steady {
        tell_unsteady(&summary);
    }
    if args.output.json {
        print_json(&summary)?;
    } else {
        print(&report::table(&summary, &array))?;
    }
    ended_well(&summary, dismantled.and(verified))
}

/// What was asked for and can't be had together.
fn refuse_arguments(args: &RecordArgs, profile: &Profile) -> Result<()> {
    if profile.sweep.is_some() {
        if args.until_steady {
            let what = "--until-steady is of one run, and the profile has steps";
            return Err(
                Error::input(what).hint("give the steps a time: --for, or `for` in the profile's [sweep]")
            );
        }
    } else if args.verify && profile.settings.leaves_kernel() {
        let what =
            "--verify reads through the kernel, which does not have the drives of `vfio` and `spdk` yet";
        return Err(Error::input(what).hint("leave it out, and run `stacktune verify` afterwards"));
    }
    Ok(())
}

/// Reads the target back where that is asked for and the run was a whole one, and takes down what was built:
/// how either went.
fn take_down(
    session: Session,
    args: &RecordArgs,
    whole: bool,
    watcher: &mut Watcher,
) -> (Result<()>, Result<()>) {
    if watcher.interrupts.count() > 1 {
        // Nobody waits any more for I/O that does not drain; the kernel ends it with the process, and
        // `stacktune cleanup` what was built.
        std::mem::forget(session);
        return (Ok(()), Ok(()));
    }
    let verified = if args.verify && whole { verify(&session, watcher) } else { Ok(()) };
    let ended = session.dismantle(args.keep, &mut |advance| {
        watcher.progress.step(advance);
        true
    });
    watcher.progress.done();
    (verified, ended.map(|commands| tell_kept(&commands)))
}

/// The run as the exit status tells it.
fn ended_well(summary: &Summary, ended: Result<()>) -> Result<()> {
    match (summary.failure.as_deref(), ended) {
        (Some(failure), Err(left)) => {
            return Err(Error { what: format!("{failure} And then: {}", left.what), ..left });
        }
        (Some(failure), Ok(())) => return Err(Error::failed(failure)),
        (None, ended) => ended?,
    }
    match summary.errors_line() {
        _ if summary.interrupted => {
            Err(Error::interrupted("interrupted: the summary holds what was measured"))
        }
        Some(errors) => Err(Error::failed(errors)),
        None => Ok(()),
    }
}

/// Says where a run that was to become steady did not.
fn tell_unsteady(summary: &Summary) {
    if !summary.steady.is_steady() && !summary.interrupted && summary.failure.is_none() {
        let waits = summary.steady.waits_for().map_or_else(String::new, |waits| format!(": {waits}"));
        let (span, state) = (approx_span(summary.duration_s), &summary.steady);
        tell(&format!("stacktune: not steady after {span} ({state}{waits}); --at-most gives it longer"));
    }
}

/// Prints what would be done, and does nothing.
fn dry_run(settings: &Settings, facts: &Facts, json: bool) -> Result<()> {
    let problems = check(settings, Ground { facts, target: None });
    if let Some(problem) = problems.first() {
        return Err(Error::input(problem.to_string()));
    }
    let plan = crate::runs::session::plan_shown(settings, facts)?;
    if json { print_json(&report::PlanFile::from(&plan)) } else { print(&report::plan(&plan)) }
}
