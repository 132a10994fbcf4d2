//! Work that takes a while, watched: told how far it is, and asked to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::build::{Advance, Watch};
use crate::error::{Error, Result};

/// Between two looks at the watch.
const LOOK: Duration = Duration::from_millis(100);

/// How far work is, and whether it is to stop.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    done_bytes: AtomicU64,
    all_bytes: AtomicU64,
    stop: AtomicBool,
}

impl Gauge {
    /// So many bytes are done, of so many.
    pub(super) fn set(&self, done_bytes: u64, all_bytes: u64) {
        self.done_bytes.store(done_bytes, Ordering::Relaxed);
        self.all_bytes.store(all_bytes, Ordering::Relaxed);
    }

    /// Whether it is to stop.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        let all = self.all_bytes.load(Ordering::Relaxed);
        (all > 0).then(|| (self.done_bytes.load(Ordering::Relaxed), all))
    }
}

/// Does the work in a thread of its own, and tells the watch from this one. Returns what the work did,
/// and whether the watch wants no more.
pub(super) fn attended<T: Send>(
    watch: Watch,
    mut advance: Advance,
    work: impl FnOnce(&Gauge) -> Result<T> + Send,
) -> (Result<T>, bool) {
    let gauge = Gauge::default();
    let (end, ended) = channel::<()>();
    let outcome = std::thread::scope(|scope| {
        let gauge = &gauge;
        let worker = scope.spawn(move || {
            let _ends_with_the_work = end;
            work(gauge)
        });
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            advance.bytes = gauge.bytes();
            if !watch(&advance) {
                gauge.stop.store(true, Ordering::Relaxed);
            }
        }
        worker.join().unwrap_or_else(|_| Err(Error::failed("a step ended in a panic")))
    });
    (outcome, gauge.stopped())
}
