//! Which page comes next.

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use crate::settings::jobs::Pattern;

/// Draws a worker's pages.
#[derive(Debug)]
pub struct Offsets {
    pattern: Drawn,
    rng: SmallRng,
    pages: u64,
    /// The slice that sequential access stays in, in pages.
    first: u64,
    slice: u64,
    /// The last page drawn, in pages from `first`.
    last: u64,
}

#[derive(Debug)]
enum Drawn {
    Sequential,
    Uniform,
    Zipf { ranks: Zipf<f64>, scatter: u64 },
    Runs { jump: f64 },
}

impl Offsets {
    /// Draws pages of a region for one of several workers. A sequential worker continues at `position` in its
    /// own slice.
    pub fn new(
        pattern: Pattern,
        pages: u64,
        (worker, workers): (u64, u64),
        position: u64,
        seed: u64,
    ) -> Self {
        let pages = pages.max(1);
        let slice = (pages / workers).max(1);
        let pattern = match pattern {
            Pattern::Sequential => Drawn::Sequential,
            Pattern::Uniform => Drawn::Uniform,
            Pattern::Zipf(theta) => match Zipf::new(pages as f64, theta) {
                Ok(ranks) => Drawn::Zipf { ranks, scatter: scatter(pages) },
                // Only a negative exponent fails, which the knob rules out.
                Err(_) => Drawn::Uniform,
            },
            Pattern::Runs(jump) => Drawn::Runs { jump },
        };
        let mut rng = SmallRng::seed_from_u64(seed);
        let last = match pattern {
            Drawn::Sequential => position % slice,
            _ => rng.random_range(0..pages),
        };
        Self { pattern, rng, pages, first: slice * (worker % pages), slice, last }
    }

    /// The next page.
    #[inline]
    pub fn next(&mut self) -> u64 {
        match &self.pattern {
            Drawn::Sequential => {
                let page = self.first + self.last;
                self.last = if self.last + 1 == self.slice { 0 } else { self.last + 1 };
                page
            }
            Drawn::Uniform => uniform(&mut self.rng, self.pages),
            Drawn::Zipf { ranks, scatter } => {
                let rank = (ranks.sample(&mut self.rng) as u64).clamp(1, self.pages) - 1;
                (u128::from(rank) * u128::from(*scatter) % u128::from(self.pages)) as u64
            }
            Drawn::Runs { jump } => {
                self.last = if self.rng.random::<f64>() < *jump {
                    uniform(&mut self.rng, self.pages)
                } else {
                    (self.last + 1) % self.pages
                };
                self.last
            }
        }
    }

    /// Where a sequential worker continues, in pages from the start of its slice.
    pub fn position(&self) -> u64 {
        self.last
    }
}

/// The step from one rank's page to the next rank's: near the golden section of the pages, so that hot pages
/// are spread evenly, and coprime to their number, so that no two ranks share a page.
fn scatter(pages: u64) -> u64 {
    let golden = ((u128::from(pages) * 0x9E37_79B9_7F4A_7C15) >> 64) as u64;
    (golden.max(1)..=pages).find(|step| gcd(*step, pages) == 1).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Draws a page by multiply and shift; the bias is below 2⁻²⁰ for any realistic number of pages.
#[inline]
fn uniform(rng: &mut SmallRng, pages: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(pages)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn draw(pattern: Pattern, pages: u64, n: usize) -> Vec<u64> {
        let mut offsets = Offsets::new(pattern, pages, (0, 1), 0, 42);
        (0..n).map(|_| offsets.next()).collect()
    }

    #[test]
    fn uniform_draws_every_page_about_equally() {
        let mut counts = [0u32; 100];
        for page in draw(Pattern::Uniform, 100, 100_000) {
            counts[page as usize] += 1;
        }
        assert!(counts.iter().all(|n| (800..1200).contains(n)), "{counts:?}");
    }

    #[test]
    fn zipf_has_hot_pages_that_are_spread_out() {
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for page in draw(Pattern::Zipf(0.99), 10_000, 100_000) {
            assert!(page < 10_000);
            *counts.entry(page).or_default() += 1;
        }
        let mut hottest: Vec<_> = counts.into_iter().collect();
        hottest.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let share: u32 = hottest[..100].iter().map(|(_, n)| n).sum();
        // The sum over the first 100 of 10,000 ranks at θ = 0.99 is 53% of all.
        assert!((50_000..57_000).contains(&share), "{share}");
        assert!(hottest[0].0.abs_diff(hottest[1].0) > 100);
    }

    #[test]
    fn scattered_ranks_stay_apart() {
        for pages in [1, 2, 7, 1024, 65_536, 99_991, 4 * 819 * 64] {
            let step = scatter(pages);
            let scattered = |rank: u64| (u128::from(rank) * u128::from(step) % u128::from(pages)) as u64;
            assert_eq!((0..pages).map(scattered).collect::<HashSet<_>>().len() as u64, pages);
            let mut hottest: Vec<_> = (0..pages.min(50)).map(scattered).collect();
            hottest.sort_unstable();
            let widest = hottest.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            assert!(widest <= (pages / 50 * 3).max(4), "of {pages}: {widest} between hot pages");
        }
    }

    #[test]
    fn runs_jump_as_often_as_configured() {
        let pages = 1 << 20;
        for (share, expected) in [(0.0, 0), (0.25, 2500), (1.0, 10_000)] {
            let drawn = draw(Pattern::Runs(share), pages, 10_001);
            let jumps = drawn.windows(2).filter(|pair| pair[1] != (pair[0] + 1) % pages).count();
            assert!(jumps.abs_diff(expected) < 200, "{share}: {jumps}");
        }
    }

    #[test]
    fn sequential_workers_wrap_in_slices_of_their_own() {
        let pages = |worker| {
            let mut offsets = Offsets::new(Pattern::Sequential, 8, (worker, 2), 3, 1);
            (0..5).map(|_| offsets.next()).collect::<Vec<_>>()
        };
        assert_eq!(pages(0), [3, 0, 1, 2, 3]);
        assert_eq!(pages(1), [7, 4, 5, 6, 7]);
    }
}
