//! Open-loop pacing: when a class with a rate means to start each I/O, whether or not earlier ones are done.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::meter::counts::cell::WorkerCell;
use crate::settings::Arrival;
use crate::settings::jobs::Job;
use crate::units::SECOND_NS;

/// Intents older than this are dropped and counted as missed.
pub const LATE_NS_MAX: u64 = SECOND_NS;
/// Spacing is kept in fractions of a nanosecond, so that it is exact over years.
const FRACTION_BITS: u32 = 32;

/// The intended starts of one worker.
#[derive(Debug)]
pub struct Pacer {
    /// In 2⁻³² ns.
    next: u128,
    spacing: u128,
    /// How long a start may wait for later ones that share its sleep, in 2⁻³² ns.
    together: u128,
    /// Starts intended up to this time are issued at once: they share the sleep that ended then.
    open_ns: u64,
    poisson: Option<SmallRng>,
}

impl Pacer {
    /// A worker's pacer, if the job has a rate. The job's workers share that rate, with staggered starts.
    pub fn of(job: &Job, start_ns: u64, worker: u64, seed: u64) -> Option<Self> {
        let (rate, workers) = (job.rate_bytes_per_s?, u128::from(job.workers));
        let ns = u128::from(job.page_bytes) * u128::from(SECOND_NS) * workers;
        let spacing = ((ns << FRACTION_BITS) / u128::from(rate.max(1))).max(1);
        let phase = spacing * u128::from(worker) / workers;
        let others = (u128::from(job.pace_ns) << FRACTION_BITS) / spacing;
        Some(Self {
            next: (u128::from(start_ns) << FRACTION_BITS) + phase,
            spacing,
            together: others * spacing,
            open_ns: 0,
            poisson: (job.arrival == Arrival::Poisson).then(|| SmallRng::seed_from_u64(seed)),
        })
    }

    /// The next intended start.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        (self.next >> FRACTION_BITS) as u64
    }

    /// The next intended start, if it should be issued now. A worker woken early by a completion does not
    /// break up a group of starts that share a sleep.
    #[inline]
    pub fn due(&mut self, now_ns: u64) -> Option<u64> {
        if self.wake_ns() <= now_ns {
            self.open_ns = now_ns;
        }
        Some(self.next_ns()).filter(|next_ns| *next_ns <= self.open_ns)
    }

    /// When to wake for the next intended start: once those that follow within the bound are due too (for
    /// random arrivals, their average number). A sleep costs more than an I/O, so they share one.
    #[inline]
    pub fn wake_ns(&self) -> u64 {
        let next_ns = self.next_ns();
        if next_ns <= self.open_ns {
            return next_ns;
        }
        ((self.next + self.together) >> FRACTION_BITS) as u64
    }

    /// The mean time between two starts.
    pub fn spacing_ns(&self) -> u64 {
        (self.spacing >> FRACTION_BITS) as u64
    }

    /// Moves on to the next intended start.
    #[inline]
    pub fn advance(&mut self) {
        self.next += match &mut self.poisson {
            None => self.spacing,
            // Inverse transform of an exponential gap; the argument is never 0.
            Some(rng) => (-(1.0 - rng.random::<f64>()).ln() * self.spacing as f64) as u128,
        };
    }

    /// Delays all intended starts by `by_ns`.
    pub fn postpone(&mut self, by_ns: u64) {
        self.next += u128::from(by_ns) << FRACTION_BITS;
    }

    /// Drops the intents that are too late, and counts them as missed.
    #[inline]
    pub fn drop_late(&mut self, now_ns: u64, cell: &WorkerCell) {
        self.drop_before(now_ns.saturating_sub(LATE_NS_MAX), now_ns, cell);
    }

    /// Drops the intents before `ns`, and counts them as missed after waiting until `now_ns`.
    #[inline]
    pub fn drop_before(&mut self, ns: u64, now_ns: u64, cell: &WorkerCell) {
        while self.next_ns() < ns {
            cell.intended.add(1);
            cell.miss(now_ns.saturating_sub(self.next_ns()));
            self.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::class::Class;
    use crate::meter::source::{Delta, Source as _, WorkerSource};
    use crate::settings::Settings;
    use crate::settings::jobs::jobs;

    fn job(arrival: Arrival) -> Job {
        let mut settings = Settings::default();
        let scan = &mut settings.classes[Class::Scan.index()];
        (scan.rate_bytes_per_s, scan.arrival, scan.threads) = (Some(250_000_000), arrival, 2);
        jobs(&settings)[Class::Scan.index()].clone()
    }

    fn pacer(arrival: Arrival, worker: u64) -> Pacer {
        Pacer::of(&job(arrival), 0, worker, 7).unwrap()
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
    fn starts_within_the_bound_share_a_sleep_however_they_are_handed_over() {
        let waits_ns = |rate_bytes_per_s, batch, pace_ns| {
            let job = Job {
                rate_bytes_per_s: Some(rate_bytes_per_s),
                batch,
                pace_ns,
                workers: 1,
                ..job(Arrival::Constant)
            };
            let pacer = Pacer::of(&job, SECOND_NS, 0, 7).unwrap();
            assert_eq!(pacer.next_ns(), SECOND_NS);
            pacer.wake_ns() - SECOND_NS
        };
        // 10 µs apart, 30 µs apart, and further apart than the bound.
        assert_eq!(waits_ns(1_638_400_000, 32, 55_000), 50_000);
        assert_eq!(waits_ns(546_133_333, 32, 55_000), 30_000);
        assert_eq!(waits_ns(250_000_000, 32, 55_000), 0);
        assert_eq!(
            [(1, 55_000), (3, 55_000), (32, 0)].map(|(batch, pace)| waits_ns(1_638_400_000, batch, pace)),
            [50_000, 50_000, 0]
        );
    }

    #[test]
    fn those_made_together_are_made_when_the_last_is_due_and_not_before() {
        let job = Job { pace_ns: 300_000, ..job(Arrival::Constant) };
        let mut pacer = Pacer::of(&job, SECOND_NS, 0, 7).unwrap();
        let spacing_ns = pacer.spacing_ns(); // 131 µs, so three share a sleep
        assert_eq!(pacer.due(SECOND_NS + 2 * spacing_ns - 1), None);
        let woken_ns = SECOND_NS + 2 * spacing_ns + 7;
        let mut made = Vec::new();
        while let Some(intended_ns) = pacer.due(woken_ns) {
            assert!(pacer.wake_ns() <= woken_ns, "no sleep between them");
            made.push((intended_ns - SECOND_NS).div_ceil(spacing_ns));
            pacer.advance();
        }
        assert_eq!(made, [0, 1, 2]);
        assert_eq!(pacer.due(SECOND_NS + 3 * spacing_ns + 7), None, "the next ones are a group of their own");
        assert!(pacer.wake_ns().abs_diff(SECOND_NS + 5 * spacing_ns) <= 5);
    }

    #[test]
    fn only_what_is_over_a_second_late_is_missed() {
        let mut pacer = pacer(Arrival::Constant, 0);
        let spacing_ns = 131_072; // 16 KiB at 125 MB/s
        let cell = WorkerCell::new(Class::Scan, true, 1);
        pacer.drop_late(SECOND_NS, &cell);
        assert_eq!(cell.missed.get(), 0);
        pacer.drop_late(SECOND_NS + 10 * spacing_ns, &cell);
        assert_eq!((cell.intended.get(), cell.missed.get()), (10, 10));
        assert!(pacer.next_ns().abs_diff(10 * spacing_ns) <= 10);
    }

    #[test]
    fn what_is_missed_counts_in_the_response_latency_with_what_it_waited() {
        // A drive hangs for five seconds: clients with starts in the first four waited one to five seconds.
        let cell = Arc::new(WorkerCell::new(Class::Scan, true, 1));
        pacer(Arrival::Constant, 0).drop_late(5 * SECOND_NS, &cell);
        let mut delta = Delta::new(1);
        WorkerSource::new(cell).collect(&mut delta);
        let response = &delta.response.histogram;
        assert_eq!([delta.missed, response.len()], [delta.intended; 2]);
        let expected = [(0.25, 2), (0.5, 3), (0.75, 4), (1.0, 5)];
        for (quantile, s) in expected {
            let at_ns = response.value_at_quantile(quantile);
            assert!(at_ns.abs_diff(s * SECOND_NS) < SECOND_NS / 100, "{quantile}: {at_ns}");
        }
    }
}
