//! From the command line to the command, and to an exit status.

use std::process::ExitCode;

use clap::Parser;

use super::output::{eprint_line, print_with};
#[cfg(feature = "programs")]
use super::program;
#[cfg(feature = "proofs")]
use super::{attest, reproduce};
#[cfg(feature = "trace")]
use super::{ftl, mimic, trace};
use super::{inspect, privileges, record, show, signals, stacks, ui, verify};
#[cfg(feature = "documents")]
use super::{manual, picture};
use crate::error::{Error, Result};
use crate::host::raise_file_limit;
use crate::printable;
use crate::ui::cli::{self, Cli, Cmd};
use crate::ui::help::{self, TextOutput};

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let lacking = || std::env::args_os().nth(1).and_then(|word| cli::lacking(word.to_str()?));
    if let Some(error) = require_stack().err().or_else(lacking) {
        eprint_line(&format!("stacktune: {error}"));
        return ExitCode::from(error.exit_status());
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        if let Some(error) = cli::mistyped(std::env::args_os().nth(1), &error) {
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
    use Cmd::{Compare, Cost, Help, Knobs, Profiles, Show};
    match &cli.command {
        Some(Show(_) | Compare { .. } | Cost { .. } | Knobs(_) | Profiles(_) | Help { .. }) => true,
        #[cfg(feature = "documents")]
        Some(Cmd::Completions { .. } | Cmd::Man) => true,
        _ => false,
    }
}

/// Exits as clap does, but prints nothing that a terminal would obey: folder names in the arguments may be others'.
fn end_with(error: &clap::Error) -> ! {
    if std::env::args_os().all(|argument| printable::is_line(&argument.to_string_lossy())) {
        error.exit();
    }
    let shown = std::env::args_os().map(|argument| printable::line(&argument.to_string_lossy()).into_owned());
    let same = Cli::try_parse_from(shown).err();
    eprint_line(same.as_ref().unwrap_or(error).render().to_string().trim_end());
    std::process::exit(error.exit_code())
}

fn dispatch(cli: Cli) -> Result<()> {
    match cli.command {
        None => ui::run(cli.profile.as_deref(), cli.theme.as_deref(), &cli.run),
        Some(Cmd::Record(args)) => record::run(&args),
        #[cfg(feature = "programs")]
        Some(Cmd::Run(args)) => program::run(&args),
        #[cfg(feature = "proofs")]
        Some(Cmd::Reproduce(args)) => reproduce::run(&args),
        #[cfg(feature = "proofs")]
        Some(Cmd::Attest(args)) => attest::run(&args),
        Some(Cmd::Show(args)) => show::run(&args),
        #[cfg(feature = "trace")]
        Some(Cmd::Contract(args)) => trace::contract(&args),
        #[cfg(feature = "trace")]
        Some(Cmd::Trace(args)) => args.to_run().map_or_else(|| trace::run(&args), |run| program::run(&run)),
        #[cfg(feature = "trace")]
        Some(Cmd::Ftl(args)) => ftl::run(&args),
        #[cfg(feature = "trace")]
        Some(Cmd::Mimic(args)) => mimic::run(&args),
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
        #[cfg(feature = "documents")]
        Some(Cmd::Completions { shell }) => manual::completions(shell),
        #[cfg(feature = "userspace")]
        Some(Cmd::DriveSpdk) => crate::load::remote::helper::run(),
        #[cfg(feature = "documents")]
        Some(Cmd::Picture(args)) => picture::run(&args),
        #[cfg(feature = "documents")]
        Some(Cmd::Man) => manual::man(),
    }
}

/// `stacktune help`.
fn explain(topic: Option<&str>) -> Result<()> {
    let text = cli::explain(topic, TextOutput::stdout())?;
    print_with(|out| help::page(&text, out))
}

/// Refuses a stack limit so low that the program would be killed by a signal at some point.
fn require_stack() -> Result<()> {
    use rustix::process::{Resource, getrlimit};
    const NEEDED_KIB: u64 = 1024;
    match getrlimit(Resource::Stack).current {
        Some(bytes) if bytes < NEEDED_KIB * 1024 => {
            let what = format!("the stack limit is {} KiB, but {NEEDED_KIB} KiB are needed", bytes / 1024);
            Err(Error::failed(what).hint("raise it: `ulimit -s 8192`"))
        }
        _ => Ok(()),
    }
}
