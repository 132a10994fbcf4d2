//! What all integration tests share.

// Each test binary compiles this module for itself and uses a part of it.
#![allow(dead_code)]

pub mod devices;
#[cfg(feature = "rocksdb")]
pub mod kv_session;
pub mod machine;
pub mod operator;
pub mod program;
pub mod recorded;
pub mod stacks;
pub mod syscalls;
pub mod terminal;

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;

/// Says that a test can't run here, and why; the test then returns.
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

/// This program, to run one of its tests in a process of its own: `this_test(module_path!(), name)`.
pub fn this_test(module: &str, name: &str) -> Command {
    let (_, module) = module.split_once("::").expect("a test of a module");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::{name}"), "--nocapture"]);
    command
}

/// The reason of what the gate leaves to the soak.
pub const LEFT_TO_SOAK: &str = "runs in the soak";

/// Whether this is the soak, which goes through all that there is; the gate takes a part of it.
pub fn is_soak() -> bool {
    std::env::var_os("SOAK").is_some()
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
