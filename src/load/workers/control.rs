//! State that a class's workers share with each other and with the code that starts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::load::volume::write_map::WriteMap;
use crate::units::SECOND_NS;

/// A class is stopped after more than this many errors in a second.
pub const ERRORS_PER_S_MAX: u32 = 1000;
/// Positions kept per class. Workers beyond that share them; `sync` with 256 threads at depth 1024 has more.
const SLICES: usize = 64;

/// Stops one generation of a class's workers, and records why it stopped on its own.
#[derive(Debug)]
pub struct Control {
    /// When the workers were asked to end; `u64::MAX` if not yet.
    stop_ns: AtomicU64,
    tripped: AtomicI32,
    exhausted: AtomicBool,
    broken: AtomicI32,
    errors_second: AtomicU64,
    errors: AtomicU32,
    running: AtomicU32,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            stop_ns: AtomicU64::new(u64::MAX),
            tripped: AtomicI32::default(),
            exhausted: AtomicBool::default(),
            broken: AtomicI32::default(),
            errors_second: AtomicU64::default(),
            errors: AtomicU32::default(),
            running: AtomicU32::default(),
        }
    }
}

impl Control {
    /// Asks the workers to drain and end, as of `now_ns`.
    pub fn stop(&self, now_ns: u64) {
        self.stop_ns.fetch_min(now_ns, Ordering::AcqRel);
    }

    /// When the workers were asked to end; no start is intended after that.
    pub fn stopped_ns(&self) -> Option<u64> {
        Some(self.stop_ns.load(Ordering::Acquire)).filter(|ns| *ns != u64::MAX)
    }

    /// Whether the workers should end.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stopped_ns().is_some()
    }

    /// The errno that occurred too often, if one did.
    pub fn tripped(&self) -> Option<i32> {
        Some(self.tripped.load(Ordering::Acquire)).filter(|errno| *errno != 0)
    }

    /// The errno of the interface's own failure, if it failed.
    pub fn broken(&self) -> Option<i32> {
        Some(self.broken.load(Ordering::Acquire)).filter(|errno| *errno != 0)
    }

    /// Whether the class stopped because it reached the write limit.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Acquire)
    }

    /// Stops because the write limit is reached.
    pub fn exhaust(&self, now_ns: u64) {
        self.exhausted.store(true, Ordering::Release);
        self.stop(now_ns);
    }

    /// Stops because the interface itself failed.
    pub fn break_down(&self, now_ns: u64, errno: i32) {
        self.broken.store(errno, Ordering::Release);
        self.stop(now_ns);
    }

    /// Counts an error; too many within a second stop the class.
    #[cold]
    pub fn error(&self, now_ns: u64, errno: i32) {
        let second = now_ns / SECOND_NS;
        if self.errors_second.swap(second, Ordering::Relaxed) != second {
            self.errors.store(0, Ordering::Relaxed);
        }
        if self.errors.fetch_add(1, Ordering::Relaxed) >= ERRORS_PER_S_MAX {
            self.tripped.store(errno, Ordering::Release);
            self.stop(now_ns);
        }
    }

    /// Counts a worker as running.
    pub fn enter(&self) {
        self.running.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a worker as ended.
    pub fn leave(&self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
    }

    /// Workers that have not ended.
    pub fn running(&self) -> u32 {
        self.running.load(Ordering::Acquire)
    }
}

/// State of a class that outlives its workers.
#[derive(Debug)]
pub struct Shared {
    /// Where each of the WAL's workers continues, in bytes from the start of its slice.
    positions: [AtomicU64; SLICES],
}

impl Default for Shared {
    fn default() -> Self {
        Self { positions: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Shared {
    /// Where a worker continues, in bytes from the start of its slice.
    pub fn position(&self, worker: usize) -> u64 {
        self.positions[worker % SLICES].load(Ordering::Relaxed)
    }

    /// Records a worker's position.
    pub fn keep_position(&self, worker: usize, bytes: u64) {
        self.positions[worker % SLICES].store(bytes, Ordering::Relaxed);
    }
}

/// State that all classes share: the write sequence, the bytes written and their limit.
#[derive(Debug)]
pub struct Writes {
    sequence: AtomicU64,
    written_bytes: Arc<AtomicU64>,
    limit_bytes: AtomicU64,
    map: Option<Arc<WriteMap>>,
}

impl Writes {
    /// How many sequence numbers a worker takes at a time if it alone writes to its region.
    pub const SEQUENCES: u64 = 1 << 12;

    /// Starts at `sequence`, rounded up; adds to the bytes already written, and sets no limit.
    pub fn new(sequence: u64, written_bytes: Arc<AtomicU64>) -> Self {
        Self {
            sequence: AtomicU64::new(sequence.next_multiple_of(Self::SEQUENCES)),
            written_bytes,
            limit_bytes: AtomicU64::new(u64::MAX),
            map: None,
        }
    }

    /// Records writes in this map, if there is one.
    #[must_use]
    pub fn keeping(self, map: Option<Arc<WriteMap>>) -> Self {
        Self { map, ..self }
    }

    /// The write map, if there is one.
    pub fn map(&self) -> Option<&Arc<WriteMap>> {
        self.map.as_ref()
    }

    /// Takes `count` sequence numbers for a worker; returns the first.
    #[inline]
    pub fn take_sequences(&self, count: u64) -> u64 {
        self.sequence.fetch_add(count, Ordering::Relaxed)
    }

    /// Stops writing at that many bytes in total; `None` means no limit.
    pub fn limit(&self, bytes: Option<u64>) {
        self.limit_bytes.store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Bytes at which writing stops; `u64::MAX` means no limit.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// The next number that [`Self::take_sequences`] would give.
    pub fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Takes over the bytes that another process has written, if this process writes nothing itself.
    pub fn follow(&self, written_bytes: u64) {
        self.written_bytes.store(written_bytes, Ordering::Relaxed);
    }

    /// Bytes submitted for writing, whether or not the writes succeeded.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Adds bytes that were written elsewhere.
    pub fn add(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether the write limit is reached.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.written_bytes.load(Ordering::Relaxed) >= self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Reserves bytes to write; false if they would exceed the limit.
    #[inline]
    pub fn take(&self, bytes: u64) -> bool {
        let written = self.written_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let allowed = written <= self.limit_bytes.load(Ordering::Relaxed);
        if !allowed {
            self.written_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_stops_over_a_thousand_errors_within_one_second() {
        let control = Control::default();
        for i in 0..u64::from(ERRORS_PER_S_MAX) * 3 {
            control.error(i * SECOND_NS / 900, libc::EIO);
        }
        assert_eq!(control.tripped(), None, "900 a second");
        for _ in 0..=ERRORS_PER_S_MAX {
            control.error(SECOND_NS * 100, libc::EIO);
        }
        assert_eq!(control.tripped(), Some(libc::EIO));
        assert!(control.is_stopping());
    }

    #[test]
    fn not_a_byte_over_the_limit_is_written() {
        let writes = Writes::new(0, Arc::new(1000.into()));
        assert!(writes.take(4096));
        writes.limit(Some(10_000));
        assert!(writes.take(4096) && !writes.take(4096));
        assert!(writes.take(512));
        assert_eq!(writes.written_bytes(), 1000 + 2 * 4096 + 512);
    }
}
