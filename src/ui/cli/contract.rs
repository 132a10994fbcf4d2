//! The arguments of `stacktune contract` and `stacktune trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::shared::{EXIT_STATUS, JsonArgs, parse_positive};
use crate::trace::TracedDrive;
use crate::units::{format_size, parse_size};

pub(super) const CONTRACT_HELP: &str = "\
Examples:
  stacktune contract sda.blktrace.*
  stacktune contract trace.txt --start 8MiB --logical 1GiB --csv curves

";

/// The smallest and the largest page that is taken.
const PAGE_BYTES: [u64; 2] = [2 << 10, 64 << 10];

/// The arguments of `stacktune contract`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = format!("{CONTRACT_HELP}{EXIT_STATUS}"))]
pub struct ContractArgs {
    /// The trace: a file, blktrace's files of all processors, or a recording that has one
    #[arg(value_name = "TRACE", required = true, value_hint = ValueHint::FilePath)]
    pub traces: Vec<PathBuf>,
    /// The drive to score, if the trace has several
    #[arg(long, value_name = "MAJOR:MINOR")]
    pub drive: Option<TracedDrive>,
    /// Where on the drive the space begins that is scored, such as a partition [default: at its beginning]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub start: Option<u64>,
    /// How large that space is [default: to the furthest I/O; of a recording: what its target used]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub logical: Option<u64>,
    /// The pages of the drive's flash
    #[arg(long, value_name = "SIZE", value_parser = parse_page, default_value = "2KiB")]
    pub page: u64,
    /// What the application's files held at the end, to hold unaligned bytes against [default: unknown]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub file_bytes: Option<u64>,
    /// Only what was issued in that phase of a recorded run, as if nothing had been before: `warmup` or `run`
    #[arg(long, value_name = "NAME")]
    pub phase: Option<String>,
    /// A rule to score, the others are left out (may be repeated) [default: all five]
    #[arg(long, value_name = "RULE")]
    pub rule: Vec<RuleName>,
    /// Shares of the space that the mapping cache covers, in percent, separated by commas; 10 is what is judged
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', default_value = "1,5,10,50,100")]
    pub coverage: Vec<u64>,
    /// Sizes of the flash blocks that alignment is held against, separated by commas; 128KiB is what is judged
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = parse_size, default_value = "128KiB,1MiB")]
    pub blocks: Vec<u64>,
    /// Logical segments with blocks of their own, for grouping: beside one segment, which is what is judged
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "128MiB")]
    pub segment: u64,
    /// Channels over which pages are striped, for grouping
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub channels: usize,
    /// Also write the curves to this folder, as files of comma-separated values
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub csv: Option<PathBuf>,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// The rules by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuleName {
    /// Large requests, or many at once
    RequestScale,
    /// Access that stays near
    Locality,
    /// Flash blocks written from their beginning on to their end
    Alignment,
    /// What dies together lies together
    Grouping,
    /// Data of like lifetimes
    Lifetime,
}

pub(super) const TRACE_HELP: &str = "\
Examples:
  stacktune trace --device /dev/sda --for 10s --out sda.blktrace.0
  sudo stacktune trace --device /dev/sda --device /dev/sdb --out x.blktrace.0 \\
      -- sqlite3 my.db 'vacuum'
  stacktune trace --from trace.txt --as fio --out trace.iolog

";

/// The arguments of `stacktune trace`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = format!("{TRACE_HELP}{EXIT_STATUS}"))]
pub struct TraceArgs {
    /// A drive to trace, whole; it is only watched (may be repeated)
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath, required_unless_present = "from")]
    pub device: Vec<PathBuf>,
    /// How long to trace at most [default: until COMMAND ends, or Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive, requires = "device")]
    pub duration: Option<Duration>,
    /// A trace to convert instead: a file, or blktrace's files of all processors
    #[arg(long, value_name = "TRACE", num_args = 1.., value_hint = ValueHint::FilePath, conflicts_with = "device")]
    pub from: Vec<PathBuf>,
    /// The user to run COMMAND as [default: who called sudo]
    ///
    /// Root must be named: it is never run as root otherwise.
    #[arg(long, value_name = "NAME", requires = "words")]
    pub user: Option<String>,
    /// The form of the file to write
    #[arg(long = "as", value_name = "FORM", default_value = "blktrace")]
    pub form: TraceForm,
    /// The file to write; it must not exist
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// A command to trace the drives for, while it runs, and its arguments; no shell reads them
    ///
    /// It runs in this folder, without a terminal. All that it starts is ended with it.
    #[arg(last = true, value_name = "COMMAND", requires = "device")]
    pub words: Vec<String>,
}

/// The forms in which a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceForm {
    /// blktrace's records, for blkparse, btt, iowatcher and fio: name the file NAME.blktrace.0
    Blktrace,
    /// fio's log of version 3, which has the times of issue alone
    Fio,
}

fn parse_page(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    let [least, most] = PAGE_BYTES;
    if bytes.is_power_of_two() && (least..=most).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("a power of two from {} to {} is expected", format_size(least), format_size(most)))
}
