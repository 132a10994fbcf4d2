//! What a class did in a stretch of a trace.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::ops::Range;

use super::streams::Like;
use crate::class::Class;
use crate::trace::io::{Op, TracedIo};
use crate::units::SECOND_NS;

/// What a class did in a stretch of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClassTraffic {
    /// Where its I/Os began, in the order of their issues.
    pub offsets: Vec<u64>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// The length of the stretch.
    pub seconds: f64,
    /// Those that went on where an earlier one had ended.
    pub going_on: u64,
    /// Flushes, if it is the log.
    pub flushes: u64,
    /// Its open I/Os in the mean, and at 99% of its issues at most; none where completions are not known.
    pub depth: Option<(f64, u64)>,
    /// The standard deviation of the times between issues, by their mean.
    pub gap_spread: f64,
}

impl ClassTraffic {
    /// Of the I/Os, each of which is like a class, those of one class that were issued in that time.
    pub fn of(
        ios: &[TracedIo],
        likes: &[Like],
        class: Class,
        time_ns: &Range<u64>,
        knows_depth: bool,
    ) -> Self {
        let mut of = Self::default();
        let (mut issued_ns, mut ends_ns, mut depths) = (Vec::new(), BinaryHeap::new(), Vec::new());
        let mut taken_ns = 0.0;
        for (io, like) in ios.iter().zip(likes).filter(|(io, _)| time_ns.contains(&io.issued_ns)) {
            of.flushes += u64::from(class == Class::Wal && io.op == Op::Flush);
            if like.class != Some(class) {
                continue;
            }
            of.offsets.push(io.offset_bytes);
            of.bytes += u64::from(io.bytes);
            of.going_on += u64::from(like.goes_on);
            issued_ns.push(io.issued_ns);
            while ends_ns.peek().is_some_and(|Reverse(end_ns)| *end_ns <= io.issued_ns) {
                ends_ns.pop();
            }
            if let Some(end_ns) = io.completed_ns {
                ends_ns.push(Reverse(end_ns));
                taken_ns += end_ns.saturating_sub(io.issued_ns) as f64;
            }
            depths.push(ends_ns.len().max(1) as u64);
        }
        let length_ns = (time_ns.end - time_ns.start).max(1) as f64;
        of.seconds = length_ns / SECOND_NS as f64;
        of.gap_spread = spread(issued_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64));
        depths.sort_unstable();
        let high = depths.get((depths.len() * 99 / 100).min(depths.len().saturating_sub(1)));
        of.depth = high.filter(|_| knows_depth).map(|high| (taken_ns / length_ns, *high));
        of
    }

    /// How many I/Os it issued.
    pub fn ios(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// Their mean size; 0 without any.
    pub fn mean_bytes(&self) -> f64 {
        self.bytes as f64 / self.ios().max(1) as f64
    }

    /// The share of I/Os that went on where an earlier one had ended.
    pub fn sequential_share(&self) -> f64 {
        self.going_on as f64 / self.ios().max(1) as f64
    }

    /// How many different pages the first of its I/Os begin in, by the number of these.
    pub fn distinct_share(&self, page_bytes: u64, first: u64) -> f64 {
        let taken = &self.offsets[..self.offsets.len().min(first as usize)];
        let pages: HashSet<u64> = taken.iter().map(|offset| offset / page_bytes).collect();
        pages.len() as f64 / taken.len().max(1) as f64
    }
}

/// The standard deviation by the mean; 0 of nothing.
fn spread(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for number in numbers {
        count += 1.0;
        sum += number;
        squares += number * number;
    }
    let mean: f64 = sum / f64::max(count, 1.0);
    if mean <= 0.0 {
        return 0.0;
    }
    let variance: f64 = squares / count - mean * mean;
    variance.max(0.0).sqrt() / mean
}
