//! fio's I/O logs (`write_iolog`, `read_iolog`) of versions 2 and 3. Both name the file of each I/O, and
//! neither says when it completed; version 2 has no times at all.

use std::io::Write;

use crate::trace::events::{Events, Wrong};
use crate::trace::io::{Form, Op, Trace, TracedDrive};
use crate::trace::pairing::{Act, TraceEvent};

const HEAD_V2: &str = "fio version 2 iolog";
const HEAD_V3: &str = "fio version 3 iolog";
/// Maximum files of a log.
const FILES_MAX: usize = 1024;
/// Where each drive has a name made from its number.
const BY_NUMBER: &str = "/dev/block/";

/// The form of a file with this first line.
pub fn form_of(line: &str) -> Option<Form> {
    match line {
        HEAD_V2 => Some(Form::FioV2),
        HEAD_V3 => Some(Form::FioV3),
        _ => None,
    }
}

/// A log being read.
pub struct Log {
    form: Form,
    is_past_head: bool,
    /// The files, which stand for drives here: by the number in their names, or numbered as they appear.
    files: Vec<String>,
}

impl Log {
    /// Begins a log of that form.
    pub fn new(form: Form) -> Self {
        Self { form, is_past_head: false, files: Vec::new() }
    }

    /// Reads a line.
    pub fn line(&mut self, line: &str, events: &mut Events) -> Result<(), Wrong> {
        if !self.is_past_head {
            self.is_past_head = true;
            return Ok(());
        }
        let mut words = line.split_ascii_whitespace();
        let mut at_ns = 0;
        if self.form == Form::FioV3 {
            let us: Option<u64> = words.next().and_then(|word| word.parse().ok());
            at_ns = us.and_then(|us| us.checked_mul(1000)).ok_or("it has no time in microseconds")?;
        }
        let (Some(file), Some(act)) = (words.next(), words.next()) else {
            return Err("it has no file and action".into());
        };
        let op = match act {
            "add" | "open" | "close" | "wait" => return Ok(()),
            "read" => Op::Read,
            "write" => Op::Write,
            "trim" => Op::Discard,
            "sync" | "datasync" | "sync_file_range" => Op::Flush,
            _ => return Err(format!("{} is not an action of fio's", crate::printable::line(act))),
        };
        events.time(at_ns)?;
        let (mut offset_bytes, mut bytes) = (0, 0);
        if op != Op::Flush {
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            let (offset, length) = (number(), number().and_then(|length| u32::try_from(length).ok()));
            (offset_bytes, bytes) = offset.zip(length).ok_or("it has no offset and length")?;
        }
        let drive = self.drive(file)?;
        events.add(TraceEvent { at_ns, offset_bytes, bytes, drive, pid: 0, act: Act::Issue, op })
    }

    fn drive(&mut self, file: &str) -> Result<TracedDrive, Wrong> {
        if let Some(drive) = file.strip_prefix(BY_NUMBER).and_then(TracedDrive::parse) {
            return Ok(drive);
        }
        let at = self.files.iter().position(|known| known == file).unwrap_or_else(|| {
            self.files.push(file.to_owned());
            self.files.len() - 1
        });
        if self.files.len() > FILES_MAX {
            return Err(format!("it names over {FILES_MAX} files"));
        }
        Ok(TracedDrive(at as u32))
    }
}

/// Writes a log of version 3, with drives named by their numbers.
pub fn write(trace: &Trace, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{HEAD_V3}")?;
    let drives = trace.drives();
    for drive in &drives {
        writeln!(out, "0 {BY_NUMBER}{drive} add\n0 {BY_NUMBER}{drive} open")?;
    }
    let mut last_us = 0;
    for io in &trace.ios {
        last_us = io.issued_ns / 1000;
        let act = match io.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "trim",
            Op::Flush => "sync",
        };
        writeln!(out, "{last_us} {BY_NUMBER}{} {act} {} {}", io.drive, io.offset_bytes, io.bytes)?;
    }
    for drive in &drives {
        writeln!(out, "{last_us} {BY_NUMBER}{drive} close")?;
    }
    Ok(())
}
