//! Events as they are read or traced, checked for plausibility.

use std::path::Path;

use super::io::{Form, LostEvents, Note, Op, SECTOR_BYTES, Trace, TracedDrive};
use super::pairing::{Act, TraceEvent, pair};
use crate::error::{Error, Result};
use crate::printable::Shown as _;

/// Maximum issues and completions of a trace: 40 bytes each, and as much again for the resulting I/Os.
const EVENTS_MAX: usize = 10_000_000;
/// Maximum I/Os of a trace, each with its completion.
pub const IOS_MAX: usize = EVENTS_MAX / 2;
/// Maximum process names that are kept.
const PROCESSES_MAX: usize = 4096;
/// Maximum notes that are kept, and characters of each.
const NOTES_MAX: usize = 4096;
const NOTE_CHARS_MAX: usize = 256;
/// Starts the note by which our own traces say how many completions they lack; the number follows.
const LOST_COMPLETIONS: &str = "lost completions ";
/// Bytes of a process's name in the kernel.
pub const NAME_BYTES: usize = 16;
/// Maximum pairs of drive and CPU, each of which numbers its own events.
const COUNTERS_MAX: usize = 4096;
/// Maximum drives of a trace.
const DRIVES_MAX: usize = 1024;
/// No drive is larger, and a sum of a few such offsets does not overflow.
const DRIVE_BYTES_MAX: u64 = 1 << 60;

/// What is wrong with a trace, to be appended to its name.
pub type Wrong = String;

/// The last event of a drive that a CPU recorded.
#[derive(Debug)]
struct Counter {
    drive: TracedDrive,
    cpu: u32,
    number: u32,
    at_ns: u64,
}

/// What has been read so far.
#[derive(Debug, Default)]
pub struct Events {
    /// The form of the files.
    pub form: Option<Form>,
    /// Missing events according to the file itself, or to the kernel.
    pub said_lost: LostEvents,
    events: Vec<TraceEvent>,
    processes: Vec<(u32, String)>,
    notes: Vec<Note>,
    counters: Vec<Counter>,
    /// Whether a summary has begun; no events follow it.
    pub is_at_end: bool,
    /// The index of the last event's counter.
    current: usize,
    missing: u64,
    last_ns: u64,
}

impl Events {
    /// Whether there is no room for more events.
    pub fn is_full(&self) -> bool {
        self.events.len() == EVENTS_MAX
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The events from that index on.
    pub fn since(&self, at: usize) -> &[TraceEvent] {
        self.events.get(at..).unwrap_or_default()
    }

    /// A copy with only the last ones.
    pub fn last(&self, most: usize) -> Self {
        let events = self.events[self.events.len().saturating_sub(most)..].to_vec();
        Self { form: self.form, events, ..Self::default() }
    }

    /// Begins another file.
    pub fn begin_file(&mut self) {
        self.last_ns = 0;
    }

    /// Adds an event, if it is plausible.
    pub fn add(&mut self, event: TraceEvent) -> std::result::Result<(), Wrong> {
        if self.is_full() {
            return Err(format!("it has over {EVENTS_MAX} issues and completions: give a part of it"));
        }
        let TraceEvent { offset_bytes, bytes, .. } = event;
        let is_whole =
            offset_bytes.is_multiple_of(SECTOR_BYTES) && u64::from(bytes).is_multiple_of(SECTOR_BYTES);
        if event.op != Op::Flush && !is_whole {
            return Err(format!("an I/O of {bytes} B at {offset_bytes} is not in whole sectors of 512 B"));
        }
        if event.op != Op::Flush && offset_bytes > DRIVE_BYTES_MAX && bytes > 0 {
            return Err(format!("an I/O at {offset_bytes} is past the end of any drive"));
        }
        self.events.push(event);
        Ok(())
    }

    /// Checks an event of any kind against the previous one of the same drive and CPU: numbers go up by one,
    /// and time does not go back. Skipped numbers were lost.
    pub fn count(
        &mut self,
        drive: TracedDrive,
        cpu: u32,
        number: u32,
        at_ns: u64,
    ) -> std::result::Result<(), Wrong> {
        let is = |counter: &Counter| counter.drive == drive && counter.cpu == cpu;
        if !self.counters.get(self.current).is_some_and(is) {
            self.current = self.counters.iter().position(is).unwrap_or(self.counters.len());
        }
        let Some(last) = self.counters.get_mut(self.current) else {
            if self.counters.len() == COUNTERS_MAX {
                return Err(format!("it names over {COUNTERS_MAX} drives and processors"));
            }
            self.counters.push(Counter { drive, cpu, number, at_ns });
            return Ok(());
        };
        let ahead = number.wrapping_sub(last.number);
        if ahead == 0 || ahead > u32::MAX / 2 {
            let what = format!("event {number} of processor {cpu} comes after its event {}", last.number);
            return Err(format!("{what}: records are repeated, or out of order"));
        }
        if at_ns < last.at_ns {
            return Err(goes_back(last.at_ns, at_ns));
        }
        self.missing += u64::from(ahead - 1);
        (last.number, last.at_ns) = (number, at_ns);
        Ok(())
    }

    /// Checks an event's time against the previous one, in a form without CPUs.
    pub fn time(&mut self, at_ns: u64) -> std::result::Result<(), Wrong> {
        if at_ns < self.last_ns {
            return Err(goes_back(self.last_ns, at_ns));
        }
        self.last_ns = at_ns;
        Ok(())
    }

    /// Keeps a process's name, unless it already has one.
    pub fn name(&mut self, pid: u32, name: &str) {
        if self.processes.len() < PROCESSES_MAX
            && let Err(at) = self.processes.binary_search_by_key(&pid, |(pid, _)| *pid)
        {
            self.processes.insert(at, (pid, crate::printable::line(name).into_owned()));
        }
    }

    /// Keeps a note on a moment.
    pub fn note(&mut self, at_ns: u64, text: &str) {
        if let Some(number) = text.trim().strip_prefix(LOST_COMPLETIONS) {
            let completions = number.trim().parse().unwrap_or(0);
            self.said_lost.completions = self.said_lost.completions.saturating_add(completions);
            return;
        }
        if self.notes.len() < NOTES_MAX {
            let text: String = text.trim().chars().take(NOTE_CHARS_MAX).collect();
            self.notes.push(Note { at_ns, text: crate::printable::line(&text).into_owned() });
        }
    }

    /// The trace of everything that was read.
    ///
    /// # Errors
    /// `Input` if nothing was issued.
    pub fn into_trace(mut self, path: &Path) -> Result<Trace> {
        let form = self.form.unwrap_or(Form::Blktrace);
        if !self.events.is_sorted_by_key(|event| event.at_ns) {
            self.events.sort_by_key(|event| event.at_ns);
        }
        let paired = pair(&self.events).ok_or_else(|| {
            Error::input(format!(
                "{}: over a million I/Os are open at once: completions are missing",
                path.shown()
            ))
        })?;
        if paired.ios.is_empty() {
            let what = format!("{}: nothing in it was issued to a drive", path.shown());
            let hint =
                "trace the drives themselves: arrays and mapped devices hand requests on and issue none";
            return Err(Error::input(what).hint(hint));
        }
        self.notes.sort_by_key(|note| note.at_ns);
        let all = self.missing.max(self.said_lost.all);
        let trace = Trace {
            ios: paired.ios,
            processes: self.processes,
            notes: self.notes,
            form,
            lost: LostEvents { all, completions: self.said_lost.completions.min(all) },
            unpaired: paired.unpaired,
            requeued: paired.requeued,
        };
        if trace.drives().len() > DRIVES_MAX {
            return Err(Error::input(format!("{}: it covers more than {DRIVES_MAX} drives", path.shown())));
        }
        Ok(trace)
    }
}

/// What an I/O does, from the kernel's letters: `F` in front for a flush, then the operation, then flags.
/// `None` for a passthrough command.
pub fn op_of(what: &str, bytes: u32, act: Act) -> std::result::Result<Option<Op>, Wrong> {
    let (flushes, direction) = match what.strip_prefix('F') {
        Some(rest) => (true, rest),
        None => (false, what),
    };
    let writes = direction.starts_with('W');
    Ok(match direction.chars().next() {
        // The final completion of a write with a preflush is no flush.
        _ if flushes && bytes == 0 && (act == Act::Issue || !writes) => Some(Op::Flush),
        Some('D' | 'E') => Some(Op::Discard),
        Some('W') => Some(Op::Write),
        Some('R') => Some(Op::Read),
        // Write zeroes, for which most kernels have no letter; passthrough commands have no sectors.
        Some('N') if bytes > 0 => Some(Op::Write),
        Some('N' | 'F') | None => None,
        Some(_) => return Err(format!("{} is not a kind of I/O", crate::printable::line(what))),
    })
}

/// The note by which a file says how many completions it lacks; `None` if it lacks none.
pub fn lost_noted(lost: LostEvents) -> Option<Note> {
    (lost.completions > 0).then(|| Note { at_ns: 0, text: format!("{LOST_COMPLETIONS}{}", lost.completions) })
}

fn goes_back(from_ns: u64, to_ns: u64) -> Wrong {
    format!("time goes back from {from_ns} ns to {to_ns} ns")
}
