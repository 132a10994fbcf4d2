//! A trace of a target's drives, made while a run is recorded; its folder also gets how well the rules were kept.

use std::path::Path;
use std::time::Duration;

use super::own::OwnTrace;
use crate::app::inputs::facts;
use crate::app::output::eprint_line;
use crate::app::watcher::{Around, Watcher};
use crate::error::{Error, Kind, Result};
use crate::held_folder::HeldFolder;
use crate::json;
use crate::printable::Shown as _;
use crate::runs::record::{CONTRACT, Contract, DriveKept, TRACE, TRACE_FACTS};
use crate::runs::session::Session;
use crate::trace::{self, Trace, TracedDrive, Tracer, Watch, Watched};
use crate::ui::report::contract_kept;
use crate::units::grouped;

/// A trace under way, if one is asked for.
pub struct TraceUnderWay(Option<UnderWay>);

struct UnderWay {
    source: TracedBy,
    drives: Vec<Watched>,
    /// Marks for moments after the run.
    marks: Vec<(u64, String)>,
}

/// Where the events come from.
enum TracedBy {
    /// The kernel's tracepoints.
    Kernel(Watch),
    /// The workers themselves.
    Workers(OwnTrace),
}

/// Checks that drives can be traced at all, before a target is built and filled.
///
/// # Errors
/// As for [`Tracer::start`].
pub fn look(asked: bool) -> Result<()> {
    if asked {
        Tracer::start(&[TracedDrive(0)], &facts().cpu.online).map(drop)?;
    }
    Ok(())
}

/// Traces the drives below a session's target from now on, if that is asked for: by the kernel, or, where it does not
/// see the I/O or may not be asked, by the workers.
///
/// # Errors
/// Of the kind `Input` if neither can.
pub fn begin(session: &mut Session, asked: bool) -> Result<TraceUnderWay> {
    if !asked {
        return Ok(TraceUnderWay(None));
    }
    let (source, drives) = if session.is_past_block_layer() {
        by_workers(session)?
    } else {
        match by_kernel(session) {
            Ok(begun) => begun,
            // Users other than root may not ask the kernel, and some targets are on no drive that it names.
            Err(error) if error.kind == Kind::Input => {
                let begun = by_workers(session).map_err(|_| error.clone())?;
                eprint_line(&format!("stacktune: {}; tracing the workers' own I/Os instead", error.what));
                begun
            }
            Err(error) => return Err(error),
        }
    };
    session.traced(true);
    Ok(TraceUnderWay(Some(UnderWay { source, drives, marks: Vec::new() })))
}

fn by_workers(session: &mut Session) -> Result<(TracedBy, Vec<Watched>)> {
    let (own, files) = OwnTrace::begin(session)?;
    Ok((TracedBy::Workers(own), files))
}

fn by_kernel(session: &Session) -> Result<(TracedBy, Vec<Watched>)> {
    let drives = session.drives().iter().map(|folder| Watched::of(folder)).collect::<Result<Vec<_>>>()?;
    if drives.is_empty() {
        return Err(Error::input("--trace: no drive is below the target")
            .hint("choose a target on a drive, or leave --trace out"));
    }
    let watch = Watch::start(drives.clone(), &facts().cpu.online, None)?;
    Ok((TracedBy::Kernel(watch), drives))
}

/// Ends the trace, if there is one, and keeps it in the recording of that session.
///
/// # Errors
/// If nothing was traced, or it can't be written.
pub fn keep(tracing: TraceUnderWay, session: &Session, out: &Path) -> Result<()> {
    let Some(UnderWay { source, drives, marks }) = tracing.0 else { return Ok(()) };
    let mut traced = match source {
        TracedBy::Kernel(watch) => watch.stop()?,
        TracedBy::Workers(own) => own.stop()?,
    };
    traced.note([session.marks(), marks].concat());
    let folder = HeldFolder::open_own(out)?;
    trace::keep(&traced, &drives, &folder, [TRACE, TRACE_FACTS])?;
    let file_bytes = session.database_bytes().or_else(|| session.program_bytes());
    let kept = contract_kept(&traced, &drives, file_bytes);
    folder.replace(CONTRACT, &json::lines(&kept)?)?;
    eprint_line(&format!("stacktune: {}; `stacktune contract {}`", traced.in_words(), out.shown()));
    for drive in Contract::of(&kept).into_iter().flat_map(|kept| kept.drives) {
        eprint_line(&format!("stacktune: {}: {}", drive.name, lights(&drive)));
    }
    Ok(())
}

/// The same, after writing back what a program left in the page cache, as a phase of its own; unless the run was
/// stopped for the host's sake, which that would burden further.
///
/// # Errors
/// As for [`keep`], or if it can't be written back.
pub fn keep_all(mut tracing: TraceUnderWay, session: &mut Session, out: &Path) -> Result<()> {
    let mut written = Ok(());
    if let (Some(under_way), None) = (&mut tracing.0, session.stopped_for_host()) {
        let mark = session.write_back().map(|at_ns| (at_ns, "phase write-back".to_owned()));
        written = mark.map(|mark| under_way.marks.push(mark));
    }
    keep(tracing, session, out).and(written)
}

/// How each rule was kept, in one line; or why that is unknown.
fn lights(drive: &DriveKept) -> String {
    let rules = drive.rules.iter().map(|rule| format!("{}: {}", rule.rule, rule.is_kept));
    drive.why.clone().unwrap_or_else(|| rules.collect::<Vec<_>>().join("; "))
}

/// Traces each run of a sweep.
#[derive(Default)]
struct EachRun(Option<TraceUnderWay>);

impl Around for EachRun {
    fn opened(&mut self, session: &mut Session, _: Duration, _: &mut Watcher) -> Result<()> {
        // The trace of a failed run ends here at the latest.
        self.0 = None;
        self.0 = Some(begin(session, true)?);
        Ok(())
    }

    fn recorded(&mut self, session: &mut Session, dir: &Path, watcher: &mut Watcher) -> Result<()> {
        watcher.progress.done();
        self.0.take().map_or(Ok(()), |tracing| keep(tracing, session, dir))
    }
}

/// What traces each run of a sweep, if that is asked for.
pub fn each_run(asked: bool) -> Option<Box<dyn Around>> {
    asked.then(|| -> Box<dyn Around> { Box::new(EachRun::default()) })
}

/// The trace of a recording, and the drives that it covers; none if the path is not a folder.
///
/// # Errors
/// Of the kind `Input` if the folder has no trace, or less of it than was traced.
pub fn of_folder(path: &Path) -> Result<Option<(Trace, Vec<Watched>)>> {
    if !path.is_dir() {
        return Ok(None);
    }
    let file = path.join(TRACE);
    if !file.exists() {
        let what = format!("{} has no trace", path.shown());
        return Err(Error::input(what).hint("`stacktune record --trace` makes one"));
    }
    let (trace, (drives, traced)) = (trace::read(&[file])?, trace::facts_by(&path.join(TRACE_FACTS)));
    let left = [trace.ios.len() as u64, trace.completed()];
    if left.iter().zip(traced).all(|(left, traced)| traced.is_none_or(|traced| traced <= *left)) {
        return Ok(Some((trace, drives)));
    }
    let [(left, ios), (completed, of)] =
        [0, 1].map(|at| (grouped(left[at]), grouped(traced[at].unwrap_or(left[at]))));
    let what = format!(
        "the trace in {} was cut off: it has {left} of {ios} I/Os, and {completed} of {of} completions",
        path.shown()
    );
    Err(Error::input(what).hint("score its file by itself, if a part will do"))
}
