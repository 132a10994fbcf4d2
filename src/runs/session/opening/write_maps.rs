//! The write maps of data sets: in the state folder, one file each.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};
use crate::load::volume::Volume;
use crate::stack::journal::boot_id;
use crate::stack::paths::state_dir;
use crate::stack::state::StateFolder;
use crate::units::GIB;

/// The most that all maps may take together; the one that was not written for the longest time goes first.
const BYTES_MAX: u64 = GIB;
/// The unit of `st_blocks`, whatever the file system's blocks are.
const STAT_BLOCK_BYTES: u64 = 512;
/// Locked by whoever opens a map to keep it: a file in another folder, since all files in the maps' are maps.
const TURN: (&str, &str) = ("locks", "writes");

fn folder() -> PathBuf {
    state_dir().join("writes")
}

fn name_of(set: u64) -> String {
    format!("{set:016x}")
}

/// Keeps a map of writes to the volume from now on, with pages of these sizes in data and WAL. Without a map,
/// the run goes on, and verification reports that.
///
/// # Errors
/// In words, why it can't be kept.
pub(in crate::runs::session) fn keep(
    volume: &mut Volume,
    page_bytes: [u64; 2],
) -> std::result::Result<(), String> {
    let file = make(&name_of(volume.set)).and_then(|file| Ok((file, boot_id()?)));
    let (file, boot) = file.map_err(|error| error.one_line())?;
    volume.keep_map(file, page_bytes, &boot)
}

/// Has a volume that is read back compared with its map, if there is one.
///
/// # Errors
/// Refused if others could have written it.
pub fn compare(volume: &mut Volume) -> Result<()> {
    let folder = StateFolder::open(&folder())?;
    let file = folder.map(|folder| folder.file_to_read(&name_of(volume.set))).transpose()?;
    if let Some(file) = file.flatten() {
        volume.compare_with(file, &boot_id()?);
    }
    Ok(())
}

/// Removes the map of a data set that is gone; best effort.
pub fn forget(set: u64) {
    if let Ok(Some(folder)) = StateFolder::open(&folder()) {
        let _ = folder.remove(&name_of(set));
    }
}

/// The map of that name, newly made if there is none; locked against others who would keep it or make room,
/// unless another run keeps it already.
fn make(name: &str) -> Result<File> {
    // One at a time, so that nobody removes a map that another run has opened but not yet locked.
    let _turn = StateFolder::make(&state_dir().join(TURN.0))?.lock(TURN.1)?;
    let folder = StateFolder::make(&folder())?;
    if folder.file(name)?.is_none() {
        make_room(&folder, BYTES_MAX)?;
        folder.write(name, &[])?;
    }
    let file = folder.file(name)?;
    let file = file.ok_or_else(|| Error::failed(format!("{name} was removed meanwhile")))?;
    // The lock belongs to the open file, so whoever keeps the map holds it from here on.
    let _ = is_free(&file);
    Ok(file)
}

/// Whether no run keeps this map, or compares with it; if so, it is locked until the file is closed.
fn is_free(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Removes the oldest maps to make room for another, but none that a run keeps.
fn make_room(folder: &StateFolder, bytes_max: u64) -> Result<()> {
    let mut maps: Vec<(SystemTime, u64, String)> = Vec::new();
    for name in folder.names()? {
        let Some(file) = folder.file(&name)? else { continue };
        if let Ok(found) = file.metadata() {
            // Deallocated parts take no room.
            let bytes = found.blocks() * STAT_BLOCK_BYTES;
            maps.push((found.modified().unwrap_or(SystemTime::UNIX_EPOCH), bytes, name));
        }
    }
    maps.sort();
    let mut bytes: u64 = maps.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, length, name) in &maps {
        if bytes <= bytes_max {
            break;
        }
        let Some(file) = folder.file(name)? else { continue };
        if is_free(&file) {
            folder.remove(name)?;
            bytes -= length;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use super::*;
    use crate::units::MIB;

    #[test]
    fn the_oldest_maps_make_room_but_not_those_that_a_run_keeps() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateFolder::make(&dir.path().join("state/writes")).unwrap();
        let made = |name: &str, age_s: u64| {
            folder.write(name, &[]).unwrap();
            let mut file = folder.file(name).unwrap().unwrap();
            file.write_all(&vec![1; MIB as usize]).unwrap();
            file.sync_all().unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
            file
        };
        let [kept, oldest, middle, newest] = [("kept", 40), ("oldest", 30), ("middle", 20), ("newest", 10)]
            .map(|(name, age_s)| made(name, age_s));
        assert!(is_free(&kept), "a run keeps it from here on");
        drop([oldest, middle, newest]);
        // A map with most of its room deallocated is long, but takes little.
        let hollow = made("hollow", 50);
        hollow.set_len(4 * GIB).unwrap();
        hollow.set_modified(SystemTime::now()).unwrap();
        drop(hollow);
        make_room(&folder, 6 * MIB).unwrap();
        assert_eq!(folder.names().unwrap().len(), 5);
        make_room(&folder, 4 * MIB + MIB / 2).unwrap();
        assert_eq!(folder.names().unwrap(), ["hollow", "kept", "middle", "newest"]);
        make_room(&folder, 0).unwrap();
        assert_eq!(folder.names().unwrap(), ["kept"]);
        drop(kept);
        make_room(&folder, 0).unwrap();
        assert!(folder.names().unwrap().is_empty());
    }
}
