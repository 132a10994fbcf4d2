//! What can happen to the screen, and the effects that it asks for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};

use super::profiles::ProfileEntry;
use super::themes::ThemeEntry;
#[cfg(feature = "trace")]
use super::tracing::{Said, Wanted};
use crate::error::Error;
use crate::host::{Device, Facts};
use crate::runs::record::Listed;
use crate::runs::session::{Candidate, Command, Event};
use crate::settings::Settings;
use crate::settings::profile::Profile;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse was clicked or its wheel turned.
    Mouse(MouseEvent),
    /// The terminal has a new size: columns, rows.
    Resize(u16, u16),
    /// The run reported something.
    Session(Event),
    /// Time has passed while a recording plays.
    Played(Duration),
    /// A signal asks to stop the program.
    StopAsked,
    /// The answer to [`Effect::Suspend`]: whether a shell would continue the program.
    MayStop(bool),
    /// The program has resumed after it was stopped.
    Resumed,
    /// The session's thread is gone: no more events will come.
    SessionGone,
    /// The list of profiles that [`Effect::List`] asked for.
    Listed(Vec<ProfileEntry>),
    /// The recordings that [`Effect::ListRecordings`] asked for.
    RecordingsListed(Result<Vec<Listed>, Error>),
    /// The text that [`Effect::ReadRecordings`] asked for of these folders.
    RecordingsRead(Vec<PathBuf>, Result<String, Error>),
    /// Recordings can't be read in another thread.
    NotRead(Error),
    /// What [`Effect::ExamineDrives`] asked for.
    DrivesExamined(Vec<Candidate>),
    /// The drives that [`Effect::ReadDevices`] asked for.
    DevicesRead(Vec<Device>),
    /// The themes that [`Effect::ListThemes`] asked for.
    ThemesListed(Result<Vec<ThemeEntry>, Error>),
    /// The profile that [`Effect::Load`] asked for.
    Loaded(Result<Box<Profile>, Error>),
    /// Something could not be kept ([`Effect::Keep`], [`Effect::DropFirstSteps`]).
    NotKept(Error),
    /// News of a trace.
    #[cfg(feature = "trace")]
    Traced(Said),
    /// The result of [`Effect::Save`], for that name.
    Saved(String, Result<PathBuf, Error>),
}

/// Something to do outside the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send a command to the session.
    Send(Command),
    /// Start a recording into a new folder named after this profile and the time.
    StartRecording(String),
    /// Keep a closed line of the ledger: JSON that ends its line.
    Keep(String),
    /// Never show the first steps again.
    DropFirstSteps,
    /// List the profiles.
    List,
    /// List the themes.
    ListThemes,
    /// List the recordings.
    ListRecordings,
    /// Read a recording's summary, or compare several.
    ReadRecordings(Vec<PathBuf>),
    /// Examine every drive of the host.
    ExamineDrives {
        /// The facts, except those about drives.
        facts: Arc<Facts>,
        /// The drives that are named already.
        named: Vec<String>,
        /// The drives that the run holds.
        held: Vec<String>,
    },
    /// Read again what is known of every drive of the host.
    ReadDevices,
    /// Load a profile by its name.
    Load(String),
    /// Save settings under a name.
    Save {
        /// The settings.
        settings: Box<Settings>,
        /// What is known of the host: its drives are not queried beside the load.
        facts: Arc<Facts>,
        /// The name.
        name: String,
        /// Whether to replace an existing profile.
        replace: bool,
    },
    /// Begin or end a trace.
    #[cfg(feature = "trace")]
    Trace(Wanted),
    /// Find out whether the program can be stopped, as Ctrl-Z does elsewhere.
    Suspend,
    /// Give the terminal back and stop.
    Stop,
    /// Leave the screen.
    Exit,
}

impl Effect {
    /// Whether it may be performed while a recording is shown: it only reads recordings, or concerns the screen
    /// alone.
    pub fn suits_recording(&self) -> bool {
        matches!(
            self,
            Self::ListThemes
                | Self::ListRecordings
                | Self::ReadRecordings(_)
                | Self::Suspend
                | Self::Stop
                | Self::Exit
        )
    }
}
