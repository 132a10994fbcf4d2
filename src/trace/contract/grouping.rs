//! Grouping by death time: how full of valid pages the flash blocks are.
//!
//! The mapping is by pages, striped over channels: each page goes to the next channel, into the block that is
//! open there for its segment. Space is unlimited, and nothing is collected.

use super::space::Space;
use crate::trace::io::{Op, TracedIo};

/// Bytes of a flash block.
const BLOCK_BYTES: u64 = 128 << 10;
/// A page without a block.
const NONE: u32 = u32::MAX;
/// Consecutive curves of a stable trace differ by less than this.
const STABLE: f64 = 0.02;
/// How many curves are taken, one after each such part of the writes.
const CURVES: u64 = 10;

/// The zombie curve: blocks by their valid pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Zombies {
    /// The size of segments; `None` if there is only one.
    pub segment_bytes: Option<u64>,
    /// Number of blocks by how many of their pages are valid, from 0 to all.
    pub blocks: Vec<u64>,
    /// Pages of the space.
    pub page_count: u64,
    /// Channels that pages were striped over.
    pub channels: usize,
    /// Whether the last three curves, a tenth of the writes apart, are alike.
    pub is_stable: bool,
}

impl Zombies {
    /// Pages of a block.
    pub fn block_pages(&self) -> u64 {
        self.blocks.len() as u64 - 1
    }

    /// Number of blocks that hold valid pages.
    pub fn live(&self) -> u64 {
        self.blocks[1..].iter().sum()
    }

    /// Number of valid pages.
    pub fn valid(&self) -> u64 {
        (0..).zip(&self.blocks).map(|(pages, blocks)| pages * blocks).sum()
    }

    /// How far the curve reaches: blocks that hold valid pages, relative to the space.
    pub fn length(&self) -> f64 {
        self.of_space(self.live() * self.block_pages())
    }

    /// The area under the curve: valid pages, relative to the space.
    pub fn area(&self) -> f64 {
        self.of_space(self.valid())
    }

    fn of_space(&self, pages: u64) -> f64 {
        pages as f64 / self.page_count.max(1) as f64
    }

    /// The invalid share of those blocks, which a collector has to look at in vain. `None` if nothing is valid.
    pub fn zombie_share(&self) -> Option<f64> {
        let all = self.live() * self.block_pages();
        (all > 0).then(|| 1.0 - self.valid() as f64 / all as f64)
    }
}

/// Writes the I/Os, striped over the channels, and counts the blocks at the end.
pub fn zombies(ios: &[TracedIo], space: &Space, segment_bytes: Option<u64>, channels: usize) -> Zombies {
    let block_pages = (BLOCK_BYTES / space.page_bytes) as usize;
    let segment_pages = segment_bytes.map_or(u64::MAX, |bytes| bytes / space.page_bytes);
    let mut flash = Flash::of(space.table_len(), block_pages, channels);
    let writes = ios.iter().filter(|io| io.op == Op::Write).map(|io| space.pages(io));
    let all: u64 = writes.map(|(first, behind)| behind - first).sum();
    let (mut written, mut curves) = (0, Vec::new());
    for io in ios.iter().filter(|io| matches!(io.op, Op::Write | Op::Discard)) {
        space.parts(io, &mut |part| {
            let Some(place) = part.place else { return };
            for page in 0..part.pages {
                let at = place + page as usize;
                if io.op == Op::Discard {
                    flash.invalidate(at);
                    continue;
                }
                flash.write(at, (part.first_page + page) / segment_pages);
                written += 1;
                // The last curve is taken at the end, after discards.
                if written * CURVES / all > (written - 1) * CURVES / all && written < all {
                    curves.push(flash.by_valid());
                }
            }
        });
    }
    curves.push(flash.by_valid());
    let is_stable = curves.len() >= 3
        && curves[curves.len() - 3..].windows(2).all(|two| distance(&two[0], &two[1]) < STABLE);
    let blocks = curves.pop().unwrap_or_default();
    Zombies { segment_bytes, blocks, page_count: space.page_count(), channels, is_stable }
}

/// The largest distance between two distributions of valid pages, leaving out blocks without any.
fn distance(a: &[u64], b: &[u64]) -> f64 {
    let total = |of: &[u64]| of[1..].iter().sum::<u64>().max(1) as f64;
    let (all_a, all_b) = (total(a), total(b));
    let (mut sum_a, mut sum_b, mut most) = (0, 0, 0.0_f64);
    for (of_a, of_b) in a[1..].iter().zip(&b[1..]) {
        sum_a += of_a;
        sum_b += of_b;
        most = most.max((sum_a as f64 / all_a - sum_b as f64 / all_b).abs());
    }
    most
}

/// A segment's open blocks, one per channel.
#[derive(Debug)]
struct Open {
    segment: u64,
    /// Each block, and how many of its pages are written.
    blocks: Vec<Option<(u32, usize)>>,
}

/// The flash blocks.
#[derive(Debug, Default)]
struct Flash {
    block_pages: usize,
    channels: usize,
    /// For each page, the block that holds it, or `NONE`.
    page_blocks: Vec<u32>,
    /// For each block, how many of its pages are valid.
    valid: Vec<u8>,
    open: Vec<Open>,
    /// The channel of the next page, in whatever segment.
    next: usize,
}

impl Flash {
    fn of(pages: usize, block_pages: usize, channels: usize) -> Self {
        Self { block_pages, channels, page_blocks: vec![NONE; pages], ..Self::default() }
    }

    fn invalidate(&mut self, page: usize) {
        let block = std::mem::replace(&mut self.page_blocks[page], NONE);
        if block != NONE {
            self.valid[block as usize] -= 1;
        }
    }

    fn write(&mut self, page: usize, segment: u64) {
        self.invalidate(page);
        let at = self.open.binary_search_by_key(&segment, |open| open.segment).unwrap_or_else(|at| {
            self.open.insert(at, Open { segment, blocks: vec![None; self.channels] });
            at
        });
        let open = &mut self.open[at];
        let channel = self.next;
        self.next = (channel + 1) % self.channels;
        let (block, written) = open.blocks[channel].unwrap_or_else(|| {
            self.valid.push(0);
            (self.valid.len() as u32 - 1, 0)
        });
        open.blocks[channel] = (written + 1 < self.block_pages).then_some((block, written + 1));
        self.page_blocks[page] = block;
        self.valid[block as usize] += 1;
    }

    /// Number of blocks by how many of their pages are valid.
    fn by_valid(&self) -> Vec<u64> {
        let mut blocks = vec![0; self.block_pages + 1];
        self.valid.iter().for_each(|valid| blocks[usize::from(*valid)] += 1);
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a fill and as many single overwrites as there are pages, a page of the fill survives with
    /// probability 1/e, so the number of survivors among a block's 64 pages is binomial.
    #[test]
    fn uniform_overwrites_leave_a_binomial_share() {
        let pages = 64 * 1024;
        let mut flash = Flash::of(pages, 64, 16);
        (0..pages).for_each(|page| flash.write(page, 0));
        let mut state = 9_u64;
        for _ in 0..pages {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            flash.write((state >> 33) as usize % pages, 0);
        }
        let old: Vec<f64> = flash.valid[..1024].iter().map(|valid| f64::from(*valid)).collect();
        let mean = old.iter().sum::<f64>() / 1024.0;
        let variance = old.iter().map(|valid| (valid - mean).powi(2)).sum::<f64>() / 1023.0;
        let share = (-1.0_f64).exp();
        assert!((mean / (64.0 * share) - 1.0).abs() < 0.01, "{mean}");
        assert!((variance / (64.0 * share * (1.0 - share)) - 1.0).abs() < 0.1, "{variance}");
        assert_eq!(flash.valid.iter().map(|valid| usize::from(*valid)).sum::<usize>(), pages);
    }
}
