//! How to reach a controller: its registers, and memory that it can reach in turn.

use super::dma::Dma;
use crate::error::Result;

/// A controller's registers, and memory that it reads and writes.
pub trait Bus: Send + Sync + 'static {
    /// Reads the register at that offset, a multiple of 4, of the memory-mapped space (BAR0). If the
    /// controller is gone, all bits are ones.
    fn read32(&self, offset: usize) -> u32;

    /// Writes the register at that offset.
    fn write32(&self, offset: usize, value: u32);

    /// Bytes of the memory-mapped space.
    fn register_bytes(&self) -> usize;

    /// Allocates zeroed memory that the controller can reach: that many bytes or a few more, aligned to
    /// [`super::prp::PAGE_BYTES`].
    fn allocate(&self, bytes: usize) -> Result<Dma>;

    /// Its name, for messages.
    fn name(&self) -> &str;

    /// Now, in nanoseconds of a monotonic clock.
    fn now_ns(&self) -> u64;

    /// Waits briefly, between polls.
    fn pause(&self);

    /// Whether the kernel wants the device back, to remove it or give it to another driver.
    fn is_recalled(&self) -> bool {
        false
    }

    /// Keeps a controller that does not stop away from memory that is about to be reused, if nothing else
    /// (such as an IOMMU) does.
    fn isolate(&self) {}

    /// Reads a 64-bit register as two halves, which every controller allows (Base 3.1.3).
    fn read64(&self, offset: usize) -> u64 {
        u64::from(self.read32(offset)) | u64::from(self.read32(offset + 4)) << 32
    }

    /// Writes a 64-bit register as two halves, the lower one first.
    fn write64(&self, offset: usize, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + 4, (value >> 32) as u32);
    }
}
