//! A drive with a clock: each die does one thing at a time, in the order in which it was given.
//!
//! A read ends when its last page was read; those that are looked up in the mapping's cache in vain wait for the
//! translation page first. A write ends when its pages are in the drive's buffer, which survives a loss of power and has a
//! place again for each page that was programmed. Garbage is collected on the same dies: what comes behind it waits, and
//! that is the tail of the latencies.
//!
//! Times are those of He et al. 2017: 20 µs for a read, 200 µs for a program, 1.5 ms for an erase.

use super::counts::Cause;
use super::drive::FlashDrive;
use super::flash::{FlashAct, FlashWork};
use super::sizes::{ENTRY_BYTES, FlashSpec, Mapping};

const READ_NS: u64 = 20_000;
const PROGRAM_NS: u64 = 200_000;
const ERASE_NS: u64 = 1_500_000;
/// What a command takes besides flash.
const COMMAND_NS: u64 = 10_000;
/// A flush finds everything in the buffer.
const FLUSH_NS: u64 = 20_000;
const DIES: u32 = 16;
/// Pages that the buffer holds for each die.
const BUFFERED: usize = 16;
/// A page, unless the drive has too many of them.
const PAGE_BYTES: u64 = 4096;
/// Pages of a part of a command.
const PART_PAGES: u64 = 256;
/// Pages of a block.
const BLOCK_PAGES: u64 = 32;
/// Pages that the host sees, at most: larger drives have larger pages.
const PAGES_MAX: u64 = 1 << 19;

/// A drive with a clock, full from the beginning.
#[derive(Debug)]
pub struct Timed {
    drive: FlashDrive,
    /// When each die is free.
    dies: Vec<u64>,
    /// When each place of the buffer is free.
    buffer: Vec<u64>,
    /// The next place.
    next: usize,
    busy_ns: u64,
    /// What flash did for a command; kept for its memory.
    acts: Vec<FlashWork>,
}

impl Timed {
    /// A drive of that capacity, with shares of it of flash beyond it and of the map in memory; the whole map takes no
    /// flash. None if such a drive can't be.
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

    /// A clock for a drive.
    pub fn of(drive: FlashDrive) -> Self {
        let dies = drive.sizes().dies as usize;
        let buffer = vec![0; dies * BUFFERED];
        Self { drive, dies: vec![0; dies], buffer, next: 0, busy_ns: 0, acts: Vec::new() }
    }

    /// The drive.
    pub fn drive(&self) -> &FlashDrive {
        &self.drive
    }

    /// Begins the clock anew, with nothing to do.
    pub fn restart(&mut self) {
        self.dies.fill(0);
        self.buffer.fill(0);
        self.busy_ns = 0;
    }

    /// From when on all dies are idle.
    pub fn idle_from_ns(&self) -> u64 {
        self.dies.iter().copied().max().unwrap_or(0)
    }

    /// How long all dies together had something to do.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Reads; returns when that has ended.
    pub fn read(&mut self, now_ns: u64, offset_bytes: u64, bytes: u64) -> u64 {
        self.run(now_ns, offset_bytes, bytes, FlashDrive::read)
    }

    /// Writes; returns when that has ended.
    pub fn write(&mut self, now_ns: u64, offset_bytes: u64, bytes: u64) -> u64 {
        self.run(now_ns, offset_bytes, bytes, FlashDrive::write)
    }

    /// Discards; returns when that has ended.
    pub fn discard(&mut self, now_ns: u64, offset_bytes: u64, bytes: u64) -> u64 {
        self.run(now_ns, offset_bytes, bytes, FlashDrive::discard)
    }

    /// Runs a command in parts of whole pages, so that what is noted of it stays small.
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

    /// Makes durable what is written; returns when that has ended. The buffer survives a power cut, so nothing is to be done.
    pub fn flush(now_ns: u64) -> u64 {
        now_ns + FLUSH_NS
    }

    /// Bytes that the host wrote, and bytes that were written to flash.
    pub fn written_bytes(&self) -> [u64; 2] {
        let counts = self.drive.counts();
        [counts.host_written_bytes, counts.programs.iter().sum::<u64>() * self.drive.page_bytes()]
    }

    /// Gives dies what a part of a command made them do; returns when that has ended.
    fn serve(&mut self, now_ns: u64) -> u64 {
        self.acts = self.drive.flash_mut().acts.take().unwrap_or_default();
        // What the host waits for: translation pages before its own, places of the buffer one after the other.
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
