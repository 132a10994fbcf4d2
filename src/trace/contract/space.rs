//! The logical space in pages, of which those parts that the I/Os touch take memory.

use super::spec::{ContractSpec, ENTRY_BYTES};
use crate::error::{Error, Result};
use crate::trace::io::{Op, TracedIo};
use crate::units::{approx_size, format_size, grouped};

/// Pages that have a place in tables: 256 MiB of 4 B each, one table at a time.
const PAGES_MAX: u64 = 1 << 26;
/// Translation pages that the I/Os touch.
const TRANSLATION_PAGES_MAX: u64 = 1 << 24;
/// Pages that are written, and translation pages that are looked up, in all: some seconds of a processor.
const STEPS_MAX: u64 = 1 << 28;
/// The space is that far, or to the end of a MiB, from its beginning on.
const ROUNDED_TO: u64 = 1 << 20;
/// No place.
const NONE: u32 = u32::MAX;

/// The space, and where its pages have their places in tables.
pub struct Space {
    /// How large it is.
    pub bytes: u64,
    /// A page of flash.
    pub page_bytes: u64,
    /// Pages that a translation page maps.
    pub translated: u64,
    /// Stretches of translation pages that I/Os touch: the first one, the one behind the last, and how many of all
    /// that are touched come before.
    touched: Vec<(u64, u64, u32)>,
    /// How many are touched.
    pub touched_len: usize,
    /// Of each touched one: its place among those that are written.
    places: Vec<u32>,
    /// How many are written.
    written_len: usize,
}

/// A part of an I/O in one translation page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its first page, from the beginning of the space on.
    pub first_page: u64,
    /// How many pages.
    pub pages: u64,
    /// The translation page among all that are touched.
    pub touched: u32,
    /// The first page's place in tables of written pages; none if nothing of the translation page is ever written.
    pub place: Option<usize>,
}

impl Space {
    /// The space of I/Os.
    ///
    /// # Errors
    /// Of the kind `Input` if they are spread too far, or are too many.
    pub fn of(ios: &[TracedIo], spec: &ContractSpec) -> Result<Self> {
        let page_bytes = spec.page_bytes;
        let end = ios.iter().map(TracedIo::end_bytes).max().unwrap_or(0);
        let bytes = spec.space_bytes.unwrap_or_else(|| end.next_multiple_of(ROUNDED_TO));
        let translated = page_bytes / ENTRY_BYTES;
        let mut space = Self {
            bytes,
            page_bytes,
            translated,
            touched: Vec::new(),
            touched_len: 0,
            places: Vec::new(),
            written_len: 0,
        };
        space.touch(ios)?;
        space.give_places(ios)?;
        Ok(space)
    }

    /// The stretches of translation pages that the I/Os touch.
    fn touch(&mut self, ios: &[TracedIo]) -> Result<()> {
        let touches = |io: &&TracedIo| io.bytes > 0;
        let stretch = |io: &TracedIo| {
            let (first, behind) = self.pages(io);
            (first / self.translated, behind.div_ceil(self.translated), 0)
        };
        let mut stretches: Vec<(u64, u64, u32)> = ios.iter().filter(touches).map(stretch).collect();
        let steps: u64 = stretches.iter().map(|(first, behind, _)| behind - first).sum();
        let writes = ios.iter().filter(|io| io.op == Op::Write).map(|io| self.pages(io));
        let written: u64 = writes.map(|(first, behind)| behind - first).sum();
        if steps.max(written) > STEPS_MAX {
            let what =
                format!("the trace goes over {} pages of {}", grouped(written), format_size(self.page_bytes));
            return Err(too_far(&what));
        }
        stretches.sort_unstable();
        for (first, behind, _) in stretches {
            match self.touched.last_mut() {
                Some((_, end, _)) if first <= *end => *end = behind.max(*end),
                _ => self.touched.push((first, behind, 0)),
            }
        }
        let all: u64 = self.touched.iter().map(|(first, behind, _)| behind - first).sum();
        if all > TRANSLATION_PAGES_MAX {
            let what = format!("the trace touches {}", approx_size(all * self.translated * self.page_bytes));
            return Err(too_far(&what));
        }
        let mut before = 0;
        for (first, behind, base) in &mut self.touched {
            *base = before;
            before += (*behind - *first) as u32;
        }
        self.touched_len = before as usize;
        Ok(())
    }

    /// Gives written translation pages their places.
    fn give_places(&mut self, ios: &[TracedIo]) -> Result<()> {
        self.places = vec![NONE; self.touched_len];
        for io in ios.iter().filter(|io| io.op == Op::Write) {
            let (first, behind) = self.pages(io);
            for translation in first / self.translated..behind.div_ceil(self.translated) {
                let touched = self.touched_at(translation) as usize;
                if self.places[touched] == NONE {
                    self.places[touched] = self.written_len as u32;
                    self.written_len += 1;
                }
            }
        }
        if self.table_len() as u64 > PAGES_MAX {
            let bytes = self.table_len() as u64 * self.page_bytes;
            return Err(too_far(&format!("the trace's writes are spread over {}", approx_size(bytes))));
        }
        Ok(())
    }

    fn touched_at(&self, translation: u64) -> u32 {
        let behind = self.touched.partition_point(|(first, _, _)| *first <= translation);
        let (first, _, base) = self.touched[behind - 1];
        base + (translation - first) as u32
    }

    /// Its first page, and the one behind its last. A page that is touched in part counts whole, except for a discard:
    /// what remains of it stays.
    pub fn pages(&self, io: &TracedIo) -> (u64, u64) {
        let (offset, end) = (io.offset_bytes, io.end_bytes());
        if io.op == Op::Discard {
            let first = offset.div_ceil(self.page_bytes);
            return (first, (end / self.page_bytes).max(first));
        }
        (offset / self.page_bytes, end.div_ceil(self.page_bytes))
    }

    /// The I/O in parts, each of one translation page.
    pub fn parts(&self, io: &TracedIo, each: &mut dyn FnMut(Part)) {
        let (mut first_page, behind) = self.pages(io);
        while first_page < behind {
            let translation = first_page / self.translated;
            let end = behind.min((translation + 1) * self.translated);
            let touched = self.touched_at(translation);
            let within = (first_page % self.translated) as usize;
            let place = match self.places[touched as usize] {
                NONE => None,
                place => Some(place as usize * self.translated as usize + within),
            };
            each(Part { first_page, pages: end - first_page, touched, place });
            first_page = end;
        }
    }

    /// Places in a table of written pages.
    pub fn table_len(&self) -> usize {
        self.written_len * self.translated as usize
    }

    /// Pages of the space.
    pub fn page_count(&self) -> u64 {
        self.bytes.div_ceil(self.page_bytes)
    }

    /// How many pages were written in part.
    pub fn written_in_part(&self, ios: &[TracedIo]) -> u64 {
        let in_part = |io: &TracedIo| {
            let is_cut = |at: u64| !at.is_multiple_of(self.page_bytes);
            let (first, behind) = self.pages(io);
            let cut = u64::from(is_cut(io.offset_bytes)) + u64::from(is_cut(io.end_bytes()));
            cut.min(behind - first)
        };
        ios.iter().filter(|io| io.op == Op::Write).map(in_part).sum()
    }
}

fn too_far(what: &str) -> Error {
    Error::input(format!("{what}: too much to score"))
        .hint("use larger pages (--page), or a part of the space (--start, --logical)")
}
