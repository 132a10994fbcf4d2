//! Traces drives live, with perf events on the block layer's tracepoints and a ring for each tracepoint and CPU.
//!
//! Perf events leave nothing behind, however the process ends, and need neither blktrace's support in the kernel nor
//! debugfs. The kernel counts the events. Those that it counted but did not deliver are lost, either for lack of room
//! in a ring, which it reports, or because it holds them back. We have seen the kernel of a virtual machine count
//! events that happen while process 1, or no process, is on a CPU, and deliver them neither by perf events nor to BPF
//! programs. On an idle machine, completions are such events: they interrupt nobody. Issues never are, because the
//! issuer is on the CPU. So missing events are counted by kind.

use std::ffi::CString;
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use rustix::time::{ClockId, clock_gettime};

use super::events::{Events, NAME_BYTES, op_of};
use super::io::{Form, LostEvents, SECTOR_BYTES, Trace, TracedDrive};
use super::pairing::{Act, TraceEvent};
use crate::error::{Error, Result, describe};
use crate::printable::Shown as _;

/// Where the kernel describes its tracepoints.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The tracepoints.
const POINTS: [(&str, Act); 3] = [
    ("block_rq_issue", Act::Issue),
    ("block_rq_complete", Act::Complete),
    ("block_rq_requeue", Act::Requeue),
];
/// Bytes of each ring: at most 8 MiB, some 80,000 events, as long as all of a kind take no more than 128 MiB.
const RING_BYTES_MAX: usize = 8 << 20;
const RINGS_BYTES_MAX: usize = 128 << 20;
/// A filter can hold this many with room to spare.
const DRIVES_MAX: usize = 64;
/// The least, whatever the number of CPUs, and the size of rings for rare events.
const RING_BYTES_MIN: usize = 1 << 16;
/// `PERF_EVENT_IOC_SET_FILTER`.
const SET_FILTER: libc::Ioctl = 0x4008_2406;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
/// `PERF_RECORD_LOST`, and where it has the number of lost events.
const LOST: u32 = 2;
const LOST_AT: usize = 8;
// A sample: process and thread, time, CPU, and the size of the tracepoint's own bytes, which follow.
const TIME_AT: usize = 8;
const SIZE_AT: usize = 24;
const RAW_AT: usize = 28;

/// Where a field is within a tracepoint's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    at: usize,
    bytes: usize,
}

impl Field {
    /// From the kernel's description, `field:char rwbs[10]; offset:34; size:10; signed:0;`.
    fn of(format: &str, name: &str) -> Option<Self> {
        let is_it = |line: &&str| {
            let declared = line.trim().strip_prefix("field:").and_then(|rest| rest.split(';').next());
            let word = declared.and_then(|declared| declared.split_whitespace().last());
            word.is_some_and(|word| word.split('[').next() == Some(name))
        };
        let line = format.lines().find(is_it)?;
        let number = |key: &str| {
            let rest = line.split_once(key)?.1;
            rest.split(';').next()?.trim().parse::<usize>().ok()
        };
        Some(Self { at: number("offset:")?, bytes: number("size:")? })
    }

    fn of_raw<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        raw.get(self.at..self.at.checked_add(self.bytes)?)
    }

    /// The field as a little-endian number.
    fn number(&self, raw: &[u8]) -> Option<u64> {
        let bytes = self.of_raw(raw).filter(|bytes| bytes.len() <= 8)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The field as NUL-terminated text.
    fn text<'a>(&self, raw: &'a [u8]) -> Option<&'a str> {
        let bytes = self.of_raw(raw)?;
        std::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()
    }
}

/// A tracepoint as this kernel defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    act: Act,
    drive: Field,
    sector: Field,
    sectors: Field,
    what: Field,
    /// The process's name, if the tracepoint has it.
    name: Option<Field>,
}

impl Point {
    fn of(format: &str, act: Act) -> Option<Self> {
        let field = |name: &str| Field::of(format, name);
        Some(Self {
            act,
            drive: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
            what: field("rwbs")?,
            name: field("comm").filter(|name| name.bytes == NAME_BYTES),
        })
    }

    /// Adds a sample, if it is of one of these drives.
    fn note(&self, sample: &[u8], drives: &[TracedDrive], start_ns: u64, events: &mut Events) -> Option<()> {
        let number = |at: usize, bytes: usize| Field { at, bytes }.number(sample);
        let raw = sample.get(RAW_AT..RAW_AT.checked_add(number(SIZE_AT, 4)? as usize)?)?;
        let drive = TracedDrive(self.drive.number(raw)? as u32);
        if !drives.contains(&drive) {
            return Some(());
        }
        let (sectors, what) = (self.sectors.number(raw)? as u32, self.what.text(raw)?);
        let bytes = sectors.checked_mul(SECTOR_BYTES as u32)?;
        let Some(op) = op_of(what, bytes, self.act).ok()? else { return Some(()) };
        let offset_bytes = if bytes == 0 { 0 } else { self.sector.number(raw)?.checked_mul(SECTOR_BYTES)? };
        let (pid, at_ns) = (number(0, 4)? as u32, number(TIME_AT, 8)?.saturating_sub(start_ns));
        if let Some(name) = self.name.and_then(|name| name.text(raw)) {
            events.name(pid, name);
        }
        events.add(TraceEvent { at_ns, offset_bytes, bytes, drive, pid, act: self.act, op }).ok()
    }
}

/// The ring of one tracepoint on one CPU.
struct Ring {
    point: Point,
    sampler: Sampler,
    received: u64,
}

/// A trace in progress.
pub struct Tracer {
    rings: Vec<Ring>,
    drives: Vec<TracedDrive>,
    start_ns: u64,
    events: Events,
    /// Events that could not be understood.
    strange: u64,
    /// Events that did not fit into a ring.
    overrun: u64,
}

impl Tracer {
    /// Starts tracing drives on these CPUs.
    ///
    /// # Errors
    /// `Input` if this kernel has no such tracepoints or does not allow it, or if there are too many drives.
    pub fn start(drives: &[TracedDrive], cpus: &[u32]) -> Result<Self> {
        if drives.len() > DRIVES_MAX {
            let what = format!("{} drives are too many for one trace", drives.len());
            return Err(Error::input(what).hint(format!("trace {DRIVES_MAX} of them")));
        }
        let root = ROOTS.iter().map(Path::new).find(|root| root.join("events/block").exists());
        let root = root.ok_or_else(no_root)?;
        let points = POINTS.map(|(name, act)| described(&root.join("events/block").join(name), act));
        let points = points.into_iter().collect::<Result<Vec<_>>>()?;
        let mut largest = (RINGS_BYTES_MAX / cpus.len().max(1)).min(RING_BYTES_MAX) / 2;
        let mut rings = loop {
            match rings(&points, cpus, largest) {
                Ok(rings) => break rings,
                // Users other than root may lock only a limited amount of memory (`perf_event_mlock_kb`).
                Err(error) if lacks_memory(&error) && largest > RING_BYTES_MIN => largest /= 2,
                Err(error) => return Err(not_allowed(&error)),
            }
        };
        let start_ns = monotonic_ns();
        for ring in &mut rings {
            filter(&ring.sampler, drives).map_err(|error| not_allowed(&error))?;
            ring.sampler.enable().map_err(|error| not_allowed(&error))?;
        }
        let mut events = Events::default();
        events.form = Some(Form::Blktrace);
        Ok(Self { rings, drives: drives.to_vec(), start_ns, events, strange: 0, overrun: 0 })
    }

    /// Takes new events; returns whether there is room for more.
    pub fn take(&mut self) -> bool {
        for ring in &mut self.rings {
            while let Some(record) = ring.sampler.next_record() {
                if record.ty() == LOST {
                    let lost = Field { at: LOST_AT, bytes: 8 }.number(&record.to_contiguous());
                    self.overrun += lost.unwrap_or(1);
                }
                if record.ty() != SAMPLE {
                    continue;
                }
                ring.received += 1;
                let sample = record.to_contiguous();
                // A trace that is full has ended; what it leaves out is not lost.
                let is_full = self.events.is_full();
                let noted = ring.point.note(&sample, &self.drives, self.start_ns, &mut self.events);
                self.strange += u64::from(noted.is_none() && !is_full);
            }
        }
        !self.events.is_full()
    }

    /// When it began, on the monotonic clock; the events' times count from there.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The time since it began.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }

    /// The events taken so far.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Takes new events. Returns how many are missing so far.
    ///
    /// # Errors
    /// If the kernel's count can't be read.
    pub fn missing(&mut self) -> std::io::Result<LostEvents> {
        // Read the counts first: every event counted by now has already been delivered, or is lost.
        let counted: Vec<u64> =
            self.rings.iter_mut().map(|ring| ring.sampler.read()).collect::<std::io::Result<_>>()?;
        self.take();
        let mut missing = LostEvents::unknown(self.strange);
        for (ring, counted) in self.rings.iter().zip(counted) {
            let lost = counted.saturating_sub(ring.received);
            missing.all += lost;
            missing.completions += if ring.point.act == Act::Complete { lost } else { 0 };
        }
        Ok(missing)
    }

    /// Ends it. Also returns how many events were lost for lack of room.
    ///
    /// # Errors
    /// If the kernel's count can't be read; `Input` if nothing was issued.
    pub fn stop(mut self, path: &Path) -> Result<(Trace, u64)> {
        let failed =
            |error: std::io::Error| Error::failed(format!("cannot end the trace: {}", describe(&error)));
        for ring in &mut self.rings {
            ring.sampler.disable().map_err(failed)?;
        }
        self.events.said_lost = self.missing().map_err(failed)?;
        Ok((self.events.into_trace(path)?, self.overrun))
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A tracepoint's number, and its fields.
fn described(folder: &Path, act: Act) -> Result<(u64, Point)> {
    let text = |name: &str| {
        let path: PathBuf = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| Error::os("cannot read", &path, error))
    };
    let (id, format) = (text("id")?, text("format")?);
    let found = id.trim().parse().ok().zip(Point::of(&format, act));
    found.ok_or_else(|| Error::input(format!("{} is not described as expected", folder.shown())))
}

/// A ring for each tracepoint on each CPU; those for requeues, which are rare, are small.
fn rings(points: &[(u64, Point)], cpus: &[u32], largest: usize) -> std::io::Result<Vec<Ring>> {
    let mut rings = Vec::new();
    for &(id, point) in points {
        // They are rounded up to a power of two.
        let bytes = if point.act == Act::Requeue { RING_BYTES_MIN } else { largest.max(RING_BYTES_MIN) + 1 };
        for &cpu in cpus {
            rings.push(Ring { point, sampler: sampler(id, cpu, bytes)?, received: 0 });
        }
    }
    Ok(rings)
}

/// Whether the kernel's answer may mean that no more memory can be locked.
fn lacks_memory(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::OutOfMemory)
}

fn sampler(id: u64, cpu: u32, bytes: usize) -> std::io::Result<Sampler> {
    let mut builder = Builder::new(Tracepoint::with_id(id));
    builder.any_pid().one_cpu(cpu as usize).exclude_kernel(false).exclude_hv(false);
    let fields = SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU | SampleFlag::RAW;
    builder.sample_period(1).sample(fields).clockid(Clock::MONOTONIC);
    builder.build()?.sampled(bytes)
}

/// Has the kernel deliver only events of these drives.
#[allow(unsafe_code)]
fn filter(sampler: &Sampler, drives: &[TracedDrive]) -> std::io::Result<()> {
    let is_of: Vec<String> = drives.iter().map(|drive| format!("dev == {}", drive.0)).collect();
    let text = CString::new(is_of.join(" || "))?;
    // SAFETY: the kernel reads a NUL-terminated text, only during the call.
    match unsafe { libc::ioctl(sampler.as_raw_fd(), SET_FILTER, text.as_ptr()) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn no_root() -> Error {
    let what = "the kernel's tracepoints can't be seen";
    Error::input(what).hint("as root: `mount -t tracefs none /sys/kernel/tracing`")
}

fn not_allowed(error: &std::io::Error) -> Error {
    let what = format!("the kernel does not allow tracing: {}", describe(error));
    Error::input(what).hint("run it as root, or with CAP_PERFMON and a readable tracefs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::io::Op;

    /// As Linux 6.18 describes it, shortened.
    const FORMAT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned short ioprio;\toffset:32;\tsize:2;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n";

    fn sample(sector: u64, sectors: u32, what: &str) -> Vec<u8> {
        let mut raw = vec![0; 64];
        raw[8..12].copy_from_slice(&0x70_0003_u32.to_le_bytes());
        raw[16..24].copy_from_slice(&sector.to_le_bytes());
        raw[24..28].copy_from_slice(&sectors.to_le_bytes());
        raw[34..34 + what.len()].copy_from_slice(what.as_bytes());
        raw[44..48].copy_from_slice(b"mkfs");
        let mut sample = [42_u32, 43].map(u32::to_le_bytes).concat();
        sample.extend(1500_u64.to_le_bytes());
        sample.extend(3_u64.to_le_bytes());
        sample.extend((raw.len() as u32).to_le_bytes());
        sample.extend(raw);
        sample
    }

    #[test]
    fn fields_are_where_the_kernel_says() {
        assert_eq!(Field::of(FORMAT, "rwbs"), Some(Field { at: 34, bytes: 10 }));
        assert_eq!(Field::of(FORMAT, "sector"), Some(Field { at: 16, bytes: 8 }));
        assert_eq!(Field::of(FORMAT, "none"), None);
        assert_eq!(Point::of(&FORMAT.replace("rwbs", "x"), Act::Issue), None);
    }

    #[test]
    fn samples_are_events_of_the_drive() {
        let drive = TracedDrive::new(7, 3).unwrap();
        let point = Point::of(FORMAT, Act::Issue).unwrap();
        let mut events = Events::default();
        let mut note = |sample: &[u8], of: TracedDrive| point.note(sample, &[of], 1000, &mut events);
        assert_eq!(note(&sample(8, 16, "WS"), drive), Some(()));
        assert_eq!(note(&sample(0, 0, "FF"), drive), Some(()));
        assert_eq!(note(&sample(64, 128, "DS"), drive), Some(()));
        assert_eq!(note(&sample(16, 8, "NS"), drive), Some(()));
        // A passthrough command, and another drive's I/O.
        assert_eq!(note(&sample(0, 0, "N"), drive), Some(()));
        assert_eq!(note(&sample(8, 8, "R"), TracedDrive(1)), Some(()));
        // An event that can't be understood is not dropped silently.
        assert_eq!(note(&sample(8, 8, "Q"), drive), None);
        let whole = sample(8, 8, "R");
        assert!((0..whole.len()).all(|length| note(&whole[..length], drive).is_none()));
        let trace = events.into_trace(Path::new("x")).unwrap();
        let found: Vec<_> =
            trace.ios.iter().map(|io| (io.op, io.offset_bytes, io.bytes, io.issued_ns, io.pid)).collect();
        let expected = [
            (Op::Write, 4096, 8192, 500, 42),
            (Op::Flush, 0, 0, 500, 42),
            (Op::Discard, 32_768, 65_536, 500, 42),
            (Op::Write, 8192, 4096, 500, 42),
        ];
        assert_eq!(found, expected);
        assert_eq!(trace.processes, [(42, "mkfs".to_owned())]);
    }
}
