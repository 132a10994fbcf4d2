//! A target that loses drives during a run: the loss is reported at once, and if nothing is left to run on,
//! the classes stop.

use crate::meter::flag::FlagKind;
use crate::meter::window::{Flag, Window};

/// Known losses of drives.
#[derive(Debug, Default)]
pub(in crate::runs::session) struct Losses {
    reported: Vec<Flag>,
    /// How many members the arrays below the target had lost when the last window ended.
    pub count: u64,
    /// Why the run can't go on.
    pub failed: Option<String>,
}

impl Losses {
    /// The window's flags about lost drives that were not reported before.
    pub fn new_in(&mut self, window: &Window) -> Vec<Flag> {
        let is_loss = |flag: &&Flag| flag.is(FlagKind::Degraded) || flag.is(FlagKind::ArrayFailed);
        let losses = window.flags.iter().filter(is_loss);
        let (new, known): (Vec<Flag>, _) = losses.cloned().partition(|flag| !self.reported.contains(flag));
        self.reported = [known, new.clone()].concat();
        new
    }

    /// Records how many members are lost now. Returns whether that has changed.
    pub fn count_is(&mut self, lost: u64) -> bool {
        std::mem::replace(&mut self.count, lost) != lost
    }
}
