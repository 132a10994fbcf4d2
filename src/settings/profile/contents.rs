//! What a profile holds.

use super::sweep::Sweep;
use crate::settings::values::Settings;

/// A profile: settings, and the steps that `record` runs where it has any.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The settings, with the profile's name and its line about itself.
    pub settings: Settings,
    /// The steps.
    pub sweep: Option<Sweep>,
}

impl Profile {
    /// How many steps it has, its product multiplied out; 0 where it is an ordinary profile.
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
