//! The monotonic clock, and precise sleep.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND_NS: u64 = crate::units::SECOND_NS;

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

/// Nanoseconds as a `timespec`.
pub fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 }
}

/// Sleeps until that time, to the precision of the thread's timer slack; a signal wakes it early.
pub fn sleep_until(ns: u64) {
    match clock_nanosleep_absolute(ClockId::Monotonic, &timespec(ns)) {
        Ok(()) | Err(Errno::INTR) => {}
        // Only an invalid time or clock could still fail, and the types rule those out.
        Err(e) => debug_assert!(false, "clock_nanosleep: {e}"),
    }
}

/// Makes the calling thread's sleeps end on time instead of up to 50 µs late (`PR_SET_TIMERSLACK`).
pub fn sleep_precisely() {
    // It does not fail on kernels that have it; otherwise sleeps end up to 50 µs late.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
