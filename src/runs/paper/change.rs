//! When a long run changes: its MB/s or its latency steps to another level and stays there.
//!
//! The windows of the first ten minutes are put into bins of a second, and those of the whole run into at
//! most 600 bins (longer ones if the windows are). At each bin, the fifteen before are compared with the
//! fifteen from there on. It is a change if their medians differ by a fifth or more, and four fifths of the
//! bins on either side are beyond all but a fifth of the other side's (the ranges between the 20th and the
//! 80th percentile do not overlap). Of several candidates closer together than fifteen bins, the change is
//! the one at which the two means differ most. A change that is shorter than fifteen bins, smaller than a
//! fifth, or closer than fifteen bins to an end of the run is not detected.

use serde::Serialize;

use super::figure::Figure;
use crate::meter::spread::Spread;
use crate::meter::whole_run::bins::{BIN_NS_MIN, BINS_MAX};
use crate::meter::window::Window;

/// Bins on either side: as few as CUSUM takes, on the same kind of bins.
const SIDE: usize = crate::meter::whole_run::cusum::SIDE;
/// Medians must differ by this share of the one before.
const LEAST: f64 = 0.2;

/// A figure over time, in bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The figure.
    pub figure: Figure,
    /// Seconds of a bin.
    pub bin_s: f64,
    /// Mean of the figure in each bin, in order; none if no window had it.
    pub values: Vec<Option<f64>>,
    /// Bytes that the load had written at the start of each bin.
    pub written_bytes: Vec<u64>,
}

/// A step from one level to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The figure.
    pub figure: Figure,
    /// Seconds from the start of the run.
    pub at_s: f64,
    /// Bytes that the load had written until then, as the classes count them.
    pub written_bytes: u64,
    /// Median of the bins before.
    pub before: f64,
    /// Median of the bins after.
    pub after: f64,
}

/// The changes of a run, and the limits of detecting them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// In order of time, figure by figure.
    pub found: Vec<Change>,
    /// Total bytes that the load wrote.
    pub written_bytes: u64,
    /// Seconds of the run.
    pub duration_s: f64,
    /// Whether the run is too short to detect any change.
    pub too_short: bool,
}

/// The median.
fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

impl Series {
    /// The figure of a run's windows in at most 600 bins, including the warm-up, which makes no difference to
    /// the drive.
    pub fn of(figure: Figure, windows: &[Window]) -> Self {
        let end_ns = end_ns(windows);
        let bin_ns = end_ns.div_ceil(BINS_MAX).next_multiple_of(BIN_NS_MIN);
        Self::binned(figure, windows, bin_ns.max(least_ns(windows)), end_ns)
    }

    /// The first ten minutes in the shortest bins.
    fn of_start(figure: Figure, windows: &[Window]) -> Self {
        let end_ns = end_ns(windows).min(BINS_MAX * BIN_NS_MIN);
        Self::binned(figure, windows, least_ns(windows), end_ns)
    }

    fn binned(figure: Figure, windows: &[Window], bin_ns: u64, end_ns: u64) -> Self {
        // The rest at the end is not a whole bin.
        let bins = (end_ns / bin_ns) as usize;
        let mut sums = vec![(0.0, 0.0); bins];
        let mut written_bytes = vec![0; bins];
        let mut written = 0;
        let mut filled = 0;
        for window in windows {
            // A window belongs to the bin that contains its middle.
            let bin = ((window.start_ns + window.duration_ns / 2) / bin_ns) as usize;
            if bin >= bins {
                break;
            }
            while filled <= bin {
                written_bytes[filled] = written;
                filled += 1;
            }
            if let Some(value) = figure.of_window(window) {
                let ns = window.duration_ns as f64;
                sums[bin].0 += value * ns;
                sums[bin].1 += ns;
            }
            written += written_by(window);
        }
        let mean = |(sum, ns): (f64, f64)| (ns > 0.0).then(|| sum / ns);
        Self {
            figure,
            bin_s: bin_ns as f64 / 1e9,
            values: sums.into_iter().map(mean).collect(),
            written_bytes,
        }
    }

    /// The steps of the series, in the order of time.
    fn steps(&self) -> Vec<Change> {
        let candidates = SIDE..self.values.len().saturating_sub(SIDE - 1);
        let mut steps: Vec<_> = candidates.filter_map(|at| Some((at, self.step(at)?))).collect();
        steps.sort_by(|one, other| other.1.total_cmp(&one.1));
        let mut kept: Vec<usize> = Vec::new();
        for (at, _) in steps {
            if kept.iter().all(|other| other.abs_diff(at) >= SIDE) {
                kept.push(at);
            }
        }
        kept.sort_unstable();
        kept.into_iter().map(|at| self.change(at)).collect()
    }

    fn sides(&self, at: usize) -> [Vec<f64>; 2] {
        [at - SIDE..at, at..at + SIDE].map(|bins| self.values[bins].iter().copied().flatten().collect())
    }

    /// How far the means of the bins before and after differ, if there is a change.
    fn step(&self, at: usize) -> Option<f64> {
        let [before, after] = self.sides(at);
        // If too many bins lack the figure, nothing can be said.
        if before.len().min(after.len()) < SIDE * 4 / 5 {
            return None;
        }
        let (from, to) = (median(&before)?, median(&after)?);
        let differs = from > 0.0 && (to / from - 1.0).abs() >= LEAST;
        let (low, high) = if from < to { (&before, &after) } else { (&after, &before) };
        let apart = percentile(low, 0.8) < percentile(high, 0.2);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        (differs && apart).then(|| (mean(&after) - mean(&before)).abs())
    }

    fn change(&self, at: usize) -> Change {
        let [before, after] = self.sides(at);
        Change {
            figure: self.figure,
            at_s: at as f64 * self.bin_s,
            written_bytes: self.written_bytes[at],
            before: median(&before).unwrap_or_default(),
            after: median(&after).unwrap_or_default(),
        }
    }
}

fn end_ns(windows: &[Window]) -> u64 {
    windows.last().map_or(0, |window| window.start_ns + window.duration_ns)
}

/// The shortest bin that every window fills.
fn least_ns(windows: &[Window]) -> u64 {
    let longest = windows.iter().map(|window| window.duration_ns).max().unwrap_or(0);
    // Windows end a little late, which must not make bins longer.
    let seconds = (longest as f64 / BIN_NS_MIN as f64 - 0.5).ceil().max(1.0);
    seconds as u64 * BIN_NS_MIN
}

/// The changes of a figure: those in the first ten minutes to the second, later ones in longer bins.
fn changes_of(figure: Figure, windows: &[Window]) -> Vec<Change> {
    let (start, whole) = (Series::of_start(figure, windows), Series::of(figure, windows));
    let mut found = start.steps();
    let seen_s = start.values.len().saturating_sub(SIDE) as f64 * start.bin_s;
    if whole.bin_s > start.bin_s {
        let near = |at_s: f64| found.iter().any(|other| (other.at_s - at_s).abs() <= 2.0 * whole.bin_s);
        let later = whole.steps().into_iter().filter(|step| step.at_s > seen_s && !near(step.at_s));
        found.extend(later.collect::<Vec<_>>());
    }
    found
}

/// The changes of these figures in a run.
pub fn changes(figures: &[Figure], windows: &[Window]) -> Changes {
    let bins = figures.first().map_or(0, |&figure| Series::of(figure, windows).values.len());
    Changes {
        found: figures.iter().flat_map(|&figure| changes_of(figure, windows)).collect(),
        written_bytes: windows.iter().map(written_by).sum(),
        duration_s: windows.iter().map(|window| window.duration_ns).sum::<u64>() as f64 / 1e9,
        too_short: bins < 2 * SIDE,
    }
}

/// Bytes that the classes wrote in a window.
fn written_by(window: &Window) -> u64 {
    let writers = crate::class::Class::ALL.into_iter().filter(|class| class.writes());
    writers.map(|class| window.class(class).bytes).sum()
}

fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() - 1) as f64 * share;
    sorted.get(at.round() as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;

    /// A run of 1 s windows with the scan's MB/s by second, and 500 MB written in each.
    fn run(mb_per_s: impl Iterator<Item = f64>) -> Vec<Window> {
        let second = |(index, mb_per_s): (usize, f64)| {
            let mut window = Window {
                index: index as u64,
                start_ns: index as u64 * BIN_NS_MIN,
                duration_ns: BIN_NS_MIN,
                ..Window::default()
            };
            window.classes[Class::Scan.index()].mb_per_s = mb_per_s;
            for class in [Class::Wal, Class::Background] {
                window.classes[class.index()].bytes = 250_000_000;
            }
            window
        };
        mb_per_s.enumerate().map(second).collect()
    }

    /// Deterministic noise of some percent.
    fn noise(at: usize, percent: f64) -> f64 {
        let mixed = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        1.0 + percent / 100.0 * (mixed as f64 / f64::from(1 << 23) - 1.0)
    }

    fn scan(windows: &[Window]) -> Changes {
        changes(&[Figure::ScanMbPerS], windows)
    }

    #[test]
    fn a_drop_is_found_at_its_time_with_the_bytes_until_then() {
        let windows = run((0..180).map(|s| if s < 50 { 5400.0 } else { 3500.0 } * noise(s, 5.0)));
        let changes = scan(&windows);
        let [change] = &changes.found[..] else { panic!("{changes:?}") };
        assert!((change.at_s - 50.0).abs() <= 1.0, "{change:?}");
        assert!(change.written_bytes.abs_diff(25_000_000_000) <= 500_000_000, "{change:?}");
        assert!((change.before / 5400.0 - 1.0).abs() < 0.05 && (change.after / 3500.0 - 1.0).abs() < 0.05);
        assert_eq!(changes.written_bytes, 90_000_000_000);
        assert!(!changes.too_short);
    }

    #[test]
    fn the_two_drops_and_the_recovery_over_hours_are_found() {
        // As the paper describes Figure 4: at 50 s, at 35 min, and partly back at 80 min.
        let level = |s: usize| match s {
            0..50 => 5400.0,
            50..2100 => 4000.0,
            2100..4800 => 2000.0,
            _ => 3000.0,
        };
        let windows = run((0..7200).map(|s| level(s) * noise(s, 8.0)));
        let changes = scan(&windows);
        let at: Vec<_> = changes.found.iter().map(|change| change.at_s).collect();
        let [cache, collection, recovery] = at[..] else { panic!("{changes:?}") };
        assert!((cache - 50.0).abs() <= 1.0, "{at:?}");
        assert!((collection - 2100.0).abs() <= 12.0 && (recovery - 4800.0).abs() <= 12.0, "{at:?}");
        let written = changes.found[1].written_bytes as f64;
        assert!((written / 1.05e12 - 1.0).abs() < 0.01, "{written}");
    }

    /// CUSUM finds a change of level at the same steps.
    #[test]
    fn cusum_finds_the_same_steps() {
        let level = |s: usize| match s {
            0..50 => 5400.0,
            50..210 => 4000.0,
            210..480 => 2000.0,
            _ => 3000.0,
        };
        let values: Vec<f64> = (0..600).map(|s| level(s) * noise(s, 8.0)).collect();
        let times: Vec<_> = scan(&run(values.iter().copied())).found.iter().map(|step| step.at_s).collect();
        let found = crate::meter::whole_run::cusum::changes(&values);
        let near = times.iter().zip(&found).all(|(at_s, at)| (at_s - *at as f64).abs() <= 1.0);
        assert!(times.len() == 3 && found.len() == 3 && near, "{times:?} {found:?}");
    }

    #[test]
    fn noise_a_spike_and_a_slow_drift_are_not_changes() {
        let steady = run((0..300).map(|s| 3000.0 * noise(s, 15.0)));
        assert_eq!(scan(&steady).found, []);
        let spikes = run((0..300).map(|s| if s % 40 < 4 { 900.0 } else { 3000.0 } * noise(s, 5.0)));
        assert_eq!(scan(&spikes).found, []);
        let drift = run((0..300).map(|s| 3000.0 - f64::from(s) * 2.0));
        assert_eq!(scan(&drift).found, []);
        let small = run((0..300).map(|s| if s < 150 { 3000.0 } else { 2600.0 } * noise(s, 1.0)));
        assert_eq!(scan(&small).found, [], "less than a fifth");
    }

    #[test]
    fn a_run_that_is_too_short_is_marked() {
        let changes = scan(&run((0..29).map(|s| if s < 14 { 3000.0 } else { 1000.0 })));
        assert!(changes.too_short && changes.found.is_empty());
        assert!(!scan(&run((0..30).map(|_| 3000.0))).too_short);
        assert!(scan(&[]).too_short);
    }

    #[test]
    fn windows_that_are_not_a_second_long_keep_their_time() {
        let halves: Vec<_> = (0..400)
            .map(|index| {
                let mut window = run(std::iter::once(if index < 200 { 2000.0 } else { 1000.0 })).remove(0);
                window.start_ns = index * BIN_NS_MIN / 2;
                window.duration_ns = BIN_NS_MIN / 2;
                window
            })
            .collect();
        let changes = scan(&halves);
        assert_eq!(changes.found.len(), 1);
        assert_eq!((changes.found[0].at_s, changes.duration_s), (100.0, 200.0));
        assert_eq!(changes.found[0].written_bytes, 200 * 500_000_000);
    }
}
