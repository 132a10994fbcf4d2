//! A host that allows no more threads: a clear error, and nothing half-built.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::devices::Loops;
use crate::common::program::{Home, MODEST, Outcome};
use crate::common::{is_root, is_soak, skip};

const NOBODY: u32 = 65534;

#[track_caller]
fn says_so(outcome: &Outcome) {
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    assert!(
        ["cannot start a", "cannot run /", "ECANCELED"].iter().any(|why| outcome.stderr.contains(why))
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
    // A thread stack too large for any address space: no thread can be started.
    command.env("XDG_STATE_HOME", home.path("state")).env("RUST_MIN_STACK", (1_u64 << 48).to_string());
    says_so(&Outcome::of(&command.output().unwrap()));
    let state = home.path("state/stacktune");
    for dir in [state.join("journal"), state.join("mnt"), home.target()] {
        assert_eq!(fs::read_dir(&dir).map_or(0, Iterator::count), 0, "{}", dir.display());
    }
}

/// A cgroup that limits the number of its processes and threads.
struct Pids(PathBuf);

impl Pids {
    /// None if there is no such controller, or it can't be used.
    fn new(name: &str) -> Option<Self> {
        // Version 1 has a separate hierarchy; version 2 enables the controller for children.
        let parents = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
        parents.into_iter().find_map(|parent| {
            let dir = Path::new(parent).join(format!("{name}-{}", std::process::id()));
            fs::create_dir(&dir).ok()?;
            let group = Self(dir);
            group.0.join("pids.max").exists().then_some(group)
        })
    }

    /// Runs a command in it, with at most that many processes and threads.
    fn run(&self, max: u64, command: &Command) -> Outcome {
        fs::write(self.0.join("pids.max"), max.to_string()).unwrap();
        let mut within = Command::new("/bin/sh");
        within.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.0);
        within.arg(command.get_program()).args(command.get_args());
        within.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Outcome::of(&within.stdin(Stdio::null()).output().unwrap())
    }
}

impl Drop for Pids {
    fn drop(&mut self) {
        // The kernel's io_uring threads may end a moment after their process.
        (0..100).take_while(|_| fs::remove_dir(&self.0).is_err()).for_each(|_| {
            std::thread::sleep(Duration::from_millis(20));
        });
    }
}

#[test]
fn a_cgroups_limit_of_threads_is_an_error_that_says_so_and_a_stack_is_undone() {
    let test = "a_cgroups_limit_of_threads_is_an_error_that_says_so_and_a_stack_is_undone";
    if !is_root() {
        return skip(test, "only root makes a cgroup");
    }
    let Some(_loops) = Loops::take(test, 2) else { return };
    let Some(group) = Pids::new("stacktune-test") else {
        return skip(test, "needs a cgroup with pids.max");
    };
    let on_stack = ["target.files.count=1", "target.files.size=96MiB", "stack.filesystem=ext4"];
    let on_files = ["target.files.count=2", "target.files.size=16MiB"];
    let limits: Vec<u64> = if is_soak() { (1..16).collect() } else { vec![1, 2, 4, 6] };
    for (sets, least) in [(&on_stack[..], 3), (&on_files, 2)] {
        let failed = limits.iter().filter(|limit| {
            let home = Home::new();
            let mut command = home.record("out", "1s", &[&MODEST[..], sets].concat());
            command.env("XDG_STATE_HOME", home.path("state"));
            let outcome = group.run(**limit, &command);
            if outcome.status != Some(0) {
                says_so(&outcome);
                assert!(outcome.stderr.contains("pids.max"), "{outcome:?}");
            }
            let state = home.path("state/stacktune");
            for dir in [state.join("journal"), state.join("mnt")] {
                assert_eq!(fs::read_dir(&dir).map_or(0, Iterator::count), 0, "{}", dir.display());
            }
            outcome.status != Some(0)
        });
        let failed = failed.count();
        assert!(failed >= least, "only {failed} of {limits:?} were too low for {sets:?}");
    }
}

#[test]
fn a_tiny_stack_is_an_error_that_says_so() {
    for (limit_kib, arguments) in [(128, ["host", "--json"]), (144, ["show", "none"])] {
        let mut command = Command::new("/usr/bin/prlimit");
        command.arg(format!("--stack={}", limit_kib << 10)).arg(env!("CARGO_BIN_EXE_stacktune"));
        let outcome = Outcome::of(&command.args(arguments).output().unwrap()).expect(1);
        assert!(outcome.stderr.contains("ulimit -s"), "{outcome:?}");
    }
}

#[test]
fn wherever_threads_run_out_an_error_says_so() {
    let test = "wherever_threads_run_out_an_error_says_so";
    if !is_root() {
        return skip(test, "only root runs programs as a user without other processes");
    }
    // The user can't access the build's folder.
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("stacktune");
    fs::copy(env!("CARGO_BIN_EXE_stacktune"), &program).unwrap();
    for path in [dir.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let failed = |limit: u64, profile: &str, more: &[&str]| {
        let mut command = Command::new("/usr/bin/prlimit");
        command.arg(format!("--nproc={limit}")).arg(&program);
        command
            .args(["record", profile, "--for", "1s", "--out"])
            .arg(home.join(format!("{profile}-{limit}")));
        let target = format!("target.files.dir={}", home.join(profile).display());
        let sets = [&[target.as_str(), "io.registered_buffers=false"], &MODEST[..], more].concat();
        command.args(sets.iter().map(|set| format!("--set={set}")));
        command.env_clear().env("HOME", &home).uid(NOBODY).gid(NOBODY).current_dir("/");
        let outcome = Outcome::of(&command.stdin(Stdio::null()).output().unwrap());
        if outcome.status != Some(0) {
            says_so(&outcome);
        }
        outcome.status != Some(0)
    };
    let files = ["target.files.size=16MiB", "target.files.count=2"];
    let limits = 1..if is_soak() { 40 } else { 12 };
    let failed_of_files = limits.filter(|limit| failed(*limit, "demo", &files)).count();
    assert!(failed_of_files >= 4, "only {failed_of_files} limits were too low");
    // RocksDB starts threads of its own, and aborts if it can't.
    #[cfg(feature = "rocksdb")]
    for limit in if is_soak() { (6..40).collect() } else { vec![10, 16, 24] } {
        failed(limit, "rocksdb", &["kv.pairs=20000", "kv.value_size=400", "rocksdb.write_buffer=1MiB"]);
    }
}
