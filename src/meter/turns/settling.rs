//! Whether the load is steady: settled after the last turn, and without a trend.

use std::collections::VecDeque;

use crate::meter::spread::Spread;
use crate::units::SECOND_NS;

/// The minimum settling time after a turn.
const SETTLING_NS: u64 = 2 * SECOND_NS;
/// The minimum number of windows of settling.
const SETTLING_WINDOWS: u32 = 2;

/// The fewest windows that can show a trend, and the most that are considered.
const TREND_WINDOWS: std::ops::RangeInclusive<usize> = 6..=10;
/// A trend matters from this change over the windows on, relative to their median.
pub(in crate::meter) const TREND_CHANGE: f64 = 0.05;
/// Two-sided 1% of the normal distribution.
const Z: f64 = 2.576;

/// How long settling takes with windows of this length.
pub fn settling_ns(window_ns: u64) -> u64 {
    SETTLING_NS.max(u64::from(SETTLING_WINDOWS) * window_ns)
}

/// The settling time after a turn, the run's start or a pause: 2 s or two windows, the longer one.
#[derive(Debug, Default)]
pub struct Settling {
    /// When it began, and windows since.
    since: Option<(u64, u32)>,
}

impl Settling {
    /// Takes the next window and returns whether it still belongs to the settling time. `unsteady` says that
    /// it contained a turn, a drain or a pause.
    pub fn window(&mut self, start_ns: u64, end_ns: u64, unsteady: bool) -> bool {
        if unsteady {
            self.since = Some((end_ns, 0));
            return true;
        }
        let (since_ns, windows) = self.since.get_or_insert((start_ns, 0));
        *windows += 1;
        *windows <= SETTLING_WINDOWS || start_ns < *since_ns + SETTLING_NS
    }
}

/// The values of one figure in the last steady windows.
#[derive(Debug, Default)]
pub struct Trend(VecDeque<f64>);

impl Trend {
    /// Forgets everything, as after a turn.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the next value and returns whether the last windows, including this one, drift in one direction:
    /// by the Mann-Kendall test at 1%, and by over 5% of the median along Sen's slope.
    pub fn push(&mut self, value: f64) -> bool {
        if self.0.len() == *TREND_WINDOWS.end() {
            self.0.pop_front();
        }
        self.0.push_back(value);
        trends(self.0.make_contiguous())
    }
}

fn trends(values: &[f64]) -> bool {
    let n = values.len();
    if n < *TREND_WINDOWS.start() {
        return false;
    }
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let (mut s, mut slopes) = (0.0, Vec::new());
    for (i, j) in pairs {
        let slope = (values[j] - values[i]) / (j - i) as f64;
        s += if slope == 0.0 { 0.0 } else { slope.signum() };
        slopes.push(slope);
    }
    let variance = (n * (n - 1) * (2 * n + 5)) as f64 / 18.0;
    let significant = (s.abs() - 1.0) / variance.sqrt() > Z;
    let change = median(&slopes).abs() * (n - 1) as f64;
    significant && change > TREND_CHANGE * median(values).abs()
}

fn median(values: &[f64]) -> f64 {
    Spread::of(values).map_or(0.0, |spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_takes_two_seconds_or_two_windows() {
        let settling = |window_ns: u64| {
            let mut settling = Settling::default();
            let at = |n: u64| (n * window_ns, (n + 1) * window_ns);
            (0..100).take_while(|n| settling.window(at(*n).0, at(*n).1, false)).count()
        };
        assert_eq!(settling(SECOND_NS), 2);
        assert_eq!(settling(SECOND_NS / 10), 20);
        assert_eq!(settling(10 * SECOND_NS), 2);
    }

    #[test]
    fn a_turn_restarts_settling_at_the_end_of_its_window() {
        let mut settling = Settling::default();
        let unsteady = [3, 4];
        let seen: Vec<bool> = (0..9)
            .map(|n| settling.window(n * SECOND_NS, (n + 1) * SECOND_NS, unsteady.contains(&n)))
            .collect();
        assert_eq!(seen, [true, true, false, true, true, true, true, false, false]);
    }

    #[test]
    fn a_trend_is_long_clear_and_large() {
        let falling: Vec<f64> = (0..6).map(|n| 1000.0 - 15.0 * f64::from(n)).collect();
        assert!(trends(&falling));
        assert!(!trends(&falling[..5]), "too few");
        let slight: Vec<f64> = (0..10).map(|n| 1000.0 + 2.0 * f64::from(n)).collect();
        assert!(!trends(&slight), "too small to matter");
        let noisy = [1000.0, 1100.0, 900.0, 1050.0, 950.0, 1120.0, 890.0, 1010.0, 1090.0, 940.0];
        assert!(!trends(&noisy));
        assert!(!trends(&[0.0; 10]));
        let rising_noisily = [100.0, 108.0, 104.0, 115.0, 111.0, 121.0, 119.0, 130.0, 127.0, 140.0];
        assert!(trends(&rising_noisily));
    }

    #[test]
    fn earlier_values_are_forgotten() {
        let mut trend = Trend::default();
        let drifts: Vec<bool> = (0..30).map(|n| trend.push(100.0 + f64::from(n.min(9)) * 5.0)).collect();
        assert!(!drifts[4] && drifts[5] && drifts[9], "{drifts:?}");
        assert!(!drifts[29], "ten level windows have followed");
        for n in 0..9 {
            trend.push(f64::from(n));
        }
        trend.clear();
        assert!(!trend.push(9.0));
    }
}
