//! stacktune's figures beside those of other programs, in the short form.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::common::recorded::{Home, Ran, json};

const CHECKS: [&str; 10] = [
    "latency_p50",
    "latency_p99",
    "bytes_read",
    "bytes_written",
    "own_cpu",
    "busy_cores",
    "cycles",
    "log",
    "lost_writes",
    "equal_duel",
];

/// A fake fio whose reads take a second: a figure that is certainly wrong.
const SLOW_FIO: &str = r#"#!/bin/sh
echo '{"fio version": "fio-slow", "jobs": [{"error": 0, "read": {"total_ios": 5000, "lat_ns":
    {"percentile": {"50.000000": 1000000000, "99.000000": 1000000000}}}}]}'
"#;

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn verdict(check: &Value) -> &str {
    check["verdict"].as_str().unwrap()
}

#[test]
fn each_check_passes_fails_or_says_why_not_and_a_wrong_figure_fails() {
    let home = Home::new();
    let tools = home.path("tools");
    fs::create_dir(&tools).unwrap();
    program(&tools.join("fio"), SLOW_FIO);
    let (files, out) = (home.path("secret-place"), home.path("attest.json"));
    let arguments = ["attest", "--quick", "--files", files.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let mut command = home.command(&arguments);
    let ran = Ran::of(&command.env("STACKTUNE_TEST_TOOLS", &tools).output().unwrap());
    let bundle = json(&out);
    let failed = bundle["checks"].as_array().unwrap().iter().any(|check| verdict(check) == "fail");
    assert_eq!(ran.status, Some(i32::from(failed)), "{}{}", ran.out, ran.err);
    assert_eq!((&bundle["schema"], &bundle["quick"]), (&1.into(), &true.into()));
    let checks = bundle["checks"].as_array().unwrap();
    assert_eq!(checks.iter().map(|check| check["check"].as_str().unwrap()).collect::<Vec<_>>(), CHECKS);
    for check in checks {
        match verdict(check) {
            "pass" | "fail" => assert!(check["ours"].is_number() && check["theirs"].is_number(), "{check:#}"),
            "not_checkable" => assert!(check["why"].as_str().is_some_and(|why| !why.is_empty()), "{check:#}"),
            other => panic!("{other}: {check:#}"),
        }
    }
    // Without direct I/O, or on a device that is too slow, nothing is compared with fio.
    let latency: Vec<_> = checks[..2].iter().map(verdict).collect();
    let is_excused = |why: &str| ["direct I/O", "too few reads"].iter().any(|excuse| why.contains(excuse));
    let is_compared = !checks[0]["why"].as_str().is_some_and(is_excused);
    assert!(latency == ["fail"; 2] || !is_compared, "{bundle:#}\n{}", ran.err);
    assert_eq!(verdict(&checks[8]), "pass", "lost writes: {:#}", checks[8]);
    assert!(ran.err.contains("read latency p50: failed") || !is_compared, "{}", ran.err);
    assert!(ran.out.contains("FAIL") || !is_compared, "{}", ran.out);
    // The publishable file names nothing private, and nothing else is left.
    let text = fs::read_to_string(&out).unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    // A short host name may be part of any word.
    let host = Some(host.trim()).filter(|host| host.len() > 5);
    for name in ["secret-place", home.dir.path().to_str().unwrap()].into_iter().chain(host) {
        assert!(!text.contains(name), "{name}: {text}");
    }
    assert_eq!(fs::read_dir(&files).unwrap().count(), 0);
    let maps = fs::read_dir(home.path("state/stacktune/writes"));
    assert_eq!(maps.map_or(0, Iterator::count), 0);
    home.run(&arguments).ended(2, &["exists already"]);
}

/// Files that get published: a newly added one is checked here too.
#[test]
fn published_files_are_of_this_form_and_name_nobody() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/attest");
    let listed = fs::read_to_string(folder.join("README.md")).unwrap();
    let paths = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let paths: Vec<_> = paths.filter(|path| !path.ends_with("README.md")).collect();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(listed.contains(&format!("[{name}]({name})")), "{name} is not in the list");
        let bundle = json(&path);
        assert_eq!(bundle["schema"], 1, "{name}");
        let checks = bundle["checks"].as_array().unwrap();
        let of = |key: &str| checks.iter().map(|check| check[key].as_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(of("check"), CHECKS, "{name}");
        assert!(of("verdict").iter().all(|verdict| ["pass", "fail", "not_checkable"].contains(verdict)));
        // Exactly these keys, and no paths in the texts.
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(keys(&bundle), "checks host made_unix_s quick schema stacktune target", "{name}");
        assert_eq!(
            keys(&bundle["host"]),
            "cpu cpus distribution governor kernel memory_bytes virtualization",
            "{name}"
        );
        for drive in bundle["target"]["drives"].as_array().unwrap() {
            assert_eq!(keys(drive), "firmware model real scheduler size_bytes", "{name}");
        }
        let text = bundle.to_string();
        for path in ["/home", "/root", "/dev/", "/var/", "by-id", "serial", "hostname"] {
            assert!(!text.contains(path), "{name}: {path}");
        }
    }
}
