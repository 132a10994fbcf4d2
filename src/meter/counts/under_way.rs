//! The I/Os that a worker has in flight, readable by the meters even while the worker hangs in a system call.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// An I/O in flight, with its times on the workers' clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// When it was submitted.
    pub start_ns: u64,
    /// When it was meant to start, for a class with a rate.
    pub intended_ns: Option<u64>,
}

/// The intended starts that the worker of a class with a rate has not reached yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intents {
    /// The next one.
    pub next_ns: u64,
    /// The mean time between two.
    pub spacing_ns: u64,
}

impl Intents {
    /// Those before that time, approximately.
    pub fn before(&self, ns: u64) -> impl Iterator<Item = u64> {
        let Self { next_ns, spacing_ns } = *self;
        (next_ns..ns).step_by(spacing_ns.max(1) as usize)
    }
}

/// A worker's I/Os by slot, and its next intended start. It has one writer, which only stores whole words: a
/// reader may see a mix of two I/Os of a slot.
#[derive(Debug)]
pub struct UnderWay {
    slots: Box<[Slot]>,
    next_ns: AtomicU64,
    spacing_ns: AtomicU64,
}

/// Times are stored plus one; 0 means none.
#[derive(Debug, Default)]
struct Slot {
    start: AtomicU64,
    intended: AtomicU64,
}

impl UnderWay {
    /// With room for this many I/Os at once.
    pub fn new(slots: usize) -> Self {
        let slots = (0..slots).map(|_| Slot::default()).collect();
        Self { slots, next_ns: AtomicU64::new(0), spacing_ns: AtomicU64::new(0) }
    }

    /// An I/O begins; if its slot is beyond the room, it goes unseen.
    #[inline]
    pub fn begin(&self, slot: usize, start_ns: u64, intended_ns: Option<u64>) {
        if let Some(at) = self.slots.get(slot) {
            at.intended.store(intended_ns.map_or(0, |ns| ns + 1), Relaxed);
            at.start.store(start_ns + 1, Relaxed);
        }
    }

    /// The slot's I/O has ended.
    #[inline]
    pub fn end(&self, slot: usize) {
        if let Some(at) = self.slots.get(slot) {
            at.start.store(0, Relaxed);
        }
    }

    /// Everything from this slot on has ended.
    pub fn end_from(&self, slot: usize) {
        (slot..self.slots.len()).for_each(|slot| self.end(slot));
    }

    /// Sets the next intended start, and the time between starts.
    #[inline]
    pub fn intend(&self, next_ns: u64, spacing_ns: u64) {
        self.spacing_ns.store(spacing_ns, Relaxed);
        self.next_ns.store(next_ns + 1, Relaxed);
    }

    /// Nothing more is intended.
    pub fn intend_nothing(&self) {
        self.next_ns.store(0, Relaxed);
    }

    /// The I/Os in flight.
    pub fn begun(&self) -> Vec<Begun> {
        let begun = |slot: &Slot| {
            let start_ns = slot.start.load(Relaxed).checked_sub(1)?;
            Some(Begun { start_ns, intended_ns: slot.intended.load(Relaxed).checked_sub(1) })
        };
        self.slots.iter().filter_map(begun).collect()
    }

    /// The intended starts to come; none without a rate, or once the class is stopped.
    pub fn intents(&self) -> Option<Intents> {
        let next_ns = self.next_ns.load(Relaxed).checked_sub(1)?;
        Some(Intents { next_ns, spacing_ns: self.spacing_ns.load(Relaxed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_ended_is_seen_with_its_start_and_its_intended_start() {
        let under_way = UnderWay::new(3);
        under_way.begin(0, 0, None);
        under_way.begin(2, 70, Some(40));
        under_way.begin(9, 80, None);
        let first = Begun { start_ns: 0, intended_ns: None };
        assert_eq!(under_way.begun(), [first, Begun { start_ns: 70, intended_ns: Some(40) }]);
        under_way.end_from(1);
        assert_eq!(under_way.begun(), [first]);
        under_way.end(0);
        assert!(under_way.begun().is_empty());
    }

    #[test]
    fn intended_starts_up_to_a_moment_are_counted() {
        let under_way = UnderWay::new(0);
        assert_eq!(under_way.intents(), None);
        under_way.intend(100, 10);
        let intents = under_way.intents().unwrap();
        assert_eq!([99, 100, 101, 110, 111, 200].map(|ns| intents.before(ns).count()), [0, 0, 1, 1, 2, 10]);
        under_way.intend_nothing();
        assert_eq!(under_way.intents(), None);
    }
}
