//! The arguments of `stacktune show`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::shared::{EXIT_STATUS, JsonArgs};

/// The arguments of `stacktune show`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct ShowArgs {
    /// The recording's folder, or the file of a kept ledger
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present_any = ["schema", "list"])]
    pub dir: Option<PathBuf>,
    /// Draw MB/s, write amplification and space over time instead
    ///
    /// Write amplification over a short time is noisy; the totals have the cumulative one.
    #[arg(long)]
    pub over_time: bool,
    /// Open it on the screen, to be read window by window and played
    ///
    /// The same screen as a run's, with the settings that were in force in each window. Nothing runs, and no key
    /// touches a drive or a file.
    #[arg(long, conflicts_with_all = ["over_time", "json"])]
    pub screen: bool,
    /// A second recording for the screen: `x` flips between both at the same position
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "screen")]
    pub with: Option<PathBuf>,
    /// The colours of the screen: dark, light, 16, mono, or one of btop's theme files by its name [default: those that
    /// suit the terminal]
    #[arg(long, value_name = "NAME", requires = "screen")]
    pub theme: Option<String>,
    /// List the recordings in DIR instead [default: those made on the screen, and those in the current folder]
    #[arg(long, conflicts_with_all = ["over_time", "screen"])]
    pub list: bool,
    /// Print the JSON Schema of summary.json instead
    #[arg(long, exclusive = true)]
    pub schema: bool,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
}
