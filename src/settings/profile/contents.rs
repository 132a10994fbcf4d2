//! The content of a profile.

use super::sweep::Sweep;
use crate::settings::values::Settings;

/// A profile: settings, and steps for `record` if it has any.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The settings, with the profile's name and description.
    pub settings: Settings,
    /// The steps of a sweep and how they are run; none for a profile that is a single run.
    pub sweep: Option<Sweep>,
}

impl Profile {
    /// How many steps it has, with the product expanded; 0 for an ordinary profile.
    pub fn steps(&self) -> usize {
        self.sweep.as_ref().map_or(0, Sweep::count)
    }
}

impl From<Settings> for Profile {
    /// An ordinary profile of these settings.
    fn from(settings: Settings) -> Self {
        Self { settings, sweep: None }
    }
}
