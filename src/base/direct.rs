//! What direct I/O needs: aligned memory, and a second descriptor of the same file.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};

// No device requires more: logical blocks are 512 B or 4 KiB, and a page is at least 4 KiB.
const MEMORY_ALIGN_BYTES: usize = 4096;

/// Memory whose address suits direct I/O.
#[derive(Debug)]
pub struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// A buffer of that many zero bytes.
    pub fn new(len: usize) -> Self {
        let memory = vec![0; len + MEMORY_ALIGN_BYTES];
        let start = memory.as_ptr().align_offset(MEMORY_ALIGN_BYTES);
        Self { memory, start, len }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// The bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Opens an open file again, without using its name.
pub fn reopen(file: &File, writable: bool, direct: bool) -> rustix::io::Result<File> {
    let mut flags = OFlags::CLOEXEC | if writable { OFlags::RDWR } else { OFlags::RDONLY };
    if direct {
        flags |= OFlags::DIRECT;
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}
