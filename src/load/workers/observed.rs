//! What workers did, I/O by I/O, for traces of what the kernel does not see. Each worker puts the I/Os that have ended
//! into a ring of its own, without locks, and one observer takes them out.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::load::io::OpKind;

/// I/Os that a worker keeps until they are taken.
const KEPT: usize = 1 << 15;

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

const KINDS: [OpKind; 4] = [OpKind::Read, OpKind::Write, OpKind::WriteDurable, OpKind::Flush];

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
pub struct Ring {
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

impl Ring {
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

    fn take(&self, ios: &mut Vec<EndedIo>) {
        let (from, to) = (self.taken.load(Ordering::Relaxed), self.put.load(Ordering::Acquire));
        let words = |at: usize| self.slots[at % KEPT].each_ref().map(|word| word.load(Ordering::Relaxed));
        let count = to.wrapping_sub(from);
        ios.extend((0..count).map(|at| EndedIo::of(words(from.wrapping_add(at)))));
        self.taken.store(to, Ordering::Release);
    }
}

/// Takes what all workers did.
#[derive(Debug, Default)]
pub struct Observer {
    rings: Mutex<Vec<Arc<Ring>>>,
    is_over: Arc<AtomicBool>,
}

impl Observer {
    /// A ring for a new worker.
    pub(super) fn ring(&self, waits: bool) -> Arc<Ring> {
        let slots = (0..KEPT).map(|_| Default::default()).collect();
        let (put, taken, lost) = Default::default();
        let ring = Arc::new(Ring { slots, put, taken, lost, waits, is_over: self.is_over.clone() });
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).push(ring.clone());
        ring
    }

    /// Takes the I/Os that have ended since the last call. Returns how many have not fit so far.
    pub fn take(&self, ios: &mut Vec<EndedIo>) -> u64 {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let take = |ring: &Arc<Ring>| {
            ring.take(ios);
            ring.lost.load(Ordering::Relaxed)
        };
        rings.iter().map(take).sum()
    }

    /// Takes no more: no worker waits for room any longer.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(number: u64) -> EndedIo {
        EndedIo {
            start_ns: number << 33,
            end_ns: number << 34,
            offset_bytes: number << 40,
            bytes: u32::MAX,
            region: 2,
            file: u16::MAX,
            kind: KINDS[number as usize % KINDS.len()],
        }
    }

    #[test]
    fn what_is_put_in_comes_out_and_what_does_not_fit_is_counted() {
        let observer = Observer::default();
        let (mut ios, ring) = (Vec::new(), observer.ring(false));
        (0..10).for_each(|number| ring.put(io(number)));
        assert_eq!(observer.take(&mut ios), 0);
        assert_eq!(ios, (0..10).map(io).collect::<Vec<_>>());
        (0..KEPT as u64 + 3).for_each(|number| ring.put(io(number)));
        ios.clear();
        assert_eq!((observer.take(&mut ios), ios.len(), ios.last()), (3, KEPT, Some(&io(KEPT as u64 - 1))));
    }

    #[test]
    fn a_worker_on_a_virtual_clock_waits_for_room_while_somebody_takes() {
        let observer = Observer::default();
        let ring = observer.ring(true);
        std::thread::scope(|scope| {
            let puts = scope.spawn(|| (0..3 * KEPT as u64).for_each(|number| ring.put(io(number))));
            let mut ios = Vec::new();
            while ios.len() < 3 * KEPT {
                assert_eq!(observer.take(&mut ios), 0);
            }
            puts.join().unwrap();
            assert_eq!(ios, (0..3 * KEPT as u64).map(io).collect::<Vec<_>>());
        });
        observer.end();
        (0..=KEPT as u64).for_each(|number| ring.put(io(number)));
        assert_eq!(observer.take(&mut Vec::new()), 1);
    }
}
