//! A thread's I/O priority: it holds for everything the thread submits by system calls, through `libaio` and
//! through rings, including those that a kernel thread polls.
#![allow(unsafe_code)] // ioprio_set, which neither libc nor rustix wraps

use crate::error::{Error, Result, describe};
use crate::settings::{Named as _, Prio};

/// `IOPRIO_WHO_PROCESS` of `linux/ioprio.h`: 0 is the calling thread.
const WHO_THREAD: libc::c_long = 1;
/// The class is stored in the bits above the level.
const CLASS_SHIFT: libc::c_long = 13;

/// Class and level of `linux/ioprio.h`.
fn of(prio: Prio) -> Option<libc::c_long> {
    let (class, level) = match prio {
        Prio::None => return None,
        Prio::Realtime => (1, 4),
        Prio::High => (2, 0),
        Prio::Low => (2, 7),
        Prio::Idle => (3, 0),
    };
    Some(class << CLASS_SHIFT | level)
}

/// Sets the I/O priority of the calling thread and of the threads that it starts.
///
/// # Errors
/// Input, if the kernel refuses it.
pub(super) fn set(prio: Prio) -> Result<()> {
    let Some(value) = of(prio) else { return Ok(()) };
    // SAFETY: the call takes numbers only.
    if unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_THREAD, 0, value) } == 0 {
        return Ok(());
    }
    let why = describe(&std::io::Error::last_os_error());
    Err(Error::input(format!("cannot give I/Os the priority {}: {why}", prio.name()))
        .hint("realtime requires root"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_thread() -> libc::c_long {
        // SAFETY: the call takes numbers only.
        unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_THREAD, 0) }
    }

    #[test]
    fn a_thread_and_those_that_it_starts_have_the_priority() {
        let low = || {
            set(Prio::Low).unwrap();
            (of_thread(), std::thread::spawn(of_thread).join().unwrap())
        };
        let expected = 2 << CLASS_SHIFT | 7;
        assert_eq!(std::thread::spawn(low).join().unwrap(), (expected, expected));
        let before = of_thread();
        set(Prio::None).unwrap();
        assert_eq!(of_thread(), before);
    }
}
