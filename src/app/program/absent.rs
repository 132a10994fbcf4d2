//! `stacktune run` in a build that runs no programs.

use crate::app::watcher::Around;
use crate::error::{Error, Result};
use crate::settings::Program;
use crate::ui::cli::ProgramArgs;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn run(_: &ProgramArgs) -> Result<()> {
    Err(lacking())
}

/// The same.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn around(_: Option<&str>, _: &Program, _: bool) -> Result<Box<dyn Around>> {
    Err(lacking())
}

fn lacking() -> Error {
    Error::not_built("runs no programs as the load")
}
