//! What a region's pages should hold: one word per granule, the size of the smallest pages written.
//!
//! A word is 0 while nothing is known. Otherwise its top two bits give the meaning of the number in the low bits:
//!
//! | top bits | the granule holds |
//! |---|---|
//! | 1 | exactly that write |
//! | 2 | one of several writes that overlapped, any of which may be last: none older than that one |
//! | 3 | anything, because a write to it failed |
//!
//! The six bits between are a check of the others and of the word's place, modulo 63. It detects any single
//! flipped bit, and a block of the file that holds another block's words.
//!
//! If there are too many granules, one of every 2^n neighbours is kept, chosen by a hash of their place.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::mapping::{Store, WORD_BYTES, Words};
use crate::load::volume::region::Region;
use crate::load::volume::stamp::SEQUENCE_BITS;

const SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;
const KIND_SHIFT: u32 = 62;
pub(super) const EXACT: u64 = 1 << KIND_SHIFT;
pub(super) const FLOOR: u64 = 2 << KIND_SHIFT;
pub(super) const UNSURE: u64 = 3 << KIND_SHIFT;
const CHECKED: u64 = !(63 << SEQUENCE_BITS);
const PAGE_LOG2: u32 = 12;
const GRANULE_LOG2: std::ops::RangeInclusive<u32> = 9..=20;
const SAMPLE_LOG2_MAX: u32 = 48;

/// A word with its check, for that place.
#[inline]
fn checked(word: u64, at: usize) -> u64 {
    let number = (word & SEQUENCE) | word >> KIND_SHIFT << SEQUENCE_BITS;
    (word & CHECKED) | (((number + 5 * at as u64) % 63) << SEQUENCE_BITS)
}

/// What a granule should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Unknown: nothing wrote it since the map began, or it is not in the sample.
    Unknown,
    /// The write with that sequence number.
    Exact(u64),
    /// One or several of the writes that overlapped, the oldest of which has that sequence number.
    Floor(u64),
    /// Any version of this page, because a write failed.
    Unsure,
    /// Unknown, because the map's word for it is damaged.
    Damaged,
}

impl Expected {
    /// What a word at that index says.
    fn said(word: u64, at: usize) -> Self {
        match word >> KIND_SHIFT << KIND_SHIFT {
            _ if word == 0 => Self::Unknown,
            _ if word != checked(word, at) => Self::Damaged,
            EXACT => Self::Exact(word & SEQUENCE),
            FLOOR => Self::Floor(word & SEQUENCE),
            UNSURE => Self::Unsure,
            _ => Self::Damaged,
        }
    }

    /// The oldest write that is allowed; 0 if unknown.
    fn floor(self) -> u64 {
        match self {
            Self::Exact(sequence) | Self::Floor(sequence) => sequence,
            Self::Unknown | Self::Unsure | Self::Damaged => 0,
        }
    }
}

/// Where a region's table is in the file, and how it is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Where it begins, in pages of the file.
    pub at_pages: u64,
    /// The granule's bytes, as a power of two.
    pub granule_log2: u32,
    /// One of this many neighbours is kept, as a power of two.
    pub sample_log2: u32,
}

impl Layout {
    /// The finest sample with that granule whose table takes at most `bytes_max`.
    pub fn fitting(region: &Region, granule_log2: u32, bytes_max: u64) -> Self {
        let fits = |sample_log2: &u32| {
            let layout = Self { at_pages: 0, granule_log2, sample_log2: *sample_log2 };
            layout.words(region) * WORD_BYTES <= bytes_max
        };
        let sample_log2 = (0..SAMPLE_LOG2_MAX).find(fits).unwrap_or(SAMPLE_LOG2_MAX);
        Self { at_pages: 0, granule_log2, sample_log2 }
    }

    /// Words of each extent.
    fn words_per_extent(self, region: &Region) -> u64 {
        (region.extent_bytes >> self.granule_log2).div_ceil(1 << self.sample_log2)
    }

    /// Words of the table.
    pub fn words(self, region: &Region) -> u64 {
        self.words_per_extent(region) * region.extents.len() as u64
    }

    /// Encodes it in a word; never 0, as the header comes first.
    pub fn encode(self) -> u64 {
        self.at_pages << 16 | u64::from(self.granule_log2) << 8 | u64::from(self.sample_log2)
    }

    /// Decodes such a word; `None` for 0 and other impossible ones.
    pub fn decode(word: u64) -> Option<Self> {
        let byte = |shift: u32| (word >> shift) as u32 & 0xff;
        let layout = Self { at_pages: word >> 16, granule_log2: byte(8), sample_log2: byte(0) };
        let is_sound = GRANULE_LOG2.contains(&layout.granule_log2) && layout.sample_log2 <= SAMPLE_LOG2_MAX;
        is_sound.then_some(layout)
    }
}

/// A region's table, mapped.
#[derive(Debug)]
pub struct Table {
    words: Words,
    layout: Layout,
    per_extent: u64,
    /// Where each extent begins on its member.
    offsets: Box<[u64]>,
}

impl Table {
    pub(super) fn of(store: &Store, layout: Layout, region: &Region) -> io::Result<Self> {
        let words = store.words(layout.at_pages << PAGE_LOG2, layout.words(region).max(1) as usize)?;
        let offsets = region.extents.iter().map(|extent| extent.offset_bytes).collect();
        Ok(Self { words, layout, per_extent: layout.words_per_extent(region), offsets })
    }

    /// Bytes of a granule.
    pub fn granule_bytes(&self) -> u64 {
        1 << self.layout.granule_log2
    }

    /// The share of the granules that are kept.
    pub fn share(&self) -> f64 {
        0.5_f64.powi(self.layout.sample_log2 as i32)
    }

    /// The words of a page, which must be aligned to its own size.
    #[inline]
    pub(super) fn words_of(&self, extent: u32, offset_bytes: u64, granules_log2: u32) -> Range<usize> {
        let Layout { granule_log2, sample_log2, .. } = self.layout;
        let first = (offset_bytes - self.offsets[extent as usize]) >> granule_log2;
        let begin = u64::from(extent) * self.per_extent + (first >> sample_log2);
        let count = if granules_log2 >= sample_log2 {
            1 << (granules_log2 - sample_log2)
        } else {
            let kept = self.drawn(begin) >> granules_log2;
            u64::from(kept == (first & ((1 << sample_log2) - 1)) >> granules_log2)
        };
        begin as usize..(begin + count) as usize
    }

    /// Which of its neighbours a word stands for.
    #[inline]
    fn drawn(&self, word: u64) -> u64 {
        let mixed = (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) & ((1 << self.layout.sample_log2) - 1)
    }

    /// Where the granule of a word is: the extent, and the offset on its member.
    pub(super) fn place_of(&self, word: usize) -> (u32, u64) {
        let Layout { granule_log2, sample_log2, .. } = self.layout;
        let (extent, within) = (word as u64 / self.per_extent, word as u64 % self.per_extent);
        let granule = (within << sample_log2) | self.drawn(word as u64);
        (extent as u32, self.offsets[extent as usize] + (granule << granule_log2))
    }

    /// What the granule at an offset of the extent's member should hold, and its word if the granule is kept.
    pub fn expected(&self, extent: u32, offset_bytes: u64) -> (Expected, Option<usize>) {
        let Some(at) = self.words_of(extent, offset_bytes, 0).next() else {
            return (Expected::Unknown, None);
        };
        (self.at(at), Some(at))
    }

    /// What the granule of a word should hold.
    pub(super) fn at(&self, at: usize) -> Expected {
        Expected::said(self.words[at].load(Ordering::Acquire), at)
    }

    /// How many words it has.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    #[inline]
    pub(super) fn fetch(&self, word: usize) {
        self.words.prefetch(word);
    }

    #[inline]
    pub(super) fn store(&self, words: Range<usize>, word: u64) {
        for at in words {
            self.words[at].store(checked(word, at), Ordering::Release);
        }
    }

    /// The oldest write that a word at that index allows; 0 if unknown.
    pub(super) fn floor(word: u64, at: usize) -> u64 {
        Expected::said(word, at).floor()
    }

    /// Changes a word atomically; `alone` if no other thread can change it at the same time.
    #[inline]
    pub(super) fn change(&self, at: usize, alone: bool, to: impl Fn(u64) -> u64) {
        let word = &self.words[at];
        let mut was = word.load(Ordering::Acquire);
        loop {
            let new = checked(to(was), at);
            if alone {
                return word.store(new, Ordering::Release);
            }
            match word.compare_exchange_weak(was, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => was = now,
            }
        }
    }

    /// Forgets what is known of a stretch of an extent, because it is about to be filled.
    pub fn forget(&self, extent: u32, offset_bytes: u64, bytes: u64) {
        for words in self.granules_of(extent, offset_bytes, bytes) {
            words.for_each(|at| self.words[at].store(0, Ordering::Release));
        }
    }

    /// Records that one write filled a stretch of an extent.
    pub fn filled(&self, extent: u32, offset_bytes: u64, bytes: u64, sequence: u64) {
        for words in self.granules_of(extent, offset_bytes, bytes) {
            self.store(words, EXACT | sequence);
        }
    }

    /// The words of the granules of a stretch.
    fn granules_of(&self, extent: u32, offset_bytes: u64, bytes: u64) -> impl Iterator<Item = Range<usize>> {
        let granules = (offset_bytes..offset_bytes + bytes).step_by(self.granule_bytes() as usize);
        granules.map(move |at| self.words_of(extent, at, 0))
    }

    /// Copies what a table of larger granules says about a stretch of an extent, counted from the extent's start.
    ///
    /// # Errors
    /// If that table is damaged.
    pub(super) fn take_over(&self, larger: &Self, extent: u32, stretch: &Range<u64>) -> io::Result<()> {
        let end = self.offsets[extent as usize] + stretch.end;
        for word in self.words_within(extent, stretch) {
            let (_, at) = self.place_of(word);
            // Of the last neighbours, the chosen one may lie beyond the end.
            if at >= end {
                continue;
            }
            let words = word..word + 1;
            match larger.expected(extent, at).0 {
                Expected::Unknown => {}
                Expected::Exact(sequence) => self.store(words, EXACT | sequence),
                Expected::Floor(sequence) => self.store(words, FLOOR | sequence),
                Expected::Unsure => self.store(words, UNSURE),
                Expected::Damaged => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }

    /// The words of a stretch of an extent.
    fn words_within(&self, extent: u32, stretch: &Range<u64>) -> Range<usize> {
        let Layout { granule_log2, sample_log2, .. } = self.layout;
        let first = u64::from(extent) * self.per_extent;
        let begin = first + (stretch.start >> granule_log2 >> sample_log2);
        let end = first + (stretch.end >> granule_log2).div_ceil(1 << sample_log2);
        begin as usize..end as usize
    }

    /// Where the words of a stretch are in the file.
    pub(super) fn bytes_within(&self, extent: u32, stretch: &Range<u64>) -> Range<u64> {
        let words = self.words_within(extent, stretch);
        let at = |word: usize| (self.layout.at_pages << PAGE_LOG2) + word as u64 * WORD_BYTES;
        at(words.start)..at(words.end)
    }
}
