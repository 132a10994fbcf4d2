//! `sim`: seeded devices on a virtual clock, with latencies and faults from a table.
//!
//! For tests and demonstrations. A device serves as many operations at once as it has channels. A flush waits
//! for the operations already accepted and, on a consumer device, blocks all others meanwhile (Haas et al.
//! 2020, section A.1). The device `ftl` models flash instead: [`crate::ftl::Timed`].

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::backend::{Op, OpKind, Queue};
use super::buffers::Buffers;
use crate::ftl::Timed;
use crate::settings::{Sim, SimDevice};
use crate::units::SECOND_NS;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Operations served at the same time.
    pub channels: usize,
    /// Time of a read of 16 KiB without queueing.
    pub read_ns: f64,
    /// Time of a write of 16 KiB into the device's cache.
    pub write_ns: f64,
    /// Time of a flush.
    pub flush_ns: f64,
    /// Whether a flush holds up every other operation.
    pub flush_blocks: bool,
    /// Time added per byte beyond 16 KiB.
    pub byte_ns: f64,
    /// One in this many reads is slower by [`Self::tail_factor`]; 0 means none.
    pub tail_every: u32,
    /// How much slower those are.
    pub tail_factor: f64,
    /// One in this many operations fails with EIO; 0 means none.
    pub fault_every: u32,
    /// Nothing is served between these two times.
    pub hangs: Option<(u64, u64)>,
}

/// The simulated devices. Times are of the order given in the paper: reads of about 100 µs, flushes of 1 to 3
/// ms on a consumer drive and 20 µs on an enterprise one (sections 4.7 and A.1).
pub const MODELS: &[(SimDevice, Model)] = &[
    (SimDevice::Consumer, CONSUMER),
    (
        SimDevice::Enterprise,
        Model { channels: 64, flush_ns: 20e3, flush_blocks: false, tail_factor: 3.0, ..CONSUMER },
    ),
    (SimDevice::Faulty, Model { fault_every: 200, ..CONSUMER }),
    (SimDevice::Hanging, Model { hangs: Some((7 * SECOND_NS, 12 * SECOND_NS)), ..CONSUMER }),
];

const CONSUMER: Model = Model {
    channels: 32,
    read_ns: 90e3,
    write_ns: 25e3,
    flush_ns: 1.8e6,
    flush_blocks: true,
    byte_ns: 0.25,
    tail_every: 500,
    tail_factor: 8.0,
    fault_every: 0,
    hangs: None,
};

/// One simulated device.
#[derive(Debug)]
pub struct SimulatedDevice {
    model: Model,
    rng: SmallRng,
    /// When each channel is free.
    channels: Vec<u64>,
    /// No operation begins before this.
    blocked_until_ns: u64,
    /// The flash model, in place of channels.
    flash: Option<Timed>,
}

impl SimulatedDevice {
    /// Device `number` of the configured kind, of this capacity.
    pub fn new(sim: &Sim, number: u64, capacity_bytes: u64) -> Self {
        let kind = sim.device;
        let model = MODELS.iter().find(|(known, _)| *known == kind).map_or(CONSUMER, |(_, model)| *model);
        let channels = vec![0; model.channels];
        let shares = [sim.over_provision_percent, sim.mapping_cache_percent];
        let [over_provision, mapped] = shares.map(|percent| percent as f64 / 100.0);
        let flash = (kind == SimDevice::Ftl).then(|| Timed::new(capacity_bytes, over_provision, mapped));
        let rng = SmallRng::seed_from_u64(sim.seed.wrapping_add(number << 32));
        Self { model, rng, channels, blocked_until_ns: 0, flash: flash.flatten() }
    }

    /// Bytes written by the host, and bytes written to flash; `None` without a flash model.
    pub fn written_bytes(&self) -> Option<[u64; 2]> {
        self.flash.as_ref().map(Timed::written_bytes)
    }

    /// Takes an operation now; returns when it completes and its result.
    pub fn take(&mut self, now_ns: u64, op: Op, page_bytes: usize) -> (u64, i32) {
        let kind = op.kind;
        if let Some(flash) = &mut self.flash {
            let bytes = page_bytes as u64;
            return match kind {
                OpKind::Flush => (Timed::flush(now_ns), 0),
                OpKind::Read => (flash.read(now_ns, op.offset_bytes, bytes), page_bytes as i32),
                OpKind::Write | OpKind::WriteDurable => {
                    (flash.write(now_ns, op.offset_bytes, bytes), page_bytes as i32)
                }
            };
        }
        if let Some((from_ns, until_ns)) = self.model.hangs
            && now_ns >= from_ns
        {
            self.blocked_until_ns = self.blocked_until_ns.max(until_ns);
        }
        let result = if self.one_in(self.model.fault_every) {
            -libc::EIO
        } else if kind == OpKind::Flush {
            0
        } else {
            page_bytes as i32
        };
        let end_ns = match kind {
            OpKind::Flush => self.flush(now_ns),
            OpKind::WriteDurable => {
                self.serve(now_ns, self.model.write_ns, page_bytes);
                self.flush(now_ns)
            }
            OpKind::Write => self.serve(now_ns, self.model.write_ns, page_bytes),
            OpKind::Read if self.one_in(self.model.tail_every) => {
                self.serve(now_ns, self.model.read_ns * self.model.tail_factor, page_bytes)
            }
            OpKind::Read => self.serve(now_ns, self.model.read_ns, page_bytes),
        };
        (end_ns, result)
    }

    fn serve(&mut self, now_ns: u64, base_ns: f64, page_bytes: usize) -> u64 {
        let further = page_bytes as f64 - 16384.0;
        let ns = self.spread((base_ns + further * self.model.byte_ns).max(base_ns / 4.0));
        let ready_ns = self.blocked_until_ns.max(now_ns);
        let channel = self.channels.iter_mut().min().expect("a device has channels");
        *channel = (*channel).max(ready_ns) + ns;
        *channel
    }

    fn flush(&mut self, now_ns: u64) -> u64 {
        let taken_ns = self.channels.iter().copied().max().unwrap_or(0);
        let hung_ns = if self.model.hangs.is_some() { self.blocked_until_ns } else { 0 };
        let end_ns = taken_ns.max(now_ns).max(hung_ns) + self.spread(self.model.flush_ns);
        if self.model.flush_blocks {
            self.blocked_until_ns = end_ns;
        }
        end_ns
    }

    /// Scales by 0.8 to 1.4; smaller factors are more likely.
    fn spread(&mut self, ns: f64) -> u64 {
        let x = self.rng.random::<f64>();
        (ns * (0.8 + 0.6 * x * x)) as u64
    }

    fn one_in(&mut self, n: u32) -> bool {
        n > 0 && self.rng.random_range(0..n) == 0
    }
}

/// Where a simulated worker queues its operations.
#[derive(Debug)]
pub struct SimQueue {
    buffers: Buffers,
    queued: Vec<Op>,
}

impl SimQueue {
    /// A queue with that many buffers.
    pub fn new(slots: u32, page_bytes: usize) -> Self {
        Self { buffers: Buffers::new(slots, page_bytes), queued: Vec::new() }
    }

    /// Takes the operations queued since the last call.
    pub fn drain(&mut self) -> impl Iterator<Item = Op> {
        self.queued.drain(..)
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.buffers.page_bytes()
    }
}

impl Queue for SimQueue {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.get(slot)
    }

    fn queue(&mut self, op: Op) {
        self.queued.push(op);
    }
}
