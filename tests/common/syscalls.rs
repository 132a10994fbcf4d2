//! Counts certain system calls of a thread and its children, by thread, without a debugger.
//!
//! A seccomp filter hands each of these calls to a supervisor (the calling thread), which counts it and lets
//! it continue. This needs no privilege, and a filter applies only to one thread and its children, so nothing
//! else in the process notices.
#![allow(unsafe_code)] // the filter and the supervisor's calls: each explains why it is sound

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// More than all tests of a program start altogether.
const THREADS: usize = 1 << 16;

/// Counts by thread, without locks or allocations.
pub struct PerThread([(AtomicI32, AtomicU64); THREADS]);

impl PerThread {
    // Only used as a static: nothing is on a stack.
    #[allow(clippy::large_stack_arrays)]
    pub const fn new() -> Self {
        Self([const { (AtomicI32::new(0), AtomicU64::new(0)) }; THREADS])
    }

    fn of(&self, thread: i32) -> Option<&AtomicU64> {
        let first = thread.unsigned_abs() as usize;
        (first..first + THREADS).map(|at| &self.0[at % THREADS]).find_map(|(owner, count)| {
            let taken = owner.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
            (taken.is_ok() || taken == Err(thread)).then_some(count)
        })
    }

    /// Counts a call by that thread; if there are more threads than slots, the call is not counted.
    pub fn add(&self, thread: i32) {
        if let Some(count) = self.of(thread) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn get(&self, thread: i32) -> u64 {
        self.of(thread).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// Runs that in a thread of its own, counting these system calls of that thread and its children; or reports
/// why this process can't.
pub fn counted<R: Send>(
    calls: &[libc::c_long],
    counts: &PerThread,
    run: impl FnOnce() -> R + Send,
) -> Result<R, String> {
    const NONE_YET: RawFd = -1;
    let listener = AtomicI32::new(NONE_YET);
    thread::scope(|scope| {
        let counted = scope.spawn(|| {
            let filter = filter(calls).map_err(|error| error.to_string())?;
            // Published without a wake-up, which would itself be a call that waits for the supervisor.
            listener.store(filter.as_raw_fd(), Ordering::Release);
            Ok((run(), filter))
        });
        loop {
            match listener.load(Ordering::Acquire) {
                NONE_YET if counted.is_finished() => break,
                NONE_YET => thread::sleep(Duration::from_millis(1)),
                // A thread that is ending still makes calls: wait until all are gone.
                listener if supervise(listener, counts) => {}
                _ => break,
            }
        }
        let ended = counted.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map(|(result, _)| result)
    })
}

/// Filters these calls of the calling thread and of threads that it starts from now on.
fn filter(calls: &[libc::c_long]) -> std::io::Result<OwnedFd> {
    let statement = |code: u32, k: u32, yes: usize| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: u8::try_from(yes).unwrap(),
        jf: 0,
        k,
    };
    // The call's number is the first field of the filter's input.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, call) in calls.iter().enumerate() {
        let number = u32::try_from(*call).unwrap();
        program.push(statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number, calls.len() - at));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0));
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF, 0));
    let program =
        libc::sock_fprog { len: u16::try_from(program.len()).unwrap(), filter: program.as_mut_ptr() };
    // SAFETY: the filter outlives the call, which returns a file descriptor of our own or an error.
    let listener = unsafe {
        // A process that can gain no privileges may install a filter without any.
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    if listener < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as RawFd) })
}

/// Waits for a filtered call, counts it and lets it continue; false once no thread is left (reported since
/// Linux 5.9).
fn supervise(listener: RawFd, counts: &PerThread) -> bool {
    let mut asked = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
    // SAFETY: both structures are plain numbers that the kernel fills, and have the size it expects: that of
    // Linux 5.5, the first that lets calls continue.
    unsafe {
        libc::poll(&raw mut asked, 1, -1);
        if asked.revents & libc::POLLIN == 0 {
            return asked.revents == 0;
        }
        let mut call = MaybeUninit::<libc::seccomp_notif>::zeroed();
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, call.as_mut_ptr()) != 0 {
            return true;
        }
        let call = call.assume_init();
        counts.add(call.pid.cast_signed());
        let go_on = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const go_on);
    }
    const { assert!(size_of::<libc::seccomp_notif>() == 80) };
    true
}
