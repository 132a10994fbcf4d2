//! The arguments of `stacktune run` in a build that runs no programs: anything is taken, so that the answer is how to get
//! one that does.

use clap::Args;

pub(super) const PROGRAM_HELP: &str = "";

/// The arguments of `stacktune run`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ProgramArgs {
    /// Not in this build
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}
