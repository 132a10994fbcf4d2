//! The command line: what can be given, and the help that says so. What a command does is not here.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::error::{Error, Result};
use crate::settings::knobs::{self, Value, nearest_of};
use crate::settings::profile::Settings;
use crate::units::{parse_duration, parse_rate, parse_size};

const EXIT_STATUS: &str = "\
Exit status:
  0    all is well
  1    something failed; a recording with I/O errors is one that failed
  2    the input is wrong, or asks for what this host can't do
  3    refused, for the safety of data
  130  interrupted";

const MAIN_HELP: &str = "\
A profile is a name from `stacktune profiles`, or the path of a file if it has a `/` or ends in
`.toml`. A profile that is called like a command is reached by its path.

Examples:
  stacktune                              the demo, on files in your cache folder
  stacktune table2-4-direct              a built-in profile
  stacktune ./mine.toml --set wal.sync=dsync
  stacktune --read-only ./mine.toml      scans and point reads, nothing opened for writing
  stacktune record demo --out run1 --for 1m
  stacktune compare run1 run2

";

const RECORD_HELP: &str = "\
DIR receives profile.toml (as run), host.json, windows.jsonl, latency.hlog, ledger.jsonl and, at
the end, summary.json. Ctrl-C ends the recording early, with a summary of what was measured.

Examples:
  stacktune record demo --out run1
  stacktune record ./mine.toml --out run2 --for 5m --warmup 30s
  stacktune record ./mine.toml --out run3 --set io.interface=libaio --set scan.depth=64
  stacktune record table2-5-block --out run4 \\
      --set target.devices=/dev/disk/by-id/nvme-X --destroy /dev/disk/by-id/nvme-X

";

const REPRODUCE_HELP: &str = "\
DIR receives a recording of each run, and the same command goes on with what is left of it.
`stacktune show DIR` prints the report again.

Examples:
  stacktune reproduce --list
  stacktune reproduce table2 --files ~/.cache/stacktune/paper
  stacktune reproduce table4 --devices /dev/nvme0n1,/dev/nvme1n1 \\
      --destroy /dev/nvme0n1 --destroy /dev/nvme1n1
  stacktune reproduce table2 --files DIR --beside other-host/reproduce-table2

";

const FILES: &str = "\
$XDG_CONFIG_HOME/stacktune/profiles/*.toml, else ~/.config/stacktune/profiles/*.toml
  the user's profiles
$XDG_CACHE_HOME/stacktune, else ~/.cache/stacktune
  the files that the built-in profiles run on
$XDG_STATE_HOME/stacktune, else /var/lib/stacktune for root and ~/.local/state/stacktune for others
  journals of the stacks that stand, and where they are mounted";

/// A live tuner for the storage stack under a database
///
/// Runs table scans, point reads, a write-ahead log and a background writer against files or
/// devices, and lets you turn every knob while they run. Without a command it opens the terminal
/// UI.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(
    name = "stacktune",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_help_heading = "Commands",
    override_usage = "stacktune [OPTIONS] [PROFILE]\n       stacktune <COMMAND>",
    after_help = format!("{MAIN_HELP}{EXIT_STATUS}"),
    max_term_width = 100
)]
pub struct Cli {
    /// What to do; the terminal UI without one.
    #[command(subcommand)]
    pub command: Option<Cmd>,
    /// The profile to open: a name, or a path; the demo without one
    #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
    pub profile: Option<String>,
    /// How to run it.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The options of everything that runs a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct RunArgs {
    /// Run scans and point reads only, and open nothing for writing
    ///
    /// Works on unfilled and on mounted devices; the scan is held to 100 MB/s on a mounted one
    /// unless a rate is given.
    #[arg(long)]
    pub read_only: bool,
    /// Permit `record` to destroy what this device holds (may be repeated)
    ///
    /// Without it a device that carries anything but stacktune's own data is refused. It must be
    /// one of the profile's devices, and none that is in use. The screen takes none: it asks for
    /// each device's serial at every plan that destroys.
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath, conflicts_with = "read_only")]
    pub destroy: Vec<PathBuf>,
    /// Knobs to turn before it starts.
    #[command(flatten)]
    pub sets: SetArgs,
}

/// Knobs given on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SetArgs {
    /// Give a knob another value than the profile's (may be repeated)
    ///
    /// `stacktune knobs` lists the knobs and what they accept; a list of devices is separated by
    /// commas.
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    pub set: Vec<String>,
}

/// The output's form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct JsonArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The commands beside the terminal UI.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Cmd {
    /// Run a profile without a terminal and write down what was measured
    Record(RecordArgs),
    /// Run a table or a figure of the paper, and tell its figures and claims beside this host's
    Reproduce(ReproduceArgs),
    /// Show a recording
    #[command(after_help = EXIT_STATUS)]
    Show {
        /// The recording's folder
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Draw MB/s, write amplification and space over time instead
        ///
        /// Write amplification of a short time is noisy, so the totals tell the cumulative one.
        #[arg(long)]
        over_time: bool,
        /// The output's form.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Compare recordings, of any hosts, figure by figure
    #[command(after_help = EXIT_STATUS)]
    Compare {
        /// The recordings' folders; the others are compared with the first
        #[arg(value_name = "DIR", num_args = 2.., required = true, value_hint = ValueHint::DirPath)]
        dirs: Vec<PathBuf>,
        /// The output's form.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Draw which of two recorded stacks takes fewer drives, by data set and throughput
    #[command(after_help = EXIT_STATUS)]
    Cost {
        /// The two recordings' folders
        #[arg(value_name = "DIR", num_args = 2, required = true, value_hint = ValueHint::DirPath)]
        dirs: Vec<PathBuf>,
        /// The largest data set of the map [default: what ten of the larger stack hold]
        #[arg(long, value_name = "SIZE", value_parser = parse_size_above_0)]
        data: Option<u64>,
        /// The largest throughput of the map [default: what ten of the faster stack do]
        #[arg(long, value_name = "RATE", value_parser = parse_rate)]
        rate: Option<u64>,
        /// The output's form.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Read a target back and check every page that stacktune wrote
    #[command(after_help = EXIT_STATUS)]
    Verify {
        /// The profile whose target is read; the demo without one
        #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
        profile: Option<String>,
        /// Knobs to turn before it starts.
        #[command(flatten)]
        sets: SetArgs,
        /// The output's form.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// List everything that can be turned, and what it accepts
    Knobs(JsonArgs),
    /// List the profiles
    Profiles(JsonArgs),
    /// Tell what this host has and can do
    Host(JsonArgs),
    /// Measure the generator's own cost per I/O on this host, by interface
    Calibrate {
        /// What the workers on pairs cost over a bare loop of the same calls of RocksDB
        #[arg(long)]
        pairs: bool,
        /// How it is printed.
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Tell what of a profile this host can't do, and why
    #[command(after_help = EXIT_STATUS)]
    Check {
        /// The profile: a name, or a path
        #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
        profile: String,
        /// Knobs to turn before it is checked.
        #[command(flatten)]
        sets: SetArgs,
    },
    /// Tell which stacks stand, which run, and what a crash has left over
    #[command(after_help = EXIT_STATUS)]
    Status(JsonArgs),
    /// Take away what a crash has left over: mounts, arrays, loop devices, partitions, settings
    ///
    /// Goes by the journal that each stack keeps, and touches nothing that stacktune did not make.
    /// Stacks of a living process are left alone, and so are kept ones unless they are named.
    Cleanup(CleanupArgs),
    /// Print the completions of a shell
    ///
    /// For bash: stacktune completions bash > ~/.local/share/bash-completion/completions/stacktune
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page
    Man,
    /// Drive drives for another stacktune through SPDK
    #[command(hide = true, name = "drive-spdk")]
    DriveSpdk,
    /// Draw the screen of a run into an SVG file
    #[command(hide = true)]
    Picture(PictureArgs),
}

/// What `stacktune record` is given.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = format!("{RECORD_HELP}{EXIT_STATUS}"))]
pub struct RecordArgs {
    /// The profile to run: a name, or a path
    #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
    pub profile: String,
    /// The folder to write to; one that holds a recording is not overwritten, a sweep goes on
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "dry_run")]
    pub out: Option<PathBuf>,
    /// How long to measure, after the warm-up [default: 30s, or what the profile's steps say]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive)]
    pub duration: Option<Duration>,
    /// Measure until throughput and write amplification are steady, instead of for a time
    ///
    /// Steady is what has kept its level for long enough (CUSUM over each class's MB/s, WA-A and WA-D);
    /// a drive that does not tell its WA-D must be written three times over first.
    #[arg(long, conflicts_with = "duration")]
    pub until_steady: bool,
    /// With --until-steady: how long at most [default: 2h]
    #[arg(long, value_name = "TIME", requires = "until_steady", value_parser = parse_positive)]
    pub at_most: Option<Duration>,
    /// How long to run before that; its windows are written, marked, and left out of the totals
    /// [default: 0s, or what the profile's steps say]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup: Option<Duration>,
    /// Leave what was built standing at the end, and print the commands that remove it
    #[arg(long)]
    pub keep: bool,
    /// Read the target back at the end, of a sweep after each run, and check every page that was
    /// written
    #[arg(long)]
    pub verify: bool,
    /// Print what would be built and destroyed, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How to run it.
    #[command(flatten)]
    pub run: RunArgs,
    /// The output's form.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// What `stacktune reproduce` is given.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = format!("{REPRODUCE_HELP}{EXIT_STATUS}"))]
pub struct ReproduceArgs {
    /// The table or figure: table2, table4, …; all are listed without one
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
    /// How long to run each row before that [default: 5s; over time, none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup: Option<Duration>,
    /// How often to run each row; a claim takes 3 [default: 3; over time, 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Rest before each run [default: 30s on drives, none on files]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub idle: Option<Duration>,
    /// Wait before each run until no drive is warmer, in °C, for 5 minutes at most [default: 50 on drives]
    #[arg(long, value_name = "DEGREES", value_parser = parse_degrees)]
    pub cool_to: Option<f64>,
    /// The folder to write to, or to go on with [default: reproduce-NAME]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Permit that what this device holds is destroyed (may be repeated)
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath)]
    pub destroy: Vec<PathBuf>,
    /// Show another recording or reproduction beside (may be repeated)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub beside: Vec<PathBuf>,
    /// A device that is a hardware RAID of level 0, 5 or 10 (may be repeated)
    #[arg(long, value_name = "LEVEL=DEVICE")]
    pub hardware_raid: Vec<String>,
    /// Print what would be run, built, written and destroyed, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Knobs to turn in every row.
    #[command(flatten)]
    pub sets: SetArgs,
    /// The output's form.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// What `stacktune cleanup` is given.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct CleanupArgs {
    /// The stacks to take down, kept ones too; all that a crash has left without any
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// Take down every stack that was kept, too
    #[arg(long)]
    pub all: bool,
    /// Give up what lies on drives that are not there any more
    #[arg(long)]
    pub forget_missing: bool,
    /// The output's form.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// What `stacktune picture` is given.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct PictureArgs {
    /// The profile to run; the demo without one
    #[arg(value_name = "PROFILE", value_hint = ValueHint::AnyPath)]
    pub profile: Option<String>,
    /// The file to write
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// How long to run before the screen is drawn
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = parse_positive)]
    pub duration: Duration,
    /// Columns of the screen
    #[arg(long, default_value_t = 160, value_parser = clap::value_parser!(u16).range(20..=400))]
    pub columns: u16,
    /// Lines of the screen
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(10..=200))]
    pub lines: u16,
    /// Turn a knob while it runs (may be repeated; the turns are spread evenly)
    #[arg(long = "turn", value_name = "KNOB=VALUE")]
    pub turns: Vec<String>,
    /// How to run it.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The shells that have completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}

fn parse_degrees(text: &str) -> std::result::Result<f64, String> {
    let degrees = text.parse::<f64>().ok().filter(|degrees| (0.0..=120.0).contains(degrees));
    degrees.ok_or_else(|| "write degrees Celsius from 0 to 120".into())
}

/// A size of at least a byte.
fn parse_size_above_0(text: &str) -> std::result::Result<u64, String> {
    match parse_size(text)? {
        0 => Err("a size above 0 is expected".into()),
        bytes => Ok(bytes),
    }
}

fn parse_positive(text: &str) -> std::result::Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("it must be longer than nothing".into()),
        duration => Ok(duration),
    }
}

/// Turns the knobs that `--set` gives. Nothing is turned if any of them is wrong.
///
/// # Errors
/// Of the kind `Input`, naming the knob, what it accepts, and the nearest right name.
pub fn apply_sets(settings: &mut Settings, sets: &[String]) -> Result<()> {
    let mut values: Vec<(usize, Value)> = sets.iter().map(|set| parse_set(set)).collect::<Result<_>>()?;
    // In the table's order, as in a file; of two values of one knob the later one stands.
    values.sort_by_key(|(index, _)| *index);
    for (index, value) in values {
        knobs::all()[index].set(settings, value);
    }
    Ok(())
}

/// The knob, by its place in the table, and its value from `KNOB=VALUE`.
pub fn parse_set(set: &str) -> Result<(usize, Value)> {
    let Some((path, text)) = set.split_once('=') else {
        return Err(Error::input(format!("--set {set}: write KNOB=VALUE, such as scan.depth=64")));
    };
    let path = path.trim();
    let Some(index) = knobs::all().iter().position(|knob| knob.path == path) else {
        let meant = knobs::nearest(path).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let error = Error::input(format!("--set {set}: there is no `{path}`{meant}"));
        return Err(error.hint("`stacktune knobs` lists them"));
    };
    let knob = &knobs::all()[index];
    let wrong = |_| Error::input(format!("--set {set}: {}", knob.refusal(&format!("\"{}\"", text.trim()))));
    Ok((index, knob.parse(text).map_err(wrong)?))
}

/// The command that a mistaken profile name may have meant.
pub fn nearest_command(word: &str) -> Option<String> {
    let command = Cli::command();
    let names = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
    nearest_of(word, names).map(str::to_owned)
}

/// Writes the completions of a shell.
pub fn write_completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    // The generators panic where writing fails (a closed pipe), so they get memory to write to.
    let mut text = Vec::new();
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut Cli::command(), "stacktune", &mut text);
    out.write_all(&text)
}

/// Writes the man page, in roff: one page with a section for each command.
pub fn write_man(out: &mut dyn Write) -> io::Result<()> {
    let mut command = Cli::command();
    command.build();
    let page = Man::new(command.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        out.write_all(command_section(sub)?.as_bytes())?;
    }
    verbatim("NOTES AND EXAMPLES", &format!("{MAIN_HELP}{RECORD_HELP}{}", REPRODUCE_HELP.trim_end()), out)?;
    verbatim("EXIT STATUS", EXIT_STATUS.trim_start_matches("Exit status:\n"), out)?;
    verbatim("FILES", FILES, out)?;
    page.render_version_section(out)
}

/// A section whose lines stay as they are.
fn verbatim(heading: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [heading]).control("nf", []).text([roman(text)]).control("fi", []);
    roff.to_writer(out)
}

/// A command's part of the man page.
fn command_section(sub: &Command) -> io::Result<String> {
    let page = Man::new(sub.clone().after_help(""));
    let mut body = Vec::new();
    page.render_synopsis_section(&mut body)?;
    page.render_description_section(&mut body)?;
    page.render_options_section(&mut body)?;
    let body = String::from_utf8_lossy(&body).replace(".SH ", ".SS ");
    Ok(format!(".SH \"STACKTUNE {}\"\n{body}", sub.get_name().to_uppercase()))
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
