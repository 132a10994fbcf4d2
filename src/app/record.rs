//! `stacktune record`: a profile run without a terminal.

use std::time::Duration;

use super::duel;
use super::inputs::{facts_with_versions, options, profile};
use super::output::{eprint_line, print, print_json};
use super::signals::Interrupts;
use super::trace;
use super::watcher::{Watcher, report_kept, verify};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::runs::record::Summary;
use crate::runs::record::refuse_folder;
use crate::runs::session::headless::{self, Until};
use crate::runs::session::{Event, Options, Session};
use crate::settings::knobs::Conditions;
use crate::settings::profile::{by_identity, check};
use crate::settings::{Profile, Settings};
use crate::threads;
use crate::ui::cli::RecordArgs;
use crate::ui::report;
use crate::units::approx_span;

/// A run is measured for this long unless the command line says otherwise.
const MEASURED: Duration = Duration::from_secs(30);
/// How long a run may take to become steady.
pub(super) const AT_MOST: Duration = Duration::from_hours(2);

/// Runs the command.
pub fn run(args: &RecordArgs) -> Result<()> {
    let (profile, demo) = profile(Some(&args.profile), &args.run.sets.set)?;
    refuse_arguments(args, &profile)?;
    if profile.sweep.is_some() {
        return super::sweep::run(args, &profile);
    }
    // Before spending hours on a fill.
    let out = args.out.clone().unwrap_or_default();
    if !args.dry_run {
        refuse_folder(&out)?;
    }
    // Without the kernel, the workers can be traced, but not RocksDB.
    trace::look(args.trace && !args.dry_run && profile.settings.is_keyed())?;
    let interrupts = Interrupts::watch()?;
    let facts = facts_with_versions();
    let mut settings = by_identity(&profile.settings, &facts);
    let mut duel = match duel::asked(&args.duel, &mut settings)? {
        Some(duel::Asked::Builds(asked)) => {
            return duel::build_and_fight(&builds(args), *asked, &facts, &interrupts, None);
        }
        Some(duel::Asked::InRun(duel)) => Some(duel),
        None => None,
    };
    let warmup = args.warmup.unwrap_or_default();
    let options = Options { warmup, ..options(&args.run, &settings, demo) };
    let array = settings.run.clone();
    let measured = if args.until_steady { args.at_most.or(Some(AT_MOST)) } else { args.duration };
    let time = warmup + measured.unwrap_or(if duel.is_some() { AT_MOST } else { MEASURED });
    let until = Until { time, steady: args.until_steady };
    let mut watcher = Watcher::new(Some(time), &interrupts);
    if args.dry_run {
        return plan_printed(&settings, &facts, args.run.allow_commands, args.output.json);
    }
    let mut session = Session::open(settings, options, facts, &mut watcher)?;
    let mut watch = |session: &mut Session, event: &Event| {
        watcher.watch(event);
        duel.as_mut().map_or(Ok(true), |duel| duel.watch_and_close(session, event))
    };
    let tracing = trace::begin(&mut session, args.trace);
    let recorded = tracing.and_then(|tracing| {
        let count = || interrupts.count();
        Ok((headless::record_watched(&mut session, &out, until, &count, &mut watch)?, tracing))
    });
    watcher.progress.done();
    let (recorded, traced) = match recorded {
        Ok((summary, tracing)) => (Ok(summary), trace::keep(tracing, &session, &out)),
        Err(error) => (Err(error), Ok(())),
    };
    let whole = recorded.as_ref().is_ok_and(|summary| summary.failure.is_none());
    let (verified, dismantled) = take_down(session, args, whole, &mut watcher);
    let summary = match (recorded, &dismantled) {
        (Err(error), Err(left)) => {
            return Err(error.and_then(left));
        }
        (recorded, _) => recorded?,
    };
    if args.until_steady {
        report_unsteady(&summary, time);
    }
    if let Some(duel) = &duel {
        duel::finish(&duel.report(), &out, args.output.json)?;
    } else if args.output.json {
        print_json(&summary)?;
    } else {
        print(&report::table(&summary, &array))?;
    }
    ended_well(&summary, dismantled.and(verified).and(traced))
}

fn builds(args: &RecordArgs) -> duel::Builds<'_> {
    duel::Builds {
        run: &args.run,
        out: args.out.as_deref(),
        warmup: args.warmup,
        keep: args.keep,
        dry_run: args.dry_run,
        json: args.output.json,
        verifies: args.verify,
    }
}

/// Refuses options that exclude each other.
fn refuse_arguments(args: &RecordArgs, profile: &Profile) -> Result<()> {
    if profile.sweep.is_some() {
        if args.duel.duel.is_some() {
            let what = "--duel needs a single run, but the profile has steps";
            return Err(Error::input(what).hint("leave the profile's [[step]] and [sweep] out"));
        }
        if args.trace {
            let what = "--trace needs a single run, but the profile has steps";
            return Err(Error::input(what).hint("leave the profile's [[step]] and [sweep] out"));
        }
        if args.until_steady {
            let what = "--until-steady needs a single run, but the profile has steps";
            return Err(
                Error::input(what).hint("give the steps a time: --for, or `for` in the profile's [sweep]")
            );
        }
    } else if args.verify && profile.settings.leaves_kernel() {
        let what = "--verify reads through the kernel, which gets these drives back only after the run";
        return Err(Error::input(what).hint("leave it out, and run `stacktune verify` afterwards"));
    }
    Ok(())
}

/// Reads the target back if requested and the run was complete, and tears down the stack; returns the outcome
/// of both.
fn take_down(
    session: Session,
    args: &RecordArgs,
    whole: bool,
    watcher: &mut Watcher,
) -> (Result<()>, Result<()>) {
    if watcher.interrupts.count() > 1 {
        // I/O that does not drain is no longer waited for: the kernel ends it with the process, and
        // `stacktune cleanup` removes the stack.
        std::mem::forget(session);
        return (Ok(()), Ok(()));
    }
    let verified = if args.verify && whole { verify(&session, watcher) } else { Ok(()) };
    let ended = session.dismantle(args.keep, &mut |advance| {
        watcher.progress.step(advance);
        true
    });
    watcher.progress.done();
    (verified, ended.map(|commands| report_kept(&commands)))
}

/// The run's result for the exit status.
pub(super) fn ended_well(summary: &Summary, ended: Result<()>) -> Result<()> {
    match (summary.failure.as_deref(), ended) {
        (Some(failure), Err(left)) => {
            return Err(Error { what: format!("{failure} And then: {}", left.what), ..left });
        }
        (Some(failure), Ok(())) => return Err(Error::failed(failure)),
        (None, ended) => ended?,
    }
    match summary.errors_line() {
        _ if summary.interrupted => Err(Error::interrupted("interrupted: the summary has what was measured")),
        // io_uring starts kernel threads for what can't be done at once.
        Some(errors) if summary.failed_with("ECANCELED") => Err(Error::failed(errors).hint(format!(
            "with io_uring, ECANCELED can mean that the kernel cannot start a thread: {}",
            threads::RAISE
        ))),
        Some(errors) => Err(Error::failed(errors)),
        None => Ok(()),
    }
}

/// Reports that a run did not become steady in its time; its program may have ended before that.
pub(super) fn report_unsteady(summary: &Summary, time: Duration) {
    if !summary.steady.is_steady() && !summary.interrupted && summary.failure.is_none() {
        let waits = summary.steady.waits_for().map_or_else(String::new, |waits| format!(": {waits}"));
        let span = approx_span(summary.duration_s);
        let is_unknown = summary.steady.at_s.is_none();
        let state =
            if is_unknown { "no level has lasted yet".to_owned() } else { summary.steady.to_string() };
        let all = summary.duration_s + summary.warmup_s + 1.0 >= time.as_secs_f64();
        let longer = if all { "; --at-most gives it longer" } else { "" };
        eprint_line(&format!("stacktune: not steady after {span} ({state}{waits}){longer}"));
    }
}

/// Prints what would be done, and does nothing else.
pub(super) fn plan_printed(settings: &Settings, facts: &Facts, allowed: bool, json: bool) -> Result<()> {
    let problems = check(settings, Conditions { facts, target: None });
    if let Some(problem) = problems.first() {
        return Err(Error::input(problem.to_string()));
    }
    let plan = crate::runs::session::plan_shown(settings, facts)?;
    if let Some(text) = crate::runs::session::others_in_folder(settings) {
        eprint_line(&format!("stacktune: {text}"));
    }
    if !settings.stack.by_commands.is_empty() && !allowed {
        eprint_line(
            "stacktune: the plan contains commands from the profile; they run only with --allow-commands",
        );
    }
    if json { print_json(&report::PlanFile::from(&plan)) } else { print(&report::plan(&plan)) }
}
