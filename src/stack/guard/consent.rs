//! The operator's consent to destroy what is on devices.

use super::uses::whole_device;
use crate::error::Result;
use crate::host::Facts;

/// The operator's consent to destroy what is on devices; by default none at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    devices: Vec<String>,
    typed: Vec<String>,
}

impl Consent {
    /// Consent by `--destroy DEVICE`; a name that is not a whole device of this host is an input error.
    pub fn named(names: &[String], facts: &Facts) -> Result<Self> {
        let devices = names.iter().map(|name| Ok(whole_device(name, facts)?.name.clone()));
        Ok(Self { devices: devices.collect::<Result<_>>()?, typed: Vec::new() })
    }

    /// Adds what the operator typed to this consent.
    #[must_use]
    pub fn and_typed(mut self, words: &[String]) -> Self {
        self.typed.extend(words.iter().map(|word| word.trim().to_owned()));
        self
    }

    /// Whether it covers the device of that name and serial.
    pub(crate) fn covers_device(&self, name: &str, serial: Option<&str>) -> bool {
        let word = serial.unwrap_or(name);
        self.devices.iter().any(|device| device == name)
            || !word.is_empty() && self.typed.iter().any(|typed| typed == word)
    }
}
