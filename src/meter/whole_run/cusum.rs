//! Where a series leaves its level, by the cumulative sum (CUSUM; Page 1954) of its values' differences from
//! their mean.
//!
//! By hand, as statrs has no change points.
//!
//! At a constant level the sum stays near zero. If the level changes, the sum moves away from zero until the
//! change and back after it, so that it is furthest from zero at the change. That counts as a change
//!
//! - if it is too far for chance: beyond 1.95 σ√n, which the sum over n values without a change reaches
//!   once in a thousand times (Kolmogorov's distribution). σ is the larger of two estimates, from the steps
//!   between values and from the values around their side's mean, as either can be too small for few values;
//! - and if it matters: the means before and after differ by 5% of the larger one.
//!
//! Both sides of a change are then searched in the same way, and no side is shorter than fifteen values: a
//! change is found once fifteen values have followed it.

/// The fewest values on either side of a change.
pub const SIDE: usize = 15;
/// The fewest values of a level: fewer could not show a change.
pub const LEVEL: usize = 2 * SIDE;
/// Kolmogorov's distribution at 0.1%.
const BEYOND_CHANCE: f64 = 1.95;
/// The smallest relative change that matters.
const MATTERS: f64 = crate::meter::turns::settling::TREND_CHANGE;

/// The indices at which a new level begins, in order.
pub fn changes(values: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    // The ranges still to search: from, to.
    let mut spans = vec![(0, values.len())];
    while let Some((from, to)) = spans.pop() {
        if let Some(at) = change(&values[from..to]) {
            found.push(from + at);
            spans.extend([(from, from + at), (from + at, to)]);
        }
    }
    found.sort_unstable();
    kept(values, found)
}

/// Keeps only the places whose two sides have different levels, because a part was compared with a mean
/// that included later changes.
fn kept(values: &[f64], mut found: Vec<usize>) -> Vec<usize> {
    let mut at = 0;
    while at < found.len() {
        let from = if at == 0 { 0 } else { found[at - 1] };
        let to = found.get(at + 1).copied().unwrap_or(values.len());
        if matters(&values[from..found[at]], &values[found[at]..to]) {
            at += 1;
        } else {
            found.remove(at);
        }
    }
    found
}

/// The index where the sum is furthest from zero, if that is a change.
fn change(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < LEVEL {
        return None;
    }
    let mean = mean(values);
    let (mut sum, mut furthest, mut at) = (0.0, 0.0, 0);
    for (i, value) in values.iter().enumerate().take(n - SIDE) {
        sum += value - mean;
        if i + 1 >= SIDE && f64::abs(sum) > furthest {
            (furthest, at) = (sum.abs(), i + 1);
        }
    }
    let (before, after) = values.split_at(at);
    let deviation = deviation(values).max(deviation_within(before, after));
    let beyond = furthest > BEYOND_CHANCE * deviation * (n as f64).sqrt();
    (at > 0 && beyond && matters(&values[..at], &values[at..])).then_some(at)
}

fn matters(before: &[f64], after: &[f64]) -> bool {
    let (before, after) = (mean(before), mean(after));
    (before - after).abs() > MATTERS * before.abs().max(after.abs())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// From the steps between values (von Neumann): a trend or a change of level hardly adds to it.
fn deviation(values: &[f64]) -> f64 {
    let steps: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    (steps / (2 * (values.len() - 1).max(1)) as f64).sqrt()
}

/// From the differences to each side's mean.
fn deviation_within(before: &[f64], after: &[f64]) -> f64 {
    let squares = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    ((squares(before) + squares(after)) / (before.len() + after.len() - 2) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

    /// A series of levels with their lengths, with noise of ±`percent`.
    fn series(levels: &[(f64, usize)], percent: f64, seed: u64) -> Vec<f64> {
        let mut random = SmallRng::seed_from_u64(seed);
        let values = levels.iter().flat_map(|(level, length)| std::iter::repeat_n(*level, *length));
        values.map(|level| level * (1.0 + percent / 100.0 * (random.random::<f64>() * 2.0 - 1.0))).collect()
    }

    fn near(found: &[usize], known: &[usize], by: usize) -> bool {
        found.len() == known.len() && found.iter().zip(known).all(|(a, b)| a.abs_diff(*b) <= by)
    }

    #[test]
    fn known_changes_are_found_where_they_are() {
        // Didona et al. 2021, Figure 2a: 11 kops/s at first, 8 after it, then a lasting 3. And a drop that recovers.
        let falls = [(11.0, 60), (8.0, 90), (3.0, 300)];
        let back = [(100.0, 100), (60.0, 40), (100.0, 100)];
        let mut missed = Vec::new();
        for seed in 0..50 {
            let found = [
                (changes(&series(&[(5400.0, 50), (3500.0, 130)], 5.0, seed)), vec![50], 1),
                (changes(&series(&falls, 20.0, seed)), vec![60, 150], 6),
                (changes(&series(&back, 10.0, seed)), vec![100, 140], 3),
            ];
            missed.extend(found.into_iter().filter(|(found, known, by)| !near(found, known, *by)));
        }
        // Chance makes one in a thousand.
        assert!(missed.len() <= 2, "{missed:?}");
    }

    #[test]
    fn exact_series_are_judged_exactly() {
        assert_eq!(changes(&series(&[(2.0, 40), (3.0, 40)], 0.0, 0)), [40]);
        assert!(changes(&[7.0; 600]).is_empty() && changes(&[0.0; 600]).is_empty());
        assert!(changes(&series(&[(100.0, 40), (103.0, 40)], 0.0, 0)).is_empty(), "3% does not matter");
        assert!(changes(&series(&[(1.0, 14), (2.0, 14)], 0.0, 0)).is_empty(), "too short to detect");
        assert!(changes(&[]).is_empty());
    }

    #[test]
    fn chance_alone_rarely_makes_a_change() {
        // Even if values differ a lot from each other, or bursts occur.
        for percent in [5.0, 30.0, 90.0] {
            let alarms = (0..300).filter(|seed| !changes(&series(&[(50.0, 300)], percent, *seed)).is_empty());
            assert!(alarms.count() <= 2, "noise of {percent}%");
        }
        let bursts: Vec<f64> = (0..600).map(|n| if n % 7 < 2 { 12.0 } else { 800.0 }).collect();
        assert!(changes(&bursts).is_empty());
    }

    #[test]
    fn a_slow_decay_changes_until_it_is_level() {
        let decay: Vec<f64> = (0..600).map(|n| 100.0 + 200.0 * (-f64::from(n) / 60.0).exp()).collect();
        let found = changes(&decay);
        let last = *found.last().unwrap();
        assert!(found.len() > 2, "{found:?}");
        // From there on it falls by another 200·e^(−last/60), little compared with the final level.
        assert!((120..=260).contains(&last), "{found:?}");
    }
}
