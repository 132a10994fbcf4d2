//! Shared by all integration tests.

// Each test binary compiles this module for itself and uses only a part of it.
#![allow(dead_code)]

pub mod devices;
#[cfg(feature = "rocksdb")]
pub mod kv_session;
pub mod machine;
pub mod operator;
pub mod program;
pub mod recorded;
pub mod skips;
pub mod stacks;
pub mod syscalls;
pub mod terminal;

use std::io::Write as _;
use std::process::Command;

pub use skips::skip;

/// This binary, to run one of its tests in a process of its own: `this_test(module_path!(), name)`.
pub fn this_test(module: &str, name: &str) -> Command {
    let (_, module) = module.split_once("::").expect("a test of a module");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::{name}"), "--nocapture"]);
    command
}

/// The reason for skipping what the gate leaves to the soak.
pub const LEFT_TO_SOAK: &str = "runs in the soak";

/// Whether this is the soak, which runs the whole matrices; the gate runs a part of them.
pub fn is_soak() -> bool {
    std::env::var_os("SOAK").is_some()
}

/// Prints and adds a remark to the soak's table at once, so that it is kept even if time runs out.
pub fn remark(text: &str) {
    println!("{text}");
    if let Some(remarks) = std::env::var_os("REMARKS") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(remarks).unwrap();
        writeln!(file, "{text}").unwrap();
    }
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
