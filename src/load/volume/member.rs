//! The files and devices of a volume.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::header::Header;
use super::region::Identity;
use crate::error::{Error, Result};
use crate::printable::Shown as _;

/// A member that may be used.
#[derive(Debug)]
pub enum MemberSource {
    /// A regular file that stacktune makes, or has made.
    File {
        /// Its path.
        path: PathBuf,
    },
    /// A block device permitted by the guard.
    Device {
        /// Its node.
        path: PathBuf,
        /// The open device, held exclusively if it is written.
        file: File,
        /// Bytes.
        size_bytes: u64,
    },
}

impl MemberSource {
    /// The file's or the device's path.
    pub fn path(&self) -> &Path {
        match self {
            Self::File { path } | Self::Device { path, .. } => path,
        }
    }

    pub(super) fn is_device(&self) -> bool {
        matches!(self, Self::Device { .. })
    }

    /// A second handle to the same member.
    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(match self {
            Self::File { path } => Self::File { path: path.clone() },
            Self::Device { path, file, size_bytes } => {
                let file = file.try_clone().map_err(|error| Error::os("cannot hold", path, error))?;
                Self::Device { path: path.clone(), file, size_bytes: *size_bytes }
            }
        })
    }
}

/// A file or device of a volume.
#[derive(Debug)]
pub struct Member {
    /// A short name: the file's, or the kernel's for a device.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// Whether it is a block device.
    pub device: bool,
    pub(super) file: File,
    /// `None` if stacktune did not make it; it is then only read.
    pub(super) header: Option<Header>,
}

impl Member {
    /// Refuses a member that is no longer at its path: its data is lost once the last handle closes.
    pub(super) fn refuse_gone(&self) -> Result<()> {
        let (opened, now) = (Identity::of(&self.file), Identity::at(&self.path));
        match (opened, now) {
            (Ok(opened), Ok(now)) if opened == now => Ok(()),
            (Err(error), _) | (_, Err(error)) => {
                Err(Error::os("cannot verify", &self.path, error).hint(GONE))
            }
            _ => Err(Error::failed(format!(
                "cannot verify {}: another file is at its path",
                self.path.shown()
            ))
            .hint(GONE)),
        }
    }
}

const GONE: &str = "it was removed or replaced while it was in use, and what was written to it is lost";
