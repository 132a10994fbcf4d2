//! A figure over several runs: its middle and its ends.

use serde::Serialize;

/// A figure over several runs of the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Runs that have it.
    pub runs: usize,
}

impl Spread {
    /// The spread of some values; none without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        };
        Some(Self { median, low, high, runs: sorted.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_and_the_ends_are_the_smallest_and_the_largest() {
        let of = |values: &[f64]| Spread::of(values).map(|s| (s.median, s.low, s.high, s.runs));
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0, 3)));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some((2.5, 1.0, 4.0, 4)));
        assert_eq!(of(&[7.0]), Some((7.0, 7.0, 7.0, 1)));
        assert_eq!(of(&[]), None);
    }
}
