//! Which parts of a device may have been written, as far as the kernel knows: holes in a loop device's file
//! read as zeros.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::host::Device;
use crate::regular_file;
use crate::stack::devices::{Inode, backing_inode};
use crate::stack::runner::Runner;

/// Beyond this many ranges we stop asking, and read the device like any other.
const RANGES_MAX: usize = 1 << 16;

/// The ranges of a device that may hold anything but zeros, in order and disjoint: the whole device unless
/// more is known. Each begins at a multiple of `unit` bytes, and ends at one or with the device.
pub(super) fn ranges(file: &File, device: &Device, unit: u64) -> Vec<Range<u64>> {
    let size = device.size_bytes;
    let known = of_loop(file, device).unwrap_or_else(|| std::iter::once(0..size).collect());
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for range in known {
        let range = range.start / unit * unit..range.end.div_ceil(unit).saturating_mul(unit).min(size);
        match ranges.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => ranges.push(range),
        }
    }
    ranges.retain(|range| !range.is_empty());
    ranges
}

/// The parts of a loop device's file that are not holes, as ranges of the device.
fn of_loop(file: &File, device: &Device) -> Option<Vec<Range<u64>>> {
    let dir = Path::new("/sys/block").join(&device.name).join("loop");
    let text = |name: &str| fs::read_to_string(dir.join(name)).ok();
    let path = text("backing_file")?;
    let backing = regular_file::open(Path::new(path.trim_end_matches('\n'))).ok()?;
    let found = backing.metadata().ok()?;
    // Another file may have that name by now.
    let inode = Inode { device: found.dev(), number: found.ino() };
    if backing_inode(&Runner::default(), &device.path).ok()? != Some(inode) {
        return None;
    }
    let offset: u64 = text("offset")?.trim().parse().ok()?;
    // Data in the device's page cache is not in the file yet.
    file.sync_all().and_then(|()| backing.sync_all()).ok()?;
    data_in(&backing, offset..offset.checked_add(device.size_bytes)?)
}

/// The parts of a file's range that are not holes, counted from the start of the range.
fn data_in(file: &File, within: Range<u64>) -> Option<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let mut at = within.start;
    while at < within.end && ranges.len() < RANGES_MAX {
        let start = match seek(file, SeekFrom::Data(at)) {
            // There is no more data.
            Err(Errno::NXIO) => return Some(ranges),
            start => start.ok()?.min(within.end),
        };
        at = seek(file, SeekFrom::Hole(start)).ok()?.min(within.end).max(start);
        if start < at {
            ranges.push(start - within.start..at - within.start);
        }
    }
    (at >= within.end).then_some(ranges)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::units::MIB;

    #[test]
    fn holes_of_a_file_are_no_data() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(64 * MIB).unwrap();
        assert_eq!(data_in(&file, 0..64 * MIB), Some(Vec::new()));
        file.write_all_at(&[1; 100], 9 * MIB).unwrap();
        file.write_all_at(&[1; 100], 40 * MIB).unwrap();
        let found = data_in(&file, MIB..64 * MIB).unwrap();
        for at in [8 * MIB, 39 * MIB + 99] {
            assert!(found.iter().any(|range| range.contains(&at)), "{found:?}");
        }
        let bytes: u64 = found.iter().map(|range| range.end - range.start).sum();
        assert!(bytes < 4 * MIB, "{found:?}");
    }
}
