//! The host memory that the in-memory controllers can reach.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::dma::{self, Dma};
use super::prp::PAGE_BYTES;

/// One IOMMU's address space. Clones are the same memory.
#[derive(Clone, Default)]
pub(super) struct HostMemory(Arc<Mutex<Blocks>>);

/// Allocated blocks, by address.
#[derive(Default)]
struct Blocks {
    blocks: Vec<(u64, Arc<[AtomicU64]>)>,
    next_address: u64,
}

impl HostMemory {
    pub fn allocate(&self, bytes: usize) -> Dma {
        let mut memory = self.0.lock().unwrap();
        let words: Arc<[AtomicU64]> = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        let address = memory.next_address.max(0x10_0000);
        // A gap between any two blocks, so that an access past the end of one hits nothing.
        memory.next_address =
            (address + bytes as u64).next_multiple_of(PAGE_BYTES as u64) + PAGE_BYTES as u64;
        memory.blocks.push((address, words.clone()));
        dma::shared(words, address)
    }

    fn word<T>(&self, address: u64, with: impl FnOnce(&AtomicU64) -> T) -> T {
        let memory = self.0.lock().unwrap();
        let within = |(start, words): &&(u64, Arc<[AtomicU64]>)| {
            (*start..start + words.len() as u64 * 8).contains(&address)
        };
        let (start, words) = memory.blocks.iter().rev().find(within).expect("memory of the host's");
        with(&words[((address - start) / 8) as usize])
    }

    pub fn read(&self, address: u64) -> u64 {
        self.word(address, |word| word.load(Ordering::Relaxed))
    }

    pub fn write(&self, address: u64, value: u64) {
        self.word(address, |word| word.store(value, Ordering::Relaxed));
    }

    pub fn read_bytes(&self, address: u64, bytes: usize) -> Vec<u8> {
        (0..bytes as u64 / 8).flat_map(|n| self.read(address + n * 8).to_le_bytes()).collect()
    }

    pub fn write_bytes(&self, address: u64, data: &[u8]) {
        for (n, word) in data.chunks_exact(8).enumerate() {
            self.write(address + n as u64 * 8, u64::from_le_bytes(word.try_into().unwrap()));
        }
    }
}
