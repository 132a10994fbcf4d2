//! Where the write maps of data sets are: in the state folder, a file each.

use std::fs::File;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::error::Result;
use crate::load::volume::Volume;
use crate::stack::journal::boot_id;
use crate::stack::paths::state_dir;
use crate::stack::state::StateFolder;
use crate::units::GIB;

/// What all maps may take together; what was not written for the longest goes first.
const BYTES_MAX: u64 = GIB;

fn folder() -> PathBuf {
    state_dir().join("writes")
}

fn name_of(set: u64) -> String {
    format!("{set:016x}")
}

/// Keeps a map of what is written to the volume from now on, in pages of these sizes to data and WAL. Without
/// one, the run goes on, and verification says so.
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

/// Lets a volume that is read back be compared with its map, where there is one.
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

fn make(name: &str) -> Result<File> {
    let folder = StateFolder::make(&folder())?;
    if folder.file(name)?.is_none() {
        make_room(&folder)?;
        folder.write(name, &[])?;
    }
    let file = folder.file(name)?;
    file.ok_or_else(|| crate::error::Error::failed(format!("{name} was removed meanwhile")))
}

/// Removes the oldest maps, for another.
fn make_room(folder: &StateFolder) -> Result<()> {
    let mut maps: Vec<(SystemTime, u64, String)> = Vec::new();
    for name in folder.names()? {
        let Some(file) = folder.file(&name)? else { continue };
        if let Ok(found) = file.metadata() {
            maps.push((found.modified().unwrap_or(SystemTime::UNIX_EPOCH), found.len(), name));
        }
    }
    maps.sort();
    let mut bytes: u64 = maps.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, length, name) in &maps {
        if bytes <= BYTES_MAX {
            break;
        }
        folder.remove(name)?;
        bytes -= length;
    }
    Ok(())
}
