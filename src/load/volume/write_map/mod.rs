//! The write map: which write each page of a data set should hold, kept by every run that writes.
//!
//! Enters: writes as they begin and as they are acknowledged. Leaves: the write that each page should hold.
//!
//! It is a file outside the data set, mapped shared, so that it survives the process. A page's newest
//! acknowledged write is in a [`Table`], what is under way beside it; [`Tracked`] is what workers see of them.
//! From it, verification knows a page that is whole and in its place, but older than what was acknowledged.
//!
//! The file begins with a page of words: what it is of, and where its parts are. A part that no longer fits,
//! such as a table when pages become smaller, is replaced by one at the end of the file.

mod mapping;
mod table;
mod tracked;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, fallocate, ftruncate};

use self::mapping::{WORD_BYTES, Words};
pub use self::table::{Expected, Table};
use self::table::{Layout, UNSURE};
pub use self::tracked::Tracked;
use self::tracked::unpacked;
use super::region::Region;
use crate::units::MIB;

const MAGIC: u64 = u64::from_le_bytes(*b"stwrites");
const VERSION: u64 = 1;
const PAGE_BYTES: u64 = 4096;
/// Words of the first page.
const HEAD: usize = (PAGE_BYTES / WORD_BYTES) as usize;
/// What the tables of the data and of the WAL may take: with everything else, a map has 256 MiB.
const TABLE_BYTES_MAX: [u64; 2] = [192 * MIB, 48 * MIB];
/// Outstanding writes of a class, at most: 256 threads of depth 1024.
const SLOTS_MAX: u64 = 256 * 1024;

/// Words of the header.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
enum Word {
    Magic,
    Version,
    DataSet,
    WalSet,
    /// Of the newest run that kept it.
    Epoch,
    State,
    Boot,
    /// Extents, their bytes, table and slots of the data region.
    Data,
    /// The same of the WAL region.
    Wal = 12,
}

/// A run writes, or did when it ended; what it stored is durable only once the state is another.
const OPEN: u64 = 1;
const CLOSED: u64 = 2;
/// A run wrote without keeping it.
const VOID: u64 = 3;

const DAMAGED: &str = "its write map is damaged";

/// Why a map says nothing that a run did not keep.
pub const UNKEPT: &str = "a run wrote to it that could not keep its write map";

/// A data set's map.
#[derive(Debug)]
pub struct WriteMap {
    file: File,
    head: Words,
    /// Whether this opened it for a run, and closes it.
    keeps: bool,
}

impl WriteMap {
    /// Opens the map of a data set that is to be written, or makes a new one where it is not of this data set as
    /// it is. `epoch` is of the data set, `boot` says which start of the machine this is.
    ///
    /// # Errors
    /// Where there is no room for it, or it can't be mapped.
    pub fn keep(file: File, regions: [&Region; 2], epoch: u64, boot: u64) -> io::Result<Self> {
        if Self::found(&file, regions, epoch, boot).is_err() {
            ftruncate(&file, 0)?;
            fallocate(&file, FallocateFlags::empty(), 0, PAGE_BYTES)?;
            let head = Words::of(&file, 0, HEAD)?;
            let words = [MAGIC, VERSION, regions[0].set, regions[1].set, epoch, CLOSED, boot];
            head.iter().zip(words).for_each(|(at, word)| at.store(word, Ordering::Release));
            for (at, region) in [Word::Data, Word::Wal].into_iter().zip(regions) {
                head[at as usize].store(region.extents.len() as u64, Ordering::Release);
                head[at as usize + 1].store(region.extent_bytes, Ordering::Release);
            }
        }
        let head = Words::of(&file, 0, HEAD)?;
        Ok(Self { file, head, keeps: true })
    }

    /// A run begins to write pages of these sizes to the regions.
    ///
    /// # Errors
    /// Where there is no room, or something can't be mapped.
    pub fn begin(&self, regions: [&Region; 2], page_bytes: [u64; 2], boot: u64) -> io::Result<()> {
        for (region, page_bytes) in regions.into_iter().zip(page_bytes) {
            self.prepare(region, page_bytes)?;
        }
        self.set(Word::Boot, boot);
        self.set(Word::State, OPEN);
        self.file.sync_data()
    }

    /// Opens the map of a data set, to compare the two.
    ///
    /// # Errors
    /// In words, why they can't be compared.
    pub fn compare(file: File, regions: [&Region; 2], epoch: u64, boot: u64) -> Result<Self, String> {
        Self::found(&file, regions, epoch, boot)?;
        Self::join(file).map_err(|error| format!("its write map can't be read: {error}"))
    }

    /// Maps one that another process keeps.
    ///
    /// # Errors
    /// Where it can't be mapped.
    pub fn join(file: File) -> io::Result<Self> {
        let head = Words::of(&file, 0, HEAD)?;
        Ok(Self { file, head, keeps: false })
    }

    /// Where another process of this user finds the file while this one has it open.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// Whether the file is the map of that data set, and knows all that was written to it.
    fn found(file: &File, regions: [&Region; 2], epoch: u64, boot: u64) -> Result<(), String> {
        let head = Words::of(file, 0, HEAD).map_err(|_| "it has no write map".to_owned())?;
        let word = |at: Word| head[at as usize].load(Ordering::Acquire);
        let same = |at: Word, region: &Region| {
            let shape = [region.extents.len() as u64, region.extent_bytes];
            shape == [0, 1].map(|n| head[at as usize + n].load(Ordering::Acquire))
        };
        if word(Word::Magic) != MAGIC || word(Word::Version) != VERSION {
            return Err("its write map is damaged, or of another version of stacktune".to_owned());
        }
        let [data, wal] = regions;
        let sets = [data.set, wal.set] == [word(Word::DataSet), word(Word::WalSet)];
        if !sets || !same(Word::Data, data) || !same(Word::Wal, wal) {
            return Err("the write map is of another data set".to_owned());
        }
        match word(Word::State) {
            VOID => Err(UNKEPT.to_owned()),
            OPEN if word(Word::Boot) != boot => {
                Err("the machine stopped while a run wrote, and its write map was not durable".to_owned())
            }
            OPEN | CLOSED if word(Word::Epoch) < epoch => {
                Err("its write map is older than the data".to_owned())
            }
            OPEN | CLOSED => {
                let map = file.try_clone().and_then(Self::join);
                let whole = map.is_ok_and(|map| regions.into_iter().all(|region| map.is_whole(region)));
                if whole { Ok(()) } else { Err(DAMAGED.to_owned()) }
            }
            _ => Err(DAMAGED.to_owned()),
        }
    }

    /// Whether a region's table, and what was under way, are such as a run leaves.
    fn is_whole(&self, region: &Region) -> bool {
        self.part(region, 2).load(Ordering::Acquire) == 0 && self.slots(region).1 == 0
            || self.table(region).is_ok() && self.under_way(region).is_ok()
    }

    /// The epoch of the newest run that kept it.
    pub fn epoch(&self) -> u64 {
        self.head[Word::Epoch as usize].load(Ordering::Acquire)
    }

    /// A run of that epoch begins.
    pub fn set_epoch(&self, epoch: u64) {
        self.set(Word::Epoch, epoch);
    }

    /// A run writes that can't keep it.
    pub fn void(&self) {
        self.set(Word::State, VOID);
    }

    /// Whether a run wrote that could not keep it.
    pub fn is_void(&self) -> bool {
        self.head[Word::State as usize].load(Ordering::Acquire) == VOID
    }

    fn set(&self, at: Word, word: u64) {
        self.head[at as usize].store(word, Ordering::Release);
    }

    fn part(&self, region: &Region, part: usize) -> &std::sync::atomic::AtomicU64 {
        let at = if region.id == Region::WAL { Word::Wal } else { Word::Data };
        &self.head[at as usize + part]
    }

    /// A region's table.
    ///
    /// # Errors
    /// Where it can't be mapped.
    pub fn table(&self, region: &Region) -> io::Result<Table> {
        let layout = Layout::decode(self.part(region, 2).load(Ordering::Acquire));
        Table::of(&self.file, layout.ok_or(io::ErrorKind::InvalidData)?, region)
    }

    /// Sees to it that the region's granules are as small as its pages. None of its pages is under way.
    fn prepare(&self, region: &Region, page_bytes: u64) -> io::Result<()> {
        let granule_log2 = page_bytes.ilog2().min(MIB.ilog2());
        let old = Layout::decode(self.part(region, 2).load(Ordering::Acquire));
        if old.is_some_and(|old| old.granule_log2 <= granule_log2) {
            return Ok(());
        }
        self.settle(region, None)?;
        let bytes_max = TABLE_BYTES_MAX[usize::from(region.id)];
        let mut layout = Layout::fitting(region, granule_log2, bytes_max);
        layout.at_pages = self.extend(layout.words(region).max(1) * WORD_BYTES)?;
        if let Some(old) = old {
            Table::of(&self.file, layout, region)?.take_over(&Table::of(&self.file, old, region)?, region);
        }
        self.part(region, 2).store(layout.encode(), Ordering::Release);
        if let Some(old) = old {
            self.give_back(old.at_pages, old.words(region) * WORD_BYTES);
        }
        Ok(())
    }

    /// Makes the file longer, and returns the page at which the new part begins. Its blocks are allocated: a
    /// full disk is found here, and not when a worker stores to it.
    fn extend(&self, bytes: u64) -> io::Result<u64> {
        let at = self.file.metadata()?.len().next_multiple_of(PAGE_BYTES);
        fallocate(&self.file, FallocateFlags::empty(), at, bytes.next_multiple_of(PAGE_BYTES))?;
        Ok(at / PAGE_BYTES)
    }

    /// Gives the space of an earlier part back; best effort.
    fn give_back(&self, at_pages: u64, bytes: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.file, flags, at_pages * PAGE_BYTES, bytes.next_multiple_of(PAGE_BYTES));
    }

    /// Begins to track a class's writes of pages to a region, none of which is under way. `outstanding` is its
    /// workers, and the depth of each.
    ///
    /// # Errors
    /// Where there is no room, or something can't be mapped.
    pub fn track(&self, region: &Region, page_bytes: u64, outstanding: (u64, u64)) -> io::Result<Tracked> {
        self.prepare(region, page_bytes)?;
        self.settle(region, None)?;
        let slots = outstanding.0 * outstanding.1;
        if slots > SLOTS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let bytes = (slots * 2 * WORD_BYTES).next_multiple_of(PAGE_BYTES);
        let (at_pages, had_bytes) = self.slots(region);
        if had_bytes < bytes {
            let new_pages = self.extend(bytes)?;
            self.part(region, 3).store(new_pages << 32 | bytes, Ordering::Release);
            if had_bytes > 0 {
                self.give_back(at_pages, had_bytes);
            }
        }
        let slots = self.map_slots(region)?.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Tracked::new(self.table(region)?, slots, page_bytes, outstanding))
    }

    /// Where a region's slots are, in pages of the file, and their bytes.
    fn slots(&self, region: &Region) -> (u64, u64) {
        let word = self.part(region, 3).load(Ordering::Acquire);
        (word >> 32, word & u64::from(u32::MAX))
    }

    fn map_slots(&self, region: &Region) -> io::Result<Option<Words>> {
        let (at_pages, bytes) = self.slots(region);
        let words =
            (bytes > 0).then(|| Words::of(&self.file, at_pages * PAGE_BYTES, (bytes / WORD_BYTES) as usize));
        words.transpose()
    }

    /// What is under way, or was when the process was killed: by word of the table, the sequence numbers.
    ///
    /// # Errors
    /// Where it can't be mapped, or names what is not in the table.
    pub fn under_way(&self, region: &Region) -> io::Result<HashMap<usize, Vec<u64>>> {
        let mut under_way: HashMap<usize, Vec<u64>> = HashMap::new();
        let layout = Layout::decode(self.part(region, 2).load(Ordering::Acquire));
        let words = layout.map_or(0, |layout| layout.words(region)) as usize;
        for slot in self.map_slots(region)?.iter().flat_map(|words| words.as_chunks::<2>().0) {
            let sequence = slot[1].load(Ordering::Acquire);
            if sequence == 0 {
                continue;
            }
            let (first, count) = unpacked(slot[0].load(Ordering::Acquire));
            if words.checked_sub(first).is_none_or(|left| left < count) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            for word in first..first + count {
                under_way.entry(word).or_default().push(sequence);
            }
        }
        Ok(under_way)
    }

    /// Settles what was under way when a run ended. `held` says which write the bytes at that place of an extent
    /// are of, if all of them are of the same; without it, nothing more is known of them.
    ///
    /// # Errors
    /// Where something can't be mapped.
    pub fn settle(&self, region: &Region, held: Option<&Held>) -> io::Result<()> {
        let under_way = self.under_way(region)?;
        if under_way.is_empty() {
            return Ok(());
        }
        let table = self.table(region)?;
        for (word, sequences) in under_way {
            let (extent, offset_bytes) = table.place_of(word);
            match held.map(|held| held(extent, offset_bytes, table.granule_bytes())) {
                Some(Some(held)) if sequences.contains(&held) => table.filled(extent, offset_bytes, 1, held),
                // What was there before, or neither: verification says which.
                Some(_) if sequences.len() == 1 => {}
                _ => table.store(word..word + 1, UNSURE),
            }
        }
        let slots = self.map_slots(region)?;
        slots.iter().flat_map(|words| words.iter()).for_each(|word| word.store(0, Ordering::Release));
        Ok(())
    }
}

/// Which write the bytes from an offset on of an extent's member are of.
pub type Held<'a> = dyn Fn(u32, u64, u64) -> Option<u64> + 'a;

impl Drop for WriteMap {
    /// Its workers have ended: they hold it.
    fn drop(&mut self) {
        let open = self.head[Word::State as usize].load(Ordering::Acquire) == OPEN;
        // Otherwise it stays open, and counts only until the machine stops.
        if self.keeps && open && self.file.sync_data().is_ok() {
            self.set(Word::State, CLOSED);
            let _ = self.file.sync_data();
        }
    }
}

#[cfg(test)]
mod tests;
