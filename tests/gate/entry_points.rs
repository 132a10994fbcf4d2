//! The shell side of `make` and of continuous integration: what it refuses, and with which messages.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::common;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs `.ci/check-skips` over these skips and this list.
fn check_skips(skips: &str, list: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    Command::new(format!("{ROOT}/.ci/check-skips"))
        .args([write("skips", skips), write("list", list)])
        .output()
        .unwrap()
}

/// Runs `scripts/setup.sh demo` with these scripts in `~/.cargo/bin` and these folders as PATH.
fn set_up_with(tools: &[(&str, &str)], path: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join(".cargo/bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (name, script) in tools {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    Command::new(format!("{ROOT}/scripts/setup.sh"))
        .arg("demo")
        .env_clear()
        .envs([("HOME", home.path()), ("PATH", Path::new(path)), ("NO_INSTALL", Path::new("1"))])
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_skip_is_allowed_only_by_a_line_whose_fact_is_missing() {
    let skip = "SKIPPED cycles: no performance-monitoring unit\n";
    let missing = check_skips(skip, "# why\n\ncyc* : *monitoring* : no unit here : false\n");
    assert!(missing.status.success(), "{}", text(&missing));
    assert!(text(&missing).contains("allowed: cycles: no performance-monitoring unit (no unit here)"));

    let present = check_skips(skip, "cyc* : *monitoring* : no unit here : true\n");
    assert_eq!(present.status.code(), Some(1));
    assert!(text(&present).contains("it says that no unit here, but that is not so"));
}

#[test]
fn a_skip_that_no_line_matches_fails() {
    for list in ["", "other : * : x : false\n", "cycles : needs root : x : false\n"] {
        let output = check_skips("SKIPPED cycles: no unit\n", list);
        assert_eq!(output.status.code(), Some(1), "{list}");
        assert!(text(&output).contains("not allowed: cycles: no unit"));
    }
    assert!(check_skips("", "").status.success());
}

#[test]
fn a_malformed_list_is_refused_with_its_line() {
    let output = check_skips("", "# fine\ncycles : no fact\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("list:2: expected"), "{}", text(&output));
}

#[test]
fn the_checked_in_list_is_well_formed() {
    let list = std::fs::read_to_string(format!("{ROOT}/tests/skips.txt")).unwrap();
    let output = check_skips("", &list);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_skipped_test_is_listed() {
    // In a process of its own, because all tests of this process share the environment.
    const HELPER: &str = "STACKTUNE_TEST_SKIP_HELPER";
    if std::env::var_os(HELPER).is_some() {
        common::skip("a test", "two\nlines");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("skips");
    let output = common::this_test(module_path!(), "a_skipped_test_is_listed")
        .env(HELPER, "1")
        .env("STACKTUNE_SKIPS", &list)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(std::fs::read_to_string(&list).unwrap(), "SKIPPED a test: two lines\n");
}

#[test]
fn without_rust_the_set_up_explains_how_to_get_it() {
    // A PATH that certainly has no cargo.
    let path = tempfile::tempdir().unwrap();
    for tool in ["dirname", "sed"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{tool}"), path.path().join(tool)).unwrap();
    }
    let output = set_up_with(&[], path.path().to_str().unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("https://sh.rustup.rs"), "{}", text(&output));
}

#[test]
fn an_old_rust_outside_path_is_found_and_refused() {
    let old = [("cargo", ""), ("rustc", "echo 'rustc 1.85.1 (4eb161250 2025-03-15)'")];
    let output = set_up_with(&old, "/usr/bin:/bin");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("Rust 1.85.1 is too old"), "{}", text(&output));
    assert!(text(&output).contains("rustup update stable"));
}

#[test]
fn a_new_enough_rust_goes_on() {
    let new = [("cargo", ""), ("rustc", "echo 'rustc 1.100.0-nightly (4eb161250 2027-03-15)'")];
    let output = set_up_with(&new, "/usr/bin:/bin");
    assert!(output.status.success(), "{}", text(&output));
}
