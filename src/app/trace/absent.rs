//! `record --trace` in a build that makes no traces.

use std::path::Path;

use crate::error::{Error, Result};
use crate::runs::session::Session;

/// Says how to get traces, if one is asked for.
///
/// # Errors
/// Of the kind `Input`, if so.
pub fn look(asked: bool) -> Result<()> {
    if asked { Err(Error::not_built("makes no block traces")) } else { Ok(()) }
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
