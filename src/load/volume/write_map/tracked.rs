//! The side of the map that a class's workers keep while they write: what is under way, and what is
//! acknowledged. Nothing here allocates, waits or makes a system call.
//!
//! Each outstanding write has two words in the file: which words of the table it is for, and its sequence
//! number, which is 0 once its completion is in the table. What a kill leaves there was under way.
//!
//! Two writes overlap if one was queued before the other completed; then either may be last. A small table of
//! cells in memory, by a hash of the page, finds them: a cell counts its outstanding writes, and from the moment
//! at which there are two until there are none it keeps the lowest of their sequence numbers. Those who share
//! a cell by chance count as overlapping: the map then says less, and nothing that is wrong.

use std::sync::atomic::{AtomicU64, Ordering};

use super::mapping::Words;
use super::table::{EXACT, FLOOR, Table, UNSURE};

/// Of sequence numbers, the lower bits differ within a run.
const LOW_BITS: u32 = 38;
const LOW: u64 = (1 << LOW_BITS) - 1;
const OVERLAPPED: u64 = 1 << LOW_BITS;
const ONE: u64 = OVERLAPPED << 1;
/// How many words a write is for, as a power of two, above the first of them.
const COUNT_SHIFT: u32 = 56;
/// Cells for each write that can be outstanding.
const CELLS_PER_WRITE: usize = 64;
const CELLS: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 20;

/// What the workers of a class share while they write pages of one size to a region.
#[derive(Debug)]
pub struct Tracked {
    table: Table,
    slots: Words,
    cells: Box<[AtomicU64]>,
    /// A page's granules, as a power of two.
    granules_log2: u32,
    /// Whether a single thread writes.
    alone: bool,
}

impl Tracked {
    pub(super) fn new(table: Table, slots: Words, page_bytes: u64, (workers, depth): (u64, u64)) -> Self {
        let granules_log2 = page_bytes.ilog2() - table.granule_bytes().ilog2();
        let outstanding = (workers * depth) as usize;
        let cells = (outstanding * CELLS_PER_WRITE).next_power_of_two().clamp(*CELLS.start(), *CELLS.end());
        let cells = (0..cells).map(|_| AtomicU64::new(0)).collect();
        // What is not yet there is not to be fetched in the middle of a run.
        slots.iter().for_each(|word| word.store(0, Ordering::Release));
        Self { table, slots, cells, granules_log2, alone: workers == 1 }
    }

    /// A page is about to be written by that outstanding write of the class.
    #[inline]
    pub fn queued(&self, slot: usize, extent: u32, offset_bytes: u64, sequence: u64) {
        let words = self.table.words_of(extent, offset_bytes, self.granules_log2);
        if words.is_empty() {
            return;
        }
        // Often in no cache: on its way until the write completes.
        self.table.fetch(words.start);
        let (first, low) = (words.start as u64, sequence & LOW);
        self.change(self.cell(first), |old| {
            let joined = (old & !LOW) + ONE;
            if old < ONE { joined | low } else { joined | OVERLAPPED | low.min(old & LOW) }
        });
        let place = first | u64::from(words.len().ilog2()) << COUNT_SHIFT;
        self.slots[2 * slot].store(place, Ordering::Release);
        self.slots[2 * slot + 1].store(sequence, Ordering::Release);
    }

    /// That write will soon be [`Self::completed`]: fetches what that changes, which is often in no cache.
    #[inline]
    pub fn fetch(&self, slot: usize) {
        let (first, _) = unpacked(self.slots[2 * slot].load(Ordering::Relaxed));
        self.table.fetch(first);
    }

    /// That write has completed: as a whole, or with an error.
    #[inline]
    pub fn completed(&self, slot: usize, whole: bool) {
        let sequence = self.slots[2 * slot + 1].load(Ordering::Relaxed);
        if sequence == 0 {
            return;
        }
        let (first, count) = unpacked(self.slots[2 * slot].load(Ordering::Relaxed));
        self.change(self.cell(first as u64), |old| {
            let alone = old >> (LOW_BITS + 1) == 1 && old & OVERLAPPED == 0;
            let word = match (whole, alone) {
                (true, true) => EXACT | sequence,
                (true, false) => FLOOR | (sequence & !LOW) | (old & LOW),
                (false, _) => UNSURE,
            };
            // Before the cell is left: whoever comes next overwrites it.
            self.table.store(first..first + count, word);
            if old < 2 * ONE { 0 } else { old - ONE }
        });
        self.slots[2 * slot + 1].store(0, Ordering::Release);
    }

    #[inline]
    fn cell(&self, first: u64) -> &AtomicU64 {
        let hash = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        &self.cells[hash as usize & (self.cells.len() - 1)]
    }

    #[inline]
    fn change(&self, cell: &AtomicU64, to: impl Fn(u64) -> u64) {
        let mut old = cell.load(Ordering::Acquire);
        if self.alone {
            return cell.store(to(old), Ordering::Relaxed);
        }
        while let Err(now) = cell.compare_exchange_weak(old, to(old), Ordering::AcqRel, Ordering::Acquire) {
            old = now;
        }
    }
}

/// The first word that a write is for, and how many.
#[inline]
pub(super) fn unpacked(place: u64) -> (usize, usize) {
    ((place & ((1 << COUNT_SHIFT) - 1)) as usize, 1 << (place >> COUNT_SHIFT & 31))
}
