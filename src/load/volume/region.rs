//! A region: extents of members, over which pages are striped.
//!
//! Page `n` of a region is on member `n mod M`, at position `n div M` (Haas et al. 2020, Table 5, row 7).
//! All extents of a region have the same length, a multiple of 1 MiB, so every page size covers the same
//! bytes.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The identity of a file or device, whatever its path may later lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Device and inode of a file; `None` for a block device, whose node may be recreated.
    file: Option<(u64, u64)>,
    /// The number of a block device.
    device: Option<u64>,
}

impl Identity {
    /// The identity of an open file or device.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|found| Self::found(&found))
    }

    /// The identity of whatever is at a path now.
    pub fn at(path: &Path) -> io::Result<Self> {
        path.metadata().map(|found| Self::found(&found))
    }

    fn found(found: &Metadata) -> Self {
        let device = found.file_type().is_block_device().then(|| found.rdev());
        Self { file: device.is_none().then(|| (found.dev(), found.ino())), device }
    }
}

/// A part of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The file or device.
    pub path: PathBuf,
    /// The file or device found at the path when the target was opened; a replacement is not touched. `None`
    /// if there was none.
    pub identity: Option<Identity>,
    /// The member's index in [`crate::meter::window::Window::members`].
    pub member: u32,
    /// Where the extent begins on the member.
    pub offset_bytes: u64,
}

/// Equally long extents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The id of the region in the set: 0 is data, 1 is the WAL.
    pub id: u8,
    /// The set in the stamps of this region's pages.
    pub set: u64,
    /// The extents.
    pub extents: Vec<Extent>,
    /// Bytes of each extent, a multiple of 1 MiB.
    pub extent_bytes: u64,
}

impl Region {
    /// The data region's id.
    pub const DATA: u8 = 0;
    /// The WAL region's id.
    pub const WAL: u8 = 1;

    /// Bytes of the region.
    pub fn bytes(&self) -> u64 {
        self.extent_bytes * self.extents.len() as u64
    }

    /// The number of pages of that size.
    pub fn pages(&self, page_bytes: u64) -> u64 {
        self.bytes() / page_bytes
    }

    /// Where a page is: the extent's index, and the offset on its member.
    #[inline]
    pub fn place(&self, page: u64, page_bytes: u64) -> (usize, u64) {
        let members = self.extents.len() as u64;
        let index = (page % members) as usize;
        (index, self.extents[index].offset_bytes + page / members * page_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_page_size_covers_the_same_bytes() {
        let extents = (0..3).map(|member| Extent {
            path: PathBuf::new(),
            identity: None,
            member,
            offset_bytes: 1 << 20,
        });
        let region = Region { id: 0, set: 0, extents: extents.collect(), extent_bytes: 2 << 20 };
        for page_bytes in [512, 4096, 1 << 20] {
            let places: HashSet<_> =
                (0..region.pages(page_bytes)).map(|page| region.place(page, page_bytes)).collect();
            assert_eq!(places.len() as u64 * page_bytes, region.bytes());
            assert!(places.iter().all(|(_, at)| (1 << 20..=(3 << 20) - page_bytes).contains(at)));
        }
    }
}
