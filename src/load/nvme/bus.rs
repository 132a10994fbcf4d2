//! How a controller is reached: its registers, and memory that it can reach in turn.

use super::dma::Dma;
use crate::error::Result;

/// A controller's registers, and memory that it reads and writes.
pub trait Bus: Send + Sync + 'static {
    /// Reads the register at that offset of the memory-mapped space (BAR0), which is a multiple of 4.
    /// Of a controller that is gone, all bits are ones.
    fn read32(&self, offset: usize) -> u32;

    /// Writes the register at that offset.
    fn write32(&self, offset: usize, value: u32);

    /// Bytes of the memory-mapped space.
    fn register_bytes(&self) -> usize;

    /// Memory of that many bytes or a few more, all zero, aligned to [`super::prp::PAGE_BYTES`], that
    /// the controller can reach.
    fn allocate(&self, bytes: usize) -> Result<Dma>;

    /// Its name, for messages.
    fn name(&self) -> &str;

    /// Now, in nanoseconds of a clock that only goes on.
    fn now_ns(&self) -> u64;

    /// Waits a little, between polls.
    fn pause(&self);

    /// Whether the kernel wants the device back: it is to be removed, or given to another driver.
    fn is_recalled(&self) -> bool {
        false
    }

    /// Keeps a controller that does not stop away from memory, where nothing else does: what it was given is
    /// about to be reused.
    fn isolate(&self) {}

    /// Reads a register of 64 bits as its two halves, which every controller allows (Base 3.1.3).
    fn read64(&self, offset: usize) -> u64 {
        u64::from(self.read32(offset)) | u64::from(self.read32(offset + 4)) << 32
    }

    /// Writes a register of 64 bits as its two halves, the lower one first.
    fn write64(&self, offset: usize, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + 4, (value >> 32) as u32);
    }
}
