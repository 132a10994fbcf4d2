//! The lines of a journal, and the record that they add up to.

use serde::{Deserialize, Serialize};

use super::undo::Undo;
use crate::json;
use crate::stack::devices::Drive;
use crate::stack::id::StackId;

/// The version of the format.
pub(super) const FORMAT: u32 = 1;

/// The prefix of an entry that has no undo and names a data set.
pub(super) const DATA_SET: &str = "data set ";

/// Who built what, and when: the first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// The version of the format.
    pub format: u32,
    /// The stack's id.
    pub id: StackId,
    /// The kernel's id of the boot.
    pub boot: String,
    /// The process.
    pub pid: u32,
    /// The profile's name.
    pub profile: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The drives used.
    pub drives: Vec<Drive>,
}

/// A line after the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "line")]
#[allow(clippy::large_enum_variant)] // only one exists at a time
pub(super) enum Line {
    Intend {
        number: u64,
        command: String,
        undo: Option<Undo>,
    },
    Done {
        number: u64,
    },
    Undone {
        number: u64,
    },
    /// The word that journals of all versions use.
    #[serde(rename = "kept")]
    Retained,
}

/// A change to the host, made or at least begun.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// Its number, from 0, in the order in which entries began.
    pub number: u64,
    /// The command as shown.
    pub command: String,
    /// Its undo; none if there is nothing to undo.
    pub undo: Option<Undo>,
    /// Whether it was completed.
    pub done: bool,
    /// Whether it was undone.
    pub undone: bool,
}

impl JournalEntry {
    /// Its undo, if that remains to be done.
    pub fn to_undo(&self) -> Option<&Undo> {
        self.undo.as_ref().filter(|_| !self.undone)
    }
}

/// The content of a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Who built what.
    pub header: JournalHeader,
    /// What was done, in order.
    pub entries: Vec<JournalEntry>,
    /// Whether the operator retained the stack.
    pub retained: bool,
    /// Bytes of complete lines; the rest was a torn write.
    pub(super) whole_bytes: u64,
}

impl Record {
    /// The data sets that were filled on the stack.
    pub fn data_sets(&self) -> impl Iterator<Item = u64> + '_ {
        let named = self.entries.iter().filter(|entry| entry.undo.is_none());
        let names = named.filter_map(|entry| entry.command.strip_prefix(DATA_SET));
        names.filter_map(|name| u64::from_str_radix(name, 16).ok())
    }
}

/// Reads the lines. A change announced by a partial last line was never made.
pub(super) fn parse(bytes: &[u8]) -> std::result::Result<Record, String> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let first = lines.next().ok_or("it has no complete line")?;
    let header: JournalHeader = json::read(first).map_err(|error| format!("line 1: {error}"))?;
    if header.format != FORMAT {
        return Err(format!("its format is {}, and this version of stacktune reads {FORMAT}", header.format));
    }
    let mut record = Record { header, entries: Vec::new(), retained: false, whole_bytes: first.len() as u64 };
    let mut lines = lines.enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let parsed = json::read::<Line>(line).map_err(|error| error.to_string());
        match parsed.and_then(|line| record.apply(line)) {
            Ok(()) => record.whole_bytes += line.len() as u64,
            // After a power cut a line may have its full length, but not its bytes.
            Err(_) if lines.peek().is_none() => break,
            Err(why) => return Err(format!("line {}: {why}", index + 2)),
        }
    }
    Ok(record)
}

impl Record {
    fn apply(&mut self, line: Line) -> std::result::Result<(), String> {
        let next = self.entries.len() as u64;
        match line {
            Line::Intend { number, .. } if number != next => {
                return Err(format!("step {number} follows {next} others"));
            }
            Line::Intend { number, command, undo } => {
                self.entries.push(JournalEntry { number, command, undo, done: false, undone: false });
            }
            Line::Done { number } => self.announced(number)?.done = true,
            Line::Undone { number } => self.announced(number)?.undone = true,
            Line::Retained => self.retained = true,
        }
        Ok(())
    }

    fn announced(&mut self, number: u64) -> std::result::Result<&mut JournalEntry, String> {
        self.entries.get_mut(number as usize).ok_or(format!("step {number} was never announced"))
    }
}
