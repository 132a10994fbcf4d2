//! Others' recordings, profiles and folders: nothing in them reaches the terminal raw or stops the program.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::common::program::{Home, Outcome};
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// Moves the cursor, sets the title, breaks the line, reverses the text.
const EVIL: &str = "x\nfalse line\x1b]0;title\x07\u{9b}2J\u{202e}";

/// Records simulated devices for a few seconds.
fn simulated(home: &Home, out: &str) {
    let profile = home.path("simulated.toml");
    fs::write(&profile, "io.interface = \"sim\"\n").unwrap();
    let mut command = home.command(["record", profile.to_str().unwrap(), "--for", "3s", "--out"]);
    Outcome::of(&command.arg(home.path(out)).output().unwrap()).expect(0);
}

/// Replaces a text in a file.
fn put(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{}: no {from}", file.display());
    fs::write(file, text.replacen(from, to, 1)).unwrap();
}

#[track_caller]
fn is_harmless(outcome: &Outcome) {
    for text in [&outcome.stdout, &outcome.stderr] {
        let wrong = |c: char| c != '\n' && c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(wrong), "{text:?}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("false line")), "{text}");
    }
}

#[test]
fn names_in_a_recording_do_not_reach_the_terminal_raw() {
    let home = Home::new();
    let folder = format!("a{EVIL}");
    simulated(&home, &folder);
    let evil = serde_json::to_string(EVIL).unwrap();
    let dir = home.path(&folder);
    put(&dir.join("summary.json"), r#""profile": "simulated""#, &format!(r#""profile": {evil}"#));
    put(&dir.join("host.json"), r#""hostname": ""#, &format!(r#""hostname": {evil}, "was": ""#));
    for arguments in [vec!["show"], vec!["show", "--json"], vec!["show", "--over-time"], vec!["compare"]] {
        let twice = arguments[0] == "compare";
        let mut command = home.command(&arguments);
        let outcome = Outcome::of(&command.args(vec![&dir; if twice { 2 } else { 1 }]).output().unwrap());
        is_harmless(&outcome.expect(0));
    }
    let set = &format!("--set={EVIL}");
    let value = &format!("--set=target.files.dir={EVIL}");
    let knob = &format!("--set={EVIL}=1");
    let option = &format!("--{EVIL}");
    let device = &format!("--devices=/dev/{EVIL}");
    for arguments in [
        &["show", EVIL][..],
        &["record", EVIL],
        &["record", EVIL, "--out", "x"],
        &["record", "demo", "--out", "x", "--duel", EVIL],
        &["record", "demo", "--out", "x", "--duel-figure", EVIL],
        &["check", EVIL],
        &["check", "demo", set],
        &["check", "demo", value],
        &["check", "demo", knob],
        &["cleanup", EVIL],
        &["help", EVIL],
        &["reproduce", EVIL],
        &["completions", EVIL],
        &["attest", "--dry-run", device],
        &["contract", EVIL],
        &["trace", "--from", EVIL, "--out", "x"],
        &[EVIL],
        &[EVIL, "--x"],
        &[option],
    ] {
        let outcome = home.run(arguments).expect(2);
        assert!(!outcome.stderr.is_empty());
        is_harmless(&outcome);
    }
}

#[test]
fn a_profile_draws_no_line_of_the_plan() {
    let home = Home::new();
    let profile = home.path("evil.toml");
    fs::write(&profile, "target.files.dir = \"/tmp/x\\nfalse line\"\n").unwrap();
    let outcome = home.run(["check", profile.to_str().unwrap()]).expect(2);
    assert!(outcome.stderr.contains("`target.files.dir` must be a path"), "{outcome:?}");
    is_harmless(&outcome);
}

/// The log's first interval with all bits of its histogram's inner length set.
fn endless(log: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let line = log.lines().find(|line| line.starts_with("Tag=")).unwrap();
    let (head, encoded) = line.rsplit_once(',').unwrap();
    let bytes = STANDARD.decode(encoded).unwrap();
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(&bytes[8..]).read_to_end(&mut plain).unwrap();
    plain[4..8].fill(0xff);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&plain).unwrap();
    let packed = encoder.finish().unwrap();
    let encoded = STANDARD.encode([&bytes[..4], &(packed.len() as u32).to_be_bytes(), &packed].concat());
    log.replacen(line, &format!("{head},{encoded}"), 1)
}

#[test]
fn four_bytes_in_the_log_take_no_memory() {
    let home = Home::new();
    simulated(&home, "a");
    let dir = home.path("a");
    fs::remove_file(dir.join("summary.json")).unwrap();
    let log = fs::read_to_string(dir.join("latency.hlog")).unwrap();
    fs::write(dir.join("latency.hlog"), endless(&log)).unwrap();
    // In KiB.
    let limited = ["-c", "ulimit -v 1000000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_stacktune"), "show"];
    let output = Command::new("sh").args(limited).arg(&dir).output().unwrap();
    let outcome = Outcome::of(&output).expect(0);
    assert!(outcome.stdout.contains("latency.hlog is damaged"), "{outcome:?}");
}

#[test]
fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let home = Home::new();
    simulated(&home, "a");
    let pipe = |path: &Path| {
        let _ = fs::remove_file(path);
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap();
    };
    let says = |arguments: [&str; 2], status: i32| {
        let outcome = home.run(arguments).expect(status);
        let said = outcome.stdout + &outcome.stderr;
        assert!(
            said.split_whitespace().collect::<Vec<_>>().join(" ").contains("not a regular file"),
            "{said}"
        );
    };
    let a = home.path("a");
    for (name, status) in [("profile.toml", 0), ("host.json", 1), ("ledger.jsonl", 1), ("summary.json", 1)] {
        let path = a.join(name);
        let kept = fs::read(&path).unwrap();
        pipe(&path);
        says(["show", a.to_str().unwrap()], status);
        fs::remove_file(&path).unwrap();
        fs::write(&path, kept).unwrap();
    }
    let profile = home.path("pipe.toml");
    pipe(&profile);
    says(["check", profile.to_str().unwrap()], 2);
    says(["check", "/dev/zero"], 2);
    let profiles = home.path("config/stacktune/profiles");
    fs::create_dir_all(&profiles).unwrap();
    pipe(&profiles.join("mine.toml"));
    assert!(home.run(["profiles"]).expect(0).stdout.contains("not a regular file"));
    // The files of a sweep.
    let sweep = home.path("sweep");
    fs::create_dir(&sweep).unwrap();
    fs::write(sweep.join("sweep.json"), "").unwrap();
    pipe(&sweep.join("reproduce.json"));
    home.run(["show", sweep.to_str().unwrap()]).expect(1);
}

#[test]
fn arguments_that_are_no_text_are_errors() {
    let home = Home::new();
    let word = OsStr::from_bytes(b"\xff");
    for arguments in [&[word][..], &["--x".as_ref(), word], &["show".as_ref(), word], &[word, "--x".as_ref()]]
    {
        home.run(arguments).expect(2);
    }
}

#[test]
fn a_reproduction_of_others_names_no_end_of_recordings_beside_it() {
    let home = Home::new();
    simulated(&home, "a");
    let seed = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/sweep/reproduction-solo"));
    let seed = seed.unwrap();
    let (sweep, _) = seed.split_once("== ").unwrap();
    let dir = home.path("sweep");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("sweep.json"), sweep).unwrap();
    fs::write(dir.join("profile.toml"), "io.interface = \"sim\"\n").unwrap();
    let note = serde_json::json!({
        "schema": 1, "experiment": "table2", "left_out": [], "sets": [], "no_cache_limit": null,
        "beside": vec![home.path("none"); 100],
    });
    fs::write(dir.join("reproduce.json"), note.to_string()).unwrap();
    let shown = home.run(["show", dir.to_str().unwrap()]).expect(0);
    assert_eq!(shown.stderr.matches("not shown next to it: there is no folder").count(), 16, "{shown:?}");
    assert!(shown.stderr.contains("84 more are not shown next to it"), "{shown:?}");
}

#[test]
fn a_files_name_makes_no_line() {
    let home = Home::new();
    let dir = home.target();
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("x\nstacktune: FORGED"), "").unwrap();
    let profile = home.path("files.toml");
    let text =
        format!("io.interface = \"sync\"\ntarget.files = {{ dir = {dir:?}, count = 2, size = \"16MiB\" }}\n");
    fs::write(&profile, text).unwrap();
    let out = home.path("out");
    let of_run =
        ["record".as_ref(), profile.as_os_str(), "--dry-run".as_ref(), "--out".as_ref(), out.as_os_str()];
    for outcome in [home.run(["check".as_ref(), profile.as_os_str()]), home.run(of_run)] {
        let said = outcome.stdout + &outcome.stderr;
        assert!(said.contains("x␊stacktune: FORGED") && !said.contains("\nstacktune: FORGED"), "{said}");
    }
}

#[test]
fn the_dry_run_refuses_what_is_in_the_way_of_the_files() {
    let home = Home::new();
    let (dir, profile, out) = (home.target(), home.path("files.toml"), home.path("out"));
    fs::create_dir_all(&dir).unwrap();
    let text =
        format!("io.interface = \"sync\"\ntarget.files = {{ dir = {dir:?}, count = 1, size = \"16MiB\" }}\n");
    fs::write(&profile, text).unwrap();
    for name in ["wal", "data-0"] {
        fs::write(dir.join(name), "precious").unwrap();
        for how in [&["--dry-run"][..], &["--for", "1s"]] {
            let mut command = home.command(["record", profile.to_str().unwrap(), "--out"]);
            let outcome = Outcome::of(&command.arg(&out).args(how).output().unwrap()).expect(3);
            assert!(outcome.stderr.contains("is not a file that stacktune made"), "{outcome:?}");
        }
        fs::remove_file(dir.join(name)).unwrap();
    }
}
