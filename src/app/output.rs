//! Standard output and standard error.

use std::io::Write;

use serde::Serialize;

use crate::error::{Error, Result, describe};
use crate::json;
use crate::printable;

/// Prints a line to standard error. If that is closed, or its terminal gone, the error is ignored: what is
/// running must still be completed.
pub fn eprint_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable::lines(line));
}

/// Prints our own text, which may be styled, to standard output; a closed pipe (`| head`) is no error.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::failed(format!("cannot write to standard output: {}", describe(&error))))
        }
        _ => Ok(()),
    }
}

/// Prints text to standard output.
pub fn print(text: &str) -> Result<()> {
    print_with(|out| out.write_all(printable::lines(text).as_bytes()))
}

/// Prints a value as JSON to standard output.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let text = json::lines(value)?;
    print(&printable::json(&String::from_utf8_lossy(&text)))
}
