//! Registers, commands and completions, bit by bit.
//!
//! *Base*: NVM Express Base Specification 2.0; *NVM*: NVM Command Set Specification 1.0; *PCIe*: `NVMe`
//! over PCIe Transport Specification 1.0.

use std::time::Duration;

use super::prp::Prp;
use super::status::NvmeStatus;

/// CAP, controller capabilities (Base 3.1.3.1).
pub const CAP: usize = 0x00;
/// CC, controller configuration (Base 3.1.3.5).
pub const CC: usize = 0x14;
/// CSTS, controller status (Base 3.1.3.6).
pub const CSTS: usize = 0x1c;
/// AQA, admin queue attributes (Base 3.1.3.8).
pub const AQA: usize = 0x24;
/// ASQ, admin submission queue base address (Base 3.1.3.9).
pub const ASQ: usize = 0x28;
/// ACQ, admin completion queue base address (Base 3.1.3.10).
pub const ACQ: usize = 0x30;
/// The first doorbell, SQ0TDBL (PCIe 3.1.2.1).
pub const DOORBELLS: usize = 0x1000;

/// What every register reads as once a controller is gone: PCI Express returns ones.
pub const GONE: u32 = u32::MAX;

/// CC.EN: enables the controller.
pub const CC_EN: u32 = 1;
/// CC.SHN, the shutdown notification.
pub const CC_SHN: u32 = 0b11 << 14;
/// CC.SHN: requests a normal shutdown (Base 3.6.1).
pub const CC_SHN_NORMAL: u32 = 0b01 << 14;
/// CC with the NVM command set (CSS 000b), memory pages of 4 KiB (MPS 0), round robin (AMS 000b), submission
/// entries of 2⁶ bytes (IOSQES), completion entries of 2⁴ bytes (IOCQES), and EN.
pub const CC_START: u32 = 4 << 20 | 6 << 16 | CC_EN;

/// CSTS.RDY: it is ready.
pub const CSTS_RDY: u32 = 1;
/// CSTS.CFS: a fatal error, after which only a reset helps (Base 9.5).
pub const CSTS_CFS: u32 = 1 << 1;
/// CSTS.SHST, the shutdown status.
pub const CSTS_SHST: u32 = 0b11 << 2;
/// CSTS.SHST: the shutdown is complete.
pub const CSTS_SHST_COMPLETE: u32 = 0b10 << 2;

/// Bytes of an entry of a submission queue (Base 3.3.3.1).
pub const SUBMISSION_BYTES: usize = 64;
/// Bytes of an entry of a completion queue (Base 3.3.3.2).
pub const COMPLETION_BYTES: usize = 16;

/// Delete I/O Submission Queue (Base 5.7).
pub const DELETE_SUBMISSION_QUEUE: u8 = 0x00;
/// Create I/O Submission Queue (Base 5.5).
pub const CREATE_SUBMISSION_QUEUE: u8 = 0x01;
/// Delete I/O Completion Queue (Base 5.6).
pub const DELETE_COMPLETION_QUEUE: u8 = 0x04;
/// Create I/O Completion Queue (Base 5.4).
pub const CREATE_COMPLETION_QUEUE: u8 = 0x05;
/// Identify (Base 5.17).
pub const IDENTIFY: u8 = 0x06;
/// Abort (Base 5.1).
pub const ABORT: u8 = 0x08;
/// Set Features (Base 5.27).
pub const SET_FEATURES: u8 = 0x09;
/// Flush (Base 7.1).
pub const FLUSH: u8 = 0x00;
/// Write (NVM 3.2.6).
pub const WRITE: u8 = 0x01;
/// Read (NVM 3.2.4).
pub const READ: u8 = 0x02;

/// Identify CNS 00h: a namespace (NVM 4.1.5.1).
pub const CNS_NAMESPACE: u32 = 0x00;
/// Identify CNS 01h: the controller (Base 5.17.2.1).
pub const CNS_CONTROLLER: u32 = 0x01;
/// Identify CNS 02h: the active namespaces (Base 5.17.2.2).
pub const CNS_ACTIVE_NAMESPACES: u32 = 0x02;
/// Feature 07h, Number of Queues (Base 5.27.1.5).
pub const FEATURE_NUMBER_OF_QUEUES: u32 = 0x07;

/// Force Unit Access: the data is on the medium before the command completes (NVM 3.2.6, command dword 12).
const FUA: u32 = 1 << 30;

/// CAP (Base 3.1.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControllerCapabilities(pub u64);

impl ControllerCapabilities {
    /// MQES: entries that a queue may have. The field is one less.
    pub fn queue_entries_max(self) -> u32 {
        (self.0 & 0xffff) as u32 + 1
    }

    /// TO: how long CSTS.RDY may take to follow CC.EN, in units of 500 ms.
    pub fn ready_timeout(self) -> Duration {
        Duration::from_millis(500 * (self.0 >> 24 & 0xff).max(1))
    }

    /// DSTRD: bytes between two doorbells, 2^(2 + DSTRD).
    pub fn doorbell_stride_bytes(self) -> usize {
        4 << (self.0 >> 32 & 0xf)
    }

    /// CSS bit 0: it knows the NVM command set.
    pub fn has_nvm_commands(self) -> bool {
        self.0 >> 37 & 1 == 1
    }

    /// MPSMIN: the smallest memory page, 2^(12 + MPSMIN).
    pub fn page_bytes_min(self) -> u64 {
        1 << (12 + (self.0 >> 48 & 0xf))
    }
}

/// The offset of a queue's tail doorbell, `SQyTDBL` (PCIe 3.1.2.1).
pub fn tail_doorbell(queue: u16, stride_bytes: usize) -> usize {
    DOORBELLS + 2 * usize::from(queue) * stride_bytes
}

/// The offset of a queue's head doorbell, `CQyHDBL` (PCIe 3.1.2.2).
pub fn head_doorbell(queue: u16, stride_bytes: usize) -> usize {
    DOORBELLS + (2 * usize::from(queue) + 1) * stride_bytes
}

/// A command, laid out as in a submission queue (Base 3.3.3.1): dword 0 has the opcode and, once queued, its
/// identifier; 1 the namespace; 6 to 9 the data pointer; 10 to 15 are specific to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeCommand {
    dwords: [u32; 16],
}

impl NvmeCommand {
    /// A command for a namespace (0 for none), without data.
    #[inline]
    pub fn new(opcode: u8, namespace: u32) -> Self {
        let mut dwords = [0; 16];
        (dwords[0], dwords[1]) = (u32::from(opcode), namespace);
        Self { dwords }
    }

    /// Sets its data pointer. PSDT stays 00b: PRPs are used (Base 4.1.1).
    #[inline]
    #[must_use]
    pub fn data(mut self, prp: Prp) -> Self {
        for (at, entry) in [(6, prp.first), (8, prp.second)] {
            (self.dwords[at], self.dwords[at + 1]) = (entry as u32, (entry >> 32) as u32);
        }
        self
    }

    /// Sets that command dword (10 to 15).
    #[inline]
    #[must_use]
    pub fn dword(mut self, number: usize, value: u32) -> Self {
        self.dwords[number] = value;
        self
    }

    /// Read or Write of `blocks` logical blocks (1 to 65,536) from `block` on (NVM 3.2.4, 3.2.6): dwords 10
    /// and 11 are SLBA, the lower half of 12 is NLB, a 0's based value.
    #[inline]
    fn transfer(opcode: u8, namespace: u32, block: u64, blocks: u32, data: Prp) -> Self {
        let command = Self::new(opcode, namespace).data(data);
        command.dword(10, block as u32).dword(11, (block >> 32) as u32).dword(12, blocks - 1)
    }

    /// Reads blocks (NVM 3.2.4).
    #[inline]
    pub fn read(namespace: u32, block: u64, blocks: u32, data: Prp) -> Self {
        Self::transfer(READ, namespace, block, blocks, data)
    }

    /// Writes blocks; with `durable` they are on the medium when it completes (NVM 3.2.6, FUA).
    #[inline]
    pub fn write(namespace: u32, block: u64, blocks: u32, data: Prp, durable: bool) -> Self {
        let mut command = Self::transfer(WRITE, namespace, block, blocks, data);
        command.dwords[12] |= if durable { FUA } else { 0 };
        command
    }

    /// Makes all completed writes to the namespace durable (Base 7.1).
    #[inline]
    pub fn flush(namespace: u32) -> Self {
        Self::new(FLUSH, namespace)
    }

    /// Requests a data structure of 4 KiB (Base 5.17): dword 10 is CNS.
    pub fn identify(cns: u32, namespace: u32, data: Prp) -> Self {
        Self::new(IDENTIFY, namespace).data(data).dword(10, cns)
    }

    /// Requests that many I/O queues of each kind (Base 5.27.1.5): dword 11 has NCQR above NSQR, both 0's
    /// based. The completion's dword 0 has the number allocated, in the same form.
    pub fn number_of_queues(queues: u16) -> Self {
        let wanted = u32::from(queues.max(1) - 1);
        Self::new(SET_FEATURES, 0).dword(10, FEATURE_NUMBER_OF_QUEUES).dword(11, wanted << 16 | wanted)
    }

    /// Creates a completion queue (Base 5.4): dword 10 has QSIZE, a 0's based value, above QID; dword 11 has
    /// PC, physically contiguous, and no IEN, because it is polled.
    pub fn create_completion_queue(queue: u16, entries: u32, address: u64) -> Self {
        let command = Self::new(CREATE_COMPLETION_QUEUE, 0).data(Prp { first: address, second: 0 });
        command.dword(10, (entries - 1) << 16 | u32::from(queue)).dword(11, 1)
    }

    /// Creates a submission queue that completes into the queue with the same number (Base 5.5): dword 11 has
    /// CQID above QPRIO 00b and PC.
    pub fn create_submission_queue(queue: u16, entries: u32, address: u64) -> Self {
        let command = Self::new(CREATE_SUBMISSION_QUEUE, 0).data(Prp { first: address, second: 0 });
        command.dword(10, (entries - 1) << 16 | u32::from(queue)).dword(11, u32::from(queue) << 16 | 1)
    }

    /// Deletes a queue: first with [`DELETE_SUBMISSION_QUEUE`] (Base 5.7), then with
    /// [`DELETE_COMPLETION_QUEUE`] (Base 5.6).
    pub fn delete_queue(opcode: u8, queue: u16) -> Self {
        Self::new(opcode, 0).dword(10, u32::from(queue))
    }

    /// Requests the abort of a command (Base 5.1): dword 10 has CID above SQID.
    pub fn abort(queue: u16, cid: u16) -> Self {
        Self::new(ABORT, 0).dword(10, u32::from(cid) << 16 | u32::from(queue))
    }

    /// Its entry as 64-bit words, with the identifier (dword 0, bits 31:16).
    #[inline]
    pub fn words(&self, cid: u16) -> [u64; 8] {
        let mut dwords = self.dwords;
        dwords[0] = dwords[0] & 0xffff | u32::from(cid) << 16;
        std::array::from_fn(|n| u64::from(dwords[2 * n]) | u64::from(dwords[2 * n + 1]) << 32)
    }
}

/// A completion (Base 3.3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeCompletion {
    /// Dword 0, specific to the command.
    pub result: u32,
    /// SQHD, how far the controller has consumed the submission queue: dword 2, bits 15:0.
    pub submission_head: u16,
    /// SQID, the submission queue: dword 2, bits 31:16.
    pub queue: u16,
    /// CID, the command: dword 3, bits 15:0.
    pub cid: u16,
    /// P, the phase tag: dword 3, bit 16.
    pub phase: bool,
    /// The status: dword 3, bits 31:17.
    pub status: NvmeStatus,
}

impl NvmeCompletion {
    /// From dwords 0, 2 and 3.
    #[inline]
    pub fn of(dwords: [u32; 3]) -> Self {
        let [result, queue, end] = dwords;
        Self {
            result,
            submission_head: queue as u16,
            queue: (queue >> 16) as u16,
            cid: end as u16,
            phase: has_phase(end),
            status: NvmeStatus((end >> 17) as u16),
        }
    }
}

/// The phase tag in dword 3 of a completion.
#[inline]
pub fn has_phase(dword3: u32) -> bool {
    dword3 >> 16 & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_as_the_drives_of_qemu_give_them() {
        // MQES 2047, CQR, TO 15 (7.5 s), DSTRD 0, CSS NVM, MPSMIN 0, MPSMAX 4.
        let cap = ControllerCapabilities(0x0040_0020_0f01_07ff);
        assert_eq!(cap.queue_entries_max(), 2048);
        assert_eq!(cap.ready_timeout(), Duration::from_millis(7500));
        assert_eq!((cap.doorbell_stride_bytes(), cap.page_bytes_min()), (4, 4096));
        assert!(cap.has_nvm_commands());
    }

    #[test]
    fn doorbells_lie_in_pairs() {
        assert_eq!((tail_doorbell(0, 4), head_doorbell(0, 4)), (0x1000, 0x1004));
        assert_eq!((tail_doorbell(3, 8), head_doorbell(3, 8)), (0x1030, 0x1038));
    }

    #[test]
    fn a_write_lies_in_its_entry_as_the_specification_draws_it() {
        let data = Prp { first: 0x1_0000_2000, second: 0x3000 };
        let words = NvmeCommand::write(7, 0x1_0000_0005, 16, data, true).words(0xabcd);
        assert_eq!(words[0], 7 << 32 | 0xabcd_0001);
        assert_eq!((words[3], words[4]), (0x1_0000_2000, 0x3000));
        assert_eq!(words[5], 0x1_0000_0005);
        assert_eq!(words[6], u64::from(FUA | 15));
        assert_eq!((words[1], words[2], words[7]), (0, 0, 0));
    }

    #[test]
    fn queues_are_made_contiguous_and_without_interrupts() {
        let words = NvmeCommand::create_completion_queue(2, 64, 0x7000).words(1);
        assert_eq!(words[5], 1 << 32 | 63 << 16 | 2);
        let words = NvmeCommand::create_submission_queue(2, 64, 0x8000).words(1);
        assert_eq!(words[5], (2 << 16 | 1) << 32 | 63 << 16 | 2);
        assert_eq!(NvmeCommand::number_of_queues(8).words(0)[5], (7 << 16 | 7) << 32 | 7);
    }

    #[test]
    fn a_completion_is_taken_apart() {
        let completion = NvmeCompletion::of([9, 3 << 16 | 5, 0x8005_0011]);
        assert_eq!(
            (completion.result, completion.submission_head, completion.queue, completion.cid),
            (9, 5, 3, 17)
        );
        assert!(completion.phase);
        assert_eq!(completion.status, NvmeStatus(0x4002));
    }
}
