//! Traces drives in a thread of its own, while the rest of the program works. On request, the latest I/Os are
//! scored meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::contract::{ContractSpec, Scores, score};
use super::events::Events;
use super::io::{LostEvents, Note, Trace};
use super::live::Tracer;
use super::watched::Watched;
use super::windowed::{Follower, Stretches};
use crate::error::{Error, Result, describe};
use crate::threads;

/// Pause between two looks at the rings, which can hold more than arrives in that time.
const PAUSE: Duration = Duration::from_millis(10);
/// Rules are scored no more often than this.
const SCORED_EVERY: Duration = Duration::from_secs(1);
/// The most recent issues and completions that are scored, at most: a tenth of a second of CPU time.
const SCORED_MAX: usize = 200_000;
/// After scoring, pause for this many times as long as it took: it uses a quarter of one CPU.
const RESTS: u32 = 3;

/// How well the latest I/Os follow the rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// Issues and completions traced so far.
    pub events: usize,
    /// Whether that is as many as can be read back: the trace has ended.
    pub is_full: bool,
    /// How many of the latest are scored, at most.
    pub scored_max: usize,
    /// Events missing so far.
    pub lost: LostEvents,
    /// The scores of each drive, or why there are none.
    pub scores: Vec<std::result::Result<Scores, String>>,
}

/// Notes on moments of a trace under way, from whoever turns knobs meanwhile.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<(u64, String)>>>);

impl Notes {
    /// Adds a note on a moment, given by the monotonic clock.
    pub fn add(&self, at_ns: u64, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((at_ns, text));
    }

    fn take(&self) -> Vec<(u64, String)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Receives the scores of the latest I/Os.
pub type Report = Box<dyn FnMut(Live) + Send>;

/// A trace, and what it cost.
#[derive(Debug)]
pub struct Traced {
    /// The trace.
    pub trace: Trace,
    /// When it began, on the monotonic clock; its times count from there.
    pub start_ns: u64,
    /// How many of the missing events had no room in a ring.
    pub overrun: u64,
    /// CPU time of the thread, without what the kernel spent on each event.
    pub cpu: Duration,
    /// Whether it ended by itself, because it was as long as can be read back.
    pub is_cut: bool,
    /// Whether it is what the workers submitted, and not what the kernel's block layer issued.
    pub is_own: bool,
}

impl Traced {
    /// Adds notes on moments, given by the monotonic clock.
    pub fn note(&mut self, marks: Vec<(u64, String)>) {
        let note = |(at_ns, text): (u64, String)| Note { at_ns: at_ns.saturating_sub(self.start_ns), text };
        self.trace.notes = marks.into_iter().map(note).collect();
    }

    /// CPU time per I/O, in nanoseconds.
    pub fn cpu_ns_per_io(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.trace.ios.len().max(1) as f64
    }
}

/// A trace in progress; dropping this ends it.
#[derive(Debug)]
pub struct Watch {
    ends: Ends,
    stretches: Stretches,
    notes: Notes,
    thread: JoinHandle<Result<Traced>>,
}

/// Ends a thread that looks at the flag; dropping this sets it.
#[derive(Debug, Default)]
pub struct Ends(Arc<AtomicBool>);

impl Ends {
    /// The flag.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Watch {
    /// Starts tracing drives on these CPUs.
    ///
    /// # Errors
    /// As for [`Tracer::start`]; if no more threads can be started.
    pub fn start(drives: Vec<Watched>, cpus: &[u32], report: Option<Report>) -> Result<Self> {
        let mut numbers: Vec<_> = drives.iter().map(|of| of.drive).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let tracer = Tracer::start(&numbers, cpus)?;
        // With live scores, someone may turn knobs meanwhile, so stretches are followed as well.
        let is_live = report.is_some();
        let (follower, stretches) = Follower::of(&drives);
        let scorer = report.map(|report| scorer(drives, report)).transpose()?;
        let ends = Ends::default();
        let theirs = ends.flag();
        let thread = threads::start("trace drives", move || {
            follow(tracer, &theirs, scorer.as_ref(), is_live.then_some(follower))
        })?;
        Ok(Self { ends, stretches, notes: Notes::default(), thread })
    }

    /// Where to take the figures of stretches of time, if live scores are reported.
    pub fn stretches(&self) -> Stretches {
        self.stretches.clone()
    }

    /// Where to add notes.
    pub fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// Whether it ended by itself.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it.
    ///
    /// # Errors
    /// As for [`Tracer::stop`].
    pub fn stop(self) -> Result<Traced> {
        drop(self.ends);
        let ended = self.thread.join().map_err(|_| Error::failed("the tracing thread ended unexpectedly"))?;
        let mut traced = ended?;
        traced.note(self.notes.take());
        Ok(traced)
    }
}

fn follow(
    mut tracer: Tracer,
    ends: &AtomicBool,
    scorer: Option<&SyncSender<Taken>>,
    mut follower: Option<Follower>,
) -> Result<Traced> {
    let mut followed = 0;
    let mut due = Instant::now() + SCORED_EVERY;
    let mut goes_on = true;
    while goes_on && !ends.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
        goes_on = tracer.take();
        if let Some(follower) = &mut follower {
            follower.take(tracer.events().since(followed), tracer.now_ns());
            followed = tracer.events().len();
        }
        let Some(scorer) = scorer.filter(|_| Instant::now() >= due) else { continue };
        due = Instant::now() + SCORED_EVERY;
        let lost = tracer.missing().map_err(|error| Error::failed(describe(&error)))?;
        if let Some(follower) = &mut follower {
            follower.lost(lost);
        }
        // If the scorer is still busy or pausing, it skips this one.
        let _ = scorer.try_send(Taken::of(&tracer, lost));
    }
    let full = scorer.filter(|_| !goes_on).map(|scorer| (scorer, Taken::of(&tracer, LostEvents::default())));
    let cpu = threads::own_cpu();
    let start_ns = tracer.start_ns();
    let (trace, overrun) = tracer.stop(Path::new("the trace"))?;
    if let (Some((scorer, taken)), Some(follower)) = (full, &mut follower) {
        // What follows is in no figure, and whoever looks at the scores ends the trace.
        follower.lost(LostEvents::unknown(1));
        let _ = scorer.send(Taken { lost: trace.lost, ..taken });
    }
    Ok(Traced { trace, start_ns, overrun, cpu, is_cut: !goes_on, is_own: false })
}

/// Input of the scorer.
struct Taken {
    events: usize,
    is_full: bool,
    lost: LostEvents,
    last: Events,
}

impl Taken {
    fn of(tracer: &Tracer, lost: LostEvents) -> Self {
        let events = tracer.events();
        Self { events: events.len(), is_full: events.is_full(), lost, last: events.last(SCORED_MAX) }
    }
}

/// Starts a thread that scores whatever it is sent, until the sender is dropped.
fn scorer(drives: Vec<Watched>, mut report: Report) -> Result<SyncSender<Taken>> {
    let (send, taken) = sync_channel(0);
    threads::start("score a trace", move || score_all(&taken, &drives, &mut report))?;
    Ok(send)
}

fn score_all(taken: &Receiver<Taken>, drives: &[Watched], report: &mut Report) {
    while let Ok(Taken { events, is_full, lost, last }) = taken.recv() {
        let begin = Instant::now();
        let trace = last.into_trace(Path::new("the trace")).map(|trace| Trace { lost, ..trace });
        let of = |watched: &Watched| match &trace {
            Ok(trace) => scored(trace, watched, None),
            Err(error) => Err(error.one_line()),
        };
        let scores = drives.iter().map(of).collect();
        report(Live { events, is_full, scored_max: SCORED_MAX, lost, scores });
        std::thread::sleep(begin.elapsed() * RESTS);
    }
}

/// The scores of a drive's part in a trace, or why there are none; with the bytes that the application's
/// files hold at the end, if known.
pub fn scored(trace: &Trace, of: &Watched, file_bytes: Option<u64>) -> std::result::Result<Scores, String> {
    if !trace.ios.iter().any(|io| io.drive == of.drive) {
        return Err("nothing was issued to it".into());
    }
    let spec = ContractSpec {
        drive: Some(of.drive),
        start_bytes: of.start_bytes,
        space_bytes: Some(of.bytes),
        file_bytes,
        ..ContractSpec::default()
    };
    score(trace, &spec).map_err(|error| error.one_line())
}
