//! Formatting drives back.

use super::undoer::{Undoer, persist};
use crate::error::{Error, Result};
use crate::host::{Device, Facts, LbaFormat, LbaFormats, read_anew};
use crate::printable::Shown as _;
use crate::stack::devices::Drive;
use crate::stack::guard;
use crate::stack::runner::WIPEFS;

impl Undoer<'_> {
    /// Gives a drive its old format back, if it still has the new one and nothing of others is on it. The stack's own
    /// layers have been removed by then. A format stays over a boot: the drive is found by its serial and the number of
    /// its namespace, as its size may differ with the format.
    pub(super) fn restore_format(
        &self,
        drive: &Drive,
        namespace: u32,
        (old, new): (LbaFormat, LbaFormat),
    ) -> Result<Option<Drive>> {
        if !self.is_own_drive(drive)? {
            return Ok(None);
        }
        let Some((mut device, formats)) = formatted(drive, namespace)? else {
            return Ok(Some(drive.clone()));
        };
        if formats.current != new.index || formats.of(new.index) != Some(new) {
            // Never formatted, formatted back already, or formatted by others since.
            return Ok(None);
        }
        if formats.of(old.index) != Some(old) || !formats.formatted_along.is_empty() {
            let what = format!("{} no longer lists the LBA format that it had", drive.describe());
            return Err(Error::refused(what).hint("format it yourself (`nvme id-ns -H`, `nvme format`)"));
        }
        if let Some(controller) =
            device.controller.as_ref().filter(|_| device.logical_block_bytes != new.block_bytes)
        {
            // Killed before the kernel had seen the new format: it would read from wrong places.
            read_anew(controller)?;
            device = formatted(drive, namespace)?.map_or(device, |(device, _)| device);
        }
        self.refuse_foreign(&device.path)?;
        if let Some(partition) = device.partitions.first() {
            let what =
                format!("{} has a partition, {partition}, which is not the stack's", device.path.shown());
            return Err(Error::refused(what).hint("save its content and wipe the table, then clean up again"));
        }
        persist(|| guard::claim_again(&device, 0)?.format(namespace, old))?;
        // Some drives keep what was there where a format is not a secure one.
        self.tool(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), device.path.as_os_str()])?;
        Ok(None)
    }

    /// The command that does the same by hand; none if nothing is to be done.
    pub(super) fn format_command(
        &self,
        drive: &Drive,
        namespace: u32,
        (old, new): (LbaFormat, LbaFormat),
    ) -> Option<String> {
        let (device, formats) = formatted(drive, namespace).ok().flatten()?;
        (self.is_own_drive(drive).ok()? && formats.current == new.index)
            .then(|| format!("nvme format {} --lbaf={} --force", device.path.shown(), old.index))
    }
}

/// The device with that namespace of the drive, now.
///
/// # Errors
/// Refused if there is more than one.
fn formatted(drive: &Drive, namespace: u32) -> Result<Option<(Device, LbaFormats)>> {
    let is_alike = |device: &Device| {
        device.serial.is_some() && device.serial == drive.serial && device.model == drive.model
    };
    let alike = Facts::read_devices().into_iter().filter(is_alike);
    let with_formats = alike.filter_map(|device| device.read_lba_formats().map(|formats| (device, formats)));
    let mut found: Vec<_> = with_formats.filter(|(_, formats)| formats.namespace == namespace).collect();
    if found.len() > 1 {
        let what = format!("{} drives are {}", found.len(), drive.describe());
        return Err(Error::refused(what).hint("leave only the one that the stack was on, and clean up again"));
    }
    Ok(found.pop())
}
