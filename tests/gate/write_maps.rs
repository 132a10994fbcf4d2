//! Write maps that don't match the data: reverted, cut, damaged, another data set's, a copy's. Then nothing
//! is verified or reported lost, and the next run begins a new map. And runs killed while writing.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::common::is_soak;
use crate::common::program::{Home, MODEST, Outcome, Running, json_lines, wait_for};
use rustix::process::Signal;

const NOT_CHECKED: &str = "not checked for lost writes";

/// Little is read, so that a short run writes a lot.
fn writing() -> Vec<&'static str> {
    [&MODEST[..3], &["background.rate=20MB/s", "run.window=100ms"]].concat()
}

fn run(home: &Home, out: &str) -> Outcome {
    Outcome::of(&home.record(out, "500ms", &writing()).output().unwrap()).expect(0)
}

/// The only write map in a home.
fn map(home: &Home) -> PathBuf {
    let maps = fs::read_dir(home.path("state/stacktune/writes")).unwrap();
    let [map] = maps.map(|entry| entry.unwrap().path()).collect::<Vec<_>>().try_into().unwrap();
    map
}

/// Verification reports that nothing was compared, and why; nothing is reported as lost or verified.
#[track_caller]
fn not_checked(home: &Home, why: &str) {
    let verified = home.verify();
    assert_eq!(verified.status, Some(1), "{verified:?}");
    assert!(verified.stderr.contains(NOT_CHECKED) && verified.stderr.contains(why), "{why}: {verified:?}");
    let report: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!((&report["write_map"]["compared"], &report["sectors_ok"]), (&false.into(), &0.into()));
    for kind in ["lost", "stale", "torn", "misplaced", "damaged", "foreign", "never_written"] {
        assert_eq!(report[kind]["sectors"], 0, "{kind}: {report:#}");
    }
}

/// Everything is as written, according to a comparison with the map.
#[track_caller]
fn verified(home: &Home) -> Value {
    let report = home.verify().expect(0).json();
    assert_eq!(report["write_map"]["compared"], true, "{report:#}");
    report
}

#[test]
fn a_map_that_is_older_than_its_data_is_not_believed() {
    let home = Home::new();
    run(&home, "first");
    verified(&home);
    let map = map(&home);
    let earlier = fs::read(&map).unwrap();
    // A copy from the middle of this same run, with the same run number.
    let running = Running::start(&mut home.record("second", "2s", &writing()));
    let windows = home.path("second/windows.jsonl");
    wait_for("windows", || (json_lines(&windows).len() >= 4).then_some(()));
    let middle = fs::read(&map).unwrap();
    running.outcome().expect(0);
    let last = fs::read(&map).unwrap();
    for older in [earlier, middle] {
        fs::write(&map, older).unwrap();
        not_checked(&home, "its write map is older than the data");
    }
    fs::write(&map, last).unwrap();
    verified(&home);
}

#[test]
fn a_map_that_was_cut_damaged_or_exchanged_is_not_believed_and_replaced() {
    let home = Home::new();
    run(&home, "first");
    let path = map(&home);
    let sound = fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut map = sound.clone();
        map[at] ^= 0x10;
        map
    };
    // A used word of the table.
    let word = (4096..sound.len()).step_by(8).find(|at| sound[*at..at + 8] != [0; 8]).unwrap();
    let other = Home::new();
    run(&other, "other");
    let others = fs::read(map(&other)).unwrap();
    let damaged = "its write map is damaged";
    for (bytes, why) in [
        (sound[..sound.len() / 2].to_vec(), damaged),
        (sound[..4096].to_vec(), damaged),
        (Vec::new(), "it has no write map"),
        (flipped(32), damaged),
        (flipped(80), damaged),
        (flipped(word + 2), damaged),
        (flipped(word + 7), damaged),
        (flipped(3), damaged),
        (flipped(17), "the write map belongs to another data set"),
        (others, "the write map belongs to another data set"),
    ] {
        fs::write(&path, &bytes).unwrap();
        not_checked(&home, why);
    }
    // The run that finds damage only when it uses the map reports it; the next run begins a new map.
    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    run(&home, "second");
    let report = verified(&home);
    assert!(report["sectors_unchecked"].as_u64() > Some(0), "{report:#}");
    assert!(report["sectors_ok"].as_u64() > Some(0), "{report:#}");
}

#[test]
fn of_two_runs_on_copies_of_a_data_set_one_keeps_its_map() {
    let home = Home::new();
    run(&home, "first");
    let (original, copy) = (home.target(), home.path("copy"));
    fs::create_dir(&copy).unwrap();
    for file in fs::read_dir(&original).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    let to_copy = format!("target.files.dir={}", copy.display());
    let keeps = Running::start(&mut home.record("second", "10m", &writing()));
    let windows = home.path("second/windows.jsonl");
    wait_for("windows", || (!json_lines(&windows).is_empty()).then_some(()));
    let second = [&writing()[..], &[&to_copy]].concat();
    let beside = Outcome::of(&home.record("beside", "500ms", &second).output().unwrap()).expect(0);
    let held = "another run keeps its write map";
    assert!(beside.stderr.contains("won't see lost writes") && beside.stderr.contains(held), "{beside:?}");
    let verify = || {
        let mut verify = home.command(["verify", "demo", "--json"]);
        Outcome::of(&verify.args(home.sets(&[&to_copy])).output().unwrap())
    };
    let meanwhile = verify();
    assert!(meanwhile.status == Some(1) && meanwhile.stderr.contains(held), "{meanwhile:?}");
    keeps.signal(Signal::INT);
    keeps.outcome();
    verified(&home);
    let afterwards = verify();
    assert!(afterwards.status == Some(1) && afterwards.stderr.contains(NOT_CHECKED), "{afterwards:?}");
    let report: Value = serde_json::from_str(&afterwards.stdout).unwrap();
    assert_eq!((&report["lost"]["pages"], &report["sectors_ok"]), (&0.into(), &0.into()), "{report:#}");
}

/// Runs killed at any moment, verified before and after the next one begins: I/O in flight is either old or
/// new.
#[test]
fn after_kills_at_any_moment_nothing_is_reported_that_is_not_so() {
    let home = Home::new();
    run(&home, "first");
    let kills = if is_soak() { 48 } else { 6 };
    let interfaces = ["sync", "libaio", "io_uring"];
    let sizes = ["4KiB", "16KiB", "64KiB"];
    for kill in 0..kills {
        let interface = format!("io.interface={}", interfaces[kill % 3]);
        let (wal, background) = (sizes[kill / 3 % 3], sizes[kill % 3]);
        let sizes = [format!("wal.page_size={wal}"), format!("background.page_size={background}")];
        let rates = ["scan.enabled=false", "point.enabled=false", "wal.rate=none", "background.rate=none"];
        let depths = ["wal.depth=8", "background.depth=16", "background.threads=2", "io.buffering=direct"];
        let sets = [&rates[..], &depths, &[&*interface, &*sizes[0], &*sizes[1], "run.window=100ms"]].concat();
        let out = format!("killed-{kill}");
        let running = Running::start(&mut home.record(&out, "10m", &sets));
        let windows = home.path(&out).join("windows.jsonl");
        wait_for("a window", || (!json_lines(&windows).is_empty()).then_some(()));
        // Somewhere within the next tenth of a second.
        std::thread::sleep(Duration::from_micros(kill as u64 * 37_813 % 100_000));
        running.signal(Signal::KILL);
        assert_eq!(running.outcome().status, None);
        if kill % 2 == 0 {
            verified(&home);
        }
    }
    verified(&home);
}
