//! Runs on hosts that lack a feature, or hit a limit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::common;
use crate::common::devices::{Loops, Mount, has, run};
use crate::common::recorded::{Home, LOAD, PROGRAM, Ran, Recorded, json, texts};
use crate::real_io::{INTERFACES, record, set, verify};

/// Runs the program with a file size limit: writes beyond it fail with EFBIG.
fn record_under_limit(home: &Home, profile: &str, out: &str, limit_bytes: u64, sets: &[&str]) -> Recorded {
    let dir = home.path(out);
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={limit_bytes}")).arg(PROGRAM);
    command.args(["record", profile, "--for", "2s", "--out", dir.to_str().unwrap()]).args(set(sets));
    let ran = Ran::of(&home.inhabit(&mut command).output().unwrap());
    Recorded { ran, dir }
}

#[test]
fn errors_are_counted_by_errno_and_class_and_the_others_go_on() {
    for interface in INTERFACES {
        let home = Home::new();
        let profile = home.small_files("errors");
        let sets = [&*format!("io.interface={interface}")];
        record(&home, &profile, "filled", &sets, &[]).all_classes_ran();
        // The WAL's file, of 9 MiB, stays below the limit; the data files, of 17 MiB, don't.
        let recorded = record_under_limit(&home, &profile, "errors", 12 << 20, &sets);
        recorded.ran.ended(1, &["background", "EFBIG"]);
        assert_eq!(recorded.ran.err.lines().count(), 1, "{}", recorded.ran.err);
        let summary = recorded.any_summary();
        let background = &summary["classes"]["background"];
        assert!(background["errors"].as_u64() > Some(0), "{background:#}");
        assert_eq!(background["errnos"]["EFBIG"], background["errors"], "{background:#}");
        assert_eq!(background["state"], "running");
        for class in ["scan", "point", "wal", "background"] {
            assert!(summary["classes"][class]["ios"].as_u64() > Some(0), "{class}: {summary:#}");
            assert_eq!(
                summary["classes"][class]["errors"] == 0,
                class != "background",
                "{class}: {summary:#}"
            );
        }
        verify(&home, &profile, &[]);
    }
}

#[test]
fn a_class_with_too_many_errors_stops_and_says_why() {
    let home = Home::new();
    let profile = home.small_files("trips");
    record(&home, &profile, "filled", &[], &[]).all_classes_ran();
    let sets = ["background.rate=none", "background.depth=64"];
    let recorded = record_under_limit(&home, &profile, "trips", 9 << 20, &sets);
    recorded.ran.ended(1, &["background stopped: over 1,000 errors in a second", "EFBIG"]);
    let summary = recorded.any_summary();
    let background = &summary["classes"]["background"];
    assert_eq!(background["state"], "stopped", "{background:#}");
    assert!(background["why"].as_str().unwrap().contains("over 1,000 errors"), "{background:#}");
    assert!(background["errors"].as_u64() > Some(1000), "{background:#}");
    let windows = recorded.windows();
    let is_stopped = |window: &&serde_json::Value| {
        window["classes"]["background"].to_string().contains("over 1,000 errors")
    };
    // On a busy machine a window may pass without any I/O.
    let after: Vec<_> = windows.iter().filter(is_stopped).collect();
    let scanned = after.iter().any(|window| window["classes"]["scan"]["ios"].as_u64() > Some(0));
    assert!(scanned, "the scan goes on: {after:#?}");
}

#[test]
fn writing_stops_at_exactly_its_limit() {
    for interface in ["io_uring", "sync"] {
        let home = Home::new();
        let profile = home.small_files("limit");
        let interface = format!("io.interface={interface}");
        record(&home, &profile, "filled", &[&interface], &[]).all_classes_ran();
        let sets = [&*interface, "run.max_writes=1MiB", "background.depth=16", "background.rate=none"];
        // Even on a busy machine each class has to reach the limit and try once more.
        let recorded = home.record(&profile, "limited", &[&["--for", "3s"][..], &set(&sets)].concat());
        let summary = recorded.summary();
        let bytes = |class: &str| summary["classes"][class]["bytes"].as_u64().unwrap();
        assert_eq!(bytes("wal") + bytes("background"), 1 << 20, "{summary:#}");
        assert_eq!(recorded.windows().pop().unwrap()["written_bytes_total"], 1 << 20);
        assert!(bytes("scan") > 0 && bytes("point") > 0);
        for class in ["wal", "background"] {
            assert_eq!(summary["classes"][class]["state"], "stopped", "{class}: {summary:#}");
        }
        recorded.ran.ended(0, &["background stopped: 1MiB have been written, the limit of run.max_writes"]);
        verify(&home, &profile, &[]);
    }
}

#[test]
fn a_fill_beyond_the_limit_is_refused_before_it_begins() {
    let home = Home::new();
    let profile = home.small_files("limit");
    let refused = record(&home, &profile, "out", &["run.max_writes=1MiB"], &[]);
    refused.ran.ended(2, &["run.max_writes is 1MiB"]);
    assert!(!home.path("out").exists(), "a recording without a run");
}

/// An ordinary user.
const NOBODY: u32 = 65534;
/// Runs the demo on small files, and another profile, each command changed by `prepare`.
fn demo_and_other(home: &Home, prepare: &dyn Fn(&mut Command)) -> (Recorded, Recorded) {
    let run = |profile: &str, sets: &[&str], out: &str| {
        let dir = home.path(out);
        let mut command = Command::new(PROGRAM);
        command.args(["record", profile, "--for", "1500ms", "--out", dir.to_str().unwrap()]).args(set(sets));
        prepare(&mut command);
        Recorded { ran: Ran::of(&home.inhabit(&mut command).output().unwrap()), dir }
    };
    let sets = ["target.files.size=16MiB", "target.files.count=2"];
    (run("demo", &sets, "demo"), run(&home.small_files("other"), &[], "other"))
}

#[test]
fn without_io_uring_the_demo_falls_back_and_says_so_and_others_are_refused() {
    let home = Home::new();
    let forbid = |command: &mut Command| forbid_io_uring(command);
    let (demo, other) = demo_and_other(&home, &forbid);
    demo.all_classes_ran();
    demo.ran.ended(0, &["io.interface is libaio instead of io_uring"]);
    let host = json(&demo.dir.join("host.json"));
    assert!(texts(&host["notes"]).iter().any(|note| note.contains("libaio instead of io_uring")), "{host:#}");
    other.ran.ended(2, &["`io.interface` can't be io_uring"]);
    assert!(!home.path("other-files").exists(), "files were made for a run that can't be");
}

/// Makes `io_uring_setup` fail with EPERM, as containers do.
#[allow(unsafe_code)]
fn forbid_io_uring(command: &mut Command) {
    let statement = |code: u32, jump_if: u8, jump_else: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_if,
        jf: jump_else,
        k: value,
    };
    let filter = [
        // The system call's number is the first word.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_io_uring_setup as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the program and its statements live until prctl, which copies them, returns; prctl may be
        // called between fork and exec.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
        };
        if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(install) };
}

#[test]
fn under_a_small_memory_limit_the_demo_falls_back_and_says_so_and_others_are_refused() {
    let test = "under_a_small_memory_limit_the_demo_falls_back_and_says_so_and_others_are_refused";
    if !common::is_root() {
        common::skip(test, "needs root to become an ordinary user");
        return;
    }
    let home = Home::new();
    // A folder in which an ordinary user can reach the program and its home, wherever the tests run.
    let open = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in("/var/tmp")
        .unwrap();
    let program = open.path().join("stacktune");
    fs::copy(PROGRAM, &program).unwrap();
    let files = open.path().join("home");
    fs::create_dir(&files).unwrap();
    std::os::unix::fs::chown(&files, Some(NOBODY), Some(NOBODY)).unwrap();
    let as_nobody = |profile: &str, out: &str| {
        let mut command = Command::new("prlimit");
        command.arg("--memlock=65536:65536").args([
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ]);
        command.arg(&program).args(["record", profile, "--for", "1500ms", "--out", out]);
        command.args(set(&["target.files.size=16MiB", "target.files.count=2"]));
        home.inhabit(&mut command).env("HOME", &files).current_dir(&files);
        Recorded { ran: Ran::of(&command.output().unwrap()), dir: files.join(out) }
    };
    let demo = as_nobody("demo", "demo");
    demo.all_classes_ran();
    demo.ran.ended(0, &["io.registered_buffers is off instead of on", "RLIMIT_MEMLOCK"]);
    fs::write(files.join("other.toml"), format!("[target]\nfiles.dir = \"{}/f\"\n{LOAD}", files.display()))
        .unwrap();
    let other = as_nobody("./other.toml", "other");
    other.ran.ended(2, &["`io.registered_buffers` can't be on", "RLIMIT_MEMLOCK"]);
}

#[test]
fn direct_io_that_btrfs_quietly_buffers_is_flagged() {
    let test = "direct_io_that_btrfs_quietly_buffers_is_flagged";
    let Some(loops) = Loops::take(test, 1) else { return };
    if !has("mkfs.btrfs") {
        return common::skip(test, "needs mkfs.btrfs");
    }
    let device = loops.blank(256);
    run("mkfs.btrfs", &["-q", "-f", &device.path]);
    let mount = Mount::of(&device, "rw");
    let home = Home::new();
    let dir = mount.at.path().join("files");
    let profile = home.profile(
        "btrfs",
        &format!("[target]\nfiles = {{ dir = \"{}\", count = 2, size = \"16MiB\" }}\n{LOAD}", dir.display()),
    );
    let summary = record(&home, &profile, "out", &[], &[]).all_classes_ran();
    let flags =
        ["scan", "point", "wal", "background"].map(|class| texts(&summary["classes"][class]["flags"]));
    assert!(flags.iter().any(|flags| flags.contains(&"quietly buffered")), "{summary:#}");
    verify(&home, &profile, &[]);
}
