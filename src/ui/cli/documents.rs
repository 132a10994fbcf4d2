//! The arguments of `stacktune picture` and `stacktune completions`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::shared::{RunArgs, parse_positive};
use crate::runs::duel::Figure;
use crate::ui::theme_name::ThemeName;

/// The arguments of `stacktune picture`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct PictureArgs {
    /// The profile to run [default: demo]
    #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
    pub profile: Option<String>,
    /// The file to write
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// How long to run before the screen is drawn, or before the duel begins
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = parse_positive)]
    pub duration: Duration,
    /// Draw the whole run as a moving picture, and write it as a recording of a terminal beside it (FILE.cast, asciicast v2)
    #[arg(long)]
    pub animate: bool,
    /// Write that recording into another file, or without a moving picture
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cast: Option<PathBuf>,
    /// Columns of the screen
    #[arg(long, default_value_t = 160, value_parser = clap::value_parser!(u16).range(20..=400))]
    pub columns: u16,
    /// Lines of the screen
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(10..=200))]
    pub lines: u16,
    /// The colours
    #[arg(long, value_enum, default_value = "dark")]
    pub theme: ThemeName,
    /// Turn a knob while it runs (may be repeated; the turns are spread evenly)
    #[arg(long = "turn", value_name = "KNOB=VALUE")]
    pub turns: Vec<String>,
    /// Then fight a duel of two values of a knob, as `D` does on the screen
    #[arg(long, value_name = "KNOB=A,B")]
    pub duel: Option<String>,
    /// The figure that decides it
    #[arg(long, value_name = "FIGURE", requires = "duel", default_value = "total")]
    pub duel_figure: Figure,
    /// How to run it.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The shells with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}
