//! Uniform data lifetime: how often each page is written.

use super::space::Space;
use crate::trace::io::{Op, TracedIo};

/// Writes of pages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lifetime {
    /// How many pages were written how often, most often first: writes, pages.
    pub curve: Vec<(u32, u64)>,
    /// How many pages were written at all, by quarter of the space, from its start.
    pub by_quarter: [u64; QUARTERS],
    /// Pages of the space.
    pub page_count: u64,
}

const QUARTERS: usize = 4;

impl Lifetime {
    /// The writes of these I/Os.
    pub fn of(ios: &[TracedIo], space: &Space) -> Self {
        let mut counts = vec![0_u32; space.table_len()];
        let (mut by_quarter, page_count) = ([0; QUARTERS], space.page_count().max(1));
        for io in ios.iter().filter(|io| io.op == Op::Write) {
            space.parts(io, &mut |part| {
                let Some(place) = part.place else { return };
                for (page, count) in (part.first_page..).zip(&mut counts[place..place + part.pages as usize])
                {
                    if *count == 0 {
                        let quarter = page.saturating_mul(QUARTERS as u64) / page_count;
                        by_quarter[(quarter as usize).min(QUARTERS - 1)] += 1;
                    }
                    *count += 1;
                }
            });
        }
        counts.sort_unstable();
        let mut curve: Vec<(u32, u64)> = Vec::new();
        for count in counts.into_iter().rev().filter(|count| *count > 0) {
            match curve.last_mut() {
                Some((last, pages)) if *last == count => *pages += 1,
                _ => curve.push((count, 1)),
            }
        }
        Self { curve, by_quarter, page_count }
    }

    /// The share of each quarter of the space that was written at all.
    pub fn written_shares(&self) -> [f64; QUARTERS] {
        self.by_quarter.map(|pages| pages as f64 * QUARTERS as f64 / self.page_count.max(1) as f64)
    }

    /// Number of pages that were written at all.
    pub fn pages(&self) -> u64 {
        self.curve.iter().map(|(_, pages)| pages).sum()
    }

    /// Number of page writes.
    pub fn writes(&self) -> u64 {
        self.curve.iter().map(|(writes, pages)| u64::from(*writes) * pages).sum()
    }

    /// The most writes of any page relative to the mean of written pages; `None` if nothing was written.
    pub fn max_to_mean(&self) -> Option<f64> {
        let (most, _) = self.curve.first()?;
        Some(f64::from(*most) * self.pages() as f64 / self.writes() as f64)
    }

    /// The 99th percentile of writes per written page relative to their median, both by nearest rank; `None`
    /// if nothing was written.
    pub fn p99_to_p50(&self) -> Option<f64> {
        let [p99, p50] = [99, 50].map(|percent| self.percentile(percent));
        Some(f64::from(p99?) / f64::from(p50?))
    }

    fn percentile(&self, percent: u64) -> Option<u32> {
        let mut rank = (self.pages() * percent).div_ceil(100);
        for (writes, pages) in self.curve.iter().rev() {
            if rank <= *pages {
                return Some(*writes);
            }
            rank -= pages;
        }
        None
    }

    /// Gini coefficient of writes per written page: 0 if all are equal, near 1 if one page has them all;
    /// `None` if nothing was written.
    pub fn gini(&self) -> Option<f64> {
        let (pages, writes) = (self.pages() as f64, self.writes() as f64);
        let (mut before, mut weighted) = (0.0, 0.0);
        for (count, of) in self.curve.iter().rev() {
            let of = *of as f64;
            // The sum of these pages' ranks, which count from 1.
            weighted += f64::from(*count) * of * (before + f64::midpoint(1.0, of));
            before += of;
        }
        (writes > 0.0).then(|| 2.0 * weighted / (pages * writes) - (pages + 1.0) / pages)
    }
}
