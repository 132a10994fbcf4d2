//! Trace files: read in five forms, told apart by their content, and written in these and as a table.
//!
//! | form | an I/O's | process | several files |
//! |---|---|---|---|
//! | blktrace's records, version 7 | issue and completion | yes | one a processor |
//! | blkparse's default text | issue and completion | yes | no |
//! | fio's iolog, version 2 and 3 | order; time of issue | no | no |
//! | MQSim's text | time of arrival | no | no |
//! | WiscSee's events | issue and completion | yes | no |
//!
//! Enters: bytes, which others may have made. Leaves: a [`Trace`], or the bytes of one.
//!
//! Everything read is checked: whatever a file says, it takes bounded memory, and impossible drives are refused.

mod blkparse;
mod blktrace;
mod iolog;
mod lines;
mod simulators;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::events::Events;
use super::io::{Form, Op, Trace};
use crate::error::{Error, Result, describe};
use crate::printable::Shown as _;
use crate::regular_file;
use crate::units::grouped;

/// The forms that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenForm {
    /// blktrace's records, for blkparse, btt, iowatcher and fio.
    Blktrace,
    /// blkparse's default text.
    Blkparse,
    /// fio's log of version 3.
    Fio,
    /// MQSim's text.
    Mqsim,
    /// WiscSee's events.
    Wiscsee,
    /// Comma-separated values.
    Csv,
}

impl WrittenForm {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blktrace => Form::Blktrace.name(),
            Self::Blkparse => Form::Blkparse.name(),
            Self::Fio => Form::FioV3.name(),
            Self::Mqsim => Form::Mqsim.name(),
            Self::Wiscsee => Form::Wiscsee.name(),
            Self::Csv => "comma-separated values",
        }
    }

    /// Operations that it can't express.
    fn lacks(self) -> &'static [Op] {
        match self {
            Self::Blktrace | Self::Blkparse | Self::Fio | Self::Csv => &[],
            Self::Mqsim => &[Op::Discard, Op::Flush],
            Self::Wiscsee => &[Op::Flush],
        }
    }

    /// Refuses a trace if the form can't say which events are missing, or which drive each I/O was to.
    ///
    /// # Errors
    /// Of the kind `Failed`.
    pub fn check(self, trace: &Trace) -> Result<()> {
        let lost = match self {
            Self::Blktrace | Self::Blkparse => 0,
            // These have issues only.
            Self::Fio | Self::Mqsim => trace.lost.others(),
            Self::Wiscsee | Self::Csv => trace.lost.all,
        };
        let name = self.name();
        if lost > 0 {
            let what = format!("the trace is incomplete ({}), which {name} can't say", trace.lost.in_words());
            return Err(Error::failed(what).hint("write it as blktrace's records"));
        }
        let drives = trace.drives().len();
        if self == Self::Wiscsee && drives > 1 {
            return Err(Error::failed(format!("the trace is of {drives} drives, and {name} are of one")));
        }
        Ok(())
    }

    /// What is left out of a trace, in words; `None` if nothing is.
    pub fn left_out(self, trace: &Trace) -> Option<String> {
        let counted = |op: &Op| (trace.ios.iter().filter(|io| io.op == *op).count() as u64, op.name());
        let some = self.lacks().iter().map(counted).filter(|(count, _)| *count > 0);
        let words: Vec<_> = some.map(|(count, name)| format!("{name} ({})", grouped(count))).collect();
        (!words.is_empty()).then(|| format!("{} can't say, and lacks: {}", self.name(), words.join(", ")))
    }
}

/// Reads a trace: one file, or blktrace's files of several CPUs.
///
/// # Errors
/// `Input` if a file can't be opened, is no trace, is damaged or cut off, or contains something impossible.
pub fn read(paths: &[PathBuf]) -> Result<Trace> {
    let mut events = Events::default();
    for path in paths {
        let cannot = |error| Error::input(format!("cannot read {}: {}", path.shown(), describe(&error)));
        let file = regular_file::open(path).map_err(cannot)?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        read_one(&mut reader, path, &mut events)?;
    }
    events.into_trace(paths.first().map_or(Path::new(""), PathBuf::as_path))
}

/// Reads a trace from memory.
///
/// # Errors
/// As for [`read()`].
pub fn read_bytes(bytes: &[u8], name: &str) -> Result<Trace> {
    let (mut events, mut bytes, name) = (Events::default(), bytes, Path::new(name));
    read_one(&mut bytes, name, &mut events)?;
    events.into_trace(name)
}

/// Writes a trace.
///
/// # Errors
/// If it can't be written.
pub fn write(trace: &Trace, form: WrittenForm, out: &mut dyn Write) -> std::io::Result<()> {
    match form {
        WrittenForm::Blktrace => blktrace::write(trace, out),
        WrittenForm::Blkparse => blkparse::write(trace, out),
        WrittenForm::Fio => iolog::write(trace, out),
        WrittenForm::Mqsim => simulators::write_mqsim(trace, out),
        WrittenForm::Wiscsee => simulators::write_wiscsee(trace, out),
        WrittenForm::Csv => simulators::write_csv(trace, out),
    }
}

fn read_one(reader: &mut dyn BufRead, path: &Path, events: &mut Events) -> Result<()> {
    let said = |what: String| Error::input(format!("{}: {what}", path.shown()));
    let start = reader.fill_buf().map_err(|error| Error::os("cannot read", path, error))?;
    let form = form_of(start).map_err(said)?;
    if events.form.is_some_and(|before| before != Form::Blktrace || form != before) {
        return Err(said("only blktrace's files, one per processor, are read together".into()));
    }
    events.form = Some(form);
    events.begin_file();
    let read = match form {
        Form::Blktrace => blktrace::read(reader, events),
        Form::Blkparse => lines::each(reader, &mut |line| blkparse::line(line, events)),
        Form::FioV2 | Form::FioV3 => {
            let mut log = iolog::Log::new(form);
            lines::each(reader, &mut |line| log.line(line, events))
        }
        Form::Mqsim => lines::each(reader, &mut |line| simulators::mqsim(line, events)),
        Form::Wiscsee => lines::each(reader, &mut |line| simulators::wiscsee(line, events)),
    };
    read.map_err(said)
}

/// The form of a file that starts like this, or why it has none.
fn form_of(start: &[u8]) -> std::result::Result<Form, String> {
    if start.is_empty() {
        return Err("it is empty".into());
    }
    if let Some(form) = blktrace::form_of(start) {
        return form;
    }
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or(start);
    let line = std::str::from_utf8(&line[..line.len().min(lines::BYTES_MAX)]).unwrap_or("").trim_end();
    let form = iolog::form_of(line).or_else(|| simulators::form_of(line));
    let form = form.or_else(|| blkparse::is_line(line).then_some(Form::Blkparse));
    form.ok_or_else(|| {
        let forms = "records of blktrace, text of blkparse, a log of fio (version 2 or 3), or a trace of MQSim or WiscSee";
        format!("it is no trace in a form that is read here: {forms}")
    })
}

#[cfg(test)]
mod tests;
