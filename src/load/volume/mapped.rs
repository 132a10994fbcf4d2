//! A volume and its write map.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::opened::Volume;
use super::region::Region;
use super::stamp::{SECTOR_BYTES, check};
use super::write_map::WriteMap;
use crate::direct::{AlignedBuffer, reopen};
use crate::error::describe;
use crate::host::Feature;

impl Volume {
    /// Keeps the write map in this file from now on, for pages of these sizes in data and WAL. `boot`
    /// identifies this boot of the machine.
    ///
    /// # Errors
    /// In words, why it can't be kept.
    pub fn keep_map(&mut self, file: File, page_bytes: [u64; 2], boot: &str) -> Result<(), String> {
        let (regions, boot) = ([&self.data, &self.wal], boot_word(boot));
        let kept = WriteMap::keep(file, regions, self.epoch(), boot).and_then(|map| {
            for region in regions {
                map.settle(region, Some(&|extent, at, bytes| self.held(region, extent, at, bytes)))?;
            }
            map.begin(regions, page_bytes, boot)?;
            Ok(Arc::new(map))
        });
        self.map = kept.map_err(|error| describe(&error));
        self.map.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Uses this file as the write map to compare with, if it is the volume's.
    pub fn compare_with(&mut self, file: File, boot: &str) {
        let map = WriteMap::compare(file, [&self.data, &self.wal], self.epoch(), boot_word(boot));
        self.map = map.map(Arc::new);
    }

    /// The write map, if there is one.
    pub fn map(&self) -> Option<Arc<WriteMap>> {
        self.map.as_ref().ok().cloned()
    }

    /// The writes that a stretch's valid sectors came from; `None` if it can't be read.
    fn held(&self, region: &Region, extent: u32, offset_bytes: u64, bytes: u64) -> Option<Vec<u64>> {
        let file = &self.members[region.extents[extent as usize].member as usize].file;
        let direct =
            (self.facts.direct == Feature::Present).then(|| reopen(file, false, true).ok()).flatten();
        // Every device can read this much at once.
        let read_bytes = bytes.max(4096);
        let from = offset_bytes / read_bytes * read_bytes;
        let mut buffer = AlignedBuffer::new(read_bytes as usize);
        direct.as_ref().unwrap_or(file).read_exact_at(buffer.bytes_mut(), from).ok()?;
        let sectors = (from..).step_by(SECTOR_BYTES).zip(buffer.bytes().chunks_exact(SECTOR_BYTES));
        let within = sectors.filter(|(at, _)| (offset_bytes..offset_bytes + bytes).contains(at));
        let stamps = within.filter_map(|(at, sector)| check(sector, region.set, region.id, extent, at).ok());
        let mut held: Vec<u64> = stamps.map(|stamp| stamp.sequence).collect();
        held.sort_unstable();
        held.dedup();
        Some(held)
    }
}

/// The kernel's boot id as a word.
fn boot_word(boot: &str) -> u64 {
    let digits: String = boot.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}
