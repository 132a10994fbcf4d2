//! A load like a trace's: settings for each class, fitted to the trace's first half and checked against its second.
//!
//! Enters: a drive's I/Os. Leaves: settings, and how close they come to what they were not fitted to.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`streams`] | which class an I/O is like | – |
//! | [`traffic`] | what a class did in a stretch of a trace | streams |
//! | [`fit`] | the settings that make it do that | traffic |

mod fit;
mod streams;
#[cfg(test)]
mod tests;
mod traffic;

use std::ops::Range;

use crate::class::Class;
use crate::error::{Error, Result};
use crate::trace::io::{Op, TracedIo};
use crate::units::SECOND_NS;

pub use fit::{ClassFit, PagesDrawn};
use streams::{Like, likes};
use traffic::ClassTraffic;

/// Classes with fewer I/Os in a half are left out.
const IOS_MIN: u64 = 100;
/// The space is a file of whole MiB.
const MIB: u64 = 1 << 20;
const SPACE_BYTES_MIN: u64 = 16 << 20;
/// Figures that differ by no more than this count as alike.
const ALIKE: f64 = 0.1;
/// Shares below this count as zero.
const SHARE_MIN: f64 = 0.01;

/// What is compared with the other half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// MB/s.
    MbPerS,
    /// Mean size, in KiB.
    Kib,
    /// Mean number of open I/Os, which no setting controls.
    Depth,
    /// Share of I/Os that continue where another ended, in percent.
    Sequential,
    /// Different pages per I/O, in percent.
    Distinct,
    /// Writes per flush.
    WritesAFlush,
}

impl Quantity {
    const ALL: [Self; 6] =
        [Self::MbPerS, Self::Kib, Self::Depth, Self::Sequential, Self::Distinct, Self::WritesAFlush];

    /// Its name and unit.
    pub fn name(self) -> [&'static str; 2] {
        match self {
            Self::MbPerS => ["throughput", "MB/s"],
            Self::Kib => ["mean size", "KiB"],
            Self::Depth => ["mean depth", ""],
            Self::Sequential => ["sequential", "%"],
            Self::Distinct => ["different pages", "%"],
            Self::WritesAFlush => ["writes a flush", ""],
        }
    }

    /// Its value under the settings; `None` if they don't determine it.
    fn fitted(self, fit: &ClassFit, ios: u64) -> Option<f64> {
        match self {
            Self::MbPerS => Some(fit.rate_bytes_per_s as f64 / 1e6),
            Self::Kib => Some(fit.page_bytes as f64 / 1024.0),
            Self::Depth => fit.mean_depth,
            Self::Sequential => match fit.pages {
                PagesDrawn::Runs(jumps) => Some(100.0 * (1.0 - jumps)),
                _ => None,
            },
            Self::Distinct => fit.distinct_share(ios).map(|share| 100.0 * share),
            Self::WritesAFlush => fit.writes_a_flush.map(|writes| writes as f64),
        }
    }

    /// Its measured value. For different pages, only the first `ios` I/Os count.
    fn measured(self, traffic: &ClassTraffic, fit: &ClassFit, ios: u64) -> Option<f64> {
        match self {
            Self::MbPerS => Some(traffic.bytes as f64 / 1e6 / traffic.seconds),
            Self::Kib => Some(traffic.mean_bytes() / 1024.0),
            Self::Depth => traffic.depth.map(|(mean, _)| mean),
            Self::Sequential => Some(100.0 * traffic.sequential_share()),
            // Fewer I/Os would have a larger share of different pages.
            Self::Distinct if traffic.ios() < ios - ios / 100 => None,
            Self::Distinct => Some(100.0 * traffic.distinct_share(fit.page_bytes, ios)),
            Self::WritesAFlush => {
                (traffic.flushes > 0).then(|| traffic.ios() as f64 / traffic.flushes as f64)
            }
        }
    }

    /// The relative difference of a figure from another; negligible shares count as equal.
    fn difference(self, of: f64, from: f64) -> f64 {
        let is_share = matches!(self, Self::Sequential | Self::Distinct);
        if is_share && of.max(from) < 100.0 * SHARE_MIN {
            return 0.0;
        }
        match (of > 0.0, from > 0.0) {
            (_, true) => of / from - 1.0,
            (true, false) => f64::INFINITY,
            (false, false) => 0.0,
        }
    }
}

/// A quantity of a class: as fitted to the first half, in the second half, and in a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    /// The class.
    pub class: Class,
    /// What is compared.
    pub quantity: Quantity,
    /// Its value under the settings; for the depth, its value in the first half.
    pub fitted: f64,
    /// Its value in the held-out half.
    pub held_out: Option<f64>,
    /// Its value in a replay.
    pub replayed: Option<f64>,
}

impl Likeness {
    /// How far the fitted value is from the held-out one.
    pub fn difference(&self) -> Option<f64> {
        self.held_out.map(|held_out| self.quantity.difference(self.fitted, held_out))
    }

    /// How far the replayed value is from the held-out one.
    pub fn replayed_difference(&self) -> Option<f64> {
        let (replayed, held_out) = self.replayed.zip(self.held_out)?;
        Some(self.quantity.difference(replayed, held_out))
    }
}

/// Whether a difference is small enough to count as alike.
pub fn is_alike(difference: f64) -> bool {
    difference.abs() <= ALIKE
}

/// A load like a trace's.
#[derive(Debug, Clone, PartialEq)]
pub struct MimicLoad {
    /// The settings of each class that has any.
    pub classes: Vec<ClassFit>,
    /// How close they come.
    pub likenesses: Vec<Likeness>,
    /// Bytes of the space that the pages are in.
    pub space_bytes: u64,
    /// The length of each half.
    pub half_seconds: f64,
    /// Classes that were left out, with their number of I/Os.
    pub left_out: Vec<(Class, u64)>,
    /// Discards, which no class issues.
    pub discards: u64,
    /// Flushes, unless a log issues them.
    pub flushes: u64,
    held_out: Vec<ClassTraffic>,
}

/// Fits a load to a drive's I/Os, which must be in order of issue.
///
/// # Errors
/// `Input` if they have no times, or are too few.
pub fn mimic(ios: &[TracedIo], knows_depth: bool) -> Result<MimicLoad> {
    let Some([first, second]) = halves(ios) else {
        return Err(Error::input("the trace has no issue times, or only one, but a load needs a rate")
            .hint("use a trace by blktrace, or fio's log of version 3"));
    };
    let likes = likes(ios);
    let space_bytes = space_of(ios, &likes);
    let (mut classes, mut held_out, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for class in Class::ALL {
        let [fitted, held] =
            [&first, &second].map(|half| ClassTraffic::of(ios, &likes, class, half, knows_depth));
        match fitted.ios() + held.ios() {
            0 => {}
            _ if fitted.ios().min(held.ios()) >= IOS_MIN => {
                classes.push(ClassFit::of(class, &fitted, space_bytes));
                held_out.push(held);
            }
            few => left_out.push((class, few)),
        }
    }
    if classes.is_empty() {
        let what = format!("no class has {IOS_MIN} I/Os in each half of the trace");
        return Err(Error::input(what).hint("trace for longer"));
    }
    let of = |op: Op| ios.iter().filter(|io| io.op == op).count() as u64;
    let is_flushed = classes.iter().any(|fit| fit.writes_a_flush.is_some());
    let mut load = MimicLoad {
        classes,
        likenesses: Vec::new(),
        space_bytes,
        half_seconds: (first.end - first.start) as f64 / SECOND_NS as f64,
        left_out,
        discards: of(Op::Discard),
        flushes: if is_flushed { 0 } else { of(Op::Flush) },
        held_out,
    };
    load.compare(None);
    Ok(load)
}

impl MimicLoad {
    /// Compares a replay's I/Os with the held-out half.
    ///
    /// # Errors
    /// As for [`mimic`].
    pub fn replayed(&mut self, ios: &[TracedIo], knows_depth: bool) -> Result<()> {
        let Some([first, second]) = halves(ios) else {
            return Err(Error::input("the replay's trace has no issue times, or only one"));
        };
        let (likes, time_ns) = (likes(ios), first.start..second.end);
        let of = |fit: &ClassFit| ClassTraffic::of(ios, &likes, fit.class, &time_ns, knows_depth);
        let replayed: Vec<_> = self.classes.iter().map(of).collect();
        self.compare(Some(&replayed));
        Ok(())
    }

    fn compare(&mut self, replayed: Option<&[ClassTraffic]>) {
        self.likenesses.clear();
        for (at, (fit, held_out)) in self.classes.iter().zip(&self.held_out).enumerate() {
            let ios = held_out.ios();
            for quantity in Quantity::ALL {
                let Some(fitted) = quantity.fitted(fit, ios) else { continue };
                let replayed = replayed.and_then(|of| quantity.measured(&of[at], fit, ios));
                let held_out = quantity.measured(held_out, fit, ios);
                self.likenesses.push(Likeness { class: fit.class, quantity, fitted, held_out, replayed });
            }
        }
    }
}

/// Both halves of the time in which I/Os were issued; `None` if there is no such time.
fn halves(ios: &[TracedIo]) -> Option<[Range<u64>; 2]> {
    let (first, last) = (ios.first()?.issued_ns, ios.last()?.issued_ns);
    let middle = u64::midpoint(first, last);
    (middle > first).then(|| [first..middle, middle..last.saturating_add(1)])
}

/// From the first to the last page, in whole MiB, except the log's, which has its own space.
fn space_of(ios: &[TracedIo], likes: &[Like]) -> u64 {
    let is_drawn = |like: &Like| like.class.is_some_and(|class| class != Class::Wal);
    let drawn = || ios.iter().zip(likes).filter(|(_, like)| is_drawn(like)).map(|(io, _)| io);
    let (from, to) = (drawn().map(|io| io.offset_bytes).min(), drawn().map(TracedIo::end_bytes).max());
    to.zip(from).map_or(0, |(to, from)| to - from).next_multiple_of(MIB).max(SPACE_BYTES_MIN)
}
