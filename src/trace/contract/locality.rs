//! Locality: how often a mapping cache of some size misses.
//!
//! The mapping is in pages of flash, each of which maps as many pages as it holds entries of 4 B. The cache holds whole
//! translation pages; the one that was not used for the longest goes. Each page that is read, written or discarded is
//! looked up once. With this policy a cache of some size holds all that a smaller one does, so that one pass gives the
//! misses of every size (Mattson's stack distances).

use super::entries;
use super::space::Space;
use crate::trace::io::TracedIo;

/// Misses of a cache that covers a share of the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// The share.
    pub coverage_percent: u64,
    /// Translation pages in the cache.
    pub cached: u64,
    /// Pages that were looked up.
    pub lookups: u64,
    /// Those whose translation page was not in the cache.
    pub misses: u64,
    /// The same of a cache of as many single entries, as the authors' simulator has it; none where that takes too long.
    pub entry_misses: Option<u64>,
}

impl Miss {
    /// Misses by lookups; none without any.
    pub fn ratio(&self) -> Option<f64> {
        (self.lookups > 0).then(|| self.misses as f64 / self.lookups as f64)
    }
}

/// Misses by coverage, in percent of the space.
pub fn misses(ios: &[TracedIo], space: &Space, coverage_percent: &[u64]) -> Vec<Miss> {
    let entries = |percent: u64| (u128::from(space.page_count()) * u128::from(percent) / 100) as u64;
    let cached = |percent: u64| (entries(percent) / space.translated).max(1);
    let mut all: Vec<Miss> = coverage_percent
        .iter()
        .map(|&percent| Miss {
            coverage_percent: percent,
            cached: cached(percent),
            lookups: 0,
            misses: 0,
            entry_misses: entries::misses(ios, space, entries(percent)),
        })
        .collect();
    let mut stack = Stack::new(space.touched_len);
    let mut current = None;
    for io in ios {
        space.parts(io, &mut |part| {
            let distance = if current == Some(part.touched) { Some(0) } else { stack.access(part.touched) };
            current = Some(part.touched);
            for miss in &mut all {
                miss.lookups += part.pages;
                // Its first page brings it in for the others.
                miss.misses += u64::from(distance.is_none_or(|others| others >= miss.cached));
            }
        });
    }
    all
}

/// Translation pages in the order of their last use.
struct Stack {
    /// When each was last used, from 1 on; 0 if never.
    used: Vec<u32>,
    /// A Fenwick tree over times: 1 for each that is the last use of one.
    sums: Vec<u32>,
    now: u32,
    distinct: u32,
}

impl Stack {
    fn new(len: usize) -> Self {
        // Times are numbered anew once they are used up.
        Self { used: vec![0; len], sums: vec![0; 2 * len + 2], now: 0, distinct: 0 }
    }

    /// Uses one: how many others were used since it was; none if it never was.
    fn access(&mut self, one: u32) -> Option<u64> {
        if self.now as usize + 1 == self.sums.len() {
            self.number_anew();
        }
        let before = self.used[one as usize];
        let others = (before > 0).then(|| u64::from(self.distinct - self.sum(before)));
        if before > 0 {
            self.change(before, u32::wrapping_sub);
        } else {
            self.distinct += 1;
        }
        self.now += 1;
        self.used[one as usize] = self.now;
        self.change(self.now, u32::wrapping_add);
        others
    }

    /// Last uses up to that time.
    fn sum(&self, mut at: u32) -> u32 {
        let mut sum = 0;
        while at > 0 {
            sum += self.sums[at as usize];
            at &= at - 1;
        }
        sum
    }

    fn change(&mut self, mut at: u32, by: fn(u32, u32) -> u32) {
        while (at as usize) < self.sums.len() {
            self.sums[at as usize] = by(self.sums[at as usize], 1);
            at += at & at.wrapping_neg();
        }
    }

    fn number_anew(&mut self) {
        let mut order: Vec<(u32, u32)> =
            (0..).zip(&self.used).filter(|(_, used)| **used > 0).map(|(one, used)| (*used, one)).collect();
        order.sort_unstable();
        self.sums.fill(0);
        self.now = 0;
        for (_, one) in order {
            self.now += 1;
            self.used[one as usize] = self.now;
            self.change(self.now, u32::wrapping_add);
        }
    }
}
