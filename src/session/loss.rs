//! A target that loses drives while it runs: told at once, and where nothing is left to run on, the
//! classes stop.

use super::classes::Stopped;
use super::run::Session;
use crate::class::Class;
use crate::meter::flags::{ARRAY_FAILED, DEGRADED};
use crate::meter::window::{Flag, Window};

/// What was told of lost drives.
#[derive(Debug, Default)]
pub(super) struct Losses {
    told: Vec<Flag>,
    /// Why the run can't go on.
    failed: Option<String>,
}

impl Session {
    /// Why the target can't be used any more, where it has lost too much.
    pub fn failure(&self) -> Option<&str> {
        self.losses.failed.as_deref()
    }

    /// Tells what a window says of lost drives, once; stops all classes where an array has failed.
    pub(super) fn look_for_losses(&mut self, window: &Window) {
        let losses =
            window.flags.iter().filter(|flag| [DEGRADED, ARRAY_FAILED].contains(&flag.text.as_str()));
        let (new, told): (Vec<Flag>, _) = losses.cloned().partition(|flag| !self.losses.told.contains(flag));
        self.losses.told = [told, new.clone()].concat();
        for flag in new {
            if flag.text == ARRAY_FAILED {
                self.losses.failed = Some(flag.why.clone());
                Class::ALL.into_iter().for_each(|class| self.give_up_class(class, &flag.why));
            }
            self.notice(flag.why);
        }
    }

    fn give_up_class(&mut self, class: Class, why: &str) {
        self.stop_class(class);
        let why = why.trim_end_matches('.').to_owned();
        self.classes.stopped(class, Stopped { why, exhausted: false });
    }
}
