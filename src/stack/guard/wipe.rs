//! Wiping the signatures by which programs recognize a device's content.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::content::{self, EDGE_BYTES, Signature};
use crate::error::{Error, Result};
use crate::host::Device;
use crate::printable::Shown as _;
use crate::stack::devices::node;
use crate::stack::runner::{Runner, WIPEFS};

/// Wipes all signatures on the device and its partitions, then its first and last MiB.
///
/// The caller holds the device exclusively through `file`. wipefs opens it again, but not exclusively when
/// forced, so the claim is never given up.
pub(super) fn wipe(runner: &Runner, file: &File, device: &Device) -> Result<()> {
    // The partitions' content is wiped too, or it would reappear when partitions are made there again.
    let partitions = device.partitions.iter().map(|name| node::of(name)).collect::<Result<Vec<_>>>()?;
    for node in partitions.into_iter().flatten().chain([device.path.clone()]) {
        let arguments = ["--all".as_ref(), "--force".as_ref(), "--quiet".as_ref(), node.as_os_str()];
        let answer = runner.run(WIPEFS, &arguments)?;
        if answer.status != 0 {
            return Err(Error::failed(format!("wipefs could not wipe {}: {}", node.shown(), answer.stderr)));
        }
    }
    zero_edges(file, device.size_bytes).map_err(|error| Error::os("cannot wipe", &device.path, error))?;
    forget_partitions(file);
    let left = content::signatures(runner, &Device { partitions: Vec::new(), ..device.clone() })?;
    match left.first().map(Signature::describe) {
        None => Ok(()),
        Some(signature) => {
            Err(Error::failed(format!("{} is not blank after wiping: {signature}", device.path.shown())))
        }
    }
}

fn zero_edges(file: &File, size_bytes: u64) -> std::io::Result<()> {
    let bytes = EDGE_BYTES.min(size_bytes);
    file.write_all_at(&vec![0; bytes as usize], size_bytes - bytes)?;
    zero_start(file, size_bytes)
}

/// Durable once it returns.
pub(super) fn zero_start(file: &File, size_bytes: u64) -> std::io::Result<()> {
    file.write_all_at(&vec![0; EDGE_BYTES.min(size_bytes) as usize], 0)?;
    file.sync_all()
}

/// Makes the kernel forget the partitions; a device without partition support refuses.
#[allow(unsafe_code)] // rustix does not wrap this ioctl
fn forget_partitions(file: &File) {
    /// `_IO(0x12, 95)` of `linux/fs.h`.
    const BLKRRPART: libc::Ioctl = 0x125f;
    // SAFETY: BLKRRPART takes no argument and touches no memory of ours.
    unsafe { libc::ioctl(file.as_raw_fd(), BLKRRPART) };
}
