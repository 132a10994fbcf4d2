//! `stacktune mimic` in a build that reads no traces.

use crate::app::trace;
use crate::error::Result;
use crate::ui::cli::MimicArgs;

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn run(args: &MimicArgs) -> Result<()> {
    trace::contract(args)
}
