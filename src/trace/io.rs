//! An I/O at a drive, and a trace of them.

use std::fmt;
use std::str::FromStr;

use crate::units::grouped;

/// Drives and the kernel count in sectors of this size.
pub const SECTOR_BYTES: u64 = 512;

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Tells the drive that data is no longer needed.
    Discard,
    /// Makes the contents of the drive's cache durable.
    Flush,
}

/// Operations with a place on the drive, which therefore count towards its depth.
pub const PLACED: [Op; 3] = [Op::Read, Op::Write, Op::Discard];

impl Op {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Discard, Self::Flush];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::Flush => "flush",
        }
    }

    /// Whether data crosses the link.
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// A drive by its number: the kernel's own form, `major << 20 | minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TracedDrive(pub u32);

impl TracedDrive {
    /// The drive with that major and minor number; `None` if they are too large.
    pub fn new(major: u32, minor: u32) -> Option<Self> {
        (major < 1 << 12 && minor < 1 << 20).then_some(Self(major << 20 | minor))
    }

    /// From `8:16` or `8,16`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once([':', ','])?;
        Self::new(major.parse().ok()?, minor.parse().ok()?)
    }
}

impl fmt::Display for TracedDrive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0 >> 20, self.0 & 0xf_ffff)
    }
}

impl FromStr for TracedDrive {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| "a drive's numbers are expected, such as 8:16".into())
    }
}

/// One I/O as the drive saw it, after merging and splitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedIo {
    /// When it was issued to the drive; 0 if the form has no times.
    pub issued_ns: u64,
    /// When the drive completed it; `None` if still open at the end, or if the form has no completions.
    pub completed_ns: Option<u64>,
    /// Where on the drive, in whole sectors; 0 for a flush.
    pub offset_bytes: u64,
    /// Its length, in whole sectors; 0 for a mere flush.
    pub bytes: u32,
    /// The drive.
    pub drive: TracedDrive,
    /// The process that issued it; for cached I/O often a kernel thread.
    pub pid: u32,
    /// What it does.
    pub op: Op,
}

impl TracedIo {
    /// Where it ends.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + u64::from(self.bytes)
    }
}

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// blktrace's records, version 7.
    Blktrace,
    /// blkparse's default text.
    Blkparse,
    /// fio's log of version 2, which has no times.
    FioV2,
    /// fio's log of version 3, with the time of issue only.
    FioV3,
    /// MQSim's text, with the time of arrival only.
    Mqsim,
    /// WiscSee's events.
    Wiscsee,
}

impl Form {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blktrace => "blktrace's records",
            Self::Blkparse => "blkparse's text",
            Self::FioV2 => "fio's log, version 2",
            Self::FioV3 => "fio's log, version 3",
            Self::Mqsim => "MQSim's text",
            Self::Wiscsee => "WiscSee's events",
        }
    }

    /// Whether it has completion times.
    pub fn has_completions(self) -> bool {
        matches!(self, Self::Blktrace | Self::Blkparse | Self::Wiscsee)
    }
}

/// A remark about a moment of a trace: a phase begins, or a knob was turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// When, on the clock of the I/Os.
    pub at_ns: u64,
    /// A line.
    pub text: String,
}

/// Starts the note of a phase, followed by its name.
const PHASE: &str = "phase ";

/// Events missing from a trace.
///
/// Rules that depend only on issues are still judged if only completions are missing: kernels hold those back
/// (see [`live`](super::live)). The queue depth is unknown then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LostEvents {
    /// All of them.
    pub all: u64,
    /// How many of these are known to be completions.
    pub completions: u64,
}

impl LostEvents {
    /// Missing events of unknown kind.
    pub fn unknown(all: u64) -> Self {
        Self { all, completions: 0 }
    }

    /// All but completions: without these it is unknown what was issued.
    pub fn others(self) -> u64 {
        self.all.saturating_sub(self.completions)
    }

    /// How many, and what they are, if that is known.
    pub fn in_words(self) -> String {
        let noun = if self.all == 1 { "event" } else { "events" };
        let of = match (self.completions, self.others()) {
            (0, _) => String::new(),
            (_, 0) => ", completions alone".to_owned(),
            (completions, _) => format!(", {} of them completions", grouped(completions)),
        };
        format!("{} {noun} lost{of}", grouped(self.all))
    }
}

/// The I/Os of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// In order of issue.
    pub ios: Vec<TracedIo>,
    /// Names of processes by number; the first name seen counts.
    pub processes: Vec<(u32, String)>,
    /// Notes on moments, in order of time.
    pub notes: Vec<Note>,
    /// The form of the file.
    pub form: Form,
    /// Missing events, according to gaps in their numbers or to the kernel's counts.
    pub lost: LostEvents,
    /// Completions without an issue, for example because it came before the trace began.
    pub unpaired: u64,
    /// I/Os that the drive's driver requeued without performing them; they are not in `ios`.
    pub requeued: u64,
}

impl Trace {
    /// A trace with nothing missing.
    #[cfg(test)]
    pub fn whole(ios: Vec<TracedIo>, form: Form) -> Self {
        let (processes, notes, lost) = (Vec::new(), Vec::new(), LostEvents::default());
        Self { ios, processes, notes, form, lost, unpaired: 0, requeued: 0 }
    }

    /// How many of its I/Os completed.
    pub fn completed(&self) -> u64 {
        self.ios.iter().filter(|io| io.completed_ns.is_some()).count() as u64
    }

    /// The drives, in order of their numbers.
    pub fn drives(&self) -> Vec<TracedDrive> {
        let mut drives: Vec<TracedDrive> = self.ios.iter().map(|io| io.drive).collect();
        drives.sort_unstable();
        drives.dedup();
        drives
    }

    /// The phases, by name and when they begin.
    pub fn phases(&self) -> impl Iterator<Item = (&str, u64)> {
        self.notes.iter().filter_map(|note| Some((note.text.strip_prefix(PHASE)?, note.at_ns)))
    }

    /// Keeps only I/Os issued in a phase, which lasts until the next or the end; false without such a phase.
    pub fn keep_phase(&mut self, name: &str) -> bool {
        let phases: Vec<(&str, u64)> = self.phases().collect();
        let Some(at) = phases.iter().position(|(phase, _)| *phase == name) else { return false };
        let from_ns = phases[at].1;
        let until_ns = phases.get(at + 1).map_or(u64::MAX, |(_, at_ns)| *at_ns);
        self.ios.retain(|io| (from_ns..until_ns).contains(&io.issued_ns));
        true
    }

    /// I/Os still open at the end, if completions are known at all.
    pub fn open(&self) -> u64 {
        if !self.form.has_completions() {
            return 0;
        }
        self.ios.iter().filter(|io| io.completed_ns.is_none()).count() as u64
    }
}

/// The start or end of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// When.
    pub at_ns: u64,
    /// The order of edges at the same time: first completions of I/Os issued earlier, then issues, then
    /// completions of I/Os issued at that time. So no I/O ends before it begins.
    pub rank: u8,
    /// The I/O, as an index into the list.
    pub io: u32,
}

impl Edge {
    /// Whether it is the start.
    pub fn is_issue(&self) -> bool {
        self.rank == 1
    }
}

/// The starts and ends of I/Os in order of time.
pub fn edges(ios: &[TracedIo]) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(2 * ios.len());
    for (io, one) in (0..).zip(ios) {
        edges.push(Edge { at_ns: one.issued_ns, rank: 1, io });
        if let Some(at_ns) = one.completed_ns {
            edges.push(Edge { at_ns, rank: if at_ns == one.issued_ns { 2 } else { 0 }, io });
        }
    }
    edges.sort_unstable();
    edges
}

/// A moment of a trace.
pub enum Moment<'a> {
    /// A remark.
    Note(&'a Note),
    /// The start or end of an I/O.
    Edge(Edge),
}

/// The notes and the starts and ends of I/Os in order of time; at the same time, the notes come first.
pub fn moments(trace: &Trace) -> impl Iterator<Item = Moment<'_>> {
    let mut notes = trace.notes.iter().peekable();
    edges(&trace.ios).into_iter().map(Some).chain([None]).flat_map(move |edge| {
        let is_due = |note: &&Note| edge.as_ref().is_none_or(|edge| note.at_ns <= edge.at_ns);
        let due: Vec<_> = std::iter::from_fn(|| notes.next_if(is_due)).map(Moment::Note).collect();
        due.into_iter().chain(edge.map(Moment::Edge))
    })
}
