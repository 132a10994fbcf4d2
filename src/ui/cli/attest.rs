//! The arguments of `stacktune attest`, and their help.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::shared::{EXIT_STATUS, JsonArgs};

pub(super) const ATTEST_HELP: &str = "\
Examples:
  stacktune attest
  stacktune attest --files /srv/try --out attest.json
  stacktune attest --devices /dev/nvme1n1 --destroy /dev/nvme1n1

";

/// The arguments of `stacktune attest`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = format!("{ATTEST_HELP}{EXIT_STATUS}"))]
pub struct AttestArgs {
    /// The folder to make files in, 700 MiB at most, which are removed again [default: your cache folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub files: Option<PathBuf>,
    /// The devices to check on instead, separated by commas; they are filled, as by `record`
    #[arg(long, value_name = "DEVICES", value_delimiter = ',', conflicts_with = "files", value_hint = ValueHint::AnyPath)]
    pub devices: Vec<String>,
    /// Allow `attest` to destroy what this device holds (may be repeated)
    #[arg(long, value_name = "DEVICE", requires = "devices", value_hint = ValueHint::AnyPath)]
    pub destroy: Vec<PathBuf>,
    /// The file to write; it must not exist [default: attest.json]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Measure for 15 seconds only: figures are noisier
    #[arg(long)]
    pub quick: bool,
    /// Print what would be opened, written and destroyed, then exit
    #[arg(long)]
    pub dry_run: bool,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
}
