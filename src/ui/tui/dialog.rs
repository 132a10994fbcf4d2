//! The dialogs that can cover the screen.

use std::path::PathBuf;

use super::consent::Consent;
use super::filter::Filter;
use super::planned::Agreement;
use super::profiles::ProfileEntry;
use super::shelf::Shelf;
use super::theme::Theme;
use super::themes::ThemeEntry;
use super::typed::Typed;
use crate::runs::session::Candidate;
use crate::settings::knobs::StackLayer;

/// A dialog.
#[derive(Debug, Clone, PartialEq)]
pub enum Dialog {
    /// Typing the value of a knob.
    Edit {
        /// The knob's path.
        knob: &'static str,
        /// What is typed.
        input: Typed,
        /// Why it was not accepted.
        error: Option<String>,
    },
    /// Picking one of a knob's values.
    Pick {
        /// The knob's path.
        knob: &'static str,
        /// The chosen one.
        chosen: usize,
        /// The list's filter.
        filter: Filter,
    },
    /// Ticking the drives of the target.
    Drives {
        /// Those of the host; none while they are being examined.
        found: Option<Vec<Candidate>>,
        /// The names of the ticked ones, in that order.
        ticked: Vec<String>,
        /// The chosen one.
        chosen: usize,
        /// The list's filter.
        filter: Filter,
    },
    /// Choosing a theme, which the screen shows at once.
    Themes {
        /// The built-in ones, and then those of the folder.
        entries: Vec<ThemeEntry>,
        /// The chosen one.
        chosen: usize,
        /// The list's filter.
        filter: Filter,
        /// The palette from before.
        before: Theme,
    },
    /// Typing the name to save under.
    Save {
        /// What is typed.
        input: Typed,
        /// Why it was not accepted.
        error: Option<String>,
    },
    /// A profile of that name exists: replace it?
    Replace {
        /// The name.
        name: String,
    },
    /// The list of profiles; none while it is being read.
    Open {
        /// The profiles.
        entries: Option<Vec<ProfileEntry>>,
        /// The chosen one.
        chosen: usize,
        /// The list's filter.
        filter: Filter,
    },
    /// Searching for a knob; the list of knobs shows what is found.
    Search {
        /// What is typed.
        input: Typed,
        /// The layer and the knob that were chosen before.
        before: (StackLayer, &'static str),
    },
    /// Running an action by its name.
    Palette {
        /// What is typed.
        input: Typed,
        /// The chosen one of the actions that it finds.
        chosen: usize,
    },
    /// Consent to destroying what devices hold.
    Consent(Consent),
    /// The plan for rebuilding the target.
    Plan(Agreement),
    /// Why the run can't continue.
    Failed {
        /// Lines above the screen.
        top: usize,
    },
    /// Choosing the figure that decides between two values of a knob.
    Duel {
        /// The line of the ledger whose turn it is about.
        line: u64,
        /// The knob's path.
        knob: String,
        /// The values before and after that turn, as in a profile.
        values: [String; 2],
        /// The chosen figure, among all.
        chosen: usize,
    },
    /// The recordings, to be looked at and compared.
    Shelf(Shelf),
    /// A recording's summary, or a comparison.
    Report {
        /// What it is about.
        title: String,
        /// The folders whose text is waited for, or was.
        dirs: Vec<PathBuf>,
        /// Its text; none while it is being read.
        text: Option<String>,
        /// Lines above the screen.
        top: usize,
        /// The list that it was chosen from, if it was.
        shelf: Option<Shelf>,
    },
    /// Choosing what becomes of the stack that is in place.
    Leave,
    /// The help.
    Help {
        /// Lines above the screen.
        top: usize,
    },
    /// The host.
    Host {
        /// Lines above the screen.
        top: usize,
    },
    /// Whether the figures can be believed.
    Believe {
        /// Lines above the screen.
        top: usize,
    },
    /// How the contract with drives is kept.
    Contract {
        /// Lines above the screen.
        top: usize,
    },
}

impl Dialog {
    /// Whether the run is waiting for its answer.
    pub fn is_awaited(&self) -> bool {
        match self {
            Dialog::Consent(_) => true,
            Dialog::Plan(asked) => asked.is_awaited(),
            _ => false,
        }
    }

    /// Whether it takes keys (to be closed, or to quit) even if the screen is too small to show it.
    pub fn outlives_small_screens(&self) -> bool {
        matches!(self, Dialog::Consent(_) | Dialog::Plan(_) | Dialog::Leave)
    }
}
