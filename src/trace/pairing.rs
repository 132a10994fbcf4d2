//! Pairs issues and completions to I/Os.
//!
//! Completions don't match issues one to one: a write with a preflush or FUA ends with an additional
//! completion of no sectors, and a request may be completed in parts, or requeued by its driver. Therefore:
//!
//! - a completion belongs to the oldest open issue of the same drive, sector and length; if there is none, to the
//!   oldest longer one of that drive and sector: then it completes a part, and the rest stays open;
//! - a completion of no sectors that is not a flush is dropped;
//! - a flush (no sectors, and neither read nor write) belongs to the oldest open flush of its drive;
//! - a requeue closes the issue without completing it: the drive did not perform it, and will get it again;
//! - whatever is still open at the end stays open.
//!
//! If nothing ever completes, the form has no completions, and none are looked for.

use std::collections::{HashMap, VecDeque};

use super::io::{Op, TracedDrive, TracedIo};

/// How many open I/Os of one place are searched: if there are more, completions must be missing.
const LOOKED_THROUGH: usize = 256;
/// Maximum places with open I/Os: far more than queues can hold.
const OPEN_MAX: usize = 1 << 20;

/// What happened to an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It was issued to the drive.
    Issue,
    /// The drive completed it, or a part of it.
    Complete,
    /// The driver requeued it.
    Requeue,
}

/// An event of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// When.
    pub at_ns: u64,
    /// Where on the drive; ignored for a flush.
    pub offset_bytes: u64,
    /// Its length.
    pub bytes: u32,
    /// The drive.
    pub drive: TracedDrive,
    /// The process.
    pub pid: u32,
    /// What happened.
    pub act: Act,
    /// The operation.
    pub op: Op,
}

/// An issue that is not yet fully completed.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Index into the list of I/Os.
    io: usize,
    left_bytes: u32,
}

/// The I/Os, and counts of events that did not become one.
#[derive(Debug, Default)]
pub struct Paired {
    /// In order of issue.
    pub ios: Vec<TracedIo>,
    /// Completions and requeues without an issue.
    pub unpaired: u64,
    /// I/Os that were requeued.
    pub requeued: u64,
    /// What is still open at the end, in order of issue: issues, of the rest where a part has completed. Empty if
    /// nothing ever completes.
    pub open: Vec<TraceEvent>,
}

/// Pairs the events, which must be in order of time; `None` if too many I/Os are open at once.
pub fn pair(events: &[TraceEvent]) -> Option<Paired> {
    let mut paired = Paired::default();
    let mut open = HashMap::new();
    let mut handed_back = Vec::new();
    let has_ends = events.iter().any(|event| event.act != Act::Issue);
    for event in events {
        let flushes = event.op == Op::Flush;
        if event.bytes == 0 && !flushes {
            continue;
        }
        // Flushes have no sector; no drive has a sector as high as this one.
        let key = (event.drive, if flushes { u64::MAX } else { event.offset_bytes });
        if event.act == Act::Issue {
            if has_ends {
                let of_place: &mut VecDeque<Open> = open.entry(key).or_default();
                of_place.push_back(Open { io: paired.ios.len(), left_bytes: event.bytes });
            }
            if open.len() > OPEN_MAX {
                return None;
            }
            paired.ios.push(issued(event));
            continue;
        }
        let Some(found) = take(&mut open, key, event.bytes) else {
            paired.unpaired += 1;
            continue;
        };
        if event.act == Act::Requeue {
            handed_back.push(found.io);
        } else if found.left_bytes > event.bytes {
            let rest = Open { io: found.io, left_bytes: found.left_bytes - event.bytes };
            let of_place =
                open.entry((event.drive, event.offset_bytes + u64::from(event.bytes))).or_default();
            of_place.insert(of_place.partition_point(|one| one.io < rest.io), rest);
        } else {
            paired.ios[found.io].completed_ns = Some(event.at_ns);
        }
    }
    paired.open = rests(open, &paired.ios);
    paired.requeued = handed_back.len() as u64;
    remove(&mut paired.ios, handed_back);
    Some(paired)
}

fn rests(open: HashMap<(TracedDrive, u64), VecDeque<Open>>, ios: &[TracedIo]) -> Vec<TraceEvent> {
    let rests = open.into_iter().flat_map(|((_, offset_bytes), of_place)| {
        of_place.into_iter().map(move |Open { io, left_bytes }| (io, offset_bytes, left_bytes))
    });
    let mut rests: Vec<_> = rests.collect();
    rests.sort_unstable();
    let issue = |(io, offset_bytes, bytes): (usize, u64, u32)| {
        let TracedIo { issued_ns: at_ns, drive, pid, op, .. } = ios[io];
        TraceEvent { at_ns, offset_bytes, bytes, drive, pid, act: Act::Issue, op }
    };
    rests.into_iter().map(issue).collect()
}

fn issued(event: &TraceEvent) -> TracedIo {
    TracedIo {
        issued_ns: event.at_ns,
        completed_ns: None,
        offset_bytes: if event.op == Op::Flush { 0 } else { event.offset_bytes },
        bytes: event.bytes,
        drive: event.drive,
        pid: event.pid,
        op: event.op,
    }
}

/// Takes the open issue that a completion of that length belongs to.
fn take(
    open: &mut HashMap<(TracedDrive, u64), VecDeque<Open>>,
    key: (TracedDrive, u64),
    bytes: u32,
) -> Option<Open> {
    let of_place = open.get_mut(&key)?;
    let oldest =
        |is: &dyn Fn(u32) -> bool| of_place.iter().take(LOOKED_THROUGH).position(|one| is(one.left_bytes));
    let at = oldest(&|left| left == bytes).or_else(|| oldest(&|left| left > bytes))?;
    let found = of_place.remove(at);
    if of_place.is_empty() {
        open.remove(&key);
    }
    found
}

/// Removes the I/Os at these indexes.
fn remove(ios: &mut Vec<TracedIo>, mut places: Vec<usize>) {
    places.sort_unstable();
    let (mut at, mut next) = (0, places.into_iter().peekable());
    ios.retain(|_| {
        let goes = next.next_if_eq(&at).is_some();
        at += 1;
        !goes
    });
}

#[cfg(test)]
#[path = "pairing_tests.rs"]
mod tests;
