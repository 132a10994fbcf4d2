//! `stacktune help`: a topic's text, a command's options, or both where they share a name.

use std::ffi::OsString;

use clap::{Command, CommandFactory};

use super::args::Cli;
use super::lacking::{self, lacking};
use crate::error::{Error, Result};
use crate::printable;
use crate::settings::knobs::nearest_of;
use crate::settings::profile::ProfileFolder;
use crate::ui::help::{self, TextOutput};

/// The text for `stacktune help WORD`; without a word, the list of commands and topics.
///
/// # Errors
/// Of the kind `Input` for an unknown word, with the closest match.
pub fn explain(word: Option<&str>, place: TextOutput) -> Result<String> {
    let mut command = Cli::command().term_width(place.columns);
    command.build();
    let Some(word) = word else { return Ok(options_of(&mut command, place)) };
    let topic = help::topic(word).map(|topic| help::render(topic.text, place.columns, place.styled));
    let options = command.find_subcommand_mut(word).map(|sub| options_of(sub, place));
    match (options, topic, lacking(word)) {
        (Some(options), Some(topic), _) => Ok(format!("{options}\n{topic}")),
        (None, Some(topic), Some(error)) => Ok(format!("{}\n\n{topic}", error.one_line())),
        (Some(text), None, _) | (None, Some(text), None) => Ok(text),
        (None, None, error) => Err(error.unwrap_or_else(|| unknown(word))),
    }
}

/// The options of a command, as `--help` shows them.
fn options_of(command: &mut Command, place: TextOutput) -> String {
    let text = command.render_long_help();
    let text = if place.styled { text.ansi().to_string() } else { text.to_string() };
    format!("{}\n", text.trim_end())
}

fn unknown(word: &str) -> Error {
    let commands = names();
    let topics = help::TOPICS.iter().map(|topic| topic.name);
    let near = nearest_of(word, topics.chain(commands.iter().map(String::as_str)));
    let meant = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let word = printable::line(word);
    Error::input(format!("there is no topic or command `{word}`{meant}")).hint("`stacktune help` lists them")
}

/// The command that an unknown profile name was probably meant to be.
pub fn nearest_command(word: &str) -> Option<String> {
    nearest_of(word, names().iter().map(String::as_str)).map(str::to_owned)
}

/// The error for a mistyped command with arguments of its own: clap takes it for a profile, and refuses the rest.
pub fn mistyped(first: Option<OsString>, error: &clap::Error) -> Option<Error> {
    use clap::error::ErrorKind::{ArgumentConflict, UnknownArgument};
    let word = first?.into_string().ok().filter(|word| !word.starts_with('-') && !names().contains(word))?;
    if ![ArgumentConflict, UnknownArgument].contains(&error.kind()) || ProfileFolder::of_user().knows(&word) {
        return None;
    }
    let near = nearest_command(&word)?;
    let what = format!("there is no command `{word}`; did you mean `{near}`?");
    Some(Error::input(what).hint("`stacktune help` lists them"))
}

/// The commands that a user can type, including those of other builds, which have an answer, too.
fn names() -> Vec<String> {
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.map(|sub| sub.get_name().to_owned()).chain(lacking::names().map(str::to_owned)).collect()
}
