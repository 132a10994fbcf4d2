//! A trace of a target's drives, made while a run is recorded, and kept in its folder.

use std::path::{Path, PathBuf};

use crate::app::inputs::facts;
use crate::app::output::eprint_line;
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::printable::Shown as _;
use crate::runs::record::{TRACE, TRACE_FACTS};
use crate::runs::session::Session;
use crate::trace::{self, Drive, Tracer, Watch, Watched};
use crate::ui::report::rules_kept;

/// A trace under way, if one is asked for.
pub struct Tracing(Option<(Watch, Vec<Watched>)>);

/// Looks whether drives can be traced at all, before a target is built and filled.
///
/// # Errors
/// As for [`Tracer::start`].
pub fn look(asked: bool) -> Result<()> {
    if asked {
        Tracer::start(&[Drive(0)], &facts().cpu.online).map(drop)?;
    }
    Ok(())
}

/// Traces the drives below a session's target from now on, if that is asked for.
///
/// # Errors
/// Of the kind `Input` if there are none, or they can't be traced.
pub fn begin(session: &Session, asked: bool) -> Result<Tracing> {
    if !asked {
        return Ok(Tracing(None));
    }
    let drives = session.drives().iter().map(|folder| Watched::of(folder)).collect::<Result<Vec<_>>>()?;
    if drives.is_empty() {
        return Err(Error::input("--trace: no drive is below the target")
            .hint("choose a target on a drive, or leave --trace out"));
    }
    let watch = Watch::start(drives.clone(), &facts().cpu.online, None)?;
    Ok(Tracing(Some((watch, drives))))
}

/// Ends the trace, if there is one, and keeps it in the recording.
///
/// # Errors
/// If nothing was traced, or it can't be written.
pub fn keep(tracing: Tracing, out: &Path) -> Result<()> {
    let Some((watch, drives)) = tracing.0 else { return Ok(()) };
    let traced = watch.stop()?;
    trace::keep(&traced, &drives, &HeldFolder::open_own(out)?, [TRACE, TRACE_FACTS])?;
    eprint_line(&format!("stacktune: {}; `stacktune contract {}`", traced.in_words(), out.shown()));
    for drive in &drives {
        let kept = trace::scored(&traced.trace, drive).map_or_else(|why| why, |scores| rules_kept(&scores));
        eprint_line(&format!("stacktune: {}: {kept}", drive.name));
    }
    Ok(())
}

/// The trace of a recording, and the drives that it is of; none if the path is no folder.
///
/// # Errors
/// Of the kind `Input` if the folder has no trace.
pub fn of_folder(path: &Path) -> Result<Option<(PathBuf, Vec<Watched>)>> {
    if !path.is_dir() {
        return Ok(None);
    }
    let trace = path.join(TRACE);
    if !trace.exists() {
        let what = format!("{} has no trace", path.shown());
        return Err(Error::input(what).hint("`stacktune record --trace` makes one"));
    }
    Ok(Some((trace, trace::drives_by(&path.join(TRACE_FACTS)))))
}
