//! Brings a drive into the state it has after long use: written once sequentially, then pages at random, so
//! that it has no erased blocks left except its spare area. If a sequential fill follows, the random pages
//! are written after that, through the target.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::{Rng as _, RngExt as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use crate::direct::AlignedBuffer;
use crate::error::{Error, Result};
use crate::json;
use crate::stack::devices::Drive;
use crate::stack::guard::Claim;
use crate::stack::journal::boot_id;
use crate::stack::state::StateFolder;
use crate::stack::supervise::Gauge;
use crate::threads;
use crate::units::{KIB, MIB};

/// Sequential: large writes, few at a time, since more would gain nothing.
const ORDERED: Phase = Phase { write_bytes: MIB, threads: 4 };
/// Random: pages, with enough in flight to keep the flash busy.
const RANDOM: Phase = Phase { write_bytes: 4 * KIB, threads: 32 };
const LOOK: Duration = Duration::from_millis(50);
/// Every page of this size gets different content.
const PAGE_BYTES: usize = 4096;

struct Phase {
    write_bytes: u64,
    threads: u64,
}

/// How far preconditioning has got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreconditionProgress {
    /// Bytes written sequentially.
    pub(super) ordered_bytes: u64,
    /// Bytes written at random.
    pub(super) random_bytes: u64,
}

/// Writes the rest of the first `bytes` of the device, and of `random_bytes` of random pages there,
/// continuing from `progress`. Returns how far it got, which is all of it unless the gauge asked to stop.
pub(super) fn run(
    claim: &Claim,
    (bytes, random_bytes): (u64, u64),
    progress: PreconditionProgress,
    gauge: &Gauge,
) -> Result<PreconditionProgress> {
    let file = claim.reopen(libc::O_DIRECT)?;
    let all = bytes + random_bytes;
    let mut now = progress;
    let mut at = |done: u64| gauge.set(done, all);
    let path = &claim.device().path;
    let cannot = |error| Error::os("cannot write", path, error);
    let in_order = |offset_bytes: u64, _: &mut rand::rngs::SmallRng| offset_bytes;
    // Large sequential writes are much faster than what follows.
    gauge.uneven(true);
    now.ordered_bytes =
        ORDERED.run(&file, bytes, now.ordered_bytes, gauge, &mut at, &in_order).map_err(cannot)?;
    gauge.uneven(false);
    if now.ordered_bytes == bytes {
        let pages = (bytes / RANDOM.write_bytes).max(1);
        let at_random =
            |_, random: &mut rand::rngs::SmallRng| random.random_range(0..pages) * RANDOM.write_bytes;
        let mut at = |done: u64| gauge.set(bytes + done, all);
        let target = random_bytes / RANDOM.write_bytes * RANDOM.write_bytes;
        now.random_bytes =
            RANDOM.run(&file, target, now.random_bytes, gauge, &mut at, &at_random).map_err(cannot)?;
    }
    file.sync_all().map_err(|error| Error::os("cannot flush", path, error))?;
    Ok(now)
}

impl Phase {
    /// Writes from `done` until `bytes` are written; returns how many are.
    fn run(
        &self,
        file: &File,
        bytes: u64,
        done: u64,
        gauge: &Gauge,
        at: &mut dyn FnMut(u64),
        place: &(dyn Fn(u64, &mut rand::rngs::SmallRng) -> u64 + Sync),
    ) -> std::io::Result<u64> {
        let next = AtomicU64::new(done / self.write_bytes);
        let ended = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let failed: Mutex<Option<std::io::Error>> = Mutex::new(None);
        let work = || {
            let outcome = self.write_some(file, bytes, &next, &stop, place);
            if let Err(error) = outcome {
                stop.store(true, Ordering::Relaxed);
                failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
            }
            ended.fetch_add(1, Ordering::Release);
        };
        let written = || next.load(Ordering::Relaxed).saturating_mul(self.write_bytes).min(bytes);
        std::thread::scope(|scope| {
            let started = threads::share(scope, (self.threads as usize, "precondition the drive"), work)
                .map_err(|error| std::io::Error::other(error.one_line()))?;
            while ended.load(Ordering::Acquire) < started as u64 {
                at(written());
                stop.fetch_or(gauge.stopped(), Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
            Ok::<_, std::io::Error>(())
        })?;
        at(written());
        match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(written()),
        }
    }

    /// One thread's share. Every page number that is taken gets written, so the next number is the progress.
    fn write_some(
        &self,
        file: &File,
        bytes: u64,
        next: &AtomicU64,
        stop: &AtomicBool,
        place: &(dyn Fn(u64, &mut rand::rngs::SmallRng) -> u64 + Sync),
    ) -> std::io::Result<()> {
        let mut random = rand::rngs::SmallRng::seed_from_u64(rand::rng().next_u64());
        let mut memory = AlignedBuffer::new(self.write_bytes as usize);
        let buffer = memory.bytes_mut();
        random.fill_bytes(buffer);
        while !stop.load(Ordering::Relaxed) {
            let done = next.fetch_add(1, Ordering::Relaxed) * self.write_bytes;
            if done >= bytes {
                // A number past the end must not count as written.
                next.fetch_sub(1, Ordering::Relaxed);
                break;
            }
            // Every page must differ, or a drive that compresses or deduplicates would keep some blocks free.
            for page in buffer.chunks_mut(PAGE_BYTES) {
                let stamp = random.next_u64().to_ne_bytes();
                page[..stamp.len()].copy_from_slice(&stamp);
            }
            let length = self.write_bytes.min(bytes - done) as usize;
            file.write_all_at(&buffer[..length], place(done, &mut random))?;
        }
        Ok(())
    }
}

/// How far preconditioning of a drive got, and evidence that nothing was written to it since.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    drive: Drive,
    boot: String,
    traffic: Traffic,
    progress: PreconditionProgress,
}

/// The block layer's counters for this attachment of the drive.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Traffic {
    /// Changes each time a drive is plugged in.
    sequence: String,
    written_sectors: u64,
    discarded_sectors: u64,
}

impl Traffic {
    /// None if the kernel keeps no such counters.
    fn now(drive: &Drive) -> Option<Self> {
        let dir = Path::new("/sys/block").join(&drive.name);
        let text = |name: &str| fs::read_to_string(dir.join(name)).ok();
        let stat = text("stat")?;
        let fields: Vec<u64> = stat.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        (text("queue/iostats")?.trim() == "1").then_some(())?;
        Some(Self {
            sequence: text("diskseq")?.trim().to_owned(),
            written_sectors: *fields.get(6)?,
            discarded_sectors: *fields.get(13)?,
        })
    }
}

/// The folder and the name of a drive's note.
fn file_of(state_dir: &Path, drive: &Drive) -> (PathBuf, String) {
    let key = drive.serial.as_deref().unwrap_or("");
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = format!("{}-{key}", drive.name).chars().map(plain).collect();
    (state_dir.join("preconditioned"), format!("{name}.json"))
}

/// How far the drive has got: not at all, unless preconditioning stopped since the last boot and nothing was
/// written to it since.
pub(super) fn kept(state_dir: &Path, drive: &Drive) -> PreconditionProgress {
    let (dir, name) = file_of(state_dir, drive);
    let read = || StateFolder::open(&dir).ok()??.read(&name).ok()?;
    let valid = |kept: &Kept| {
        kept.drive == *drive
            && boot_id().is_ok_and(|boot| boot == kept.boot)
            && Traffic::now(drive).is_some_and(|now| now == kept.traffic)
    };
    let kept = json::read::<Kept>(&read().unwrap_or_default()).ok().filter(valid);
    kept.map_or_else(PreconditionProgress::default, |kept| kept.progress)
}

/// Records how far the drive has got. If that fails, it only costs time later.
pub(super) fn keep(state_dir: &Path, drive: &Drive, progress: PreconditionProgress) {
    let (dir, name) = file_of(state_dir, drive);
    let Ok(folder) = StateFolder::make(&dir) else { return };
    let write = || {
        let kept =
            Kept { drive: drive.clone(), boot: boot_id().ok()?, traffic: Traffic::now(drive)?, progress };
        folder.write(&name, &json::line(&kept).ok()?).ok()
    };
    if write().is_none() {
        let _ = folder.remove(&name);
    }
}

/// Forgets the progress: the stack that needed it is built and about to be written to.
pub(super) fn forget(state_dir: &Path, drive: &Drive) {
    let (dir, name) = file_of(state_dir, drive);
    let Ok(Some(folder)) = StateFolder::open(&dir) else { return };
    if folder.remove(&name).is_ok() {
        // Removed along with its last file.
        let _ = fs::remove_dir(&dir);
    }
}
