//! What a worker did, I/O by I/O, for traces of what the kernel does not see: it puts the I/Os that have ended into a
//! ring of its own, and an observer takes them out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::load::io::OpKind;

/// I/Os that a worker keeps until they are taken.
pub(super) const KEPT: usize = 1 << 15;

/// An I/O that has ended, whether or not it succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedIo {
    /// When it was submitted, by the workers' clock.
    pub start_ns: u64,
    /// When the worker saw its completion.
    pub end_ns: u64,
    /// The offset in the file or device; 0 for a flush.
    pub offset_bytes: u64,
    /// Its length; 0 for a flush.
    pub bytes: u32,
    /// The region, by its id.
    pub region: u8,
    /// The file or device, by its index in the region.
    pub file: u16,
    /// What it did.
    pub kind: OpKind,
}

pub(super) const KINDS: [OpKind; 4] = [OpKind::Read, OpKind::Write, OpKind::WriteDurable, OpKind::Flush];

impl EndedIo {
    fn words(self) -> [u64; 4] {
        let kind = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or_default() as u64;
        let place = u64::from(self.file) << 16 | u64::from(self.region) << 8 | kind;
        [self.start_ns, self.end_ns, self.offset_bytes, u64::from(self.bytes) << 32 | place]
    }

    fn of([start_ns, end_ns, offset_bytes, last]: [u64; 4]) -> Self {
        let kind = KINDS[(last & 0xff) as usize % KINDS.len()];
        let (bytes, file, region) = ((last >> 32) as u32, (last >> 16) as u16, (last >> 8) as u8);
        Self { start_ns, end_ns, offset_bytes, bytes, region, file, kind }
    }
}

/// The last I/Os of one worker: it puts them in, and the observer takes them out.
#[derive(Debug)]
pub struct EndedIos {
    slots: Box<[[AtomicU64; 4]]>,
    /// How many were put, and how many taken.
    put: AtomicUsize,
    taken: AtomicUsize,
    /// How many did not fit.
    lost: AtomicU64,
    /// A worker on a virtual clock waits for room: no time passes for it meanwhile.
    waits: bool,
    /// Nobody takes them any more.
    is_over: Arc<AtomicBool>,
}

impl EndedIos {
    /// A ring for a worker, which waits for room or not, until nobody takes them any more.
    pub(super) fn new(waits: bool, is_over: Arc<AtomicBool>) -> Self {
        let slots = (0..KEPT).map(|_| Default::default()).collect();
        let (put, taken, lost) = Default::default();
        Self { slots, put, taken, lost, waits, is_over }
    }

    /// Puts an I/O in; only its worker may call this.
    #[inline]
    pub fn put(&self, io: EndedIo) {
        let put = self.put.load(Ordering::Relaxed);
        while put.wrapping_sub(self.taken.load(Ordering::Acquire)) == self.slots.len() {
            if !self.waits || self.is_over.load(Ordering::Relaxed) {
                self.lost.store(self.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                return;
            }
            std::thread::yield_now();
        }
        for (slot, word) in self.slots[put % KEPT].iter().zip(io.words()) {
            slot.store(word, Ordering::Relaxed);
        }
        self.put.store(put.wrapping_add(1), Ordering::Release);
    }

    /// Takes them out; returns how many have not fit so far.
    pub(super) fn take(&self, ios: &mut Vec<EndedIo>) -> u64 {
        let (from, to) = (self.taken.load(Ordering::Relaxed), self.put.load(Ordering::Acquire));
        let words = |at: usize| self.slots[at % KEPT].each_ref().map(|word| word.load(Ordering::Relaxed));
        let count = to.wrapping_sub(from);
        ios.extend((0..count).map(|at| EndedIo::of(words(from.wrapping_add(at)))));
        self.taken.store(to, Ordering::Release);
        self.lost.load(Ordering::Relaxed)
    }
}
