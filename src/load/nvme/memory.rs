//! Memory that this process shares with controllers: on large pages where possible, with their physical
//! addresses.
#![allow(unsafe_code)] // maps memory, and gives it back

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::prp::PAGE_BYTES;
use crate::error::{Error, Result, describe};
use crate::units::approx_size;

/// Bytes of a large page on x86-64 and arm64.
pub const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Memory of this process, shared with no other: not even with a tool that it starts, which would otherwise
/// get a copy of memory that the controller keeps writing to.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its memory, which belongs to no particular thread.
unsafe impl Send for Memory {}
// SAFETY: through a shared reference only its address is available.
unsafe impl Sync for Memory {}

impl Memory {
    /// All zero; on large pages if it is large and some are free.
    pub fn new(bytes: usize) -> Result<Self> {
        if bytes >= LARGE_PAGE_BYTES / 2
            && let Ok(memory) = Self::map_large(bytes)
        {
            return Ok(memory);
        }
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        Self::map(bytes, MapFlags::empty()).map_err(|error| {
            let size = approx_size(bytes as u64);
            Error::failed(format!("no memory for {size} of buffers: {}", describe(&error.into())))
                .hint("a smaller depth or page size needs less")
        })
    }

    /// All zero, on large pages, which the kernel does not move.
    ///
    /// # Errors
    /// Input if too few are free, with what to set.
    pub fn on_large_pages(bytes: usize) -> Result<Self> {
        Self::map_large(bytes).map_err(|error| {
            let pages = bytes.div_ceil(LARGE_PAGE_BYTES);
            let what = format!("fewer than {pages} free huge pages of 2 MiB: {}", describe(&error.into()));
            Error::input(what).hint(
                "set more aside: write a number to /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            )
        })
    }

    fn map_large(bytes: usize) -> rustix::io::Result<Self> {
        Self::map(bytes.next_multiple_of(LARGE_PAGE_BYTES), MapFlags::HUGETLB | MapFlags::HUGE_2MB)
    }

    fn map(bytes: usize, more: MapFlags) -> rustix::io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE | more;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)? };
        let start = NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { start, bytes })
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Physical addresses of its large pages, in order: what a controller without an IOMMU sees.
    ///
    /// # Errors
    /// If the kernel does not reveal them: it does so only to root.
    pub fn physical_addresses(&self) -> Result<Box<[u64]>> {
        const ENTRY_BYTES: usize = 8;
        let path = Path::new("/proc/self/pagemap");
        let file = File::open(path).map_err(|error| Error::os("cannot open", path, error))?;
        let first = self.start.as_ptr() as usize;
        let address = |at: usize| {
            let mut entry = [0; ENTRY_BYTES];
            file.read_exact_at(&mut entry, ((first + at) / PAGE_BYTES * ENTRY_BYTES) as u64)
                .map_err(|error| Error::os("cannot read", path, error))?;
            physical_address(u64::from_ne_bytes(entry)).ok_or_else(|| {
                if entry[7] >> 7 == 0 {
                    return Error::failed("a huge page is not in memory: perhaps a cgroup limit");
                }
                Error::input("the kernel does not reveal physical addresses (/proc/self/pagemap)")
                    .hint("it does so for root, with the capability CAP_SYS_ADMIN")
            })
        };
        (0..self.bytes).step_by(LARGE_PAGE_BYTES).map(address).collect()
    }
}

/// The address in an entry of the page map (Linux, Documentation/admin-guide/mm/pagemap.rst): bit 63 means
/// present, bits 54:0 are the page frame number, which reads as 0 without the privilege to see it.
fn physical_address(entry: u64) -> Option<u64> {
    let frame = entry & ((1 << 55) - 1);
    (entry >> 63 == 1 && frame != 0).then(|| frame * PAGE_BYTES as u64)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `map` mapped it, and its owner no longer uses it.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_page_map_gives_a_frame_that_is_present_and_shown() {
        assert_eq!(physical_address(1 << 63 | 0x12_3400), Some(0x1_2340_0000));
        assert_eq!(physical_address(1 << 63 | 1 << 55 | 0x200), Some(0x20_0000), "bit 55 is soft-dirty");
        assert_eq!(physical_address(0x12_3400), None, "swapped or not there");
        assert_eq!(physical_address(1 << 63), None, "not revealed");
    }

    #[test]
    fn memory_is_whole_pages_of_zeros() {
        let memory = Memory::new(5000).unwrap();
        assert_eq!(memory.bytes(), 8192);
        assert_eq!(memory.start().as_ptr() as usize % PAGE_BYTES, 0);
    }
}
