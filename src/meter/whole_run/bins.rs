//! A run of any length in at most 600 bins of equal length, which are merged as the run continues.

use std::collections::BTreeMap;

use crate::class::Class;
use crate::meter::programs::program::MetricFigures;
use crate::meter::window::Window;
use crate::meter::written::Written;

/// The maximum number of bins of a run.
pub const BINS_MAX: u64 = 600;
/// The minimum length of a bin; longer windows get a bin each.
pub const BIN_NS_MIN: u64 = 1_000_000_000;

/// The counts of a bin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bin {
    /// Its start, on the run's clock.
    pub start_ns: u64,
    /// The total length of its windows.
    pub duration_ns: u64,
    /// Bytes of each class, by [`Class::index`].
    pub class_bytes: [u64; 4],
    /// Completed I/Os of all classes.
    pub ios: u64,
    /// Bytes written on each level.
    pub written: Written,
    /// What a program reported.
    pub metrics: BTreeMap<String, MetricFigures>,
}

/// The bins of a run.
#[derive(Debug)]
pub struct Bins {
    bin_ns: u64,
    whole: Vec<Bin>,
    /// The last one, which is not yet complete.
    open: Bin,
}

impl Default for Bins {
    fn default() -> Self {
        Self { bin_ns: BIN_NS_MIN, whole: Vec::new(), open: Bin::default() }
    }
}

impl Bin {
    fn of(window: &Window) -> Self {
        Self {
            start_ns: window.start_ns,
            duration_ns: window.duration_ns,
            class_bytes: Class::ALL.map(|class| window.class(class).bytes),
            ios: window.classes.iter().map(|class| class.ios).sum(),
            written: window.written.clone(),
            metrics: window.program.as_ref().map(|program| program.metrics.clone()).unwrap_or_default(),
        }
    }

    /// Adds a later span.
    pub fn add(&mut self, later: &Self) {
        if self.duration_ns == 0 {
            *self = later.clone();
            return;
        }
        self.duration_ns += later.duration_ns;
        self.ios += later.ios;
        for (sum, more) in self.class_bytes.iter_mut().zip(later.class_bytes) {
            *sum += more;
        }
        self.written.add(&later.written);
        for (name, later) in &later.metrics {
            self.metrics
                .entry(name.clone())
                .and_modify(|sum| sum.add(later))
                .or_insert_with(|| later.clone());
        }
    }

    /// Bytes of all classes.
    pub fn bytes(&self) -> u64 {
        self.class_bytes.iter().sum()
    }
}

impl Bins {
    /// Adds a window.
    pub fn add(&mut self, window: &Window) {
        self.open.add(&Bin::of(window));
        // Windows end a little late or early, which must not make bins longer.
        if self.open.duration_ns + window.duration_ns / 10 < self.bin_ns {
            return;
        }
        self.whole.push(std::mem::take(&mut self.open));
        if self.whole.len() as u64 >= BINS_MAX {
            self.whole = self.whole.chunks(2).map(sum).collect();
            self.bin_ns *= 2;
        }
    }

    /// Forgets everything, as after a turn.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The complete bins, in order.
    pub fn whole(&self) -> &[Bin] {
        &self.whole
    }
}

/// Merges several bins.
pub fn sum(bins: &[Bin]) -> Bin {
    let mut sum = Bin::default();
    bins.iter().for_each(|bin| sum.add(bin));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(count: u64, ms: u64) -> impl Iterator<Item = Window> {
        (0..count).map(move |index| {
            let mut window = Window {
                index,
                start_ns: index * ms * 1_000_000,
                duration_ns: ms * 1_000_000,
                ..Window::default()
            };
            window.classes[0].bytes = 10 * ms;
            window.classes[2].ios = ms;
            window
        })
    }

    fn binned(count: u64, ms: u64) -> Bins {
        let mut bins = Bins::default();
        windows(count, ms).for_each(|window| bins.add(&window));
        bins
    }

    #[test]
    fn windows_shorter_and_longer_than_a_bin_keep_their_sums() {
        for (count, ms, bins, bin_ms) in [(95, 100, 9, 1000), (9, 1000, 9, 1000), (3, 5000, 3, 5000)] {
            let binned = binned(count, ms);
            let whole = binned.whole();
            assert_eq!((whole.len(), whole[1].duration_ns / 1_000_000), (bins, bin_ms));
            assert_eq!(whole[1].start_ns / 1_000_000, bin_ms);
            assert!(whole.iter().all(|bin| bin.bytes() == 10 * bin_ms && bin.ios == bin_ms));
        }
    }

    #[test]
    fn a_long_run_has_longer_bins_not_more_of_them() {
        let binned = binned(7200, 1000);
        let whole = binned.whole();
        assert!((300..600).contains(&whole.len()), "{}", whole.len());
        assert_eq!(whole[0].duration_ns, 16 * BIN_NS_MIN);
        assert_eq!(sum(whole).bytes(), whole.len() as u64 * 16 * 10_000);
        let mut cleared = binned;
        cleared.clear();
        assert!(cleared.whole().is_empty());
    }
}
