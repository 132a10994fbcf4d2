//! A figure over several runs: its median and its extremes.

use serde::Serialize;

/// A figure over several runs of the same settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median; for an even number, the mean of the two in the middle.
    pub median: f64,
    /// The lowest value of a run.
    pub low: f64,
    /// The highest value of a run.
    pub high: f64,
    /// The number of runs that have it.
    pub runs: usize,
}

impl Spread {
    /// The spread of some values; none if there are none.
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
    fn a_spread_has_the_median_the_smallest_and_the_largest() {
        let of = |values: &[f64]| Spread::of(values).map(|s| (s.median, s.low, s.high, s.runs));
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0, 3)));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some((2.5, 1.0, 4.0, 4)));
        assert_eq!(of(&[7.0]), Some((7.0, 7.0, 7.0, 1)));
        assert_eq!(of(&[]), None);
    }
}
