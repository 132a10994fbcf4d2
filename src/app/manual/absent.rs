//! `stacktune man` and `stacktune completions` in a build that has neither.

use crate::error::{Error, Result};
use crate::ui::cli::Shell;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn man() -> Result<()> {
    let what = "this build has no man page and no completions";
    Err(Error::input(what)
        .hint("`make build` builds stacktune with them; `stacktune help` has the same texts"))
}

/// As [`man`].
pub fn completions(_: Shell) -> Result<()> {
    man()
}
