//! What several commands have in common: the format of the output, the exit status, and times.

use std::time::Duration;

use clap::Args;

use crate::units::parse_duration;

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

/// A time above 0.
pub(super) fn parse_positive(text: &str) -> std::result::Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a time above 0 is expected".into()),
        duration => Ok(duration),
    }
}
