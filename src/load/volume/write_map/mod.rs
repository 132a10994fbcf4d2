//! The write map: which write each page of a data set should hold, kept by every run that writes.
//!
//! It is a file outside the data set, mapped shared, so that it survives the process. A [`Table`] holds the
//! newest acknowledged write of each page, beside it the writes in flight; workers use [`Tracked`] for both.
//! With it, verification finds pages that are intact and in place, but older than what was acknowledged.
//!
//! The file begins with a page of words: what it belongs to, and where its parts are. A part that no longer fits, such
//! as a table when pages become smaller ([`replace`]), is replaced by one at the end of the file. The run that keeps
//! the map locks it: copies of a data set share one map, and only one of two runs on them keeps it.
//!
//! Words carry a check, because a damaged map must not accuse the storage.

mod cell;
mod mapping;
mod replace;
mod table;
mod tracked;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, ftruncate};
use rustix::io::Errno;

use self::mapping::{Store, WORD_BYTES, Words};
use self::table::{EXACT, Layout, UNSURE};
pub use self::table::{Expected, Table};
pub use self::tracked::Tracked;
use self::tracked::unpacked;
use super::region::Region;
use crate::error::describe;
use crate::units::MIB;

const MAGIC: u64 = u64::from_le_bytes(*b"stwrites");
const VERSION: u64 = 2;
const PAGE_BYTES: u64 = 4096;
/// Words of the first page.
const HEAD: usize = (PAGE_BYTES / WORD_BYTES) as usize;
/// Maximum bytes of the tables of data and WAL: with everything else, a map takes at most 256 MiB.
const TABLE_BYTES_MAX: [u64; 2] = [192 * MIB, 48 * MIB];
/// Maximum outstanding writes of a class: 256 threads of depth 1024.
const SLOTS_MAX: u64 = 256 * 1024;

/// Words of the header. Those that change while the map is kept have a check in their upper bits: all from
/// the epoch on, except the boot id and the shapes of the regions.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
enum Word {
    Magic,
    Version,
    DataSet,
    WalSet,
    /// Epoch of the newest run that kept it.
    Epoch,
    State,
    Boot,
    /// Of the data region: number and bytes of extents, table, slots, and the table that is being replaced.
    Data,
    /// The same for the WAL region.
    Wal = 12,
}

/// A run is writing, or was when it ended; what it stored is durable only once the state changes.
const OPEN: u64 = 1;
const CLOSED: u64 = 2;
/// A run wrote without keeping it.
const VOID: u64 = 3;

const CHECK_SHIFT: u32 = 48;
/// Below this bit, a slots word has the number of pages; above, the page at which they begin.
const SLOTS_SHIFT: u32 = 16;

/// Why a map can't be used: a run did not keep it.
pub const UNKEPT: &str = "a run that could not keep its write map wrote to it";
/// Why a map can't be used: it misses later writes.
pub const OLDER: &str = "its write map is older than the data";
/// Why a map can't be used: it is damaged.
pub const DAMAGED: &str = "its write map is damaged";
/// Why a map can't be used: a table is being replaced.
const HALF_REPLACED: &str =
    "a run was killed while it made its write map anew for smaller pages, which the next run completes";
/// Why a map can't be used: another run keeps it.
const HELD: &str = "another run keeps its write map: one is a copy of the other's data set";

/// A changing word of the header, with its check.
fn checked(word: u64, at: usize) -> u64 {
    let check =
        crc32c::crc32c([word & ((1 << CHECK_SHIFT) - 1), at as u64].map(u64::to_le_bytes).as_flattened());
    (word & ((1 << CHECK_SHIFT) - 1)) | u64::from(check) << CHECK_SHIFT
}

/// A data set's map.
#[derive(Debug)]
pub struct WriteMap {
    store: Store,
    head: Words,
    /// Whether this opened the map for a run, and so must close it.
    keeps: bool,
}

impl WriteMap {
    /// Opens the map of a data set that will be written, or makes a new one if the file's does not match the
    /// data set. `epoch` is the data set's, `boot` identifies this boot of the machine.
    ///
    /// # Errors
    /// If another run keeps it, there is no space for it, or it can't be mapped.
    pub fn keep(file: File, regions: [&Region; 2], epoch: u64, boot: u64) -> io::Result<Self> {
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(io::Error::other(HELD));
        }
        let store = Store { file: file.try_clone()?, read_only: false };
        if let Ok(mut map) = Self::found(store, regions, epoch, boot) {
            map.keeps = true;
            return Ok(map);
        }
        ftruncate(&file, 0)?;
        fallocate(&file, FallocateFlags::empty(), 0, PAGE_BYTES)?;
        let store = Store { file, read_only: false };
        let map = Self { head: store.words(0, HEAD)?, store, keeps: true };
        let words = [MAGIC, VERSION, regions[0].set, regions[1].set];
        map.head.iter().zip(words).for_each(|(at, word)| at.store(word, Ordering::Release));
        for (at, region) in [Word::Data, Word::Wal].into_iter().zip(regions) {
            map.head[at as usize].store(region.extents.len() as u64, Ordering::Release);
            map.head[at as usize + 1].store(region.extent_bytes, Ordering::Release);
        }
        map.set(Word::Epoch as usize, epoch);
        map.head[Word::Boot as usize].store(boot, Ordering::Release);
        map.set(Word::State as usize, CLOSED);
        Ok(map)
    }

    /// Prepares the map for a run that writes pages of these sizes to the regions.
    ///
    /// # Errors
    /// If there is no space, or something can't be mapped.
    pub fn begin(&self, regions: [&Region; 2], page_bytes: [u64; 2], boot: u64) -> io::Result<()> {
        // First of all: if the machine stops while a table is being replaced, parts of it may be lost.
        self.head[Word::Boot as usize].store(boot, Ordering::Release);
        self.set(Word::State as usize, OPEN);
        self.store.file.sync_data()?;
        regions.into_iter().zip(page_bytes).try_for_each(|(region, bytes)| self.prepare(region, bytes))
    }

    /// Opens the map of a data set, to compare the two; the file need not be writable.
    ///
    /// # Errors
    /// In words, why they can't be compared.
    pub fn compare(file: File, regions: [&Region; 2], epoch: u64, boot: u64) -> Result<Self, String> {
        if flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK) {
            return Err(HELD.to_owned());
        }
        let map = Self::found(Store { file, read_only: true }, regions, epoch, boot)?;
        let half = regions.into_iter().any(|region| map.is_half_replaced(region));
        if half { Err(HALF_REPLACED.to_owned()) } else { Ok(map) }
    }

    /// Maps a write map that another process keeps.
    ///
    /// # Errors
    /// If it can't be mapped.
    pub fn join(file: File) -> io::Result<Self> {
        let store = Store { file, read_only: false };
        Ok(Self { head: store.words(0, HEAD)?, store, keeps: false })
    }

    /// The path at which other processes of this user can open the file, while this one has it open.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.store.file.as_raw_fd()))
    }

    /// The map in a file, if it belongs to that data set and knows all that was written to it.
    fn found(store: Store, regions: [&Region; 2], epoch: u64, boot: u64) -> Result<Self, String> {
        let head = store.words(0, HEAD).map_err(|_| "it has no write map".to_owned())?;
        let map = Self { store, head, keeps: false };
        let word = |at: Word| map.head[at as usize].load(Ordering::Acquire);
        let same = |at: Word, region: &Region| {
            let shape = [region.extents.len() as u64, region.extent_bytes];
            shape == [0, 1].map(|n| map.head[at as usize + n].load(Ordering::Acquire))
        };
        if word(Word::Magic) != MAGIC || word(Word::Version) != VERSION {
            return Err("its write map is damaged, or from another version of stacktune".to_owned());
        }
        let [data, wal] = regions;
        let sets = [data.set, wal.set] == [word(Word::DataSet), word(Word::WalSet)];
        if !sets || !same(Word::Data, data) || !same(Word::Wal, wal) {
            return Err("the write map belongs to another data set".to_owned());
        }
        match map.get(Word::State as usize) {
            Some(VOID) => return Err(UNKEPT.to_owned()),
            Some(OPEN) if word(Word::Boot) != boot => {
                return Err(
                    "the machine stopped while a run wrote, and its write map was not durable".to_owned()
                );
            }
            Some(OPEN | CLOSED) => {}
            _ => return Err(DAMAGED.to_owned()),
        }
        match map.get(Word::Epoch as usize) {
            Some(kept) if kept < epoch => return Err(OLDER.to_owned()),
            Some(_) => {}
            None => return Err(DAMAGED.to_owned()),
        }
        // Check that all of it is there.
        let are_whole = regions.into_iter().try_for_each(|region| match map.part(region, 2)? {
            0 => Ok(()),
            _ => map.writes_under_way(region).map(|_| ()),
        });
        match are_whole.map_err(|error| (error.kind(), error)) {
            Ok(()) => Ok(map),
            Err((io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData, _)) => Err(DAMAGED.to_owned()),
            Err((_, error)) => Err(format!("its write map can't be read: {}", describe(&error))),
        }
    }

    /// The epoch of the newest run that kept it.
    pub fn epoch(&self) -> u64 {
        self.get(Word::Epoch as usize).unwrap_or_default()
    }

    /// Records that a run of that epoch begins.
    pub fn set_epoch(&self, epoch: u64) {
        self.set(Word::Epoch as usize, epoch);
    }

    /// Records that a run writes without keeping the map.
    pub fn void(&self) {
        self.set(Word::State as usize, VOID);
    }

    /// Whether a run wrote without keeping the map.
    pub fn is_void(&self) -> bool {
        self.get(Word::State as usize) == Some(VOID)
    }

    fn set(&self, at: usize, word: u64) {
        self.head[at].store(checked(word, at), Ordering::Release);
    }

    /// A changing word of the header; `None` if it is damaged.
    fn get(&self, at: usize) -> Option<u64> {
        let word = self.head[at].load(Ordering::Acquire);
        (word == checked(word, at)).then_some(word & ((1 << CHECK_SHIFT) - 1))
    }

    fn part_at(region: &Region, part: usize) -> usize {
        part + if region.id == Region::WAL { Word::Wal } else { Word::Data } as usize
    }

    /// Where a part of a region is; 0 if there is none yet.
    ///
    /// # Errors
    /// If the header's word is damaged.
    fn part(&self, region: &Region, part: usize) -> io::Result<u64> {
        let at = Self::part_at(region, part);
        if self.head[at].load(Ordering::Acquire) == 0 {
            return Ok(0);
        }
        self.get(at).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// A region's table.
    ///
    /// # Errors
    /// If it can't be mapped.
    pub fn table(&self, region: &Region) -> io::Result<Table> {
        let layout = Layout::decode(self.part(region, 2)?).ok_or(io::ErrorKind::InvalidData)?;
        Table::of(&self.store, layout, region)
    }

    /// Starts to track a class's page writes to a region, none of which may be in flight yet. `outstanding`
    /// is the number of workers and the depth of each.
    ///
    /// # Errors
    /// If there is no space, or something can't be mapped.
    pub fn track(&self, region: &Region, page_bytes: u64, outstanding: (u64, u64)) -> io::Result<Tracked> {
        self.prepare(region, page_bytes)?;
        self.settle(region, None)?;
        let slots = outstanding.0 * outstanding.1;
        if slots > SLOTS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let bytes = (slots * 2 * WORD_BYTES).next_multiple_of(PAGE_BYTES);
        let (at_pages, had_bytes) = self.slots(region)?;
        if had_bytes < bytes {
            let new_pages = self.extend(bytes)?;
            self.set(Self::part_at(region, 3), (new_pages << SLOTS_SHIFT) | (bytes / PAGE_BYTES));
            if had_bytes > 0 {
                self.give_back(at_pages * PAGE_BYTES..at_pages * PAGE_BYTES + had_bytes);
            }
        }
        let slots = self.map_slots(region)?.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Tracked::new(self.table(region)?, slots, page_bytes, outstanding))
    }

    /// Where a region's slots are, in pages of the file, and their bytes.
    fn slots(&self, region: &Region) -> io::Result<(u64, u64)> {
        let word = self.part(region, 3)?;
        Ok((word >> SLOTS_SHIFT, (word & ((1 << SLOTS_SHIFT) - 1)) * PAGE_BYTES))
    }

    fn map_slots(&self, region: &Region) -> io::Result<Option<Words>> {
        let (at_pages, bytes) = self.slots(region)?;
        let words =
            (bytes > 0).then(|| self.store.words(at_pages * PAGE_BYTES, (bytes / WORD_BYTES) as usize));
        words.transpose()
    }

    /// The writes in flight, now or when the process was killed: the words that each covers, and its sequence
    /// number.
    fn writes_under_way(&self, region: &Region) -> io::Result<Vec<(Range<usize>, u64)>> {
        let words = self.table(region)?.len();
        let mut writes = Vec::new();
        for slot in self.map_slots(region)?.iter().flat_map(|words| words.as_chunks::<2>().0) {
            let sequence = slot[1].load(Ordering::Acquire);
            let (first, count) = unpacked(slot[0].load(Ordering::Acquire));
            match first.checked_add(count).filter(|end| *end <= words) {
                _ if sequence == 0 => {}
                Some(end) => writes.push((first..end, sequence)),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(writes)
    }

    /// Sequence numbers of the writes in flight, now or when the process was killed, by word of the table.
    ///
    /// # Errors
    /// If it can't be mapped, or is damaged.
    pub fn under_way(&self, region: &Region) -> io::Result<UnderWay> {
        Ok(by_word(&self.writes_under_way(region)?))
    }

    /// Settles the writes that were in flight when a run ended. `held` says which writes the bytes at a place
    /// of an extent came from; without it, their pages count as unsure.
    ///
    /// # Errors
    /// If something can't be mapped, or is damaged.
    pub fn settle(&self, region: &Region, held: Option<&Held>) -> io::Result<()> {
        if self.part(region, 2)? == 0 {
            return Ok(());
        }
        let writes = self.writes_under_way(region)?;
        let (table, by_word) = (self.table(region)?, by_word(&writes));
        let held = |word: usize| {
            let (extent, offset_bytes) = table.place_of(word);
            held.and_then(|held| held(extent, offset_bytes, table.granule_bytes()))
        };
        for (words, sequence) in writes {
            let is_alone = words.clone().all(|word| by_word[&word].len() == 1);
            let is_mixed = |word| matches!(table.at(word), Expected::Floor(_) | Expected::Unsure);
            let overlapped = words.clone().any(is_mixed);
            let found: Option<Vec<Vec<u64>>> = words.clone().map(held).collect();
            match found {
                None => table.store(words, UNSURE),
                // If part of it arrived, all of it should have: verification will report it as torn.
                Some(found) if is_alone && !overlapped => {
                    if found.iter().flatten().any(|held| *held == sequence) {
                        table.store(words, EXACT | sequence);
                    }
                }
                // Writes that overlapped or failed may be mixed, part by part.
                Some(found) => {
                    for (word, found) in words.zip(found) {
                        match found[..] {
                            [last] if by_word[&word].contains(&last) => {
                                table.store(word..word + 1, EXACT | last);
                            }
                            _ if is_alone => {}
                            _ => table.store(word..word + 1, UNSURE),
                        }
                    }
                }
            }
        }
        let slots = self.map_slots(region)?;
        slots.iter().flat_map(|words| words.iter()).for_each(|word| word.store(0, Ordering::Release));
        Ok(())
    }
}

/// Sequence numbers of the writes in flight, by word of a table.
pub type UnderWay = HashMap<usize, Vec<u64>>;

fn by_word(writes: &[(Range<usize>, u64)]) -> UnderWay {
    let mut by_word = UnderWay::new();
    for (words, sequence) in writes {
        words.clone().for_each(|word| by_word.entry(word).or_default().push(*sequence));
    }
    by_word
}

/// The writes that bytes came from, by extent, offset on its member and length; `None` if unreadable.
pub type Held<'a> = dyn Fn(u32, u64, u64) -> Option<Vec<u64>> + 'a;

impl Drop for WriteMap {
    /// The workers have ended by now: they hold the map, too.
    fn drop(&mut self) {
        // If this fails, the map stays open, and counts only until the machine reboots.
        if self.keeps && self.get(Word::State as usize) == Some(OPEN) && self.store.file.sync_data().is_ok() {
            self.set(Word::State as usize, CLOSED);
            let _ = self.store.file.sync_data();
        }
    }
}

#[cfg(test)]
mod tests;
