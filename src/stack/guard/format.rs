//! Formatting a claimed `NVMe` drive.

use std::path::Path;
use std::time::{Duration, Instant};

use super::claim::Claim;
use crate::error::{Error, Result};
use crate::host::{Facts, LbaFormat, format_namespace};
use crate::printable::Shown as _;

/// How long the kernel may take to rescan the drive.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

impl Claim {
    /// Formats the drive to that LBA format: everything on it is lost. Ends the claim, since the block size changes.
    ///
    /// # Errors
    /// If the drive or the kernel refuses; failed if the kernel does not pick up the new block size.
    pub(crate) fn format(self, namespace: u32, format: LbaFormat) -> Result<()> {
        let device = &self.device;
        let controller = device.controller.as_deref().ok_or_else(|| {
            Error::input(format!("{} is not an NVMe drive, so it has no LBA formats", device.path.shown()))
        })?;
        format_namespace(controller, namespace, format.index)?;
        let path = device.path.clone();
        drop(self);
        await_blocks(&path, format.block_bytes)
    }
}

fn await_blocks(path: &Path, block_bytes: u64) -> Result<()> {
    let ends = Instant::now() + PATIENCE;
    loop {
        let devices = Facts::read_devices();
        let found = devices.iter().find(|device| device.path == path);
        if found.is_some_and(|device| device.logical_block_bytes == block_bytes) && path.exists() {
            return Ok(());
        }
        if Instant::now() >= ends {
            let what = format!(
                "{} was formatted, but the kernel does not see blocks of {block_bytes} B",
                path.shown()
            );
            return Err(Error::failed(what).hint("see the kernel's log (dmesg)"));
        }
        std::thread::sleep(LOOK);
    }
}
