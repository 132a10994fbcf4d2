//! A target that loses drives while it runs: told at once, and where nothing is left to run on, the
//! classes stop.

use super::classes::Stopped;
use super::run::Session;
use crate::class::Class;
use crate::host::Lost;
use crate::meter::flag::FlagKind;
use crate::meter::window::{Flag, Window};

/// What was told of lost drives.
#[derive(Debug, Default)]
pub(super) struct Losses {
    told: Vec<Flag>,
    /// How many members the arrays below the target had lost when the last window ended.
    count: u64,
    /// Why the run can't go on.
    failed: Option<String>,
}

impl Session {
    /// Why the target can't be used any more, where it has lost too much.
    pub fn failure(&self) -> Option<&str> {
        self.losses.failed.as_deref()
    }

    /// How many members the arrays below the target have lost.
    pub(super) fn lost(&self) -> u64 {
        self.losses.count
    }

    /// Tells what a window says of lost drives, once; stops all classes where an array has failed.
    pub(super) fn look_for_losses(&mut self, window: &Window) {
        let is_loss = |flag: &&Flag| flag.is(FlagKind::Degraded) || flag.is(FlagKind::ArrayFailed);
        let losses = window.flags.iter().filter(is_loss);
        let (new, told): (Vec<Flag>, _) = losses.cloned().partition(|flag| !self.losses.told.contains(flag));
        self.losses.told = [told, new.clone()].concat();
        let lost = self.meters.lost().iter().map(Lost::count).sum();
        if std::mem::replace(&mut self.losses.count, lost) != lost {
            // The stack survives less now, or more again.
            self.status();
        }
        for flag in new {
            if flag.is(FlagKind::ArrayFailed) {
                self.losses.failed = Some(flag.why.clone());
                Class::ALL.into_iter().for_each(|class| self.give_up_class(class, &flag.why));
            }
            self.notice(flag.why);
        }
    }

    /// A class could not go on with drives that stacktune drives itself: no other can, and the run ends.
    pub(super) fn lose_drives(&mut self, why: &str) {
        if self.settings.leaves_kernel() && self.losses.failed.is_none() {
            self.losses.failed = Some(why.to_owned());
        }
    }

    fn give_up_class(&mut self, class: Class, why: &str) {
        self.stop_class(class);
        let why = why.trim_end_matches('.').to_owned();
        self.classes.stopped(class, Stopped { why, exhausted: false });
    }
}
