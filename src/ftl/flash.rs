//! Flash: blocks of pages that are written in order and erased as a whole.
//!
//! A block is free, open (a stream writes to it), or closed. Closed blocks are in lists by their number of
//! valid pages, so that the one with the fewest is found at once; among equals, the one that joined its list
//! first. All tables are indexed by number and allocated at the start.

use super::counts::{Cause, Counts};
use super::sizes::SHORT;

/// No page, or no block.
pub const NONE: u32 = u32::MAX;

/// What flash did, as a clock needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashAct {
    /// A page was read.
    Read,
    /// A page was programmed.
    Program,
    /// A block was erased.
    Erase,
}

/// A piece of work of flash: what, where and why.
#[derive(Debug, Clone, Copy)]
pub struct FlashWork {
    /// What.
    pub act: FlashAct,
    /// On which die.
    pub die: u32,
    /// Why.
    pub cause: Cause,
}

/// The description of a pool of blocks.
#[derive(Debug, Clone, Copy)]
pub struct PoolSpec {
    /// Its blocks.
    pub blocks: u32,
    /// Streams that write to it; each has an open block on each die.
    pub streams: u32,
    /// Once this many blocks or fewer are free, garbage is collected.
    pub low: u32,
}

/// Blocks for pages of one kind.
#[derive(Debug)]
struct Pool {
    /// The block after its last one.
    behind: u32,
    /// Lists of free blocks by die, longest free first.
    free_lists: Vec<[u32; 2]>,
    free: u32,
    low: u32,
    /// Lists of closed blocks by number of valid pages.
    closed: Vec<[u32; 2]>,
    /// No closed block has fewer valid pages.
    fewest: usize,
    /// The open block, by stream and die.
    open: Vec<u32>,
    /// By stream: the die of the next page, and how many rounds over the dies are done.
    turns: Vec<[u32; 2]>,
}

/// Flash, in one or two pools.
#[derive(Debug)]
pub struct Flash {
    /// Pages of a block.
    pub block_pages: u32,
    dies: u32,
    /// For each flash page, the page that it holds; `NONE` if it holds nothing valid.
    pub owners: Vec<u32>,
    /// For each block, how many of its pages are valid.
    valid: Vec<u32>,
    /// For each block, how many of its pages are written.
    written: Vec<u32>,
    /// For each block, how often it was erased.
    pub erases: Vec<u32>,
    /// For each block, its neighbours in its list: the previous and the next one.
    links: Vec<[u32; 2]>,
    /// For each block, whether it is in a list of closed blocks.
    is_closed: Vec<bool>,
    pools: Vec<Pool>,
    /// What was done and why.
    pub counts: Counts,
    /// Every piece of work, recorded only on request.
    pub acts: Option<Vec<FlashWork>>,
    /// What was written to each flash page, for tests.
    #[cfg(test)]
    pub stamps: Vec<u64>,
}

impl Flash {
    /// Empty flash.
    pub fn new(block_pages: u32, dies: u32, pools: &[PoolSpec]) -> Self {
        let blocks: u32 = pools.iter().map(|pool| pool.blocks).sum();
        let of_blocks = |with: u32| vec![with; blocks as usize];
        let pages = blocks as usize * block_pages as usize;
        let mut flash = Self {
            block_pages,
            dies,
            owners: vec![NONE; pages],
            valid: of_blocks(0),
            written: of_blocks(0),
            erases: of_blocks(0),
            links: vec![[NONE; 2]; blocks as usize],
            is_closed: vec![false; blocks as usize],
            pools: Vec::with_capacity(pools.len()),
            counts: Counts::default(),
            acts: None,
            #[cfg(test)]
            stamps: vec![0; pages],
        };
        let mut first = 0;
        for spec in pools {
            flash.pools.push(Pool {
                behind: first + spec.blocks,
                free_lists: vec![[NONE; 2]; dies as usize],
                free: 0,
                low: spec.low,
                closed: vec![[NONE; 2]; block_pages as usize + 1],
                fewest: block_pages as usize,
                open: vec![NONE; (spec.streams * dies) as usize],
                turns: vec![[0; 2]; spec.streams as usize],
            });
            (first..first + spec.blocks).for_each(|block| flash.free(block));
            first += spec.blocks;
        }
        flash
    }

    /// The block of a flash page.
    pub fn block_of(&self, page: u32) -> u32 {
        page / self.block_pages
    }

    /// The first page of a block.
    pub fn first_of(&self, block: u32) -> u32 {
        block * self.block_pages
    }

    /// How many pages of a block are written.
    pub fn written(&self, block: u32) -> u32 {
        self.written[block as usize]
    }

    /// How many pages of a block are valid.
    pub fn valid(&self, block: u32) -> u32 {
        self.valid[block as usize]
    }

    /// Whether a pool needs garbage collection before more is written to it.
    pub fn is_low(&self, pool: usize) -> bool {
        self.pools[pool].free <= self.pools[pool].low
    }

    /// Whether it needs that at once.
    pub fn is_short(&self, pool: usize) -> bool {
        self.pools[pool].free <= SHORT
    }

    /// Reads a page.
    pub fn read(&mut self, page: u32, cause: Cause) {
        self.counts.reads[cause as usize] += 1;
        self.note(FlashAct::Read, self.block_of(page), cause);
    }

    /// Programs the next page of a stream, taking the dies in turn; returns the flash page.
    pub fn append(&mut self, pool: usize, stream: u32, owner: u32, cause: Cause) -> u32 {
        let [die, rounds] = self.pools[pool].turns[stream as usize];
        // Dies join in one by one, so that their blocks don't all fill up at once.
        let joined = self.dies.min(1 + rounds.saturating_mul(self.dies) / self.block_pages);
        let is_last = die + 1 >= joined;
        self.pools[pool].turns[stream as usize] =
            if is_last { [0, (rounds + 1).min(self.block_pages)] } else { [die + 1, rounds] };
        let (slot, block) = self.open_block(pool, stream, die);
        let page = self.program(block, self.written[block as usize], owner, cause);
        if self.written[block as usize] == self.block_pages {
            self.pools[pool].open[slot] = NONE;
            self.close(block);
        }
        page
    }

    /// A stream's open block and its index among the open ones: on that die if it has one there, or on
    /// another die if blocks run short.
    fn open_block(&mut self, pool: usize, stream: u32, die: u32) -> (usize, u32) {
        let first = (stream * self.dies) as usize;
        let slot = first + die as usize;
        let of = &self.pools[pool];
        if of.open[slot] != NONE {
            return (slot, of.open[slot]);
        }
        let is_short = of.free <= SHORT || of.free_lists[die as usize][0] == NONE;
        let mut others = (1..self.dies).map(|next| first + ((die + next) % self.dies) as usize);
        if is_short && let Some(at) = others.find(|at| of.open[*at] != NONE) {
            return (at, of.open[at]);
        }
        let block = self.take_free(pool, die);
        self.pools[pool].open[slot] = block;
        (slot, block)
    }

    /// Takes a free block, from that die if it has one.
    ///
    /// # Panics
    /// If none is free, which the pool sizes rule out.
    pub fn take_free(&mut self, pool: usize, die: u32) -> u32 {
        let dies = self.dies;
        let with_free = |lists: &[[u32; 2]]| {
            (0..dies).map(|next| (die + next) % dies).find(|die| lists[*die as usize][0] != NONE)
        };
        let die = with_free(&self.pools[pool].free_lists).expect("a block is free") as usize;
        let block = self.pools[pool].free_lists[die][0];
        unlink(&mut self.links, &mut self.pools[pool].free_lists[die], block);
        self.pools[pool].free -= 1;
        block
    }

    /// Programs a page of a block, after those already written.
    pub fn program(&mut self, block: u32, offset: u32, owner: u32, cause: Cause) -> u32 {
        debug_assert!(
            (self.written[block as usize]..self.block_pages).contains(&offset),
            "pages are programmed once, in order"
        );
        let page = self.first_of(block) + offset;
        self.owners[page as usize] = owner;
        self.written[block as usize] = offset + 1;
        self.valid[block as usize] += 1;
        self.counts.programs[cause as usize] += 1;
        self.note(FlashAct::Program, block, cause);
        page
    }

    /// Marks a page as no longer valid.
    pub fn invalidate(&mut self, page: u32) {
        self.owners[page as usize] = NONE;
        let block = self.block_of(page);
        let is_closed = self.is_closed[block as usize];
        if is_closed {
            self.unclose(block);
        }
        self.valid[block as usize] -= 1;
        if is_closed {
            self.close(block);
        }
    }

    /// Takes a pool's closed block with the fewest valid pages off the lists; `None` if emptying it gains nothing.
    pub fn take_victim(&mut self, pool: usize) -> Option<u32> {
        let of = &mut self.pools[pool];
        while of.fewest < self.block_pages as usize && of.closed[of.fewest][0] == NONE {
            of.fewest += 1;
        }
        if of.fewest == self.block_pages as usize {
            return None;
        }
        let block = of.closed[of.fewest][0];
        self.unclose(block);
        Some(block)
    }

    /// Takes the least erased closed data block off the lists; `None` unless another block has over `spread`
    /// more erases.
    pub fn take_least_worn(&mut self, spread: u32) -> Option<u32> {
        // The first pool holds the data.
        let behind = self.pools[0].behind;
        let most = *self.erases[..behind as usize].iter().max()?;
        let closed = (0..behind).filter(|block| self.is_closed[*block as usize]);
        let block = closed.min_by_key(|block| self.erases[*block as usize])?;
        if most - self.erases[block as usize] <= spread {
            return None;
        }
        self.unclose(block);
        Some(block)
    }

    /// Valid pages, counted by block and by owner.
    #[cfg(test)]
    pub fn valid_pages(&self) -> [usize; 2] {
        let by_owner = self.owners.iter().filter(|owner| **owner != NONE).count();
        [self.valid.iter().map(|valid| *valid as usize).sum(), by_owner]
    }

    /// Moves the most erased free block of each die to the front of its list.
    pub fn worn_first(&mut self, pool: usize) {
        for list in &mut self.pools[pool].free_lists {
            let (mut worn, mut block) = (list[0], list[0]);
            while block != NONE {
                if self.erases[block as usize] > self.erases[worn as usize] {
                    worn = block;
                }
                block = self.links[block as usize][1];
            }
            if worn != list[0] {
                unlink(&mut self.links, list, worn);
                let second = list[0];
                self.links[worn as usize] = [NONE, second];
                self.links[second as usize][0] = worn;
                list[0] = worn;
            }
        }
    }

    /// Moves what was written along with a page.
    #[cfg(test)]
    pub fn copy_stamp(&mut self, from: u32, to: u32) {
        self.stamps[to as usize] = self.stamps[from as usize];
    }

    /// Erases a block that has no valid page and is in no list, and frees it.
    pub fn erase(&mut self, block: u32, cause: Cause) {
        debug_assert_eq!(self.valid[block as usize], 0, "what is erased holds nothing valid");
        self.written[block as usize] = 0;
        self.erases[block as usize] += 1;
        self.counts.erases[cause as usize] += 1;
        self.note(FlashAct::Erase, block, cause);
        self.free(block);
    }

    fn note(&mut self, act: FlashAct, block: u32, cause: Cause) {
        if let Some(acts) = &mut self.acts {
            acts.push(FlashWork { act, die: block % self.dies, cause });
        }
    }

    fn pool_of(&self, block: u32) -> usize {
        usize::from(block >= self.pools[0].behind)
    }

    /// Appends a block to its die's free list.
    fn free(&mut self, block: u32) {
        let pool = self.pool_of(block);
        let of = &mut self.pools[pool];
        push(&mut self.links, &mut of.free_lists[(block % self.dies) as usize], block);
        of.free += 1;
    }

    /// Appends a block to the list of blocks with as many valid pages.
    fn close(&mut self, block: u32) {
        let (pool, valid) = (self.pool_of(block), self.valid[block as usize] as usize);
        let of = &mut self.pools[pool];
        push(&mut self.links, &mut of.closed[valid], block);
        of.fewest = of.fewest.min(valid);
        self.is_closed[block as usize] = true;
    }

    fn unclose(&mut self, block: u32) {
        let (pool, valid) = (self.pool_of(block), self.valid[block as usize] as usize);
        unlink(&mut self.links, &mut self.pools[pool].closed[valid], block);
        self.is_closed[block as usize] = false;
    }
}

/// Appends a block to a list.
fn push(links: &mut [[u32; 2]], list: &mut [u32; 2], block: u32) {
    let [head, tail] = list;
    links[block as usize] = [*tail, NONE];
    if *tail == NONE {
        *head = block;
    } else {
        links[*tail as usize][1] = block;
    }
    *tail = block;
}

/// Removes a block from its list.
fn unlink(links: &mut [[u32; 2]], list: &mut [u32; 2], block: u32) {
    let [before, behind] = links[block as usize];
    match before {
        NONE => list[0] = behind,
        _ => links[before as usize][1] = behind,
    }
    match behind {
        NONE => list[1] = before,
        _ => links[behind as usize][0] = before,
    }
}
