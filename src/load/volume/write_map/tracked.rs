//! The part of the map that a class's workers update as they write: writes in flight, and acknowledged ones.
//! Nothing here allocates, waits or makes a system call.
//!
//! Each outstanding write has two words in the file: which words of the table it covers, and its sequence
//! number, which is 0 once its completion is in the table. Whatever a kill leaves there was in flight.
//!
//! Two writes overlap if one was queued before the other completed; then either may be last. A small table of
//! cells in memory, by a hash of the page, finds them: see [`super::cell`]. Writes that share a cell by
//! chance count as overlapping: the map then says less, but nothing wrong.
//!
//! After a write that overlapped, its word rules out all writes that were complete when it was queued, and,
//! unless it was the first in its cell, all that the word ruled out before. The write itself may be last,
//! whatever its number. Writes still in flight change the word when they complete.

use std::sync::atomic::{AtomicU64, Ordering};

use super::cell::{self, FIRST, LOW};
use super::mapping::Words;
use super::table::{EXACT, FLOOR, Table, UNSURE};

/// Above a write's first word, log2 of the number of words that it covers.
const COUNT_SHIFT: u32 = 56;
/// Cells for each write that can be outstanding.
const CELLS_PER_WRITE: usize = 64;
const CELLS: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 20;

/// State that a class's workers share while they write pages of one size to a region.
#[derive(Debug)]
pub struct Tracked {
    table: Table,
    slots: Words,
    /// What each slot's write took along when it was queued, unless nothing was in flight.
    taken: Box<[AtomicU64]>,
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
        let [taken, cells] = [outstanding, cells].map(|n| (0..n).map(|_| AtomicU64::new(0)).collect());
        // Touches all of the slots now, so that none is faulted in during the run.
        slots.iter().for_each(|word| word.store(0, Ordering::Release));
        Self { table, slots, taken, cells, granules_log2, alone: workers == 1 }
    }

    /// Records that the class's outstanding write `slot` is about to write a page.
    #[inline]
    pub fn queued(&self, slot: usize, extent: u32, offset_bytes: u64, sequence: u64) {
        let words = self.table.words_of(extent, offset_bytes, self.granules_log2);
        if words.is_empty() {
            return;
        }
        // Often in no CPU cache: this fetches it while the write is in flight.
        self.table.fetch(words.start);
        let first = words.start as u64;
        let taken = self.change(self.cell(first), |old| cell::queued(old, sequence & LOW));
        if taken & FIRST == 0 {
            self.taken[slot].store(taken, Ordering::Relaxed);
        }
        let place = taken & FIRST | first | u64::from(words.len().ilog2()) << COUNT_SHIFT;
        self.slots[2 * slot].store(place, Ordering::Release);
        self.slots[2 * slot + 1].store(sequence, Ordering::Release);
    }

    /// Prefetches what [`Self::completed`] will soon change for that write; it is often in no CPU cache.
    #[inline]
    pub fn fetch(&self, slot: usize) {
        let (first, _) = unpacked(self.slots[2 * slot].load(Ordering::Relaxed));
        self.table.fetch(first);
    }

    /// Records that the write has completed, as a whole or with an error.
    #[inline]
    pub fn completed(&self, slot: usize, whole: bool) {
        self.take_down(slot, whole, self.seen(slot));
    }

    /// The write's cell, as it is now.
    #[inline]
    pub(super) fn seen(&self, slot: usize) -> u64 {
        let (first, _) = unpacked(self.slots[2 * slot].load(Ordering::Relaxed));
        self.cell(first as u64).load(Ordering::Acquire)
    }

    /// Records a completed write. Its cell was `seen` after completion; others may have changed it since.
    #[inline]
    pub(super) fn take_down(&self, slot: usize, whole: bool, seen: u64) {
        let sequence = self.slots[2 * slot + 1].load(Ordering::Relaxed);
        if sequence == 0 {
            return;
        }
        let place = self.slots[2 * slot].load(Ordering::Relaxed);
        if place & FIRST == 0 || !whole || !self.completed_alone(place, sequence, seen) {
            self.completed_beside(slot, place, sequence, whole);
        }
        self.slots[2 * slot + 1].store(0, Ordering::Release);
    }

    /// Records a write with nothing in flight beside it. False if something was: the caller then records it.
    #[inline]
    fn completed_alone(&self, place: u64, sequence: u64, seen: u64) -> bool {
        if cell::is_overlapped(seen) {
            return false;
        }
        let (first, count) = unpacked(place);
        let cell = self.cell(first as u64);
        self.table.store(first..first + count, EXACT | sequence);
        // A write queued before this sees the cell as it was, and counts this one as in flight.
        if self.alone {
            cell.store(0, Ordering::Relaxed);
            return true;
        }
        cell.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    #[inline(never)]
    fn completed_beside(&self, slot: usize, place: u64, sequence: u64, whole: bool) {
        let (first, count) = unpacked(place);
        let cell = self.cell(first as u64);
        let taken = match place & FIRST {
            0 => self.taken[slot].load(Ordering::Relaxed),
            _ => FIRST | (sequence & LOW),
        };
        for at in first..first + count {
            self.table.change(at, self.alone, |was| {
                if !whole {
                    return UNSURE;
                }
                // The cell as it is now, which accounts for every write that has reached the word.
                let oldest = (sequence & !LOW) | cell::oldest(cell.load(Ordering::Acquire), taken);
                // The first write rules out all that was complete before it. It may also have overwritten the
                // word of another that was queued and completed since it saw its cell.
                let floor = if taken & FIRST == 0 { Table::floor(was, at) } else { 0 };
                FLOOR | sequence.min(oldest.max(floor))
            });
        }
        // Only now: the next write relies on the table.
        self.change(cell, |old| (cell::completed(old, taken), 0));
    }

    #[inline]
    fn cell(&self, first: u64) -> &AtomicU64 {
        let hash = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        &self.cells[hash as usize & (self.cells.len() - 1)]
    }

    #[inline]
    fn change(&self, cell: &AtomicU64, to: impl Fn(u64) -> (u64, u64)) -> u64 {
        let mut old = cell.load(Ordering::Acquire);
        loop {
            let (new, taken) = to(old);
            if self.alone {
                cell.store(new, Ordering::Relaxed);
                return taken;
            }
            match cell.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return taken,
                Err(now) => old = now,
            }
        }
    }
}

/// The first word that a write covers, and how many it covers.
#[inline]
pub(super) fn unpacked(place: u64) -> (usize, usize) {
    ((place & ((1 << COUNT_SHIFT) - 1)) as usize, 1 << (place >> COUNT_SHIFT & 31))
}
