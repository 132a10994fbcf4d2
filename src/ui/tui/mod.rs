//! The terminal UI: messages change the state, drawing reads it.
//!
//! [`update`](update::update) is pure: state and message in, effects out. [`view`] draws a state into
//! a buffer and does no I/O. Only [`run`] touches the terminal, the session and the profiles.

mod charts;
mod clock;
pub mod consent;
mod dialog;
mod figures;
mod keys;
mod layout;
pub mod message;
pub mod picture;
pub mod planned;
mod run;
pub mod state;
mod terminal;
pub mod theme;
pub mod update;
pub mod view;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod pty_tests;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};

use crate::error::Error;
use crate::runs::session::{Command, Event};
use crate::settings::Settings;
use crate::settings::profile::Profile;

pub use picture::{is_svg_of_ours, svg};
pub use run::run;

/// The two ends of a session that runs in a thread of its own.
#[derive(Debug)]
pub struct Link {
    /// The operator's commands.
    pub commands: Sender<Command>,
    /// The run's events.
    pub events: Receiver<Event>,
}

/// How it ended.
#[derive(Debug)]
pub struct Outcome {
    /// How the run ended.
    pub ended: Result<(), Error>,
    /// The commands that remove a retained stack; empty if there is none.
    pub kept: Vec<String>,
}

/// How the screen is drawn, and where profiles and recordings are.
pub struct Options {
    /// Draw without colours (`NO_COLOR`).
    pub no_color: bool,
    /// Draw twice a second at most instead of ten times.
    pub over_ssh: bool,
    /// The profiles.
    pub profiles: Box<dyn ProfileStore>,
    /// The folder in which each recording gets a new folder.
    pub recordings: PathBuf,
}

/// A profile as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileEntry {
    /// Its name.
    pub name: String,
    /// Its description.
    pub about: String,
    /// Its file, or none for one that is built in.
    pub path: Option<PathBuf>,
}

/// Where profiles are listed, loaded and saved.
pub trait ProfileStore {
    /// Every profile, in the order of the list.
    fn list(&self) -> Vec<ProfileEntry>;
    /// The profile of that name; an error names file, line and column.
    fn load(&self, name: &str) -> Result<Profile, Error>;
    /// Saves under a name and returns the file; an error of [`Kind::Refused`](crate::error::Kind) where one of
    /// that name exists and `replace` is false.
    fn save(&self, settings: &Settings, name: &str, replace: bool) -> Result<PathBuf, Error>;
}
