//! What a program prints in its phases: its last lines, and from a recording's beginning on, all of them in
//! a file that is written as they come. After a kill, too, it says what the program said.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result, describe};

/// The last lines that are kept.
const LINES_MAX: usize = 1000;
/// The longest that the file becomes.
const FILE_BYTES_MAX: usize = 64 << 20;

/// What a program prints.
#[derive(Debug, Default)]
pub(super) struct ProgramLog {
    last: Mutex<Last>,
    // Apart, so that a slow disk delays nobody who looks at the last lines.
    file: Mutex<Kept>,
}

/// The last lines, and how many there were before them.
#[derive(Debug, Default)]
struct Last {
    lines: VecDeque<(&'static str, String)>,
    gone: u64,
}

#[derive(Debug, Default)]
struct Kept {
    file: Option<Growing>,
    /// Why the file could not be written.
    failed: Option<String>,
}

/// A file in which each line stands below the name of its phase.
#[derive(Debug)]
struct Growing {
    file: File,
    /// The first line that is not in it yet, counted from the program's first.
    from: u64,
    left_bytes: usize,
    is_full: bool,
    phase: &'static str,
}

impl Growing {
    fn line(&mut self, phase: &'static str, line: &str) -> std::io::Result<()> {
        if self.is_full {
            return Ok(());
        }
        let heading = if phase == self.phase { String::new() } else { format!("[{phase}]\n") };
        let text = format!("{heading}{line}\n");
        self.phase = phase;
        let Some(left_bytes) = self.left_bytes.checked_sub(text.len()) else {
            self.is_full = true;
            return self.file.write_all(b"[stacktune: what was printed after this is not kept]\n");
        };
        self.left_bytes = left_bytes;
        self.file.write_all(text.as_bytes())
    }
}

impl Kept {
    fn write(&mut self, phase: &'static str, line: &str) {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.line(phase, line));
        if let Err(error) = written {
            self.file = None;
            self.failed = Some(format!("cannot write what the program prints: {}", describe(&error)));
        }
    }
}

impl ProgramLog {
    fn last_lines(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line of a phase.
    pub fn line(&self, phase: &'static str, line: &str) {
        let mut last = self.last_lines();
        let number = last.gone + last.lines.len() as u64;
        if last.lines.len() == LINES_MAX {
            last.lines.pop_front();
            last.gone += 1;
        }
        last.lines.push_back((phase, line.to_owned()));
        drop(last);
        let mut kept = self.kept();
        if kept.file.as_ref().is_some_and(|file| number >= file.from) {
            kept.write(phase, line);
        }
    }

    /// Writes the last lines into a file, and from now on every line.
    pub fn keep_in(&self, file: File) {
        let mut kept = self.kept();
        let last = self.last_lines();
        let (from, lines) = (last.gone + last.lines.len() as u64, last.lines.clone());
        drop(last);
        kept.file = Some(Growing { file, from, left_bytes: FILE_BYTES_MAX, is_full: false, phase: "" });
        lines.iter().for_each(|(phase, line)| kept.write(phase, line));
    }

    /// Writes no more.
    ///
    /// # Errors
    /// If lines could not be written.
    pub fn end(&self) -> Result<()> {
        let mut kept = self.kept();
        kept.file = None;
        kept.failed.take().map_or(Ok(()), |why| Err(Error::failed(why)))
    }

    /// The last lines, with their phases, `count` of them at most.
    pub fn last(&self, count: usize) -> Vec<(&'static str, String)> {
        let last = self.last_lines();
        last.lines.range(last.lines.len().saturating_sub(count)..).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_lines_before_and_after_it_was_made_below_their_phases() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program.log");
        let log = ProgramLog::default();
        log.line("setup", "made");
        log.line("run", "tps 1");
        log.keep_in(File::create(&path).unwrap());
        log.line("run", "tps 2");
        log.line("start", "checkpoint");
        // It is there before the end.
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "[setup]\nmade\n[run]\ntps 1\ntps 2\n[start]\ncheckpoint\n");
        log.end().unwrap();
        log.line("run", "later");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let last = log.last(2);
        assert_eq!(last, [("start", "checkpoint".to_owned()), ("run", "later".to_owned())]);
        assert_eq!(log.last(9).len(), 5);
    }

    #[test]
    fn what_is_too_much_or_cannot_be_written_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program.log");
        let log = ProgramLog::default();
        log.keep_in(File::create(&path).unwrap());
        let long = "x".repeat(1 << 20);
        for _ in 0..100 {
            log.line("run", &long);
        }
        assert!(log.end().is_ok());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.len() <= FILE_BYTES_MAX + 100 && text.ends_with("is not kept]\n"), "{}", text.len());
        log.keep_in(File::create("/dev/full").unwrap());
        let error = log.end().unwrap_err();
        assert!(error.what.contains("cannot write what the program prints: "), "{}", error.what);
    }
}
