//! The profiles, as the screen lists, loads and saves them.

use std::path::PathBuf;

use crate::error::Error;
use crate::host::Facts;
use crate::settings::Settings;
use crate::settings::profile::Profile;

/// A profile as the list shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProfileEntry {
    /// Its name.
    pub name: String,
    /// Its description.
    pub about: String,
    /// Its file, or none for one that is built in.
    pub path: Option<PathBuf>,
    /// Its settings, by which the list finds out whether it can run here.
    pub settings: Option<Box<Settings>>,
    /// A device of its target that this host does not have, in words.
    pub absent: Option<String>,
    /// Why it can't be opened.
    pub refused: Option<String>,
}

/// Where profiles are listed, loaded and saved.
pub trait ProfileStore {
    /// Every profile, in the order of the list.
    fn list(&self) -> Vec<ProfileEntry>;
    /// The profile of that name; an error names file, line and column.
    fn load(&self, name: &str) -> Result<Profile, Error>;
    /// Saves under a name, with drives by what the facts know of them, and returns the file; an error of [`Kind::Refused`](crate::error::Kind) where one of
    /// that name exists and `replace` is false.
    fn save(&self, settings: &Settings, facts: &Facts, name: &str, replace: bool) -> Result<PathBuf, Error>;
}
