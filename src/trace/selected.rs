//! A part of a trace: one drive's I/Os within a space.

use super::io::{Trace, TracedDrive, TracedIo};
use crate::error::{Error, Result};

/// The I/Os of a space.
#[derive(Debug)]
pub struct Selected {
    /// The drive.
    pub drive: TracedDrive,
    /// Its I/Os, with offsets from the start of the space.
    pub ios: Vec<TracedIo>,
    /// How many are outside of the space and belong to others.
    pub others: u64,
}

/// The I/Os of the named drive, or of the only one, within a space of the given start and size; without a
/// size, it has no end.
///
/// # Errors
/// `Input` if the trace has several drives and none was named, or if an I/O crosses the end of the space.
pub fn select(
    trace: &Trace,
    named: Option<TracedDrive>,
    start_bytes: u64,
    space_bytes: Option<u64>,
) -> Result<Selected> {
    let drive = drive_of(trace, named)?;
    let end = space_bytes.map_or(u64::MAX, |bytes| start_bytes.saturating_add(bytes));
    let (mut ios, mut others) = (Vec::new(), 0);
    for io in trace.ios.iter().filter(|io| io.drive == drive) {
        let is_placed = io.bytes > 0;
        if is_placed && (io.end_bytes() <= start_bytes || io.offset_bytes >= end) {
            others += 1;
            continue;
        }
        if is_placed && (io.offset_bytes < start_bytes || io.end_bytes() > end) {
            let (what, bytes, at) = (io.op.name(), io.bytes, io.offset_bytes);
            let what =
                format!("a {what} of {bytes} B at {at} crosses the space's end: from {start_bytes} to {end}");
            return Err(Error::input(what)
                .hint("check where the space begins (--start) and how large it is (--logical)"));
        }
        ios.push(TracedIo { offset_bytes: io.offset_bytes.saturating_sub(start_bytes), ..*io });
    }
    Ok(Selected { drive, ios, others })
}

fn drive_of(trace: &Trace, named: Option<TracedDrive>) -> Result<TracedDrive> {
    let drives = trace.drives();
    let names = || drives.iter().take(8).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match (named, drives.as_slice()) {
        (None, [drive]) => Ok(*drive),
        (None, _) => {
            let what = format!("the trace is of {} drives: {}", drives.len(), names());
            Err(Error::input(what).hint("choose one with --drive"))
        }
        (Some(drive), _) if drives.contains(&drive) => Ok(drive),
        (Some(drive), _) => Err(Error::input(format!("the trace has no drive {drive}; it has {}", names()))),
    }
}
