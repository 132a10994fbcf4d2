//! The arguments of `stacktune contract` and `stacktune trace` in a build that has neither: anything is taken, so that the
//! answer is how to get them.

use clap::Args;

use super::program::ProgramArgs;

pub(super) const CONTRACT_HELP: &str = "";
pub(super) const TRACE_HELP: &str = "";

/// The arguments of `stacktune contract`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ContractArgs {
    /// Not in this build
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

/// Those of `stacktune trace`.
pub type TraceArgs = ContractArgs;

impl ContractArgs {
    /// No run is traced.
    #[allow(clippy::unused_self)]
    pub fn to_run(&self) -> Option<ProgramArgs> {
        None
    }
}
