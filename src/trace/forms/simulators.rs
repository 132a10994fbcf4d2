//! The texts that two simulators of drives read: MQSim and WiscSim.

use super::lines::seconds_as_ns;
use crate::trace::events::{Events, Wrong};
use crate::trace::io::{Form, Op, SECTOR_BYTES, TracedDrive};
use crate::trace::pairing::{Act, TraceEvent};

/// The form of a file with that first line.
pub fn form_of(line: &str) -> Option<Form> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let are_numbers = words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    match words[..] {
        [_, "D" | "C", "read" | "write" | "discard", _, _, _, _, _] => Some(Form::Wiscsee),
        [_, _, _, _, "0" | "1"] if are_numbers => Some(Form::Mqsim),
        _ => None,
    }
}

/// Reads a line of MQSim's: time of arrival in ns, drive, first sector, sectors, and 0 for a write or 1 for a read.
pub fn mqsim(line: &str, events: &mut Events) -> Result<(), Wrong> {
    let numbers: Option<Vec<u64>> = line.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    let Some(&[at_ns, drive, sector, sectors, kind]) = numbers.as_deref() else {
        return Err("it is not five numbers".into());
    };
    let op = match kind {
        0 => Op::Write,
        1 => Op::Read,
        _ => return Err(format!("{kind} is neither 0, a write, nor 1, a read")),
    };
    let bytes = sectors.checked_mul(SECTOR_BYTES).and_then(|bytes| u32::try_from(bytes).ok());
    let drive = u32::try_from(drive).ok().and_then(|drive| TracedDrive::new(0, drive));
    let (Some(bytes), Some(drive), Some(offset_bytes)) = (bytes, drive, sector.checked_mul(SECTOR_BYTES))
    else {
        return Err("a number in it is too large".into());
    };
    events.time(at_ns)?;
    events.add(TraceEvent { at_ns, offset_bytes, bytes, drive, pid: 0, act: Act::Issue, op })
}

/// Reads a line of WiscSee's: process, `D` or `C`, what, offset, bytes, seconds, and two more that are not used here.
pub fn wiscsee(line: &str, events: &mut Events) -> Result<(), Wrong> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[pid, act, what, offset, bytes, seconds, _, _] = words.as_slice() else {
        return Err("it has not eight columns".into());
    };
    let act = match act {
        "D" => Act::Issue,
        "C" => Act::Complete,
        _ => return Err("it is neither an issue nor a completion".into()),
    };
    let op = match what {
        "read" => Op::Read,
        "write" => Op::Write,
        "discard" => Op::Discard,
        _ => return Err("it neither reads, writes nor discards".into()),
    };
    // Offsets count from the beginning of the traced partition.
    if offset.starts_with('-') {
        return Ok(());
    }
    let (Ok(pid), Ok(offset_bytes), Ok(bytes)) = (pid.parse(), offset.parse(), bytes.parse()) else {
        return Err("a number in it can't be read".into());
    };
    let at_ns = seconds_as_ns(seconds).ok_or("its time can't be read")?;
    events.time(at_ns)?;
    events.add(TraceEvent { at_ns, offset_bytes, bytes, drive: TracedDrive(0), pid, act, op })
}
