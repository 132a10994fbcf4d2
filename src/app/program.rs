//! `stacktune run`: a program as the load.

use std::time::Duration;

use super::inputs::{facts_with_versions, options, profile};
use super::output::{eprint_line, print, print_json};
use super::record::{ended_well, plan_printed};
use super::run_as::user;
use super::signals::Interrupts;
use super::watcher::{Watcher, report_kept};
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::runs::record::{PROGRAM_LOG, Summary, refuse_folder};
use crate::runs::session::headless::{Until, record_watched};
use crate::runs::session::{Attendant, Event, Options, ProgramOptions, Session, for_program, program_noted};
use crate::settings::profile::builtin::BUILTIN;
use crate::settings::profile::{builtin, by_identity};
use crate::settings::values::program::wrong_command;
use crate::settings::{Program, Settings};
use crate::stack::program::{find, package_of};
use crate::ui::cli::ProgramArgs;
use crate::ui::report;

/// A program runs for this long unless the command line says otherwise.
const MEASURED: Duration = Duration::from_secs(30);

/// Runs the command.
pub fn run(args: &ProgramArgs) -> Result<()> {
    if args.list {
        return print(&recipes());
    }
    let settings = settings(args)?;
    let user = user(args.user.as_deref(), settings.program.as_ref().and_then(|of| of.user.as_deref()))?;
    let facts = facts_with_versions();
    let settings = by_identity(&settings, &facts);
    if args.dry_run {
        if let (false, Some(text)) = (args.output.json, program_noted(&settings)) {
            let who = user.as_ref().map_or_else(|| "who calls it".to_owned(), |user| user.name.clone());
            eprint_line(&format!("stacktune: {text}\nas {who}"));
        }
        return plan_printed(&settings, &facts, args.run.allow_commands, args.output.json);
    }
    let out = args.out.clone().unwrap_or_default();
    refuse_folder(&out)?;
    let interrupts = Interrupts::watch()?;
    let warmup = args.warmup.unwrap_or_default();
    let options = Options { warmup, program: true, ..options(&args.run, &settings, false) };
    let array = settings.run.clone();
    let time = warmup + args.duration.unwrap_or(MEASURED);
    let mut watcher = Watcher::new(Some(time), &interrupts);
    let mut session = Session::open(settings, options, facts, &mut watcher)?;
    let of_program = ProgramOptions { user, time, stop_if: args.stop_if.clone() };
    let began =
        session.begin_program(of_program, &mut |text| watcher.notice(text), &mut || interrupts.count() == 0);
    let recorded = began.and_then(|()| {
        let mut watch = |_: &mut Session, event: &Event| {
            watcher.watch(event);
            Ok(true)
        };
        let until = Until { time, steady: false };
        record_watched(&mut session, &out, until, &|| interrupts.count(), &mut watch)
    });
    watcher.progress.done();
    let ended = take_down(session, args, &mut watcher, recorded.is_ok());
    let summary: Summary = match (recorded, &ended) {
        (Err(error), Err(left)) => {
            return Err(Error { what: format!("{}; and then {}", error.what, left.what), ..error });
        }
        (recorded, _) => recorded?,
    };
    if args.output.json {
        print_json(&summary)?;
    } else {
        print(&report::table(&summary, &array))?;
    }
    ended_well(&summary, ended)
}

/// The built-in profiles of programs, each with what it lacks here.
fn recipes() -> String {
    let profiles = BUILTIN.iter().filter_map(|(name, _)| builtin(name));
    let rows = profiles.filter_map(|profile| {
        let program = profile.settings.program?;
        let lacks: Vec<&str> =
            program.programs().into_iter().filter(|program| find(program).is_err()).collect();
        let install =
            |program: &&str| format!("{program} (Debian: {})", package_of(program).unwrap_or(program));
        let here = match lacks.as_slice() {
            [] => "here".to_owned(),
            lacks => format!("lacks {}", lacks.iter().map(install).collect::<Vec<_>>().join(", ")),
        };
        Some(format!("{:<12}  {}; {here}\n", profile.settings.name, profile.settings.about))
    });
    rows.collect()
}

/// The profile's settings with the command line's program.
fn settings(args: &ProgramArgs) -> Result<Settings> {
    let (profile, _) = profile(args.profile.as_deref(), &args.run.sets.set)?;
    if profile.sweep.is_some() {
        return Err(Error::input("a program runs once, but the profile has steps")
            .hint("leave the profile's [[step]] and [sweep] out"));
    }
    if args.run.read_only {
        return Err(Error::input("a program writes what it likes, and --read-only writes nothing"));
    }
    let mut settings = profile.settings;
    if !args.words.is_empty() {
        if let Some(why) = wrong_command(&args.words) {
            return Err(Error::input(format!("the command after `--` {why}")));
        }
        settings.program.get_or_insert_default().run.clone_from(&args.words);
    }
    if let Some(program) = &mut settings.program {
        program.memory_max_bytes = args.mem.or(program.memory_max_bytes);
    }
    if settings.run.max_writes_bytes.is_some() {
        eprint_line("stacktune: run.max_writes is not kept: a program writes what it likes");
    }
    let settings = for_program(settings)?;
    let programs = settings.program.iter().flat_map(Program::programs);
    programs.into_iter().try_for_each(|program| find(program).map(drop))?;
    Ok(settings)
}

/// Ends what is left of the program, keeps its last lines in the recording, and takes the stack down.
fn take_down(mut session: Session, args: &ProgramArgs, watcher: &mut Watcher, recorded: bool) -> Result<()> {
    if watcher.interrupts.count() > 1 {
        // What does not end is no longer waited for, as in `record`; of the program nothing goes on.
        session.kill_program();
        std::mem::forget(session);
        return Ok(());
    }
    let ended = session.end_program();
    let kept = match (&ended, &args.out) {
        (Ok(log), Some(out)) if recorded => {
            HeldFolder::open_own(out).and_then(|folder| folder.replace(PROGRAM_LOG, log.as_bytes()))
        }
        _ => Ok(()),
    };
    let dismantled = session.dismantle(args.keep, &mut |advance| {
        watcher.progress.step(advance);
        true
    });
    watcher.progress.done();
    ended.map(drop).and(dismantled.map(|commands| report_kept(&commands))).and(kept)
}
