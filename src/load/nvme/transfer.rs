//! A worker's page buffers, and how each is split into as many commands as it takes.
//!
//! A buffer never moves, so its PRP entries and lists are written once; the hot loop copies two words. A page
//! larger than a command may move (MDTS, Base 5.17.2.1) takes several commands.
#![allow(unsafe_code)] // a buffer is lent while no command names it, which is counted here

use super::bus::Bus;
use super::dma::Dma;
use super::prp::{self, ENTRY_BYTES, PAGE_BYTES, Prp};
use crate::error::Result;

/// Buffers of a page each, by slot.
pub struct Transfers {
    pages: Dma,
    /// The lists that PRP entries point to.
    _lists: Dma,
    /// By slot and part.
    prps: Box<[Prp]>,
    page_bytes: usize,
    part_bytes: usize,
    parts: u32,
    /// Outstanding commands that name a slot's buffer.
    lent: Box<[u32]>,
}

impl Transfers {
    /// Buffers of `page_bytes` (a power of two from 512) for that many slots, moved in parts of at most
    /// `part_bytes_max` (a power of two from 4 KiB).
    pub fn new<B: Bus>(bus: &B, slots: u32, page_bytes: usize, part_bytes_max: usize) -> Result<Self> {
        let part_bytes = page_bytes.min(part_bytes_max);
        let parts = (page_bytes / part_bytes) as u32;
        let all = slots as usize * parts as usize;
        // Sizes are powers of two, so no list crosses a page boundary.
        let entries = prp::list_entries(0, part_bytes);
        let list_bytes = entries.next_power_of_two() * ENTRY_BYTES;
        let pages = bus.allocate((slots as usize * page_bytes).max(PAGE_BYTES))?;
        let lists = bus.allocate((all * list_bytes).max(PAGE_BYTES))?;
        let prp = |n: usize| prp::describe(&pages, (n * part_bytes, part_bytes), (&lists, n * list_bytes));
        let prps = (0..all).map(prp).collect();
        let lent = vec![0; slots as usize].into();
        Ok(Self { pages, _lists: lists, prps, page_bytes, part_bytes, parts, lent })
    }

    /// Bytes that each command of a page moves.
    pub fn part_bytes(&self) -> usize {
        self.part_bytes
    }

    /// Commands that a page takes.
    pub fn parts(&self) -> u32 {
        self.parts
    }

    /// The buffer of a slot that no command names.
    ///
    /// # Panics
    /// If a command does.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let slot = slot as usize;
        assert_eq!(self.lent[slot], 0, "no command names the buffer");
        // SAFETY: no command that names this part of the memory is outstanding, as was just checked.
        unsafe { self.pages.slice_mut(slot * self.page_bytes, self.page_bytes) }
    }

    /// Lends a part of a slot's buffer to a command.
    #[inline]
    pub fn lend(&mut self, slot: u32, part: u32) -> Prp {
        self.lent[slot as usize] += 1;
        self.prps[slot as usize * self.parts as usize + part as usize]
    }

    /// Ends the use of a slot's buffer by one command.
    #[inline]
    pub fn give_back(&mut self, slot: u32) {
        self.lent[slot as usize] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::ControllerModel;
    use super::*;

    #[test]
    fn a_page_takes_as_many_commands_as_the_limit_asks_for() {
        let bus = ControllerModel::default();
        for (page, limit, parts) in [(512, 4096, 1), (4096, 4096, 1), (16384, 4096, 4), (1 << 20, 1 << 17, 8)]
        {
            let mut transfers = Transfers::new(&bus, 3, page, limit).unwrap();
            assert_eq!((transfers.parts(), transfers.part_bytes()), (parts, page.min(limit)));
            let first = transfers.lend(1, 0).first;
            let last = transfers.lend(1, parts - 1).first;
            assert_eq!(last - first, (page - page.min(limit)) as u64);
            transfers.give_back(1);
            transfers.give_back(1);
            assert_eq!(transfers.buffer(1).len(), page);
        }
    }

    #[test]
    #[should_panic(expected = "no command names the buffer")]
    fn a_buffer_that_a_command_names_is_not_lent() {
        let mut transfers = Transfers::new(&ControllerModel::default(), 1, 4096, 4096).unwrap();
        transfers.lend(0, 0);
        transfers.buffer(0);
    }
}
