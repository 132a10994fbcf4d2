//! What several commands share: how a profile is run, the format of the output, the exit status, and times.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::units::{parse_duration, parse_size};

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

/// The options of everything that runs a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct RunArgs {
    /// Run scans and point reads only, and open nothing for writing
    ///
    /// Works on unfilled and on mounted devices; the scan is limited to 100 MB/s on a mounted one
    /// unless a rate is given.
    #[arg(long)]
    pub read_only: bool,
    /// Allow `record` to destroy what this device holds (may be repeated)
    ///
    /// Without it a device that carries anything but stacktune's own data is refused. It must be
    /// one of the profile's devices and not in use. The screen does not take this option: it asks
    /// for each device's serial number at every plan that destroys data.
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath, conflicts_with = "read_only")]
    pub destroy: Vec<PathBuf>,
    /// Allow the profile's layers to run their commands as root
    ///
    /// These are the commands of its [[stack.layer]] tables, which `check` and `record --dry-run` show in full. Only
    /// those of the profile on this command line are allowed, not those of one opened later.
    #[arg(long)]
    pub allow_commands: bool,
    /// Knobs to turn before it starts.
    #[command(flatten)]
    pub sets: SetArgs,
}

/// When a duel ends, and in which order its values come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct DuelRules {
    /// The smallest difference that matters, in percent: a duel ends once the difference is known to be less
    #[arg(long, value_name = "PERCENT", requires = "duel", value_parser = clap::value_parser!(u32).range(1..=100), default_value = "5")]
    pub duel_margin: u32,
    /// The seed that decides the order of each pair, to repeat a duel [default: a random one]
    #[arg(long, value_name = "NUMBER", requires = "duel")]
    pub duel_seed: Option<u64>,
}

/// Knobs given on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SetArgs {
    /// Turn a knob of the profile (may be repeated)
    ///
    /// `stacktune knobs` lists the knobs and what they accept. Devices in a list are separated by
    /// commas.
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    pub set: Vec<String>,
}

/// A size of at least a byte.
pub(super) fn parse_size_above_0(text: &str) -> std::result::Result<u64, String> {
    match parse_size(text)? {
        0 => Err("a size above 0 is expected".into()),
        bytes => Ok(bytes),
    }
}

/// A time above 0.
pub(super) fn parse_positive(text: &str) -> std::result::Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a time above 0 is expected".into()),
        duration => Ok(duration),
    }
}
