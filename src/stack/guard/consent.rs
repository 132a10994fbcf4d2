//! The operator's consent to destroy what is on devices.

use super::uses::whole_device;
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::settings::Layer;

/// The operator's consent to destroy what is on devices; by default none at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    devices: Vec<String>,
    typed: Vec<String>,
    commands: Vec<Layer>,
}

impl Consent {
    /// Consent by `--destroy DEVICE`; naming anything but a whole device of this host is an input error.
    pub fn named(names: &[String], facts: &Facts) -> Result<Self> {
        let devices = names.iter().map(|name| Ok(whole_device(name, facts)?.name.clone()));
        Ok(Self { devices: devices.collect::<Result<_>>()?, ..Self::default() })
    }

    /// Adds what the operator typed to this consent.
    #[must_use]
    pub fn and_typed(mut self, words: &[String]) -> Self {
        self.typed.extend(words.iter().map(|word| word.trim().to_owned()));
        self
    }

    /// Adds the layers whose commands may be run.
    #[must_use]
    pub fn and_commands(self, layers: &[Layer]) -> Self {
        Self { commands: layers.to_vec(), ..self }
    }

    /// Refuses layers whose commands the operator has not allowed.
    ///
    /// # Errors
    /// Input, naming the first.
    pub fn refuse_commands(&self, layers: &[Layer]) -> Result<()> {
        // All of them, exactly as allowed: a subset of a profile's commands may do something else.
        match layers.first() {
            Some(first) if self.commands != layers => {
                let what = format!(
                    "layer `{}` of the profile runs commands as root, which was not allowed",
                    first.name
                );
                Err(Error::input(what).hint(
                    "read them first: `stacktune check PROFILE` shows each in full; then start it with \
                     --allow-commands, which allows the commands of the profile on that command line only",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether it covers the device of that name and serial.
    pub(crate) fn covers_device(&self, name: &str, serial: Option<&str>) -> bool {
        let word = serial.unwrap_or(name);
        self.devices.iter().any(|device| device == name)
            || !word.is_empty() && self.typed.iter().any(|typed| typed == word)
    }
}
