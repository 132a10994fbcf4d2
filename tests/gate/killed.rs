//! Killed or interrupted runs: everything finished stays readable, and the next run continues from there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common;
use crate::common::program::{Home, MODEST, Running, json_file, json_lines, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// Windows of a tenth of a second, so that some end soon.
fn short_windows() -> Vec<&'static str> {
    let mut sets = MODEST.to_vec();
    sets.push("run.window=100ms");
    sets
}

/// Starts a recording and waits until it has that many windows.
fn recording(home: &Home, out: &str, windows: usize) -> Running {
    let running = Running::start(&mut home.record(out, "10m", &short_windows()));
    let path = home.path(out).join("windows.jsonl");
    wait_for("the first windows", || (json_lines(&path).len() >= windows).then_some(()));
    running
}

fn bytes_of(windows: &[Value]) -> u64 {
    windows.iter().map(|window| window["total"]["bytes"].as_u64().unwrap()).sum()
}

#[test]
fn finished_windows_of_a_killed_recording_are_readable() {
    let home = Home::new();
    let running = recording(&home, "killed", 5);
    running.signal(Signal::KILL);
    assert_eq!(running.outcome().status, None);
    let dir = home.path("killed");
    assert!(!dir.join("summary.json").exists());

    let windows = json_lines(&dir.join("windows.jsonl"));
    let shown = home.show(&dir).expect(0).json();
    let summary = if shown["summary"].is_object() { &shown["summary"] } else { &shown };
    assert_eq!(summary["rebuilt"], true, "{shown}");
    assert_eq!(summary["windows"].as_u64().unwrap(), windows.len() as u64);
    assert_eq!(summary["total"]["bytes"].as_u64().unwrap(), bytes_of(&windows));
    for class in ["scan", "point", "wal", "background"] {
        assert!(summary["classes"][class]["service_ns"]["max"].as_u64().is_some(), "{class}: {shown}");
    }
    let text = home.run(["show".as_ref(), dir.as_os_str()]).expect(0);
    assert!(text.stdout.contains("scan"), "{text:?}");

    // A half-written line is not a window.
    let path = dir.join("windows.jsonl");
    let mut torn = fs::read(&path).unwrap();
    torn.extend_from_slice(br#"{"index":99,"start_ns":"#);
    fs::write(&path, torn).unwrap();
    let shown = home.show(&dir).expect(0).json();
    let summary = if shown["summary"].is_object() { &shown["summary"] } else { &shown };
    assert_eq!(summary["windows"].as_u64().unwrap(), windows.len() as u64);

    home.verify().expect(0);
}

#[test]
fn a_killed_run_holds_no_lock_and_leaves_clean_pages() {
    let home = Home::new();
    let running = recording(&home, "killed", 3);
    running.signal(Signal::KILL);
    running.outcome();
    let verified = home.verify().expect(0).json();
    assert!(verified["sectors_ok"].as_u64().unwrap() > 0, "{verified}");
    // Filled data is not filled again.
    let next = home.record("next", "1s", &short_windows()).output().unwrap();
    let next = common::program::Outcome::of(&next).expect(0);
    assert!(!next.stderr.contains("fill"), "{next:?}");
    home.verify().expect(0);
}

/// Two files of 1 GiB, which take a while to fill on any disk.
const LARGE: [&str; 2] = ["target.files.size=1GiB", "run.window=100ms"];

/// Filled bytes of each member, according to the members' headers.
fn filled(target: &Path) -> BTreeMap<String, u64> {
    use stacktune::testing::load::volume::header::{COPIES_AT, COPY_BYTES, Header};
    let mut filled = BTreeMap::new();
    for entry in fs::read_dir(target).into_iter().flatten() {
        let entry = entry.unwrap();
        let mut head = vec![0; COPIES_AT[COPIES_AT.len() - 1] as usize + COPY_BYTES];
        let read = fs::File::open(entry.path())
            .and_then(|file| std::os::unix::fs::FileExt::read_exact_at(&file, &mut head, 0));
        if read.is_err() {
            continue; // not that long yet
        }
        let copies = COPIES_AT.iter().map(|&at| &head[at as usize..at as usize + COPY_BYTES]);
        let bytes = copies
            .filter_map(Header::decode)
            .map(|header| [0, 1].iter().map(|&region| header.filled_bytes(region)).sum::<u64>());
        if let Some(bytes) = bytes.max() {
            filled.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
        }
    }
    filled
}

#[test]
fn a_killed_fill_goes_on_where_it_stopped() {
    let home = Home::new();
    let mut sets = MODEST.to_vec();
    sets.extend(LARGE);
    let mut running = Running::start(&mut home.record("first", "1s", &sets));
    wait_for("a part of the fill", || {
        assert!(running.is_alive(), "the fill is over before it could be killed");
        filled(&home.target()).values().any(|bytes| *bytes > 0).then_some(())
    });
    running.signal(Signal::KILL);
    assert_eq!(running.outcome().status, None);
    let before: u64 = filled(&home.target()).values().sum();
    // Data without the headers, and a WAL of a quarter of the files. On a slow disk the demo's are smaller.
    let sizes = fs::read_dir(home.target()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let size = sizes.max().unwrap();
    let all = 2 * (size - (1 << 20)) + size / 2;
    assert!((1..all).contains(&before), "{before} of {all}");
    assert!(!home.path("first").exists(), "nothing was measured");

    let next = common::program::Outcome::of(&home.record("next", "1s", &sets).output().unwrap()).expect(0);
    // This run wrote only what was missing, and its load's writes.
    let windows = json_lines(&home.path("next").join("windows.jsonl"));
    let first = &windows[0];
    let load: u64 =
        ["wal", "background"].iter().map(|class| first["classes"][class]["bytes"].as_u64().unwrap()).sum();
    let written = first["written_bytes_total"].as_u64().unwrap();
    let missing = all - before;
    assert!(
        (missing..=missing + load + (1 << 20)).contains(&written),
        "{written}, {missing}, {load}; {next:?}"
    );
    let mut verify = home.command(["verify", "demo", "--json"]);
    let verified = common::program::Outcome::of(&verify.args(home.sets(&LARGE)).output().unwrap()).expect(0);
    assert_eq!(verified.json()["sectors_ok"].as_u64().unwrap() * 512, all, "{verified:?}");
}

#[test]
fn an_interrupted_fill_ends_in_order() {
    let home = Home::new();
    // More than is written while the fill rate is measured.
    let running = Running::start(&mut home.record("first", "1s", &["target.files.size=4GiB"]));
    wait_for("a part of the fill", || filled(&home.target()).values().any(|bytes| *bytes > 0).then_some(()));
    running.signal(Signal::INT);
    let outcome = running.outcome().expect(130);
    assert!(outcome.stderr.contains("the next run continues where it stopped"), "{outcome:?}");
    assert!(!home.path("first").exists());
}

#[test]
fn signals_end_a_recording_early_with_a_valid_summary() {
    let home = Home::new();
    for (name, which) in
        [("int", Signal::INT), ("term", Signal::TERM), ("quit", Signal::QUIT), ("hup", Signal::HUP)]
    {
        let running = recording(&home, name, 4);
        running.signal(which);
        let outcome = running.outcome().expect(130);
        assert!(outcome.stdout.contains("scan"), "the table is printed: {outcome:?}");
        assert!(outcome.stderr.contains("interrupted"), "{outcome:?}");
        let dir = home.path(name);
        let summary = json_file(&dir.join("summary.json"));
        let windows = json_lines(&dir.join("windows.jsonl"));
        assert_eq!(summary["interrupted"], true);
        assert_eq!(summary["windows"].as_u64().unwrap(), windows.len() as u64);
        assert_eq!(summary["total"]["bytes"].as_u64().unwrap(), bytes_of(&windows));
        home.show(&dir).expect(0);
    }
    home.verify().expect(0);
}

#[test]
fn a_second_run_on_a_target_is_refused() {
    let home = Home::new();
    let mut first = recording(&home, "first", 2);
    let second = home.record("second", "1s", &short_windows()).output().unwrap();
    let second = common::program::Outcome::of(&second).expect(1);
    assert!(second.stderr.contains(&format!("in use by process {}", first.pid())), "{second:?}");
    assert!(!home.path("second").exists());
    assert!(first.is_alive());
    first.signal(Signal::INT);
    first.outcome().expect(130);
}

#[test]
fn a_folder_that_holds_a_recording_is_left_as_it_is() {
    let home = Home::new();
    let record = |sets: &[&str]| {
        let output = home.record("out", "1s", sets).output().unwrap();
        common::program::Outcome::of(&output)
    };
    record(&["io.interface=sim"]).expect(0);
    let content = || -> BTreeMap<_, _> {
        let entries = fs::read_dir(home.path("out")).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let before = content();
    let refused = record(&["io.interface=sim", "sim.seed=9"]).expect(2);
    assert!(refused.stderr.contains("already holds a recording"), "{refused:?}");
    assert_eq!(content(), before);
    // Refused before anything is filled.
    record(&[]).expect(2);
    assert_eq!(content(), before);
    assert!(!home.target().exists());
}
