//! `NVMe` reservations: a shared drive that another host has reserved is not ours to write.

use std::fs::File;

use crate::host::drive::nvme::{self, AdminQuery, IDENTITY_BYTES, Set};
use crate::host::{Device, Usage};

/// NVM command set, Reservation Report.
const RESERVATION_REPORT: u8 = 0x0e;
/// Enough for the report's header and the first registrants.
const REPORT_BYTES: usize = 4096;

/// The reservation that an `NVMe` drive reports.
///
/// None if it is free, and also if that is unknown: the device is not an `NVMe` drive, does not support
/// reservations (most consumer drives), or this process may not query it (which requires root). In the last
/// case it may not write to the device either. A reservation that excludes this host makes the drive itself
/// refuse writes (`EBADE`), so nothing of another host is lost.
pub(crate) fn reservation(device: &Device) -> Option<Usage> {
    if !device.name.starts_with("nvme") {
        return None;
    }
    let file = File::open(&device.path).ok()?;
    let report = report(&file)?;
    describe_report(&report).map(Usage::Reserved)
}

/// Requests the drive's Reservation Report.
fn report(file: &File) -> Option<[u8; REPORT_BYTES]> {
    // A drive without reservations would record the query in its error log.
    if !supports_reservations(&nvme::identify_controller(file)?) {
        return None;
    }
    let nsid = nvme::name_space(file)?;
    let mut report = [0; REPORT_BYTES];
    // A host with an extended identifier must ask in the extended form, any other in the plain one.
    let answered = [0, 1].into_iter().any(|extended| {
        let question = AdminQuery {
            opcode: RESERVATION_REPORT,
            nsid,
            cdw10: (REPORT_BYTES / 4 - 1) as u32, // dwords, counted from zero
            cdw11: extended,
        };
        nvme::ask(file, Set::Io, question, &mut report)
    });
    answered.then_some(report)
}

/// Bit 5 of the optional commands (ONCS), at byte 520 of the Identify Controller data.
fn supports_reservations(identity: &[u8; IDENTITY_BYTES]) -> bool {
    identity[520] >> 5 & 1 == 1
}

/// The kind of reservation in words; none if there is none.
fn describe_report(report: &[u8]) -> Option<String> {
    let kind = match *report.get(4)? {
        0 => return None,
        1 => "write exclusive",
        2 => "exclusive access",
        3 => "write exclusive, registrants only",
        4 => "exclusive access, registrants only",
        5 => "write exclusive, all registrants",
        6 => "exclusive access, all registrants",
        _ => "of an unknown kind",
    };
    let registrants = u16::from_le_bytes([*report.get(5)?, *report.get(6)?]);
    Some(format!("{kind}, {registrants} registered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_described_by_its_type() {
        let mut report = [0_u8; 64];
        report[5] = 2;
        assert_eq!(describe_report(&report), None, "registered alone is not reserved");
        report[4] = 1;
        assert_eq!(describe_report(&report).unwrap(), "write exclusive, 2 registered");
        assert_eq!(describe_report(&report[..3]), None);
    }

    #[test]
    fn a_drive_reports_whether_it_supports_reservations() {
        let mut identity = [0_u8; IDENTITY_BYTES];
        identity[520..522].copy_from_slice(&0x015d_u16.to_le_bytes());
        assert!(!supports_reservations(&identity));
        identity[520] |= 0x20;
        assert!(supports_reservations(&identity));
    }
}
