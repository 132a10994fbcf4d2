//! `io_uring`: rings shared with the kernel; one system call hands over a batch and waits for
//! completions, or the kernel polls, see [`super::ring`].
#![allow(unsafe_code)] // entries carry addresses of buffers: each push says why they are valid

use std::sync::Arc;

use io_uring::types::{Fd, Fixed, FsyncFlags};
use io_uring::{cqueue, opcode, squeue};

use super::buffers::Buffers;
use super::files::Files;
use super::polls::Polls;
use super::ring::Rings;
use super::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use crate::error::Result;

/// A ring of a worker's own.
pub struct Uring {
    rings: Rings<squeue::Entry, cqueue::Entry>,
    buffers: Buffers,
    files: Arc<Files>,
    registered_buffers: bool,
    registered_files: bool,
}

/// Closing a ring does not wait for what is outstanding: the kernel ends that in its own time, and
/// reads still arrive in the buffers.
impl Drop for Uring {
    fn drop(&mut self) {
        if self.rings.outstanding() > 0 {
            // The interface broke down: better memory lost than memory that the kernel writes to
            // after it has become something else. (The kernel holds the files by itself.)
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
        let entry = self.entry(op).user_data(u64::from(op.slot));
        // SAFETY: the buffer lives in `self.buffers`, whose block never moves and is freed only with
        // nothing outstanding (see `drop`); the slot is the operation's alone until its completion.
        // A file is the kernel's own once the entry is taken, and open here until then.
        unsafe { self.rings.push(op.kind == OpKind::Flush, &entry) };
    }
}

impl Backend for Uring {
    type Members = Files;

    fn open_members(request: &OpenRequest) -> Result<Files> {
        Files::open(request)
    }

    fn open(files: &Arc<Files>, setup: &Setup) -> Result<Self> {
        let mut uring = Self {
            rings: Rings::new(setup.slots, setup)?,
            buffers: Buffers::new(setup.slots, setup.page_bytes),
            files: files.clone(),
            registered_buffers: setup.registered_buffers,
            registered_files: setup.registered_files,
        };
        uring.register(setup)?;
        Ok(uring)
    }

    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        self.rings.advance(wait, |slot, result| done.push(Done { slot: slot as u32, result }))
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
            self.rings.register_buffers(&mut self.buffers, setup.slots, setup.page_bytes)?;
        }
        Ok(())
    }

    fn entry(&mut self, op: Op) -> squeue::Entry {
        // Registered or not is a type of its own to the library: one arm builds, four are made.
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
        let (at, len) = (op.offset_bytes, self.buffers.page_bytes() as u32);
        let buffer = self.buffers.address(op.slot);
        let index = op.slot as u16;
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
    use crate::profile::settings::Buffering;
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

    /// A ring on a pipe, with a read that nobody answers; its buffers are large enough to be mapped
    /// on their own. None where this process may have no ring.
    fn waiting_ring(dir: &std::path::Path) -> Option<Uring> {
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
            buffering: Buffering::Cached,
            registered_buffers: false,
            registered_files: false,
            iopoll: false,
            sqpoll: None,
            poll_sleep_ns: 0,
        };
        let mut ring = Uring::open(&Arc::new(Files::open(&request).unwrap()), &setup).ok()?;
        ring.queue(Op { slot: 0, kind: OpKind::Read, file: 0, offset_bytes: 0 });
        let mut done = Vec::new();
        let wait = Wait { completions: 1, until_ns: Some(clock::now_ns() + SECOND_NS / 1000) };
        ring.advance(wait, &mut done).unwrap();
        assert!(done.is_empty(), "{done:?}");
        Some(ring)
    }

    #[test]
    fn buffers_outlive_a_ring_that_goes_with_io_outstanding() {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut ring) = waiting_ring(dir.path()) else { return };
        let address = ring.buffers.address(0) as usize;
        drop(ring);
        assert!(is_mapped(address), "the kernel may still write there");
    }
}
