//! `stacktune man` and `stacktune completions` in a build that has neither.

use crate::error::{Error, Result};
use crate::ui::cli::Shell;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn man() -> Result<()> {
    Err(Error::not_built("has no man page and no completions"))
}

/// As [`man`].
pub fn completions(_: Shell) -> Result<()> {
    man()
}
