//! What an interface that polls has seen of it.

use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

use super::clock;

/// Looks at completion queues so far, and the time that they took. Time asleep between two looks does
/// not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polls {
    /// Looks.
    pub polls: u64,
    /// Looks that found nothing.
    pub empty_polls: u64,
    /// Time spent looking.
    pub polling_ns: u64,
    /// Time spent looking that found nothing.
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

    /// What came since; counters that are read while they change may be a little behind each other.
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
    /// The share of the time spent looking that found nothing, 0 to 1; none where nothing was looked at.
    pub fn empty_share(&self) -> Option<f64> {
        (self.polling_ns > 0).then(|| self.empty_polling_ns as f64 / self.polling_ns as f64)
    }

    /// Counts a look that took so long.
    #[inline]
    pub fn count(&mut self, found: u32, took_ns: u64) {
        self.polls += 1;
        self.polling_ns += took_ns;
        if found == 0 {
            self.empty_polls += 1;
            self.empty_polling_ns += took_ns;
        }
    }

    /// Looks again and again until a look says that it is enough, or that time has come, and sleeps so
    /// long after each that found nothing; 0 is not at all. `look` is told the time, and returns how many
    /// it found and whether that is enough.
    ///
    /// # Errors
    /// The first that a look tells.
    #[inline]
    pub fn look_until<E>(
        &mut self,
        sleep_ns: u64,
        until_ns: Option<u64>,
        mut look: impl FnMut(u64) -> Result<(u32, bool), E>,
    ) -> Result<(), E> {
        let mut from_ns = clock::now_ns();
        loop {
            let (found, enough) = look(from_ns)?;
            let now_ns = clock::now_ns();
            self.count(found, now_ns - from_ns);
            if enough || until_ns.is_some_and(|until_ns| now_ns >= until_ns) {
                return Ok(());
            }
            from_ns = now_ns;
            if found == 0 && sleep_ns > 0 {
                from_ns = rest(now_ns, sleep_ns, until_ns);
            } else if found == 0 {
                std::hint::spin_loop();
            }
        }
    }
}

/// Sleeps between two looks, but not beyond the time for which the worker waits. Returns when it woke.
pub fn rest(now_ns: u64, sleep_ns: u64, until_ns: Option<u64>) -> u64 {
    let wake_ns = now_ns + sleep_ns;
    clock::sleep_until(until_ns.map_or(wake_ns, |until_ns| wake_ns.min(until_ns)));
    clock::now_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_found_nothing_is_part_of_the_time() {
        let mut polls = Polls::default();
        for (found, took_ns) in [(0, 100), (2, 50), (0, 25)] {
            polls.count(found, took_ns);
        }
        let expected = Polls { polls: 3, empty_polls: 2, polling_ns: 175, empty_polling_ns: 125 };
        assert_eq!(polls, expected);
    }
}
