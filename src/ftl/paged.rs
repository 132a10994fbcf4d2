//! Mapping by pages: a page can be anywhere, and is always rewritten elsewhere.
//!
//! The map is held whole or on demand (DFTL). On demand, it is in translation pages on flash, in blocks of
//! their own, and a cache holds some of them. An evicted translation page is written back if it has changed,
//! with all its changes at once. If garbage collection moves pages whose translation page is not in the
//! cache, it reads and writes that page only once for all pages of the block.

use super::cache::{Cache, Used};
use super::counts::Cause;
use super::flash::{Flash, NONE, PoolSpec};
use super::sizes::Sizes;

/// The pool of data pages.
const DATA: usize = 0;
/// The pool of translation pages.
const MAPPING: usize = 1;
/// The stream of translation pages that change, and the one for those that are moved.
const CHANGED: u32 = 0;
const MOVED: u32 = 1;

/// A drive with page mapping.
#[derive(Debug)]
pub struct Paged {
    /// Its flash.
    pub flash: Flash,
    /// For each page, the flash page that holds it.
    map: Vec<u32>,
    /// Streams of the host. After them come the stream for pages that collection moves, and the one for
    /// levelling, whose pages rarely change: among others they would be moved again and again.
    streams: u32,
    /// Pages that the host may write before more garbage is collected, unless blocks run short: this spreads the work.
    pause: u32,
    on_demand: Option<OnDemand>,
    levelling: Option<Levelling>,
}

/// The map on flash.
#[derive(Debug)]
struct OnDemand {
    cache: Cache,
    /// Pages that a translation page maps.
    entries: u32,
    /// For each translation page, the flash page that holds it.
    directory: Vec<u32>,
    /// Translation pages of a block's moved pages.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// The map as stored on flash, for tests.
    #[cfg(test)]
    stored: Vec<u32>,
}

/// Static wear levelling: now and then, the least erased block is emptied for others to use.
#[derive(Debug)]
struct Levelling {
    /// How far erase counts may differ.
    spread: u32,
    /// Erases until the next check.
    pause: u32,
    until: u32,
}

impl Paged {
    /// An empty drive.
    pub fn new(sizes: &Sizes) -> Self {
        let data = PoolSpec { blocks: sizes.data_blocks, streams: sizes.all_streams(), low: sizes.low };
        let mapping = PoolSpec { blocks: sizes.mapping_blocks, streams: 2, low: sizes.low };
        let all = sizes.translation_pages;
        let on_demand = sizes.cached.map(|cached| OnDemand {
            cache: Cache::new(cached, all),
            entries: sizes.entries,
            directory: vec![NONE; all as usize],
            touched: Vec::with_capacity(sizes.block_pages as usize),
            is_touched: vec![false; all as usize],
            #[cfg(test)]
            stored: vec![NONE; sizes.pages as usize],
        });
        let levelling =
            sizes.wear_spread.map(|spread| Levelling { spread, pause: spread.max(1), until: spread.max(1) });
        Self {
            flash: Flash::new(sizes.block_pages, sizes.dies, &[data, mapping]),
            map: vec![NONE; sizes.pages as usize],
            streams: sizes.streams,
            pause: 0,
            on_demand,
            levelling,
        }
    }

    /// The flash page that holds a page; `None` if it holds nothing.
    #[cfg(test)]
    pub fn place(&self, page: u32) -> Option<u32> {
        Some(self.map[page as usize]).filter(|place| *place != NONE)
    }

    /// Reads a page.
    pub fn read(&mut self, page: u32) {
        self.look_up(page);
        match self.map[page as usize] {
            NONE => self.flash.counts.empty_reads += 1,
            place => self.flash.read(place, Cause::Host),
        }
    }

    /// Writes a page, whole or in part.
    pub fn write(&mut self, page: u32, stream: u32, is_whole: bool) {
        self.look_up(page);
        while self.flash.is_low(DATA) && (self.pause == 0 || self.flash.is_short(DATA)) && self.collect() {}
        self.pause = self.pause.saturating_sub(1);
        let old = self.map[page as usize];
        if old != NONE {
            if !is_whole {
                self.flash.read(old, Cause::Part);
            }
            self.flash.invalidate(old);
        }
        self.map[page as usize] = self.flash.append(DATA, stream.min(self.streams - 1), page, Cause::Host);
        self.note_change(page);
    }

    /// Drops a page's content.
    pub fn discard(&mut self, page: u32) {
        self.look_up(page);
        let old = std::mem::replace(&mut self.map[page as usize], NONE);
        if old != NONE {
            self.flash.invalidate(old);
            self.note_change(page);
        }
    }

    /// Loads a page's part of the mapping into the cache.
    fn look_up(&mut self, page: u32) {
        let Some(on_demand) = &mut self.on_demand else { return };
        let one = page / on_demand.entries;
        self.flash.counts.lookups += 1;
        let gone = match on_demand.cache.use_one(one) {
            Used::Hit => return,
            Used::Loaded => None,
            Used::Instead(gone, has_changed) => Some((gone, has_changed)),
        };
        self.flash.counts.misses += 1;
        let place = on_demand.directory[one as usize];
        if place != NONE {
            self.flash.read(place, Cause::Mapping);
        }
        #[cfg(test)]
        self.check_stored(one);
        self.write_back(gone);
    }

    /// Number of translation pages on flash.
    #[cfg(test)]
    pub fn translation_pages_on_flash(&self) -> usize {
        let directory = self.on_demand.iter().flat_map(|on_demand| &on_demand.directory);
        directory.filter(|place| **place != NONE).count()
    }

    /// Compares a translation page on flash with the map: eviction must lose nothing.
    #[cfg(test)]
    fn check_stored(&self, one: u32) {
        let Some(on_demand) = &self.on_demand else { return };
        let first = (one * on_demand.entries) as usize;
        let behind = (first + on_demand.entries as usize).min(self.map.len());
        assert_eq!(on_demand.stored[first..behind], self.map[first..behind], "translation page {one}");
    }

    /// Writes an evicted translation page to flash, if it has changed.
    fn write_back(&mut self, gone: Option<(u32, bool)>) {
        if let Some((one, true)) = gone {
            self.flash.counts.write_backs += 1;
            self.store(one);
        }
    }

    /// Notes that a page has moved; its translation page is in the cache.
    fn note_change(&mut self, page: u32) {
        if let Some(on_demand) = &mut self.on_demand {
            on_demand.cache.change(page / on_demand.entries);
        }
    }

    /// Writes a translation page to flash.
    fn store(&mut self, one: u32) {
        while self.flash.is_low(MAPPING) && self.collect_mapping() {}
        let Some(on_demand) = &mut self.on_demand else { return };
        let old = on_demand.directory[one as usize];
        if old != NONE {
            self.flash.invalidate(old);
        }
        on_demand.directory[one as usize] = self.flash.append(MAPPING, CHANGED, one, Cause::Mapping);
        #[cfg(test)]
        {
            let first = (one * on_demand.entries) as usize;
            let behind = (first + on_demand.entries as usize).min(self.map.len());
            on_demand.stored[first..behind].copy_from_slice(&self.map[first..behind]);
        }
    }

    /// Empties and erases the data block with the fewest valid pages; false if that gains nothing.
    fn collect(&mut self) -> bool {
        let Some(victim) = self.flash.take_victim(DATA) else { return false };
        // Collects twice as fast as the host uses up what is gained.
        self.pause = (self.flash.block_pages - self.flash.valid(victim)) / 2;
        self.empty(victim, Cause::Collection);
        self.level();
        true
    }

    /// Moves the valid pages out of a data block, and erases it.
    fn empty(&mut self, block: u32, cause: Cause) {
        let first = self.flash.first_of(block);
        let stream = self.streams + u32::from(cause == Cause::Levelling);
        for old in first..first + self.flash.written(block) {
            let page = self.flash.owners[old as usize];
            if page == NONE {
                continue;
            }
            self.flash.read(old, cause);
            self.flash.invalidate(old);
            self.map[page as usize] = self.flash.append(DATA, stream, page, cause);
            #[cfg(test)]
            self.flash.copy_stamp(old, self.map[page as usize]);
            self.note_move(page);
        }
        self.store_moves();
        self.flash.erase(block, cause);
    }

    /// Notes a moved page, either in the cache or in a translation page on flash that is yet to be written.
    fn note_move(&mut self, page: u32) {
        let Some(on_demand) = &mut self.on_demand else { return };
        let one = page / on_demand.entries;
        if !on_demand.cache.change(one) && !on_demand.is_touched[one as usize] {
            on_demand.is_touched[one as usize] = true;
            on_demand.touched.push(one);
        }
    }

    /// Reads and rewrites the translation pages of moved pages.
    fn store_moves(&mut self) {
        while let Some(one) = self.on_demand.as_mut().and_then(|on_demand| on_demand.touched.pop()) {
            let Some(on_demand) = &mut self.on_demand else { return };
            on_demand.is_touched[one as usize] = false;
            let place = on_demand.directory[one as usize];
            if place != NONE {
                self.flash.read(place, Cause::Mapping);
            }
            self.store(one);
        }
    }

    /// Like [`Self::collect`], for translation pages: where they are is always known.
    fn collect_mapping(&mut self) -> bool {
        let Some(victim) = self.flash.take_victim(MAPPING) else { return false };
        let first = self.flash.first_of(victim);
        for old in first..first + self.flash.block_pages {
            let one = self.flash.owners[old as usize];
            if one == NONE {
                continue;
            }
            self.flash.read(old, Cause::Mapping);
            self.flash.invalidate(old);
            let place = self.flash.append(MAPPING, MOVED, one, Cause::Mapping);
            if let Some(on_demand) = &mut self.on_demand {
                on_demand.directory[one as usize] = place;
            }
        }
        self.flash.erase(victim, Cause::Mapping);
        true
    }

    /// If erase counts differ too much, empties the least erased block, whose pages never change, so that
    /// others use it.
    fn level(&mut self) {
        let Some(levelling) = &mut self.levelling else { return };
        levelling.until = levelling.until.saturating_sub(1);
        if levelling.until > 0 {
            return;
        }
        levelling.until = levelling.pause;
        let spread = levelling.spread;
        if !self.flash.is_low(DATA)
            && let Some(block) = self.flash.take_least_worn(spread)
        {
            self.flash.worn_first(DATA);
            self.empty(block, Cause::Levelling);
        }
    }
}
