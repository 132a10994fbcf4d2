//! Overwrites a filled target with random pages, twice over: a sequential fill undoes a drive's preconditioning.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rustix::fs::{Advice, fadvise};

use super::fill::FillOutcome;
use super::opened::Volume;
use super::progress::Progress;
use super::stamp::Stamper;
use super::write_map::Table;
use crate::direct::{AlignedBuffer, reopen};
use crate::error::{Error, Result};
use crate::host::Feature;
use crate::threads;
use crate::units::MIB;

/// Pages are written for this many times the target's size.
pub const TIMES: u64 = 2;
/// No larger than the pages that drives are preconditioned with, unless the run's own pages are.
const PAGE_BYTES: u64 = 4096;
/// Enough in flight to keep the flash of several drives busy.
const THREADS: u64 = 128;
const PROGRESS_TIME: Duration = Duration::from_millis(100);

/// A stretch of an extent, whose pages one thread writes.
struct Part<'a> {
    stamper: &'a Stamper,
    table: Option<&'a Table>,
    extent: u32,
    offset_bytes: u64,
    bytes: u64,
    page_bytes: u64,
    file: &'a File,
    member: &'a str,
}

/// State that all threads share.
struct Shared<'a> {
    stop: &'a AtomicBool,
    failed: AtomicBool,
    written_bytes: AtomicU64,
    sequence: AtomicU64,
}

impl Volume {
    /// Bytes that [`Self::scatter`] writes.
    pub fn scattered_bytes(&self) -> u64 {
        TIMES * (self.data.bytes() + self.wal.bytes())
    }

    /// Writes pages at random places of data and WAL, and makes them durable. `stop` ends it early.
    ///
    /// # Errors
    /// A write or flush that failed.
    pub fn scatter(&mut self, progress: &mut dyn FnMut(Progress), stop: &AtomicBool) -> Result<FillOutcome> {
        let sequence = AtomicU64::new(self.next_sequence_base()?);
        let direct = self.facts.direct == Feature::Present;
        let stampers = [&self.data, &self.wal].map(|region| Stamper::new(region.set, region.id));
        let tables = self.tables()?;
        let opened = |file| if direct { reopen(file, true, true).ok() } else { None };
        let files: Vec<Option<File>> = self.members.iter().map(|member| opened(&member.file)).collect();
        let extents = (self.data.extents.len() + self.wal.extents.len()) as u64;
        let mut parts = Vec::new();
        for (n, member) in self.members.iter().enumerate() {
            for (region, extent) in self.extents_of(n) {
                let table = tables[usize::from(region.id)].as_ref();
                let first = region.extents[extent as usize].offset_bytes;
                let each = region.extent_bytes.div_ceil(THREADS.div_ceil(extents)).next_multiple_of(MIB);
                for at in (0..region.extent_bytes).step_by(each as usize) {
                    parts.push(Part {
                        stamper: &stampers[usize::from(region.id)],
                        table,
                        extent,
                        offset_bytes: first + at,
                        bytes: each.min(region.extent_bytes - at),
                        page_bytes: table.map_or(PAGE_BYTES, Table::granule_bytes).max(PAGE_BYTES),
                        file: files[n].as_ref().unwrap_or(&member.file),
                        member: &member.name,
                    });
                }
            }
        }
        let (failed, written_bytes) = (AtomicBool::new(false), AtomicU64::new(0));
        let shared = Shared { stop, failed, written_bytes, sequence };
        let all_bytes = self.scattered_bytes();
        run(parts, &shared, all_bytes, progress)?;
        for (member, direct) in self.members.iter().zip(&files) {
            let durable = || {
                member.file.sync_data()?;
                if direct.is_none() {
                    // Otherwise later reads would come from the page cache.
                    fadvise(&member.file, 0, None, Advice::DontNeed)?;
                }
                Ok(())
            };
            durable().map_err(|error: io::Error| Error::os("cannot flush", &member.path, error))?;
        }
        let written_bytes = shared.written_bytes.load(Ordering::Relaxed);
        Ok(FillOutcome { written_bytes, complete: written_bytes == all_bytes })
    }
}

/// Writes the parts in parallel, and reports from this thread.
fn run(parts: Vec<Part>, shared: &Shared, all_bytes: u64, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    let (count, began) = (parts.len(), Instant::now());
    let parts = Mutex::new(parts.into_iter());
    let (done, ended) = channel::<Result<()>>();
    std::thread::scope(|scope| {
        let parts = &parts;
        let work = move || {
            // Nothing panics while the lock is held.
            let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some(part) = next() {
                let outcome = part.write(shared);
                shared.failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                // The receiver lives as long as the scope.
                let _ = done.send(outcome);
            }
        };
        threads::share(scope, (count, "write random pages"), work)?;
        let mut first_error = Ok(());
        loop {
            match ended.recv_timeout(PROGRESS_TIME) {
                Ok(outcome) => first_error = first_error.and(outcome),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return first_error,
            }
            let done_bytes = shared.written_bytes.load(Ordering::Relaxed);
            let rate_bytes_per_s = done_bytes as f64 / began.elapsed().as_secs_f64().max(1e-9);
            let what = "writing random pages".to_owned();
            progress(Progress { what, done_bytes, all_bytes, rate_bytes_per_s });
        }
    })
}

impl Part<'_> {
    fn write(&self, shared: &Shared) -> Result<()> {
        let pages = self.bytes / self.page_bytes;
        let mut random =
            rand::rngs::SmallRng::seed_from_u64(self.offset_bytes ^ u64::from(self.extent) << 48);
        let mut buffer = AlignedBuffer::new(self.page_bytes as usize);
        let ended = || shared.stop.load(Ordering::Relaxed) || shared.failed.load(Ordering::Relaxed);
        for _ in 0..TIMES * pages {
            if ended() {
                return Ok(());
            }
            let at = self.offset_bytes + random.random_range(0..pages) * self.page_bytes;
            let sequence = shared.sequence.fetch_add(1, Ordering::Relaxed);
            self.stamper.stamp(buffer.bytes_mut(), self.extent, at, sequence);
            self.table.inspect(|table| table.forget(self.extent, at, self.page_bytes));
            self.file
                .write_all_at(buffer.bytes(), at)
                .map_err(|error| Error::os("cannot write", self.member.as_ref(), error))?;
            self.table.inspect(|table| table.filled(self.extent, at, self.page_bytes, sequence));
            shared.written_bytes.fetch_add(self.page_bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}
