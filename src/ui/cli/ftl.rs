//! The arguments of `stacktune ftl`, and their help.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum, ValueHint};

use super::shared::{EXIT_STATUS, JsonArgs, parse_size_above_0};
use crate::trace::TracedDrive;
use crate::units::parse_size;

pub(super) const FTL_HELP: &str = "\
Examples:
  stacktune ftl --from sda.blktrace.*
  stacktune ftl --from trace.txt --capacity 1GiB --full --repeat 10
  stacktune ftl --from trace.txt --ftl page --over-provision 28%

";

/// The arguments of `stacktune ftl`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = format!("{FTL_HELP}{EXIT_STATUS}"))]
pub struct FtlArgs {
    /// The trace: a file, or blktrace's files of all processors
    #[arg(long, value_name = "TRACE", num_args = 1.., required = true, value_hint = ValueHint::FilePath)]
    pub from: Vec<PathBuf>,
    /// The drive of the trace, if it has several
    #[arg(long, value_name = "MAJOR:MINOR")]
    pub drive: Option<TracedDrive>,
    /// Where on that drive the simulated one's space begins, such as a partition
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0B")]
    pub start: u64,
    /// What the simulated drive offers [default: to the furthest I/O]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_above_0)]
    pub capacity: Option<u64>,
    /// How it finds pages
    #[arg(long, value_name = "MAPPING", default_value = "dftl")]
    pub ftl: Ftl,
    /// Its spare flash, as a share of the capacity
    #[arg(long, value_name = "PERCENT", default_value = "7%")]
    pub over_provision: Percent,
    /// The mapping's cache: a share of the map, or a size, with 4 B a page (dftl only)
    #[arg(long, value_name = "PERCENT|SIZE", default_value = "10%")]
    pub cache: CacheSize,
    /// A page of its flash
    #[arg(long, value_name = "SIZE", value_parser = parse_size_above_0, default_value = "2KiB")]
    pub page: u64,
    /// A block of its flash, which is erased whole
    #[arg(long, value_name = "SIZE", value_parser = parse_size_above_0, default_value = "128KiB")]
    pub block: u64,
    /// Its dies, over which pages are striped
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256), default_value = "16")]
    pub dies: u32,
    /// Parts of the space whose pages are kept in blocks of their own (page and dftl only)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16), default_value = "1")]
    pub streams: u32,
    /// Move unchanging data once blocks differ by more erases than that [default: never]
    #[arg(long, value_name = "ERASES", value_parser = clap::value_parser!(u32).range(1..))]
    pub level_wear: Option<u32>,
    /// Begin with every page written once, in order; that is not counted
    #[arg(long)]
    pub full: bool,
    /// How many times to run the trace, one after the other
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u64).range(1..), default_value = "1")]
    pub repeat: u64,
    /// Also give the drive a clock: latencies, of the last run of the trace
    ///
    /// I/Os come when the trace says; where it has no times, one at a time. A die takes 20 µs for a read, 200 µs for a
    /// program and 1.5 ms for an erase.
    #[arg(long)]
    pub timed: bool,
    /// Print comma-separated values instead of a table
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// How a drive finds pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ftl {
    /// By pages, the whole map in memory
    Page,
    /// By pages, the map on flash and a part of it in a cache
    Dftl,
    /// By blocks, with a log by pages in front
    Hybrid,
}

/// A share, as in `7%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let share = number.filter(|number| (0.0..=100_000.0).contains(number));
        share.map(|number| Self(number / 100.0)).ok_or_else(|| "a share such as 7% is expected".into())
    }
}

/// How much of the map a cache holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheSize {
    /// A share of it.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

impl FromStr for CacheSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.ends_with('%') {
            return Percent::from_str(text).map(|share| Self::Share(share.0));
        }
        parse_size(text).map(Self::Bytes).map_err(|why| format!("{why}, or a share such as 10%"))
    }
}
