//! Hybrid mapping: data by blocks, behind a log mapped by pages (Park et al. 2008, as in He et al. 2017).
//!
//! Several logical blocks form a group, which appends its writes to its own log blocks. When the group has as
//! many as it may, or when all log blocks are taken and the group is the least recently written, its log
//! blocks are merged into data blocks:
//!
//! - a switch merge: a log block holds a logical block from first page to last, in order. It becomes the data block.
//! - a partial merge: it holds the first pages in order, and the others are copied after them.
//! - a full merge: all pages are copied to a new block.

use super::cache::Cache;
use super::counts::Cause;
use super::flash::{Flash, NONE, PoolSpec};
use super::sizes::Sizes;

/// Kinds of merges, as indexes into [`super::Counts::merges`].
const SWITCH: usize = 0;
const PARTIAL: usize = 1;
const FULL: usize = 2;

/// A drive with hybrid mapping.
#[derive(Debug)]
pub struct Hybrid {
    /// Its flash.
    pub flash: Flash,
    /// For each page, the flash page that holds it.
    map: Vec<u32>,
    /// For each logical block, its data block.
    data: Vec<u32>,
    /// Logical blocks of a group.
    group_blocks: u32,
    /// Log blocks that a group may have.
    group_logs: u32,
    /// For each group, its log blocks, oldest first.
    logs: Vec<u32>,
    /// How many log blocks there may be, and how many there are.
    room: u32,
    held: u32,
    /// Groups that have log blocks, in order of their last writes.
    order: Cache,
}

impl Hybrid {
    /// An empty drive.
    pub fn new(sizes: &Sizes) -> Self {
        let blocks = sizes.pages.div_ceil(sizes.block_pages);
        let groups = blocks.div_ceil(sizes.group_blocks);
        let group_logs = sizes.group_logs.min(sizes.log_blocks);
        let pool = PoolSpec { blocks: sizes.data_blocks, streams: 1, low: 0 };
        Self {
            flash: Flash::new(sizes.block_pages, sizes.dies, &[pool]),
            map: vec![NONE; sizes.pages as usize],
            data: vec![NONE; blocks as usize],
            group_blocks: sizes.group_blocks,
            group_logs,
            logs: vec![NONE; groups as usize * group_logs as usize],
            room: sizes.log_blocks,
            held: 0,
            order: Cache::new(groups, groups),
        }
    }

    /// The flash page that holds a page; `None` if it holds nothing.
    #[cfg(test)]
    pub fn place(&self, page: u32) -> Option<u32> {
        Some(self.map[page as usize]).filter(|place| *place != NONE)
    }

    /// Reads a page.
    pub fn read(&mut self, page: u32) {
        match self.map[page as usize] {
            NONE => self.flash.counts.empty_reads += 1,
            place => self.flash.read(place, Cause::Host),
        }
    }

    /// Writes a page, whole or in part.
    pub fn write(&mut self, page: u32, is_whole: bool) {
        let log = self.log_with_room(page / self.flash.block_pages / self.group_blocks);
        let old = self.map[page as usize];
        if old != NONE {
            if !is_whole {
                self.flash.read(old, Cause::Part);
            }
            self.flash.invalidate(old);
        }
        self.map[page as usize] = self.flash.program(log, self.flash.written(log), page, Cause::Host);
    }

    /// Drops a page's content.
    pub fn discard(&mut self, page: u32) {
        let old = std::mem::replace(&mut self.map[page as usize], NONE);
        if old != NONE {
            self.flash.invalidate(old);
        }
    }

    /// The log block that a group's next page goes to.
    fn log_with_room(&mut self, group: u32) -> u32 {
        let count = self.logs_of(group).iter().take_while(|log| **log != NONE).count();
        if let Some(last) = count.checked_sub(1).map(|last| self.logs_of(group)[last])
            && self.flash.written(last) < self.flash.block_pages
        {
            self.order.use_one(group);
            return last;
        }
        let mut place = count;
        if count == self.group_logs as usize {
            self.order.forget(group);
            self.merge(group);
            place = 0;
        } else if self.held == self.room
            && let Some((oldest, _)) = self.order.drop_oldest()
        {
            self.merge(oldest);
            place = if oldest == group { 0 } else { count };
        }
        let log = self.flash.take_free(0, group);
        self.held += 1;
        self.order.use_one(group);
        let at = group as usize * self.group_logs as usize + place;
        self.logs[at] = log;
        log
    }

    fn logs_of(&self, group: u32) -> &[u32] {
        let first = group as usize * self.group_logs as usize;
        &self.logs[first..first + self.group_logs as usize]
    }

    /// Merges a group's log blocks into data blocks.
    fn merge(&mut self, group: u32) {
        let blocks = self.data.len() as u32;
        let first = group * self.group_blocks;
        for block in first..(first + self.group_blocks).min(blocks) {
            self.merge_block(group, block);
        }
        let first = group as usize * self.group_logs as usize;
        for at in first..first + self.group_logs as usize {
            let log = std::mem::replace(&mut self.logs[at], NONE);
            if log != NONE {
                self.held -= 1;
                self.flash.erase(log, Cause::Merge);
            }
        }
    }

    /// Merges a logical block into a single block in which each page has its own place.
    fn merge_block(&mut self, group: u32, block: u32) {
        let old = self.data[block as usize];
        let (first, behind) = self.pages_of(block);
        let is_in_log = |place: u32| place != NONE && (old == NONE || self.flash.block_of(place) != old);
        if !self.map[first as usize..behind as usize].iter().any(|place| is_in_log(*place)) {
            return;
        }
        let begun = self.logs_of(group).iter().position(|log| *log != NONE && self.begins(*log, block));
        let (target, written) = match begun {
            Some(at) => {
                let at = group as usize * self.group_logs as usize + at;
                let log = std::mem::replace(&mut self.logs[at], NONE);
                self.held -= 1;
                (log, self.flash.written(log))
            }
            None => (self.flash.take_free(0, block), 0),
        };
        let mut has_copied = false;
        for page in first + written..behind {
            let from = self.map[page as usize];
            if from == NONE {
                continue;
            }
            has_copied = true;
            self.flash.read(from, Cause::Merge);
            self.flash.invalidate(from);
            let to = self.flash.program(target, page - first, page, Cause::Merge);
            self.map[page as usize] = to;
            #[cfg(test)]
            self.flash.copy_stamp(from, to);
        }
        let kind = if begun.is_none() {
            FULL
        } else if has_copied {
            PARTIAL
        } else {
            SWITCH
        };
        self.flash.counts.merges[kind] += 1;
        self.data[block as usize] = target;
        if old != NONE {
            self.flash.erase(old, Cause::Merge);
        }
    }

    /// Whether a log block holds nothing but the first pages of a logical block, in order.
    fn begins(&self, log: u32, block: u32) -> bool {
        let first = self.flash.first_of(log);
        let written = self.flash.written(log);
        (0..written).all(|at| self.flash.owners[(first + at) as usize] == block * self.flash.block_pages + at)
    }

    /// A logical block's first page, and the one after its last.
    fn pages_of(&self, block: u32) -> (u32, u32) {
        let first = block * self.flash.block_pages;
        (first, (first + self.flash.block_pages).min(self.map.len() as u32))
    }

    /// Merges all groups.
    #[cfg(test)]
    pub fn settle(&mut self) {
        while let Some((group, _)) = self.order.drop_oldest() {
            self.merge(group);
        }
    }
}
