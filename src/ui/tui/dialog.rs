//! What can lie over the screen.

use super::ProfileEntry;
use super::consent::Consent;
use super::planned::Agreement;

/// A dialog.
#[derive(Debug, Clone, PartialEq)]
pub enum Dialog {
    /// The value of a knob is typed.
    Edit {
        /// The knob's path.
        knob: &'static str,
        /// What is typed.
        input: String,
        /// Why it was not accepted.
        error: Option<String>,
    },
    /// The name to save under is typed.
    Save {
        /// What is typed.
        input: String,
        /// Why it was not accepted.
        error: Option<String>,
    },
    /// A profile of that name exists: replace it?
    Replace {
        /// The name.
        name: String,
    },
    /// The list of profiles; none while it is read.
    Open {
        /// The profiles.
        entries: Option<Vec<ProfileEntry>>,
        /// The chosen one.
        chosen: usize,
    },
    /// What devices hold would be destroyed.
    Consent(Consent),
    /// What it takes to build the target anew.
    Plan(Agreement),
    /// Why the run can't go on, scrolled by so many lines.
    Failed {
        /// Lines above the screen.
        top: usize,
    },
    /// What becomes of a stack that stands?
    Leave,
    /// The help, scrolled by so many lines.
    Help {
        /// Lines above the screen.
        top: usize,
    },
    /// The host, scrolled by so many lines.
    Host {
        /// Lines above the screen.
        top: usize,
    },
    /// Whether the figures can be believed, scrolled by so many lines.
    Believe {
        /// Lines above the screen.
        top: usize,
    },
}

impl Dialog {
    /// Whether the run waits for its answer.
    pub fn is_awaited(&self) -> bool {
        match self {
            Dialog::Consent(_) => true,
            Dialog::Plan(asked) => asked.is_awaited(),
            _ => false,
        }
    }

    /// Whether it takes keys where the screen is too small to show it: to be closed, or to quit.
    pub fn outlives_small_screens(&self) -> bool {
        matches!(self, Dialog::Consent(_) | Dialog::Plan(_) | Dialog::Leave)
    }
}
