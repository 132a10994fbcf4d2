//! Verification: every sector of data and WAL is read, and checked against its stamp and the write map.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::compared::{Extent, RegionMap};
use super::member::Member;
use super::opened::Volume;
use super::progress::Progress;
use super::region::Region;
use super::report::{Comparison, VerifyReport};
use super::stamp::SECTOR_BYTES;
use super::write_map::UNKEPT;
use crate::direct::{AlignedBuffer, reopen};
use crate::error::{Error, Result, describe};
use crate::host::Feature;
use crate::threads;
use crate::units::MIB;
use rustix::fs::{Advice, fadvise};

const CHUNK_BYTES: u64 = MIB;
const PROGRESS_TIME: Duration = Duration::from_millis(100);
/// An extent to verify, and how it is read.
struct Job<'a> {
    extent: Extent<'a>,
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
        self.members.iter().try_for_each(Member::refuse_gone)?;
        let maps = self.region_maps()?;
        let report = self.read_back(&maps, self.comparison(&maps), progress, stop)?;
        match report.doubt {
            Some(doubt) => self.read_back(&[None, None], Comparison::none(doubt.to_owned()), progress, stop),
            None => Ok(report),
        }
    }

    /// Reads everything, and compares it with what the regions' pages should hold.
    fn read_back(
        &self,
        maps: &[Option<RegionMap>; 2],
        write_map: Comparison,
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<VerifyReport> {
        let direct = self.facts.direct == Feature::Present;
        let all_bytes = self.data.bytes() + self.wal.bytes();
        let done_bytes = AtomicU64::new(0);
        let (sender, reports) = channel();
        let began = Instant::now();
        let mut report = VerifyReport { complete: true, write_map, ..VerifyReport::default() };
        let jobs = self.members.iter().enumerate().map(|(n, member)| {
            let jobs = self.extents_of(n).map(move |(region, index)| {
                let map = maps[usize::from(region.id)].as_ref();
                let extent = Extent { region, index, member: &member.name, map };
                Job { extent, file: &member.file, direct }
            });
            jobs.collect()
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

    /// What the regions' pages should hold, where that is known.
    fn region_maps(&self) -> Result<[Option<RegionMap>; 2]> {
        let Some(map) = self.map.as_ref().ok().filter(|map| !map.is_void()) else { return Ok([None, None]) };
        let of = |region: &Region| {
            let of = || Ok(RegionMap { table: map.table(region)?, under_way: map.under_way(region)? });
            of().map(Some).map_err(|error: std::io::Error| {
                Error::failed(format!("the write map can't be read: {}", describe(&error)))
            })
        };
        let wal = if self.wal.bytes() > 0 { of(&self.wal)? } else { None };
        Ok([of(&self.data)?, wal])
    }

    fn comparison(&self, maps: &[Option<RegionMap>; 2]) -> Comparison {
        let share = |map: &Option<RegionMap>| map.as_ref().map_or(1.0, |map| map.table.share());
        let [data, wal] = maps;
        if data.is_some() {
            return Comparison { share: share(data), wal_share: share(wal), ..Comparison::default() };
        }
        Comparison::none(self.map.as_ref().map_or_else(Clone::clone, |_| UNKEPT.to_owned()))
    }
}

fn verify_extent(job: &Job, stop: &AtomicBool, done_bytes: &AtomicU64) -> VerifyReport {
    let direct = if job.direct { reopen(job.file, false, true).ok() } else { None };
    let file = direct.as_ref().unwrap_or(job.file);
    let begin = job.extent.region.extents[job.extent.index as usize].offset_bytes;
    let end = begin + job.extent.region.extent_bytes;
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
            job.extent.compare(&mut report, buffer.bytes(), chunk_at);
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
            Ok(()) => job.extent.compare(report, piece, place),
            Err(error) => {
                let sectors = (PIECE_BYTES / SECTOR_BYTES) as u64;
                let pages =
                    u64::from(place.is_multiple_of(job.extent.page_bytes()) || report.unreadable.pages == 0);
                let place = || job.extent.place(place, Some(describe(&error)));
                report.unreadable.note((pages, sectors), place);
            }
        }
    }
}
