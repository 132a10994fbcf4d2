//! `NVMe` queries: the kernel's passthrough to a controller or a namespace.

use std::fs::File;
use std::os::fd::AsRawFd;

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Passthru {
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

/// A query command.
#[derive(Clone, Copy, Default)]
pub(in crate::host) struct AdminQuery {
    pub opcode: u8,
    pub nsid: u32,
    pub cdw10: u32,
    pub cdw11: u32,
}

/// Which of the two passthrough ioctls.
#[derive(Clone, Copy)]
pub(in crate::host) enum Set {
    /// Admin commands.
    Admin,
    /// Commands of a namespace.
    Io,
}

/// `_IO('N', 0x40)`: the number of the namespace.
const NVME_IOCTL_ID: libc::Ioctl = 0x4e40;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`.
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;
/// `_IOWR('N', 0x43, struct nvme_passthru_cmd)`.
const NVME_IOCTL_IO_CMD: libc::Ioctl = 0xc048_4e43_u32 as libc::Ioctl;
/// `_IO('N', 0x46)`: makes the kernel read all namespaces of a controller anew.
const NVME_IOCTL_RESCAN: libc::Ioctl = 0x4e46;
/// How long a format may take: some drives rewrite all of their flash for it.
const FORMAT_TIMEOUT_MS: u32 = 3_600_000;
/// How long to wait for a controller that does not answer.
const TIMEOUT_MS: u32 = 5000;

/// Admin command set, Get Log Page.
const GET_LOG_PAGE: u8 = 0x02;
/// Admin command set, Identify.
const IDENTIFY: u8 = 0x06;
/// Admin command set, Format NVM.
const FORMAT_NVM: u8 = 0x80;
/// The size of the Identify data.
pub(in crate::host) const IDENTITY_BYTES: usize = 4096;
/// All namespaces of a controller.
const ALL: u32 = 0xffff_ffff;

/// The Identify Controller data (NVM Express base specification 2.0, figure 275).
pub(in crate::host) fn identify_controller(file: &File) -> Option<[u8; IDENTITY_BYTES]> {
    identify(file, 0, 1)
}

/// The Identify Namespace data (NVM command set specification 1.0, figure 97).
pub(in crate::host) fn identify_name_space(file: &File, nsid: u32) -> Option<[u8; IDENTITY_BYTES]> {
    identify(file, nsid, 0)
}

/// The numbers of a controller's active namespaces (base specification 2.0, 5.17.2.2).
pub(in crate::host) fn active_name_spaces(file: &File) -> Option<Vec<u32>> {
    let answer = identify(file, 0, 2)?;
    let (numbers, _) = answer.as_chunks::<4>();
    Some(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).take_while(|number| *number > 0).collect())
}

fn identify(file: &File, nsid: u32, structure: u32) -> Option<[u8; IDENTITY_BYTES]> {
    let mut answer = [0; IDENTITY_BYTES];
    let question = AdminQuery { opcode: IDENTIFY, nsid, cdw10: structure, cdw11: 0 };
    ask(file, Set::Admin, question, &mut answer).then_some(answer)
}

/// The first 512 bytes of a log of the controller (base specification 2.0, 5.16); `specific` selects a part,
/// for logs that have parts.
pub(in crate::host) fn log_page(file: &File, log: u8, specific: u16) -> Option<[u8; 512]> {
    let mut answer = [0; 512];
    let dwords = answer.len() as u32 / 4 - 1; // counted from zero
    let question = AdminQuery {
        opcode: GET_LOG_PAGE,
        nsid: ALL,
        cdw10: u32::from(log) | dwords << 16,
        cdw11: u32::from(specific) << 16,
    };
    ask(file, Set::Admin, question, &mut answer).then_some(answer)
}

/// The number of the namespace behind a block device.
#[allow(unsafe_code)] // no library wraps NVMe's ioctls
pub(in crate::host) fn name_space(file: &File) -> Option<u32> {
    // SAFETY: this ioctl takes no argument and only returns a number.
    let nsid = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID) };
    u32::try_from(nsid).ok()
}

/// Sends a command that only reads. Returns whether the kernel and the drive executed it, and the answer is there.
#[allow(unsafe_code)] // no library wraps NVMe's passthrough
pub(in crate::host) fn ask(file: &File, set: Set, command: AdminQuery, answer: &mut [u8]) -> bool {
    let ioctl = match set {
        Set::Admin => NVME_IOCTL_ADMIN_CMD,
        Set::Io => NVME_IOCTL_IO_CMD,
    };
    let AdminQuery { opcode, nsid, cdw10, cdw11 } = command;
    let mut command = Passthru {
        opcode,
        nsid,
        addr: answer.as_mut_ptr() as u64,
        data_len: answer.len() as u32,
        cdw10,
        cdw11,
        timeout_ms: TIMEOUT_MS,
        ..Passthru::default()
    };
    // SAFETY: `command` is the structure that the ioctl reads and writes, and its `addr` and `data_len`
    // describe `answer`, which outlives the call and is written by nothing else meanwhile.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), ioctl, &raw mut command) };
    status == 0
}

/// Formats a namespace to one of its LBA formats, without metadata, protection or secure erase (base
/// specification 2.0, 5.14). Everything on it is lost. Returns the drive's status, 0 on success.
///
/// # Errors
/// If the kernel does not pass the command on.
#[allow(unsafe_code)] // no library wraps NVMe's passthrough
pub(in crate::host) fn format(file: &File, nsid: u32, index: u8) -> std::io::Result<u16> {
    let index = u32::from(index);
    let mut command = Passthru {
        opcode: FORMAT_NVM,
        nsid,
        // LBAFL in bits 3:0, and its upper bits, LBAFU, in 13:12.
        cdw10: index & 0xf | (index >> 4 & 3) << 12,
        timeout_ms: FORMAT_TIMEOUT_MS,
        ..Passthru::default()
    };
    // SAFETY: `command` is the structure that the ioctl reads and writes, and it names no memory.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut command) };
    if status < 0 { Err(std::io::Error::last_os_error()) } else { Ok(status as u16) }
}

/// Makes the kernel read the controller's namespaces again; returns once it has.
#[allow(unsafe_code)] // no library wraps NVMe's ioctls
pub(in crate::host) fn rescan(file: &File) -> std::io::Result<()> {
    // SAFETY: this ioctl takes no argument and touches no memory of ours.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_RESCAN) };
    if status < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_the_kernels_size() {
        // The ioctl's number carries the size of the structure in bits 16 to 29.
        assert_eq!(size_of::<Passthru>(), (NVME_IOCTL_IO_CMD as usize >> 16) & 0x3fff);
    }
}
