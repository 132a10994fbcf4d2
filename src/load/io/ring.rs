//! A ring shared with the kernel, waited on or polled as configured.
//!
//! | completion | submission | how a worker waits |
//! |---|---|---|
//! | interrupt | call | one system call that submits and sleeps |
//! | interrupt | sqpoll | no call to submit (one to wake the kernel's thread), one to sleep |
//! | iopoll | call | one system call per poll of the device's queue |
//! | iopoll | sqpoll | the kernel's thread polls, uncounted; the worker sleeps |
#![allow(unsafe_code)] // entries and registered buffers are addresses: each place states why they are valid

use std::os::fd::RawFd;

use io_uring::types::{SubmitArgs, TimeoutFlags, Timespec};
use io_uring::{Builder, IoUring, cqueue, opcode, squeue};

use super::backend::{Done, Setup, Wait};
use super::buffers::Buffers;
use super::clock;
use super::parts::Parts;
use super::polls::rest;
use crate::error::{Error, Result, describe};
use crate::meter::counts::counters::Polls;
use crate::settings::RingSetup;
use crate::units::SECOND_NS;

/// User data of the timer's completion; slots are smaller.
const TIMER: u64 = u64::MAX;
/// Has the kernel post completions (`linux/io_uring.h`).
const IORING_ENTER_GETEVENTS: u32 = 1;

/// One ring.
struct Ring<S: squeue::EntryMarker, C: cqueue::EntryMarker> {
    io_uring: IoUring<S, C>,
    /// Entries that are pushed and not yet complete.
    outstanding: u32,
    /// Whether the worker itself polls.
    worker_polls: bool,
    /// Whether the kernel's thread submits.
    sqpoll: bool,
    sleep_ns: u64,
    polls: Polls,
    timer: Timer,
}

/// A timeout entry of the ring. It stays armed while completions come and go. A timeout per wait would be
/// armed and cancelled each time, which costs more than an I/O wherever a hypervisor keeps the time.
struct Timer {
    /// When it expires, if it is armed.
    at_ns: Option<u64>,
    /// The same, where the kernel reads it.
    at: Box<Timespec>,
    /// Whether this ring can use it.
    works: bool,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Ring<S, C> {
    /// A ring for `entries` concurrent entries, polled as the setup says.
    fn polled(entries: u32, setup: &Setup) -> Result<Self> {
        let io_uring = build(entries.next_power_of_two(), setup).map_err(|e| {
            let hint = if e.raw_os_error() == Some(libc::ENOMEM) {
                "raise RLIMIT_MEMLOCK (ulimit -l), use less depth or fewer threads, or choose libaio"
            } else {
                "check kernel.io_uring_disabled and the container's seccomp profile, or choose libaio"
            };
            Error::input(format!("cannot set up an io_uring{}: {}", asked(setup), describe(&e))).hint(hint)
        })?;
        Ok(Self {
            io_uring,
            outstanding: 0,
            worker_polls: setup.iopoll && setup.sqpoll.is_none(),
            sqpoll: setup.sqpoll.is_some(),
            sleep_ns: setup.poll_sleep_ns,
            polls: Polls::default(),
            // With SQPOLL, the kernel's thread arms it late; IOPOLL rings don't take it at all.
            timer: Timer { at_ns: None, at: Box::default(), works: !setup.iopoll && setup.sqpoll.is_none() },
        })
    }

    /// A ring for `entries` concurrent entries, completed by interrupt.
    fn interrupted(entries: u32, setup: &Setup) -> Result<Self> {
        Self::polled(entries, &Setup { iopoll: false, sqpoll: None, ..setup.clone() })
    }

    /// Adds an entry, to be submitted by the next [`Self::advance`].
    ///
    /// # Safety
    /// Memory that the entry points to must be valid, and used by nothing else, until the entry completes.
    #[inline]
    unsafe fn push(&mut self, entry: &S) {
        // SAFETY: as the caller has promised.
        while unsafe { self.io_uring.submission().push(entry) }.is_err() {
            self.make_room();
        }
        self.outstanding += 1;
    }

    /// The queue has room for all entries that can be outstanding. But the kernel's thread frees entries only
    /// after a batch: by then, some of that batch may have completed and been pushed again.
    #[cold]
    fn make_room(&self) {
        debug_assert!(self.sqpoll, "the ring has room for all that can be outstanding");
        // An error will show again when the entries are submitted.
        let _ = self.io_uring.submit();
        let _ = self.io_uring.submitter().squeue_wait();
    }

    /// Submits what was pushed, waits for that many completions or until the given time, and passes the user
    /// data and result of each completion to `each`.
    ///
    /// # Errors
    /// The errno of a failure of the ring itself.
    fn advance(&mut self, wait: Wait, each: impl FnMut(u64, i32)) -> std::result::Result<(), i32> {
        let until_ns = wait.until_ns.unwrap_or(u64::MAX);
        let wakes = self.timer.at_ns.is_some_and(|at_ns| at_ns <= until_ns);
        if self.outstanding == 0 && !wakes {
            clock::sleep_until(wait.until_ns.unwrap_or(0));
            return Ok(());
        }
        let want = wait.completions.min(self.outstanding);
        if self.worker_polls {
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
        // With SQPOLL, completions that are already there need no system call.
        let is_there = self.sqpoll && self.io_uring.completion().len() >= want as usize;
        match until_ns {
            _ if is_there => settled(self.io_uring.submit())?,
            None => settled(self.io_uring.submit_and_wait(want as usize))?,
            Some(until_ns) => self.sleep_until(want, until_ns)?,
        }
        self.take(each);
        Ok(())
    }

    /// Submits and waits, but not beyond `until_ns`.
    fn sleep_until(&mut self, want: u32, until_ns: u64) -> std::result::Result<(), i32> {
        let left_ns = until_ns.saturating_sub(clock::now_ns());
        let is_set = self.timer.at_ns.is_some_and(|at_ns| at_ns <= until_ns);
        if !self.sqpoll && (left_ns == 0 || !is_set) {
            // Arming a timer can take longer than an I/O. Submit first: I/O done at once needs no timer.
            self.hand_over()?;
            if left_ns == 0 || self.io_uring.completion().len() >= want.max(1) as usize {
                return Ok(());
            }
        }
        if self.set_timer(until_ns) {
            return settled(self.io_uring.submit_and_wait(want.max(1) as usize));
        }
        let left = timespec(left_ns);
        let arguments = SubmitArgs::new().timespec(&left);
        settled(self.io_uring.submitter().submit_with_args(want as usize, &arguments))
    }

    /// Submits what was pushed, if anything, and has the kernel post completions without waiting for them.
    fn hand_over(&mut self) -> std::result::Result<(), i32> {
        let pushed = self.io_uring.submission().len() as u32;
        let submitter = self.io_uring.submitter();
        // SAFETY: no argument is passed.
        let entered = unsafe { submitter.enter::<libc::sigset_t>(pushed, 0, IORING_ENTER_GETEVENTS, None) };
        settled(entered)
    }

    /// Whether the timer will expire by `at_ns`; arms it, with the next submission, if it is not armed. One
    /// that expires earlier is left: waking once for nothing is cheaper than changing it with each I/O.
    fn set_timer(&mut self, at_ns: u64) -> bool {
        let timer = &mut self.timer;
        if timer.at_ns.is_some() || !timer.works {
            return timer.at_ns.is_some_and(|set_ns| set_ns <= at_ns);
        }
        *timer.at = timespec(at_ns);
        let entry = opcode::Timeout::new(&raw const *timer.at).flags(TimeoutFlags::ABS).build();
        // SAFETY: the boxed time lives as long as the ring, and is changed only while no timer is armed.
        let pushed = unsafe { self.io_uring.submission().push(&entry.user_data(TIMER).into()) };
        timer.at_ns = pushed.is_ok().then_some(at_ns);
        pushed.is_ok()
    }

    /// Polls the device's queue until enough is complete.
    fn look_until(
        &mut self,
        want: u32,
        until_ns: Option<u64>,
        mut each: impl FnMut(u64, i32),
    ) -> std::result::Result<(), i32> {
        let mut taken = 0;
        let mut from_ns = clock::now_ns();
        loop {
            // On a polled ring, even a call that does not wait polls once.
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
            if entry.user_data() == TIMER {
                self.timer.at_ns = None;
                self.timer.works &= entry.result() == -libc::ETIME;
                continue;
            }
            each(entry.user_data(), entry.result());
            taken += 1;
        }
        self.outstanding -= taken;
        taken
    }
}

/// A worker's rings: one, and if that is polled, an ordinary one for flushes.
///
/// A polled ring refuses fsync. It accepts a flush command, which moves no data, but can't poll for it: the
/// flush completes by interrupt, and up to at least Linux 6.3 the kernel then stores the completion function
/// where polling expects its cookie, which kills the polling thread in the kernel.
pub struct Rings<S: squeue::EntryMarker, C: cqueue::EntryMarker> {
    ring: Ring<S, C>,
    flushes: Option<Ring<S, C>>,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Rings<S, C> {
    /// Rings for `entries` concurrent entries that move data, and for the setup's flushes.
    pub fn new(entries: u32, setup: &Setup) -> Result<Self> {
        let apart = setup.iopoll && setup.flush_slots > 0;
        Ok(Self {
            ring: Ring::polled(entries + setup.flush_slots, setup)?,
            flushes: apart.then(|| Ring::interrupted(setup.flush_slots, setup)).transpose()?,
        })
    }

    /// Registers the files; from here on, entries refer to them by index.
    pub fn register_files(&self, files: &[RawFd]) -> Result<()> {
        let mut rings = std::iter::once(&self.ring).chain(&self.flushes);
        let register = rings.try_for_each(|ring| ring.io_uring.submitter().register_files(files));
        register.map_err(|e| Error::failed(format!("cannot register the files: {}", describe(&e))))
    }

    /// Registers the buffers in pieces of `piece_bytes`. They may be freed before the rings only if nothing
    /// is outstanding.
    pub fn register_buffers(&self, buffers: &mut Buffers, slots: u32, piece_bytes: usize) -> Result<()> {
        let pieces = buffers.page_bytes() / piece_bytes;
        let iovec = |n: usize| {
            let (slot, piece) = (n / pieces, n % pieces);
            let page = buffers.get(slot as u32);
            libc::iovec { iov_base: page[piece * piece_bytes..].as_mut_ptr().cast(), iov_len: piece_bytes }
        };
        let iovecs: Vec<_> = (0..slots as usize * pieces).map(iovec).collect();
        // SAFETY: the kernel pins registered memory, and the buffers are freed only while nothing is
        // outstanding, see `drop` of their owners.
        unsafe { self.ring.io_uring.submitter().register_buffers(&iovecs) }.map_err(|e| {
            Error::input(format!("cannot register the buffers: {}", describe(&e)))
                .hint("raise RLIMIT_MEMLOCK (ulimit -l), or set io.registered_buffers = false")
        })
    }

    /// Adds an entry, a flush or one that moves data, to be submitted by the next [`Self::advance`].
    ///
    /// # Safety
    /// As for [`Ring::push`].
    #[inline]
    pub unsafe fn push(&mut self, is_flush: bool, entry: &S) {
        let ring = match &mut self.flushes {
            Some(flushes) if is_flush => flushes,
            _ => &mut self.ring,
        };
        // SAFETY: as the caller has promised.
        unsafe { ring.push(entry) };
    }

    /// Like [`Ring::advance`].
    pub fn advance(&mut self, wait: Wait, each: impl FnMut(u64, i32)) -> std::result::Result<(), i32> {
        match &mut self.flushes {
            // A flush starts while no write is outstanding, and nothing else starts until it ends.
            Some(flushes) if flushes.outstanding > 0 => flushes.advance(wait, each),
            _ => self.ring.advance(wait, each),
        }
    }

    /// Like [`Self::advance`], for operations of several entries: an operation counts once all of its entries
    /// have completed. `moved` turns an entry's result into bytes, or a negative errno.
    pub fn advance_parts(
        &mut self,
        wait: Wait,
        parts: &mut Parts,
        done: &mut Vec<Done>,
        moved: impl Fn(i32) -> i32,
    ) -> std::result::Result<(), i32> {
        let wanted = done.len() + wait.completions as usize;
        loop {
            // At least this many entries are left.
            let missing = wanted.saturating_sub(done.len()) as u32;
            self.advance(Wait { completions: missing, ..wait }, |slot, result| {
                done.extend(parts.over(slot as u32, moved(result)));
            })?;
            let is_time = wait.until_ns.is_some_and(|until_ns| clock::now_ns() >= until_ns);
            if done.len() >= wanted || is_time || self.outstanding() == 0 {
                return Ok(());
            }
        }
    }

    /// Entries that are pushed and not yet complete.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.ring.outstanding + self.flushes.as_ref().map_or(0, |ring| ring.outstanding)
    }

    /// The polls so far.
    pub fn polls(&self) -> Polls {
        self.ring.polls
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec::new().sec(ns / SECOND_NS).nsec((ns % SECOND_NS) as u32)
}

/// A timeout, a signal or a lack of room is no failure: the worker reaps completions and tries again.
fn settled(entered: std::io::Result<usize>) -> std::result::Result<(), i32> {
    match entered.map_err(|e| e.raw_os_error().unwrap_or(libc::EIO)) {
        Ok(_) | Err(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Builds the ring as configured, for a single issuer if the kernel supports that (6.0).
fn build<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    entries: u32,
    setup: &Setup,
) -> std::io::Result<IoUring<S, C>> {
    let mut spared = asked_of::<S, C>(setup);
    spared.setup_single_issuer();
    // With SQPOLL, the kernel's thread completes what it submitted.
    if setup.ring_setup == RingSetup::Default && setup.sqpoll.is_none() {
        spared.setup_coop_taskrun();
    }
    spared.build(entries).or_else(|_| asked_of(setup).build(entries))
}

fn asked_of<S: squeue::EntryMarker, C: cqueue::EntryMarker>(setup: &Setup) -> Builder<S, C> {
    let mut builder = IoUring::<S, C>::builder();
    if setup.iopoll {
        builder.setup_iopoll();
    }
    match setup.ring_setup {
        RingSetup::Default | RingSetup::Plain => {}
        RingSetup::Coop => _ = builder.setup_coop_taskrun(),
        RingSetup::Defer => _ = builder.setup_single_issuer().setup_defer_taskrun(),
    }
    if let Some((idle_ms, cpu)) = setup.sqpoll {
        builder.setup_sqpoll(idle_ms);
        cpu.map(|cpu| builder.setup_sqpoll_cpu(cpu).clone());
    }
    builder
}

/// The polling that was asked for, in words.
fn asked(setup: &Setup) -> &'static str {
    match (setup.iopoll, setup.sqpoll.is_some()) {
        (false, false) => "",
        (true, false) => " with polled completions",
        (false, true) => " with a polled submission queue",
        (true, true) => " polled from both sides",
    }
}
