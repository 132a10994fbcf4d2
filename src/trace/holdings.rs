//! What a trace holds: I/Os and bytes, by operation, process and phase.

use std::collections::BTreeMap;

use super::io::{Op, Trace, TracedDrive};

/// What a trace holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Holdings {
    /// From the first event to the last, in ns; 0 in forms without times.
    pub duration_ns: u64,
    /// Each drive's operations, those that occur.
    pub operations: Vec<HeldOperation>,
    /// The processes that issued them, most bytes first.
    pub processes: Vec<HeldProcess>,
    /// The phases, in order.
    pub phases: Vec<HeldPhase>,
}

/// One operation's I/Os to a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOperation {
    /// The drive.
    pub drive: TracedDrive,
    /// The operation.
    pub op: Op,
    /// Its I/Os.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their median size in bytes.
    pub median_bytes: u64,
    /// Median and 99th percentile of the time from issue to completion; none where no completion is known.
    pub latency_ns: Option<[u64; 2]>,
}

/// A process's I/Os.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldProcess {
    /// Its number.
    pub pid: u32,
    /// Its name; empty if unknown.
    pub name: String,
    /// Its I/Os of all kinds.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// A phase's I/Os.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPhase {
    /// Its name.
    pub name: String,
    /// When it begins, from the trace's first event on.
    pub from_ns: u64,
    /// I/Os issued in it.
    pub ios: u64,
    /// Bytes that they read or wrote.
    pub bytes: u64,
}

impl Holdings {
    /// What a trace holds.
    pub fn of(trace: &Trace) -> Self {
        let first_ns = trace.ios.iter().map(|io| io.issued_ns).min().unwrap_or(0);
        let last_ns = trace.ios.iter().map(|io| io.completed_ns.unwrap_or(io.issued_ns)).max().unwrap_or(0);
        Self {
            duration_ns: last_ns.saturating_sub(first_ns),
            operations: operations(trace),
            processes: processes(trace),
            phases: phases(trace, first_ns),
        }
    }
}

fn operations(trace: &Trace) -> Vec<HeldOperation> {
    let mut groups: BTreeMap<(TracedDrive, Op), (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for io in &trace.ios {
        let (sizes, times) = groups.entry((io.drive, io.op)).or_default();
        sizes.push(u64::from(io.bytes));
        times.extend(io.completed_ns.map(|end_ns| end_ns.saturating_sub(io.issued_ns)));
    }
    let held = |((drive, op), (mut sizes, mut times)): ((TracedDrive, Op), (Vec<u64>, Vec<u64>))| {
        Some(HeldOperation {
            drive,
            op,
            ios: sizes.len() as u64,
            bytes: sizes.iter().sum(),
            median_bytes: nearest_rank(&mut sizes, 50)?,
            latency_ns: nearest_rank(&mut times, 50)
                .zip(nearest_rank(&mut times, 99))
                .map(|(p50, p99)| [p50, p99]),
        })
    };
    groups.into_iter().filter_map(held).collect()
}

/// The value that this many percent do not exceed (nearest rank); none of nothing.
pub fn nearest_rank(values: &mut [u64], percent: usize) -> Option<u64> {
    let at = (values.len() * percent).div_ceil(100).checked_sub(1)?;
    Some(*values.select_nth_unstable(at).1)
}

fn processes(trace: &Trace) -> Vec<HeldProcess> {
    let mut by_pid: BTreeMap<u32, HeldProcess> = BTreeMap::new();
    let name =
        |pid: u32| trace.processes.iter().find(|(known, _)| *known == pid).map(|(_, name)| name.clone());
    for io in &trace.ios {
        let of = by_pid.entry(io.pid).or_insert_with(|| HeldProcess {
            pid: io.pid,
            name: name(io.pid).unwrap_or_default(),
            ios: 0,
            read_bytes: 0,
            written_bytes: 0,
        });
        of.ios += 1;
        match io.op {
            Op::Read => of.read_bytes += u64::from(io.bytes),
            Op::Write => of.written_bytes += u64::from(io.bytes),
            Op::Discard | Op::Flush => {}
        }
    }
    let mut processes: Vec<HeldProcess> = by_pid.into_values().collect();
    processes.sort_by_key(|of| std::cmp::Reverse(of.read_bytes + of.written_bytes));
    processes
}

fn phases(trace: &Trace, first_ns: u64) -> Vec<HeldPhase> {
    let begins: Vec<(&str, u64)> = trace.phases().collect();
    let of = |(at, (name, from_ns)): (usize, &(&str, u64))| {
        let until_ns = begins.get(at + 1).map_or(u64::MAX, |(_, next_ns)| *next_ns);
        let within = trace.ios.iter().filter(|io| (*from_ns..until_ns).contains(&io.issued_ns));
        let (ios, bytes) = within.fold((0, 0), |(ios, bytes), io| {
            (ios + 1, bytes + if io.op.moves_data() { u64::from(io.bytes) } else { 0 })
        });
        HeldPhase { name: (*name).to_owned(), from_ns: from_ns.saturating_sub(first_ns), ios, bytes }
    };
    begins.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::io::{Form, Note, TracedIo};

    #[test]
    fn ios_are_counted_by_drive_operation_process_and_phase() {
        let io = |op, issued_ns, took_ns: Option<u64>, bytes, drive, pid| TracedIo {
            issued_ns,
            completed_ns: took_ns.map(|took_ns| issued_ns + took_ns),
            offset_bytes: 0,
            bytes,
            drive: TracedDrive(drive),
            pid,
            op,
        };
        let mut ios: Vec<_> = (1..=100).map(|n| io(Op::Read, n * 1000, Some(n), 4096, 1, 7)).collect();
        ios.push(io(Op::Write, 101_000, None, 65_536, 1, 8));
        ios.push(io(Op::Discard, 102_000, Some(5), 1 << 20, 2, 8));
        let mut trace = Trace::whole(ios, Form::Blktrace);
        trace.processes = vec![(7, "fio".into())];
        let note = |at_ns, text: &str| Note { at_ns, text: text.into() };
        trace.notes = vec![note(1000, "phase warmup"), note(51_000, "phase run"), note(60_000, "turn a = b")];
        let held = Holdings::of(&trace);
        assert_eq!(held.duration_ns, 101_005);
        let [read, write, discard] = &held.operations[..] else { panic!("{held:?}") };
        assert_eq!((read.ios, read.bytes, read.median_bytes), (100, 409_600, 4096));
        assert_eq!((read.latency_ns, write.latency_ns, write.bytes), (Some([50, 99]), None, 65_536));
        assert_eq!(
            (discard.drive, discard.op, discard.latency_ns),
            (TracedDrive(2), Op::Discard, Some([5, 5]))
        );
        let [first, second] = &held.processes[..] else { panic!("{held:?}") };
        assert_eq!((first.name.as_str(), first.ios, first.read_bytes), ("fio", 100, 409_600));
        assert_eq!((second.name.as_str(), second.ios, second.written_bytes), ("", 2, 65_536));
        let phases: Vec<_> =
            held.phases.iter().map(|of| (of.name.as_str(), of.from_ns, of.ios, of.bytes)).collect();
        assert_eq!(phases, [("warmup", 0, 50, 204_800), ("run", 50_000, 52, 204_800 + 65_536)]);
    }
}
