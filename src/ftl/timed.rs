//! A drive with a clock: each die does one thing at a time, in the order in which it was asked.
//!
//! A read ends when its last page has been read; pages that miss in the mapping cache wait for their
//! translation page first. A write ends when its pages are in the drive's buffer, which is protected against
//! power loss; each place in it is free again once its page has been programmed. Garbage is collected on the
//! same dies: whatever queues behind it waits, which makes the tail of the latencies.
//!
//! Times are those of He et al. 2017: 20 µs for a read, 200 µs for a program, 1.5 ms for an erase.

use super::counts::Cause;
use super::drive::FlashDrive;
use super::flash::{FlashAct, FlashWork};
use super::sizes::{ENTRY_BYTES, FlashSpec, Mapping};

const READ_NS: u64 = 20_000;
const PROGRAM_NS: u64 = 200_000;
const ERASE_NS: u64 = 1_500_000;
/// What a command takes besides its work on flash.
const COMMAND_NS: u64 = 10_000;
/// A flush takes only this: the buffer is durable.
const FLUSH_NS: u64 = 20_000;
const DIES: u32 = 16;
/// Pages that the buffer holds per die.
const BUFFERED: usize = 16;
/// Page size, unless the drive would have too many pages.
const PAGE_BYTES: u64 = 4096;
/// Pages per part of a command.
const PART_PAGES: u64 = 256;
/// Pages of a block.
const BLOCK_PAGES: u64 = 32;
/// Maximum pages that the host sees: larger drives have larger pages.
const PAGES_MAX: u64 = 1 << 19;

/// A drive with a clock, full from the start.
#[derive(Debug)]
pub struct Timed {
    drive: FlashDrive,
    /// When each die becomes free.
    dies: Vec<u64>,
    /// When each place of the buffer becomes free.
    buffer: Vec<u64>,
    /// The next place to use.
    next: usize,
    busy_ns: u64,
    /// What flash did for a command; kept to reuse the allocation.
    acts: Vec<FlashWork>,
}

impl Timed {
    /// A drive of that capacity. As shares: flash beyond the capacity, and the map that fits in memory; a map
    /// that fits whole takes no flash. `None` if there can't be such a drive.
    pub fn new(capacity_bytes: u64, over_provision: f64, mapped: f64) -> Option<Self> {
        let mut page_bytes = PAGE_BYTES;
        while capacity_bytes / page_bytes > PAGES_MAX {
            page_bytes *= 2;
        }
        let map_bytes = capacity_bytes / page_bytes * ENTRY_BYTES;
        let spec = FlashSpec {
            capacity_bytes,
            page_bytes,
            block_bytes: page_bytes * BLOCK_PAGES,
            dies: DIES,
            over_provision,
            mapping: if mapped < 1.0 {
                Mapping::OnDemand { cache_bytes: (map_bytes as f64 * mapped) as u64 }
            } else {
                Mapping::Page
            },
            streams: 1,
            wear_spread: None,
        };
        let mut drive = FlashDrive::new(&spec).ok()?;
        drive.fill();
        drive.forget();
        Some(Self::of(drive))
    }

    /// Adds a clock to a drive.
    pub fn of(drive: FlashDrive) -> Self {
        let dies = drive.sizes().dies as usize;
        let buffer = vec![0; dies * BUFFERED];
        Self { drive, dies: vec![0; dies], buffer, next: 0, busy_ns: 0, acts: Vec::new() }
    }

    /// The drive.
    pub fn drive(&self) -> &FlashDrive {
        &self.drive
    }

    /// Restarts the clock, with nothing to do.
    pub fn restart(&mut self) {
        self.dies.fill(0);
        self.buffer.fill(0);
        self.busy_ns = 0;
    }

    /// When all dies become idle.
    pub fn idle_from_ns(&self) -> u64 {
        self.dies.iter().copied().max().unwrap_or(0)
    }

    /// Total time that the dies were busy.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Reads; returns when the read ends.
    pub fn read(&mut self, now_ns: u64, offset_bytes: u64, bytes: u64) -> u64 {
        self.run(now_ns, offset_bytes, bytes, FlashDrive::read)
    }

    /// Writes; returns when the write ends.
    pub fn write(&mut self, now_ns: u64, offset_bytes: u64, bytes: u64) -> u64 {
        self.run(now_ns, offset_bytes, bytes, FlashDrive::write)
    }

    /// Discards; returns when the discard ends.
    pub fn discard(&mut self, now_ns: u64, offset_bytes: u64, bytes: u64) -> u64 {
        self.run(now_ns, offset_bytes, bytes, FlashDrive::discard)
    }

    /// Runs a command in parts of whole pages, so that the record of its work stays small.
    fn run(
        &mut self,
        now_ns: u64,
        offset_bytes: u64,
        bytes: u64,
        what: fn(&mut FlashDrive, u64, u64),
    ) -> u64 {
        let part_bytes = self.drive.page_bytes() * PART_PAGES;
        let (mut from, end) = (offset_bytes, offset_bytes + bytes);
        let mut end_ns = now_ns + COMMAND_NS;
        while from < end {
            let behind = end.min((from / part_bytes + 1) * part_bytes);
            self.drive.flash_mut().acts = Some(std::mem::take(&mut self.acts));
            what(&mut self.drive, from, behind - from);
            end_ns = end_ns.max(self.serve(now_ns));
            from = behind;
        }
        end_ns
    }

    /// Makes all writes durable; returns when that ends. The buffer survives a power cut, so there is nothing to do.
    pub fn flush(now_ns: u64) -> u64 {
        now_ns + FLUSH_NS
    }

    /// Bytes written by the host, and bytes written to flash.
    pub fn written_bytes(&self) -> [u64; 2] {
        let counts = self.drive.counts();
        [counts.host_written_bytes, counts.programs.iter().sum::<u64>() * self.drive.page_bytes()]
    }

    /// Queues on the dies what a part of a command made them do; returns when it ends.
    fn serve(&mut self, now_ns: u64) -> u64 {
        self.acts = self.drive.flash_mut().acts.take().unwrap_or_default();
        // What the host waits for: translation pages before its own, then places in the buffer, one by one.
        let (mut ready_ns, mut end_ns) = (now_ns + COMMAND_NS, now_ns + COMMAND_NS);
        for FlashWork { act, die, cause } in &self.acts {
            let waits = *cause == Cause::Host;
            if waits && *act == FlashAct::Program {
                ready_ns = ready_ns.max(self.buffer[self.next]);
                end_ns = end_ns.max(ready_ns);
            }
            let takes_ns = match act {
                FlashAct::Read => READ_NS,
                FlashAct::Program => PROGRAM_NS,
                FlashAct::Erase => ERASE_NS,
            };
            let free_ns = &mut self.dies[*die as usize];
            *free_ns = ready_ns.max(*free_ns) + takes_ns;
            self.busy_ns += takes_ns;
            match (act, cause) {
                (FlashAct::Program, Cause::Host) => {
                    self.buffer[self.next] = *free_ns;
                    self.next = (self.next + 1) % self.buffer.len();
                }
                (FlashAct::Read, Cause::Host) => end_ns = end_ns.max(*free_ns),
                (FlashAct::Read, Cause::Mapping) => {
                    ready_ns = ready_ns.max(*free_ns);
                    end_ns = end_ns.max(ready_ns);
                }
                _ => {}
            }
        }
        self.acts.clear();
        end_ns
    }
}
