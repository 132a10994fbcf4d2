//! The arguments of `stacktune reproduce`, and their help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::shared::{EXIT_STATUS, JsonArgs, SetArgs, parse_positive};
use crate::units::parse_duration;

pub(super) const REPRODUCE_HELP: &str = "\
DIR receives a recording of each run; the same command resumes with the runs that are missing. `stacktune show DIR` \
prints the report again.

Examples:
  stacktune reproduce --list
  stacktune reproduce table2 --files ~/.cache/stacktune/paper
  stacktune reproduce table4 --devices /dev/nvme0n1,/dev/nvme1n1 \\
      --destroy /dev/nvme0n1 --destroy /dev/nvme1n1
  stacktune reproduce table2 --files DIR --beside other-host/reproduce-table2

";

/// The arguments of `stacktune reproduce`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = format!("{REPRODUCE_HELP}{EXIT_STATUS}"))]
pub struct ReproduceArgs {
    /// The table or figure (table2, table4, …); without one, list them
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// List what can be reproduced
    #[arg(long)]
    pub list: bool,
    /// The drives to run on, separated by commas; each must be named with --destroy too
    #[arg(long, value_name = "DEVICES", value_delimiter = ',', conflicts_with = "files", value_hint = ValueHint::AnyPath)]
    pub devices: Vec<String>,
    /// The folder to make files in, where there are no drives to spare
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub files: Option<PathBuf>,
    /// How long to measure each row [default: 30s; over time, minutes to hours]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive)]
    pub duration: Option<Duration>,
    /// How long to warm each row up first [default: 5s; over time, none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup: Option<Duration>,
    /// How often to run each row; a verdict needs 3 [default: 3; over time, 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Rest before each run [default: 30s on drives, none on files]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub idle: Option<Duration>,
    /// Before each run, wait up to 5 minutes until no drive is warmer than this [default: 50 on drives]
    #[arg(long, value_name = "DEGREES", value_parser = parse_degrees)]
    pub cool_to: Option<f64>,
    /// The folder to write to, or to resume [default: reproduce-NAME]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Allow `reproduce` to destroy what this device holds (may be repeated)
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath)]
    pub destroy: Vec<PathBuf>,
    /// Add another recording or reproduction to the report (may be repeated)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub beside: Vec<PathBuf>,
    /// A device that is a hardware RAID of level 0, 5 or 10, for Table 5 (may be repeated)
    #[arg(long, value_name = "LEVEL=DEVICE")]
    pub hardware_raid: Vec<String>,
    /// The user to run the programs of table7 and contract-sqlite, -leveldb and -varmail as [default: who called sudo]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Print what would be run, built, written and destroyed, then exit
    #[arg(long)]
    pub dry_run: bool,
    /// Knobs to turn in every row.
    #[command(flatten)]
    pub sets: SetArgs,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
}

fn parse_degrees(text: &str) -> std::result::Result<f64, String> {
    let degrees = text.parse::<f64>().ok().filter(|degrees| (0.0..=120.0).contains(degrees));
    degrees.ok_or_else(|| "give degrees Celsius from 0 to 120".into())
}
