//! Alignment: which data is in a flash block of its own, with each page at its own place.
//!
//! The mapping is hybrid: each logical block has its own log in flash blocks, to which its pages are appended
//! as they are written (one data block per group, and as many log blocks as it takes). Nothing is striped,
//! and nothing is merged until the end.

use super::space::Space;
use crate::trace::io::{Op, TracedIo};

/// The number of a page that holds nothing.
const NONE: u32 = u32::MAX;

/// Bytes that are not where a block mapping wants them, for one block size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unaligned {
    /// The block size.
    pub block_bytes: u64,
    /// Valid bytes at the end.
    pub valid_bytes: u64,
    /// Valid bytes of logical blocks whose valid pages are not all in one flash block, each at its own place.
    pub unaligned_bytes: u64,
    /// The least that merging copies if each logical block is then mapped as one: if a flash block has the
    /// block's first pages, in order and nothing else, the pages that are elsewhere (a partial merge);
    /// otherwise all (a full merge). A drive that first merges an older flash block of the same log can no
    /// longer merge in part, and copies more: the authors' simulator takes them in the order of a hash table.
    pub merged_bytes: u64,
    /// What the application's files hold, if that is known.
    pub file_bytes: Option<u64>,
}

impl Unaligned {
    /// Unaligned bytes per byte of the application's files, else per valid byte; `None` if there are none.
    pub fn ratio(&self) -> Option<f64> {
        let whole = self.file_bytes.unwrap_or(self.valid_bytes);
        (whole > 0).then(|| self.unaligned_bytes as f64 / whole as f64)
    }

    /// Unaligned bytes per valid byte, which is judged: a trace may begin after most of the files were written. `None`
    /// if nothing is valid.
    pub fn share(&self) -> Option<f64> {
        Self { file_bytes: None, ..*self }.ratio()
    }

    /// Ghost data: valid on the drive, but no longer in any file; `None` if the files are not known.
    pub fn ghost_bytes(&self) -> Option<u64> {
        self.file_bytes.map(|bytes| self.valid_bytes.saturating_sub(bytes))
    }
}

/// Writes the I/Os, and counts what is unaligned at the end.
pub fn unaligned(ios: &[TracedIo], space: &Space, block_bytes: u64, file_bytes: Option<u64>) -> Unaligned {
    // A translation page maps whole blocks, so that a block is one stretch of the table.
    let block_pages = (block_bytes / space.page_bytes) as usize;
    let (numbers, appended) = written(ios, space, block_pages);
    let mut pages = [0; 3];
    for (block, appended) in numbers.chunks(block_pages).zip(&appended) {
        for (sum, counted) in pages.iter_mut().zip(counted(block, *appended)) {
            *sum += counted;
        }
    }
    let [valid_bytes, unaligned_bytes, merged_bytes] = pages.map(|pages| pages * space.page_bytes);
    Unaligned { block_bytes, valid_bytes, unaligned_bytes, merged_bytes, file_bytes }
}

/// For each page, its number in its block's log, or `NONE`; and the length of each log in pages.
fn written(ios: &[TracedIo], space: &Space, block_pages: usize) -> (Vec<u32>, Vec<u32>) {
    let mut numbers = vec![NONE; space.table_len()];
    let mut appended = vec![0_u32; numbers.len() / block_pages];
    for io in ios.iter().filter(|io| matches!(io.op, Op::Write | Op::Discard)) {
        space.parts(io, &mut |part| {
            let Some(place) = part.place else { return };
            for page in place..place + part.pages as usize {
                if io.op == Op::Discard {
                    numbers[page] = NONE;
                    continue;
                }
                let log = &mut appended[page / block_pages];
                numbers[page] = *log;
                *log += 1;
            }
        });
    }
    (numbers, appended)
}

/// Counts a logical block's valid pages, unaligned pages, and pages that merging copies.
fn counted(numbers: &[u32], appended: u32) -> [u64; 3] {
    let pages = numbers.len() as u32;
    let own = || (0_u32..).zip(numbers);
    let valid = numbers.iter().filter(|number| **number != NONE).count() as u64;
    let lies_in = |flash: u32| {
        own().filter(|(page, number)| **number != NONE && **number == flash * pages + page).count() as u64
    };
    let Some(flash) = numbers.iter().filter(|number| **number != NONE).max().map(|number| number / pages)
    else {
        return [0; 3];
    };
    let in_order = lies_in(flash);
    if in_order == valid {
        return [valid, 0, 0];
    }
    // Everything appended to that flash block, if it is all still valid and in order from the block's start.
    let holds = u64::from((appended - flash * pages).min(pages));
    [valid, valid, if holds == in_order { valid - in_order } else { valid }]
}
