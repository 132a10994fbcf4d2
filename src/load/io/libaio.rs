//! `libaio`: the kernel's older asynchronous interface, by its system calls (`linux/aio_abi.h`).
//!
//! Through the page cache it blocks in `io_submit`: it is asynchronous only for direct I/O.
#![allow(unsafe_code)] // raw system calls: each states why its pointers are valid

use std::ptr;
use std::sync::Arc;

use super::backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use super::buffers::Buffers;
use super::clock;
use super::files::Files;
use crate::error::{Error, Result, describe};
use crate::units::SECOND_NS;

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FDSYNC: u16 = 3;

/// `struct iocb` of `linux/aio_abi.h`, little-endian.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_fd: u32,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// A worker's context.
pub struct Libaio {
    context: Context,
    buffers: Buffers,
    files: Arc<Files>,
    /// One for each slot: the kernel reads it during `io_submit` only.
    iocbs: Box<[Iocb]>,
    queued: Vec<u32>,
    pointers: Vec<*mut Iocb>,
    events: Box<[IoEvent]>,
    outstanding: u32,
}

// SAFETY: the pointers point into `iocbs`, which moves along with the value that owns it.
unsafe impl Send for Libaio {}

/// An `aio_context_t`; destroying it waits for outstanding I/O.
struct Context(libc::c_ulong);

impl Context {
    fn new(events: u32) -> std::io::Result<Self> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: io_setup writes one context into the variable.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, libc::c_long::from(events), &raw mut context) };
        if made == 0 { Ok(Self(context)) } else { Err(std::io::Error::last_os_error()) }
    }

    fn submit(&self, iocbs: &[*mut Iocb]) -> std::result::Result<usize, i32> {
        // SAFETY: the pointers are to iocbs that live through the call, and their buffers live until the
        // completion: `Libaio` owns both and drops the context first.
        let n = unsafe {
            libc::syscall(libc::SYS_io_submit, self.0, iocbs.len() as libc::c_long, iocbs.as_ptr())
        };
        usize::try_from(n).map_err(|_| errno())
    }

    fn events(
        &self,
        least: u32,
        into: &mut [IoEvent],
        left_ns: Option<u64>,
    ) -> std::result::Result<usize, i32> {
        let timeout = left_ns.map(|ns| libc::timespec {
            // musl's `time_t` is deprecated in libc.
            tv_sec: (ns / SECOND_NS) as _,
            tv_nsec: (ns % SECOND_NS) as libc::c_long,
        });
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the kernel writes at most `into.len()` events into the slice and reads the timeout.
        let n = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.0,
                libc::c_long::from(least),
                into.len() as libc::c_long,
                into.as_mut_ptr(),
                timeout,
            )
        };
        usize::try_from(n).map_err(|_| errno())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was made by io_setup and is destroyed once.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

impl Queue for Libaio {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.get(slot)
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        let flush = op.kind == OpKind::Flush;
        let opcode = match op.kind {
            OpKind::Read => IOCB_CMD_PREAD,
            OpKind::Write | OpKind::WriteDurable => IOCB_CMD_PWRITE,
            OpKind::Flush => IOCB_CMD_FDSYNC,
        };
        // A flush takes no buffer, length, offset or flags, and is refused with any of them.
        self.iocbs[op.slot as usize] = Iocb {
            data: u64::from(op.slot),
            opcode,
            fd: self.files.raw(op.file).cast_unsigned(),
            rw_flags: if flush { 0 } else { self.files.rw_flags(op.kind).bits().cast_signed() },
            buffer: if flush { 0 } else { self.buffers.address(op.slot) as u64 },
            bytes: if flush { 0 } else { self.buffers.page_bytes() as u64 },
            offset: if flush { 0 } else { op.offset_bytes.cast_signed() },
            ..Iocb::default()
        };
        self.queued.push(op.slot);
    }
}

impl Backend for Libaio {
    type Members = Files;

    fn open_members(request: &OpenRequest) -> Result<Files> {
        Files::open(request)
    }

    fn open(files: &Arc<Files>, setup: &Setup) -> Result<Self> {
        let slots = setup.slots + setup.flush_slots;
        let context = Context::new(slots).map_err(|e| {
            Error::input(format!("cannot set up libaio: {}", describe(&e)))
                .hint("check fs.aio-max-nr against fs.aio-nr, and the container's seccomp profile")
        })?;
        Ok(Self {
            context,
            buffers: Buffers::new(setup.slots, setup.page_bytes),
            files: files.clone(),
            iocbs: vec![Iocb::default(); slots as usize].into(),
            queued: Vec::with_capacity(slots as usize),
            pointers: Vec::with_capacity(slots as usize),
            events: vec![IoEvent::default(); slots as usize].into(),
            outstanding: 0,
        })
    }

    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        if self.queued.is_empty() && self.outstanding == 0 {
            clock::sleep_until(wait.until_ns.unwrap_or(0));
            return Ok(());
        }
        self.submit(done);
        if self.outstanding == 0 {
            return Ok(());
        }
        let least = wait.completions.saturating_sub(done.len() as u32).min(self.outstanding);
        let left_ns = wait.until_ns.map(|until| until.saturating_sub(clock::now_ns()));
        let n = match self.context.events(least, &mut self.events, left_ns) {
            Ok(n) => n,
            Err(libc::EINTR) => 0,
            Err(errno) => return Err(errno),
        };
        self.outstanding -= n as u32;
        done.extend(
            self.events[..n]
                .iter()
                .map(|event| Done { slot: event.data as u32, result: event.result as i32 }),
        );
        Ok(())
    }
}

impl Libaio {
    /// Submits the queued operations. One that the kernel refuses completes with the errno; those for which
    /// it has no room stay queued.
    fn submit(&mut self, done: &mut Vec<Done>) {
        self.pointers.clear();
        let iocbs = self.iocbs.as_mut_ptr();
        // SAFETY: each slot is an index into `iocbs`.
        self.pointers.extend(self.queued.iter().map(|&slot| unsafe { iocbs.add(slot as usize) }));
        let mut taken = 0;
        while taken < self.pointers.len() {
            match self.context.submit(&self.pointers[taken..]) {
                Ok(0) => break,
                Ok(n) => {
                    taken += n;
                    self.outstanding += n as u32;
                }
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) if self.outstanding > 0 => break,
                Err(errno) => {
                    done.push(Done { slot: self.queued[taken], result: -errno });
                    taken += 1;
                }
            }
        }
        self.queued.drain(..taken);
    }
}
