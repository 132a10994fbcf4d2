//! blktrace's records: `struct blk_io_trace` of `linux/blktrace_api.h`, version 7, of 48 bytes plus any payload.

use std::io::{BufRead, ErrorKind, Write};

use crate::error::describe;
use crate::trace::events::{Events, NAME_BYTES, Wrong, lost_noted};
use crate::trace::io::{Form, LostEvents, Moment, Note, Op, SECTOR_BYTES, Trace, TracedDrive, moments};
use crate::trace::pairing::{Act, TraceEvent};

const RECORD_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

// Categories of events, in the upper half of `action`.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const QUEUE: u32 = 1 << 20;
const ISSUE: u32 = 1 << 22;
const COMPLETE: u32 = 1 << 23;
/// Passthrough commands, whose sectors mean something else.
const PASSTHROUGH: u32 = 1 << 25;
const NOTE: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
// The action itself, in the lowest byte.
const QUEUED: u32 = 1;
const REQUEUED: u32 = 6;
const ISSUED: u32 = 7;
const COMPLETED: u32 = 8;
/// A note with a process's name.
const NOTE_OF_PROCESS: u32 = NOTE;
/// A note with a line of text.
const NOTE_OF_MESSAGE: u32 = NOTE | 2;
/// Bytes of such a line; the kernel writes no more, and blkparse takes it in one piece.
const MESSAGE_BYTES_MAX: usize = 128;
/// The largest gap in numbers that does not count as a step back.
const LOST_MAX: u32 = 1 << 30;
/// The sector of a completed flush.
pub(super) const NO_SECTOR: u64 = u64::MAX;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The form of a file that starts like this; `None` if it is not blktrace's at all.
pub fn form_of(start: &[u8]) -> Option<Result<Form, Wrong>> {
    let magic = u32_at(start.get(..4)?, 0);
    if magic & !0xff == MAGIC {
        return Some(version_of(magic).map(|()| Form::Blktrace));
    }
    (magic.swap_bytes() & !0xff == MAGIC).then(|| Err("its records are those of a big-endian host".into()))
}

fn version_of(magic: u32) -> Result<(), Wrong> {
    match magic & 0xff {
        VERSION => Ok(()),
        other => Err(format!("its records are of version {other}, and {VERSION} is read")),
    }
}

/// Reads the records of a file.
pub fn read(reader: &mut dyn BufRead, events: &mut Events) -> Result<(), Wrong> {
    let mut record = [0; RECORD_BYTES];
    // At most 64 KiB follow a record.
    let mut note = Vec::new();
    let mut at = 0_u64;
    let cannot = |error: &std::io::Error| format!("it cannot be read: {}", describe(error));
    loop {
        if reader.fill_buf().map_err(|error| cannot(&error))?.is_empty() {
            return Ok(());
        }
        let mut whole = reader.read_exact(&mut record);
        if whole.is_ok() {
            note.resize(usize::from(u16_at(&record, 46)), 0);
            whole = reader.read_exact(&mut note);
        }
        whole.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => format!("it ends within the record at byte {at}: it was cut off"),
            _ => cannot(&error),
        })?;
        one(&record, &note, events).map_err(|what| format!("record at byte {at}: {what}"))?;
        at += (RECORD_BYTES + note.len()) as u64;
    }
}

/// Reads one record, with what follows it.
fn one(record: &[u8; RECORD_BYTES], note: &[u8], events: &mut Events) -> Result<(), Wrong> {
    let magic = u32_at(record, 0);
    if magic & !0xff != MAGIC {
        return Err("it does not begin as a record does: the file is damaged".into());
    }
    version_of(magic)?;
    let (action, pid, drive) = (u32_at(record, 28), u32_at(record, 32), TracedDrive(u32_at(record, 36)));
    if action & NOTE != 0 {
        if action == NOTE_OF_PROCESS {
            let name = note.split(|byte| *byte == 0).next().unwrap_or(note);
            let name = &name[..name.len().min(NAME_BYTES)];
            events.name(pid, &String::from_utf8_lossy(name));
        }
        if action == NOTE_OF_MESSAGE {
            let text = note.split(|byte| *byte == 0).next().unwrap_or(note);
            events.note(u64_at(record, 8), &String::from_utf8_lossy(text));
        }
        return Ok(());
    }
    let at_ns = u64_at(record, 8);
    events.count(drive, u32_at(record, 40), u32_at(record, 4), at_ns)?;
    let act = match action & 0xff {
        ISSUED => Act::Issue,
        COMPLETED => Act::Complete,
        REQUEUED => Act::Requeue,
        _ => return Ok(()),
    };
    let (sector, bytes) = (u64_at(record, 16), u32_at(record, 24));
    let op = match action {
        _ if action & PASSTHROUGH != 0 => return Ok(()),
        _ if action & DISCARD != 0 => Op::Discard,
        // The final completion of a write with a preflush is no flush.
        _ if action & FLUSH != 0 && bytes == 0 && (act == Act::Issue || action & WRITE == 0) => Op::Flush,
        _ if action & WRITE != 0 => Op::Write,
        _ => Op::Read,
    };
    let offset_bytes = match sector {
        _ if bytes == 0 => 0,
        _ => {
            sector.checked_mul(SECTOR_BYTES).ok_or(format!("sector {sector} is past the end of any drive"))?
        }
    };
    events.add(TraceEvent { at_ns, offset_bytes, bytes, drive, pid, act, op })
}

/// Writes a trace: process names, then issues, completions and notes in order of time, as if from one CPU.
/// Each issue is queued just before it, because fio replays what was queued, and btt follows it from there.
pub fn write(trace: &Trace, out: &mut dyn Write) -> std::io::Result<()> {
    let drive = trace.ios.first().map_or(TracedDrive(0), |io| io.drive);
    for (pid, name) in &trace.processes {
        let mut note = [0; NAME_BYTES];
        // A name is NUL-terminated.
        for (to, from) in note[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let mut record = Record::of(NOTE_OF_PROCESS, *pid, drive);
        record.put(46, &(NAME_BYTES as u16).to_le_bytes());
        out.write_all(&record.0)?;
        out.write_all(&note)?;
    }
    // Lost events become a gap before the second event, because where they were lost is not known.
    let mut gap = u32::try_from(trace.lost.all).unwrap_or(LOST_MAX).min(LOST_MAX);
    let all = u64::from(gap);
    if let Some(note) = lost_noted(LostEvents { all, completions: all.saturating_sub(trace.lost.others()) }) {
        message(&note, drive, out)?;
    }
    // Each drive numbers its own events.
    let drives = trace.drives();
    let mut numbers = vec![0_u32; drives.len()];
    for moment in moments(trace) {
        let edge = match moment {
            Moment::Edge(edge) => edge,
            Moment::Note(note) => {
                message(note, drive, out)?;
                continue;
            }
        };
        let io = &trace.ios[edge.io as usize];
        let (acts, pid): (&[u32], u32) = if edge.is_issue() {
            (&[QUEUE | QUEUED, ISSUE | ISSUED], io.pid)
        } else {
            (&[COMPLETE | COMPLETED], 0)
        };
        let sector = match io.op {
            Op::Flush if !edge.is_issue() => NO_SECTOR,
            _ => io.offset_bytes / SECTOR_BYTES,
        };
        let number = &mut numbers[drives.partition_point(|drive| *drive < io.drive)];
        for act in acts {
            *number = number.wrapping_add(1);
            if *number == 2 {
                *number += std::mem::take(&mut gap);
            }
            let mut record = Record::of(act | class(io.op), pid, io.drive);
            record.put(4, &number.to_le_bytes());
            record.put(8, &edge.at_ns.to_le_bytes());
            record.put(16, &sector.to_le_bytes());
            record.put(24, &io.bytes.to_le_bytes());
            out.write_all(&record.0)?;
        }
    }
    Ok(())
}

fn message(note: &Note, drive: TracedDrive, out: &mut dyn Write) -> std::io::Result<()> {
    let mut bytes = note.text.len().min(MESSAGE_BYTES_MAX);
    while !note.text.is_char_boundary(bytes) {
        bytes -= 1;
    }
    let mut record = Record::of(NOTE_OF_MESSAGE, 0, drive);
    record.put(8, &note.at_ns.to_le_bytes());
    record.put(46, &(bytes as u16).to_le_bytes());
    out.write_all(&record.0)?;
    out.write_all(&note.text.as_bytes()[..bytes])
}

fn class(op: Op) -> u32 {
    match op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Discard => WRITE | DISCARD,
        Op::Flush => FLUSH,
    }
}

/// The bytes of a record.
struct Record([u8; RECORD_BYTES]);

impl Record {
    fn of(action: u32, pid: u32, drive: TracedDrive) -> Self {
        let mut record = Self([0; RECORD_BYTES]);
        record.put(0, &(MAGIC | VERSION).to_le_bytes());
        record.put(28, &action.to_le_bytes());
        record.put(32, &pid.to_le_bytes());
        record.put(36, &drive.0.to_le_bytes());
        record
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}
