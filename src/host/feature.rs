//! Something that the host has, or the reason why not.

use serde::Serialize;

/// Something that the host has, or the reason why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum Feature {
    /// Present.
    Present,
    /// Missing, with the reason as a sentence without a full stop.
    Missing(String),
}

impl Feature {
    /// The reason why it is missing.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Feature::Present => None,
            Feature::Missing(reason) => Some(reason),
        }
    }
}
