//! A ring shared with the kernel: made as it is asked for, and waited on or polled.
//!
//! | completion | submission | what a worker's wait is |
//! |---|---|---|
//! | interrupt | call | one system call that hands over and sleeps |
//! | interrupt | sqpoll | no call to hand over (one to wake the kernel's thread), one to sleep |
//! | iopoll | call | a system call a look: the kernel looks at the device's queue once |
//! | iopoll | sqpoll | the kernel's thread looks; the worker sleeps. Its looks are not counted anywhere |

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, Submitter, cqueue, squeue};

use super::polls::{Polls, rest};
use super::{Setup, Wait, clock};
use crate::error::{Error, Result, describe};
use crate::units::SECOND_NS;

/// A ring of a worker's own.
pub struct Ring<S: squeue::EntryMarker, C: cqueue::EntryMarker> {
    io_uring: IoUring<S, C>,
    /// Entries that are pushed and not complete.
    outstanding: u32,
    /// The worker looks itself.
    looks: bool,
    /// The kernel's thread hands over.
    sqpoll: bool,
    sleep_ns: u64,
    polls: Polls,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Ring<S, C> {
    /// A ring for so many entries at once, polled as the setup asks.
    pub fn polled(entries: u32, setup: &Setup) -> Result<Self> {
        let io_uring = build(entries.next_power_of_two(), setup).map_err(|e| {
            Error::input(format!("cannot set up an io_uring{}: {}", asked(setup), describe(&e)))
                .hint("check kernel.io_uring_disabled and the container's seccomp profile, or choose libaio")
        })?;
        Ok(Self {
            io_uring,
            outstanding: 0,
            looks: setup.iopoll && setup.sqpoll.is_none(),
            sqpoll: setup.sqpoll.is_some(),
            sleep_ns: setup.poll_sleep_ns,
            polls: Polls::default(),
        })
    }

    /// A ring for so many entries at once that interrupts tell of.
    pub fn interrupted(entries: u32, setup: &Setup) -> Result<Self> {
        Self::polled(entries, &Setup { iopoll: false, sqpoll: None, ..setup.clone() })
    }

    /// To register files and buffers with.
    pub fn submitter(&self) -> Submitter<'_> {
        self.io_uring.submitter()
    }

    /// Entries that are pushed and not complete.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// What its looks have seen.
    pub fn polls(&self) -> Polls {
        self.polls
    }

    /// Adds an entry, to be handed over by the next [`Self::advance`].
    ///
    /// # Safety
    /// What the entry points to must be valid, and the entry's alone, until its completion.
    #[allow(unsafe_code)] // the caller vouches for the entry
    #[inline]
    pub unsafe fn push(&mut self, entry: &S) {
        // SAFETY: as the caller has promised.
        let pushed = unsafe { self.io_uring.submission().push(entry) };
        debug_assert!(pushed.is_ok(), "the ring has room for all that can be outstanding");
        self.outstanding += 1;
    }

    /// Hands over what is pushed, waits for so many entries or until the time has come, and tells
    /// each that is complete: its user data and its result.
    ///
    /// # Errors
    /// The errno of a failure of the ring itself.
    pub fn advance(&mut self, wait: Wait, each: impl FnMut(u64, i32)) -> std::result::Result<(), i32> {
        if self.outstanding == 0 {
            clock::sleep_until(wait.until_ns.unwrap_or(0));
            return Ok(());
        }
        let want = wait.completions.min(self.outstanding);
        if self.looks {
            self.look_until(want, wait.until_ns, each)
        } else {
            self.sleep(want, wait.until_ns, each)
        }
    }

    fn sleep(
        &mut self,
        want: u32,
        until_ns: Option<u64>,
        each: impl FnMut(u64, i32),
    ) -> std::result::Result<(), i32> {
        // Where the kernel's thread hands over, what is there already costs no call.
        let is_there = self.sqpoll && self.io_uring.completion().len() >= want as usize;
        match until_ns {
            _ if is_there => settled(self.io_uring.submit())?,
            None => settled(self.io_uring.submit_and_wait(want as usize))?,
            Some(until_ns) => {
                let left_ns = until_ns.saturating_sub(clock::now_ns());
                let left = Timespec::new().sec(left_ns / SECOND_NS).nsec((left_ns % SECOND_NS) as u32);
                let arguments = SubmitArgs::new().timespec(&left);
                settled(self.io_uring.submitter().submit_with_args(want as usize, &arguments))?;
            }
        }
        self.take(each);
        Ok(())
    }

    /// Looks at the device's queue until enough is there.
    fn look_until(
        &mut self,
        want: u32,
        until_ns: Option<u64>,
        mut each: impl FnMut(u64, i32),
    ) -> std::result::Result<(), i32> {
        let mut taken = 0;
        let mut from_ns = clock::now_ns();
        loop {
            // Of a polled ring also a call that waits for nothing looks once.
            settled(self.io_uring.submit_and_wait(0))?;
            let found = self.take(&mut each);
            taken += found;
            let now_ns = clock::now_ns();
            self.polls.count(found, now_ns - from_ns);
            if taken >= want || until_ns.is_some_and(|until_ns| now_ns >= until_ns) {
                return Ok(());
            }
            let rests = found == 0 && self.sleep_ns > 0;
            from_ns = if rests { rest(now_ns, self.sleep_ns, until_ns) } else { now_ns };
        }
    }

    fn take(&mut self, mut each: impl FnMut(u64, i32)) -> u32 {
        let mut taken = 0;
        for entry in self.io_uring.completion() {
            let entry: cqueue::Entry = entry.into();
            each(entry.user_data(), entry.result());
            taken += 1;
        }
        self.outstanding -= taken;
        taken
    }
}

/// Timed out, interrupted, or no room for now: what is complete is looked at, and the worker comes
/// again.
fn settled(entered: std::io::Result<usize>) -> std::result::Result<(), i32> {
    match entered.map_err(|e| e.raw_os_error().unwrap_or(libc::EIO)) {
        Ok(_) | Err(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// A ring for one issuing thread, with what spares interrupts where the kernel knows it (6.0).
fn build<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    entries: u32,
    setup: &Setup,
) -> std::io::Result<IoUring<S, C>> {
    let mut spared = asked_of::<S, C>(setup);
    spared.setup_single_issuer();
    if setup.sqpoll.is_none() {
        spared.setup_coop_taskrun();
    }
    spared.build(entries).or_else(|_| asked_of(setup).build(entries))
}

fn asked_of<S: squeue::EntryMarker, C: cqueue::EntryMarker>(setup: &Setup) -> Builder<S, C> {
    let mut builder = IoUring::<S, C>::builder();
    if setup.iopoll {
        builder.setup_iopoll();
    }
    if let Some((idle_ms, cpu)) = setup.sqpoll {
        builder.setup_sqpoll(idle_ms);
        cpu.map(|cpu| builder.setup_sqpoll_cpu(cpu).clone());
    }
    builder
}

/// How it was to be polled, in words.
fn asked(setup: &Setup) -> &'static str {
    match (setup.iopoll, setup.sqpoll.is_some()) {
        (false, false) => "",
        (true, false) => " with polled completions",
        (false, true) => " with a polled submission queue",
        (true, true) => " polled from both sides",
    }
}
