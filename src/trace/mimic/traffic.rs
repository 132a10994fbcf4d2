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
    /// Where its I/Os began, in order of issue.
    pub offsets: Vec<u64>,
    /// Total bytes.
    pub bytes: u64,
    /// Length of the stretch.
    pub seconds: f64,
    /// I/Os that continued where an earlier one had ended.
    pub going_on: u64,
    /// Number of flushes, if it is the log.
    pub flushes: u64,
    /// Its open I/Os: the mean, and the 99th percentile over its issues; `None` if completions are not known.
    pub depth: Option<(f64, u64)>,
    /// Standard deviation of the gaps between issues, relative to their mean.
    pub gap_spread: f64,
}

impl ClassTraffic {
    /// What one class did in that time; `likes` says which class each I/O is like.
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

    /// Number of I/Os that it issued.
    pub fn ios(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// Their mean size; 0 without any.
    pub fn mean_bytes(&self) -> f64 {
        self.bytes as f64 / self.ios().max(1) as f64
    }

    /// The share of I/Os that continued where an earlier one had ended.
    pub fn sequential_share(&self) -> f64 {
        self.going_on as f64 / self.ios().max(1) as f64
    }

    /// Number of different pages that the first of its I/Os begin in, relative to the number of these I/Os.
    pub fn distinct_share(&self, page_bytes: u64, first: u64) -> f64 {
        let taken = &self.offsets[..self.offsets.len().min(first as usize)];
        let pages: HashSet<u64> = taken.iter().map(|offset| offset / page_bytes).collect();
        pages.len() as f64 / taken.len().max(1) as f64
    }
}

/// Standard deviation relative to the mean; 0 for no numbers.
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
