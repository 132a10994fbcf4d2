//! `stacktune reproduce` in a build that has no papers' results.

use std::path::Path;

use crate::error::{Error, Result};
use crate::ui::cli::ReproduceArgs;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn run(_: &ReproduceArgs) -> Result<()> {
    Err(absent())
}

/// None is known as one: what was recorded is shown as the sweep that it is.
pub fn is_reproduction(_: &Path) -> bool {
    false
}

/// As [`run`].
pub fn show(_: &Path, _: bool) -> Result<()> {
    Err(absent())
}

fn absent() -> Error {
    Error::not_built("has no papers' results to compare with")
}
