//! A controller in memory, for tests: registers, queues and phase tags as specified, and answers that can be
//! held back, reordered, denied or corrupted.
//!
//! It checks its host as strictly as it can: it panics on a doorbell beyond the ring, a data pointer that the
//! specification does not allow, or a completion queue that overflows.

use std::sync::{Arc, Mutex, MutexGuard};

use super::bus::Bus;
use super::dma::Dma;
use super::model_memory::HostMemory;
use super::model_state::ModelState;
pub use super::model_state::{Answers, Traits};
use super::spec;
use super::status::NvmeStatus;
use crate::error::Result;

/// A controller in memory.
pub struct ControllerModel {
    traits: Traits,
    state: Mutex<ModelState>,
    memory: HostMemory,
}

impl Default for ControllerModel {
    fn default() -> Self {
        Arc::into_inner(Self::new(Traits::default())).expect("nobody else has it")
    }
}

impl ControllerModel {
    /// A controller with these traits.
    pub fn new(traits: Traits) -> Arc<Self> {
        Self::reaching(traits, HostMemory::default())
    }

    /// Another controller that reaches the same memory as this one.
    pub fn beside(other: &Self, traits: Traits) -> Arc<Self> {
        Self::reaching(traits, other.memory.clone())
    }

    fn reaching(traits: Traits, memory: HostMemory) -> Arc<Self> {
        let disk = |&(id, blocks, shift): &(u32, u64, u8)| (id, vec![0; (blocks << shift) as usize]);
        let disks = traits.namespaces.iter().map(disk).collect();
        let state = ModelState { disks, memory: memory.clone(), ..ModelState::default() };
        Arc::new(Self { traits, state: Mutex::new(state), memory })
    }

    fn lock(&self) -> MutexGuard<'_, ModelState> {
        self.state.lock().unwrap()
    }

    /// How to answer I/O commands from now on.
    pub fn answer(&self, answers: Answers) {
        self.lock().answers = answers;
    }

    /// Gives the next I/O commands these statuses.
    pub fn deny(&self, statuses: impl IntoIterator<Item = NvmeStatus>) {
        self.lock().statuses.extend(statuses);
    }

    /// Answers one of the held commands, by its index among them; false if there is none.
    pub fn release(&self, at: usize) -> bool {
        let mut state = self.lock();
        let Some(command) = state.held.remove(at) else { return false };
        state.perform(&self.traits, command);
        true
    }

    /// Commands that are held.
    pub fn held(&self) -> usize {
        self.lock().held.len()
    }

    /// Pulls the drive out.
    pub fn pull(&self) {
        self.lock().gone = true;
    }

    /// Makes it report a fatal error.
    pub fn fail_fatally(&self) {
        self.lock().csts |= spec::CSTS_CFS;
    }

    /// Makes it stop by itself.
    pub fn stop(&self) {
        self.lock().csts = 0;
    }

    /// Makes it never become ready (again).
    pub fn never_ready(&self) {
        self.lock().never_ready = true;
    }

    /// Makes it ignore admin commands from now on.
    pub fn mute_admin(&self) {
        self.lock().mute = true;
    }

    /// Lets time pass.
    pub fn pass(&self, ns: u64) {
        self.lock().now_ns += ns;
    }

    /// Writes an arbitrary entry to a completion queue, as a broken controller would: these dwords at the
    /// controller's tail, which moves on.
    pub fn forge(&self, queue: u16, mut dwords: [u32; 4], right_phase: bool) {
        let mut state = self.lock();
        state.forged = true;
        let (address, phase) = state.next_completion(queue);
        dwords[3] = dwords[3] & !(1 << 16) | u32::from(phase == right_phase) << 16;
        state.write_completion(address, dwords);
    }

    /// Opcode and bytes of each I/O command since the last call.
    pub fn take_seen(&self) -> Vec<(u8, usize)> {
        std::mem::take(&mut self.lock().seen)
    }

    /// Writes to doorbells of I/O queues since the last call.
    pub fn take_doorbells(&self) -> u64 {
        std::mem::take(&mut self.lock().doorbells)
    }

    /// Aborts that the host requested.
    pub fn aborts(&self) -> u64 {
        self.lock().aborts
    }

    /// How often it was enabled.
    pub fn starts(&self) -> u64 {
        self.lock().starts
    }

    /// Whether it was shut down normally and is disabled.
    pub fn is_shut_down(&self) -> bool {
        let state = self.lock();
        state.csts & spec::CSTS_SHST == spec::CSTS_SHST_COMPLETE && state.cc & spec::CC_EN == 0
    }

    /// Number of I/O queues.
    pub fn queues(&self) -> usize {
        self.lock().submissions.keys().filter(|id| **id > 0).count()
    }

    /// Bytes of a namespace.
    pub fn disk(&self, namespace: u32) -> Vec<u8> {
        self.lock().disks[&namespace].clone()
    }
}

impl Bus for ControllerModel {
    fn name(&self) -> &'static str {
        "the model"
    }

    fn now_ns(&self) -> u64 {
        self.lock().now_ns
    }

    fn pause(&self) {
        self.pass(1_000_000);
    }

    fn register_bytes(&self) -> usize {
        0x2000
    }

    fn read32(&self, offset: usize) -> u32 {
        let state = self.lock();
        match offset {
            _ if state.gone => spec::GONE,
            spec::CAP => self.traits.cap as u32,
            0x04 => (self.traits.cap >> 32) as u32,
            spec::CC => state.cc,
            spec::CSTS => state.csts,
            _ => state.registers.get(&offset).copied().unwrap_or(0),
        }
    }

    fn write32(&self, offset: usize, value: u32) {
        let mut state = self.lock();
        if state.gone {
            return;
        }
        match offset {
            spec::CC => state.configure(value),
            doorbell if doorbell >= spec::DOORBELLS => {
                let number = (doorbell - spec::DOORBELLS) / (4 << (self.traits.cap >> 32 & 0xf));
                let queue = (number / 2) as u16;
                state.doorbells += u64::from(queue > 0);
                if number.is_multiple_of(2) {
                    state.fetch(&self.traits, queue, value);
                } else {
                    state.free(queue, value);
                }
            }
            other => drop(state.registers.insert(other, value)),
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Dma> {
        Ok(self.memory.allocate(bytes))
    }
}
