//! A histogram of the log, as its occupied buckets: a window has few of them, while its histogram has tens of
//! thousands of counts.

use hdrhistogram::Histogram;

use crate::meter::latencies::latency::SAMPLES_BEYOND;
use crate::meter::window::Latency;

/// The header of an unpacked histogram: cookie, length of the counts, offset, digits (4 bytes each), lowest and
/// highest value, ratio (8 each).
pub const HEADER_BYTES: usize = 40;
/// The cookie.
pub const COOKIE: u32 = 0x1c84_9313;
/// The limits of a run's histograms: their digits, and a bound above their highest value (13 days).
const DIGITS: u32 = 3;
const HIGHEST_MAX: u64 = 1 << 50;
/// More counts than a histogram within these limits has.
const COUNTS_MAX: u64 = 1 << 16;
/// More I/Os than a window can have; the sum of all windows fits 64 bits.
const SAMPLES_MAX: u64 = 1 << 40;
/// How far a figure may be from the samples', as a share of itself: the width of a bucket.
const RESOLUTION: f64 = 2e-3;

/// The samples in a range of values that the histogram does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest value of the range.
    pub lowest: u64,
    /// The highest.
    pub highest: u64,
    /// The samples.
    pub count: u64,
}

/// The samples of an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Buckets {
    /// The bounds of their histogram: lowest and highest value, and digits.
    bounds: (u64, u64, u8),
    /// In the order of their values.
    all: Vec<Bucket>,
}

impl Buckets {
    /// Reads an unpacked histogram; lengths and bounds are checked before memory of their size is allocated.
    ///
    /// # Errors
    /// Why no run can have written it.
    pub fn read(plain: &[u8]) -> Result<Self, String> {
        let (header, mut counts) = plain.split_at_checked(HEADER_BYTES).ok_or("it unpacks to too little")?;
        let field = |at: usize, bytes: usize| {
            header[at..at + bytes].iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
        };
        if field(0, 4) != u64::from(COOKIE) || field(4, 4) != counts.len() as u64 {
            return Err(format!("it unpacks to {} B of counts, and says {}", counts.len(), field(4, 4)));
        }
        let (digits, lowest, highest) = (field(12, 4) as u32, field(16, 8), field(24, 8));
        if digits > DIGITS || highest > HIGHEST_MAX {
            return Err(format!("no histogram of a run has {digits} digits up to {highest}"));
        }
        if lowest == 0 || highest / 2 < lowest || field(8, 4) != 0 || field(32, 8) != 1.0f64.to_bits() {
            return Err("no histogram of a run has such bounds".into());
        }
        let scale = Scale::of(lowest, digits);
        let reach = scale.reach(highest);
        let (mut all, mut at, mut samples) = (Vec::new(), 0u64, 0u64);
        while !counts.is_empty() {
            let number = number(&mut counts)?;
            at = match number {
                ..=0 if number.unsigned_abs() > COUNTS_MAX => return Err("it has an impossible count".into()),
                // A single empty count is a zero; a run of them is their negated number.
                ..=0 => at + number.unsigned_abs().max(1),
                _ => {
                    let count = number.unsigned_abs();
                    samples = samples.saturating_add(count);
                    if at > COUNTS_MAX || samples > SAMPLES_MAX {
                        return Err(format!("{samples} I/Os in a window are impossible"));
                    }
                    all.push(scale.bucket(at, count).filter(|b| b.lowest <= reach).ok_or("it is too long")?);
                    at + 1
                }
            };
        }
        Ok(Self { bounds: (lowest, highest, digits as u8), all })
    }

    /// The samples of a histogram.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let bucket = |value| Bucket {
            lowest: histogram.lowest_equivalent(value),
            highest: histogram.highest_equivalent(value),
            count: histogram.count_at(value),
        };
        let all = histogram.iter_recorded().map(|found| bucket(found.value_iterated_to())).collect();
        Self { bounds: (histogram.low(), histogram.high(), histogram.sigfig()), all }
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.all.iter().map(|bucket| bucket.count).sum()
    }

    /// An empty histogram of the same bounds.
    ///
    /// # Errors
    /// If the bounds are impossible.
    pub fn histogram(&self) -> Result<Histogram<u64>, String> {
        let (lowest, highest, digits) = self.bounds;
        let mut made = Histogram::new_with_bounds(lowest, highest, digits).map_err(|e| e.to_string())?;
        made.auto(true);
        Ok(made)
    }

    /// Adds the samples to a histogram.
    ///
    /// # Errors
    /// If it can't hold them.
    pub fn add_to(&self, sum: &mut Histogram<u64>) -> Result<(), String> {
        self.all
            .iter()
            .try_for_each(|bucket| sum.record_n(bucket.lowest, bucket.count))
            .map_err(|error| error.to_string())
    }

    /// The first figure that does not match these samples, if there is one.
    pub fn misfit(&self, latency: &Latency) -> Option<&'static str> {
        let count = self.samples();
        if latency.count != count {
            return Some("count");
        }
        // Without samples there is nothing to compare.
        let last = self.all.last()?;
        let is_of = |ns: u64, bucket: &Bucket| {
            let (lowest, highest) = (bucket.lowest as f64, bucket.highest as f64);
            (lowest * (1.0 - RESOLUTION)..=highest * (1.0 + RESOLUTION)).contains(&(ns as f64))
        };
        if latency.max.is_none_or(|max| !is_of(max, last)) {
            return Some("maximum");
        }
        if latency.mean.is_none_or(|mean| !self.is_mean(mean, latency.max)) {
            return Some("mean");
        }
        let Latency { p50, p90, p99, p999, p9999, p99999, p999999, .. } = *latency;
        let all = [
            ("p50", p50, 2),
            ("p90", p90, 10),
            ("p99", p99, 100),
            ("p99.9", p999, 1000),
            ("p99.99", p9999, 10_000),
            ("p99.999", p99999, 100_000),
            ("p99.9999", p999999, 1_000_000),
        ];
        let is_misfit = |ns: u64, one_in: u64| {
            let wanted = count - count / one_in;
            let sum = |of: &dyn Fn(&Bucket) -> bool| -> u64 {
                self.all.iter().filter(|bucket| of(bucket)).map(|bucket| bucket.count).sum()
            };
            let below = sum(&|bucket| (bucket.highest as f64) < ns as f64 * (1.0 - RESOLUTION));
            let up_to = sum(&|bucket| (bucket.lowest as f64) <= ns as f64 * (1.0 + RESOLUTION));
            // For few samples, versions may pick the middle one differently.
            below > wanted + 1 || up_to + 1 < wanted
        };
        let is_wrong = |ns: Option<u64>, one_in| match ns {
            Some(ns) => is_misfit(ns, one_in),
            // Earlier versions end at p99.99.
            None => one_in <= 10_000 && count / one_in >= SAMPLES_BEYOND,
        };
        all.into_iter().find(|(_, ns, one_in)| is_wrong(*ns, *one_in)).map(|(p, ..)| p)
    }

    fn is_mean(&self, mean: f64, max: Option<u64>) -> bool {
        let middle = |bucket: &Bucket| bucket.lowest as f64 + (bucket.highest - bucket.lowest) as f64 / 2.0;
        let sum: f64 = self.all.iter().map(|bucket| middle(bucket) * bucket.count as f64).sum();
        let expected = (sum / self.samples() as f64).min(max.map_or(f64::INFINITY, |max| max as f64));
        // The narrowest buckets are as wide as the lowest value.
        (mean - expected).abs() <= (expected * RESOLUTION).max(self.bounds.0 as f64)
    }
}

/// How a histogram divides values into buckets: linearly up to a power of two, then with the width doubling
/// as the values double.
struct Scale {
    unit_bits: u32,
    half_bits: u32,
}

impl Scale {
    fn of(lowest: u64, digits: u32) -> Self {
        let linear = (2 * 10u64.pow(digits)).next_power_of_two();
        Self { unit_bits: lowest.ilog2(), half_bits: linear.ilog2().max(1) - 1 }
    }

    /// The highest value that a histogram has room for. It grows only when a higher one is recorded, and keeps the
    /// bound that it was made with: that of an auto-resizing one is 2, though it has room for all of the linear part.
    fn reach(&self, highest: u64) -> u64 {
        let linear = 2u64 << (self.half_bits + self.unit_bits);
        linear.max((highest + 1).next_power_of_two()) - 1
    }

    /// The bucket at that index of the counts.
    fn bucket(&self, at: u64, count: u64) -> Option<Bucket> {
        let half = 1 << self.half_bits;
        let doublings = (at >> self.half_bits).saturating_sub(1);
        let place = at - doublings * half;
        let bits = self.unit_bits + u32::try_from(doublings).ok()?;
        // Far beyond any bound, yet without overflow.
        if place.checked_ilog2().unwrap_or(0) + bits > 60 {
            return None;
        }
        Some(Bucket { lowest: place << bits, highest: ((place + 1) << bits) - 1, count })
    }
}

/// The next number: seven bits per byte, the lowest first, and the ninth byte in full; the lowest bit is the sign.
fn number(from: &mut &[u8]) -> Result<i64, String> {
    let mut number = 0;
    for (at, byte) in from.iter().enumerate() {
        let is_ninth = at == 8;
        number |= u64::from(if is_ninth { *byte } else { *byte & 0x7f }) << (7 * at);
        if is_ninth || *byte & 0x80 == 0 {
            *from = &from[at + 1..];
            return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    Err("its last count is torn".into())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Serializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;
    use crate::meter::latencies::latency::summarize;
    use crate::meter::source::LatencyDelta;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_the_library_writes_is_read(
            values in prop::collection::vec((0u64..36, 0u64..1 << 36), 1..300),
            lowest in 1u64..9,
        ) {
            let mut histogram = Histogram::<u64>::new_with_bounds(lowest, 60_000_000_000, 3).unwrap();
            for (bits, value) in values {
                let shifted = (value >> bits).min(60_000_000_000);
                // A value below the lowest counts as 0, but the library's extremes keep it as it is.
                let recorded = if shifted < lowest { 0 } else { shifted };
                histogram.record_n(recorded, 1 + value % 3).unwrap();
            }
            let mut plain = Vec::new();
            V2Serializer::new().serialize(&histogram, &mut plain).unwrap();
            let buckets = Buckets::read(&plain).unwrap();
            prop_assert_eq!(&buckets, &Buckets::of(&histogram));
            let mut sum = buckets.histogram().unwrap();
            buckets.add_to(&mut sum).unwrap();
            prop_assert_eq!(&sum, &histogram);
            let latency = summarize(&LatencyDelta { max_ns: histogram.max(), histogram }).unwrap();
            prop_assert_eq!(buckets.misfit(&latency), None);
        }
    }

    #[test]
    fn short_latencies_lie_above_the_bound_of_a_histogram_that_grows() {
        let plain = |value| {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            histogram.record(value).unwrap();
            let mut plain = Vec::new();
            V2Serializer::new().serialize(&histogram, &mut plain).unwrap();
            (histogram, plain)
        };
        for value in [1, 2, 3, 1663, 2047, 2048, 5000, 60_000_000_000] {
            let (histogram, plain) = plain(value);
            assert_eq!(histogram.high() == 2, value < 2048);
            assert_eq!(Buckets::read(&plain), Ok(Buckets::of(&histogram)), "{value}");
        }
        let (_, mut beyond) = plain(2048);
        beyond[24..32].copy_from_slice(&2_u64.to_be_bytes());
        assert_eq!(Buckets::read(&beyond), Err("it is too long".to_owned()));
    }

    #[test]
    fn figures_that_the_samples_do_not_have_are_named() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        (0..20_000).for_each(|at| histogram.record(50_000 + at * 10).unwrap());
        let buckets = Buckets::of(&histogram);
        let latency = summarize(&LatencyDelta { max_ns: histogram.max(), histogram }).unwrap();
        assert_eq!(buckets.misfit(&latency), None);
        let named = |change: &dyn Fn(&mut Latency)| {
            let mut changed = latency.clone();
            change(&mut changed);
            buckets.misfit(&changed)
        };
        assert_eq!(named(&|latency| latency.count *= 2), Some("count"));
        assert_eq!(named(&|latency| latency.max = Some(1_000_000_000_000)), Some("maximum"));
        assert_eq!(named(&|latency| latency.mean = Some(1.0)), Some("mean"));
        assert_eq!(named(&|latency| latency.p50 = Some(1)), Some("p50"));
        assert_eq!(named(&|latency| latency.p90 = Some(150_000)), Some("p90"));
        assert_eq!(named(&|latency| latency.p99 = latency.max), Some("p99"));
        assert_eq!(named(&|latency| latency.p999 = Some(249_000)), Some("p99.9"));
        assert_eq!(named(&|latency| latency.max = None), Some("maximum"));
        assert_eq!(named(&|latency| latency.mean = None), Some("mean"));
        assert_eq!(named(&|latency| latency.p99 = None), Some("p99"));
    }
}
