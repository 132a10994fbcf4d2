//! Takes what all workers did, for a trace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::ended::{EndedIo, EndedIos};

/// Takes what all workers did.
#[derive(Debug, Default)]
pub struct Observer {
    rings: Mutex<Vec<Arc<EndedIos>>>,
    is_over: Arc<AtomicBool>,
}

impl Observer {
    /// A ring for a new worker.
    pub(super) fn ring(&self, waits: bool) -> Arc<EndedIos> {
        let ring = Arc::new(EndedIos::new(waits, self.is_over.clone()));
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).push(ring.clone());
        ring
    }

    /// Takes the I/Os that have ended since the last call. Returns how many have not fit so far.
    pub fn take(&self, ios: &mut Vec<EndedIo>) -> u64 {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.iter().map(|ring| ring.take(ios)).sum()
    }

    /// Takes no more: no worker waits for room any longer.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::workers::ended::{KEPT, KINDS};

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
