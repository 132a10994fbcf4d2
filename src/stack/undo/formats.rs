//! Formatting drives back.

use super::undoer::{Undoer, persist};
use crate::error::{Error, Result};
use crate::host::{Device, Facts, LbaFormat, LbaFormats, read_anew};
use crate::printable::Shown as _;
use crate::stack::devices::Drive;
use crate::stack::guard;
use crate::stack::runner::WIPEFS;

impl Undoer<'_> {
    /// Restores a drive's old format, if it still has the new one and holds nothing of others. The stack's
    /// own layers have been removed by then. A format survives a reboot: the drive is found by its serial and
    /// the number of its namespace, since its size may differ with the format.
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
            // Killed before the kernel saw the new format: it would read from the wrong places.
            read_anew(controller)?;
            device = formatted(drive, namespace)?.map_or(device, |(device, _)| device);
        }
        self.refuse_others_data(&device)?;
        if let Some(partition) = device.partitions.first() {
            let what =
                format!("{} has a partition, {partition}, which is not the stack's", device.path.shown());
            return Err(Error::refused(what).hint("save its content and wipe the table, then clean up again"));
        }
        persist(|| guard::claim_again(&device, 0)?.format(namespace, old))?;
        // A format without secure erase leaves the old data in place on some drives.
        self.tool(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), device.path.as_os_str()])?;
        Ok(None)
    }

    /// Refuses a drive with data that the stack did not write. If this undo found no mark of the stack on it,
    /// others may have used the drive since: then it must be blank, hold the stack's data set, or the
    /// operator must consent to losing its content.
    fn refuse_others_data(&self, device: &Device) -> Result<()> {
        let Some(scrutiny) = self.scrutiny.filter(|_| !self.is_marked(&device.path)) else {
            return self.refuse_foreign(&device.path);
        };
        let mut found = persist(|| guard::examine_device(device, 0, scrutiny.own_data))?;
        if found.set.is_some_and(|set| !self.data_sets.contains(&set)) {
            found.content.push("a data set that the stack did not fill".to_owned());
        }
        guard::permit(found, scrutiny.consent).map(drop)
    }

    /// The command that does the same by hand; none if there is nothing to do.
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

/// The device that now has that namespace of the drive.
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
        let what = format!("{} drives match {}", found.len(), drive.describe());
        return Err(Error::refused(what).hint("leave only the one that the stack was on, and clean up again"));
    }
    Ok(found.pop())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use super::*;
    use crate::settings::testing::capable_host;
    use crate::stack::guard::{Consent, OwnData};
    use crate::stack::id::StackId;
    use crate::stack::journal::JournalHeader;
    use crate::stack::runner::Runner;
    use crate::stack::undo::undoer::Scrutiny;
    use crate::units::MIB;

    /// All pages belong to the data set numbered by the first byte; to none if that is 0.
    struct Pages;

    impl OwnData for Pages {
        fn header(&self, head: &[u8]) -> bool {
            head[0] > 0
        }

        fn set(&self, head: &[u8]) -> Option<u64> {
            (head[0] > 0).then_some(head[0].into())
        }

        fn page(&self, _: &File, offset: u64, page: &[u8]) -> bool {
            offset == 0 || page.iter().all(|byte| *byte == b'o')
        }
    }

    /// Whether a drive (here a file) holding these bytes may be formatted; `by` marks nodes first.
    fn judged(holds: &[(u64, &[u8])], by: impl FnOnce(&Undoer, &Path), consent: &Consent) -> Result<()> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(32 * MIB).unwrap();
        holds.iter().for_each(|(at, bytes)| file.as_file().write_all_at(bytes, *at).unwrap());
        let device = Device {
            name: "nvme9n1".into(),
            path: file.path().to_owned(),
            number: "0:0".into(),
            size_bytes: 32 * MIB,
            by_id: Vec::new(),
            serial: Some("S1".into()),
            partitions: Vec::new(),
            members: Vec::new(),
            usage: Vec::new(),
            read_only: false,
            ..capable_host().devices.remove(0)
        };
        let header = JournalHeader {
            format: 1,
            id: StackId("00112233aabbccdd".into()),
            boot: String::new(),
            pid: 1,
            profile: "mine".into(),
            started_unix_s: 0,
            drives: Vec::new(),
        };
        let runner = Runner::default();
        let undoer = Undoer::of((&header, &[], false), &runner, (true, false));
        let undoer = undoer.under(Some(Scrutiny { own_data: &Pages, consent }), vec![7]);
        by(&undoer, file.path());
        undoer.refuse_others_data(&device)
    }

    #[test]
    fn a_drive_that_was_used_since_the_kill_is_formatted_back_only_with_consent() {
        let none = Consent::default();
        let (theirs, ours): (&[u8], &[u8]) = (&[b't'; 8192], &[b'o'; 8192]);
        let unknown = |_: &Undoer, _: &Path| {};
        let refused = |holds: &[(u64, &[u8])], why: &str| {
            let error = judged(holds, unknown, &none).unwrap_err();
            assert_eq!(error.exit_status(), 3, "{error}");
            assert!(error.what.contains(why), "{error}");
            assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("--destroy")), "{error}");
        };
        judged(&[], unknown, &none).unwrap();
        judged(&[(0, &[7]), (9 * MIB, ours)], unknown, &none).unwrap();
        refused(&[(9 * MIB, theirs)], "is not empty: data at");
        refused(&[(0, &[7]), (9 * MIB, theirs)], "is not empty: data at");
        refused(&[(0, &[8]), (9 * MIB, ours)], "a data set that the stack did not fill");
        // If the stack's own mark was still in place, everything below it is what the stack left.
        let marked = |undoer: &Undoer, node: &Path| undoer.mark(node);
        judged(&[(9 * MIB, theirs)], marked, &none).unwrap();
        let consent = Consent::default().and_typed(&["S1".to_owned()]);
        judged(&[(9 * MIB, theirs)], unknown, &consent).unwrap();
        judged(&[(0, &[8])], unknown, &consent).unwrap();
    }
}
