//! `stacktune mimic`: a profile whose load is like that of a trace.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::output::{eprint_line, print, print_json};
use super::{new_file, privileges, trace as traces};
use crate::class::Class;
use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::settings::profile::to_toml;
use crate::settings::{Arrival, Offsets, Profile, Settings, Sync};
use crate::trace::mimic::{ClassFit, MimicLoad, PagesDrawn, mimic};
use crate::trace::{self, Selected, Trace, TracedDrive, TracedIo};
use crate::ui::cli::MimicArgs;
use crate::ui::report;

/// The folder of the file that the profile runs on, unless the operator names another.
const DIR: &str = "~/.cache/stacktune/mimic";

/// Runs the command.
pub fn run(args: &MimicArgs) -> Result<()> {
    let folder = args.out.as_deref().map(new_file::folder_of).transpose()?;
    if folder.is_none() {
        privileges::drop_to_reading();
    }
    let name = args.traces.first().map_or_else(String::new, |path| path.shown());
    let part = Part { drive: args.drive, start: args.start, logical: args.logical };
    let (ios, knows_depth) = ios_of(&args.traces, &part, args.phase.as_deref())?;
    let mut load = mimic(&ios, knows_depth).map_err(|error| of_trace(&name, error))?;
    if let Some(replay) = &args.replayed {
        let whole = Part::default();
        let (ios, knows_depth) = ios_of(std::slice::from_ref(replay), &whole, Some("run"))?;
        load.replayed(&ios, knows_depth).map_err(|error| of_trace(&replay.shown(), error))?;
    }
    if let Some((folder, out)) = folder.zip(args.out.as_ref()) {
        let text = to_toml(&Profile::from(settings(&load, &name)));
        let written = new_file::make(&folder, out)?.write_all(text.as_bytes());
        written.map_err(|error| Error::os("cannot write", out, error))?;
        eprint_line(&format!("stacktune: `stacktune record {} --trace` runs it", record_path(out)));
    }
    if args.output.json {
        print_json(&report::mimic_json(&name, &load))
    } else {
        print(&report::mimic(&name, &load))
    }
}

fn of_trace(name: &str, error: Error) -> Error {
    Error { what: format!("{name}: {}", error.what), ..error }
}

/// The path as the command line takes it for a profile.
fn record_path(out: &Path) -> String {
    let shown = out.shown();
    if shown.contains('/') { shown } else { format!("./{shown}") }
}

/// The part of a trace that is taken.
#[derive(Default)]
struct Part {
    drive: Option<TracedDrive>,
    start: Option<u64>,
    logical: Option<u64>,
}

/// The I/Os of a part of a trace, and whether their completion times are known.
fn ios_of(paths: &[PathBuf], part: &Part, phase: Option<&str>) -> Result<(Vec<TracedIo>, bool)> {
    let (mut trace, parts) = traces::read(paths)?;
    if let Some(name) = phase {
        traces::keep_phase(&mut trace, name)?;
    }
    if trace.lost.others() > 0 {
        let what = format!(
            "{}: {}",
            paths.first().map_or_else(String::new, |path| path.shown()),
            trace.lost.in_words()
        );
        return Err(Error::input(what).hint("trace again: a load can't be fitted to what is left"));
    }
    let used = parts.iter().find(|used| part.drive.is_none_or(|drive| drive == used.drive));
    let used = used.filter(|_| part.start.is_none() && part.logical.is_none());
    let drive = part.drive.or_else(|| used.filter(|_| parts.len() == 1).map(|used| used.drive));
    let start = part.start.or(used.map(|used| used.start_bytes)).unwrap_or(0);
    let logical = part.logical.or(used.map(|used| used.bytes));
    let knows_depth = knows_completions(&trace);
    let Selected { ios, .. } = trace::select(&trace, drive, start, logical)?;
    Ok((ios, knows_depth))
}

fn knows_completions(trace: &Trace) -> bool {
    trace.form.has_completions() && trace.lost.all == 0
}

/// The settings of a load; classes that it lacks are off.
fn settings(load: &MimicLoad, name: &str) -> Settings {
    let mut settings = Settings {
        name: "mimic".to_owned(),
        about: format!("A load like that of {name}"),
        ..Settings::default()
    };
    DIR.clone_into(&mut settings.target.dir);
    (settings.target.count, settings.target.size_bytes) = (1, load.space_bytes);
    settings.classes.iter_mut().for_each(|class| class.enabled = false);
    settings.wal.sync = Sync::None;
    load.classes.iter().for_each(|fit| apply(fit, &mut settings));
    settings
}

fn apply(fit: &ClassFit, settings: &mut Settings) {
    if let Some(writes) = fit.writes_a_flush.filter(|_| fit.class == Class::Wal) {
        settings.wal.sync = Sync::Fdatasync;
        settings.wal.sync_every = writes;
    }
    let class = &mut settings.classes[fit.class.index()];
    (class.enabled, class.depth, class.batch) = (true, fit.depth, 1);
    class.rate_bytes_per_s = Some(fit.rate_bytes_per_s);
    class.page_size_bytes = Some(fit.page_bytes);
    class.arrival = if fit.is_random { Arrival::Poisson } else { Arrival::Constant };
    match fit.pages {
        PagesDrawn::InOrder => {}
        PagesDrawn::Uniform => class.offsets = Offsets::Uniform,
        PagesDrawn::Zipf(theta) => (class.offsets, class.zipf_theta) = (Offsets::Zipf, theta),
        PagesDrawn::Runs(jumps) => (class.offsets, class.jump_share) = (Offsets::Runs, jumps),
    }
}
