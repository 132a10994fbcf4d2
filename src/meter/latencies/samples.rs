//! A latency's samples as the few distinct values that occur, to pool those of several windows.

use hdrhistogram::Histogram;

use super::latency::SAMPLES_BEYOND;

/// Samples by value; a value stands for all samples in its histogram bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// Values in nanoseconds with their counts, ascending.
    counts: Vec<(u64, u64)>,
    count: u64,
}

impl Samples {
    /// The samples of a histogram; `max_ns` is the exact maximum, if known.
    pub fn of(histogram: &Histogram<u64>, max_ns: Option<u64>) -> Self {
        let max_ns = max_ns.unwrap_or(u64::MAX);
        let value = |ns| histogram.highest_equivalent(ns).min(max_ns);
        let counts = histogram
            .iter_recorded()
            .map(|at| (value(at.value_iterated_to()), at.count_at_value()))
            .collect();
        Self { counts, count: histogram.len() }
    }

    /// All of these together.
    pub fn pooled<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut pooled = Self::default();
        for samples in all {
            pooled.counts.extend_from_slice(&samples.counts);
            pooled.count += samples.count;
        }
        pooled.counts.sort_unstable();
        pooled.counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        pooled
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest sample.
    pub fn max(&self) -> Option<u64> {
        self.counts.last().map(|(value_ns, _)| *value_ns)
    }

    /// The percentile with one in `one_in` samples beyond it; none if fewer than [`SAMPLES_BEYOND`] are.
    pub fn percentile(&self, one_in: u64) -> Option<u64> {
        let beyond = self.count / one_in;
        (beyond >= SAMPLES_BEYOND).then(|| self.ranked(self.count - beyond))
    }

    /// The same from any number of samples, interpolated where it lies between two: how many samples of a
    /// distribution there are does not shift it on average.
    pub fn level(&self, one_in: u64) -> Option<f64> {
        let rank = (self.count + 1) as f64 * (1.0 - 1.0 / one_in as f64);
        let [low, high] = [rank.floor(), rank.ceil()].map(|rank| (rank as u64).clamp(1, self.count.max(1)));
        let [low, high] = [low, high].map(|rank| self.ranked(rank) as f64);
        (self.count > 0).then(|| low + (high - low) * rank.fract())
    }

    /// The sample of this rank: that many are at or below it, itself included.
    fn ranked(&self, rank: u64) -> u64 {
        let mut passed = 0;
        let found = self.counts.iter().find(|(_, count)| {
            passed += count;
            passed >= rank
        });
        found.map_or(0, |(ns, _)| *ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::latencies::latency::summarize;
    use crate::meter::source::LatencyDelta;

    fn delta(values: impl IntoIterator<Item = u64>) -> LatencyDelta {
        let mut delta = LatencyDelta::default();
        values.into_iter().for_each(|ns| delta.add(ns));
        delta
    }

    fn samples(delta: &LatencyDelta) -> Samples {
        Samples::of(&delta.histogram, Some(delta.max_ns))
    }

    #[test]
    fn pooled_samples_have_the_percentiles_of_one_histogram() {
        let values = |part: u64| (0..700).map(move |n| 1 + (n * 7919 + part * 13) % 5_000_017);
        let all = summarize(&delta((0..3).flat_map(values))).unwrap();
        let parts: Vec<_> = (0..3).map(|part| samples(&delta(values(part)))).collect();
        let pooled = Samples::pooled(&parts);
        assert_eq!(pooled.count(), 2100);
        assert_eq!([2, 10, 100, 1000].map(|n| pooled.percentile(n)), [all.p50, all.p90, all.p99, all.p999]);
        assert_eq!(parts[0].percentile(100), None, "seven beyond");
        assert_eq!((Samples::default().percentile(2), Samples::default().level(2)), (None, None));
    }

    #[test]
    fn the_level_of_few_samples_lies_between_them() {
        let of = |values: &[u64]| samples(&delta(values.iter().copied())).level(2);
        assert_eq!((of(&[10]), of(&[10, 20]), of(&[10, 20, 90])), (Some(10.0), Some(15.0), Some(20.0)));
        // The same distribution, evenly spread, in a few samples and in many.
        let spread = |n: u64| samples(&delta((1..=n).map(|at| at * 1_000_000 / (n + 1)))).level(100).unwrap();
        assert!((spread(300) / spread(30_000) - 1.0).abs() < 2e-3, "{} {}", spread(300), spread(30_000));
    }
}
