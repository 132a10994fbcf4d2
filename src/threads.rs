//! Starting threads on a host that may allow no more of them.

use std::io;
use std::sync::RwLock;
use std::thread::{Builder, JoinHandle, Scope};

use crate::error::{Error, Result, describe};

/// What to do where no more threads can be started.
pub const RAISE: &str =
    "raise the limit of processes and threads (`ulimit -u`, or pids.max of the cgroup), or use fewer threads";

/// Starts a thread.
///
/// # Errors
/// If the host allows no more; `purpose` follows "cannot start a thread to".
pub fn start<T: Send + 'static>(
    purpose: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(|error| refused(purpose, &error))
}

/// Starts threads that share some work, and returns how many: fewer than `count` do all of it, too.
///
/// # Errors
/// If not even one can be started.
pub fn share<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (count, purpose): (usize, &str),
    work: impl Fn() + Clone + Send + 'scope,
) -> Result<usize> {
    for started in 0..count {
        match Builder::new().spawn_scoped(scope, work.clone()) {
            Ok(_) => {}
            Err(error) if started == 0 => return Err(refused(purpose, &error)),
            Err(_) => return Ok(started),
        }
    }
    Ok(count)
}

/// Finds out whether that many more threads can be started, for a library that aborts where they can't.
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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
}
