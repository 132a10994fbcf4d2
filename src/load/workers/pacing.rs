//! Open loop: intended starts of a class with a rate, independent of when I/Os complete.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::settings::Arrival;
use crate::units::SECOND_NS;

/// Intents older than this are dropped and counted as missed.
pub const LATE_NS_MAX: u64 = SECOND_NS;
/// Fractions of a nanosecond: spacing is exact over years.
const FRACTION_BITS: u32 = 32;

/// The intended starts of one worker.
#[derive(Debug)]
pub struct Pacer {
    /// In 2⁻³² ns.
    next: u128,
    spacing: u128,
    poisson: Option<SmallRng>,
}

impl Pacer {
    /// One of `workers` that share a rate; their intents are spread evenly.
    pub fn new(
        start_ns: u64,
        page_bytes: u64,
        rate_bytes_per_s: u64,
        (worker, workers): (u64, u64),
        arrival: Arrival,
        seed: u64,
    ) -> Self {
        let ns = u128::from(page_bytes) * u128::from(SECOND_NS) * u128::from(workers);
        let spacing = (ns << FRACTION_BITS) / u128::from(rate_bytes_per_s.max(1));
        let phase = spacing * u128::from(worker) / u128::from(workers);
        Self {
            next: (u128::from(start_ns) << FRACTION_BITS) + phase,
            spacing: spacing.max(1),
            poisson: (arrival == Arrival::Poisson).then(|| SmallRng::seed_from_u64(seed)),
        }
    }

    /// The next intended start.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        (self.next >> FRACTION_BITS) as u64
    }

    /// The time between two, on average.
    pub fn spacing_ns(&self) -> u64 {
        (self.spacing >> FRACTION_BITS) as u64
    }

    /// Advances to the one after it.
    #[inline]
    pub fn advance(&mut self) {
        self.next += match &mut self.poisson {
            None => self.spacing,
            // Inverse transform of an exponential gap; the argument is never 0.
            Some(rng) => (-(1.0 - rng.random::<f64>()).ln() * self.spacing as f64) as u128,
        };
    }

    /// Delays all intents by that much.
    pub fn postpone(&mut self, by_ns: u64) {
        self.next += u128::from(by_ns) << FRACTION_BITS;
    }

    /// Drops the intents that are too late and returns their number.
    #[inline]
    pub fn drop_late(&mut self, now_ns: u64) -> u64 {
        self.drop_before(now_ns.saturating_sub(LATE_NS_MAX))
    }

    /// Drops the intents before that time and returns their number.
    #[inline]
    pub fn drop_before(&mut self, ns: u64) -> u64 {
        let mut missed = 0;
        while self.next_ns() < ns {
            self.advance();
            missed += 1;
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(arrival: Arrival, worker: u64) -> Pacer {
        Pacer::new(0, 16 << 10, 250_000_000, (worker, 2), arrival, 7)
    }

    fn intents_within(pacer: &mut Pacer, end_ns: u64) -> u64 {
        let mut n = 0;
        while pacer.next_ns() < end_ns {
            pacer.advance();
            n += 1;
        }
        n
    }

    #[test]
    fn intents_of_all_workers_are_the_rate_of_the_class() {
        let per_hour = 250_000_000 * 3600 / (16 << 10);
        for (arrival, tolerance) in [(Arrival::Constant, 1), (Arrival::Poisson, per_hour / 500)] {
            let n: u64 = (0..2).map(|w| intents_within(&mut pacer(arrival, w), 3600 * SECOND_NS)).sum();
            assert!(n.abs_diff(per_hour) <= tolerance, "{arrival:?}: {n} of {per_hour}");
        }
    }

    #[test]
    fn only_what_is_over_a_second_late_is_missed() {
        let mut pacer = pacer(Arrival::Constant, 0);
        let spacing_ns = 131_072; // 16 KiB at 125 MB/s
        assert_eq!(pacer.drop_late(SECOND_NS), 0);
        let missed = pacer.drop_late(SECOND_NS + 10 * spacing_ns);
        assert_eq!(missed, 10);
        assert!(pacer.next_ns().abs_diff(10 * spacing_ns) <= 10);
    }
}
