//! How an interface polls.

use super::clock;
use crate::meter::counts::counters::Polls;

/// Polls until `poll` has found enough or time is up, and sleeps `sleep_ns` after each empty poll; 0 means no
/// sleep. `poll` is given the time, and returns how many completions it found and whether that is enough.
///
/// # Errors
/// The first error of `poll`.
#[inline]
pub fn poll_until<E>(
    polls: &mut Polls,
    sleep_ns: u64,
    until_ns: Option<u64>,
    mut poll: impl FnMut(u64) -> Result<(u32, bool), E>,
) -> Result<(), E> {
    let mut from_ns = clock::now_ns();
    loop {
        let (found, enough) = poll(from_ns)?;
        let now_ns = clock::now_ns();
        polls.count(found, now_ns - from_ns);
        if enough || until_ns.is_some_and(|until_ns| now_ns >= until_ns) {
            return Ok(());
        }
        from_ns = now_ns;
        if found == 0 && sleep_ns > 0 {
            from_ns = rest(now_ns, sleep_ns, until_ns);
        } else if found == 0 {
            std::hint::spin_loop();
        }
    }
}

/// Sleeps between two polls, but not past the time until which the worker waits. Returns when it woke.
pub fn rest(now_ns: u64, sleep_ns: u64, until_ns: Option<u64>) -> u64 {
    let wake_ns = now_ns + sleep_ns;
    clock::sleep_until(until_ns.map_or(wake_ns, |until_ns| wake_ns.min(until_ns)));
    clock::now_ns()
}
