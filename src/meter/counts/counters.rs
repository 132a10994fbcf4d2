//! Counts that interfaces keep besides their I/O.

use std::fmt;
use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Polls of completion queues so far, and the time they took. Sleeping between polls does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Polls {
    /// Number of polls, the empty ones included.
    pub polls: u64,
    /// Polls that came back empty.
    pub empty_polls: u64,
    /// Time spent polling.
    pub polling_ns: u64,
    /// Time spent in polls that came back empty.
    pub empty_polling_ns: u64,
}

impl AddAssign for Polls {
    fn add_assign(&mut self, other: Self) {
        self.polls += other.polls;
        self.empty_polls += other.empty_polls;
        self.polling_ns += other.polling_ns;
        self.empty_polling_ns += other.empty_polling_ns;
    }
}

impl Sub for Polls {
    type Output = Self;

    /// The difference; counters read while they change may be slightly inconsistent.
    fn sub(self, before: Self) -> Self {
        Self {
            polls: self.polls.saturating_sub(before.polls),
            empty_polls: self.empty_polls.saturating_sub(before.empty_polls),
            polling_ns: self.polling_ns.saturating_sub(before.polling_ns),
            empty_polling_ns: self.empty_polling_ns.saturating_sub(before.empty_polling_ns),
        }
    }
}

impl Polls {
    /// The share of the polling time spent in empty polls, 0 to 1; none without polls.
    pub fn empty_share(&self) -> Option<f64> {
        (self.polling_ns > 0).then(|| self.empty_polling_ns as f64 / self.polling_ns as f64)
    }

    /// Counts a poll, with the number of completions it found and the time it took.
    #[inline]
    pub fn count(&mut self, found: u32, took_ns: u64) {
        self.polls += 1;
        self.polling_ns += took_ns;
        if found == 0 {
            self.empty_polls += 1;
            self.empty_polling_ns += took_ns;
        }
    }
}

/// An interface's actions on commands that did not complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Incidents {
    /// Commands that did not complete in time, and were to be aborted.
    pub timeouts: u64,
    /// Resets of a controller, each counted only by the worker that requested it.
    pub resets: u64,
}

impl fmt::Display for Incidents {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let commands = if self.timeouts == 1 { "command" } else { "commands" };
        let resets = if self.resets == 1 { "reset of a controller" } else { "resets of controllers" };
        write!(f, "{} {commands} timed out, {} {resets}", self.timeouts, self.resets)
    }
}

impl AddAssign for Incidents {
    fn add_assign(&mut self, other: Self) {
        self.timeouts += other.timeouts;
        self.resets += other.resets;
    }
}

impl Sub for Incidents {
    type Output = Self;

    /// The difference.
    fn sub(self, before: Self) -> Self {
        Self {
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            resets: self.resets.saturating_sub(before.resets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_empty_polls_is_part_of_the_time() {
        let mut polls = Polls::default();
        for (found, took_ns) in [(0, 100), (2, 50), (0, 25)] {
            polls.count(found, took_ns);
        }
        let expected = Polls { polls: 3, empty_polls: 2, polling_ns: 175, empty_polling_ns: 125 };
        assert_eq!(polls, expected);
    }
}
