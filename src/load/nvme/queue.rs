//! A submission queue and its completion queue (Base 3.3.1): two rings in memory, each with a doorbell.
//!
//! The host writes commands at the tail and notifies the controller through the tail doorbell. The controller
//! writes completions, each with a phase tag (P) that flips with every round, so that the tag alone tells the
//! host whether an entry is new (Base 3.3.3.2). The head doorbell tells the controller which entries are free
//! again. Completions come in any order: the command identifier (CID) says which command each belongs to.
//!
//! At most one command fewer than the ring has entries is outstanding. So the tail never catches up with the
//! head, which would mean empty (Base 3.3.1), and the completion queue always has room.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::bus::Bus;
use super::dma::Dma;
use super::spec::{self, COMPLETION_BYTES, NvmeCommand, NvmeCompletion, SUBMISSION_BYTES};
use crate::error::{Error, Result};

/// No command uses this identifier now.
const NOBODY: u32 = u32::MAX;

/// A completion that no working controller would write. Nothing in it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// CID: no command with that identifier is outstanding.
    Command {
        /// The identifier.
        cid: u16,
    },
    /// SQID: the completion belongs to another queue.
    Queue {
        /// The queue that it names.
        found: u16,
        /// The queue that it is in.
        expected: u16,
    },
    /// SQHD: the ring has no such entry.
    Head {
        /// The entry.
        found: u16,
        /// Entries of the ring.
        entries: u32,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { cid } => {
                write!(f, "the controller completed command {cid}, which is not outstanding")
            }
            Self::Queue { found, expected } => {
                write!(f, "the controller completed a command of queue {found} in queue {expected}")
            }
            Self::Head { found, entries } => {
                write!(f, "the controller names entry {found} of a queue of {entries}")
            }
        }
    }
}

/// A queue pair, used by one thread.
pub struct QueuePair<B> {
    bus: Arc<B>,
    id: u16,
    entries: u32,
    submissions: Dma,
    completions: Dma,
    tail_doorbell: usize,
    head_doorbell: usize,
    /// Where the next command goes.
    tail: u32,
    /// The tail that the controller has been told.
    rung: u32,
    /// Where the next completion will be.
    head: u32,
    /// The phase tag of a new completion.
    phase: bool,
    free: Vec<u16>,
    /// The owner of each command, by command identifier.
    owners: Box<[u32]>,
    /// When each command was queued, by command identifier.
    since_ns: Box<[u64]>,
}

impl<B: Bus> QueuePair<B> {
    /// Rings of that many entries (2 and up) for queue `id`, which the controller does not know of yet.
    pub fn new(bus: &Arc<B>, id: u16, entries: u32, stride_bytes: usize) -> Result<Self> {
        let ring = |entry_bytes: usize| {
            let ring = bus.allocate(entries as usize * entry_bytes)?;
            // A queue must be physically contiguous (Base 5.4 and 5.5, PC).
            ring.is_whole().then_some(ring).ok_or_else(|| {
                let what = format!("no memory without gaps for a queue of {entries} entries");
                Error::input(what).hint("a smaller depth, or larger commands, need fewer")
            })
        };
        Ok(Self {
            submissions: ring(SUBMISSION_BYTES)?,
            completions: ring(COMPLETION_BYTES)?,
            bus: bus.clone(),
            id,
            entries,
            tail_doorbell: spec::tail_doorbell(id, stride_bytes),
            head_doorbell: spec::head_doorbell(id, stride_bytes),
            tail: 0,
            rung: 0,
            head: 0,
            phase: true,
            free: (0..(entries - 1) as u16).rev().collect(),
            owners: vec![NOBODY; entries as usize - 1].into(),
            since_ns: vec![0; entries as usize - 1].into(),
        })
    }

    /// Its number; 0 is the admin queue.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Entries of each ring.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Where the submission ring begins, for the controller.
    pub fn submission_address(&self) -> u64 {
        self.submissions.address(0)
    }

    /// Where the completion ring begins, for the controller.
    pub fn completion_address(&self) -> u64 {
        self.completions.address(0)
    }

    /// How many more commands can be outstanding.
    #[inline]
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// Writes a command into the ring; [`Self::ring`] tells the controller of it. Returns its identifier;
    /// `None` if no more commands can be outstanding.
    #[inline]
    pub fn push(&mut self, command: &NvmeCommand, owner: u32, now_ns: u64) -> Option<u16> {
        debug_assert_ne!(owner, NOBODY);
        let cid = self.free.pop()?;
        self.owners[usize::from(cid)] = owner;
        self.since_ns[usize::from(cid)] = now_ns;
        let at = self.tail as usize * SUBMISSION_BYTES;
        for (n, word) in command.words(cid).into_iter().enumerate() {
            self.submissions.write_u64(at + n * 8, word);
        }
        self.tail = if self.tail + 1 == self.entries { 0 } else { self.tail + 1 };
        Some(cid)
    }

    /// Rings the doorbell once for all new commands.
    #[inline]
    pub fn ring(&mut self) {
        if self.rung != self.tail {
            // The commands must be in memory before the new tail is on the bus.
            fence(Ordering::SeqCst);
            self.bus.write32(self.tail_doorbell, self.tail);
            self.rung = self.tail;
        }
    }

    /// Takes the completions that are there, at most `max`, and returns their entries with one doorbell
    /// write. Returns how many.
    ///
    /// # Errors
    /// At the first malformed one: nothing after it is looked at, and the controller has to be reset.
    #[inline]
    pub fn poll(
        &mut self,
        max: u32,
        mut each: impl FnMut(u32, NvmeCompletion),
    ) -> std::result::Result<u32, Malformed> {
        let mut taken = 0;
        let mut outcome = Ok(());
        while taken < max {
            let at = self.head as usize * COMPLETION_BYTES;
            let end = self.completions.read_u32(at + 12);
            if spec::has_phase(end) != self.phase {
                break;
            }
            // The rest of the entry must be read after the tag.
            fence(Ordering::Acquire);
            let dwords = [self.completions.read_u32(at), self.completions.read_u32(at + 8), end];
            let completion = NvmeCompletion::of(dwords);
            match self.owner_of(&completion) {
                Ok(owner) => each(owner, completion),
                Err(malformed) => {
                    outcome = Err(malformed);
                    break;
                }
            }
            taken += 1;
            self.head += 1;
            if self.head == self.entries {
                self.head = 0;
                self.phase = !self.phase;
            }
        }
        if taken > 0 {
            self.bus.write32(self.head_doorbell, self.head);
        }
        outcome.map(|()| taken)
    }

    /// The owner of the command that this completes; frees its identifier.
    #[inline]
    fn owner_of(&mut self, completion: &NvmeCompletion) -> std::result::Result<u32, Malformed> {
        let &NvmeCompletion { cid, queue, submission_head, .. } = completion;
        if queue != self.id {
            return Err(Malformed::Queue { found: queue, expected: self.id });
        }
        if u32::from(submission_head) >= self.entries {
            return Err(Malformed::Head { found: submission_head, entries: self.entries });
        }
        let owner = self.owners.get_mut(usize::from(cid)).filter(|owner| **owner != NOBODY);
        let owner = owner.map(|owner| std::mem::replace(owner, NOBODY)).ok_or(Malformed::Command { cid })?;
        self.free.push(cid);
        Ok(owner)
    }

    /// The command that has been outstanding longest, and since when.
    pub fn oldest(&self) -> Option<(u16, u64)> {
        let of = |(cid, owner): (usize, &u32)| (*owner != NOBODY).then(|| (cid as u16, self.since_ns[cid]));
        self.owners.iter().enumerate().filter_map(of).min_by_key(|(_, since_ns)| *since_ns)
    }

    /// Starts over, after a reset, when the controller no longer touches the rings. Notifies the owners of
    /// outstanding commands.
    pub fn begin_anew(&mut self, mut lost: impl FnMut(u32)) {
        for (cid, owner) in self.owners.iter_mut().enumerate() {
            if *owner != NOBODY {
                lost(std::mem::replace(owner, NOBODY));
                self.free.push(cid as u16);
            }
        }
        self.submissions.clear();
        self.completions.clear();
        (self.tail, self.rung, self.head, self.phase) = (0, 0, 0, true);
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
