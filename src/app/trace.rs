//! `stacktune contract`: the rules scored from a trace. `stacktune trace`: a drive's, or one in another form.

use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::inputs::facts;
use super::output::{eprint_line, print, print_json};
use super::signals::Interrupts;
use super::{new_file, privileges};
use crate::error::{Error, Result, describe};
use crate::held_folder::HeldFolder;
use crate::host::{Trusting, make_own_folder};
use crate::printable::Shown as _;
use crate::stack::system_folder::refuse_system_folder;
use crate::trace::contract::{Spec, score};
use crate::trace::{self, Drive, Trace, Tracer, WrittenForm};
use crate::ui::cli::{ContractArgs, TraceArgs, TraceForm};
use crate::ui::report;
use crate::units::{fine_span, grouped};

/// Between two looks at the rings: they hold more than comes meanwhile.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs `stacktune contract`.
pub fn contract(args: &ContractArgs) -> Result<()> {
    let folder = args.csv.as_deref().map(csv_folder).transpose()?;
    if folder.is_none() {
        privileges::drop_to_reading();
    }
    let trace = trace::read(&args.traces)?;
    let scores = score(
        &trace,
        &Spec {
            drive: args.drive,
            start_bytes: args.start,
            space_bytes: args.logical,
            page_bytes: args.page,
            file_bytes: args.file_bytes,
        },
    )?;
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

/// The folder of the curves, which is made if there is none.
fn csv_folder(dir: &Path) -> Result<HeldFolder> {
    refuse_system_folder("--csv", dir)?;
    make_own_folder(dir, Trusting::Caller)?;
    HeldFolder::open(dir)
}

/// Runs `stacktune trace`.
pub fn run(args: &TraceArgs) -> Result<()> {
    let folder = new_file::folder_of(&args.out)?;
    let trace = match &args.device {
        Some(device) => live(device, args.duration)?,
        None => trace::read(&args.from)?,
    };
    let form = match args.form {
        TraceForm::Blktrace => WrittenForm::Blktrace,
        TraceForm::Fio if trace.lost > 0 => {
            let what = format!("{} events of the trace are missing, which fio's log can't say", trace.lost);
            return Err(Error::failed(what).hint("write it as blktrace's records"));
        }
        TraceForm::Fio => WrittenForm::Fio,
    };
    let mut out = BufWriter::new(new_file::make(&folder, &args.out)?);
    let written = trace::write(&trace, form, &mut out).and_then(|()| out.flush());
    written.map_err(|error| Error::os("cannot write", &args.out, error))?;
    let (ios, lost) = (grouped(trace.ios.len() as u64), grouped(trace.lost));
    eprint_line(&format!("stacktune: {ios} I/Os, {lost} events lost: {}", args.out.shown()));
    Ok(())
}

/// Traces a drive for a time, or until a signal. What is traced stays in memory until the end: the file may be on that
/// drive.
fn live(device: &Path, duration: Option<Duration>) -> Result<Trace> {
    let drive = drive_of(device)?;
    let interrupts = Interrupts::watch()?;
    let mut tracer = Tracer::start(drive, &facts().cpu.online)?;
    let ends = duration
        .map_or_else(|| "until Ctrl-C".to_owned(), |time| format!("for {}; Ctrl-C ends it", fine_span(time)));
    eprint_line(&format!("stacktune: traces {}, drive {drive}, {ends}", device.shown()));
    let start = Instant::now();
    while interrupts.count() == 0 && duration.is_none_or(|duration| start.elapsed() < duration) {
        std::thread::sleep(PAUSE);
        if !tracer.take() {
            eprint_line("stacktune: the trace ends here: it is as long as can be read");
            break;
        }
    }
    tracer.stop(device)
}

/// The number of a whole drive.
fn drive_of(device: &Path) -> Result<Drive> {
    let found = device
        .metadata()
        .map_err(|error| Error::input(format!("{}: {}", device.shown(), describe(&error))))?;
    if !found.file_type().is_block_device() {
        return Err(Error::input(format!("{} is not a block device", device.shown())));
    }
    let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
    let folder = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let bytes = |name: &str| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        text.trim().parse::<u64>().unwrap_or(0) * 512
    };
    if folder.join("partition").exists() {
        let [start, size] = [bytes("start"), bytes("size")];
        let what = format!("{} is a partition, and I/O is issued to whole drives", device.shown());
        let hint = format!("trace its drive, and score it with --start {start} --logical {size}");
        return Err(Error::input(what).hint(hint));
    }
    Drive::new(major, minor)
        .ok_or_else(|| Error::failed(format!("{major}:{minor} is not a drive's device number")))
}
