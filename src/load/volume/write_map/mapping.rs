//! Words of a file, mapped shared: a store outlives the process, however that ends.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

/// Bytes of a word.
pub(super) const WORD_BYTES: u64 = size_of::<AtomicU64>() as u64;

/// Some words of a file.
#[derive(Debug)]
pub(super) struct Words {
    map: MmapRaw,
    count: usize,
}

impl Words {
    /// Maps `count` words from a page of the file on, which has to be that long and to stay so.
    ///
    /// # Errors
    /// Where the kernel can't map it.
    pub fn of(file: &File, offset_bytes: u64, count: usize) -> io::Result<Self> {
        let length = count * size_of::<AtomicU64>();
        if file.metadata()?.len() < offset_bytes + length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let map = MmapOptions::new().offset(offset_bytes).len(length).map_raw(file)?;
        Ok(Self { map, count })
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is that many words long, begins at a page, is readable and writable, and is
        // unmapped only with `self`; whoever else maps the file changes its words as a whole, too.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.count) }
    }
}
