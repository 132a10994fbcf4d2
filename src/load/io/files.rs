//! Members that are opened by path: files and block devices.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::ReadWriteFlags;

use super::backend::{OpKind, OpenRequest};
use crate::error::{Error, Result};
use crate::host::polled_bytes_max;
use crate::load::volume::Identity;
use crate::printable::Shown as _;
use crate::settings::Buffering;

/// `RWF_DONTCACHE` (Linux 6.14), which the libraries don't define yet.
pub const RWF_DONTCACHE: u32 = 0x80;

fn replaced(path: &Path) -> Error {
    let what = format!("{} is no longer the file or device that the run was opened on", path.shown());
    Error::refused(what).hint("it was replaced in the meantime and is not touched; start again")
}

/// The opened files of a class.
#[derive(Debug)]
pub struct Files {
    files: Vec<File>,
    buffering: Buffering,
}

impl Files {
    /// Opens each path as the buffering requires.
    ///
    /// # Errors
    /// Refused if a path now leads to another file or device than the target's.
    pub fn open(request: &OpenRequest) -> Result<Self> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if request.writable { OFlags::RDWR } else { OFlags::RDONLY };
        if request.buffering == Buffering::Direct {
            flags |= OFlags::DIRECT;
        }
        let open = |(path, expected): (&PathBuf, &Option<Identity>)| {
            let file = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
            let file = file.map_err(|e| Error::os("cannot open", path, e))?;
            let found = Identity::of(&file).map_err(|e| Error::os("cannot examine", path, e))?;
            match expected {
                Some(expected) if *expected != found => Err(replaced(path)),
                _ => Ok(file),
            }
        };
        let files = request.paths.iter().zip(&request.identities).map(open).collect::<Result<_>>()?;
        Ok(Self { files, buffering: request.buffering })
    }

    /// A file, for safe system calls.
    pub fn fd(&self, file: u32) -> BorrowedFd<'_> {
        self.files[file as usize].as_fd()
    }

    /// A file, to identify it.
    pub fn file(&self, file: u32) -> &File {
        &self.files[file as usize]
    }

    /// A file's descriptor; valid as long as `self` lives.
    pub fn raw(&self, file: u32) -> RawFd {
        self.files[file as usize].as_raw_fd()
    }

    /// All descriptors, in order.
    pub fn raw_all(&self) -> Vec<RawFd> {
        self.files.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// Bytes that one operation can move with polled completions: the minimum over the files.
    pub fn polled_bytes_max(&self) -> usize {
        let least = self.files.iter().filter_map(polled_bytes_max).min();
        least.map_or(usize::MAX, |bytes| bytes as usize)
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The flags of `preadv2` and `pwritev2` for an operation.
    pub fn rw_flags(&self, kind: OpKind) -> ReadWriteFlags {
        let cache = if self.buffering == Buffering::Uncached { RWF_DONTCACHE } else { 0 };
        let durable = if kind == OpKind::WriteDurable { ReadWriteFlags::DSYNC.bits() } else { 0 };
        ReadWriteFlags::from_bits_retain(cache | durable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_member_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data-0");
        std::fs::write(&path, "ours").unwrap();
        let identity = Some(Identity::of(&File::open(&path).unwrap()).unwrap());
        let request = OpenRequest {
            paths: vec![path.clone()],
            identities: vec![identity],
            writable: true,
            buffering: Buffering::Cached,
        };
        assert!(Files::open(&request).is_ok());
        let theirs = dir.path().join("theirs");
        std::fs::write(&theirs, "theirs").unwrap();
        std::fs::rename(&path, dir.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        let error = Files::open(&request).unwrap_err();
        assert_eq!(error.exit_status(), 3, "{error}");
    }
}
