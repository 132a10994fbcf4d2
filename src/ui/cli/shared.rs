//! What several commands have in common: the format of the output, and the exit status.

use clap::Args;

pub(super) const EXIT_STATUS: &str = "\
Exit status:
  0    success
  1    something failed; a recording with I/O errors counts as failed
  2    the input is wrong, or asks for what this host can't do
  3    refused, because data that is not stacktune's could be destroyed
  130  interrupted";

/// The output format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct JsonArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
