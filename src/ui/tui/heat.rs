//! Latencies over time: how many I/Os of each window took how long, and where p50 and p99 were.

use std::ops::Range;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::meter::window::Window;

/// Buckets per decade.
pub const PER_DECADE: usize = 10;
/// The power of ten, in nanoseconds, at which the first bucket begins; shorter latencies are in it, too.
pub const FIRST_DECADE: i32 = 3;
/// Buckets in all, up to 100 s; the last also has whatever is longer.
pub const BUCKETS: usize = 80;
/// Stretches kept for the whole run; beyond that, each covers twice as many windows.
const WHOLE_MAX: usize = 512;

/// Whose latencies are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailOf {
    /// One class's.
    Class(Class),
    /// All classes' together.
    All,
}

impl TailOf {
    /// Each of them.
    pub const EACH: [Self; 5] = [
        Self::Class(Class::ALL[0]),
        Self::Class(Class::ALL[1]),
        Self::Class(Class::ALL[2]),
        Self::Class(Class::ALL[3]),
        Self::All,
    ];

    /// The next one: each class, then all.
    pub fn next(self) -> Self {
        let at = Self::EACH.iter().position(|each| *each == self).unwrap_or(0);
        Self::EACH[(at + 1) % Self::EACH.len()]
    }
}

/// Counts of I/Os by latency; serialized as the non-zero ones, each with its bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(usize, u32)>", into = "Vec<(usize, u32)>")]
pub struct Counts(Box<[u32; BUCKETS]>);

impl From<Vec<(usize, u32)>> for Counts {
    fn from(used: Vec<(usize, u32)>) -> Self {
        let mut counts = Self::default();
        for (bucket, count) in used.into_iter().filter(|(bucket, _)| *bucket < BUCKETS) {
            counts.0[bucket] = count;
        }
        counts
    }
}

impl From<Counts> for Vec<(usize, u32)> {
    fn from(counts: Counts) -> Self {
        counts.0.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

impl Counts {
    fn of(histogram: Option<&Histogram<u64>>) -> Self {
        let mut counts = Self::default();
        for value in histogram.iter().flat_map(|histogram| histogram.iter_recorded()) {
            let count = u32::try_from(value.count_at_value()).unwrap_or(u32::MAX);
            let bucket = &mut counts.0[bucket(value.value_iterated_to())];
            *bucket = bucket.saturating_add(count);
        }
        counts
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(other.0.iter()) {
            *own = own.saturating_add(*other);
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.0.iter().copied().map(u64::from).sum()
    }

    /// How many there are in some buckets.
    pub fn within(&self, buckets: Range<usize>) -> u64 {
        self.0[buckets].iter().copied().map(u64::from).sum()
    }

    /// The bucket of the quantile that one I/O in `one_in` exceeds: 100 for p99. None if fewer than ten exceed it.
    pub fn quantile(&self, one_in: u64) -> Option<usize> {
        const BEYOND: u64 = 10;
        let beyond = self.total() / one_in;
        if beyond < BEYOND {
            return None;
        }
        let mut seen = 0;
        (0..BUCKETS).rev().find(|at| {
            seen += u64::from(self.0[*at]);
            seen > beyond
        })
    }

    /// The first and the last bucket that is not empty.
    pub fn span(&self) -> Option<(usize, usize)> {
        let used = |at: &usize| self.0[*at] > 0;
        Some(((0..BUCKETS).find(used)?, (0..BUCKETS).rev().find(used)?))
    }
}

/// The bucket of a latency.
pub fn bucket(ns: u64) -> usize {
    let decades = (ns.max(1) as f64).log10() - f64::from(FIRST_DECADE);
    ((decades * PER_DECADE as f64).floor().max(0.0) as usize).min(BUCKETS - 1)
}

/// The latencies of all classes in a stretch of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tails {
    /// The end of its first window, on the run's clock.
    first_end_ns: u64,
    /// Its end.
    end_ns: u64,
    /// Windows in it.
    windows: u64,
    /// Service times by class.
    service: [Counts; 4],
    /// Response times by class.
    response: [Counts; 4],
}

impl Tails {
    /// Those of a window.
    pub fn of(window: &Window) -> Self {
        Self {
            first_end_ns: window.start_ns + window.duration_ns,
            end_ns: window.start_ns + window.duration_ns,
            windows: 1,
            service: Class::ALL.map(|class| Counts::of(window.histograms[class.index()].service.as_ref())),
            response: Class::ALL.map(|class| {
                let histogram = window.histograms[class.index()].response.as_ref();
                Counts::of(histogram.filter(|_| !window.class(class).not_held))
            }),
        }
    }

    fn add(&mut self, later: &Self) {
        self.end_ns = later.end_ns;
        self.windows += later.windows;
        for (own, later) in self.service.iter_mut().zip(&later.service) {
            own.add(later);
        }
        for (own, later) in self.response.iter_mut().zip(&later.response) {
            own.add(later);
        }
    }

    /// Adds its latencies, of one class or of all, to the sum.
    fn add_to(&self, sum: &mut Counts, latencies: Latencies) {
        let classes = if latencies.response { &self.response } else { &self.service };
        match latencies.of {
            TailOf::Class(class) => sum.add(&classes[class.index()]),
            TailOf::All => classes.iter().for_each(|class| sum.add(class)),
        }
    }
}

/// Which latencies to show.
#[derive(Debug, Clone, Copy)]
pub struct Latencies {
    /// Whose.
    pub of: TailOf,
    /// From the intended start, rather than from the hand-over.
    pub response: bool,
}

/// A column of the map: a stretch of time, and the latencies asked for.
#[derive(Debug)]
pub struct Column {
    /// Its place in the run; the next column's is one more. It decides which columns share a cell, so that they stay
    /// together as the map moves.
    pub place: usize,
    first_end_ns: u64,
    /// The end of its last window, on the run's clock.
    pub end_ns: u64,
    /// Its I/Os by latency.
    pub counts: Counts,
}

impl Column {
    /// Merges consecutive stretches.
    fn of(place: usize, stretches: &[&Tails], latencies: Latencies) -> Self {
        let mut counts = Counts::default();
        stretches.iter().for_each(|stretch| stretch.add_to(&mut counts, latencies));
        let [first, last] = [stretches[0], stretches[stretches.len() - 1]];
        Self { place, first_end_ns: first.first_end_ns, end_ns: last.end_ns, counts }
    }

    /// Whether the window that ended then is in it.
    pub fn holds(&self, end_ns: u64) -> bool {
        (self.first_end_ns..=self.end_ns).contains(&end_ns)
    }
}

/// The latencies of a whole run over time.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// All of the run.
    whole: Vec<Tails>,
    /// Windows in each stretch but the last.
    each: u64,
}

/// Which of `all` columns are visible where `cells` fit: the last ones, or those around the one at `shown`, with three
/// times as many after it as before.
pub fn visible(shown: usize, all: usize, cells: usize) -> Range<usize> {
    let first = shown.saturating_sub(cells / 4).min(all.saturating_sub(cells));
    first..(first + cells).min(all)
}

/// A column for each of these consecutive windows, given with their places in the run.
pub fn columns<'a>(windows: impl Iterator<Item = (usize, &'a Tails)>, latencies: Latencies) -> Vec<Column> {
    windows.map(|(place, window)| Column::of(place, &[window], latencies)).collect()
}

impl Timeline {
    /// Takes a window's latencies.
    pub fn window(&mut self, stretch: &Tails) {
        self.each = self.each.max(1);
        match self.whole.last_mut().filter(|last| last.windows < self.each) {
            Some(last) => last.add(stretch),
            None => self.whole.push(stretch.clone()),
        }
        if self.whole.len() > WHOLE_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let stretches = std::mem::take(&mut self.whole);
        for stretch in stretches {
            match self.whole.last_mut().filter(|last| last.windows < self.each * 2) {
                Some(last) => last.add(&stretch),
                None => self.whole.push(stretch),
            }
        }
        self.each *= 2;
    }

    /// The whole run in at most that many columns.
    pub fn whole(&self, cells: usize, latencies: Latencies) -> Vec<Column> {
        let together = self.whole.len().div_ceil(cells.max(1)).max(1);
        let all: Vec<_> = self.whole.iter().collect();
        let columns = all.chunks(together).enumerate();
        columns.map(|(place, stretches)| Column::of(place, stretches, latencies)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SERVICE: Latencies = Latencies { of: TailOf::All, response: false };

    fn window(index: u64, latencies_ns: impl Iterator<Item = u64>) -> Window {
        let mut window = Window { index, start_ns: index * 1000, duration_ns: 1000, ..Window::default() };
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        latencies_ns.for_each(|ns| histogram.record(ns).unwrap());
        Arc::make_mut(&mut window.histograms)[Class::Wal.index()].service = Some(histogram);
        window
    }

    #[test]
    fn buckets_are_tenths_of_decades() {
        assert_eq!([1, 1_000, 1_300, 10_000, 1_000_000].map(bucket), [0, 0, 1, 10, 30]);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_need_ten_samples_beyond_them() {
        let window = window(0, (0..1000).map(|n| if n < 985 { 100_000 } else { 50_000_000 }));
        let stretch = Tails::of(&window);
        let of_one = || std::iter::once((0, &stretch));
        let counts = |of, response| columns(of_one(), Latencies { of, response }).remove(0).counts;
        let (of_all, of_response) = (counts(TailOf::All, false), counts(TailOf::All, true));
        let counts = counts(TailOf::Class(Class::Wal), false);
        assert_eq!((counts.total(), counts.quantile(2), counts.quantile(100)), (1000, Some(20), Some(46)));
        assert_eq!(counts.quantile(1000), None);
        assert_eq!(counts.span(), Some((20, 46)));
        assert_eq!(of_all, counts);
        assert_eq!(of_response.total(), 0);
    }

    #[test]
    fn the_whole_run_stays_in_bounds_and_loses_nothing() {
        let mut timeline = Timeline::default();
        for index in 0..3000 {
            timeline.window(&Tails::of(&window(index, std::iter::once(5_000))));
        }
        for cells in [1, 7, 100, 600] {
            let columns = timeline.whole(cells, SERVICE);
            assert!(columns.len() <= cells);
            assert_eq!(columns.iter().map(|column| column.counts.total()).sum::<u64>(), 3000);
            assert!(columns.is_sorted_by_key(|column| column.end_ns));
        }
    }

    #[test]
    fn counts_are_written_and_read_back() {
        let counts = Tails::of(&window(0, [5_000, 5_000, 90_000_000].into_iter())).service[2].clone();
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(text, "[[6,2],[49,1]]");
        assert_eq!(serde_json::from_str::<Counts>(&text).unwrap(), counts);
        assert_eq!(serde_json::from_str::<Counts>("[[80,1]]").unwrap(), Counts::default());
    }

    #[test]
    fn each_class_and_all_come_in_turn() {
        let mut of = TailOf::All;
        for _ in 0..5 {
            of = of.next();
        }
        assert_eq!(of, TailOf::All);
    }
}
