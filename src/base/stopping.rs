//! Stopping this process, as job control does, at a moment when none of its threads is ending.
//!
//! A thread that ends waits for the threads that `io_uring` started for it. If a signal stops those first,
//! the thread neither ends nor stops, and Linux (6.18) never tells the shell that its job has stopped.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// How long to wait for threads that are ending.
const ENDING_MAX: Duration = Duration::from_secs(2);

/// How often this process was about to stop, or was continued.
static STOPS: AtomicU64 = AtomicU64::new(0);

/// A number that changes whenever this process stops, or is continued.
pub fn stops() -> u64 {
    STOPS.load(Ordering::Relaxed)
}

static OURS: Threads = Threads { ending: Mutex::new(0), ended: Condvar::new() };

/// How many threads are ending.
#[derive(Debug)]
struct Threads {
    ending: Mutex<usize>,
    ended: Condvar,
}

impl Threads {
    fn ending(&self) -> MutexGuard<'_, usize> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread is ending, at most [`ENDING_MAX`]. None begins to end while the guard is held.
    fn none_ending(&self) -> MutexGuard<'_, usize> {
        let waited = self.ended.wait_timeout_while(self.ending(), ENDING_MAX, |ending| *ending > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn begin(&'static self) -> EndingThread {
        *self.ending() += 1;
        EndingThread(self)
    }
}

/// What a thread that used `io_uring` returns: it counts as ending until whoever joins it drops this.
#[derive(Debug)]
pub struct EndingThread(&'static Threads);

impl EndingThread {
    /// The calling thread is about to end; it waits here while the process is stopped.
    pub fn begin() -> Self {
        OURS.begin()
    }
}

impl Drop for EndingThread {
    fn drop(&mut self) {
        *self.0.ending() -= 1;
        self.0.ended.notify_all();
    }
}

/// No thread begins to end while this is held.
#[derive(Debug)]
pub struct NoneEnding(MutexGuard<'static, usize>);

impl NoneEnding {
    /// Waits until no thread is ending, but no longer than [`ENDING_MAX`].
    pub fn wait() -> Self {
        Self(OURS.none_ending())
    }

    /// Stops this process; returns once it is continued.
    ///
    /// # Errors
    /// If the kernel refuses the signal.
    pub fn stop_this_process(self) -> io::Result<()> {
        // Once for the window before the stop, and once for the one after.
        STOPS.fetch_add(1, Ordering::Relaxed);
        let stopped = kill_process(getpid(), Signal::STOP);
        STOPS.fetch_add(1, Ordering::Relaxed);
        drop(self.0);
        Ok(stopped?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const SHORT: Duration = Duration::from_millis(30);

    #[test]
    fn the_process_stops_once_threads_have_ended_and_none_ends_meanwhile() {
        static THREADS: Threads = Threads { ending: Mutex::new(0), ended: Condvar::new() };
        let ends = || {
            thread::sleep(SHORT);
            THREADS.begin()
        };
        let first = THREADS.begin();
        let second = thread::spawn(ends);
        let joining = thread::spawn(move || {
            drop(second.join());
            thread::sleep(SHORT);
            drop(first);
        });
        let held = THREADS.none_ending();
        joining.join().unwrap();
        assert_eq!(*held, 0);
        let late = thread::spawn(ends);
        thread::sleep(SHORT * 3);
        assert!(!late.is_finished());
        drop(held);
        drop(late.join().unwrap());
        assert_eq!(*THREADS.ending(), 0);
    }
}
