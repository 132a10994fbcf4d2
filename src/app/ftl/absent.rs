//! `stacktune ftl` in a build that reads no traces.

use crate::app::trace;
use crate::error::Result;
use crate::ui::cli::FtlArgs;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn run(args: &FtlArgs) -> Result<()> {
    trace::contract(args)
}
