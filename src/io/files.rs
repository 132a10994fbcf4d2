//! Members that are opened by path: files and block devices.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::ReadWriteFlags;

use super::{OpKind, OpenRequest};
use crate::error::{Error, Result};
use crate::profile::settings::Buffering;

/// `RWF_DONTCACHE` (Linux 6.14), which libraries do not name yet.
pub const RWF_DONTCACHE: u32 = 0x80;

/// The opened files of a class.
#[derive(Debug)]
pub struct Files {
    files: Vec<OwnedFd>,
    buffering: Buffering,
}

impl Files {
    /// Opens each path as the buffering wants it.
    pub fn open(request: &OpenRequest) -> Result<Self> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if request.writable { OFlags::RDWR } else { OFlags::RDONLY };
        if request.buffering == Buffering::Direct {
            flags |= OFlags::DIRECT;
        }
        let open = |path: &PathBuf| {
            rustix::fs::open(path, flags, Mode::empty()).map_err(|e| Error::os("cannot open", path, e))
        };
        let files = request.paths.iter().map(open).collect::<Result<_>>()?;
        Ok(Self { files, buffering: request.buffering })
    }

    /// A file for a safe call.
    pub fn fd(&self, file: u32) -> BorrowedFd<'_> {
        self.files[file as usize].as_fd()
    }

    /// A file's number for the kernel; valid as long as `self` lives.
    pub fn raw(&self, file: u32) -> RawFd {
        self.files[file as usize].as_raw_fd()
    }

    /// All numbers, in order.
    pub fn raw_all(&self) -> Vec<RawFd> {
        self.files.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The flags of `preadv2` and `pwritev2` for an operation.
    pub fn rw_flags(&self, kind: OpKind) -> ReadWriteFlags {
        let cache = if self.buffering == Buffering::Uncached { RWF_DONTCACHE } else { 0 };
        let durable = if kind == OpKind::WriteDurable { ReadWriteFlags::DSYNC.bits() } else { 0 };
        ReadWriteFlags::from_bits_retain(cache | durable)
    }
}
