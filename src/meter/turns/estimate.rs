//! How much a figure differs between two stretches of windows, with an interval, and whether it differs clearly.
//!
//! Successive windows resemble each other, levels drift, and a hiccup spoils one or two: a test that takes
//! windows as independent would find a clear change in every third pair of equal settings. So:
//!
//! - The change is that of the mean of the logarithms, judged as no more than twice that of the median: a hiccup
//!   moves the mean, not the median.
//! - Its spread follows from the windows' own, without hiccups, and from their correlation with the one before
//!   (an AR(1) process). Few windows estimate that badly: it is averaged with [`PRIOR_CORRELATION`], which weighs
//!   as much as [`PRIOR_WINDOWS`]. Where each side is long enough, the means of its fifths bound the spread from
//!   below, to cover slow variation.
//! - Between two recordings a level may have wandered further than within either: their interval is wider, and
//!   wider still where their fifths differ by more than noise explains.
//! - The bounds are Student's, at [`ERROR`] for all the figures that are judged together (Bonferroni).
//! - A small change is never clear: a level wanders that far by itself, whatever the windows say.
//!
//! Before and after are not randomised: a level that jumps just when a knob is turned looks like the turn's
//! effect. How often equal settings nevertheless differ clearly is measured by this module's tests.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::meter::spread::Spread;
use crate::meter::window::Verdict;

/// With fewer windows on a side there is no estimate.
pub const WINDOWS_MIN: usize = 3;
/// How often any of the figures that are judged together may differ clearly by chance.
const ERROR: f64 = 0.05;
/// The smallest change that can be clear: for a turn, and for recordings, between which levels wander further.
pub const TURN_CHANGE_MIN: f64 = 0.03;
/// See [`TURN_CHANGE_MIN`].
pub const RECORDING_CHANGE_MIN: f64 = 0.05;
/// With at least this many windows between them, the two sides count as separate recordings.
const APART_WINDOWS: usize = 30;
/// How much wider their interval is, for levels that wander too slowly to show within one of them.
const APART_CAUTION: f64 = 1.35;

/// Stands for zero, as a share of the largest value.
pub const STALLED: f64 = 1e-3;
/// The correlation of a window with the next that is assumed beforehand, and how many windows it weighs as much as.
const PRIOR_CORRELATION: f64 = 0.6;
const PRIOR_WINDOWS: f64 = 20.0;
/// Any higher, and the windows would say nothing about where the level is.
const CORRELATION_MAX: f64 = 0.98;
/// What the formulas, which hold for many windows, leave out: a factor, and the part of it that shrinks with more.
const CAUTION: f64 = 1.2;
const CAUTION_WINDOWS: f64 = 5.0;
/// A window further from the median than this many standard deviations counts as that far.
const HICCUP: f64 = 4.0;
/// The standard deviation of a normal distribution over its median absolute deviation.
const NORMAL_PER_MEDIAN: f64 = 1.4826;
/// The number of block means per side, the fewest windows in a block, and the factor from the blocks' spread
/// to that of the sides: half of what it is for a random walk, and twice that for independent windows.
const BLOCKS: usize = 5;
const BLOCK_WINDOWS_MIN: usize = 2;
const BLOCKS_CAUTION: f64 = 1.3;

/// If neighbouring fifths of a side differ by this many times what noise explains (in squares), the level
/// wanders; noise is taken to be correlated by at most this much. The last factor goes from the fifths'
/// squares to those of the sides, with a third of a side between them.
const WANDERS: f64 = 1.5;
const NOISE_CORRELATION_MAX: f64 = 0.7;
const WANDERED: f64 = 7.5;

/// A figure's windows on one side, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// All windows, which show how it varies.
    pub windows: &'a [f64],
    /// How many of them, those nearest to the other side, say where it is.
    pub counted: usize,
}

impl<'a> Side<'a> {
    /// A side on which all windows count.
    pub fn of(windows: &'a [f64]) -> Self {
        Self { windows, counted: windows.len() }
    }
}

/// A change, as a fraction of the value before, and the interval that holds it at the error rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// From the values before to those after.
    pub change: f64,
    /// The least that it may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
    /// Whether it is more than chance, and not too small.
    pub is_clear: bool,
    /// The smallest absolute logarithm that decides this: of the means, of twice the medians, and of the wholes.
    judged: f64,
}

impl Estimate {
    /// The same for a figure that has these values over the sides as wholes. What most windows do may differ
    /// from what all their I/Os do together: the interval covers that change too, and the change is clear
    /// only if both have the same direction and neither is too small.
    pub fn of_wholes(self, (before, after): (f64, f64), together: Together) -> Self {
        let ln = (after / before).ln();
        let agrees = ln * self.change > 0.0 && ln.abs() > together.change_min.ln_1p();
        // From zero there is no relative change.
        let change = Some(ln.exp_m1()).filter(|change| change.is_finite());
        let (low, high) = change.map_or((self.low, self.high), |of| (self.low.min(of), self.high.max(of)));
        let judged = if agrees { self.judged.min(ln.abs()) } else { 0.0 };
        Self { low, high, is_clear: self.is_clear && agrees, judged, ..self }
    }

    /// The same where a level wanders this far by itself, as a logarithm: only a change beyond that is clear.
    pub fn beyond(self, reach: f64) -> Self {
        let ln = self.change.ln_1p();
        let (low, high) = ((ln - reach).exp_m1(), (ln + reach).exp_m1());
        let is_clear = self.is_clear && self.judged > reach;
        Self { low: self.low.min(low), high: self.high.max(high), is_clear, ..self }
    }

    /// The change in a word.
    pub fn verdict(&self) -> Verdict {
        match (self.is_clear, self.change > 0.0) {
            (false, _) => Verdict::NoClearChange,
            (true, true) => Verdict::Higher,
            (true, false) => Verdict::Lower,
        }
    }
}

/// The figures that are judged together, and how.
#[derive(Debug, Clone, Copy)]
pub struct Together {
    /// The number of figures.
    pub figures: usize,
    /// The number of windows between the sides, which count for neither.
    pub gap: usize,
    /// The smallest change that can be clear.
    pub change_min: f64,
}

impl Together {
    /// How often each figure may differ clearly by chance.
    pub(super) fn error(self) -> f64 {
        ERROR / self.figures.max(1) as f64
    }
}

/// The change between two sides. None with fewer than [`WINDOWS_MIN`] windows on a side, or where all values are zero.
pub fn estimate(before: Side, after: Side, together: Together) -> Option<Estimate> {
    let most = before.windows.iter().chain(after.windows).copied().fold(0.0, f64::max);
    if most <= 0.0 || !most.is_finite() {
        return None;
    }
    // Zero has no logarithm: a window in which nothing was done counts as this far below the largest.
    let ln = |values: &[f64]| values.iter().map(|value| value.max(most * STALLED).ln()).collect::<Vec<_>>();
    let (all_before, all_after) = (ln(before.windows), ln(after.windows));
    let counted_before = &all_before[all_before.len().saturating_sub(before.counted)..];
    let counted_after = &all_after[..after.counted.min(all_after.len())];
    if counted_before.len().min(counted_after.len()) < WINDOWS_MIN {
        return None;
    }
    let noise = Noise::of([&all_before, &all_after]);
    let error = together.error();
    let spread = noise.spread(counted_before.len(), counted_after.len(), together.gap);
    let blocks = blocks_spread(&all_before, &all_after)
        .map_or(0.0, |spread| quantile(error, (2 * BLOCKS - 2) as f64) * BLOCKS_CAUTION * spread);
    let mut reach = (quantile(error, noise.freedom()) * noise.caution() * spread).max(blocks);
    if together.gap >= APART_WINDOWS {
        let wandered = noise.wandered([&all_before, &all_after]).unwrap_or(0.0);
        reach = (reach * APART_CAUTION).max(quantile(error, (2 * BLOCKS - 2) as f64) * wandered);
    }
    let of_means = mean(counted_after) - mean(counted_before);
    let of_medians = median(counted_after) - median(counted_before);
    let change = if of_means * of_medians <= 0.0 {
        0.0
    } else {
        of_means.signum() * of_means.abs().min(2.0 * of_medians.abs())
    };
    let share = |ln: f64| ln.exp_m1();
    Some(Estimate {
        change: share(of_means),
        low: share(of_means - reach),
        high: share(of_means + reach),
        is_clear: change.abs() > reach.max(together.change_min.ln_1p()),
        judged: change.abs(),
    })
}

/// Whether repeats of two settings differ by more than chance: Student's t-test of their logarithms, at this error.
pub fn repeats_differ(one: &[f64], other: &[f64], error: f64) -> bool {
    let ln = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let (one, other) = (ln(one), ln(other));
    let freedom = (one.len() + other.len()) as f64 - 2.0;
    let variance = (squares_around_mean(&one) + squares_around_mean(&other)) / freedom;
    let spread = (variance * (1.0 / one.len() as f64 + 1.0 / other.len() as f64)).sqrt();
    freedom >= 1.0 && (mean(&one) - mean(&other)).abs() > quantile(error, freedom) * spread
}

/// How windows vary around the level of their side.
struct Noise {
    windows: f64,
    correlation: f64,
    variance: f64,
    /// The mean squared difference between successive windows.
    step: f64,
}

impl Noise {
    fn of(sides: [&[f64]; 2]) -> Self {
        let (mut squares, mut products, mut pairs, mut windows) = (0.0, 0.0, 0.0, 0.0);
        let mut steps = 0.0;
        for side in sides {
            let side = &without_hiccups(side);
            let level = mean(side);
            squares += squares_around_mean(side);
            products += side.windows(2).map(|two| (two[0] - level) * (two[1] - level)).sum::<f64>();
            steps += squared_steps(side).sum::<f64>();
            pairs += (side.len() - 1) as f64;
            windows += side.len() as f64;
        }
        let seen = if squares > 0.0 { products / pairs * windows / squares } else { 0.0 };
        // Around the windows' own mean, their correlation is underestimated (Marriott, Pope 1954),
        let unbiased = seen + 1.5 * (1.0 + 3.0 * seen) / windows;
        let weighed = (unbiased * windows + PRIOR_CORRELATION * PRIOR_WINDOWS) / (windows + PRIOR_WINDOWS);
        let correlation = weighed.clamp(0.0, CORRELATION_MAX);
        // and so is their variance.
        let lost: f64 =
            sides.iter().map(|side| of_mean(correlation, side.len()) * side.len() as f64 / windows).sum();
        let variance = squares / windows / (1.0 - lost).max(0.1);
        Self { windows, correlation, variance, step: steps / pairs }
    }

    /// The standard deviation of the difference between the sides that is due to a wandering level; none if
    /// their fifths show no such level.
    fn wandered(&self, sides: [&[f64]; 2]) -> Option<f64> {
        let windows = sides[0].len().min(sides[1].len()) / BLOCKS;
        if windows < BLOCK_WINDOWS_MIN {
            return None;
        }
        let of_sides = sides.map(|side| squared_steps(&block_means(&without_hiccups(side))).sum::<f64>());
        let seen = (of_sides[0] + of_sides[1]) / (2 * BLOCKS - 2) as f64;
        // A wandering level hardly shows from one window to the next.
        let alike = self.correlation.min(NOISE_CORRELATION_MAX);
        let variance = self.step / (2.0 * (1.0 - alike));
        let noise = 2.0 * variance * (of_mean(alike, windows) - between_means(alike, windows, 0, windows));
        (seen > WANDERS * noise).then(|| (WANDERED * (seen - noise)).sqrt())
    }

    /// The standard deviation of the difference between the means of this many windows.
    fn spread(&self, before: usize, after: usize, gap: usize) -> f64 {
        let both = of_mean(self.correlation, before) + of_mean(self.correlation, after);
        let common = 2.0 * between_means(self.correlation, before, gap, after);
        (self.variance * (both - common)).max(0.0).sqrt()
    }

    /// Degrees of freedom: the number of independent windows that would say as much about the variance, less one.
    fn freedom(&self) -> f64 {
        let square = self.correlation.powi(2);
        (self.windows * (1.0 - square) / (1.0 + square) - 1.0).max(2.0)
    }

    fn caution(&self) -> f64 {
        CAUTION * (1.0 + CAUTION_WINDOWS / self.windows)
    }
}

/// The values, with outliers pulled in: what happens once or twice says little about the rest.
pub(super) fn without_hiccups(values: &[f64]) -> Vec<f64> {
    let level = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - level).abs()).collect();
    let reach = HICCUP * NORMAL_PER_MEDIAN * median(&distances);
    values.iter().map(|value| value.clamp(level - reach, level + reach)).collect()
}

/// The variance of the mean of `count` values of variance 1.
fn of_mean(correlation: f64, count: usize) -> f64 {
    let pairs: f64 = (1..count).map(|lag| 2.0 * (count - lag) as f64 * correlation.powi(lag as i32)).sum();
    (count as f64 + pairs) / (count * count) as f64
}

/// The covariance of the means on both sides of a gap, of values of variance 1.
fn between_means(correlation: f64, before: usize, gap: usize, after: usize) -> f64 {
    let sum = |count: usize| (0..count).map(|lag| correlation.powi(lag as i32)).sum::<f64>();
    correlation.powi(gap as i32 + 1) * sum(before) * sum(after) / (before * after) as f64
}

/// The spread of the means of the sides' fifths, if both sides are long enough.
fn blocks_spread(before: &[f64], after: &[f64]) -> Option<f64> {
    if before.len().min(after.len()) < BLOCKS * BLOCK_WINDOWS_MIN {
        return None;
    }
    let squares: f64 = [before, after].into_iter().map(|side| squares_around_mean(&block_means(side))).sum();
    Some((squares / (2 * BLOCKS - 2) as f64).sqrt())
}

/// The mean of each fifth.
fn block_means(side: &[f64]) -> Vec<f64> {
    let at = |block: usize| block * side.len() / BLOCKS;
    (0..BLOCKS).map(|block| mean(&side[at(block)..at(block + 1)])).collect()
}

fn squared_steps(values: &[f64]) -> impl Iterator<Item = f64> {
    values.windows(2).map(|two| (two[1] - two[0]).powi(2))
}

/// Student's two-sided quantile.
pub(super) fn quantile(error: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| student.inverse_cdf(1.0 - error / 2.0))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(super) fn root_mean_square(values: &[f64]) -> f64 {
    mean(&values.iter().map(|value| value * value).collect::<Vec<_>>()).sqrt()
}

fn squares_around_mean(values: &[f64]) -> f64 {
    let level = mean(values);
    values.iter().map(|value| (value - level).powi(2)).sum()
}

fn median(values: &[f64]) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
pub(crate) mod tests;
