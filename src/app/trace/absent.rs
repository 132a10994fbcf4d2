//! `stacktune contract`, `stacktune trace` and `record --trace` in a build that has none of them.

use std::path::Path;

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
pub struct Tracing;

/// Nothing is traced.
pub fn begin(_: &Session, _: bool) -> Result<Tracing> {
    Ok(Tracing)
}

/// Nothing was traced.
pub fn keep(_: Tracing, _: &Path) -> Result<()> {
    Ok(())
}

fn absent() -> Error {
    let what = "this build reads and makes no block traces";
    Error::input(what).hint("`make build` builds stacktune with them")
}
