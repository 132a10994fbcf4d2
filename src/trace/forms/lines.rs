//! Reads text line by line.

use std::io::{BufRead, Read as _};

use crate::error::describe;
use crate::trace::events::Wrong;

/// No line of a trace is this long.
pub const BYTES_MAX: usize = 4096;

/// Passes on each line. An error is reported with the line's number.
pub fn each(reader: &mut dyn BufRead, read: &mut dyn FnMut(&str) -> Result<(), Wrong>) -> Result<(), Wrong> {
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let limited = &mut (&mut *reader).take(BYTES_MAX as u64 + 1);
        let bytes = limited.read_until(b'\n', &mut line);
        match bytes.map_err(|error| format!("it cannot be read: {}", describe(&error)))? {
            0 => break,
            bytes if bytes > BYTES_MAX => return Err(format!("line {number} has over {BYTES_MAX} bytes")),
            _ => {}
        }
        let text = std::str::from_utf8(&line).map_err(|_| format!("line {number} is not text"))?;
        read(text.trim_end()).map_err(|what| format!("line {number}: {what}"))?;
    }
    Ok(())
}

/// Nanoseconds, from seconds in the form `12.000000345`.
pub fn seconds_as_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.len() as u32;
    let fraction: u64 = fraction.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction * 10_u64.pow(9 - digits))
}
