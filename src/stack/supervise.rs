//! Long work under supervision: it reports progress, and can be asked to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// The progress of a build or a tear-down.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// The step's number, from 0.
    pub step: usize,
    /// Steps in total.
    pub steps: usize,
    /// The running command, as shown in the plan; for an undo, the thing that is removed.
    pub command: String,
    /// Whether the step is being undone.
    pub undoing: bool,
    /// Bytes done and to do, if the step counts them.
    pub bytes: Option<(u64, u64)>,
    /// Seconds left at the rate of the last ten to twenty seconds, once known.
    pub left_s: Option<f64>,
}

/// Watches work: returns whether it may continue. A step in progress is finished or undone, and then
/// everything before it. An undo always runs to its end.
pub type Watch<'a> = &'a mut dyn FnMut(&Advance) -> bool;

/// Time between two calls of the watch.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two measurements of progress: work that is fast at first may slow down later.
const PACE: Duration = Duration::from_secs(10);

/// How far work has come, and whether it should stop.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    done_bytes: AtomicU64,
    all_bytes: AtomicU64,
    /// Later work runs at a different rate.
    uneven: AtomicBool,
    stop: AtomicBool,
}

impl Gauge {
    /// Sets whether the rate so far says nothing about the rest.
    pub(crate) fn uneven(&self, uneven: bool) {
        self.uneven.store(uneven, Ordering::Relaxed);
    }

    /// Sets the bytes done and the total bytes.
    pub(crate) fn set(&self, done_bytes: u64, all_bytes: u64) {
        self.done_bytes.store(done_bytes, Ordering::Relaxed);
        self.all_bytes.store(all_bytes, Ordering::Relaxed);
    }

    /// Whether it should stop.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        let all = self.all_bytes.load(Ordering::Relaxed);
        (all > 0).then(|| (self.done_bytes.load(Ordering::Relaxed), all))
    }
}

/// The progress at the last two moments, [`PACE`] apart.
#[derive(Debug, Default)]
struct Pace {
    before: Option<(Instant, u64)>,
    last: Option<(Instant, u64)>,
}

impl Pace {
    /// The time left at the rate since the earlier of them; none within the first second.
    fn left_s(&mut self, now: Instant, (done_bytes, all_bytes): (u64, u64)) -> Option<f64> {
        let (_, last) =
            (self.before.get_or_insert((now, done_bytes)), *self.last.get_or_insert((now, done_bytes)));
        if now.duration_since(last.0) >= PACE {
            (self.before, self.last) = (Some(last), Some((now, done_bytes)));
        }
        let (since, from_bytes) = self.before?;
        let (elapsed_s, done) =
            (now.duration_since(since).as_secs_f64(), done_bytes.saturating_sub(from_bytes));
        let left_bytes = all_bytes.saturating_sub(done_bytes);
        (elapsed_s >= 1.0 && done > 0).then(|| left_bytes as f64 * elapsed_s / done as f64)
    }
}

/// Does the work in another thread, and reports to the watch from this one. Returns the work's result, and
/// whether the watch asked to stop.
pub(crate) fn attended<T: Send>(
    watch: Watch,
    mut advance: Advance,
    work: impl FnOnce(&Gauge) -> Result<T> + Send,
) -> (Result<T>, bool) {
    let (gauge, mut pace) = (Gauge::default(), Pace::default());
    let (end, ended) = channel::<()>();
    let work = Mutex::new(Some(work));
    let do_it = |gauge: &Gauge| {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map_or_else(|| Err(Error::failed("a step was begun twice")), |work| work(gauge))
    };
    let outcome = std::thread::scope(|scope| {
        let (gauge, do_it) = (&gauge, &do_it);
        let worker = Builder::new().spawn_scoped(scope, move || {
            let _ends_with_the_work = end;
            do_it(gauge)
        });
        // If no thread can be started, the work is done without progress reports: what was built must be undone.
        let Ok(worker) = worker else { return do_it(gauge) };
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            advance.bytes = gauge.bytes();
            if gauge.uneven.load(Ordering::Relaxed) {
                pace = Pace::default();
            }
            let known = advance.bytes.filter(|_| !gauge.uneven.load(Ordering::Relaxed));
            advance.left_s = known.and_then(|bytes| pace.left_s(Instant::now(), bytes));
            if !watch(&advance) {
                gauge.stop.store(true, Ordering::Relaxed);
            }
        }
        worker.join().unwrap_or_else(|_| Err(Error::failed("a step panicked")))
    });
    (outcome, gauge.stopped())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_last_rate() {
        let (began, mut pace) = (Instant::now(), Pace::default());
        let mut left_s = |s: u64, done| pace.left_s(began + Duration::from_secs(s), (done, 1000));
        assert_eq!((left_s(0, 100), left_s(1, 100)), (None, None), "nothing was done yet");
        assert_eq!(left_s(2, 300), Some(7.0), "100 a second since the first measurement");
        left_s(10, 500);
        left_s(20, 510);
        assert_eq!(left_s(30, 520), Some(480.0), "1 a second in the last ten");
    }
}
