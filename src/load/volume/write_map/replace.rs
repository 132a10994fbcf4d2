//! Rebuilds a region's table for smaller pages, and manages the space of the file's parts.
//!
//! The new table is built in stretches, and each stretch of the old one is freed once it is copied, so that
//! the two together take little more space than one. Meanwhile the header names both: if a run is killed, the
//! next one continues. Freed stretches read as zeros, which mean unknown, so nothing is copied twice.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, fallocate, ftruncate};

use super::mapping::WORD_BYTES;
use super::table::{Layout, Table};
use super::{PAGE_BYTES, TABLE_BYTES_MAX, WriteMap};
use crate::load::volume::region::Region;
use crate::units::MIB;

/// Words of the new table that are built at a time.
const STRETCH_WORDS: u64 = 4 * MIB / WORD_BYTES;
/// Parts of a region that say where its table is, and the table that is being replaced.
const TABLE: usize = 2;
const REPLACED: usize = 4;

impl WriteMap {
    /// Makes the region's granules as small as its pages. No write to the region may be in flight.
    pub(super) fn prepare(&self, region: &Region, page_bytes: u64) -> io::Result<()> {
        self.replace(region)?;
        let granule_log2 = page_bytes.ilog2().min(MIB.ilog2());
        let old = Layout::decode(self.part(region, TABLE)?);
        if old.is_some_and(|old| old.granule_log2 <= granule_log2) {
            return Ok(());
        }
        self.settle(region, None)?;
        match old {
            None => {
                let mut new = Self::fitting(region, granule_log2);
                new.at_pages = self.extend(bytes_of(new, region))?;
                self.set(Self::part_at(region, TABLE), new.encode());
                Ok(())
            }
            Some(old) => {
                self.announce(region, old, granule_log2)?;
                self.replace(region)
            }
        }
    }

    fn fitting(region: &Region, granule_log2: u32) -> Layout {
        Layout::fitting(region, granule_log2, TABLE_BYTES_MAX[usize::from(region.id)])
    }

    /// Names the table that will replace this one, at the end of the file, where it takes no space yet.
    fn announce(&self, region: &Region, old: Layout, granule_log2: u32) -> io::Result<()> {
        let mut new = Self::fitting(region, granule_log2);
        let at = self.store.file.metadata()?.len().next_multiple_of(PAGE_BYTES);
        new.at_pages = at / PAGE_BYTES;
        ftruncate(&self.store.file, at + bytes_of(new, region).next_multiple_of(PAGE_BYTES))?;
        // In this order, so that the header never names a new table without the old one.
        self.set(Self::part_at(region, REPLACED), old.encode());
        self.set(Self::part_at(region, TABLE), new.encode());
        Ok(())
    }

    /// Whether a run was killed while it replaced the region's table; false if the header's word is damaged.
    pub(super) fn is_half_replaced(&self, region: &Region) -> bool {
        self.part(region, REPLACED).is_ok_and(|word| word > 0)
    }

    /// Replaces the table that is marked for it, or what is left of it.
    fn replace(&self, region: &Region) -> io::Result<()> {
        let Some(old) = Layout::decode(self.part(region, REPLACED)?) else { return Ok(()) };
        let new = Layout::decode(self.part(region, TABLE)?).ok_or(io::ErrorKind::InvalidData)?;
        // They are equal after a kill between the two stores: the old table is still in use.
        if old != new {
            for (extent, stretch) in stretches(region, old, new) {
                self.replace_stretch(region, (old, new), extent, &stretch)?;
            }
            // Even an empty region's table has one word.
            self.allocate(bytes_at(new, region))?;
            self.give_back(bytes_at(old, region));
        }
        self.head[Self::part_at(region, REPLACED)].store(0, Ordering::Release);
        Ok(())
    }

    /// Copies a stretch of an extent into the new table, and frees it in the old one.
    fn replace_stretch(
        &self,
        region: &Region,
        (old, new): (Layout, Layout),
        extent: u32,
        stretch: &Range<u64>,
    ) -> io::Result<()> {
        let (old, new) = (Table::of(&self.store, old, region)?, Table::of(&self.store, new, region)?);
        self.allocate(new.bytes_within(extent, stretch))?;
        new.take_over(&old, extent, stretch)?;
        self.give_back(old.bytes_within(extent, stretch));
        Ok(())
    }

    /// Extends the file, and returns the page at which the new part begins. Its blocks are allocated, so that
    /// a full disk shows here and not when a worker stores to it.
    pub(super) fn extend(&self, bytes: u64) -> io::Result<u64> {
        let at = self.store.file.metadata()?.len().next_multiple_of(PAGE_BYTES);
        self.allocate(at..at + bytes.next_multiple_of(PAGE_BYTES))?;
        Ok(at / PAGE_BYTES)
    }

    fn allocate(&self, bytes: Range<u64>) -> io::Result<()> {
        fallocate(&self.store.file, FallocateFlags::empty(), bytes.start, bytes.end - bytes.start)?;
        Ok(())
    }

    /// Frees the space of an earlier part; best effort.
    pub(super) fn give_back(&self, bytes: Range<u64>) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.store.file, flags, bytes.start, bytes.end - bytes.start);
    }
}

fn bytes_of(layout: Layout, region: &Region) -> u64 {
    layout.words(region).max(1) * WORD_BYTES
}

/// Where a table is in the file.
fn bytes_at(layout: Layout, region: &Region) -> Range<u64> {
    let at = layout.at_pages * PAGE_BYTES;
    at..at + bytes_of(layout, region).next_multiple_of(PAGE_BYTES)
}

/// Splits the region's extents into stretches, each of whole words of both tables.
fn stretches(region: &Region, old: Layout, new: Layout) -> impl Iterator<Item = (u32, Range<u64>)> {
    let word_bytes = |layout: Layout| 1_u128 << (layout.granule_log2 + layout.sample_log2);
    let step = (u128::from(STRETCH_WORDS) * word_bytes(new)).max(word_bytes(old));
    let extent_bytes = region.extent_bytes;
    let step = step.min(u128::from(extent_bytes.max(1))) as u64;
    (0..region.extents.len() as u32).flat_map(move |extent| {
        let starts = (0..extent_bytes).step_by(step as usize);
        starts.map(move |start| (extent, start..(start + step).min(extent_bytes)))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::AtomicBool;

    use super::super::table::Expected;
    use super::super::tests::{BOOT, EPOCH, after_kill, file, kept, killed, region, regions};
    use super::*;

    #[test]
    fn a_table_takes_no_more_room_while_it_is_made_anew_for_smaller_pages() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        // The WAL's table is as large as it gets, before and after.
        let regions = [region(Region::DATA, 2, 4), region(Region::WAL, 1, 384 << 10)];
        let map = kept(dir.path(), &regions, 64 << 10);
        let file = file(dir.path());
        let room = || file.metadata().unwrap().blocks() * 512;
        let before = room();
        assert!((48 * MIB..50 * MIB).contains(&before), "{before}");
        let written = (regions[1].extents[0].offset_bytes, 64 * MIB);
        map.table(&regions[1]).unwrap().filled(0, written.0, written.1, 77);
        let done = AtomicBool::new(false);
        let most = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut most = 0;
                while !done.load(Ordering::Acquire) {
                    most = room().max(most);
                }
                most
            });
            let prepared = map.prepare(&regions[1], 4096);
            done.store(true, Ordering::Release);
            prepared.unwrap();
            watch.join().unwrap()
        });
        assert!(most <= before + 8 * MIB, "{most} B, and {before} B before");
        assert!(room() < 50 * MIB, "{}", room());
        let table = map.table(&regions[1]).unwrap();
        assert_eq!((table.granule_bytes(), table.share()), (4096, 1.0 / 16.0));
        let pages = (written.0..written.0 + written.1).step_by(4096);
        let known = pages.map(|at| table.expected(0, at).0).filter(|held| *held != Expected::Unknown);
        assert_eq!(known.collect::<Vec<_>>(), vec![Expected::Exact(77); 1024]);
    }

    #[test]
    fn a_kill_while_a_table_is_made_anew_loses_nothing() {
        // Killed before, between and after the stretches of two extents.
        for taken_over in 0..=2 {
            let dir = tempfile::tempdir_in("/var/tmp").unwrap();
            let regions = regions();
            let data = &regions[0];
            let map = kept(dir.path(), &regions, 64 << 10);
            let at = data.extents[0].offset_bytes;
            let before = map.table(data).unwrap();
            (0..2).for_each(|extent| before.filled(extent, at, data.extent_bytes, 70 + u64::from(extent)));
            drop(before);
            let old = Layout::decode(map.part(data, TABLE).unwrap()).unwrap();
            map.announce(data, old, 12).unwrap();
            let new = Layout::decode(map.part(data, TABLE).unwrap()).unwrap();
            let all: Vec<_> = stretches(data, old, new).collect();
            assert_eq!(all.len(), 2);
            for (extent, stretch) in &all[..taken_over] {
                map.replace_stretch(data, (old, new), *extent, stretch).unwrap();
            }
            killed(dir.path());
            drop(map);
            let compared = WriteMap::compare(after_kill(dir.path()), regions.each_ref(), EPOCH, BOOT);
            let why = compared.map(|_| ()).unwrap_err();
            assert!(why.contains("killed while it made its write map anew"), "{why}");
            // The next run may write larger pages again.
            drop(kept(dir.path(), &regions, 64 << 10));
            let map = WriteMap::compare(after_kill(dir.path()), regions.each_ref(), EPOCH, BOOT).unwrap();
            let table = map.table(data).unwrap();
            for (extent, sequence) in [(0, 70), (1, 71)] {
                let mut pages = (at..at + data.extent_bytes).step_by(4096);
                let held = |at| table.expected(extent, at).0 == Expected::Exact(sequence);
                assert!(pages.all(held), "killed after {taken_over}: {extent}");
            }
        }
    }
}
