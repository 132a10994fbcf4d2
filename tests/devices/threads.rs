//! A host that allows no more threads: an error that says so, and nothing half-built.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::common::devices::Loops;
use crate::common::program::{Home, MODEST, Outcome};
use crate::common::{is_root, is_soak, skip};

const NOBODY: u32 = 65534;

#[track_caller]
fn says_so(outcome: &Outcome) {
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    assert!(
        ["cannot start a", "ECANCELED"].iter().any(|why| outcome.stderr.contains(why))
            && outcome.stderr.contains("ulimit -u"),
        "what is missing, and what to do: {outcome:?}"
    );
}

#[test]
fn without_threads_a_stack_is_undone() {
    let Some(_loops) = Loops::take("without_threads_a_stack_is_undone", 2) else { return };
    let home = Home::new();
    let sets = ["target.files.count=1", "target.files.size=96MiB", "stack.filesystem=ext4"];
    let mut command = home.record("out", "1s", &[&MODEST[..], &sets].concat());
    // A stack for which no address space is large enough: no thread can be started.
    command.env("XDG_STATE_HOME", home.path("state")).env("RUST_MIN_STACK", (1_u64 << 48).to_string());
    says_so(&Outcome::of(&command.output().unwrap()));
    let state = home.path("state/stacktune");
    for dir in [state.join("journal"), state.join("mnt"), home.target()] {
        assert_eq!(fs::read_dir(&dir).map_or(0, Iterator::count), 0, "{}", dir.display());
    }
}

#[test]
fn wherever_threads_run_out_an_error_says_so() {
    let test = "wherever_threads_run_out_an_error_says_so";
    if !is_root() {
        return skip(test, "only root runs programs as a user without other processes");
    }
    // The user can't see the build's folder.
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("stacktune");
    fs::copy(env!("CARGO_BIN_EXE_stacktune"), &program).unwrap();
    for path in [dir.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut failed = 0;
    for limit in 1..if is_soak() { 40 } else { 12 } {
        let mut command = Command::new("/usr/bin/prlimit");
        command.arg(format!("--nproc={limit}")).arg(&program);
        command.args(["record", "demo", "--for", "1s", "--out"]).arg(home.join(format!("out-{limit}")));
        let target = format!("target.files.dir={}", home.join("target").display());
        let sets = [target.as_str(), "target.files.size=16MiB", "target.files.count=2"];
        let sets = sets.iter().chain(&MODEST).chain(&["io.registered_buffers=false"]);
        command.args(sets.map(|set| format!("--set={set}")));
        command.env_clear().env("HOME", &home).uid(NOBODY).gid(NOBODY).current_dir("/");
        let outcome = Outcome::of(&command.stdin(Stdio::null()).output().unwrap());
        if outcome.status != Some(0) {
            failed += 1;
            says_so(&outcome);
        }
    }
    assert!(failed >= 4, "only {failed} limits were too low");
}
