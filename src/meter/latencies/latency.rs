//! Percentiles of a latency, reported only if enough samples support them.

use hdrhistogram::Histogram;

use crate::meter::source::{Delta, LatencyDelta};
use crate::meter::window::{ClassHistograms, Latency};

/// Samples that must lie beyond a percentile for it to be reported.
pub const SAMPLES_BEYOND: u64 = 10;

/// The percentiles, as one in how many samples lies beyond each.
const ONE_IN: [u64; 7] = [2, 10, 100, 1000, 10_000, 100_000, 1_000_000];

/// Percentiles, mean and maximum; none if nothing was recorded.
///
/// A percentile is the upper end of its histogram bucket (three digits), never above the maximum.
pub fn summarize(delta: &LatencyDelta) -> Option<Latency> {
    let histogram = &delta.histogram;
    let count = histogram.len();
    if count == 0 {
        return None;
    }
    let max = maximum(histogram, delta.max_ns);
    let [p50, p90, p99, p999, p9999, p99999, p999999] =
        percentiles(histogram).map(|p| p.map(|ns| ns.min(max)));
    let mean = Some(histogram.mean().min(max as f64));
    Some(Latency { count, mean, p50, p90, p99, p999, p9999, p99999, p999999, max: Some(max) })
}

/// The p99, if enough samples support it.
pub fn p99_ns(histogram: &Histogram<u64>) -> Option<u64> {
    let [_, _, p99, ..] = percentiles(histogram);
    p99
}

/// A class's histograms, no larger than their highest value needs.
pub fn histograms(delta: &Delta) -> ClassHistograms {
    let fitted = |latency: &LatencyDelta| {
        if latency.histogram.is_empty() {
            return None;
        }
        let mut fitted = Histogram::new(3).ok()?; // grows by itself
        fitted.add(&latency.histogram).ok()?;
        Some(fitted)
    };
    ClassHistograms {
        service: fitted(&delta.service),
        response: fitted(&delta.response),
        write: fitted(&delta.write),
        flush: fitted(&delta.flush),
    }
}

/// The exact maximum, limited to the highest bucket: the two are read one after the other, so a sample
/// recorded in between may be in only one of them.
fn maximum(histogram: &Histogram<u64>, max_ns: u64) -> u64 {
    let highest = histogram.max();
    max_ns.clamp(histogram.lowest_equivalent(highest), histogram.highest_equivalent(highest))
}

/// All percentiles in one pass over the buckets.
fn percentiles(histogram: &Histogram<u64>) -> [Option<u64>; 7] {
    let count = histogram.len();
    let mut found = [None; 7];
    let mut passed = 0;
    let mut next = 0;
    for bucket in histogram.iter_recorded() {
        passed += bucket.count_at_value();
        while next < ONE_IN.len() {
            let one_in = ONE_IN[next];
            if count / one_in < SAMPLES_BEYOND {
                return found; // as for all further percentiles
            }
            // The smallest value with at least (1 - 1/one_in) of the samples at or below it.
            if passed < count - count / one_in {
                break;
            }
            found[next] = Some(histogram.highest_equivalent(bucket.value_iterated_to()));
            next += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = u64>) -> LatencyDelta {
        let mut delta = LatencyDelta::default();
        for ns in values {
            delta.histogram.record(ns).unwrap();
            delta.max_ns = delta.max_ns.max(ns);
        }
        delta
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let holds = |n: u64| {
            let mut delta = of(0..n.min(50_000));
            // The rest in one call.
            delta.histogram.record_n(50_000, n.saturating_sub(50_000)).unwrap();
            let Latency { p50, p90, p99, p999, p9999, p99999, p999999, .. } = summarize(&delta).unwrap();
            let all = [p50, p90, p99, p999, p9999, p99999, p999999];
            all.iter().filter(|p| p.is_some()).count()
        };
        for (at, n) in
            [(1, 20), (2, 100), (3, 1000), (4, 10_000), (5, 100_000), (6, 1_000_000), (7, 10_000_000)]
        {
            assert_eq!(holds(n), at, "of {n}");
            assert_eq!(holds(n - 1), at - 1, "of {}", n - 1);
        }
        assert!(summarize(&of([])).is_none());
    }

    #[test]
    fn nothing_lies_above_the_exact_maximum() {
        let latency = summarize(&of(std::iter::repeat_n(1_234_567, 100))).unwrap();
        assert_eq!(
            (latency.p50, latency.p90, latency.max),
            (Some(1_234_567), Some(1_234_567), Some(1_234_567))
        );
        assert!(latency.mean.unwrap() <= 1_234_567.0);
    }

    #[test]
    fn the_maximum_is_limited_to_the_histograms_highest_bucket() {
        let mut late = of([5000]);
        late.max_ns = 0;
        assert_eq!(summarize(&late).unwrap().max, Some(5000 / 4 * 4));
        late.max_ns = 900_000;
        assert_eq!(summarize(&late).unwrap().max, Some(late.histogram.highest_equivalent(5000)));
    }

    proptest! {
        #[test]
        fn percentiles_are_the_histograms_own(values in prop::collection::vec(0u64..1 << 36, 20..3000)) {
            let delta = of(values.into_iter().map(|ns| ns.min(60_000_000_000)));
            let latency = summarize(&delta).unwrap();
            for (ours, q) in [(latency.p50, 0.5), (latency.p90, 0.9), (latency.p99, 0.99)] {
                if let Some(ours) = ours {
                    prop_assert_eq!(ours, delta.histogram.value_at_quantile(q).min(delta.max_ns));
                }
            }
        }
    }
}
