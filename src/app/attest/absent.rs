//! `stacktune attest` in a build that has no other programs' figures to compare with.

use crate::error::{Error, Result};
use crate::ui::cli::AttestArgs;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn run(_: &AttestArgs) -> Result<()> {
    Err(Error::not_built("checks no figures against other programs"))
}
