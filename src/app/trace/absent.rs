//! `stacktune contract` and `stacktune trace` in a build that has neither.

use crate::error::{Error, Result};
use crate::ui::cli::{ContractArgs, TraceArgs};

/// Says how to get it.
///
/// # Errors
/// Always, of the kind `Input`.
pub fn contract(_: &ContractArgs) -> Result<()> {
    let what = "this build reads and makes no block traces";
    Err(Error::input(what).hint("`make build` builds stacktune with them"))
}

/// As [`contract`].
pub fn run(args: &TraceArgs) -> Result<()> {
    contract(args)
}
