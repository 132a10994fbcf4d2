//! What can happen to the screen, and what it asks for.

use std::path::PathBuf;

use crossterm::event::{KeyEvent, MouseEvent};

use super::ProfileEntry;
use crate::error::Error;
use crate::runs::session::{Command, Event};
use crate::settings::Settings;

/// Something happened.
#[derive(Debug, Clone)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse was clicked or its wheel turned.
    Mouse(MouseEvent),
    /// The terminal has a new size: columns, rows.
    Resize(u16, u16),
    /// The run told something.
    Session(Event),
    /// The session's thread is gone: nothing will be told any more.
    SessionGone,
    /// The list of profiles that [`Effect::List`] asked for.
    Listed(Vec<ProfileEntry>),
    /// The profile that [`Effect::Load`] asked for.
    Loaded(Result<Box<Settings>, Error>),
    /// How [`Effect::Save`] went, for that name.
    Saved(String, Result<PathBuf, Error>),
}

/// What is to be done outside the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask the session.
    Send(Command),
    /// Start a recording into a new folder that is named by this profile and the time.
    StartRecording(String),
    /// List the profiles.
    List,
    /// Load a profile by its name.
    Load(String),
    /// Save settings under a name.
    Save {
        /// The settings.
        settings: Box<Settings>,
        /// The name.
        name: String,
        /// Whether an existing profile is replaced.
        replace: bool,
    },
    /// Leave the screen.
    Exit,
}
