//! Threads that answer the operator get priority over the load, which may have far more threads than there
//! are processors.
#![allow(unsafe_code)] // the scheduler's attributes, which rustix does not have

/// Above everything at the default priority, below anything an administrator puts higher.
const NICE: i32 = -10;
/// A short slice is served early: this is the shortest that the kernel grants (Linux 6.12; older ones ignore
/// it). A thread's total share of time stays the same.
const SLICE_NS: u64 = 100_000;

/// Makes the calling thread run soon after it wakes; the threads that it starts are ordinary ones.
///
/// The higher priority needs root or `RLIMIT_NICE`; without these, there is only the short slice. The
/// operator's choice for the whole process (`nice`, `chrt`) is kept.
pub fn raise_thread_priority() {
    // SAFETY: the call takes only numbers.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        return;
    }
    let Ok(nice) = rustix::process::getpriority_process(None) else { return };
    if nice < 0 {
        return;
    }
    let wished = if nice == 0 { NICE } else { nice };
    // If neither is possible, the thread is an ordinary one, as slow to answer as any other.
    let _ = schedule(wished) || schedule(nice);
}

fn schedule(nice: i32) -> bool {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER.cast_unsigned(),
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SLICE_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads the structure, and its size from the structure itself.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    #[test]
    fn threads_of_one_that_answers_promptly_are_ordinary() {
        std::thread::spawn(|| {
            let before = nice();
            raise_thread_priority();
            assert!(nice() <= before);
            let child = std::thread::spawn(nice).join().unwrap();
            assert_eq!(child, before);
        })
        .join()
        .unwrap();
    }
}
