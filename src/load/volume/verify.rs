//! Verification: every sector of data and WAL is read and checked against its stamp.

use std::fmt;
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use serde::Serialize;

use super::opened::Volume;
use super::progress::Progress;
use super::region::Region;
use super::stamp::{Fault, SECTOR_BYTES, check};
use crate::direct::{AlignedBuffer, reopen};
use crate::error::{Error, Result, describe};
use crate::host::Feature;
use crate::threads;
use crate::units::{MIB, approx_size};

const CHUNK_BYTES: u64 = MIB;
const PROGRESS_TIME: Duration = Duration::from_millis(100);
/// How many faults of each kind are named.
const NAMED_MAX: usize = 5;

/// Where a fault is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The member's name.
    pub member: String,
    /// Offset on the member.
    pub offset_bytes: u64,
    /// `data` or `wal`.
    pub region: &'static str,
    /// Details, such as the error of a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Faults of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Faults {
    /// The number of sectors.
    pub sectors: u64,
    /// The first few.
    pub first: Vec<Place>,
}

/// What a verification found, in sectors of 512 bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Sectors with what was written there.
    pub sectors_ok: u64,
    /// Sectors that are all zeros.
    pub never_written: Faults,
    /// Sectors that this set did not write.
    pub foreign: Faults,
    /// Valid sectors of this set that belong elsewhere.
    pub misplaced: Faults,
    /// Sectors of this set whose bytes are not those that were written.
    pub damaged: Faults,
    /// Sectors that could not be read.
    pub unreadable: Faults,
    /// Whether everything was checked; otherwise it was stopped.
    pub complete: bool,
}

impl VerifyReport {
    /// Whether everything was checked and is as it was written.
    pub fn is_clean(&self) -> bool {
        self.complete && self.kinds().iter().all(|(_, faults)| faults.sectors == 0)
    }

    /// Each kind of fault with its name.
    pub fn kinds(&self) -> [(&'static str, &Faults); 5] {
        [
            (Fault::NeverWritten.name(), &self.never_written),
            (Fault::Foreign.name(), &self.foreign),
            (Fault::Misplaced.name(), &self.misplaced),
            (Fault::Damaged.name(), &self.damaged),
            ("unreadable", &self.unreadable),
        ]
    }

    fn of(&mut self, fault: Fault) -> &mut Faults {
        match fault {
            Fault::NeverWritten => &mut self.never_written,
            Fault::Foreign => &mut self.foreign,
            Fault::Misplaced => &mut self.misplaced,
            Fault::Damaged => &mut self.damaged,
        }
    }

    fn add(&mut self, other: Self) {
        self.sectors_ok += other.sectors_ok;
        self.complete &= other.complete;
        self.never_written.add(other.never_written);
        self.foreign.add(other.foreign);
        self.misplaced.add(other.misplaced);
        self.damaged.add(other.damaged);
        self.unreadable.add(other.unreadable);
    }
}

impl Faults {
    fn add(&mut self, other: Self) {
        self.sectors += other.sectors;
        let room = NAMED_MAX.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }

    fn note(&mut self, sectors: u64, place: impl FnOnce() -> Place) {
        self.sectors += sectors;
        if self.first.len() < NAMED_MAX {
            self.first.push(place());
        }
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |sectors: u64| approx_size(sectors * SECTOR_BYTES as u64);
        write!(f, "{} verified as written", size(self.sectors_ok))?;
        for (name, faults) in self.kinds().into_iter().filter(|(_, faults)| faults.sectors > 0) {
            write!(f, "\n{} {name} ({} sectors), first at", size(faults.sectors), faults.sectors)?;
            for (n, place) in faults.first.iter().enumerate() {
                let comma = if n == 0 { "" } else { "," };
                write!(f, "{comma} {} + {} ({})", place.member, place.offset_bytes, place.region)?;
                if let Some(detail) = &place.detail {
                    write!(f, ": {detail}")?;
                }
            }
        }
        if !self.complete {
            write!(f, "\nstopped before the end")?;
        }
        Ok(())
    }
}

/// An extent to verify.
struct Job<'a> {
    region: &'a Region,
    extent: u32,
    member: &'a str,
    file: &'a File,
    direct: bool,
}

impl Volume {
    /// Reads and checks everything. Sectors that were never filled are counted as such.
    ///
    /// # Errors
    /// If the members are not a stacktune set, so that there is nothing to compare with.
    pub fn verify(&self, progress: &mut dyn FnMut(Progress), stop: &AtomicBool) -> Result<VerifyReport> {
        if self.set == 0 {
            let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
            let why = self.notes.first().and_then(|note| note.split(": ").next());
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            return Err(Error::failed(format!("there is no stacktune set on {}{why}", names.join(", ")))
                .hint("fill the target first: run a profile on it"));
        }
        let direct = self.facts.direct == Feature::Present;
        let all_bytes = self.data.bytes() + self.wal.bytes();
        let done_bytes = AtomicU64::new(0);
        let (sender, reports) = channel();
        let began = Instant::now();
        let mut report = VerifyReport { complete: true, ..VerifyReport::default() };
        let jobs = self.members.iter().enumerate().map(|(n, member)| {
            let job =
                |(region, extent)| Job { region, extent, member: &member.name, file: &member.file, direct };
            self.extents_of(n).map(job).collect()
        });
        let jobs = Mutex::new(jobs.collect::<Vec<Vec<Job>>>().into_iter());
        std::thread::scope(|scope| {
            let (jobs, done_bytes) = (&jobs, &done_bytes);
            let work = move || {
                // Nothing panics while the lock is held.
                let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some(jobs) = next() {
                    for job in jobs {
                        // The receiver lives as long as the scope.
                        let _ = sender.send(verify_extent(&job, stop, done_bytes));
                    }
                }
            };
            threads::share(scope, (self.members.len(), "verify the target"), work)?;
            let mut show = || {
                let done_bytes = done_bytes.load(Ordering::Relaxed);
                let rate_bytes_per_s = done_bytes as f64 / began.elapsed().as_secs_f64().max(1e-9);
                progress(Progress { what: "verifying".into(), done_bytes, all_bytes, rate_bytes_per_s });
            };
            loop {
                match reports.recv_timeout(PROGRESS_TIME) {
                    Ok(part) => report.add(part),
                    Err(RecvTimeoutError::Timeout) => show(),
                    Err(RecvTimeoutError::Disconnected) => break show(),
                }
            }
            Ok(report)
        })
    }
}

fn verify_extent(job: &Job, stop: &AtomicBool, done_bytes: &AtomicU64) -> VerifyReport {
    let direct = if job.direct { reopen(job.file, false, true).ok() } else { None };
    let file = direct.as_ref().unwrap_or(job.file);
    let begin = job.region.extents[job.extent as usize].offset_bytes;
    let end = begin + job.region.extent_bytes;
    let mut report = VerifyReport { complete: true, ..VerifyReport::default() };
    let mut buffer = AlignedBuffer::new(CHUNK_BYTES as usize);
    for chunk_at in (begin..end).step_by(CHUNK_BYTES as usize) {
        if stop.load(Ordering::Relaxed) {
            report.complete = false;
            return report;
        }
        if direct.is_none() {
            // The cache may differ from the medium; best effort if it is dirty.
            let _ = fadvise(file, chunk_at, NonZeroU64::new(CHUNK_BYTES), Advice::DontNeed);
        }
        if file.read_exact_at(buffer.bytes_mut(), chunk_at).is_ok() {
            check_sectors(job, &mut report, buffer.bytes(), chunk_at);
        } else {
            read_in_pieces(job, file, &mut report, &mut buffer, chunk_at);
        }
        done_bytes.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
    }
    report
}

/// Reads a chunk that can't be read as a whole block by block, so that only bad blocks count as bad.
fn read_in_pieces(
    job: &Job,
    file: &File,
    report: &mut VerifyReport,
    buffer: &mut AlignedBuffer,
    chunk_at: u64,
) {
    const PIECE_BYTES: usize = 4096;
    for place in (chunk_at..chunk_at + CHUNK_BYTES).step_by(PIECE_BYTES) {
        let piece = &mut buffer.bytes_mut()[..PIECE_BYTES];
        match file.read_exact_at(piece, place) {
            Ok(()) => check_sectors(job, report, piece, place),
            Err(error) => {
                let sectors = (PIECE_BYTES / SECTOR_BYTES) as u64;
                report.unreadable.note(sectors, || place_of(job, place, Some(describe(&error))));
            }
        }
    }
}

fn check_sectors(job: &Job, report: &mut VerifyReport, bytes: &[u8], first: u64) {
    let places = (first..).step_by(SECTOR_BYTES);
    for (sector, place) in bytes.chunks_exact(SECTOR_BYTES).zip(places) {
        match check(sector, job.region.set, job.region.id, job.extent, place) {
            Ok(_) => report.sectors_ok += 1,
            Err(fault) => report.of(fault).note(1, || place_of(job, place, None)),
        }
    }
}

fn place_of(job: &Job, offset_bytes: u64, detail: Option<String>) -> Place {
    let region = if job.region.id == Region::WAL { "wal" } else { "data" };
    Place { member: job.member.to_owned(), offset_bytes, region, detail }
}
