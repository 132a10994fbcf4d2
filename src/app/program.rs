//! `stacktune run`: a program as the load.

mod duel;
mod recipes;
mod steps;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use self::turns::Turns;
use super::duel::Asked;
use super::inputs::{facts_with_versions, options, profile};
use super::output::{eprint_line, print, print_json};
use super::record::{AT_MOST, ended_well, plan_printed, report_unsteady};
use super::run_as::user;
use super::signals::Interrupts;
use super::trace;
use super::watcher::{Around, Watcher, report_kept};
use crate::error::{Error, Result};
use crate::host::{Facts, User};
use crate::runs::record::{Summary, refuse_folder};
use crate::runs::session::headless::{Until, record_watched};
use crate::runs::session::{
    Attendant, Duel, Event, Options, ProgramOptions, Session, for_program, program_noted,
};
use crate::settings::profile::by_identity;
use crate::settings::values::program::wrong_command;
use crate::settings::{Profile, Program, Settings};
use crate::stack::program::find;
use crate::ui::cli::ProgramArgs;
use crate::ui::report;
use crate::ui::tui::theme::Theme;

/// A program runs for this long unless the command line says otherwise.
const MEASURED: Duration = Duration::from_secs(30);

/// The longest that a duel may take.
const FOR_A_DUEL: Duration = Duration::from_hours(2);

/// The same on the screen, after which measuring begins again.
const ON_SCREEN: Duration = Duration::from_hours(1);

/// Runs the command.
pub fn run(args: &ProgramArgs) -> Result<()> {
    if args.list {
        return print(&recipes::list());
    }
    let (theme, profile) = (args.theme.as_deref().map(super::ui::theme).transpose()?, given(args)?);
    let in_profile = profile.settings.program.as_ref().and_then(|of| of.user.as_deref());
    let user = user(args.user.as_deref(), in_profile)?;
    if args.out.is_none() && !args.dry_run {
        return on_screen(args, profile, (user, theme));
    }
    if profile.sweep.is_some() {
        return steps::run(args, &profile, user);
    }
    let facts = facts_with_versions();
    let mut settings = by_identity(&profile.settings, &facts);
    let duel = duel::asked(&args.duel, &mut settings)?;
    let shown = match &duel {
        Some(Asked::Builds(asked)) => &asked.1.settings[0],
        _ => &settings,
    };
    if let (true, false, Some(text)) = (args.dry_run, args.output.json, program_noted(shown)) {
        let who = user.as_ref().map_or_else(|| "who calls it".to_owned(), |user| user.name.clone());
        eprint_line(&format!("stacktune: {text}\nas {who}"));
    }
    let duel = match duel {
        Some(Asked::Builds(asked)) => return duel::on_builds(args, *asked, &facts, user),
        Some(Asked::InRun(duel)) => Some(*duel),
        None => None,
    };
    if args.dry_run {
        return plan_printed(&settings, &facts, args.run.allow_commands, args.output.json);
    }
    refuse_never_steady(args, &settings)?;
    let measured = if args.until_steady { args.at_most.or(Some(AT_MOST)) } else { args.duration };
    let time = measured.unwrap_or(if duel.is_some() { FOR_A_DUEL } else { MEASURED });
    let time = args.warmup.unwrap_or_default() + time;
    recorded(
        args,
        settings,
        facts,
        (
            ProgramOptions { user, time, is_open_ended: args.is_open_ended, stop_if: args.stop_if.clone() },
            duel,
        ),
    )
}

/// Refuses to wait for a program to be steady that reports nothing.
fn refuse_never_steady(args: &ProgramArgs, settings: &Settings) -> Result<()> {
    let reports = |program: &Program| !program.metrics.is_empty() || !program.probes.is_empty();
    let reports = settings.program.as_ref().is_some_and(reports);
    if args.until_steady && !reports {
        return Err(Error::input("--until-steady needs a figure that the program reports")
            .hint("give the profile one, in [command.metrics] or [command.probes]"));
    }
    Ok(())
}

/// Records a single run.
fn recorded(
    args: &ProgramArgs,
    settings: Settings,
    facts: Arc<Facts>,
    (of_program, mut duel): (ProgramOptions, Option<Duel>),
) -> Result<()> {
    let out = args.out.clone().unwrap_or_default();
    refuse_folder(&out)?;
    trace::look(args.trace)?;
    let interrupts = Interrupts::watch()?;
    let (warmup, time) = (args.warmup.unwrap_or_default(), of_program.time);
    let mut turns = Turns::of(&args.turns, &settings)?;
    let options = Options { warmup, program: true, ..options(&args.run, &settings, false) };
    let array = settings.run.clone();
    let mut watcher = Watcher::new(Some(time), &interrupts);
    let mut session = Session::open(settings, options, facts, &mut watcher)?;
    let began =
        session.begin_program(of_program, &mut |text| watcher.notice(text), &mut || interrupts.count() == 0);
    let tracing = began.and_then(|()| trace::begin(&mut session, args.trace));
    let recorded = tracing.and_then(|tracing| {
        let mut watch = |session: &mut Session, event: &Event| {
            watcher.watch(event);
            if let Event::Window(..) = event {
                turns.look(session).iter().for_each(|text| watcher.notice(text));
            }
            duel.as_mut().map_or(Ok(true), |duel| duel.watch_and_close(session, event))
        };
        let until = Until { time, steady: args.until_steady };
        let count = || interrupts.count();
        Ok((record_watched(&mut session, &out, until, &count, &mut watch)?, tracing))
    });
    watcher.progress.done();
    let (recorded, traced) = match recorded {
        Ok((summary, tracing)) => (Ok(summary), trace::keep_all(tracing, &mut session, &out)),
        Err(error) => (Err(error), Ok(())),
    };
    let ended = take_down(session, args, &mut watcher);
    let summary: Summary = match (recorded, &ended) {
        (Err(error), Err(left)) => {
            return Err(error.and_then(left));
        }
        (recorded, _) => recorded?,
    };
    if args.until_steady {
        report_unsteady(&summary, time);
    }
    if let Some(duel) = &duel {
        duel::report_early(duel, &summary, time.as_secs_f64());
        super::duel::finish(&duel.report(), &out, args.output.json)?;
    } else if args.output.json {
        print_json(&summary)?;
    } else {
        print(&report::table(&summary, &array))?;
    }
    ended_well(&summary, ended.and(traced))
}

/// What to do around each recording of a sweep whose load is that program, including its trace if asked for.
///
/// # Errors
/// Input if one of its commands is not there, or it can't be run as that user.
pub(super) fn around(named: Option<&str>, program: &Program, is_traced: bool) -> Result<Box<dyn Around>> {
    program.programs().into_iter().try_for_each(|program| find(program).map(drop))?;
    let user = user(named, program.user.as_deref())?;
    let options = ProgramOptions { user, time: Duration::ZERO, is_open_ended: false, stop_if: None };
    Ok(Box::new(steps::Programs::new(options, is_traced)))
}

/// Opens the screen on the program, which runs until the operator quits.
fn on_screen(
    args: &ProgramArgs,
    profile: Profile,
    (user, theme): (Option<User>, Option<Theme>),
) -> Result<()> {
    let recorded = [
        (args.warmup.is_some(), "--warmup"),
        (args.stop_if.is_some(), "--stop-if"),
        (!args.turns.is_empty(), "--turn"),
        (args.until_steady, "--until-steady"),
        (args.duel.duel.is_some(), "--duel"),
        (args.keep, "--keep"),
        (args.trace, "--trace"),
        (args.output.json, "--json"),
    ];
    if let Some((_, option)) = recorded.iter().find(|(given, _)| *given) {
        return Err(Error::input(format!("{option} needs a recording")).hint("say where: --out DIR"));
    }
    let time = args.duration.unwrap_or(ON_SCREEN);
    super::ui::run_program(
        profile,
        &args.run,
        theme,
        ProgramOptions { user, time, is_open_ended: false, stop_if: None },
    )
}

/// The profile with the command line's program.
fn given(args: &ProgramArgs) -> Result<Profile> {
    let (mut profile, _) = profile(args.profile.as_deref(), &args.run.sets.set)?;
    if args.run.read_only {
        return Err(Error::input("a program writes what it likes, and --read-only writes nothing"));
    }
    let settings = &mut profile.settings;
    words_given(args, &mut settings.program)?;
    if let Some(program) = &mut settings.program {
        program.memory_max_bytes = args.mem.or(program.memory_max_bytes);
    }
    if settings.run.max_writes_bytes.is_some() {
        eprint_line("stacktune: run.max_writes is not enforced: a program writes what it likes");
    }
    *settings = for_program(settings.clone())?;
    let programs = settings.program.iter().flat_map(Program::programs);
    programs.into_iter().try_for_each(|program| find(program).map(drop))?;
    Ok(profile)
}

/// Replaces the profile's words with the command line's.
fn words_given(args: &ProgramArgs, program: &mut Option<Program>) -> Result<()> {
    let own: Vec<String> = program.iter().flat_map(|of| &of.knobs).map(|knob| knob.name.clone()).collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let refuse_wrong = |what: &str, words: &[String]| match wrong_command(words, &own) {
        Some(why) => Err(Error::input(format!("{what} {why}"))),
        None => Ok(()),
    };
    if !args.words.is_empty() {
        refuse_wrong("the command after `--`", &args.words)?;
        program.get_or_insert_default().run.clone_from(&args.words);
    }
    if let Some(line) = &args.prepare {
        let words = ["sh", "-c", line].map(str::to_owned);
        refuse_wrong("the line of --prepare", &words)?;
        program.get_or_insert_default().setup = words.into();
    }
    Ok(())
}

/// Ends what is left of the program, and takes the stack down.
fn take_down(mut session: Session, args: &ProgramArgs, watcher: &mut Watcher) -> Result<()> {
    if watcher.interrupts.count() > 1 {
        // As in `record`, stop waiting for what does not end; but nothing of the program may go on.
        session.kill_program();
        std::mem::forget(session);
        return Ok(());
    }
    let ended = session.end_program(&mut || watcher.interrupts.count() < 2);
    let dismantled = session.dismantle(args.keep, &mut |advance| {
        watcher.progress.step(advance);
        true
    });
    watcher.progress.done();
    ended.and(dismantled.map(|commands| report_kept(&commands)))
}
