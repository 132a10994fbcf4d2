//! `io_uring`: rings shared with the kernel. One system call submits a batch and waits for completions, or
//! the kernel polls, see [`super::ring`]. With polled completions, a page larger than the kernel can poll for
//! takes several entries.
#![allow(unsafe_code)] // entries carry addresses of buffers: each push states why they are valid

use std::sync::Arc;

use io_uring::types::{Fd, Fixed, FsyncFlags};
use io_uring::{cqueue, opcode, squeue};

use super::backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use super::buffers::Buffers;
use super::files::Files;
use super::parts::Parts;
use super::ring::Rings;
use crate::error::Result;
use crate::meter::counts::counters::Polls;

/// A worker's ring.
pub struct Uring {
    rings: Rings<squeue::Entry, cqueue::Entry>,
    buffers: Buffers,
    files: Arc<Files>,
    registered_buffers: bool,
    registered_files: bool,
    parts: Parts,
}

/// Closing a ring does not wait for outstanding I/O: the kernel completes it later, and reads still land in
/// the buffers.
impl Drop for Uring {
    fn drop(&mut self) {
        if self.rings.outstanding() > 0 {
            // The interface broke down: better to leak memory than to have the kernel write to it after it
            // has been reused. (The kernel itself holds the files.)
            std::mem::forget(std::mem::take(&mut self.buffers));
        }
    }
}

impl Queue for Uring {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.get(slot)
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        let flush = op.kind == OpKind::Flush;
        let parts = if flush { 1 } else { self.parts.count() };
        if self.parts.count() > 1 {
            self.parts.begin(op.slot, parts);
        }
        for part in 0..parts {
            let entry = self.entry(op, part).user_data(u64::from(op.slot));
            // SAFETY: the buffer lives in `self.buffers`, whose block never moves and is freed only while
            // nothing is outstanding (see `drop`); the slot is the operation's alone until its completion.
            // The file is open here until the kernel takes the entry, and with it a reference to the file.
            unsafe { self.rings.push(flush, &entry) };
        }
    }
}

impl Backend for Uring {
    type Members = Files;

    fn open_members(request: &OpenRequest) -> Result<Files> {
        Files::open(request)
    }

    fn open(files: &Arc<Files>, setup: &Setup) -> Result<Self> {
        let command_bytes_max = if setup.iopoll { files.polled_bytes_max() } else { usize::MAX };
        let parts = Parts::new(setup.page_bytes, command_bytes_max, setup.slots + setup.flush_slots);
        let mut uring = Self {
            rings: Rings::new(setup.slots * parts.count(), setup)?,
            buffers: Buffers::new(setup.slots, setup.page_bytes),
            files: files.clone(),
            registered_buffers: setup.registered_buffers,
            registered_files: setup.registered_files,
            parts,
        };
        uring.register(setup)?;
        Ok(uring)
    }

    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        if self.parts.count() == 1 {
            return self.rings.advance(wait, |slot, result| done.push(Done { slot: slot as u32, result }));
        }
        self.rings.advance_parts(wait, &mut self.parts, done, |result| result)
    }

    fn polls(&self) -> Polls {
        self.rings.polls()
    }
}

impl Uring {
    fn register(&mut self, setup: &Setup) -> Result<()> {
        if self.registered_files {
            self.rings.register_files(&self.files.raw_all())?;
        }
        if self.registered_buffers {
            self.rings.register_buffers(&mut self.buffers, setup.slots, self.parts.bytes())?;
        }
        Ok(())
    }

    /// The entry of a part of an operation.
    fn entry(&mut self, op: Op, part: u32) -> squeue::Entry {
        // The library has different types for registered and other files, hence the macro.
        macro_rules! on_file {
            (|$file:ident| $build:expr) => {
                if self.registered_files {
                    let $file = Fixed(op.file);
                    $build
                } else {
                    let $file = Fd(self.files.raw(op.file));
                    $build
                }
            };
        }
        if op.kind == OpKind::Flush {
            return on_file!(|file| opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build());
        }
        let flags = self.files.rw_flags(op.kind).bits().cast_signed();
        let len = self.parts.bytes() as u32;
        let within = part as usize * self.parts.bytes();
        let at = op.offset_bytes + within as u64;
        // This stays within the slot's page, which is as long as all its parts together.
        let buffer = self.buffers.address(op.slot).wrapping_add(within);
        let index = (op.slot * self.parts.count() + part) as u16;
        match (op.kind, self.registered_buffers) {
            (OpKind::Read, true) => {
                on_file!(|f| opcode::ReadFixed::new(f, buffer, len, index).offset(at).rw_flags(flags).build())
            }
            (OpKind::Read, false) => {
                on_file!(|f| opcode::Read::new(f, buffer, len).offset(at).rw_flags(flags).build())
            }
            (_, true) => {
                on_file!(|f| opcode::WriteFixed::new(f, buffer, len, index)
                    .offset(at)
                    .rw_flags(flags)
                    .build())
            }
            (_, false) => {
                on_file!(|f| opcode::Write::new(f, buffer, len).offset(at).rw_flags(flags).build())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock;
    use super::*;
    use crate::settings::{Buffering, RingSetup};
    use crate::units::SECOND_NS;

    /// Whether memory is mapped at that address.
    fn is_mapped(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let range = |line: &str| {
            let (from, to) = line.split(' ').next()?.split_once('-')?;
            Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?)
        };
        maps.lines().filter_map(range).any(|range| range.contains(&address))
    }

    /// A ring on a pipe with a read that nobody answers; its buffers are large enough to get a mapping of
    /// their own.
    fn waiting_ring(dir: &std::path::Path) -> Uring {
        let path = dir.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let request = OpenRequest {
            paths: vec![path],
            identities: vec![None],
            writable: true,
            buffering: Buffering::Cached,
        };
        let setup = Setup {
            page_bytes: 1 << 20,
            slots: 64,
            flush_slots: 0,
            registered_buffers: false,
            registered_files: false,
            ring_setup: RingSetup::Default,
            iopoll: false,
            sqpoll: None,
            poll_sleep_ns: 0,
        };
        let mut ring = Uring::open(&Arc::new(Files::open(&request).unwrap()), &setup).unwrap();
        ring.queue(Op { slot: 0, kind: OpKind::Read, file: 0, offset_bytes: 0 });
        let mut done = Vec::new();
        let wait = Wait { completions: 1, until_ns: Some(clock::now_ns() + SECOND_NS / 1000) };
        ring.advance(wait, &mut done).unwrap();
        assert!(done.is_empty(), "{done:?}");
        ring
    }

    #[test]
    fn buffers_outlive_a_ring_that_goes_with_io_outstanding() {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = waiting_ring(dir.path());
        let address = ring.buffers.address(0) as usize;
        drop(ring);
        assert!(is_mapped(address), "the kernel may still write there");
    }
}
