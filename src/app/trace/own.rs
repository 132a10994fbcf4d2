//! A trace of what the workers submit themselves, where the kernel does not see it, or may not be asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::load::io::OpKind;
use crate::load::workers::ended::EndedIo;
use crate::runs::session::{Observed, Session};
use crate::threads;
use crate::trace::{Ends, Form, IOS_MAX, LostEvents, Op, Trace, Traced, TracedDrive, TracedIo, Watched};

/// Pause between two looks, in which no worker's ring fills up below three million I/Os a second.
const PAUSE: Duration = Duration::from_millis(10);

/// A trace under way.
pub struct OwnTrace {
    ends: Ends,
    thread: JoinHandle<Traced>,
}

impl OwnTrace {
    /// Traces the workers of a session, which have not started yet; also returns what they use, as drives.
    ///
    /// # Errors
    /// Input if none of its workers can be observed.
    pub fn begin(session: &mut Session) -> Result<(Self, Vec<Watched>)> {
        let observed = session.observe()?;
        let drives: Vec<Watched> = (observed.places.iter().zip(1..))
            .filter_map(|(place, number)| {
                let drive = TracedDrive::new(0, number)?;
                let (name, bytes) = (place.name.clone(), place.bytes);
                Some(Watched { name, drive, start_bytes: 0, bytes, model: None, serial: None })
            })
            .collect();
        let ends = Ends::default();
        let (theirs, numbers) = (ends.flag(), drives.iter().map(|of| of.drive).collect::<Vec<_>>());
        let thread = threads::start("trace the workers", move || collect(&observed, &numbers, &theirs))?;
        Ok((Self { ends, thread }, drives))
    }

    /// Ends it, once the workers have ended.
    ///
    /// # Errors
    /// Input if they did nothing.
    pub fn stop(self) -> Result<Traced> {
        drop(self.ends);
        let traced =
            self.thread.join().map_err(|_| Error::failed("the tracing thread ended unexpectedly"))?;
        if traced.trace.ios.is_empty() {
            return Err(Error::input("--trace: no I/O has ended"));
        }
        Ok(traced)
    }
}

fn collect(observed: &Observed, drives: &[TracedDrive], ends: &AtomicBool) -> Traced {
    let (mut ios, mut ended) = (Vec::new(), Vec::new());
    let pid = std::process::id();
    let of = |io: EndedIo| traced(io, observed, drives, pid);
    let (lost, is_cut) = loop {
        let is_last = ends.load(Ordering::Relaxed);
        let lost = observed.observer.take(&mut ended);
        ios.extend(ended.drain(..).filter_map(of));
        if ios.len() >= IOS_MAX || is_last {
            break (lost, ios.len() >= IOS_MAX);
        }
        std::thread::sleep(PAUSE);
    };
    ios.truncate(IOS_MAX);
    ios.sort_by_key(|io: &TracedIo| io.issued_ns);
    let trace = Trace {
        ios,
        processes: vec![(pid, "stacktune".into())],
        notes: Vec::new(),
        form: Form::Blktrace,
        lost: LostEvents::unknown(lost),
        unpaired: 0,
        requeued: 0,
    };
    let (start_ns, cpu) = (observed.start_ns, threads::own_cpu());
    Traced { trace, start_ns, overrun: lost, cpu, is_cut, is_own: true }
}

fn traced(io: EndedIo, observed: &Observed, drives: &[TracedDrive], pid: u32) -> Option<TracedIo> {
    let place = observed.files.get(usize::from(io.region))?.get(usize::from(io.file))?;
    let since = |ns: u64| ns.saturating_sub(observed.start_ns);
    Some(TracedIo {
        issued_ns: since(io.start_ns),
        completed_ns: Some(since(io.end_ns)),
        offset_bytes: io.offset_bytes,
        bytes: io.bytes,
        drive: *drives.get(*place)?,
        pid,
        op: match io.kind {
            OpKind::Read => Op::Read,
            OpKind::Write | OpKind::WriteDurable => Op::Write,
            OpKind::Flush => Op::Flush,
        },
    })
}
