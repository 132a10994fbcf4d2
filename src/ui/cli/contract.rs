//! The arguments of `stacktune contract` and `stacktune trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::program::{ProgramArgs, ProgramDuelArgs};
use super::shared::{EXIT_STATUS, JsonArgs, RunArgs, SetArgs, parse_positive, parse_size_above_0};
use crate::trace::TracedDrive;
use crate::units::{format_size, parse_size};

pub(super) const CONTRACT_HELP: &str = "\
Examples:
  stacktune contract sda.blktrace.*
  stacktune contract trace.txt --start 8MiB --logical 1GiB --csv curves

";

/// A command that is traced on a profile's target runs for this long at most.
const ON_TARGET: Duration = Duration::from_hours(1);
/// The smallest and the largest page accepted.
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
    /// Where on the drive the scored space begins, such as a partition [default: at its beginning]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub start: Option<u64>,
    /// How large that space is [default: to the furthest I/O; of a recording: what its target used]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub logical: Option<u64>,
    /// The pages of the drive's flash
    #[arg(long, value_name = "SIZE", value_parser = parse_page, default_value = "2KiB")]
    pub page: u64,
    /// The bytes in the application's files at the end, to relate unaligned bytes to [default: unknown]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub file_bytes: Option<u64>,
    /// Only what was issued in that phase of a recorded run, as if nothing came before: `warmup`, `run` or
    /// `write-back`
    #[arg(long, value_name = "NAME")]
    pub phase: Option<String>,
    /// A rule to score; the others are left out (may be repeated) [default: all five]
    #[arg(long, value_name = "RULE")]
    pub rule: Vec<RuleName>,
    /// Shares of the space that the mapping cache covers, in percent, separated by commas; the verdict uses 10
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', default_value = "1,5,10,50,100")]
    pub coverage: Vec<u64>,
    /// Sizes of the flash blocks to check alignment with, separated by commas; the verdict uses 128KiB
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = parse_size, default_value = "128KiB,1MiB")]
    pub blocks: Vec<u64>,
    /// Size of logical segments with blocks of their own, for grouping; the verdict uses one segment
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
    /// Accesses near each other
    Locality,
    /// Flash blocks written from beginning to end
    Alignment,
    /// Data that dies together is stored together
    Grouping,
    /// Data of similar lifetimes
    Lifetime,
}

pub(super) const TRACE_HELP: &str = "\
Examples:
  stacktune trace --device /dev/sda --for 10s --out sda.blktrace.0
  sudo stacktune trace --device /dev/sda --device /dev/sdb --out x.blktrace.0 \\
      -- sqlite3 my.db 'vacuum'
  sudo stacktune trace --on ./raid.toml --out run1 --destroy /dev/sdb \\
      --prepare 'seq 30000000 > a' -- sort -T . a -o b
  stacktune trace --from trace.txt --as fio --out trace.iolog
  stacktune trace --from run1

";

/// The arguments of `stacktune trace`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = format!("{TRACE_HELP}{EXIT_STATUS}"))]
pub struct TraceArgs {
    /// A drive to trace, whole; it is only watched (may be repeated)
    #[arg(
        long,
        value_name = "DEVICE",
        value_hint = ValueHint::AnyPath,
        required_unless_present_any = ["from", "on"]
    )]
    pub device: Vec<PathBuf>,
    /// A profile, by name or path, whose target COMMAND runs on: it is built, and the drives below are traced
    ///
    /// As `stacktune run PROFILE --trace`, with its rules: --out is the folder of a recording, and in the words {dir} stands
    /// for the folder that COMMAND starts in. What it leaves in the page cache is written back and traced.
    #[arg(
        long,
        value_name = "PROFILE",
        value_hint = ValueHint::AnyPath,
        conflicts_with = "device",
        requires = "words"
    )]
    pub on: Option<String>,
    /// How the profile is run.
    #[command(flatten)]
    pub built: BuiltArgs,
    /// How long to trace at most [default: until COMMAND ends, or Ctrl-C; with --on an hour at most]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive, conflicts_with = "from")]
    pub duration: Option<Duration>,
    /// A trace to convert instead: a file, blktrace's files of all processors, or a recording's folder
    ///
    /// Without --out, what it holds is printed: I/Os, bytes and times by operation, process and phase, and what is missing.
    #[arg(
        long,
        value_name = "TRACE",
        num_args = 1..,
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["device", "on"]
    )]
    pub from: Vec<PathBuf>,
    /// The user to run COMMAND as [default: who called sudo]
    ///
    /// Root must be named: it is never run as root otherwise.
    #[arg(long, value_name = "NAME", requires = "words")]
    pub user: Option<String>,
    /// The form of the file to write [default: blktrace]
    #[arg(long = "as", value_name = "FORM", requires = "out", conflicts_with = "on")]
    pub form: Option<TraceForm>,
    /// The file to write, or with --on the folder; it must not exist
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, required_unless_present = "from")]
    pub out: Option<PathBuf>,
    /// Print what a trace holds as JSON
    #[arg(long, requires = "from", conflicts_with = "out")]
    pub json: bool,
    /// A command to trace the drives for, while it runs, and its arguments; no shell reads them
    ///
    /// It runs in this folder, with --on in one of its own on the target, without a terminal. All that it starts is ended
    /// with it.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "from")]
    pub words: Vec<String>,
}

/// How the profile of `trace --on` is run.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct BuiltArgs {
    /// A line for `sh` that makes the command's data on the target first; it is not traced
    #[arg(long, value_name = "LINE", conflicts_with_all = ["device", "from"])]
    pub prepare: Option<String>,
    /// The most memory that COMMAND may use, page cache included
    #[arg(long, value_name = "SIZE", value_parser = parse_size_above_0, conflicts_with_all = ["device", "from"])]
    pub mem: Option<u64>,
    /// Allow it to destroy what this device of the profile holds (may be repeated)
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath, conflicts_with_all = ["device", "from"])]
    pub destroy: Vec<PathBuf>,
    /// Allow the profile's layers to run their commands as root
    #[arg(long, conflicts_with_all = ["device", "from"])]
    pub allow_commands: bool,
    /// Turn a knob of the profile (may be repeated)
    #[arg(long, value_name = "KNOB=VALUE", conflicts_with_all = ["device", "from"])]
    pub set: Vec<String>,
    /// Print what would be built, destroyed and run, then exit
    #[arg(long, conflicts_with_all = ["device", "from"])]
    pub dry_run: bool,
}

impl TraceArgs {
    /// The run to trace, with --on.
    pub fn to_run(&self) -> Option<ProgramArgs> {
        let BuiltArgs { prepare, mem, destroy, allow_commands, set, dry_run } = self.built.clone();
        let sets = SetArgs { set };
        Some(ProgramArgs {
            profile: Some(self.on.clone()?),
            out: self.out.clone(),
            duration: Some(self.duration.unwrap_or(ON_TARGET)),
            until_steady: false,
            at_most: None,
            is_open_ended: self.duration.is_none(),
            warmup: None,
            user: self.user.clone(),
            mem,
            stop_if: None,
            turns: Vec::new(),
            duel: ProgramDuelArgs::default(),
            trace: true,
            prepare,
            keep: false,
            dry_run,
            list: false,
            theme: None,
            run: RunArgs { read_only: false, destroy, allow_commands, sets },
            output: JsonArgs::default(),
            words: self.words.clone(),
        })
    }
}

/// The forms in which a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceForm {
    /// blktrace's records, for blkparse, btt, iowatcher and fio: name the file NAME.blktrace.0
    Blktrace,
    /// blkparse's text, as it prints it by default: issues, completions and messages
    Blkparse,
    /// fio's log of version 3, which has the times of issue alone
    Fio,
    /// MQSim's text: reads and writes, and when they come
    Mqsim,
    /// WiscSee's events of a single drive: all but flushes
    Wiscsee,
    /// A table of comma-separated values, one I/O per line
    Csv,
}

fn parse_page(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    let [least, most] = PAGE_BYTES;
    if bytes.is_power_of_two() && (least..=most).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("a power of two from {} to {} is expected", format_size(least), format_size(most)))
}
