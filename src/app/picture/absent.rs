//! `stacktune picture` in a build that draws none.

use crate::error::{Error, Result};
use crate::ui::cli::PictureArgs;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn run(_: &PictureArgs) -> Result<()> {
    Err(Error::not_built("draws no pictures of the screen"))
}
