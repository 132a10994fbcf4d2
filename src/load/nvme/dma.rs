//! Memory that a controller reads and writes at any time.
#![allow(unsafe_code)] // the other side writes to it: it is read and written volatile, and never borrowed whole

use std::any::Any;
use std::ptr::NonNull;

/// Memory shared with a controller. It is unmapped when this is dropped.
///
/// Rings and lists are read and written word by word, volatile. A page buffer is borrowed only while no
/// command that names it is outstanding ([`Dma::slice_mut`]).
pub struct Dma {
    start: NonNull<u8>,
    bytes: usize,
    place: Place,
    _owner: Box<dyn Any + Send>,
}

/// Where memory is, as the controller sees it.
#[derive(Debug)]
enum Place {
    /// Contiguous, from that address on.
    Whole(u64),
    /// In pieces of that many bytes, each at its own address.
    Pieces(usize, Box<[u64]>),
}

// SAFETY: it owns its memory, which belongs to no particular thread; reads and writes are volatile.
unsafe impl Send for Dma {}

impl std::fmt::Debug for Dma {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dma({} bytes at {:#x})", self.bytes, self.address(0))
    }
}

impl Dma {
    /// Memory at `start`, which the controller sees as contiguous from `address` on.
    ///
    /// # Safety
    /// Until `owner` is dropped, the memory must be readable, writable, initialised, aligned to 8 bytes and
    /// used by nobody else.
    pub unsafe fn new(start: NonNull<u8>, bytes: usize, address: u64, owner: Box<dyn Any + Send>) -> Self {
        Self { start, bytes, place: Place::Whole(address), _owner: owner }
    }

    /// Memory at `start`, which the controller sees in pieces of `piece_bytes` (a power of two), each at its
    /// own address.
    ///
    /// # Safety
    /// As for [`Self::new`].
    ///
    /// # Panics
    /// If there are fewer pieces than the bytes need.
    pub unsafe fn in_pieces(
        start: NonNull<u8>,
        bytes: usize,
        (piece_bytes, addresses): (usize, Box<[u64]>),
        owner: Box<dyn Any + Send>,
    ) -> Self {
        assert!(addresses.len() * piece_bytes >= bytes);
        Self { start, bytes, place: Place::Pieces(piece_bytes, addresses), _owner: owner }
    }

    /// Whether the controller sees it as contiguous, as a ring must be.
    pub fn is_whole(&self) -> bool {
        match &self.place {
            Place::Whole(_) => true,
            Place::Pieces(bytes, addresses) => {
                addresses.windows(2).all(|pair| pair[0] + *bytes as u64 == pair[1])
            }
        }
    }

    /// The address of a byte, as the controller sees it.
    #[inline]
    pub fn address(&self, at: usize) -> u64 {
        match &self.place {
            Place::Whole(address) => address + at as u64,
            Place::Pieces(bytes, addresses) => addresses[at / bytes] + (at % bytes) as u64,
        }
    }

    /// A pointer to a word of that size.
    #[inline]
    fn word<T>(&self, at: usize) -> *mut T {
        let end = at.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.bytes) && at.is_multiple_of(size_of::<T>()));
        // SAFETY: it lies within the memory, as was just checked.
        unsafe { self.start.as_ptr().add(at).cast() }
    }

    /// Reads the little-endian word at that offset, a multiple of 4.
    #[inline]
    pub fn read_u32(&self, at: usize) -> u32 {
        // SAFETY: `word` points to aligned, initialised memory of `self`.
        u32::from_le(unsafe { self.word::<u32>(at).read_volatile() })
    }

    /// Reads the little-endian word at that offset, a multiple of 8.
    #[inline]
    pub fn read_u64(&self, at: usize) -> u64 {
        // SAFETY: `word` points to aligned, initialised memory of `self`.
        u64::from_le(unsafe { self.word::<u64>(at).read_volatile() })
    }

    /// Writes a little-endian word at that offset, a multiple of 8.
    #[inline]
    pub fn write_u64(&self, at: usize, value: u64) {
        // SAFETY: `word` points to aligned memory of `self`.
        unsafe { self.word::<u64>(at).write_volatile(value.to_le()) }
    }

    /// Sets all of it to zero.
    pub fn clear(&self) {
        (0..self.bytes / 8).for_each(|n| self.write_u64(n * 8, 0));
    }

    /// A copy of the first `bytes` bytes, a multiple of 8.
    pub fn copy(&self, bytes: usize) -> Vec<u8> {
        (0..bytes / 8).flat_map(|n| self.read_u64(n * 8).to_le_bytes()).collect()
    }

    /// A part of it as plain memory.
    ///
    /// # Safety
    /// No outstanding command may name that part, so that the controller neither reads nor writes it.
    ///
    /// # Panics
    /// If it extends beyond the memory.
    #[inline]
    pub unsafe fn slice_mut(&mut self, at: usize, bytes: usize) -> &mut [u8] {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.bytes));
        // SAFETY: it lies within the memory, `self` is borrowed for as long, and the caller promises that the
        // controller leaves it alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), bytes) }
    }
}

/// Ordinary memory, for tests: the controller uses the same words.
#[cfg(test)]
pub(super) fn shared(words: std::sync::Arc<[std::sync::atomic::AtomicU64]>, address: u64) -> Dma {
    let start = NonNull::from(&*words).cast();
    // SAFETY: the words live as long as the owner. The other side uses them as atomics, which may be written
    // through a shared reference.
    unsafe { Dma::new(start, words.len() * 8, address, Box::new(words)) }
}

/// Ordinary memory at an address of its own, for tests.
#[cfg(test)]
pub(super) fn ordinary(bytes: usize, address: u64) -> Dma {
    shared((0..bytes.div_ceil(8)).map(|_| 0.into()).collect(), address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_little_endian_and_have_the_controllers_addresses() {
        let memory = ordinary(64, 0x1000);
        memory.write_u64(8, 0x1122_3344_5566_7788);
        assert_eq!((memory.read_u32(8), memory.read_u32(12)), (0x5566_7788, 0x1122_3344));
        assert_eq!((memory.address(8), memory.bytes), (0x1008, 64));
        assert_eq!(memory.copy(16)[8..10], [0x88, 0x77]);
        memory.clear();
        assert_eq!(memory.read_u64(8), 0);
    }

    #[test]
    fn pieces_have_addresses_of_their_own() {
        let words: std::sync::Arc<[std::sync::atomic::AtomicU64]> = (0..1024).map(|_| 0.into()).collect();
        let pieces = |addresses: [u64; 2]| {
            let start = NonNull::from(&*words).cast();
            // SAFETY: the words live as long as their owner.
            unsafe { Dma::in_pieces(start, 8192, (4096, addresses.into()), Box::new(words.clone())) }
        };
        let apart = pieces([0x7000, 0x3000]);
        assert_eq!((apart.address(0), apart.address(4095), apart.address(4096)), (0x7000, 0x7fff, 0x3000));
        assert!(!apart.is_whole() && pieces([0x3000, 0x4000]).is_whole());
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn nothing_is_read_beyond_the_end() {
        ordinary(64, 0).read_u32(64);
    }
}
