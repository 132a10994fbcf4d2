//! The man page and the shells' completions, from the definitions of the command line.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::args::{Cli, MAIN_HELP, RECORD_HELP};
use super::attest::ATTEST_HELP;
use super::contract::{CONTRACT_HELP, TRACE_HELP};
use super::documents::Shell;
use super::ftl::FTL_HELP;
use super::mimic::MIMIC_HELP;
use super::program::PROGRAM_HELP;
use super::reproduce::REPRODUCE_HELP;
use super::shared::EXIT_STATUS;
use crate::ui::help;
use crate::ui::text::WIDTH;
use crate::ui::text::paragraph;

const FILES: &str = "\
$XDG_CONFIG_HOME/stacktune/profiles/*.toml, else ~/.config/stacktune/profiles/*.toml
  the user's profiles
$XDG_DATA_HOME/stacktune/recordings, else ~/.local/share/stacktune/recordings
  recordings made on the screen
$XDG_CACHE_HOME/stacktune, else ~/.cache/stacktune
  the files that the built-in profiles run on
$XDG_STATE_HOME/stacktune, else /var/lib/stacktune for root and ~/.local/state/stacktune for others
  journals of the stacks that exist, and where they are mounted";

/// Writes the completions of a shell.
pub fn write_completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    // The generators panic when writing fails (a closed pipe), so they write to memory.
    let mut text = Vec::new();
    let command = Cli::command();
    let words = help_words(&command);
    let generator = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    if shell == Shell::Fish {
        // The generator for fish omits the values of arguments.
        let of_help = "complete -c stacktune -n \"__fish_stacktune_using_subcommand help\" -f -a";
        writeln!(text, "{of_help} \"{}\"", words.join(" "))?;
    }
    let mut command = with_help_words(command, words);
    clap_complete::generate(generator, &mut command, "stacktune", &mut text);
    out.write_all(&text)
}

/// The words that `stacktune help` takes: topics and commands.
fn help_words(command: &Command) -> Vec<String> {
    let topics = help::TOPICS.iter().map(|topic| topic.name);
    let commands = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
    let both: BTreeSet<_> = topics.chain(commands).collect();
    both.into_iter().map(str::to_owned).collect()
}

fn with_help_words(command: Command, words: Vec<String>) -> Command {
    // clap wants static strings; the program ends soon, so they are leaked.
    let words = PossibleValuesParser::new(words.into_iter().map(|word| &*word.leak()));
    command.mut_subcommand("help", |help| help.mut_arg("topic", |topic| topic.value_parser(words)))
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
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        out.write_all(command_section(sub)?.as_bytes())?;
    }
    let notes = [
        MAIN_HELP,
        RECORD_HELP,
        PROGRAM_HELP,
        REPRODUCE_HELP,
        ATTEST_HELP,
        CONTRACT_HELP,
        TRACE_HELP,
        FTL_HELP,
        MIMIC_HELP.trim_end(),
    ]
    .concat();
    let notes: Vec<_> = notes.lines().map(|line| paragraph(line, WIDTH, "")).collect();
    verbatim("NOTES AND EXAMPLES", &notes.join("\n"), out)?;
    verbatim("TOPICS", help::rows().trim_end(), out)?;
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
