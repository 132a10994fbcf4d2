//! `NVMe` reservations: a shared drive that another host has reserved is not ours to write.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::{Device, Usage};

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
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

/// Asks the drive for its Reservation Report, in the extended form that every host may ask for.
#[allow(unsafe_code)] // no library wraps NVMe's passthrough
fn report(file: &File) -> Option<[u8; REPORT_BYTES]> {
    let mut buffer = [0_u8; REPORT_BYTES];
    // SAFETY: this ioctl takes no argument and only returns a number.
    let nsid = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID) };
    for extended in [0, 1] {
        let mut command = NvmePassthruCmd {
            opcode: RESERVATION_REPORT,
            nsid: u32::try_from(nsid).ok()?,
            addr: buffer.as_mut_ptr() as u64,
            data_len: REPORT_BYTES as u32,
            cdw10: (REPORT_BYTES / 4 - 1) as u32, // dwords, counted from zero
            cdw11: extended,
            timeout_ms: 5000,
            ..NvmePassthruCmd::default()
        };
        // SAFETY: `command` is the structure that the ioctl reads, and its `addr` and `data_len`
        // describe `buffer`, which outlives the call and is written by nothing else meanwhile.
        let status = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_IO_CMD, &raw mut command) };
        if status == 0 {
            return Some(buffer);
        }
    }
    None
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
    fn the_command_has_the_kernels_size() {
        // The ioctl's number carries the size of the structure in bits 16 to 29.
        assert_eq!(size_of::<NvmePassthruCmd>(), (NVME_IOCTL_IO_CMD as usize >> 16) & 0x3fff);
    }
}
