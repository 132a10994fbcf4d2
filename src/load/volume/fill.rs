//! The fill writes stamped, incompressible pages to data and WAL before their first use, because blocks that
//! were never written read and sync unrealistically fast.
//!
//! Each member's header records how much is filled. It advances only over durable bytes, so that a fill
//! continues where it was interrupted, whatever the cause.

use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

use super::header::Header;
use super::member::Member;
use super::opened::Volume;
use super::progress::Progress;
use super::stamp::Stamper;
use super::write_map::Table;
use crate::direct::{AlignedBuffer, reopen};
use crate::error::{Error, Result, describe};
use crate::host::Feature;
use crate::threads;
use crate::units::{MIB, approx_size};

const CHUNK_BYTES: u64 = MIB;
/// The header advances after this many bytes, or after that time.
const CHECKPOINT_BYTES: u64 = 256 * MIB;
const CHECKPOINT_TIME: Duration = Duration::from_secs(2);
const PROGRESS_TIME: Duration = Duration::from_millis(100);
/// How long to measure at the start, at most.
const MEASURE_TIME: Duration = Duration::from_millis(500);
/// Maximum members filled in parallel.
const THREADS_MAX: usize = 16;

/// What is left to fill.
#[derive(Debug, Clone, PartialEq)]
pub struct FillPlan {
    /// Total bytes.
    pub bytes: u64,
    /// Members by name with their bytes, except those without any.
    pub members: Vec<(String, u64)>,
    /// Bytes per second, once measured ([`Volume::measure_fill`]).
    pub rate_bytes_per_s: Option<f64>,
}

impl fmt::Display for FillPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = if self.members.len() == 1 { "member" } else { "members" };
        write!(f, "{} to fill on {} {members}", approx_size(self.bytes), self.members.len())
    }
}

impl FillPlan {
    /// How long it takes at the measured rate, in seconds; `None` before measuring.
    pub fn time_s(&self) -> Option<f64> {
        self.rate_bytes_per_s.filter(|rate| *rate > 0.0).map(|rate| self.bytes as f64 / rate)
    }
}

/// How a fill ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillOutcome {
    /// Bytes that this fill wrote.
    pub written_bytes: u64,
    /// Whether nothing is left; otherwise it was stopped and can be continued later.
    pub complete: bool,
}

/// A stretch of a member to fill.
struct Part<'a> {
    region: u8,
    extent: u32,
    offset_bytes: u64,
    bytes: u64,
    stamper: &'a Stamper,
    table: Option<&'a Table>,
}

/// What the fill of one member needs.
struct Job<'a> {
    member: &'a mut Member,
    parts: Vec<Part<'a>>,
    direct: bool,
}

/// State that all threads of a fill share.
struct Shared<'a> {
    stop: &'a AtomicBool,
    /// Set if a thread failed, so that the others end as well.
    failed: AtomicBool,
    deadline: Option<Instant>,
    written_bytes: AtomicU64,
    sequence: AtomicU64,
}

impl Shared<'_> {
    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.failed.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Volume {
    /// What is left to fill; `None` if nothing is.
    pub fn missing_fill(&self) -> Option<FillPlan> {
        if self.read_only {
            return None;
        }
        let missing = |member: usize| -> u64 {
            let header = self.members[member].header.as_ref();
            let filled = |region: u8| header.map_or(0, |header| header.filled_bytes(region));
            self.extents_of(member)
                .map(|(region, _)| region.extent_bytes.saturating_sub(filled(region.id)))
                .sum()
        };
        let members = (0..self.members.len()).map(|n| (self.members[n].name.clone(), missing(n)));
        let members: Vec<(String, u64)> = members.filter(|(_, bytes)| *bytes > 0).collect();
        let bytes = members.iter().map(|(_, bytes)| bytes).sum();
        (bytes > 0).then_some(FillPlan { bytes, members, rate_bytes_per_s: None })
    }

    /// Fills for half a second and returns what is left, with the measured rate. These bytes count:
    /// [`Volume::fill`] continues after them.
    pub fn measure_fill(&mut self, stop: &AtomicBool) -> Result<(FillOutcome, Option<FillPlan>)> {
        let began = Instant::now();
        let outcome = self.fill_until(&mut |_| {}, stop, Some(began + MEASURE_TIME))?;
        let rate = outcome.written_bytes as f64 / began.elapsed().as_secs_f64();
        let plan = self.missing_fill().map(|plan| FillPlan { rate_bytes_per_s: Some(rate), ..plan });
        Ok((outcome, plan))
    }

    /// Writes everything that is missing. `stop` ends it early, cleanly.
    ///
    /// # Errors
    /// A write or flush that failed; what was durable before stays filled.
    pub fn fill(&mut self, progress: &mut dyn FnMut(Progress), stop: &AtomicBool) -> Result<FillOutcome> {
        self.fill_until(progress, stop, None)
    }

    fn fill_until(
        &mut self,
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
        deadline: Option<Instant>,
    ) -> Result<FillOutcome> {
        let Some(plan) = self.missing_fill() else {
            self.writable()?;
            return Ok(FillOutcome { written_bytes: 0, complete: true });
        };
        let sequence = AtomicU64::new(self.next_sequence_base()?);
        let direct = self.facts.direct == Feature::Present;
        let stampers = [&self.data, &self.wal].map(|region| Stamper::new(region.set, region.id));
        let tables = self.tables()?;
        let parts = |n| self.parts_of(n, &stampers, &tables);
        let parts: Vec<Vec<Part>> = (0..self.members.len()).map(parts).collect();
        let jobs = self.members.iter_mut().zip(parts).map(|(member, parts)| Job { member, parts, direct });
        let shared = Shared {
            stop,
            failed: AtomicBool::new(false),
            deadline,
            written_bytes: AtomicU64::new(0),
            sequence,
        };
        run(jobs.collect(), &plan, &shared, progress)?;
        let written_bytes = shared.written_bytes.load(Ordering::Relaxed);
        Ok(FillOutcome { written_bytes, complete: written_bytes == plan.bytes })
    }

    /// The write map's tables of both regions, if there is a map.
    pub(super) fn tables(&self) -> Result<[Option<Table>; 2]> {
        let Ok(map) = &self.map else { return Ok([None, None]) };
        let table = |region| map.table(region).map_err(|error| Error::failed(describe(&error)));
        Ok([Some(table(&self.data)?), Some(table(&self.wal)?)])
    }

    fn parts_of<'a>(
        &self,
        member: usize,
        stampers: &'a [Stamper; 2],
        tables: &'a [Option<Table>; 2],
    ) -> Vec<Part<'a>> {
        let parts = self.extents_of(member).map(|(region, extent)| Part {
            region: region.id,
            extent,
            offset_bytes: region.extents[extent as usize].offset_bytes,
            bytes: region.extent_bytes,
            stamper: &stampers[usize::from(region.id)],
            table: tables[usize::from(region.id)].as_ref(),
        });
        parts.collect()
    }
}

/// Runs the jobs on a few threads, and reports from this one.
fn run(jobs: Vec<Job>, plan: &FillPlan, shared: &Shared, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    let count = jobs.len().min(THREADS_MAX);
    let jobs = Mutex::new(jobs.into_iter());
    let (done, ended) = channel::<Result<()>>();
    let began = Instant::now();
    let report = |progress: &mut dyn FnMut(Progress)| {
        let done_bytes = shared.written_bytes.load(Ordering::Relaxed);
        let rate_bytes_per_s = done_bytes as f64 / began.elapsed().as_secs_f64().max(1e-9);
        let what = format!("filling {}", members_in_words(plan));
        progress(Progress { what, done_bytes, all_bytes: plan.bytes, rate_bytes_per_s });
    };
    std::thread::scope(|scope| {
        let jobs = &jobs;
        let work = move || {
            // Nothing panics while the lock is held.
            let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some(job) = next() {
                let outcome = fill_member(job, shared);
                shared.failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                // The receiver lives as long as the scope.
                let _ = done.send(outcome);
            }
        };
        threads::share(scope, (count, "fill the target"), work)?;
        let mut first_error = Ok(());
        report(progress);
        loop {
            match ended.recv_timeout(PROGRESS_TIME) {
                Ok(outcome) => first_error = first_error.and(outcome),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            report(progress);
        }
        report(progress);
        first_error
    })
}

fn members_in_words(plan: &FillPlan) -> String {
    match &plan.members[..] {
        [(name, _)] => name.clone(),
        members => format!("{} members", members.len()),
    }
}

fn fill_member(job: Job, shared: &Shared) -> Result<()> {
    let Job { member, parts, direct } = job;
    let Some(header) = member.header.as_mut() else { return Ok(()) };
    let direct = if direct { reopen(&member.file, true, true).ok() } else { None };
    let mut buffer = AlignedBuffer::new(CHUNK_BYTES as usize);
    for part in parts {
        fill_part(&part, header, &member.file, direct.as_ref(), &mut buffer, shared)
            .map_err(|error| Error::os("cannot fill", &member.path, error))?;
    }
    Ok(())
}

/// Fills in stretches; the header advances after each one, once it is durable.
fn fill_part(
    part: &Part,
    header: &mut Header,
    file: &File,
    direct: Option<&File>,
    buffer: &mut AlignedBuffer,
    shared: &Shared,
) -> io::Result<()> {
    loop {
        let (first, began) = (header.filled_bytes(part.region), Instant::now());
        let mut filled = first;
        let more = |filled: u64| filled < part.bytes && filled - first < CHECKPOINT_BYTES;
        while more(filled) && began.elapsed() < CHECKPOINT_TIME && !shared.should_stop() {
            let place = part.offset_bytes + filled;
            let sequence = shared.sequence.fetch_add(1, Ordering::Relaxed);
            part.stamper.stamp(buffer.bytes_mut(), part.extent, place, sequence);
            part.table.inspect(|table| table.forget(part.extent, place, CHUNK_BYTES));
            direct.unwrap_or(file).write_all_at(buffer.bytes(), place)?;
            part.table.inspect(|table| table.filled(part.extent, place, CHUNK_BYTES, sequence));
            filled += CHUNK_BYTES;
            shared.written_bytes.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
        }
        if filled == first {
            return Ok(());
        }
        make_durable(file, part.offset_bytes + first, filled - first, direct.is_some())?;
        *header.filled_bytes_mut(part.region) = filled;
        header.write(file)?;
    }
}

/// Flushes, and drops from the page cache what went through it, so that the first reads reach the device.
fn make_durable(file: &File, offset_bytes: u64, bytes: u64, direct: bool) -> io::Result<()> {
    file.sync_data()?;
    if !direct {
        fadvise(file, offset_bytes, NonZeroU64::new(bytes), Advice::DontNeed)?;
    }
    Ok(())
}
