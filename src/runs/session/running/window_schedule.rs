//! The run's clock: when windows end, and what has happened within the one that runs.

use std::time::SystemTime;

use crate::meter::context::Tuned;
use crate::runs::session::message::Phase;
use crate::stopping;

/// How long windows are, and when the first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runs::session) struct Pace {
    pub window_ns: u64,
    pub warmup_ns: u64,
}

/// The clock of a run, which begins at 0.
#[derive(Debug)]
pub(in crate::runs::session) struct Schedule {
    /// Where the run's clock stands at 0, on the workers'.
    pub epoch_ns: u64,
    pub started: SystemTime,
    pub next_window_ns: u64,
    /// Whether what is measured has changed in the window that runs.
    pub turned: bool,
    pub paused: bool,
    /// Whether the run was paused at any time in the window that runs.
    pub paused_in_window: bool,
    /// Whether the drives are traced.
    pub traced: bool,
    /// Whether they were at any time in the window that runs.
    pub traced_in_window: bool,
    /// What the run turned of queues and of the array in the window that runs.
    pub tuned_in_window: Tuned,
    pub ending: bool,
    /// [`stopping::stops`] as the window began that runs.
    stops: u64,
}

impl Schedule {
    /// A run whose clock stands at `now_ns`.
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

    /// A window ends, and the next begins; `turned` if what is measured changes in it from its beginning.
    pub fn end_window(&mut self, now_ns: u64, turned: bool, pace: Pace) {
        self.next_window_ns = window_end_ns(self.next_window_ns, now_ns, pace.window_ns, pace.warmup_ns);
        self.turned = turned;
        self.paused_in_window = self.paused;
        self.stops = stopping::stops();
        self.traced_in_window = self.traced;
        self.tuned_in_window = Tuned::default();
    }

    /// Whether the run was paused, or this process stopped, at any time in the window that runs.
    pub fn has_paused(&self) -> bool {
        self.paused || self.paused_in_window || self.stops != stopping::stops()
    }

    /// Whether no class is to run.
    pub fn rests(&self) -> bool {
        self.paused || self.ending
    }

    /// What the run is doing.
    pub fn phase(&self) -> Phase {
        match (self.ending, self.paused) {
            (true, _) => Phase::Ending,
            (_, true) => Phase::Paused,
            _ => Phase::Running,
        }
    }
}

/// Where the window after this moment ends: the grid goes on from `due_ns`, where the last one was to
/// end. A window that was ended early leaves the rest of its time to one of its own or, where that is
/// less than half a window, to the next; after a stall (a suspended machine) the missing windows are
/// one long one. The warm-up ends with a window, so that what follows is as long as was asked for.
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
