//! `stacktune run` in a build that runs no programs.

use crate::error::{Error, Result};
use crate::ui::cli::ProgramArgs;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn run(_: &ProgramArgs) -> Result<()> {
    let what = "this build runs no programs as the load";
    Err(Error::input(what).hint("`make build` builds stacktune with that"))
}
