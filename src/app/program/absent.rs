//! `stacktune run` in a build that runs no programs.

use crate::error::{Error, Result};
use crate::ui::cli::ProgramArgs;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn run(_: &ProgramArgs) -> Result<()> {
    Err(Error::not_built("runs no programs as the load"))
}
