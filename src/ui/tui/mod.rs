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

pub use picture::{is_svg_of_ours, svg};
pub use run::run;

/// The two ends of a session that runs in a thread of its own.
#[derive(Debug)]
pub struct Link {
    /// What the operator asks.
    pub commands: Sender<Command>,
    /// What the run tells.
    pub events: Receiver<Event>,
}

/// How it ended.
#[derive(Debug)]
pub struct Outcome {
    /// What ended the run.
    pub ended: Result<(), Error>,
    /// The commands that remove what was built and is kept; none where nothing is.
    pub kept: Vec<String>,
}

/// How the screen is drawn, and where profiles and recordings lie.
pub struct Options {
    /// Draw without colours (`NO_COLOR`).
    pub no_color: bool,
    /// Draw twice a second at most instead of ten times.
    pub over_ssh: bool,
    /// The profiles.
    pub profiles: Box<dyn ProfileStore>,
    /// The folder in which each recording gets a folder of its own.
    pub recordings: PathBuf,
}

/// A profile as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileEntry {
    /// Its name.
    pub name: String,
    /// Its line about itself.
    pub about: String,
    /// Its file, or none for one that is built in.
    pub path: Option<PathBuf>,
}

/// Where profiles are listed, loaded and saved.
pub trait ProfileStore {
    /// Every profile, in the order of the list.
    fn list(&self) -> Vec<ProfileEntry>;
    /// The settings of a profile by its name; an error names file, line and column.
    fn load(&self, name: &str) -> Result<Settings, Error>;
    /// Saves under a name and tells the file; of [`Kind::Refused`](crate::error::Kind) where one of
    /// that name exists and `replace` is false.
    fn save(&self, settings: &Settings, name: &str, replace: bool) -> Result<PathBuf, Error>;
}
