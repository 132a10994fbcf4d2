//! blkparse's default text: `8,0 3 11 0.009507758 697 C W 223490 + 56 [0]`.

use std::io::Write;

use super::blktrace::NO_SECTOR;
use super::lines::seconds_as_ns;
use crate::printable;
use crate::trace::events::{Events, NAME_BYTES, Wrong, lost_noted, op_of};
use crate::trace::io::{Moment, Note, Op, SECTOR_BYTES, Trace, TracedDrive, moments};
use crate::trace::pairing::{Act, TraceEvent};

/// How the lines of its summary begin, which follows all events.
const SUMMARY: [&str; 5] = ["CPU", "Total", "Throughput", "Events", "Skips"];

/// Whether the line describes an event.
pub fn is_line(line: &str) -> bool {
    head(line).is_some() || is_opening(line)
}

/// Whether the line is one that blkparse prints at the start, one per file.
fn is_opening(line: &str) -> bool {
    line.starts_with("Input file ") && line.ends_with(" added")
}

/// The columns common to all events, and the rest.
struct Head<'a> {
    drive: TracedDrive,
    cpu: u32,
    number: u32,
    at_ns: u64,
    pid: u32,
    act: &'a str,
    what: &'a str,
    rest: Vec<&'a str>,
}

fn head(line: &str) -> Option<Head<'_>> {
    let mut words = line.split_ascii_whitespace();
    Some(Head {
        drive: TracedDrive::parse(words.next().filter(|word| word.contains(','))?)?,
        cpu: words.next()?.parse().ok()?,
        number: words.next()?.parse().ok()?,
        at_ns: seconds_as_ns(words.next()?)?,
        pid: words.next()?.parse().ok()?,
        act: words.next()?,
        what: words.next().unwrap_or(""),
        rest: words.take(3).collect(),
    })
}

/// Reads a line.
pub fn line(line: &str, events: &mut Events) -> Result<(), Wrong> {
    let Some(Head { drive, cpu, number, at_ns, pid, act, what, rest }) = head(line) else {
        return summary(line, events);
    };
    // Messages are not numbered.
    if act == "m" {
        let text = line.split_once(" m ").and_then(|(_, text)| text.trim_start().strip_prefix("N "));
        text.into_iter().for_each(|text| events.note(at_ns, text));
        return Ok(());
    }
    events.count(drive, cpu, number, at_ns)?;
    let act = match act {
        "D" => Act::Issue,
        "C" => Act::Complete,
        "R" => Act::Requeue,
        _ => return Ok(()),
    };
    let sectors = if rest.get(1) == Some(&"+") { rest.get(2).copied().unwrap_or("") } else { "0" };
    let sectors: u32 = sectors.parse().map_err(|_| "it has no number of sectors".to_owned())?;
    let too_long = || format!("no request has {sectors} sectors");
    let bytes = sectors.checked_mul(SECTOR_BYTES as u32).ok_or_else(too_long)?;
    // A passthrough command has no sectors, and is none of these.
    let Some(op) = op_of(what, bytes, act)? else { return Ok(()) };
    let mut offset_bytes = 0;
    if bytes > 0 {
        let sector: Option<u64> = rest[0].parse().ok();
        let offset = sector.and_then(|sector| sector.checked_mul(SECTOR_BYTES));
        offset_bytes = offset.ok_or_else(|| format!("{} is not a sector of a drive", rest[0]))?;
    }
    if act == Act::Issue
        && let Some((_, name)) = line.trim_end_matches(']').rsplit_once('[')
    {
        events.name(pid, &name.chars().take(NAME_BYTES).collect::<String>());
    }
    events.add(TraceEvent { at_ns, offset_bytes, bytes, drive, pid, act, op })
}

/// Reads a line of the summary, which says how many events blkparse itself missed.
fn summary(line: &str, events: &mut Events) -> Result<(), Wrong> {
    if let Some(rest) = line.strip_prefix("Skips:") {
        let skipped = rest.split_once('(').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
        let skipped: Option<u64> = skipped.and_then(|number| number.parse().ok());
        events.said_lost.all = skipped.ok_or("it does not say how many events were skipped")?;
    }
    let is_begin = SUMMARY.iter().any(|word| line.starts_with(word));
    if is_begin || is_opening(line) || line.is_empty() || line.starts_with(' ') && events.is_at_end {
        events.is_at_end |= is_begin;
        return Ok(());
    }
    Err("it is not one of blkparse's".into())
}

/// Writes issues, completions and notes in order of time, as if from one processor, and a summary of what is missing.
pub fn write(trace: &Trace, out: &mut dyn Write) -> std::io::Result<()> {
    let drives = trace.drives();
    let first = drives.first().copied().unwrap_or(TracedDrive(0));
    lost_noted(trace.lost).iter().try_for_each(|note| message(note, first, out))?;
    let mut numbers = vec![0_u32; drives.len()];
    for moment in moments(trace) {
        let edge = match moment {
            Moment::Edge(edge) => edge,
            Moment::Note(note) => {
                message(note, first, out)?;
                continue;
            }
        };
        let io = &trace.ios[edge.io as usize];
        let number = &mut numbers[drives.partition_point(|drive| *drive < io.drive)];
        *number = number.wrapping_add(1);
        let what = match io.op {
            Op::Read => "R",
            Op::Write => "W",
            Op::Discard => "D",
            Op::Flush => "FN",
        };
        let (act, pid, last) = if edge.is_issue() {
            let name = trace.processes.binary_search_by_key(&io.pid, |(pid, _)| *pid);
            ("D", io.pid, name.map_or("", |at| trace.processes[at].1.as_str()))
        } else {
            ("C", 0, "0")
        };
        let (sector, sectors) = (io.offset_bytes / SECTOR_BYTES, u64::from(io.bytes) / SECTOR_BYTES);
        let place = match (io.bytes, edge.is_issue()) {
            (0, true) => String::new(),
            (0, false) => format!("{NO_SECTOR} "),
            _ => format!("{sector} + {sectors} "),
        };
        line_of(io.drive, (*number, edge.at_ns, pid), (act, what), &format!("{place}[{last}]"), out)?;
    }
    writeln!(out, "Total:\nSkips: 0 forward ({} -   0.0%)", trace.lost.all)
}

fn message(note: &Note, drive: TracedDrive, out: &mut dyn Write) -> std::io::Result<()> {
    line_of(drive, (0, note.at_ns, 0), ("m", "N"), &printable::line(&note.text), out)
}

fn line_of(
    drive: TracedDrive,
    (number, at_ns, pid): (u32, u64, u32),
    (act, what): (&str, &str),
    rest: &str,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let [major, minor] = [drive.0 >> 20, drive.0 & 0xf_ffff];
    let (seconds, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    writeln!(
        out,
        "{major:>3},{minor:<3} 0 {number:>8} {seconds:>5}.{ns:09} {pid:>5} {act:>2} {what:>3} {rest}"
    )
}
