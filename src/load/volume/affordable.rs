//! How large the demo's files can be, given the free space of their file system and its speed.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::files::{OurFile, WAL_NAME, data_path, free_bytes, nearest_folder, open_ours};
use super::layout::{files_bytes, floor_mib};
use crate::error::{Error, Result};
use crate::marks::{DATABASE_NAME, PROGRAM_NAME};
use crate::printable::Shown as _;
use crate::units::{MIB, approx_size, format_size};

// The demo leaves three times as much free as it takes.
const ROOM_FACTOR: u64 = 4;
/// Also the step of sizes.
const LEAST_BYTES: u64 = 16 * MIB;
/// A first run should not wait longer than this for its files.
const FILL_S: f64 = 8.0;
/// What is written to measure the drive's speed, and for how long at most.
const TRIAL_BYTES: u64 = 64 * MIB;
const TRIAL: Duration = Duration::from_secs(1);

/// The largest size up to `wanted_bytes` for which the file system has room for four times all `count` files and
/// their WAL, and which it fills within seconds; with a sentence if that is smaller than wanted.
///
/// Space that our own files take there counts as free. A complete set is kept while it fits, so that a change
/// in free space or speed does not cause a refill.
pub fn affordable_size(dir: &Path, count: u64, wanted_bytes: u64) -> Result<(u64, Option<String>)> {
    let Room { ours, free, size: room } = Room::of(dir, count, wanted_bytes)?;
    let complete = ours.len() as u64 == count + 1;
    let there = ours.first().map(|file| floor_mib(file.size_bytes)).filter(|_| complete);
    let (size, reason) = match there.filter(|there| (LEAST_BYTES..=room).contains(there)) {
        Some(there) => (there, "as an earlier run made them that size".to_owned()),
        None => match fast_enough(dir, count, room) {
            Some((size, reason)) => (size, reason),
            None => (room, short_of(free)),
        },
    };
    Ok((size, smaller(size, wanted_bytes, &reason)))
}

/// The same for a size that the user chose, however long it takes to fill: it shrinks only for lack of space.
///
/// # Errors
/// Like [`affordable_size`].
pub fn chosen_size(dir: &Path, count: u64, wanted_bytes: u64) -> Result<(u64, Option<String>)> {
    let Room { free, size, .. } = Room::of(dir, count, wanted_bytes)?;
    Ok((size, smaller(size, wanted_bytes, &short_of(free))))
}

/// Bytes that our files in that folder take: `count` data files, the WAL, and what RocksDB or a program made.
pub fn our_bytes(dir: &Path, count: u64) -> u64 {
    let made: u64 = [DATABASE_NAME, PROGRAM_NAME].iter().map(|name| bytes_below(&dir.join(name))).sum();
    allocated(&ours(dir, count)) + made
}

/// Bytes below a folder, without following links; 0 if it does not exist.
fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let of_entry = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(of_entry).sum()
}

fn ours(dir: &Path, count: u64) -> Vec<OurFile> {
    let paths = (0..count).map(|index| data_path(dir, index)).chain([dir.join(WAL_NAME)]);
    paths.filter_map(|path| open_ours(&path, false).ok().flatten()).collect()
}

fn allocated(files: &[OurFile]) -> u64 {
    files.iter().map(|file| file.allocated_bytes).sum()
}

fn short_of(free: u64) -> String {
    format!("as the file system has {} free", approx_size(free))
}

fn smaller(size: u64, wanted_bytes: u64, reason: &str) -> Option<String> {
    let text = || {
        let (size, wanted) = (format_size(size), format_size(wanted_bytes));
        format!("the files are {size} each instead of {wanted}, {reason}")
    };
    (size < wanted_bytes).then(text)
}

/// What a folder has room for.
struct Room {
    /// Our own files there.
    ours: Vec<OurFile>,
    /// Free bytes, including those that our files take.
    free: u64,
    /// The largest size that the files can have.
    size: u64,
}

impl Room {
    fn of(dir: &Path, count: u64, wanted_bytes: u64) -> Result<Self> {
        let ours = ours(dir, count);
        let free = free_bytes(dir)? + allocated(&ours);
        let size = largest(count, wanted_bytes, free / ROOM_FACTOR);
        if size < LEAST_BYTES.min(wanted_bytes) {
            return Err(Error::failed(format!(
                "{} has {} free, which is too little even for the smallest demo",
                dir.shown(),
                approx_size(free)
            ))
            .hint("free some space, or choose another folder with --set target.files.dir=…"));
        }
        Ok(Self { ours, free, size })
    }
}

/// The largest size up to `wanted_bytes` at which all files take at most `total_bytes`; 0 if there is none.
fn largest(count: u64, wanted_bytes: u64, total_bytes: u64) -> u64 {
    let fits = |size: &u64| files_bytes(count, *size) <= total_bytes;
    if fits(&wanted_bytes) {
        return wanted_bytes;
    }
    // The WAL takes its share too.
    let steps = (total_bytes / count.max(1)).min(wanted_bytes) / LEAST_BYTES;
    let size = |steps: u64| steps * LEAST_BYTES;
    let mut steps = steps;
    while steps > 0 && !fits(&size(steps)) {
        steps -= (steps / 64).max(1);
    }
    size(steps)
}

/// A size below `room_bytes` that this drive fills in time, and the reason; `None` if there is no need.
fn fast_enough(dir: &Path, count: u64, room_bytes: u64) -> Option<(u64, String)> {
    if room_bytes <= LEAST_BYTES {
        return None;
    }
    let bytes_per_s = trial(nearest_folder(dir)).ok()?;
    let size = largest(count, room_bytes, (bytes_per_s * FILL_S) as u64).max(LEAST_BYTES);
    let reason = || format!("as this drive writes {:.0} MB/s", bytes_per_s / 1e6);
    (size < room_bytes).then(|| (size, reason()))
}

/// The drive's sequential write speed, including the flush, in bytes per second.
fn trial(dir: &Path) -> io::Result<f64> {
    let mut file: File = tempfile::tempfile_in(dir)?;
    // Incompressible.
    let mut state = 1_u64;
    let chunk: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .take(MIB as usize / 8)
    .flatten()
    .collect();
    let (started, mut written) = (Instant::now(), 0);
    while written < TRIAL_BYTES && started.elapsed() < TRIAL {
        file.write_all(&chunk)?;
        written += MIB;
    }
    file.sync_data()?;
    Ok(written as f64 / started.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_step_down_until_all_files_fit() {
        assert_eq!(largest(4, 1024 * MIB, 1 << 50), 1024 * MIB);
        let size = largest(4, 1024 * MIB, 1024 * MIB);
        assert!(size.is_multiple_of(LEAST_BYTES) && files_bytes(4, size) <= 1024 * MIB, "{size}");
        assert!(files_bytes(4, size + 2 * LEAST_BYTES) > 1024 * MIB, "{size}");
        assert_eq!(largest(4, 1024 * MIB, MIB), 0);
    }

    #[test]
    fn a_chosen_size_is_smaller_only_for_lack_of_room() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        // More than any drive fills within seconds, but not more than it has.
        let (free, count) = (free_bytes(dir.path()).unwrap(), 1);
        let half = floor_mib(free / ROOM_FACTOR / 2);
        assert_eq!(chosen_size(dir.path(), count, half).unwrap(), (half, None));
        let (size, note) = chosen_size(dir.path(), count, 1 << 50).unwrap();
        assert!(size < 1 << 50 && note.unwrap().contains("as the file system has"), "{size}");
    }

    #[test]
    fn what_rocksdb_and_programs_made_counts_and_nothing_behind_a_link() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let write = |path: &str, mib: usize| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![1; mib << 20]).unwrap();
        };
        write("rocksdb/000007.sst", 1);
        write("stacktune-program/pg/base/1", 2);
        write("elsewhere/1", 4);
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join("rocksdb/link")).unwrap();
        let mib = our_bytes(dir.path(), 4) / MIB;
        assert_eq!(mib, 3);
    }

    #[test]
    fn the_disk_is_measured_within_a_second_or_so() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        assert!(trial(dir.path()).unwrap() > 0.0);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
