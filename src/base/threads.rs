//! Starting threads on a host that may allow no more of them.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread::{Builder, JoinHandle, Scope};
use std::time::Duration;

use crate::error::{Error, Result, describe};
use crate::short_list;

/// Number of items that [`each`] works on at a time.
const SIDE_BY_SIDE: usize = 8;

thread_local! {
    static REPORTED_ELSEWHERE: Cell<bool> = const { Cell::new(false) };
}

/// A panic of this thread ends neither the program nor its screen: whoever joins the thread reports it.
pub fn report_panics_elsewhere() {
    REPORTED_ELSEWHERE.set(true);
}

/// Whether somebody else reports a panic of this thread.
pub fn are_panics_reported_elsewhere() -> bool {
    REPORTED_ELSEWHERE.get()
}

/// CPU time of this thread: waiting for a processor costs nobody anything.
pub fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// The message of a thread's panic.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message").to_owned()
}

/// What to do if no more threads can be started.
pub const RAISE: &str =
    "raise the limit of processes and threads (`ulimit -u`, or pids.max of the cgroup), or use fewer threads";

/// A thread's work behind a pointer, so that starting threads is compiled once, not for each kind of work.
type Work<'scope, T> = Box<dyn FnOnce() -> T + Send + 'scope>;

/// Starts a thread.
///
/// # Errors
/// If the host allows no more; `purpose` follows "cannot start a thread to".
pub fn start<T: Send + 'static>(
    purpose: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let work: Work<T> = Box::new(work);
    Builder::new().spawn(work).map_err(|error| refused(purpose, &error))
}

/// Starts threads that share some work, and returns how many: if fewer than `count`, they still do all of it.
///
/// # Errors
/// If not even one can be started.
pub fn share<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (count, purpose): (usize, &str),
    work: impl Fn() + Clone + Send + 'scope,
) -> Result<usize> {
    for started in 0..count {
        let work: Work<'scope, ()> = Box::new(work.clone());
        match Builder::new().spawn_scoped(scope, work) {
            Ok(_) => {}
            Err(error) if started == 0 => return Err(refused(purpose, &error)),
            Err(_) => return Ok(started),
        }
    }
    Ok(count)
}

/// The results of work on each item, in order; several at a time, as many as the host allows.
pub fn each<T: Sync, R: Send>(items: &[T], purpose: &str, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let some = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        // This thread works too, so it does not matter if no other can be started.
        let _ = share(scope, (items.len().clamp(1, SIDE_BY_SIDE) - 1, purpose), some);
        some();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    short_list::sort_by_key(&mut done, |(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Checks that this many more threads can be started, for a library that aborts if they can't.
///
/// # Errors
/// If they can't be.
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code))] // RocksDB is what needs it
pub fn require(count: usize, purpose: &str) -> Result<()> {
    let gate = RwLock::new(());
    std::thread::scope(|scope| {
        let closed = gate.write();
        let wait = || drop(gate.read());
        let started = (0..count).try_for_each(|_| Builder::new().spawn_scoped(scope, wait).map(drop));
        drop(closed);
        started.map_err(|error| refused(purpose, &error))
    })
}

/// Why a thread could not be started, and what to do.
pub fn refused(purpose: &str, error: &io::Error) -> Error {
    Error::failed(format!("cannot start a thread to {purpose}: {}", describe(error))).hint(RAISE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_raise() {
        let error = refused("fill the target", &io::Error::from_raw_os_error(libc::EAGAIN));
        assert_eq!(
            error.what,
            "cannot start a thread to fill the target: resource temporarily unavailable (EAGAIN)"
        );
        assert!(error.hint.unwrap().contains("ulimit -u"));
    }

    #[test]
    fn all_threads_of_a_share_work() {
        let worked = AtomicUsize::new(0);
        let started = std::thread::scope(|scope| {
            share(scope, (3, "count"), || _ = worked.fetch_add(1, Ordering::Relaxed)).unwrap()
        });
        assert_eq!((started, worked.into_inner()), (3, 3));
        require(3, "count").unwrap();
    }

    #[test]
    fn each_keeps_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let slow_first = |item: &u64| {
            item.is_multiple_of(7).then(|| std::thread::sleep(std::time::Duration::from_micros(200)));
            item * 2
        };
        assert_eq!(each(&items, "count", slow_first), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(each(&items[..0], "count", slow_first).is_empty());
    }
}
