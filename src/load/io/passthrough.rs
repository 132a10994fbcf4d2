//! `nvme_passthrough`: `NVMe` commands through `io_uring` (Linux 5.19), past the block layer.
//!
//! A member's commands go to the character device of its namespace (`/dev/ng0n1`), which takes no exclusive
//! claim, so the target can hold the block device as well. There is no page cache. A flush is the drive's own
//! command (Base 7.1); with a polled ring, it goes through an ordinary one beside it. A durable write sets
//! FUA. A page too large for one command takes several, and completes with the last of them.
#![allow(unsafe_code)] // entries carry addresses of buffers: the push states why they are valid

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use io_uring::types::{Fd, Fixed};
use io_uring::{cqueue, opcode, squeue};
use rustix::fs::{Mode, OFlags};

use super::backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use super::buffers::Buffers;
use super::files::Files;
use super::parts::Parts;
use super::ring::Rings;
use crate::error::{Error, Result};
use crate::host::{NvmeNamespace, nvme_namespace};
use crate::load::nvme::prp::Prp;
use crate::load::nvme::spec::NvmeCommand;
use crate::load::nvme::status::NvmeStatus;
use crate::meter::counts::counters::Polls;
use crate::printable::Shown as _;

/// `NVME_URING_CMD_IO` (`linux/nvme_ioctl.h`): `_IOWR('N', 0x80, struct nvme_uring_cmd)` of 72 bytes.
const NVME_URING_CMD_IO: u32 = 0b11 << 30 | 72 << 16 | (b'N' as u32) << 8 | 0x80;
/// The opened namespaces of a class.
pub struct Namespaces {
    opened: Vec<(File, NvmeNamespace)>,
    /// Bytes that a command can move: the minimum over the namespaces.
    transfer_bytes_max: usize,
}

/// A worker's side.
pub struct Passthrough {
    rings: Rings<squeue::Entry128, cqueue::Entry32>,
    buffers: Buffers,
    namespaces: Arc<Namespaces>,
    registered_buffers: bool,
    registered_files: bool,
    parts: Parts,
}

impl Drop for Passthrough {
    fn drop(&mut self) {
        if self.rings.outstanding() > 0 {
            // As with `Uring`: the drive may still write to the buffers.
            std::mem::forget(std::mem::take(&mut self.buffers));
        }
    }
}

impl Queue for Passthrough {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.get(slot)
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        let flush = op.kind == OpKind::Flush;
        let parts = if flush { 1 } else { self.parts.count() };
        self.parts.begin(op.slot, parts);
        for part in 0..parts {
            let entry = self.entry(op, part).user_data(u64::from(op.slot));
            // SAFETY: the buffer lives in `self.buffers`, whose block never moves and is freed only with
            // nothing outstanding (see `drop`); the slot is the operation's alone until its completion.
            // The namespaces stay open as long as this does.
            unsafe { self.rings.push(flush, &entry) };
        }
    }
}

impl Backend for Passthrough {
    type Members = Namespaces;

    fn open_members(request: &OpenRequest) -> Result<Namespaces> {
        // First open the block devices, to check their identity: their character devices have none.
        let devices = Files::open(request)?;
        let access = if request.writable { OFlags::RDWR } else { OFlags::RDONLY };
        let open = |n: usize| {
            let path = &request.paths[n];
            let namespace = nvme_namespace(devices.file(n as u32)).map_err(|why| {
                Error::input(format!("{} does not accept NVMe commands: {why}", path.shown()))
            })?;
            let generic = rustix::fs::open(&namespace.generic, access | OFlags::CLOEXEC, Mode::empty());
            let generic = generic.map_err(|e| Error::os("cannot open", &namespace.generic, e))?;
            Ok((File::from(generic), namespace))
        };
        let opened = (0..devices.len()).map(open).collect::<Result<Vec<_>>>()?;
        let least = opened.iter().map(|(_, namespace)| namespace.transfer_bytes_max).min().unwrap_or(4096);
        Ok(Namespaces { opened, transfer_bytes_max: least as usize })
    }

    fn open(namespaces: &Arc<Namespaces>, setup: &Setup) -> Result<Self> {
        let slots = setup.slots + setup.flush_slots;
        let parts = Parts::new(setup.page_bytes, namespaces.transfer_bytes_max, slots);
        let mut this = Self {
            rings: Rings::new(setup.slots * parts.count(), setup)?,
            buffers: Buffers::new(setup.slots, setup.page_bytes),
            namespaces: namespaces.clone(),
            registered_buffers: setup.registered_buffers,
            registered_files: setup.registered_files,
            parts,
        };
        this.register(setup)?;
        Ok(this)
    }

    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        let Self { rings, parts, .. } = self;
        let bytes = parts.bytes();
        rings.advance_parts(wait, parts, done, |result| moved(result, bytes))
    }

    fn polls(&self) -> Polls {
        self.rings.polls()
    }
}

/// The result of a command, as bytes moved or a negative errno: zero is success, which has no byte count, and
/// a positive result is the command's status.
fn moved(result: i32, bytes: usize) -> i32 {
    match result {
        0 => bytes as i32,
        1.. => -NvmeStatus(result as u16).errno(),
        _ => result,
    }
}

impl Passthrough {
    fn register(&mut self, setup: &Setup) -> Result<()> {
        if self.registered_files {
            let files: Vec<RawFd> = self.namespaces.opened.iter().map(|(file, _)| file.as_raw_fd()).collect();
            self.rings.register_files(&files)?;
        }
        if self.registered_buffers {
            // Each command's piece is registered separately: kernels count all segments of a larger buffer
            // against the limit of a single command.
            self.rings.register_buffers(&mut self.buffers, setup.slots, self.parts.bytes())?;
        }
        Ok(())
    }

    /// The entry of a part of an operation.
    fn entry(&mut self, op: Op, part: u32) -> squeue::Entry128 {
        let (file, namespace) = &self.namespaces.opened[op.file as usize];
        let part_bytes = self.parts.bytes() as u64;
        let at = u64::from(part) * part_bytes;
        let block = (namespace.start_bytes + op.offset_bytes + at) / namespace.block_bytes;
        let blocks = (part_bytes / namespace.block_bytes) as u32;
        // The kernel builds the PRP list for the drive.
        let data = Prp::default();
        let command = match op.kind {
            OpKind::Flush => NvmeCommand::flush(namespace.id),
            OpKind::Read => NvmeCommand::read(namespace.id, block, blocks, data),
            kind => NvmeCommand::write(namespace.id, block, blocks, data, kind == OpKind::WriteDurable),
        };
        let moves = op.kind != OpKind::Flush;
        let memory = moves.then(|| (self.buffers.address(op.slot) as u64 + at, part_bytes as u32));
        let index =
            memory.filter(|_| self.registered_buffers).map(|_| (op.slot * self.parts.count() + part) as u16);
        let built = |entry: opcode::UringCmd80| entry.buf_index(index).cmd(fields(&command, memory)).build();
        if self.registered_files {
            built(opcode::UringCmd80::new(Fixed(op.file), NVME_URING_CMD_IO))
        } else {
            built(opcode::UringCmd80::new(Fd(file.as_raw_fd()), NVME_URING_CMD_IO))
        }
    }
}

/// `struct nvme_uring_cmd` (`linux/nvme_ioctl.h`), in the 80 bytes that an entry has for it: the opcode at 0
/// and the namespace at 4, as in dwords 0 and 1 of the command; address and length of the memory at 24 and
/// 36; dwords 10 to 15 from 40 on.
fn fields(command: &NvmeCommand, memory: Option<(u64, u32)>) -> [u8; 80] {
    let words = command.words(0);
    let (address, len_bytes) = memory.unwrap_or_default();
    let mut fields = [0; 80];
    let mut put = |at: usize, value: u64| fields[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    put(0, words[0]);
    put(24, address);
    put(32, u64::from(len_bytes) << 32);
    for (n, word) in words[5..].iter().enumerate() {
        put(40 + 8 * n, *word);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_an_errno() {
        assert_eq!(moved(0, 4096), 4096);
        assert_eq!(moved(0x281, 4096), -libc::ENODATA, "Unrecovered Read Error");
        assert_eq!(moved(-libc::EINVAL, 4096), -libc::EINVAL);
    }

    #[test]
    fn the_number_of_the_ring_command_is_that_of_the_kernels_header() {
        assert_eq!(NVME_URING_CMD_IO, 0xc048_4e80);
    }

    #[test]
    fn a_command_lies_where_the_kernel_looks_for_it() {
        let command = NvmeCommand::write(7, 0x1_0000_0002, 8, Prp::default(), true);
        let fields = fields(&command, Some((0xabc0_0000_1000, 4096)));
        let dword = |at: usize| u32::from_ne_bytes(fields[at..at + 4].try_into().unwrap());
        assert_eq!((fields[0], dword(4)), (1, 7), "Write to namespace 7");
        assert_eq!((dword(24), dword(28)), (0x1000, 0xabc0));
        assert_eq!((dword(32), dword(36)), (0, 4096), "no metadata, and the length");
        assert_eq!((dword(40), dword(44)), (2, 1), "the first block");
        assert_eq!(dword(48), 7 | 1 << 30, "eight blocks, and FUA");
    }
}
