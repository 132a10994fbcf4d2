//! What the in-memory controller does: it fetches, performs and completes commands.

use std::collections::{BTreeMap, VecDeque};

use super::model_memory::HostMemory;
use super::prp::{PAGE_BYTES, TRANSFER_BYTES_MAX};
use super::spec;
use super::status::NvmeStatus;

/// How I/O commands are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Answers {
    /// At once.
    #[default]
    Prompt,
    /// Only on [`Model::release`](super::model::Model::release).
    Held,
    /// Never, whether aborted or not.
    Never,
    /// Only if they are aborted.
    IfAborted,
}

/// A fetched command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fetched {
    queue: u16,
    dwords: [u32; 16],
}

impl Fetched {
    fn cid(&self) -> u16 {
        (self.dwords[0] >> 16) as u16
    }

    fn word(&self, at: usize) -> u64 {
        u64::from(self.dwords[at]) | u64::from(self.dwords[at + 1]) << 32
    }
}

#[derive(Debug, Default)]
pub(super) struct Ring {
    address: u64,
    entries: u32,
    /// In a submission queue, where the controller fetches next; in a completion queue, where the host reads.
    head: u32,
    tail: u32,
    phase: bool,
}

#[derive(Default)]
pub(super) struct ModelState {
    pub cc: u32,
    pub csts: u32,
    pub registers: BTreeMap<usize, u32>,
    pub submissions: BTreeMap<u16, Ring>,
    pub completions: BTreeMap<u16, Ring>,
    pub held: VecDeque<Fetched>,
    pub memory: HostMemory,
    /// Blocks of each namespace.
    pub disks: BTreeMap<u32, Vec<u8>>,
    pub answers: Answers,
    pub statuses: VecDeque<NvmeStatus>,
    pub now_ns: u64,
    /// Opcode and bytes of each I/O command, in the order of fetching.
    pub seen: Vec<(u8, usize)>,
    pub doorbells: u64,
    pub gone: bool,
    pub never_ready: bool,
    pub mute: bool,
    /// Whether a completion was forged: its command is then answered again, and the queue may overflow.
    pub forged: bool,
    pub aborts: u64,
    pub starts: u64,
}

/// What the controller is like.
#[derive(Debug, Clone)]
pub struct Traits {
    /// CAP.
    pub cap: u64,
    /// MDTS.
    pub mdts: u8,
    /// I/O queue pairs.
    pub queues: u16,
    /// Namespaces with their blocks and LBADS.
    pub namespaces: Vec<(u32, u64, u8)>,
}

impl Default for Traits {
    /// 64 entries per queue, 500 ms to become ready, 16 KiB per command, two namespaces.
    fn default() -> Self {
        let (mqes, timeout, nvm) = (63, 1 << 24, 1 << 37);
        let namespaces = vec![(1, 4096, 9), (3, 512, 12)];
        Self { cap: mqes | 1 << 16 | timeout | nvm, mdts: 2, queues: 4, namespaces }
    }
}

impl ModelState {
    pub fn configure(&mut self, cc: u32) {
        let (was, is) = (self.cc & spec::CC_EN, cc & spec::CC_EN);
        self.cc = cc;
        if was == 0 && is == 1 && self.never_ready {
            self.csts = 0;
        } else if was == 0 && is == 1 {
            assert_eq!(cc, spec::CC_START, "configured as this driver does");
            let aqa = self.registers[&spec::AQA];
            let ring = |address: usize, size: u32| Ring {
                address: u64::from(self.registers[&address])
                    | u64::from(self.registers[&(address + 4)]) << 32,
                entries: (size & 0xfff) + 1,
                phase: true,
                ..Ring::default()
            };
            let (submission, completion) = (ring(spec::ASQ, aqa), ring(spec::ACQ, aqa >> 16));
            self.submissions = BTreeMap::from([(0, submission)]);
            self.completions = BTreeMap::from([(0, completion)]);
            self.csts = spec::CSTS_RDY;
            self.starts += 1;
        } else if was == 1 && is == 0 {
            self.csts &= !(spec::CSTS_RDY | spec::CSTS_CFS);
            self.held.clear();
            self.submissions.clear();
            self.completions.clear();
        }
        if cc & spec::CC_SHN == spec::CC_SHN_NORMAL {
            self.csts |= spec::CSTS_SHST_COMPLETE;
        } else if is == 1 {
            self.csts &= !spec::CSTS_SHST;
        }
    }

    /// The host has written commands up to `tail`.
    pub fn fetch(&mut self, traits: &Traits, queue: u16, tail: u32) {
        let Some(ring) = self.submissions.get(&queue) else { return };
        assert!(tail < ring.entries, "tail {tail} of {}", ring.entries);
        loop {
            let ring = self.submissions.get_mut(&queue).unwrap();
            if ring.head == tail {
                return;
            }
            let at = ring.address + u64::from(ring.head) * spec::SUBMISSION_BYTES as u64;
            ring.head = (ring.head + 1) % ring.entries;
            let mut dwords = [0; 16];
            for n in 0..8 {
                let word = self.memory.read(at + n * 8);
                (dwords[n as usize * 2], dwords[n as usize * 2 + 1]) = (word as u32, (word >> 32) as u32);
            }
            self.take(traits, Fetched { queue, dwords });
            if !self.submissions.contains_key(&queue) {
                return;
            }
        }
    }

    fn take(&mut self, traits: &Traits, command: Fetched) {
        if command.queue == 0 {
            if !self.mute {
                self.admin(traits, command);
            }
            return;
        }
        match self.answers {
            Answers::Prompt => self.perform(traits, command),
            _ => self.held.push_back(command),
        }
    }

    /// The host has taken completions up to `head`.
    pub fn free(&mut self, queue: u16, head: u32) {
        let Some(ring) = self.completions.get_mut(&queue) else { return };
        assert!(head < ring.entries, "head {head} of {}", ring.entries);
        ring.head = head;
    }

    fn admin(&mut self, traits: &Traits, command: Fetched) {
        let (opcode, dword10) = (command.dwords[0] as u8, command.dwords[10]);
        let (id, entries) = (dword10 as u16, (dword10 >> 16) + 1);
        let ring = Ring { address: command.word(6), entries, phase: true, ..Ring::default() };
        let mut result = 0;
        let status = match opcode {
            spec::IDENTIFY => self.identify(traits, &command),
            spec::SET_FEATURES => {
                let granted = u32::from(traits.queues - 1);
                result = granted << 16 | granted;
                NvmeStatus::SUCCESS
            }
            spec::CREATE_COMPLETION_QUEUE => {
                assert!(command.dwords[11] == 1 && id > 0 && id <= traits.queues);
                self.completions.insert(id, ring);
                NvmeStatus::SUCCESS
            }
            spec::CREATE_SUBMISSION_QUEUE if self.completions.contains_key(&id) => {
                assert_eq!(command.dwords[11], u32::from(id) << 16 | 1);
                self.submissions.insert(id, ring);
                NvmeStatus::SUCCESS
            }
            spec::CREATE_SUBMISSION_QUEUE => NvmeStatus(0x100),
            spec::DELETE_SUBMISSION_QUEUE => {
                self.held.retain(|held| held.queue != id);
                self.submissions.remove(&id).map_or(NvmeStatus(0x101), |_| NvmeStatus::SUCCESS)
            }
            spec::DELETE_COMPLETION_QUEUE if self.submissions.contains_key(&id) => NvmeStatus(0x10c),
            spec::DELETE_COMPLETION_QUEUE => {
                self.completions.remove(&id).map_or(NvmeStatus(0x101), |_| NvmeStatus::SUCCESS)
            }
            spec::ABORT => {
                result = u32::from(!self.abort(dword10 as u16, (dword10 >> 16) as u16));
                NvmeStatus::SUCCESS
            }
            _ => NvmeStatus(1),
        };
        self.complete(&command, result, status);
    }

    fn abort(&mut self, queue: u16, cid: u16) -> bool {
        self.aborts += 1;
        let found = self.held.iter().position(|held| held.queue == queue && held.cid() == cid);
        let Some(at) = found.filter(|_| self.answers != Answers::Never) else { return false };
        let command = self.held.remove(at).unwrap();
        self.complete(&command, 0, NvmeStatus::ABORT_REQUESTED);
        true
    }

    fn identify(&mut self, traits: &Traits, command: &Fetched) -> NvmeStatus {
        let mut data = vec![0_u8; PAGE_BYTES];
        match command.dwords[10] {
            spec::CNS_CONTROLLER => {
                data[4..9].copy_from_slice(b"MODEL");
                data[77] = traits.mdts;
                (data[512], data[513], data[516]) = (0x66, 0x44, 8);
            }
            spec::CNS_ACTIVE_NAMESPACES => {
                for (n, (id, ..)) in traits.namespaces.iter().enumerate() {
                    data[n * 4..][..4].copy_from_slice(&id.to_le_bytes());
                }
            }
            spec::CNS_NAMESPACE => {
                let found = traits.namespaces.iter().find(|(id, ..)| *id == command.dwords[1]);
                if let Some((_, blocks, shift)) = found {
                    data[..8].copy_from_slice(&blocks.to_le_bytes());
                    data[130] = *shift;
                }
            }
            _ => return NvmeStatus(0x4002),
        }
        self.memory.write_bytes(command.word(6), &data);
        NvmeStatus::SUCCESS
    }

    pub fn perform(&mut self, traits: &Traits, command: Fetched) {
        let (opcode, namespace) = (command.dwords[0] as u8, command.dwords[1]);
        let denied = self.statuses.pop_front().filter(|status| !status.is_success());
        let shift = traits.namespaces.iter().find(|(id, ..)| *id == namespace).map(|(.., shift)| *shift);
        let status = match (denied, shift) {
            (Some(status), _) => status,
            (None, None) => NvmeStatus(0x0b),
            (None, Some(shift)) => self.perform_on(traits, &command, opcode, shift),
        };
        self.complete(&command, 0, status);
    }

    fn perform_on(&mut self, traits: &Traits, command: &Fetched, opcode: u8, shift: u8) -> NvmeStatus {
        let namespace = command.dwords[1];
        let size = self.disks[&namespace].len();
        let start = (command.word(10) << shift) as usize;
        let bytes = ((command.dwords[12] as usize & 0xffff) + 1) << shift;
        match opcode {
            spec::FLUSH => {
                self.seen.push((opcode, 0));
                NvmeStatus::SUCCESS
            }
            spec::READ | spec::WRITE => {
                self.seen.push((opcode, bytes));
                let limit = if traits.mdts == 0 { TRANSFER_BYTES_MAX } else { PAGE_BYTES << traits.mdts };
                if bytes > limit {
                    return NvmeStatus(0x4002);
                }
                if start + bytes > size {
                    return NvmeStatus(0x80);
                }
                let mut at = start;
                for (address, length) in self.pages(command, bytes) {
                    if opcode == spec::WRITE {
                        let data = self.memory.read_bytes(address, length);
                        self.disks.get_mut(&namespace).unwrap()[at..at + length].copy_from_slice(&data);
                    } else {
                        let data = self.disks[&namespace][at..at + length].to_vec();
                        self.memory.write_bytes(address, &data);
                    }
                    at += length;
                }
                NvmeStatus::SUCCESS
            }
            _ => NvmeStatus(1),
        }
    }

    /// The pieces of a command's data, by its PRP entries (Base 4.1.1).
    fn pages(&self, command: &Fetched, bytes: usize) -> Vec<(u64, usize)> {
        let (first, second) = (command.word(6), command.word(8));
        assert!(first.is_multiple_of(4), "PRP1 is aligned to dwords");
        let in_first = (PAGE_BYTES - (first as usize % PAGE_BYTES)).min(bytes);
        let mut pieces = vec![(first, in_first)];
        let mut left = bytes - in_first;
        let further = left.div_ceil(PAGE_BYTES);
        let addresses: Vec<u64> = match further {
            0 => Vec::new(),
            1 => vec![second],
            pages => (0..pages as u64).map(|n| self.memory.read(second + n * 8)).collect(),
        };
        for address in addresses {
            assert!(address.is_multiple_of(PAGE_BYTES as u64), "further pages begin at a page");
            pieces.push((address, left.min(PAGE_BYTES)));
            left -= left.min(PAGE_BYTES);
        }
        pieces
    }

    fn complete(&mut self, command: &Fetched, result: u32, status: NvmeStatus) {
        let head = self.submissions.get(&command.queue).map_or(0, |ring| ring.head);
        let (address, phase) = self.next_completion(command.queue);
        let end = u32::from(status.0) << 17 | u32::from(phase) << 16 | u32::from(command.cid());
        self.write_completion(address, [result, 0, u32::from(command.queue) << 16 | head, end]);
    }

    /// Where the next completion goes, and its phase; advances the tail.
    pub fn next_completion(&mut self, queue: u16) -> (u64, bool) {
        let ring = self.completions.get_mut(&queue).expect("the queue is there");
        let (address, phase) = (ring.address + u64::from(ring.tail) * 16, ring.phase);
        ring.tail = (ring.tail + 1) % ring.entries;
        ring.phase ^= ring.tail == 0;
        assert!(self.forged || ring.tail != ring.head, "the completion queue has room");
        (address, phase)
    }

    pub fn write_completion(&self, address: u64, dwords: [u32; 4]) {
        let word = |n: usize| u64::from(dwords[n]) | u64::from(dwords[n + 1]) << 32;
        self.memory.write(address, word(0));
        self.memory.write(address + 8, word(2));
    }
}
