//! What a completion says, in the specification's words (Base 3.3.3.2.1), and as the errno that the kernel's
//! driver would return.

use std::fmt;

/// The status field of a completion, without the phase tag: SC in bits 7:0, SCT in 10:8, CRD in 12:11,
/// M (more) in 13, DNR (do not retry) in 14.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeStatus(pub u16);

/// Generic command status (Base 3.3.3.2.1.2.1; 80h and up: NVM 3.1).
const GENERIC: &[(u8, &str)] = &[
    (0x00, "Successful Completion"),
    (0x01, "Invalid Command Opcode"),
    (0x02, "Invalid Field in Command"),
    (0x03, "Command ID Conflict"),
    (0x04, "Data Transfer Error"),
    (0x05, "Commands Aborted due to Power Loss Notification"),
    (0x06, "Internal Error"),
    (0x07, "Command Abort Requested"),
    (0x08, "Command Aborted due to SQ Deletion"),
    (0x09, "Command Aborted due to Failed Fused Command"),
    (0x0a, "Command Aborted due to Missing Fused Command"),
    (0x0b, "Invalid Namespace or Format"),
    (0x0c, "Command Sequence Error"),
    (0x0d, "Invalid SGL Segment Descriptor"),
    (0x0e, "Invalid Number of SGL Descriptors"),
    (0x0f, "Data SGL Length Invalid"),
    (0x10, "Metadata SGL Length Invalid"),
    (0x11, "SGL Descriptor Type Invalid"),
    (0x12, "Invalid Use of Controller Memory Buffer"),
    (0x13, "PRP Offset Invalid"),
    (0x14, "Atomic Write Unit Exceeded"),
    (0x15, "Operation Denied"),
    (0x16, "SGL Offset Invalid"),
    (0x18, "Host Identifier Inconsistent Format"),
    (0x19, "Keep Alive Timer Expired"),
    (0x1a, "Keep Alive Timeout Invalid"),
    (0x1b, "Command Aborted due to Preempt and Abort"),
    (0x1c, "Sanitize Failed"),
    (0x1d, "Sanitize In Progress"),
    (0x1e, "SGL Data Block Granularity Invalid"),
    (0x1f, "Command Not Supported for Queue in CMB"),
    (0x20, "Namespace is Write Protected"),
    (0x21, "Command Interrupted"),
    (0x22, "Transient Transport Error"),
    (0x23, "Command Prohibited by Command and Feature Lockdown"),
    (0x24, "Admin Command Media Not Ready"),
    (0x80, "LBA Out of Range"),
    (0x81, "Capacity Exceeded"),
    (0x82, "Namespace Not Ready"),
    (0x83, "Reservation Conflict"),
    (0x84, "Format In Progress"),
];

/// Command specific status (Base 3.3.3.2.1.2.2; 80h and up: NVM 3.1).
const COMMAND_SPECIFIC: &[(u8, &str)] = &[
    (0x00, "Completion Queue Invalid"),
    (0x01, "Invalid Queue Identifier"),
    (0x02, "Invalid Queue Size"),
    (0x03, "Abort Command Limit Exceeded"),
    (0x08, "Invalid Interrupt Vector"),
    (0x0c, "Invalid Queue Deletion"),
    (0x0d, "Feature Identifier Not Saveable"),
    (0x0e, "Feature Not Changeable"),
    (0x0f, "Feature Not Namespace Specific"),
    (0x80, "Conflicting Attributes"),
    (0x81, "Invalid Protection Information"),
    (0x82, "Attempted Write to Read Only Range"),
    (0x83, "Command Size Limit Exceeded"),
];

/// Media and data integrity errors (Base 3.3.3.2.1.2.3; NVM 3.1).
const MEDIA: &[(u8, &str)] = &[
    (0x80, "Write Fault"),
    (0x81, "Unrecovered Read Error"),
    (0x82, "End-to-end Guard Check Error"),
    (0x83, "End-to-end Application Tag Check Error"),
    (0x84, "End-to-end Reference Tag Check Error"),
    (0x85, "Compare Failure"),
    (0x86, "Access Denied"),
    (0x87, "Deallocated or Unwritten Logical Block"),
    (0x88, "End-to-end Storage Tag Check Error"),
];

/// Path related status (Base 3.3.3.2.1.2.4).
const PATH: &[(u8, &str)] = &[
    (0x00, "Internal Path Error"),
    (0x01, "Asymmetric Access Persistent Loss"),
    (0x02, "Asymmetric Access Inaccessible"),
    (0x03, "Asymmetric Access Transition"),
    (0x60, "Controller Pathing Error"),
    (0x70, "Host Pathing Error"),
    (0x71, "Command Aborted By Host"),
];

impl NvmeStatus {
    /// Successful Completion.
    #[cfg(test)]
    pub const SUCCESS: Self = Self(0);
    /// Command Abort Requested.
    #[cfg(test)]
    pub const ABORT_REQUESTED: Self = Self(0x07);

    /// Whether the command succeeded.
    #[inline]
    pub fn is_success(self) -> bool {
        (self.code_type(), self.code()) == (0, 0)
    }

    /// SC, the status code.
    pub fn code(self) -> u8 {
        self.0 as u8
    }

    /// SCT, the status code type.
    pub fn code_type(self) -> u8 {
        (self.0 >> 8 & 0x7) as u8
    }

    /// The errno that Linux's own driver returns for it, so that the two can be compared.
    pub fn errno(self) -> i32 {
        match (self.code_type(), self.code()) {
            (0, 0x81) => libc::ENOSPC,
            (0, 0x80) => libc::EREMOTEIO,
            (0, 0x82 | 0x21) => libc::EAGAIN,
            (0, 0x01 | 0x02 | 0x0b) => libc::EOPNOTSUPP,
            (0, 0x83) => libc::EBADE,
            (0, 0x07 | 0x08) => libc::ECANCELED,
            (2, 0x82..=0x84 | 0x88) => libc::EILSEQ,
            (2, 0x80 | 0x81 | 0x85..=0x87) => libc::ENODATA,
            (3, _) => libc::ENOLINK,
            _ => libc::EIO,
        }
    }

    fn words(self) -> Option<&'static str> {
        let table = match self.code_type() {
            0 => GENERIC,
            1 => COMMAND_SPECIFIC,
            2 => MEDIA,
            3 => PATH,
            _ => return None,
        };
        table.iter().find(|(code, _)| *code == self.code()).map(|(_, words)| *words)
    }
}

impl fmt::Display for NvmeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words().unwrap_or(match self.code_type() {
            0 => "a generic status that the specification does not name",
            1 => "a command-specific status",
            2 => "a media error that the specification does not name",
            3 => "a path error that the specification does not name",
            7 => "a vendor-specific status",
            _ => "a status of a reserved type",
        });
        write!(f, "{words} (SCT {:x}h, SC {:02x}h)", self.code_type(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_shown_in_the_specifications_words() {
        assert_eq!(NvmeStatus(0x281).to_string(), "Unrecovered Read Error (SCT 2h, SC 81h)");
        assert_eq!(NvmeStatus(0x4002).to_string(), "Invalid Field in Command (SCT 0h, SC 02h)");
        assert_eq!(NvmeStatus(0x7c1).to_string(), "a vendor-specific status (SCT 7h, SC c1h)");
    }

    #[test]
    fn retry_delay_and_more_do_not_make_a_success_a_failure() {
        assert!(NvmeStatus(0x3800).is_success());
        assert!(!NvmeStatus(0x0007).is_success() && !NvmeStatus(0x0100).is_success());
    }

    #[test]
    fn each_status_has_an_errno_and_words() {
        for raw in 0..1 << 15 {
            let status = NvmeStatus(raw);
            assert!(status.errno() > 0 && !status.to_string().is_empty());
        }
        assert_eq!(NvmeStatus(0x281).errno(), libc::ENODATA);
        assert_eq!(NvmeStatus(0x007).errno(), libc::ECANCELED);
    }
}
