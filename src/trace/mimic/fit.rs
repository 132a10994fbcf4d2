//! The settings that make a class do what it did in a trace.

use super::traffic::ClassTraffic;
use crate::class::Class;

/// Range of page sizes of the workers' I/O.
const PAGE_BYTES_MIN: u64 = 512;
const PAGE_BYTES_MAX: u64 = 1 << 20;
const DEPTH_MAX: u64 = 1024;
/// The depth if it is not known: enough not to hold a class below its rate.
const DEPTH_UNKNOWN: u64 = 32;
const WRITES_A_FLUSH_MAX: u64 = 1024;
/// Gaps that vary by less than this, relative to their mean, count as even.
const EVEN_SPREAD_MAX: f64 = 0.5;
/// If at least this share continues where another ended, the pages are in runs.
const RUNS_SHARE_MIN: f64 = 0.1;
/// Repeats this many standard deviations above those of a uniform draw are not due to chance.
const CHANCE: f64 = 3.0;
const THETA_MAX: f64 = 4.0;
/// How often to halve the range of exponents.
const HALVINGS: usize = 40;
/// Hot ranks treated one by one; beyond, ranks that differ by less than a fiftieth are treated together.
const SINGLE_RANKS: u64 = 100;

/// How a class's next page is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PagesDrawn {
    /// One after the other.
    InOrder,
    /// Every page equally often.
    Uniform,
    /// Hot pages scattered over the space, with this exponent.
    Zipf(f64),
    /// This share jumps, the rest is sequential.
    Runs(f64),
}

/// The settings of a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassFit {
    /// The class.
    pub class: Class,
    /// A power of two.
    pub page_bytes: u64,
    /// Bytes per second.
    pub rate_bytes_per_s: u64,
    /// Maximum open I/Os.
    pub depth: u64,
    /// Whether its starts are random rather than even.
    pub is_random: bool,
    /// How its pages are chosen.
    pub pages: PagesDrawn,
    /// Writes per flush, for a log that is flushed.
    pub writes_a_flush: Option<u64>,
    /// Mean number of open I/Os, which no setting controls.
    pub mean_depth: Option<f64>,
    /// Pages of the space.
    space_pages: u64,
}

impl ClassFit {
    /// Fits settings to what a class did, in a space of that size.
    pub fn of(class: Class, traffic: &ClassTraffic, space_bytes: u64) -> Self {
        let mean_bytes = traffic.mean_bytes().max(1.0);
        let nearest = 2_f64.powf(mean_bytes.log2().round()) as u64;
        let page_bytes = nearest.clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX);
        let space_pages = (space_bytes / page_bytes).max(1);
        let sequential = traffic.sequential_share();
        let pages = match class {
            Class::Wal => PagesDrawn::InOrder,
            _ if sequential >= RUNS_SHARE_MIN => PagesDrawn::Runs(((1.0 - sequential) * 1e4).round() / 1e4),
            _ => drawn(traffic, page_bytes, space_pages),
        };
        let writes_a_flush = traffic.ios() as f64 / traffic.flushes.max(1) as f64;
        let is_flushed = class == Class::Wal && traffic.flushes > 0;
        Self {
            class,
            page_bytes,
            rate_bytes_per_s: (traffic.bytes as f64 / traffic.seconds).round().max(1.0) as u64,
            depth: traffic.depth.map_or(DEPTH_UNKNOWN, |(_, high)| high.clamp(1, DEPTH_MAX)),
            is_random: traffic.gap_spread >= EVEN_SPREAD_MAX,
            pages,
            writes_a_flush: is_flushed.then(|| (writes_a_flush.round() as u64).clamp(1, WRITES_A_FLUSH_MAX)),
            mean_depth: traffic.depth.map(|(mean, _)| mean),
            space_pages,
        }
    }

    /// Different pages per I/O, expected over this many I/Os; `None` if that is not fitted.
    pub fn distinct_share(&self, ios: u64) -> Option<f64> {
        let theta = match self.pages {
            PagesDrawn::Uniform => 0.0,
            PagesDrawn::Zipf(theta) => theta,
            PagesDrawn::InOrder | PagesDrawn::Runs(_) => return None,
        };
        Some(distinct(&ranks(self.space_pages), theta, ios) / ios.max(1) as f64)
    }
}

/// The exponent at which the expected number of different pages is what it was, whichever pages these are.
fn drawn(traffic: &ClassTraffic, page_bytes: u64, space_pages: u64) -> PagesDrawn {
    let (ios, ranks) = (traffic.ios(), ranks(space_pages));
    let found = traffic.distinct_share(page_bytes, ios) * ios as f64;
    let repeats = |distinct: f64| ios as f64 - distinct;
    let uniform = repeats(distinct(&ranks, 0.0, ios));
    if repeats(found) <= uniform + CHANCE * (uniform + 1.0).sqrt() {
        return PagesDrawn::Uniform;
    }
    let (mut low, mut high) = (0.0, THETA_MAX);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        // The hotter the hot pages, the fewer different ones.
        if distinct(&ranks, middle, ios) > found {
            low = middle;
        } else {
            high = middle;
        }
    }
    PagesDrawn::Zipf((low * 1000.0).round() / 1000.0)
}

/// Ranks of pages, hottest first, in groups of similar rank: the middle of each, and how many it has.
fn ranks(pages: u64) -> Vec<(f64, f64)> {
    let (mut ranks, mut from) = (Vec::new(), 1);
    while from <= pages {
        let count = if from <= SINGLE_RANKS { 1 } else { (from / 50).min(pages + 1 - from) };
        ranks.push((from as f64 + (count - 1) as f64 / 2.0, count as f64));
        from += count;
    }
    ranks
}

/// The expected number of different pages in a number of draws with that exponent.
fn distinct(ranks: &[(f64, f64)], theta: f64, ios: u64) -> f64 {
    let weight = |rank: f64| rank.powf(-theta);
    let all: f64 = ranks.iter().map(|(rank, count)| count * weight(*rank)).sum();
    // The probability that a page is drawn at all: 1 - (1 - p)^n without losing small p.
    let is_drawn = |rank: f64| -(ios as f64 * (-weight(rank) / all).max(-1.0).ln_1p()).exp_m1();
    ranks.iter().map(|(rank, count)| count * is_drawn(*rank)).sum()
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, Zipf};

    use super::*;

    fn close(found: f64, expected: f64, by: f64) {
        assert!((found - expected).abs() <= by, "{found} for {expected}");
    }

    fn traffic(offsets: Vec<u64>, bytes: u64) -> ClassTraffic {
        let bytes = offsets.len() as u64 * bytes;
        ClassTraffic { offsets, bytes, seconds: 10.0, ..ClassTraffic::default() }
    }

    #[test]
    fn the_expected_number_of_pages_is_that_of_the_closed_form() {
        // n (1 - (1 - 1/n)^k) for n equal pages; one if there is only one page.
        let equal = |pages: u64, ios: u64| {
            let pages = pages as f64;
            pages * (1.0 - (1.0 - 1.0 / pages).powf(ios as f64))
        };
        for (pages, ios) in [(10, 5), (1000, 1000), (100_000, 50_000), (3, 1)] {
            let found = distinct(&ranks(pages), 0.0, ios);
            close(found, equal(pages, ios), 1e-6 * equal(pages, ios));
        }
        close(distinct(&ranks(1), 1.0, 7), 1.0, 1e-9);
        assert_eq!(ranks(5000).iter().map(|(_, count)| *count as u64).sum::<u64>(), 5000);
    }

    #[test]
    fn exponents_that_pages_were_drawn_by_are_found() {
        let (pages, page_bytes) = (1 << 16, 4096);
        for theta in [0.6, 0.9, 1.1] {
            let mut random = SmallRng::seed_from_u64(5);
            let zipf = Zipf::new(pages as f64, theta).unwrap();
            let offsets: Vec<u64> =
                (0..60_000).map(|_| (zipf.sample(&mut random) as u64 - 1) * page_bytes).collect();
            let fit = ClassFit::of(Class::Point, &traffic(offsets, page_bytes), pages * page_bytes);
            let PagesDrawn::Zipf(found) = fit.pages else { panic!("{fit:?}") };
            close(found, theta, 0.03);
            assert_eq!((fit.page_bytes, fit.rate_bytes_per_s), (4096, 6000 * 4096));
        }
        let mut random = SmallRng::seed_from_u64(5);
        let offsets = (0..60_000).map(|_| random.random_range(0..pages) * page_bytes).collect();
        let fit = ClassFit::of(Class::Background, &traffic(offsets, page_bytes), pages * page_bytes);
        assert_eq!(fit.pages, PagesDrawn::Uniform);
    }

    #[test]
    fn sizes_become_the_nearest_page_and_logs_keep_their_flushes() {
        let mut log = traffic((0..700).map(|at| at * 6144).collect(), 6144);
        (log.flushes, log.going_on, log.depth) = (100, 699, Some((0.4, 2)));
        let fit = ClassFit::of(Class::Wal, &log, 1 << 30);
        assert_eq!((fit.page_bytes, fit.pages, fit.writes_a_flush), (8192, PagesDrawn::InOrder, Some(7)));
        assert_eq!((fit.depth, fit.mean_depth), (2, Some(0.4)));
        let scan = ClassTraffic { flushes: 0, depth: None, ..log };
        let fit = ClassFit::of(Class::Scan, &scan, 1 << 30);
        assert_eq!((fit.writes_a_flush, fit.depth), (None, DEPTH_UNKNOWN));
        let PagesDrawn::Runs(jumps) = fit.pages else { panic!("{fit:?}") };
        close(jumps, 1.0 / 700.0, 1e-4);
    }
}
