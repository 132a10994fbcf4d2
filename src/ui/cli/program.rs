//! The arguments of `stacktune run`, and their help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::shared::{DuelRules, EXIT_STATUS, JsonArgs, RunArgs, parse_positive, parse_size_above_0};
use crate::runs::session::StopIf;
use crate::units::parse_duration;

pub(super) const PROGRAM_HELP: &str = "\
COMMAND is run in a folder of its own on the profile's target, and measured. In its arguments, {dir} stands for that folder, \
{seconds} for the time that it runs, {memory} for the bytes that it may use and {cpus} for the processors. \
`stacktune help run` has the rest.

Examples:
  stacktune run --list
  stacktune run demo --out run1 -- fio --name=a --rw=randread --size=1g \\
      --directory={dir} --runtime={seconds} --time_based
  sudo stacktune run ./raid.toml --out run2 --for 1m --mem 2GB \\
      --destroy /dev/nvme1n1 -- sh -c 'dd if=/dev/zero of=f bs=1M count=4096'

";

/// A knob that is turned while the program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramTurn {
    /// How long after the start, warm-up included.
    pub at: Duration,
    /// The knob's path.
    pub path: String,
    /// The value to turn it to.
    pub value: String,
}

fn parse_turn(text: &str) -> Result<ProgramTurn, String> {
    let wrong = || "write TIME:KNOB=VALUE, such as 30s:command.sync=off".to_owned();
    let (at, turn) = text.split_once(':').ok_or_else(wrong)?;
    let (path, value) = turn.split_once('=').ok_or_else(wrong)?;
    let at = parse_duration(at.trim()).map_err(|_| wrong())?;
    Ok(ProgramTurn { at, path: path.trim().to_owned(), value: value.trim().to_owned() })
}

/// A duel between two values of a knob, until it is clear which is better.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ProgramDuelArgs {
    /// Turn a knob between two values in random order until it is clear which is better (KNOB=A,B)
    ///
    /// One of the program's own, such as command.sync=on,off, or one of the stack. Blocks of a few windows with each value
    /// follow each other in pairs, 40 at most; a coin decides which is first. The verdict is printed, and kept with all
    /// pairs in DIR/duel.json. The exit status is 0 whatever it is. Where a value can't be turned while the program runs,
    /// the program is started anew for each block, and a stack built and the program set up on it; on files its folder
    /// stays, and it is set up once. `--dry-run` shows what that costs.
    #[arg(long, value_name = "KNOB=A,B", conflicts_with_all = ["duration", "turns"])]
    pub duel: Option<String>,
    /// The figure that decides a duel: one of [command.metrics] or [command.probes] that has `better` [default: the first
    /// with `better = "higher"`, else `"lower"`]
    #[arg(long, value_name = "NAME", requires = "duel")]
    pub duel_figure: Option<String>,
    /// When it ends.
    #[command(flatten)]
    pub rules: DuelRules,
}

/// The arguments of `stacktune run`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = format!("{PROGRAM_HELP}{EXIT_STATUS}"))]
pub struct ProgramArgs {
    /// The profile with the target, its stack and, in `[command]`, the program: a name, or a path
    #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath, required_unless_present = "list")]
    pub profile: Option<String>,
    /// The folder to write to; a recording is never overwritten. Without it, the screen opens
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// How long it runs at most, after the warm-up [default: 30s]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive)]
    pub duration: Option<Duration>,
    /// Run until what the program reports is steady, instead of for a time
    ///
    /// Steady means that a figure that it reports (`better = "higher"` before `"lower"`) and WA-D have kept their level for
    /// long enough (CUSUM); if it writes to a drive that does not report its WA-D, that must be written three times over
    /// first, and once over if its WA-D is 1.
    #[arg(long, conflicts_with_all = ["duration", "duel"])]
    pub until_steady: bool,
    /// The longest time to run with --until-steady, after the warm-up [default: 2h]
    #[arg(long, value_name = "TIME", requires = "until_steady", value_parser = parse_positive)]
    pub at_most: Option<Duration>,
    /// Whether that is only the longest that a command may take, which ends when it ends.
    #[arg(skip)]
    pub is_open_ended: bool,
    /// How long to warm up first; these windows are recorded and marked, but left out of the totals
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup: Option<Duration>,
    /// The user to run it as [default: who called sudo]
    ///
    /// Root must be named: it is never run as root otherwise.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The most memory that it may use once it is set up, page cache included
    #[arg(long, value_name = "SIZE", value_parser = parse_size_above_0)]
    pub mem: Option<u64>,
    /// End the run within two seconds when tasks on the host stall too long (PSI), as in 'psi.io.some > 5%'
    #[arg(long, value_name = "CONDITION")]
    pub stop_if: Option<StopIf>,
    /// Turn a knob this long after the start, as in 30s:command.sync=off (may be repeated)
    ///
    /// For the program's own knobs with a `turn`, `command.memory_max`, and the stack's live ones. The ledger says what each turn did.
    #[arg(long = "turn", value_name = "TIME:KNOB=VALUE", value_parser = parse_turn)]
    pub turns: Vec<ProgramTurn>,
    /// A duel while it runs.
    #[command(flatten)]
    pub duel: ProgramDuelArgs,
    /// Trace the drives below the target while it runs, for `stacktune contract DIR`
    #[arg(long)]
    pub trace: bool,
    /// A line for `sh` that makes the program's data, instead of the profile's `setup`; it is neither measured nor traced
    #[arg(long, value_name = "LINE")]
    pub prepare: Option<String>,
    /// Keep what was built at the end, and print the commands that remove it
    #[arg(long)]
    pub keep: bool,
    /// Print what would be built, destroyed and run, then exit
    #[arg(long)]
    pub dry_run: bool,
    /// The colours of the screen: dark, light, 16, mono, or one of btop's theme files by its name [default: those that
    /// suit the terminal]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "dry_run"])]
    pub theme: Option<String>,
    /// List the built-in profiles of programs, and what each lacks here
    #[arg(long, exclusive = true)]
    pub list: bool,
    /// How to run it.
    #[command(flatten)]
    pub run: RunArgs,
    /// The output format.
    #[command(flatten)]
    pub output: JsonArgs,
    /// The program and its arguments, instead of the profile's `run`; no shell reads them
    #[arg(last = true, value_name = "COMMAND")]
    pub words: Vec<String>,
}
