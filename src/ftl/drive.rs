//! A drive: translates the host's bytes to pages.

use super::counts::Counts;
use super::flash::Flash;
#[cfg(feature = "trace")]
use super::hybrid::Hybrid;
use super::paged::Paged;
#[cfg(feature = "trace")]
use super::sizes::Mapping;
use super::sizes::{FlashSpec, Sizes};

/// A simulated drive.
#[derive(Debug)]
pub struct FlashDrive {
    page_bytes: u64,
    sizes: Sizes,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Paged(Paged),
    #[cfg(feature = "trace")]
    Hybrid(Hybrid),
}

impl FlashDrive {
    /// An empty drive.
    ///
    /// # Errors
    /// What is wrong with the spec, as a sentence.
    pub fn new(spec: &FlashSpec) -> Result<Self, String> {
        let sizes = Sizes::of(spec)?;
        #[cfg(feature = "trace")]
        if spec.mapping == Mapping::Hybrid {
            return Ok(Self { page_bytes: spec.page_bytes, sizes, kind: Kind::Hybrid(Hybrid::new(&sizes)) });
        }
        Ok(Self { page_bytes: spec.page_bytes, sizes, kind: Kind::Paged(Paged::new(&sizes)) })
    }

    /// Bytes of a flash page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Its sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// What it has done.
    pub fn counts(&self) -> &Counts {
        &self.flash().counts
    }

    /// How often each block was erased: data blocks first, then blocks of translation pages.
    pub fn erases(&self) -> &[u32] {
        &self.flash().erases
    }

    /// Forgets what it has done, not what it holds.
    pub fn forget(&mut self) {
        let flash = self.flash_mut();
        flash.counts = Counts::default();
        flash.erases.fill(0);
    }

    /// Writes each page once, from the first to the last.
    pub fn fill(&mut self) {
        for page in 0..self.sizes.pages {
            self.write_page(page, true);
        }
    }

    /// Reads every page that the range touches.
    pub fn read(&mut self, offset_bytes: u64, bytes: u64) {
        self.flash_mut().counts.host_read_bytes += bytes;
        let (first, behind) = self.touched(offset_bytes, bytes);
        for page in first..behind {
            match &mut self.kind {
                Kind::Paged(paged) => paged.read(page),
                #[cfg(feature = "trace")]
                Kind::Hybrid(hybrid) => hybrid.read(page),
            }
        }
    }

    /// Writes; a page touched only in part keeps the rest of its content.
    pub fn write(&mut self, offset_bytes: u64, bytes: u64) {
        self.flash_mut().counts.host_written_bytes += bytes;
        let (first, behind) = self.touched(offset_bytes, bytes);
        let end = offset_bytes + bytes;
        for page in first..behind {
            let at = u64::from(page) * self.page_bytes;
            self.write_page(page, offset_bytes <= at && end >= at + self.page_bytes);
        }
    }

    /// Discards; pages touched only in part stay.
    pub fn discard(&mut self, offset_bytes: u64, bytes: u64) {
        self.flash_mut().counts.host_discarded_bytes += bytes;
        let first = offset_bytes.div_ceil(self.page_bytes);
        let behind = ((offset_bytes + bytes) / self.page_bytes).min(u64::from(self.sizes.pages));
        for page in first..behind {
            match &mut self.kind {
                Kind::Paged(paged) => paged.discard(page as u32),
                #[cfg(feature = "trace")]
                Kind::Hybrid(hybrid) => hybrid.discard(page as u32),
            }
        }
    }

    fn write_page(&mut self, page: u32, is_whole: bool) {
        // Each stream has its own part of the capacity.
        let stream = u64::from(page) * u64::from(self.sizes.streams) / u64::from(self.sizes.pages);
        match &mut self.kind {
            Kind::Paged(paged) => paged.write(page, stream as u32, is_whole),
            #[cfg(feature = "trace")]
            Kind::Hybrid(hybrid) => hybrid.write(page, is_whole),
        }
    }

    /// The first page touched, and the one after the last.
    fn touched(&self, offset_bytes: u64, bytes: u64) -> (u32, u32) {
        let pages = u64::from(self.sizes.pages);
        let first = (offset_bytes / self.page_bytes).min(pages);
        let behind = (offset_bytes + bytes).div_ceil(self.page_bytes).min(pages);
        (first as u32, behind as u32)
    }

    /// The flash page that holds a page; `None` if it holds nothing.
    #[cfg(test)]
    pub fn place(&self, page: u32) -> Option<u32> {
        match &self.kind {
            Kind::Paged(paged) => paged.place(page),
            #[cfg(feature = "trace")]
            Kind::Hybrid(hybrid) => hybrid.place(page),
        }
    }

    /// Number of translation pages on flash.
    #[cfg(test)]
    pub fn translation_pages_on_flash(&self) -> usize {
        match &self.kind {
            Kind::Paged(paged) => paged.translation_pages_on_flash(),
            #[cfg(feature = "trace")]
            Kind::Hybrid(_) => 0,
        }
    }

    /// Merges all logs of a hybrid mapping.
    #[cfg(all(test, feature = "trace"))]
    pub fn settle(&mut self) {
        if let Kind::Hybrid(hybrid) = &mut self.kind {
            hybrid.settle();
        }
    }

    pub(super) fn flash(&self) -> &Flash {
        match &self.kind {
            Kind::Paged(paged) => &paged.flash,
            #[cfg(feature = "trace")]
            Kind::Hybrid(hybrid) => &hybrid.flash,
        }
    }

    pub(super) fn flash_mut(&mut self) -> &mut Flash {
        match &mut self.kind {
            Kind::Paged(paged) => &mut paged.flash,
            #[cfg(feature = "trace")]
            Kind::Hybrid(hybrid) => &mut hybrid.flash,
        }
    }
}
