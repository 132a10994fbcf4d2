//! The arguments of `stacktune mimic`, and their help.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::shared::{EXIT_STATUS, JsonArgs, parse_size_above_0};
use crate::trace::TracedDrive;
use crate::units::parse_size;

pub(super) const MIMIC_HELP: &str = "\
Examples:
  stacktune mimic sda.blktrace.* --out mine.toml
  stacktune record ./mine.toml --trace --out run1 --for 1m
  stacktune mimic sda.blktrace.* --replayed run1

";

/// The arguments of `stacktune mimic`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = format!("{MIMIC_HELP}{EXIT_STATUS}"))]
pub struct MimicArgs {
    /// The trace: a file, blktrace's files of all processors, or a recording that has one
    #[arg(value_name = "TRACE", required = true, value_hint = ValueHint::FilePath)]
    pub traces: Vec<PathBuf>,
    /// The file to write the profile to; it must not exist [default: only the comparison is shown]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// The drive of the trace, if it has several
    #[arg(long, value_name = "MAJOR:MINOR")]
    pub drive: Option<TracedDrive>,
    /// Where on the drive the space to take begins, such as a partition [default: at its beginning]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub start: Option<u64>,
    /// How large that space is [default: to the furthest I/O; of a recording: what its target used]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_above_0)]
    pub logical: Option<u64>,
    /// Only what was issued in that phase of a recorded run: `warmup`, `run` or `write-back`
    #[arg(long, value_name = "NAME")]
    pub phase: Option<String>,
    /// A traced recording of the profile, to compare with the trace, too
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub replayed: Option<PathBuf>,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
}
