//! Neighbouring windows together, where one alone has too few I/Os to show how a percentile varies.

use std::sync::Arc;

use super::samples::Samples;

/// Samples beyond a percentile in each stretch.
const BEYOND: u64 = 3;
/// Windows of a stretch that are kept one by one.
const HELD: usize = 64;

/// Neighbouring windows.
pub struct SampleStretch {
    /// Their samples.
    pub samples: Samples,
    /// Their number.
    pub windows: usize,
}

/// Groups windows into stretches that each hold enough samples; windows left over at the end join the last one.
pub fn stretches<'a>(windows: impl Iterator<Item = &'a Arc<Samples>>, one_in: u64) -> Vec<SampleStretch> {
    let mut stretches: Vec<SampleStretch> = Vec::new();
    let mut open: Vec<&Samples> = Vec::new();
    for samples in windows {
        open.push(samples);
        if is_enough(open.iter().copied(), one_in) {
            stretches
                .push(SampleStretch { samples: Samples::pooled(open.iter().copied()), windows: open.len() });
            open.clear();
        }
    }
    if !open.is_empty() {
        let rest = SampleStretch { samples: Samples::pooled(open.iter().copied()), windows: open.len() };
        match stretches.last_mut() {
            Some(last) => {
                last.samples = Samples::pooled([&last.samples, &rest.samples]);
                last.windows += rest.windows;
            }
            None => stretches.push(rest),
        }
    }
    stretches
}

fn is_enough<'a>(windows: impl Iterator<Item = &'a Samples>, one_in: u64) -> bool {
    windows.map(Samples::count).sum::<u64>() / one_in >= BEYOND
}

/// A percentile of each such stretch, while the windows of a run arrive: only the windows of the last two are kept.
pub struct StretchLevels {
    one_in: u64,
    levels: Vec<f64>,
    last: Vec<Arc<Samples>>,
    open: Vec<Arc<Samples>>,
}

impl StretchLevels {
    /// For the percentile with one in `one_in` samples beyond it.
    pub fn new(one_in: u64) -> Self {
        Self { one_in, levels: Vec::new(), last: Vec::new(), open: Vec::new() }
    }

    /// Takes the next window.
    pub fn window(&mut self, samples: &Arc<Samples>) {
        if self.open.len() == HELD {
            self.open = vec![Arc::new(pooled(&self.open))];
        }
        self.open.push(samples.clone());
        if is_enough(self.open.iter().map(|samples| &**samples), self.one_in) {
            self.levels.extend(pooled(&self.open).level(self.one_in));
            self.last = std::mem::take(&mut self.open);
        }
    }

    /// The stretches' percentiles, oldest first.
    pub fn all(mut self) -> Vec<f64> {
        if !self.open.is_empty() {
            self.levels.pop();
            self.last.append(&mut self.open);
            self.levels.extend(pooled(&self.last).level(self.one_in));
        }
        self.levels
    }
}

fn pooled(windows: &[Arc<Samples>]) -> Samples {
    Samples::pooled(windows.iter().map(|samples| &**samples))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    #[test]
    fn levels_are_those_of_the_stretches() {
        let window = |(at, ios): (u64, u64)| {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            (0..ios).for_each(|n| histogram.record(1000 + at * 7919 % 500 + n * 31 % 997).unwrap());
            Arc::new(Samples::of(&histogram, None))
        };
        for (windows, ios) in [(100, 40), (100, 2), (7, 400), (3, 10), (0, 10)] {
            let all: Vec<_> = (0..windows).map(|at| window((at, ios + at % 3))).collect();
            let expected = stretches(all.iter(), 100);
            let expected: Vec<_> = expected.iter().filter_map(|of| of.samples.level(100)).collect();
            let mut levels = StretchLevels::new(100);
            all.iter().for_each(|samples| levels.window(samples));
            assert_eq!(levels.all(), expected, "{windows} of {ios}");
        }
    }
}
