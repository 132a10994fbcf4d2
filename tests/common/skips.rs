//! The list of skips. The library's unit tests include this file, too.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports that a test can't run here, and why; the test then ends.
///
/// The line also goes to the file that `STACKTUNE_SKIPS` names, because cargo swallows what a
/// passing test prints. One write in append mode, so that parallel tests don't mix their lines.
pub fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {}\n", reason.replace('\n', " "));
    eprint!("{line}");
    if let Some(path) = std::env::var_os("STACKTUNE_SKIPS") {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("cannot list the skipped test in {}: {error}", path.display()));
    }
}
