//! I/O buffers: one aligned block with a page per slot.

/// Enough for any device's direct I/O; buffers of larger pages stay aligned to this.
const ALIGN: usize = 4096;

/// Page buffers in one block, aligned for direct I/O.
#[derive(Debug, Default)]
pub struct Buffers {
    block: Vec<u8>,
    start: usize,
    page_bytes: usize,
}

impl Buffers {
    /// `slots` buffers of `page_bytes` (a power of two from 512).
    pub fn new(slots: u32, page_bytes: usize) -> Self {
        let block = vec![0; slots as usize * page_bytes + ALIGN];
        let start = block.as_ptr().align_offset(ALIGN);
        Self { block, start, page_bytes }
    }

    /// Bytes of each buffer.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// A slot's buffer.
    #[inline]
    pub fn get(&mut self, slot: u32) -> &mut [u8] {
        let at = self.start + slot as usize * self.page_bytes;
        &mut self.block[at..at + self.page_bytes]
    }

    /// A slot's buffer for the kernel. The address stays valid as long as `self` lives.
    #[inline]
    pub fn address(&mut self, slot: u32) -> *mut u8 {
        self.get(slot).as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_apart() {
        let mut buffers = Buffers::new(3, 512);
        let at: Vec<usize> = (0..3).map(|slot| buffers.address(slot) as usize).collect();
        assert!(at[0].is_multiple_of(ALIGN));
        assert_eq!((at[1] - at[0], at[2] - at[1]), (512, 512));
    }
}
