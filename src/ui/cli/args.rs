//! The arguments, and their help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};

#[cfg(feature = "proofs")]
use super::attest::AttestArgs;
#[cfg(feature = "trace")]
use super::contract::{ContractArgs, TraceArgs};
#[cfg(feature = "documents")]
use super::documents::{PictureArgs, Shell};
#[cfg(feature = "trace")]
use super::ftl::FtlArgs;
use super::lacking;
#[cfg(feature = "trace")]
use super::mimic::MimicArgs;
#[cfg(feature = "programs")]
use super::program::ProgramArgs;
#[cfg(feature = "proofs")]
use super::reproduce::ReproduceArgs;
use super::shared::{DuelRules, EXIT_STATUS, JsonArgs, RunArgs, SetArgs, parse_positive, parse_size_above_0};
use super::show::ShowArgs;
use crate::runs::duel::Figure;
use crate::ui::help;
use crate::units::{parse_duration, parse_rate};

pub(super) const MAIN_HELP: &str = "\
A profile is a name from `stacktune profiles`, or the path of a file if it has a `/` or ends in `.toml`. A profile named \
like a command is reached by its path.

Examples:
  stacktune                            the demo, on files in your cache folder
  stacktune table2-4-direct            a built-in profile
  stacktune ./mine.toml --set wal.sync=dsync
  stacktune --read-only ./mine.toml    only reads; nothing is opened for writing
  stacktune record demo --out run1 --for 1m
  stacktune compare run1 run2

";

pub(super) const RECORD_HELP: &str = "\
DIR receives profile.toml (as run), host.json, windows.jsonl, latency.hlog, ledger.jsonl and, at the end, summary.json. \
Ctrl-C ends the recording early, with a summary of what was measured. A profile with steps runs each of them; the same \
command resumes an unfinished sweep.

Examples:
  stacktune record demo --out run1
  stacktune record ./mine.toml --out run2 --for 5m --warmup 30s
  stacktune record ./mine.toml --out run3 \\
      --set io.interface=libaio --set scan.depth=64
  stacktune record demo --out run4 --duel io.interface=libaio,io_uring
  stacktune record table2-5-block --out run5 \\
      --set target.devices=/dev/disk/by-id/nvme-X \\
      --destroy /dev/disk/by-id/nvme-X

";

/// A workbench for the storage stack under a database
///
/// Runs table scans, point reads, a write-ahead log and a background writer against files or
/// devices, and lets you turn every knob while they run. Without a command it opens the screen.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(
    name = "stacktune",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_help_heading = "Commands",
    disable_help_subcommand = true,
    override_usage = "stacktune [OPTIONS] [PROFILE]\n       stacktune <COMMAND>",
    after_help = format!("{MAIN_HELP}{}{}\n{EXIT_STATUS}", help::list(), lacking::listed()),
    max_term_width = 100
)]
pub struct Cli {
    /// The command; without one, the screen opens.
    #[command(subcommand)]
    pub command: Option<Cmd>,
    /// The profile to open: a name, or a path [default: demo]
    #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
    pub profile: Option<String>,
    /// The colours of the screen: dark, light, 16, mono, or one of btop's theme files by its name [default: those that
    /// suit the terminal]
    ///
    /// These files are in ~/.config/stacktune/themes, as NAME.theme.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// How to run it.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The commands. Without one, the terminal UI opens.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Cmd {
    /// Run a profile without the screen, and record what was measured
    Record(RecordArgs),
    /// Run your own program as the load, on the screen or recorded by --out
    ///
    /// On the profile's target: in a folder, or on the stack built for it. Everything it starts is ended with it.
    #[cfg(feature = "programs")]
    Run(ProgramArgs),
    /// Reproduce a table or figure of Haas et al. 2020 or He et al. 2017, next to the paper's own results
    #[cfg(feature = "proofs")]
    Reproduce(ReproduceArgs),
    /// Check stacktune's figures against other programs' on this host
    ///
    /// In about five minutes: latency against fio's, bytes against the block layer's, CPU time and cycles against perf's,
    /// the log of latencies read by HdrHistogram's own library, lost writes planted and found, and a duel of equal
    /// settings. Each check passes, fails, or is not checkable here, with the reason. The file has all figures in a
    /// form that can be published.
    #[cfg(feature = "proofs")]
    Attest(AttestArgs),
    /// Show a recording
    Show(ShowArgs),
    /// Compare recordings of any hosts, figure by figure
    #[command(after_help = EXIT_STATUS)]
    Compare {
        /// The recordings' folders; the others are compared with the first
        #[arg(value_name = "DIR", num_args = 2.., required = true, value_hint = ValueHint::DirPath)]
        dirs: Vec<PathBuf>,
        /// The output format.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Draw which of two recorded stacks needs fewer drives, by data set and throughput
    #[command(after_help = EXIT_STATUS)]
    Cost {
        /// The two recordings' folders
        #[arg(value_name = "DIR", num_args = 2, required = true, value_hint = ValueHint::DirPath)]
        dirs: Vec<PathBuf>,
        /// The largest data set of the map [default: ten times what the larger stack holds]
        #[arg(long, value_name = "SIZE", value_parser = parse_size_above_0)]
        data: Option<u64>,
        /// The largest throughput of the map [default: ten times that of the faster stack]
        #[arg(long, value_name = "RATE", value_parser = parse_rate)]
        rate: Option<u64>,
        /// The output format.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Score a block trace by the five rules for using SSDs
    ///
    /// The five rules of He et al. 2017: request scale, locality, alignment, grouping by death time, and uniform data
    /// lifetime. A trace comes from blktrace, blkparse, fio, MQSim or WiscSee. Nothing is run, and no drive is opened.
    #[cfg(feature = "trace")]
    Contract(ContractArgs),
    /// Trace the I/O of drives into a file, or convert a trace into another form
    ///
    /// The drives are only watched, by the kernel's tracepoints; this needs root. What did not fit into the kernel's buffers
    /// is counted as lost.
    #[cfg(feature = "trace")]
    Trace(TraceArgs),
    /// Run a block trace on a modelled drive, and count what its flash would have done
    ///
    /// Write amplification, misses of the mapping's cache, pages moved and blocks erased, with the mapping by pages, on
    /// demand (DFTL) or hybrid; latencies with --timed. Nothing is run, and no drive is opened.
    #[cfg(feature = "trace")]
    Ftl(FtlArgs),
    /// Fit a profile to a block trace, so that its load is like the traced one
    ///
    /// Rates, sizes, depth, where pages are, and the log's flushes, of each class: fitted to the first half of the trace and
    /// checked on the second. Nothing is run, and no drive is opened.
    #[cfg(feature = "trace")]
    Mimic(MimicArgs),
    /// Read a target back and check every page that stacktune wrote
    #[command(after_help = EXIT_STATUS)]
    Verify {
        /// The profile whose target is read [default: demo]
        #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
        profile: Option<String>,
        /// Knobs to turn before it starts.
        #[command(flatten)]
        sets: SetArgs,
        /// The output format.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// List everything that can be turned, and what it accepts
    Knobs(JsonArgs),
    /// List the profiles
    Profiles(JsonArgs),
    /// Show what this host has and can do
    Host(JsonArgs),
    /// Measure stacktune's own CPU time per I/O on this host, by interface
    Calibrate {
        /// Compare the workers on RocksDB with a bare loop of the same calls
        #[arg(long)]
        pairs: bool,
        /// The output format.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// List the settings of a profile that this host can't run, and why
    #[command(after_help = EXIT_STATUS)]
    Check {
        /// The profile: a name, or a path
        #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
        profile: String,
        /// Knobs to turn before the check.
        #[command(flatten)]
        sets: SetArgs,
    },
    /// List the stacks that exist, which of them are in use, and what a crash left behind
    #[command(after_help = EXIT_STATUS)]
    Status(JsonArgs),
    /// Remove what a crash left behind: mounts, arrays, loop devices, partitions, settings
    ///
    /// Follows the journal that each stack keeps, and touches nothing that stacktune did not make.
    /// Stacks of a running process are left alone, and so are retained ones unless they are named.
    Cleanup(CleanupArgs),
    /// Explain a topic or a command; without one, list them
    Help {
        /// A topic, such as `figures` or `flags`, or a command
        #[arg(value_name = "TOPIC")]
        topic: Option<String>,
    },
    /// Print the completions of a shell
    ///
    /// For bash: stacktune completions bash > ~/.local/share/bash-completion/completions/stacktune
    #[cfg(feature = "documents")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page
    #[cfg(feature = "documents")]
    Man,
    /// Run the workers of another stacktune on drives through SPDK
    #[cfg(feature = "userspace")]
    #[command(hide = true, name = "drive-spdk")]
    DriveSpdk,
    /// Draw the screen of a run into an SVG file, still or moving
    #[cfg(feature = "documents")]
    #[command(hide = true)]
    Picture(PictureArgs),
}

/// The arguments of `stacktune record`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = format!("{RECORD_HELP}{EXIT_STATUS}"))]
pub struct RecordArgs {
    /// The profile to run: a name, or a path
    #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
    pub profile: String,
    /// The folder to write to; a recording is never overwritten, a sweep is resumed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "dry_run")]
    pub out: Option<PathBuf>,
    /// How long to measure, after the warm-up [default: 30s, or the profile's steps]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive)]
    pub duration: Option<Duration>,
    /// Measure until throughput and write amplification are steady, instead of for a time
    ///
    /// Steady means that each class's MB/s, WA-A and WA-D have kept their level for long enough (CUSUM);
    /// a drive that does not report its WA-D must be written three times over first.
    #[arg(long, conflicts_with = "duration")]
    pub until_steady: bool,
    /// The longest time to measure with --until-steady [default: 2h]
    #[arg(long, value_name = "TIME", requires = "until_steady", value_parser = parse_positive)]
    pub at_most: Option<Duration>,
    /// How long to warm up first; these windows are recorded and marked, but left out of the totals
    /// [default: 0s, or the profile's steps]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup: Option<Duration>,
    /// Keep what was built at the end, and print the commands that remove it
    #[arg(long)]
    pub keep: bool,
    /// Read the target back at the end (in a sweep, after each run) and check every page that was
    /// written
    #[arg(long)]
    pub verify: bool,
    /// Trace the drives below the target while it is measured, for `stacktune contract DIR`
    #[arg(long, conflicts_with = "duel")]
    pub trace: bool,
    /// Print what would be built and destroyed, then exit
    #[arg(long)]
    pub dry_run: bool,
    /// A duel between two values of a knob.
    #[command(flatten)]
    pub duel: DuelArgs,
    /// How to run it.
    #[command(flatten)]
    pub run: RunArgs,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// A duel between two values of a knob, until it is clear which is better.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DuelArgs {
    /// Turn a knob between two values in random order until it is clear which is better (KNOB=A,B)
    ///
    /// Blocks of a few windows with each value follow each other in pairs, 40 at most; a coin decides which is
    /// first. The verdict is printed, and kept with all pairs in DIR/duel.json. The exit status is 0 whatever it is.
    /// Where the values need other storage, it is built anew for each block: `--dry-run` shows what that costs.
    #[arg(long, value_name = "KNOB=A,B", conflicts_with_all = ["duration", "until_steady"])]
    pub duel: Option<String>,
    /// The figure that decides a duel
    #[arg(long, value_name = "FIGURE", requires = "duel", default_value = "total")]
    pub duel_figure: Figure,
    /// When it ends.
    #[command(flatten)]
    pub rules: DuelRules,
}

/// The arguments of `stacktune cleanup`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct CleanupArgs {
    /// The stacks to take down, retained ones included [default: everything a crash left behind]
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// Take down all retained stacks as well
    #[arg(long)]
    pub all: bool,
    /// Forget what was built on drives that are gone, or lies on layers that are down
    #[arg(long)]
    pub forget_missing: bool,
    /// Format this drive back to its old LBA format, whatever is on it by now (may be repeated)
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath)]
    pub destroy: Vec<String>,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
}
