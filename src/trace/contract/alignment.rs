//! Alignment: what lies in a flash block of its own, each page at its own place.
//!
//! The mapping is hybrid: each logical block has a log of its own in flash blocks, to which its pages are appended as
//! they are written (one data block a group, as many log blocks as it takes). Nothing is striped, and nothing is merged
//! before the end.

use super::space::Space;
use crate::trace::io::{Op, TracedIo};

/// The number of a page that is not there.
const NONE: u32 = u32::MAX;

/// Bytes that don't lie where a mapping by blocks wants them, by the block's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unaligned {
    /// The block's size.
    pub block_bytes: u64,
    /// Bytes that are valid at the end.
    pub valid_bytes: u64,
    /// Those in logical blocks whose valid pages do not all lie in one flash block, each at its own place.
    pub unaligned_bytes: u64,
    /// The least that merging copies if each logical block is then mapped as one: where a flash block has the block's
    /// first pages, in order and nothing else, those that lie elsewhere (a partial merge); else all (a full merge). A
    /// drive that merges an older flash block of the same log first can no longer merge in part, and copies more: the
    /// authors' simulator takes them in the order of a hash table.
    pub merged_bytes: u64,
    /// What the application's files hold, if that is known.
    pub file_bytes: Option<u64>,
}

impl Unaligned {
    /// Unaligned bytes by those of the application's files, else by the valid ones; none without any.
    pub fn ratio(&self) -> Option<f64> {
        let whole = self.file_bytes.unwrap_or(self.valid_bytes);
        (whole > 0).then(|| self.unaligned_bytes as f64 / whole as f64)
    }

    /// Ghost data: what is valid on the drive and no file holds any more; none if the files are not known.
    pub fn ghost_bytes(&self) -> Option<u64> {
        self.file_bytes.map(|bytes| self.valid_bytes.saturating_sub(bytes))
    }
}

/// Writes the I/Os, and counts what lies unaligned at the end.
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

/// Of each page its number in its block's log, or `NONE`, and how many pages each log has.
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

/// Of a logical block: pages that are valid, those that are unaligned, and those that merging copies.
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
    // What was appended to that flash block, all of it still valid and in order from its beginning on.
    let holds = u64::from((appended - flash * pages).min(pages));
    [valid, valid, if holds == in_order { valid - in_order } else { valid }]
}
