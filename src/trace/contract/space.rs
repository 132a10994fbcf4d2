//! The logical space in pages; only the parts that the I/Os touch take memory.

use super::spec::{ContractSpec, ENTRY_BYTES};
use crate::error::{Error, Result};
use crate::trace::io::{Op, TracedIo};
use crate::units::{approx_size, format_size, grouped};

/// Pages that tables can hold: 256 MiB at 4 B each, one table at a time.
const PAGES_MAX: u64 = 1 << 26;
/// Maximum number of translation pages that the I/Os touch.
const TRANSLATION_PAGES_MAX: u64 = 1 << 24;
/// Total pages written and translation pages looked up: some seconds of CPU time.
const STEPS_MAX: u64 = 1 << 28;
/// An assumed space is rounded up to a multiple of this.
const ROUNDED_TO: u64 = 1 << 20;
/// No index.
const NONE: u32 = u32::MAX;

/// The space, and where its pages are in tables.
pub struct Space {
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes of a flash page.
    pub page_bytes: u64,
    /// Pages that a translation page maps.
    pub translated: u64,
    /// Runs of translation pages that I/Os touch: the first one, the one after the last, and how many touched
    /// ones come before the run.
    touched: Vec<(u64, u64, u32)>,
    /// Number of touched translation pages.
    pub touched_len: usize,
    /// For each touched one, its index among those that are written.
    places: Vec<u32>,
    /// Number of written translation pages.
    written_len: usize,
}

/// The part of an I/O that is in one translation page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its first page, counted from the start of the space.
    pub first_page: u64,
    /// Number of pages.
    pub pages: u64,
    /// Index of the translation page among all touched ones.
    pub touched: u32,
    /// Index of the first page in tables of written pages; `None` if the translation page is never written.
    pub place: Option<usize>,
}

impl Space {
    /// The space that these I/Os use.
    ///
    /// # Errors
    /// `Input` if they are spread too far, or are too many.
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

    /// Finds the runs of translation pages that the I/Os touch.
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

    /// Gives written translation pages their indexes.
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

    /// The I/O's first page, and the one after its last. A page touched in part counts as a whole, except for
    /// a discard, which leaves it as it is.
    pub fn pages(&self, io: &TracedIo) -> (u64, u64) {
        let (offset, end) = (io.offset_bytes, io.end_bytes());
        if io.op == Op::Discard {
            let first = offset.div_ceil(self.page_bytes);
            return (first, (end / self.page_bytes).max(first));
        }
        (offset / self.page_bytes, end.div_ceil(self.page_bytes))
    }

    /// Splits the I/O into parts, each in one translation page.
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

    /// Length of a table of written pages.
    pub fn table_len(&self) -> usize {
        self.written_len * self.translated as usize
    }

    /// Pages of the space.
    pub fn page_count(&self) -> u64 {
        self.bytes.div_ceil(self.page_bytes)
    }

    /// Number of pages that were written in part.
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
