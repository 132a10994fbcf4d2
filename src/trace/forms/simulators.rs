//! The texts that two drive simulators read, MQSim and WiscSim, and a table of I/Os.

use std::io::Write;

use super::lines::seconds_as_ns;
use crate::trace::events::{Events, Wrong};
use crate::trace::io::{Form, Op, SECTOR_BYTES, Trace, TracedDrive, edges};
use crate::trace::pairing::{Act, TraceEvent};

/// The form of a file with this first line.
pub fn form_of(line: &str) -> Option<Form> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let are_numbers = words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    match words[..] {
        [_, "D" | "C", "read" | "write" | "discard", _, _, _, _, _] => Some(Form::Wiscsee),
        [_, _, _, _, "0" | "1"] if are_numbers => Some(Form::Mqsim),
        _ => None,
    }
}

/// Reads a line of MQSim: time of arrival in ns, drive, first sector, sectors, and 0 for a write or 1 for a read.
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

/// Reads a line of WiscSee: process, `D` or `C`, operation, offset, bytes, seconds, and two fields that are not used.
pub fn wiscsee(line: &str, events: &mut Events) -> Result<(), Wrong> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[pid, act, what, offset, bytes, seconds, _, _] = words.as_slice() else {
        return Err("it does not have eight columns".into());
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
    // Offsets count from the start of the traced partition.
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

/// Writes MQSim's text: reads and writes, with drives numbered from 0.
pub fn write_mqsim(trace: &Trace, out: &mut dyn Write) -> std::io::Result<()> {
    let drives = trace.drives();
    for io in trace.ios.iter().filter(|io| io.op.moves_data()) {
        let drive = drives.partition_point(|drive| *drive < io.drive);
        let (sector, sectors) = (io.offset_bytes / SECTOR_BYTES, u64::from(io.bytes) / SECTOR_BYTES);
        writeln!(out, "{} {drive} {sector} {sectors} {}", io.issued_ns, u8::from(io.op == Op::Read))?;
    }
    Ok(())
}

/// Writes WiscSee's events: reads, writes and discards of a single drive, with the latency at each completion.
pub fn write_wiscsee(trace: &Trace, out: &mut dyn Write) -> std::io::Result<()> {
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    for edge in edges(&trace.ios) {
        let io = &trace.ios[edge.io as usize];
        if io.op == Op::Flush {
            continue;
        }
        let (pid, act, took_ns) =
            if edge.is_issue() { (io.pid, "D", 0) } else { (0, "C", edge.at_ns - io.issued_ns) };
        let (what, offset, bytes, at) = (io.op.name(), io.offset_bytes, io.bytes, seconds(edge.at_ns));
        writeln!(out, "{pid} {act} {what} {offset} {bytes} {at} {} True", seconds(took_ns))?;
    }
    Ok(())
}

/// Writes one line of comma-separated values per I/O; unknown values are empty.
pub fn write_csv(trace: &Trace, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "issued_ns,completed_ns,drive,process,operation,offset,bytes")?;
    for io in &trace.ios {
        let completed = io.completed_ns.map_or_else(String::new, |ns| ns.to_string());
        let (issued, drive, pid, what) = (io.issued_ns, io.drive, io.pid, io.op.name());
        writeln!(out, "{issued},{completed},{drive},{pid},{what},{},{}", io.offset_bytes, io.bytes)?;
    }
    Ok(())
}
