//! The composition root: each command, assembled from the rooms.
//!
//! Enters: the command line. Leaves: an exit status.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`outlook`] | what a sweep would run, write and destroy | – |
//! | [`picture`] | `picture`: the screen of a run as SVG | – |
//! | [`privileges`] | giving up the rights that a command does not need | – |
//! | [`signals`] | signals that end a run cleanly | – |
//! | [`ui`] | the screen, on a session in its own thread | – |
//! | [`stacks`] | `status` and `cleanup` | signals |
//! | [`verify`] | `verify`: reads back every page | signals |
//! | [`watcher`] | the attendant at the command line | signals |
//! | [`sweep`] | `record` of a profile with steps | outlook, signals, watcher |
//! | [`record`] | `record`: a profile without a terminal | signals, watcher, sweep |
//! | [`reproduce`] | `reproduce`: an experiment beside the paper's results | outlook, signals, watcher, sweep |
//! | [`inspect`] | commands that inspect and run nothing | reproduce |

mod inspect;
mod outlook;
mod picture;
mod privileges;
mod record;
pub(crate) mod reproduce;
mod signals;
mod stacks;
mod sweep;
mod ui;
mod verify;
mod watcher;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use serde::Serialize;

use crate::error::{Error, Result, describe};
use crate::host::Facts;
use crate::printable;
use crate::runs::session::Options;
use crate::settings::Profile;
use crate::settings::profile::{Store, builtin};
use crate::ui::cli::{self, Cli, Cmd, RunArgs};
use crate::ui::help::{self, Place};

/// The profile that is opened without a name.
const DEMO: &str = "demo";

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        if let Some(error) = cli::mistyped(std::env::args().skip(1), &error) {
            eprint_line(&format!("stacktune: {error}"));
            std::process::exit(error.exit_status().into());
        }
        end_with(&error)
    });
    raise_file_limit();
    signals::outlive_file_limit();
    if only_reads(&cli) {
        privileges::drop_to_reading();
    }
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint_line(&format!("stacktune: {error}"));
            ExitCode::from(error.exit_status())
        }
    }
}

/// Whether a command only reads recordings, profiles or texts.
fn only_reads(cli: &Cli) -> bool {
    use Cmd::{Compare, Completions, Cost, Help, Knobs, Man, Profiles, Show};
    let reads = |command: &Cmd| {
        matches!(
            command,
            Show { .. }
                | Compare { .. }
                | Cost { .. }
                | Knobs(_)
                | Profiles(_)
                | Help { .. }
                | Completions { .. }
                | Man
        )
    };
    cli.command.as_ref().is_some_and(reads)
}

/// Ends the program as clap does, without what a terminal would obey in the arguments: names of folders may be others'.
fn end_with(error: &clap::Error) -> ! {
    if std::env::args_os().all(|argument| printable::is_line(&argument.to_string_lossy())) {
        error.exit();
    }
    eprint_line(error.render().to_string().trim_end());
    std::process::exit(error.exit_code())
}

fn dispatch(cli: Cli) -> Result<()> {
    match cli.command {
        None => ui::run(cli.profile.as_deref(), &cli.run),
        Some(Cmd::Record(args)) => record::run(&args),
        Some(Cmd::Reproduce(args)) => reproduce::run(&args),
        Some(Cmd::Show { dir, over_time: true, output }) => inspect::show_over_time(&dir, output.json),
        Some(Cmd::Show { dir, output, .. }) => inspect::show(&dir, output.json),
        Some(Cmd::Compare { dirs, output }) => inspect::compare(&dirs, output.json),
        Some(Cmd::Cost { dirs, data, rate, output }) => inspect::cost(&dirs, data, rate, output.json),
        Some(Cmd::Verify { profile, sets, output }) => {
            verify::run(profile.as_deref(), &sets.set, output.json)
        }
        Some(Cmd::Knobs(output)) => inspect::knobs(output.json),
        Some(Cmd::Profiles(output)) => inspect::profiles(output.json),
        Some(Cmd::Host(output)) => inspect::host(output.json),
        Some(Cmd::Calibrate { pairs: true, output }) => inspect::calibrate_pairs(output.json),
        Some(Cmd::Calibrate { output, .. }) => inspect::calibrate(output.json),
        Some(Cmd::Check { profile, sets }) => inspect::check(&profile, &sets.set),
        Some(Cmd::Status(output)) => stacks::status(output.json),
        Some(Cmd::Cleanup(args)) => stacks::cleanup(&args),
        Some(Cmd::Help { topic }) => explain(topic.as_deref()),
        Some(Cmd::Completions { shell }) => print_with(|out| cli::write_completions(shell, out)),
        Some(Cmd::DriveSpdk) => crate::load::remote::helper::run(),
        Some(Cmd::Picture(args)) => picture::run(&args),
        Some(Cmd::Man) => print_with(|out| cli::write_man(out)),
    }
}

/// `stacktune help`.
fn explain(topic: Option<&str>) -> Result<()> {
    let text = cli::explain(topic, Place::stdout())?;
    print_with(|out| help::page(&text, out))
}

/// A profile with the command line's turns applied, and whether it is the built-in demo.
fn profile(name: Option<&str>, sets: &[String]) -> Result<(Profile, bool)> {
    let store = Store::of_user();
    let (mut profile, demo) = match name {
        None => (builtin(DEMO).ok_or_else(|| Error::failed("the demo is missing"))?, true),
        Some(name) => {
            let profile = store
                .load(name)
                .map_err(|error| if store.knows(name) { error } else { hint_at_command(name, error) })?;
            let demo = name == DEMO && builtin(DEMO).as_ref() == Some(&profile);
            (profile, demo)
        }
    };
    cli::apply_sets(&mut profile.settings, sets)?;
    Ok((profile, demo))
}

/// A mistyped command looks like the name of a profile.
fn hint_at_command(name: &str, error: Error) -> Error {
    match cli::nearest_command(name) {
        Some(command) => {
            let hint = error.hint.as_deref().map_or(String::new(), |hint| format!("{hint}\n  "));
            error.hint(format!("{hint}or the command `stacktune {command}`?"))
        }
        None => error,
    }
}

fn options(run: &RunArgs, demo: bool) -> Options {
    Options {
        read_only: run.read_only,
        destroy: run.destroy.iter().map(|path| path.display().to_string()).collect(),
        fallbacks: demo,
        warmup: std::time::Duration::ZERO,
        written_bytes: Arc::default(),
        typed: Vec::new(),
        agreed: None,
        anew: false,
        uncached: false,
        unused_steps: 0,
    }
}

fn facts() -> Arc<Facts> {
    Arc::new(Facts::read(std::path::Path::new("/")))
}

/// The same with the tools' versions, for recordings.
fn facts_with_versions() -> Arc<Facts> {
    Arc::new(Facts::read(std::path::Path::new("/")).with_tool_versions())
}

/// Files are opened for each class and member: the soft limit of 1,024 is soon reached.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If it can't be raised, opening a file reports what is missing.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Prints a line to standard error. If that is closed, or its terminal gone, the error is ignored: what is
/// running must still be completed.
fn eprint_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable::lines(line));
}

/// Prints our own text, which may be styled, to standard output; a closed pipe (`| head`) is no error.
fn print_with(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::failed(format!("cannot write to standard output: {}", describe(&error))))
        }
        _ => Ok(()),
    }
}

fn print(text: &str) -> Result<()> {
    print_with(|out| out.write_all(printable::lines(text).as_bytes()))
}

fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::failed(format!("cannot encode the output: {error}")))?;
    print(&format!("{}\n", printable::json(&text)))
}
