//! Locality: how often a mapping cache of some size misses.
//!
//! The map is in flash pages, each of which holds as many entries of 4 B as fit in it. The cache holds whole
//! translation pages, and evicts the least recently used. Each page that is read, written or discarded is
//! looked up once. Under this policy, a cache always holds everything that a smaller one does, so one pass
//! gives the misses of every size (Mattson's stack distances).

use super::entries;
use super::space::Space;
use crate::trace::io::TracedIo;

/// Misses of a cache that covers a share of the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// The share, in percent.
    pub coverage_percent: u64,
    /// Translation pages in the cache.
    pub cached: u64,
    /// Pages that were looked up.
    pub lookups: u64,
    /// Lookups whose translation page was not in the cache.
    pub misses: u64,
    /// The same for a cache of as many single entries, as in the authors' simulator; `None` if that takes too long.
    pub entry_misses: Option<u64>,
}

impl Miss {
    /// Misses per lookup; `None` without lookups.
    pub fn ratio(&self) -> Option<f64> {
        (self.lookups > 0).then(|| self.misses as f64 / self.lookups as f64)
    }
}

/// Misses for each coverage, in percent of the space.
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
                // The part's first page brings it in for the others.
                miss.misses += u64::from(distance.is_none_or(|others| others >= miss.cached));
            }
        });
    }
    all
}

/// Translation pages in order of last use.
struct Stack {
    /// When each was last used, from 1; 0 if never.
    used: Vec<u32>,
    /// A Fenwick tree over times: 1 at each time that is the last use of a page.
    sums: Vec<u32>,
    now: u32,
    distinct: u32,
}

impl Stack {
    fn new(len: usize) -> Self {
        // Times are renumbered once they run out.
        Self { used: vec![0; len], sums: vec![0; 2 * len + 2], now: 0, distinct: 0 }
    }

    /// Uses one; returns how many others have been used since its last use, `None` if it was never used.
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

    /// Number of last uses up to that time.
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
