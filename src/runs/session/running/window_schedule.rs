//! The run's clock: when windows end, and what has happened in the current one.

use std::time::SystemTime;

use crate::meter::context::Tuned;
use crate::runs::session::message::Phase;
use crate::stopping;

/// How long windows are, and when they begin to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runs::session) struct Pace {
    pub window_ns: u64,
    pub warmup_ns: u64,
}

/// The clock of a run, which begins at 0.
#[derive(Debug)]
pub(in crate::runs::session) struct Schedule {
    /// The workers' clock when the run's clock is 0.
    pub epoch_ns: u64,
    pub started: SystemTime,
    pub next_window_ns: u64,
    /// Whether the measured load changed in the current window.
    pub turned: bool,
    pub paused: bool,
    /// Whether the run was paused at any time in the current window.
    pub paused_in_window: bool,
    /// Whether the drives are traced.
    pub traced: bool,
    /// Whether they were traced at any time in the current window.
    pub traced_in_window: bool,
    /// Queue and array settings that were turned in the current window.
    pub tuned_in_window: Tuned,
    pub ending: bool,
    /// [`stopping::stops`] when the current window began.
    stops: u64,
}

impl Schedule {
    /// A run whose clock is at `now_ns`.
    pub fn new(epoch_ns: u64, started: SystemTime, now_ns: u64, pace: Pace) -> Self {
        let next_window_ns = window_end_ns(now_ns, now_ns, pace.window_ns, pace.warmup_ns);
        Self {
            epoch_ns,
            started,
            next_window_ns,
            turned: false,
            paused: false,
            paused_in_window: false,
            traced: false,
            traced_in_window: false,
            tuned_in_window: Tuned::default(),
            ending: false,
            stops: stopping::stops(),
        }
    }

    /// Ends a window and begins the next; `turned` if the measured load changes right from its beginning.
    pub fn end_window(&mut self, now_ns: u64, turned: bool, pace: Pace) {
        self.next_window_ns = window_end_ns(self.next_window_ns, now_ns, pace.window_ns, pace.warmup_ns);
        self.turned = turned;
        self.paused_in_window = self.paused;
        self.stops = stopping::stops();
        self.traced_in_window = self.traced;
        self.tuned_in_window = Tuned::default();
    }

    /// Whether the run was paused, or this process stopped, at any time in the current window.
    pub fn has_paused(&self) -> bool {
        self.paused || self.paused_in_window || self.stops != stopping::stops()
    }

    /// Whether no class should run.
    pub fn rests(&self) -> bool {
        self.paused || self.ending
    }

    /// The phase of the run.
    pub fn phase(&self) -> Phase {
        match (self.ending, self.paused) {
            (true, _) => Phase::Ending,
            (_, true) => Phase::Paused,
            _ => Phase::Running,
        }
    }
}

/// Where the next window ends: the grid continues from `due_ns`, where the last window was due to end. If
/// that one was ended early, the rest of its time becomes a window or, if it is less than half a window, part
/// of the next; after a stall (a suspended machine) the missing windows form one long one. The warm-up ends
/// with a window, so that the time after it is as long as requested.
fn window_end_ns(due_ns: u64, now_ns: u64, window_ns: u64, warmup_ns: u64) -> u64 {
    let next_ns = if due_ns.saturating_sub(now_ns) < window_ns / 2 { due_ns + window_ns } else { due_ns };
    let end_ns = next_ns.max(now_ns + window_ns / 2);
    if now_ns < warmup_ns { end_ns.min(warmup_ns) } else { end_ns }
}

#[cfg(test)]
mod tests {
    use super::window_end_ns;

    #[test]
    fn windows_keep_their_grid_and_the_warm_up_ends_with_one() {
        assert_eq!(window_end_ns(0, 0, 1000, 0), 1000);
        assert_eq!(window_end_ns(1000, 1003, 1000, 0), 2000, "ended a little late");
        assert_eq!(window_end_ns(1000, 300, 1000, 0), 1000, "ended early: the rest is a window");
        assert_eq!(window_end_ns(1000, 700, 1000, 0), 2000, "ended early: the rest is too short for one");
        assert_eq!(window_end_ns(1000, 5900, 1000, 0), 6400, "after a stall");
        assert_eq!(window_end_ns(0, 0, 1000, 300), 300);
        assert_eq!(window_end_ns(1000, 1003, 1000, 1500), 1500);
        assert_eq!(window_end_ns(1500, 1501, 1000, 1500), 2500);
    }
}
