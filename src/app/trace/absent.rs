//! `stacktune contract`, `stacktune trace` and `record --trace` in a build that has none of them.

use std::path::Path;

use crate::app::watcher::Around;
use crate::error::{Error, Result};
use crate::runs::session::Session;
use crate::ui::cli::{ContractArgs, TraceArgs};

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn contract(_: &ContractArgs) -> Result<()> {
    Err(absent())
}

/// As [`contract`].
pub fn run(_: &TraceArgs) -> Result<()> {
    Err(absent())
}

/// As [`contract`], if it is asked for.
pub fn look(asked: bool) -> Result<()> {
    if asked { Err(absent()) } else { Ok(()) }
}

/// No trace.
pub struct TraceUnderWay;

/// Nothing is traced.
pub fn begin(_: &mut Session, _: bool) -> Result<TraceUnderWay> {
    Ok(TraceUnderWay)
}

/// Nothing was traced.
pub fn keep(_: TraceUnderWay, _: &Session, _: &Path) -> Result<()> {
    Ok(())
}

/// Nothing was traced.
pub fn keep_all(_: TraceUnderWay, _: &mut Session, _: &Path) -> Result<()> {
    Ok(())
}

/// No run is traced.
pub fn each_run(_: bool) -> Option<Box<dyn Around>> {
    None
}

fn absent() -> Error {
    Error::not_built("reads and makes no block traces")
}
