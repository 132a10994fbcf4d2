//! Percentiles of the last windows together, where one window has too few I/Os.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::latency::SAMPLES_BEYOND;
use super::samples::Samples;
use crate::class::Class;
use crate::meter::window::{ClassHistograms, ClassState, Latency, Window};

/// The most windows that are pooled.
const WINDOWS_MAX: usize = 60;
/// The percentiles, as one in how many samples lies beyond each.
const ONE_IN: [u64; 3] = [2, 10, 100];

/// A percentile of several windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pooled {
    /// Its latency.
    pub ns: u64,
    /// How long the windows are together.
    pub span_ns: u64,
}

/// The percentiles that a window itself lacks; none where even sixty windows have too few samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PooledLatency {
    /// Median.
    pub p50: Option<Pooled>,
    /// 90th percentile.
    pub p90: Option<Pooled>,
    /// 99th percentile.
    pub p99: Option<Pooled>,
    /// The longest, over the windows of the percentile that needs the most of them: the last window's own
    /// maximum could be smaller than that percentile.
    pub max: Option<Pooled>,
}

/// A class's latencies, likewise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PooledLatencies {
    /// See [`crate::meter::window::Latencies::service_ns`].
    pub service: PooledLatency,
    /// See [`crate::meter::window::Latencies::response_ns`].
    pub response: PooledLatency,
    /// See [`crate::meter::window::Latencies::write_ns`].
    pub write: PooledLatency,
    /// See [`crate::meter::window::Latencies::flush_ns`].
    pub flush: PooledLatency,
}

/// The last windows of one setting.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    setting: Option<(u64, bool)>,
    /// By class: service, response, write and flush.
    recent: [[Recent; 4]; 4],
}

/// The fewest windows that have enough samples for every percentile, the newest last.
#[derive(Debug, Clone, Default)]
struct Recent(VecDeque<(Samples, u64)>);

impl Pool {
    /// Takes the next window; percentiles that it lacks come from the last windows of its setting.
    pub fn window(&mut self, window: &Window) -> [PooledLatencies; 4] {
        let setting = Some((window.setting, window.warmup));
        if window.turned || window.paused || self.setting != setting {
            self.recent = Default::default();
        }
        self.setting = setting;
        Class::ALL.map(|class| {
            let (figures, at) = (window.class(class), class.index());
            let recent = &mut self.recent[at];
            if figures.state != ClassState::Running {
                *recent = Default::default();
                return PooledLatencies::default();
            }
            let ClassHistograms { service, response, write, flush } = &window.histograms[at];
            let of = &figures.latencies;
            let response = response.as_ref().filter(|_| !figures.not_held);
            let all = [
                (service.as_ref(), &of.service_ns),
                (response, &of.response_ns),
                (write.as_ref(), &of.write_ns),
                (flush.as_ref(), &of.flush_ns),
            ];
            let mut all = all.into_iter().zip(recent).map(|((histogram, latency), recent)| {
                let max_ns = latency.as_ref().and_then(|latency| latency.max);
                let samples = histogram.map(|histogram| Samples::of(histogram, max_ns)).unwrap_or_default();
                recent.take(samples, window.duration_ns);
                recent.lacking(latency.as_ref())
            });
            let mut next = || all.next().unwrap_or_default();
            PooledLatencies { service: next(), response: next(), write: next(), flush: next() }
        })
    }
}

impl Recent {
    fn take(&mut self, samples: Samples, duration_ns: u64) {
        const ENOUGH: u64 = ONE_IN[ONE_IN.len() - 1] * SAMPLES_BEYOND;
        self.0.push_back((samples, duration_ns));
        let count: u64 = self.0.iter().map(|(samples, _)| samples.count()).sum();
        let spare = |first: &(Samples, u64), count: u64| count - first.0.count() >= ENOUGH;
        let mut left = count;
        while self.0.len() > WINDOWS_MAX || self.0.front().is_some_and(|first| spare(first, left)) {
            left -= self.0.pop_front().map_or(0, |(samples, _)| samples.count());
        }
    }

    /// The percentiles that the last window lacks.
    fn lacking(&self, last: Option<&Latency>) -> PooledLatency {
        let own = last.map(|last| [last.p50, last.p90, last.p99]).unwrap_or_default();
        let pooled = own.into_iter().zip(ONE_IN).map(|(own, one_in)| {
            if own.is_some() {
                return None;
            }
            let (mut count, mut span_ns) = (0, 0);
            let from_end = self.0.iter().rev().take_while(|(samples, duration_ns)| {
                let taken = count / one_in < SAMPLES_BEYOND;
                if taken {
                    (count, span_ns) = (count + samples.count(), span_ns + duration_ns);
                }
                taken
            });
            let pooled = Samples::pooled(from_end.map(|(samples, _)| samples));
            let over = |ns| Pooled { ns, span_ns };
            Some((over(pooled.percentile(one_in)?), over(pooled.max()?)))
        });
        let pooled: Vec<Option<(Pooled, Pooled)>> = pooled.collect();
        let of = |at: usize| pooled[at].map(|(percentile, _)| percentile);
        let max = pooled.iter().flatten().map(|(_, max)| *max).max_by_key(|max| max.span_ns);
        PooledLatency { p50: of(0), p90: of(1), p99: of(2), max }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hdrhistogram::Histogram;

    use super::*;
    use crate::units::SECOND_NS;

    /// A window with this many commits of the WAL, each taking twice as long as in the window before.
    fn window(index: u64, commits: u64) -> Window {
        let mut window = Window { index, duration_ns: SECOND_NS, ..Window::default() };
        let mut histogram = Histogram::new(3).unwrap();
        (0..commits).for_each(|n| histogram.record(1000 * (index + 1) + n).unwrap());
        let p50 = (commits >= 20).then(|| histogram.value_at_quantile(0.5));
        let p90 = (commits >= 100).then(|| histogram.value_at_quantile(0.9));
        let p99 = (commits >= 1000).then(|| histogram.value_at_quantile(0.99));
        let latency = Latency { count: commits, p50, p90, p99, ..Latency::default() };
        window.classes[2].latencies.service_ns = Some(latency);
        Arc::make_mut(&mut window.histograms)[2].service = Some(histogram);
        window
    }

    #[test]
    fn a_percentile_is_that_of_the_fewest_windows_with_enough_samples() {
        let mut pool = Pool::default();
        let mut of = |window: &Window| pool.window(window)[2].service;
        let spans = |of: PooledLatency| [of.p50, of.p90, of.p99].map(|p| p.map(|p| p.span_ns / SECOND_NS));
        assert_eq!(spans(of(&window(0, 300))), [None, None, None]);
        assert_eq!(spans(of(&window(1, 300))), [None, None, None]);
        assert_eq!(spans(of(&window(2, 300))), [None, None, None]);
        assert_eq!(spans(of(&window(3, 300))), [None, None, Some(4)]);
        assert_eq!(spans(of(&window(4, 600))), [None, None, Some(3)], "fewer are enough");
        assert_eq!(spans(of(&window(5, 2000))), [None, None, None], "it has its own");
        assert_eq!(spans(of(&window(6, 9))), [Some(2), Some(2), Some(2)]);
        let turned = Window { setting: 1, ..window(7, 9) };
        assert_eq!(spans(of(&turned)), [None, None, None], "what was before a turn is another setting's");
    }

    #[test]
    fn windows_that_are_too_many_or_of_a_stopped_class_are_not_pooled() {
        let mut pool = Pool::default();
        let all = (0..100).map(|index| pool.window(&window(index, 15))[2].service).collect::<Vec<_>>();
        assert!(all.iter().all(|of| of.p99.is_none()) && pool.recent[2][0].0.len() == WINDOWS_MAX);
        assert_eq!(all[99].p50.map(|p50| p50.span_ns), Some(2 * SECOND_NS));
        let mut stopped = window(100, 0);
        stopped.classes[2].state = ClassState::Off;
        assert_eq!(pool.window(&stopped)[2], PooledLatencies::default());
        assert_eq!(pool.window(&window(101, 15))[2].service.p50, None);
    }
}
