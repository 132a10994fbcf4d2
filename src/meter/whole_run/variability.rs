//! How much the throughput varies, and the seconds without progress (Didona et al. 2021, 4.7 and Figure 11).

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::meter::window::{ClassState, Window};
use crate::units::{SECOND_NS, mb_per_s};

/// The span of Figure 11.
const LONG_S: u64 = 60;
/// With fewer spans than this, shorter ones are used.
const SPANS_MIN: u64 = 3;

/// How the throughput of all classes varies over means of a minute (a second if the run is shorter than three
/// minutes).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Variability {
    /// The span of a mean in seconds: 60 or 1, or the length of a longer window.
    pub of_s: u64,
    /// The number of means.
    pub spans: u64,
    /// The largest minus the smallest mean, over the mean of all; none with fewer than three, or if all are zero.
    pub swing: Option<f64>,
    /// Their standard deviation over their mean.
    pub deviation: Option<f64>,
    /// Seconds of windows in which a class completed nothing although something was due: the longest of the four.
    pub stalled_s: f64,
    /// The same for each class, by [`Class::index`].
    #[serde(with = "crate::class::by_name")]
    #[cfg_attr(test, schemars(with = "crate::class::by_name::ByName<f64>"))]
    pub classes_stalled_s: [f64; 4],
}

/// Adds up windows.
#[derive(Debug)]
pub struct VariabilityWatch {
    short: Spans,
    long: Spans,
    stalled_ns: [u64; 4],
    /// Bytes per I/O of each class, as of the last time it completed any.
    page_bytes: [u64; 4],
}

/// Running statistics of the means over spans of one length.
#[derive(Debug)]
struct Spans {
    s: u64,
    bytes: u64,
    ns: u64,
    count: u64,
    mean: f64,
    /// Sum of squared differences from the mean (Welford).
    squares: f64,
    least: f64,
    most: f64,
}

impl Default for VariabilityWatch {
    fn default() -> Self {
        Self { short: Spans::of(1), long: Spans::of(LONG_S), stalled_ns: [0; 4], page_bytes: [0; 4] }
    }
}

impl VariabilityWatch {
    /// Takes the next counted window.
    pub fn add(&mut self, window: &Window) {
        if window.paused {
            return;
        }
        self.short.add(window);
        self.long.add(window);
        for class in Class::ALL {
            let figures = window.class(class);
            let page = &mut self.page_bytes[class.index()];
            *page = figures.bytes.checked_div(figures.ios).unwrap_or(*page);
            // A stuck worker does not count the I/Os it should start, so the rate decides. It may be so low
            // that nothing is due in a window; with eight pages' worth due, Poisson arrivals yield none once
            // in 3,000.
            let due = figures.target_mb_per_s.is_none_or(|rate_mb_per_s| {
                let due_bytes = rate_mb_per_s * window.duration_ns as f64 / 1e3;
                figures.intended > 0 || (*page > 0 && due_bytes >= 8.0 * *page as f64)
            });
            if figures.state == ClassState::Running && due && figures.ios == 0 && !window.turned {
                self.stalled_ns[class.index()] += window.duration_ns;
            }
        }
    }

    /// The result so far.
    pub fn variability(&self) -> Variability {
        let spans = if self.long.count >= SPANS_MIN { &self.long } else { &self.short };
        let enough = spans.count >= SPANS_MIN && spans.mean > 0.0;
        let classes_stalled_s = self.stalled_ns.map(|ns| ns as f64 / 1e9);
        Variability {
            of_s: spans.s,
            spans: spans.count,
            swing: enough.then(|| (spans.most - spans.least) / spans.mean),
            deviation: enough.then(|| (spans.squares / spans.count as f64).sqrt() / spans.mean),
            stalled_s: classes_stalled_s.into_iter().fold(0.0, f64::max),
            classes_stalled_s,
        }
    }
}

impl Spans {
    fn of(s: u64) -> Self {
        Self { s, bytes: 0, ns: 0, count: 0, mean: 0.0, squares: 0.0, least: f64::INFINITY, most: 0.0 }
    }

    fn add(&mut self, window: &Window) {
        self.bytes += window.total.bytes;
        self.ns += window.duration_ns;
        let span_ns = self.s * SECOND_NS;
        // Windows end a little late or early.
        if self.ns + window.duration_ns / 2 < span_ns {
            return;
        }
        // Windows that are longer make longer spans.
        self.s = self.s.max((self.ns + SECOND_NS / 2) / SECOND_NS);
        let value = mb_per_s(self.bytes, self.ns);
        (self.bytes, self.ns) = (0, 0);
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(second: u64, ios: u64) -> Window {
        let mut window = Window { start_ns: second * SECOND_NS, duration_ns: SECOND_NS, ..Window::default() };
        for class in Class::ALL {
            window.classes[class.index()].state = ClassState::Off;
        }
        let scan = &mut window.classes[0];
        (scan.state, scan.ios, scan.bytes) = (ClassState::Running, ios, ios * 1_000_000);
        window.total.bytes = ios * 1_000_000;
        window
    }

    fn of(ios: impl Iterator<Item = u64>) -> Variability {
        let mut watch = VariabilityWatch::default();
        ios.enumerate().for_each(|(second, ios)| watch.add(&window(second as u64, ios)));
        watch.variability()
    }

    #[test]
    fn swings_are_over_minutes_if_there_are_three() {
        // A whole minute at 300, one at 100, one at 200: a swing of 100%.
        let minutes = [300, 100, 200];
        let long = of((0..180).map(|second| minutes[second / 60]));
        assert_eq!((long.of_s, long.spans, long.swing), (60, 3, Some(1.0)));
        assert!((long.deviation.unwrap() - (2.0_f64 / 3.0).sqrt() / 2.0).abs() < 1e-9);
        let short = of((0..170).map(|second| minutes[second / 60]));
        assert_eq!((short.of_s, short.spans), (1, 170));
        assert_eq!(of([5, 5].into_iter()).swing, None, "two are too few");
        let level = of(std::iter::repeat_n(7, 10));
        assert_eq!((level.swing, level.deviation, level.stalled_s), (Some(0.0), Some(0.0), 0.0));
    }

    #[test]
    fn only_windows_in_which_something_was_due_count_as_without_progress() {
        let stalls = of((0..20).map(|second| if (5..8).contains(&second) { 0 } else { 9 }));
        assert_eq!((stalls.stalled_s, stalls.classes_stalled_s), (3.0, [3.0, 0.0, 0.0, 0.0]));
        let mut watch = VariabilityWatch::default();
        let mut rated = window(0, 0);
        rated.classes[0].target_mb_per_s = Some(0.001);
        watch.add(&rated);
        rated.paused = true;
        rated.classes[0].intended = 3;
        watch.add(&rated);
        assert_eq!(watch.stalled_ns, [0; 4], "nothing was due; and it was paused");
        rated.paused = false;
        watch.add(&rated);
        assert_eq!(watch.stalled_ns, [SECOND_NS, 0, 0, 0]);

        // A worker that hangs in a flush does not even count the I/Os it should have started.
        let mut watch = VariabilityWatch::default();
        for ios in [9, 0, 0, 9] {
            let mut rated = window(0, ios);
            rated.classes[0].target_mb_per_s = Some(9.0);
            watch.add(&rated);
        }
        assert_eq!(watch.stalled_ns, [2 * SECOND_NS, 0, 0, 0]);
    }
}
