//! `stacktune contract` scores the rules from a trace. `stacktune trace` traces drives, also while a command runs, or
//! converts a trace. `record --trace` traces the target's drives.

mod command;
mod own;
mod recorded;

use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::inputs::facts;
use super::output::{eprint_line, print, print_json};
use super::run_as::user;
use super::signals::Interrupts;
use super::{new_file, privileges};
use crate::error::{Error, Result, describe};
use crate::held_folder::HeldFolder;
use crate::host::{Trusting, make_own_folder};
use crate::printable::{self, Shown as _};
use crate::stack::system_folder::refuse_system_folder;
use crate::trace::contract::{ContractSpec, Rule, score};
use crate::trace::{self, Trace, TracedDrive, Watch, Watched, WrittenForm};
use crate::ui::cli::{ContractArgs, RuleName, TraceArgs, TraceForm};
use crate::ui::report;
use crate::units::{fine_span, grouped};
use command::RunningCommand;

pub use recorded::{TraceUnderWay, begin, each_run, keep, keep_all, look};

/// Time between two checks whether it is over.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs `stacktune contract`.
pub fn contract(args: &ContractArgs) -> Result<()> {
    let folder = args.csv.as_deref().map(csv_folder).transpose()?;
    if folder.is_none() {
        privileges::drop_to_reading();
    }
    let (mut trace, parts) = read(&args.traces)?;
    if let Some(name) = &args.phase {
        keep_phase(&mut trace, name)?;
    }
    let scores = score(&trace, &spec(args, &trace, &parts))?;
    if let Some(folder) = folder {
        for (name, text) in report::contract_files(&scores) {
            let path = folder.path().join(name);
            let written = new_file::make(&folder, &path)?.write_all(text.as_bytes());
            written.map_err(|error| Error::os("cannot write", &path, error))?;
        }
    }
    let name = args.traces.first().map_or_else(String::new, |path| path.shown());
    if args.output.json {
        print_json(&report::contract_json(&name, &trace, &scores))
    } else {
        print(&report::contract(&name, &trace, &scores))
    }
}

/// What to score: by default, the part of the drive that the recording's target used.
fn spec(args: &ContractArgs, trace: &Trace, parts: &[Watched]) -> ContractSpec {
    let only = |drives: Vec<TracedDrive>| if let [drive] = drives[..] { Some(drive) } else { None };
    // A trace has many I/Os, so its drives are only searched for if they matter.
    let drive = args.drive.or_else(|| if parts.is_empty() { None } else { only(trace.drives()) });
    let part = parts.iter().find(|part| Some(part.drive) == drive);
    let part = part.filter(|_| args.start.is_none() && args.logical.is_none());
    ContractSpec {
        drive: args.drive,
        start_bytes: args.start.or(part.map(|part| part.start_bytes)).unwrap_or(0),
        space_bytes: args.logical.or(part.map(|part| part.bytes)),
        page_bytes: args.page,
        file_bytes: args.file_bytes,
        rules: if args.rule.is_empty() {
            Rule::ALL.into()
        } else {
            args.rule.iter().copied().map(rule).collect()
        },
        coverage_percent: args.coverage.clone(),
        block_bytes: args.blocks.clone(),
        segment_bytes: args.segment,
        channels: args.channels,
    }
}

/// Reads a trace from its files or from a recording, with the parts of drives that it covers.
///
/// # Errors
/// Of the kind `Input` if it is not a trace.
pub fn read(paths: &[PathBuf]) -> Result<(Trace, Vec<Watched>)> {
    let of_folder = match paths {
        [one] => recorded::of_folder(one)?,
        _ => None,
    };
    match of_folder {
        Some(traced) => Ok(traced),
        None => Ok((trace::read(paths)?, Vec::new())),
    }
}

/// Keeps only what was issued in a phase.
///
/// # Errors
/// Of the kind `Input` if the trace has no such phase, or nothing was issued in it.
pub fn keep_phase(trace: &mut Trace, name: &str) -> Result<()> {
    if !trace.keep_phase(name) {
        let known: Vec<&str> = trace.phases().map(|(name, _)| name).take(8).collect();
        let known =
            if known.is_empty() { "notes no phases".into() } else { format!("has {}", known.join(", ")) };
        return Err(Error::input(format!("the trace has no phase {}: it {known}", printable::line(name))));
    }
    if trace.ios.is_empty() {
        return Err(Error::input(format!("nothing was issued in the phase {}", printable::line(name))));
    }
    Ok(())
}

fn rule(name: RuleName) -> Rule {
    match name {
        RuleName::RequestScale => Rule::RequestScale,
        RuleName::Locality => Rule::Locality,
        RuleName::Alignment => Rule::Alignment,
        RuleName::Grouping => Rule::Grouping,
        RuleName::Lifetime => Rule::Lifetime,
    }
}

/// The folder of the curves, which is made if there is none.
fn csv_folder(dir: &Path) -> Result<HeldFolder> {
    refuse_system_folder("--csv", dir)?;
    make_own_folder(dir, Trusting::Caller)?;
    HeldFolder::open(dir)
}

/// Runs `stacktune trace`.
pub fn run(args: &TraceArgs) -> Result<()> {
    let Some(out) = &args.out else { return show(args) };
    let folder = new_file::folder_of(out)?;
    let (trace, ended) = if args.from.is_empty() { live(args)? } else { (read(&args.from)?.0, Ok(())) };
    let form = match args.form.unwrap_or(TraceForm::Blktrace) {
        TraceForm::Blktrace => WrittenForm::Blktrace,
        TraceForm::Blkparse => WrittenForm::Blkparse,
        TraceForm::Fio => WrittenForm::Fio,
        TraceForm::Mqsim => WrittenForm::Mqsim,
        TraceForm::Wiscsee => WrittenForm::Wiscsee,
        TraceForm::Csv => WrittenForm::Csv,
    };
    let (form, ended) = match form.check(&trace) {
        Ok(()) => (form, ended),
        Err(error) if args.from.is_empty() => {
            eprint_line("stacktune: the trace is kept as blktrace's records instead; --from converts it");
            (WrittenForm::Blktrace, ended.and(Err(error)))
        }
        Err(error) => return Err(error),
    };
    let mut file = BufWriter::new(new_file::make(&folder, out)?);
    let written = trace::write(&trace, form, &mut file).and_then(|()| file.flush());
    written.map_err(|error| Error::os("cannot write", out, error))?;
    let (ios, lost) = (grouped(trace.ios.len() as u64), trace.lost.in_words());
    eprint_line(&format!("stacktune: {ios} I/Os, {lost}: {}", out.shown()));
    if let Some(text) = form.left_out(&trace) {
        eprint_line(&format!("stacktune: {text}"));
    }
    ended
}

/// Prints what a trace holds.
fn show(args: &TraceArgs) -> Result<()> {
    privileges::drop_to_reading();
    let (trace, parts) = read(&args.from)?;
    let name = args.from.first().map_or_else(String::new, |path| path.shown());
    if args.json {
        print_json(&report::held_json(&name, &trace, &parts))
    } else {
        print(&report::held(&name, &trace, &parts))
    }
}

/// Traces drives for a time, until a signal, or while a command runs; also returns how that ended. The trace stays in
/// memory until the end, as the file may be on one of the drives.
fn live(args: &TraceArgs) -> Result<(Trace, Result<()>)> {
    let drives = args.device.iter().map(|device| whole(device)).collect::<Result<Vec<_>>>()?;
    let user = if args.words.is_empty() { None } else { user(args.user.as_deref(), None)? };
    let interrupts = Interrupts::watch()?;
    let names = drives.iter().map(|of| format!("{} ({})", of.name, of.drive)).collect::<Vec<_>>().join(", ");
    let watch = Watch::start(drives, &facts().cpu.online, None)?;
    let ends = match (args.duration, args.words.first()) {
        (Some(time), _) => format!("for {} at most", fine_span(time)),
        (None, Some(_)) => "until the command ends".to_owned(),
        (None, None) => "until Ctrl-C".to_owned(),
    };
    eprint_line(&format!("stacktune: tracing {names} {ends}; Ctrl-C ends it"));
    let start = Instant::now();
    let mut command = None;
    if !args.words.is_empty() {
        command = Some(RunningCommand::start(&args.words, user.as_ref())?);
    }
    let mut goes_on = || command.as_mut().is_none_or(RunningCommand::goes_on);
    let is_due = || args.duration.is_some_and(|time| start.elapsed() >= time);
    // A command goes on to its end, even if the trace is full before.
    let is_over = || watch.is_over() && args.words.is_empty();
    while interrupts.count() == 0 && !is_due() && !is_over() && goes_on() {
        std::thread::sleep(PAUSE);
    }
    let ended = command.map_or(Ok(()), RunningCommand::end);
    match (watch.stop(), ended) {
        (Ok(traced), ended) => {
            eprint_line(&format!("stacktune: {}", traced.in_words()));
            Ok((traced.trace, ended))
        }
        // Why nothing was traced.
        (Err(_), Err(error)) | (Err(error), Ok(())) => Err(error),
    }
}

/// A whole drive.
fn whole(device: &Path) -> Result<Watched> {
    let found = device
        .metadata()
        .map_err(|error| Error::input(format!("{}: {}", device.shown(), describe(&error))))?;
    if !found.file_type().is_block_device() {
        return Err(Error::input(format!("{} is not a block device", device.shown())));
    }
    let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
    let watched = Watched::of(&PathBuf::from(format!("/sys/dev/block/{major}:{minor}")))?;
    if watched.is_part() {
        let Watched { start_bytes, bytes, .. } = watched;
        let what = format!("{} is a partition, and I/O is issued to whole drives", device.shown());
        let hint = format!("trace its drive, and score it with --start {start_bytes} --logical {bytes}");
        return Err(Error::input(what).hint(hint));
    }
    Ok(watched)
}
