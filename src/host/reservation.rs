//! `NVMe` reservations: a shared drive that another host has reserved is not ours to write.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::{Device, Usage};

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct NvmePassthruCmd {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// `_IO('N', 0x40)`: the number of the name space.
const NVME_IOCTL_ID: libc::Ioctl = 0x4e40;
/// `_IOWR('N', 0x43, struct nvme_passthru_cmd)`.
const NVME_IOCTL_IO_CMD: libc::Ioctl = 0xc048_4e43_u32 as libc::Ioctl;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`.
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;
/// Admin command set, Identify.
const IDENTIFY: u8 = 0x06;
/// NVM command set, Reservation Report.
const RESERVATION_REPORT: u8 = 0x0e;
/// Enough for the report's header and the first registrants.
const REPORT_BYTES: usize = 4096;

/// The reservation that an `NVMe` drive reports.
///
/// None where it is free, and also where it can't be told: the device is no `NVMe` drive, does not
/// support reservations (most consumer drives), or this process may not ask (the command needs
/// root). In the last case it may not write to the device either. A reservation that excludes this
/// host makes the drive itself refuse the writes (`EBADE`), so nothing of another host is lost.
pub(crate) fn reservation(device: &Device) -> Option<Usage> {
    if !device.name.starts_with("nvme") {
        return None;
    }
    let file = File::open(&device.path).ok()?;
    let report = report(&file)?;
    describe_report(&report).map(Usage::Reserved)
}

/// Asks the drive for its Reservation Report.
fn report(file: &File) -> Option<[u8; REPORT_BYTES]> {
    // A drive that knows no reservations would write the question to its error log.
    let identify = NvmePassthruCmd { opcode: IDENTIFY, cdw10: 1, ..NvmePassthruCmd::default() };
    if !supports_reservations(&command(file, NVME_IOCTL_ADMIN_CMD, identify)?) {
        return None;
    }
    let nsid = name_space(file)?;
    // A host with an extended identifier must ask in the extended form, any other in the plain one.
    let forms = [0, 1].map(|extended| NvmePassthruCmd {
        opcode: RESERVATION_REPORT,
        nsid,
        cdw10: (REPORT_BYTES / 4 - 1) as u32, // dwords, counted from zero
        cdw11: extended,
        ..NvmePassthruCmd::default()
    });
    forms.into_iter().find_map(|form| command(file, NVME_IOCTL_IO_CMD, form))
}

/// Bit 5 of the optional commands (ONCS), at byte 520 of what Identify Controller answers.
fn supports_reservations(identity: &[u8; REPORT_BYTES]) -> bool {
    identity[520] >> 5 & 1 == 1
}

#[allow(unsafe_code)] // no library wraps NVMe's ioctls
fn name_space(file: &File) -> Option<u32> {
    // SAFETY: this ioctl takes no argument and only returns a number.
    let nsid = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID) };
    u32::try_from(nsid).ok()
}

/// Sends a command that only reads, and returns its answer; none where the drive or the kernel says no.
#[allow(unsafe_code)] // no library wraps NVMe's passthrough
fn command(file: &File, ioctl: libc::Ioctl, command: NvmePassthruCmd) -> Option<[u8; REPORT_BYTES]> {
    let mut buffer = [0_u8; REPORT_BYTES];
    let mut command = NvmePassthruCmd {
        addr: buffer.as_mut_ptr() as u64,
        data_len: REPORT_BYTES as u32,
        timeout_ms: 5000,
        ..command
    };
    // SAFETY: `command` is the structure that the ioctl reads and writes, and its `addr` and
    // `data_len` describe `buffer`, which outlives the call and is written by nothing else meanwhile.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), ioctl, &raw mut command) };
    (status == 0).then_some(buffer)
}

/// The kind of reservation in words; none where nobody holds one.
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
    fn a_reservation_is_told_by_its_type() {
        let mut report = [0_u8; 64];
        report[5] = 2;
        assert_eq!(describe_report(&report), None, "registered alone is not reserved");
        report[4] = 1;
        assert_eq!(describe_report(&report).unwrap(), "write exclusive, 2 registered");
        assert_eq!(describe_report(&report[..3]), None);
    }

    #[test]
    fn a_drive_tells_whether_it_knows_reservations() {
        let mut identity = [0_u8; REPORT_BYTES];
        identity[520..522].copy_from_slice(&0x015d_u16.to_le_bytes());
        assert!(!supports_reservations(&identity));
        identity[520] |= 0x20;
        assert!(supports_reservations(&identity));
    }

    #[test]
    fn the_command_has_the_kernels_size() {
        // The ioctl's number carries the size of the structure in bits 16 to 29.
        assert_eq!(size_of::<NvmePassthruCmd>(), (NVME_IOCTL_IO_CMD as usize >> 16) & 0x3fff);
    }
}
