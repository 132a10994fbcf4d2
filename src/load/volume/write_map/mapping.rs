//! Words of a file, mapped shared: a store outlives the process, however that ends.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

/// Bytes of a word.
pub(super) const WORD_BYTES: u64 = size_of::<AtomicU64>() as u64;

/// A file whose words are mapped.
#[derive(Debug)]
pub(super) struct Store {
    pub file: File,
    /// Whether its words are only read.
    pub read_only: bool,
}

/// Some words of a file.
#[derive(Debug)]
pub(super) struct Words {
    map: MmapRaw,
    count: usize,
}

impl Store {
    /// Maps `count` words from a page boundary of the file on. The file must be long enough, and stay so.
    ///
    /// # Errors
    /// If the file is too short, or the kernel can't map it.
    pub fn words(&self, offset_bytes: u64, count: usize) -> io::Result<Words> {
        let length = count * size_of::<AtomicU64>();
        let end = offset_bytes.checked_add(length as u64);
        if end.is_none_or(|end| end > self.file.metadata().map_or(0, |found| found.len())) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut options = MmapOptions::new();
        let options = options.offset(offset_bytes).len(length);
        let map = if self.read_only {
            options.map_raw_read_only(&self.file)?
        } else {
            options.map_raw(&self.file)?
        };
        Ok(Words { map, count })
    }
}

impl Words {
    /// Prefetches a word that will soon be stored to.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        #[cfg(target_arch = "x86_64")]
        if at < self.count {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let word = self.map.as_ptr().cast::<i8>().wrapping_add(at * size_of::<AtomicU64>());
            // SAFETY: every x86-64 CPU has this instruction; it changes nothing and faults on no address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(word) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        std::hint::black_box(self[at].load(std::sync::atomic::Ordering::Relaxed));
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is that many words long, begins at a page, is readable, and is unmapped only
        // with `self`; other processes that map the file also change whole words only. A read-only mapping is
        // only loaded from (`Store::read_only`).
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.count) }
    }
}
