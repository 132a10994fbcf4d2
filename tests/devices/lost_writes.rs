//! Writes that are taken back after a run: verification finds every one of them, names it, and nothing else.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;

use crate::common::devices::{Loop, Loops};
use crate::common::is_soak;
use crate::common::recorded::Home;
use crate::real_io::{INTERFACES, set, verify};

const PAGE_BYTES: usize = 16 << 10;
const HEADER_BYTES: u64 = 1 << 20;

/// How many writes of each kind are taken back.
fn wanted() -> usize {
    if is_soak() { 1000 } else { 50 }
}

/// MiB of each target, so that a short run writes enough pages that are not written again.
fn size_mib() -> u64 {
    if is_soak() { 512 } else { 64 }
}

/// A run in which the WAL and the background writer write, and nothing is read.
fn run(home: &Home, profile: &str, out: &str, interface: &str, rate: &str) {
    let (interface, rate) = (format!("io.interface={interface}"), format!("background.rate={rate}"));
    let time = if is_soak() { "6s" } else { "1s" };
    let sets = [
        &*interface,
        "io.page_size=16KiB",
        "scan.enabled=false",
        "point.enabled=false",
        &*rate,
        "background.threads=2",
    ];
    let arguments = [&["--for", time, "--verify"][..], &set(&sets)].concat();
    home.record(profile, out, &arguments).ran.ended(0, &["verified as written"]);
}

/// The content of a member.
fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

fn open(path: &Path) -> File {
    OpenOptions::new().write(true).open(path).unwrap()
}

/// Where the pages of a member begin that were written in between.
fn written(before: &[u8], after: &[u8]) -> Vec<u64> {
    let is_written = |at: &u64| {
        let page = *at as usize..*at as usize + PAGE_BYTES;
        before[page.clone()] != after[page]
    };
    (HEADER_BYTES..after.len() as u64).step_by(PAGE_BYTES).filter(is_written).collect()
}

/// How many pages of a member have to be written, so that `count` writes of each kind can be taken back.
fn enough(count: usize) -> usize {
    4 * count
}

/// Takes writes back: pages of before, half pages of before, and pages of elsewhere. Returns where.
fn plant(path: &Path, before: &[u8], after: &[u8], count: usize) -> [Vec<u64>; 3] {
    let page = |at: u64| at as usize..at as usize + PAGE_BYTES;
    // Both halves of these were written, so that half a page of before is not a whole one.
    let written = written(before, after);
    assert!(written.len() >= enough(count), "{} pages were written", written.len());
    let spread = written.len() / (3 * count);
    let mut planted: [Vec<u64>; 3] = Default::default();
    let file = open(path);
    for (n, at) in written.iter().step_by(spread).take(3 * count).enumerate() {
        let (content, at_byte) = match n % 3 {
            0 => (&before[page(*at)], 0),
            1 if n % 2 == 0 => (&before[page(*at)][..PAGE_BYTES / 2], 0),
            1 => (&before[page(*at)][PAGE_BYTES / 2..], PAGE_BYTES as u64 / 2),
            // What was written elsewhere has arrived here.
            _ => (&after[page(written[(n * spread + 1) % written.len()])], 0),
        };
        file.write_all_at(content, at + at_byte).unwrap();
        planted[n % 3].push(*at);
    }
    file.sync_all().unwrap();
    planted
}

/// What verification reports: exactly what was planted.
#[track_caller]
fn finds(report: &Value, planted: &[Vec<u64>; 3]) {
    for (kind, planted) in ["lost", "torn", "misplaced"].into_iter().zip(planted) {
        assert_eq!(report[kind]["pages"], planted.len(), "{kind}: {report:#}");
        for place in report[kind]["first"].as_array().unwrap() {
            let at = place["offset_bytes"].as_u64().unwrap();
            let page = at / PAGE_BYTES as u64 * PAGE_BYTES as u64;
            assert!(planted.contains(&page), "{kind} at {at}: {report:#}");
        }
    }
    for kind in ["never_written", "foreign", "damaged", "stale", "unreadable"] {
        assert_eq!(report[kind]["sectors"], 0, "{kind}: {report:#}");
    }
}

/// Runs again until enough pages were written, which on a busy machine takes more than one run; returns the members'
/// content.
fn write_enough(
    home: &Home,
    profile: &str,
    members: &[PathBuf],
    interface: &str,
    before: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    const RUNS_MAX: usize = 8;
    let mut after = before.to_vec();
    for number in 0..RUNS_MAX {
        run(home, profile, &format!("second-{number}"), interface, "none");
        after = members.iter().map(|path| read(path)).collect();
        let is_enough = |(before, after): (&Vec<u8>, &Vec<u8>)| {
            written(before, after).len() >= enough(planted_each(members.len()))
        };
        if before.iter().zip(&after).all(is_enough) {
            break;
        }
    }
    after
}

/// Runs twice, takes writes of the second run back, and puts them in place again.
fn lose_and_find(home: &Home, profile: &str, members: &[PathBuf], interface: &str) {
    run(home, profile, "first", interface, "none");
    let before: Vec<Vec<u8>> = members.iter().map(|path| read(path)).collect();
    let after = write_enough(home, profile, members, interface, &before);
    verify(home, profile, &[]);
    let mut planted: [Vec<u64>; 3] = Default::default();
    for ((path, before), after) in members.iter().zip(&before).zip(&after) {
        let places = plant(path, before, after, planted_each(members.len()));
        planted.iter_mut().zip(places).for_each(|(all, places)| all.extend(places));
    }
    assert!(planted.iter().all(|places| places.len() >= wanted()));
    let ran = home.run(&["verify", profile, "--json"]);
    ran.ended(1, &["not everything is as written"]);
    finds(&serde_json::from_str(&ran.out).unwrap(), &planted);
    // All of the run taken back: the whole image, with its headers.
    for (path, before) in members.iter().zip(&before) {
        let file = open(path);
        file.write_all_at(before, 0).unwrap();
        file.sync_all().unwrap();
    }
    let ran = home.run(&["verify", profile, "--json"]);
    ran.ended(1, &["not everything is as written"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(report["lost"]["pages"].as_u64().unwrap() as usize >= 4 * wanted());
    assert_eq!((&report["torn"]["pages"], &report["foreign"]["pages"]), (&0.into(), &0.into()), "{report:#}");
    for (path, after) in members.iter().zip(&after) {
        let file = open(path);
        file.write_all_at(after, 0).unwrap();
        file.sync_all().unwrap();
    }
    verify(home, profile, &[]);
}

fn planted_each(members: usize) -> usize {
    wanted().div_ceil(members)
}

#[test]
fn writes_taken_back_from_files_are_all_found() {
    thread::scope(|scope| {
        for interface in INTERFACES {
            scope.spawn(move || {
                let home = Home::new();
                let profile = home.small_files("lost");
                let size = format!("{}MiB", size_mib() / 2);
                let text = fs::read_to_string(&profile).unwrap().replace("16MiB", &size);
                fs::write(&profile, text).unwrap();
                let members = ["data-0", "data-1"].map(|name| home.path("lost-files").join(name));
                lose_and_find(&home, &profile, &members, interface);
            });
        }
    });
}

#[test]
fn writes_taken_back_from_a_loop_device_are_all_found() {
    let test = "writes_taken_back_from_a_loop_device_are_all_found";
    let Some(loops) = Loops::take(test, INTERFACES.len()) else { return };
    let devices = INTERFACES.map(|interface| (interface, loops.blank(size_mib())));
    let each = |interface: &str, device: &Loop| {
        let home = Home::new();
        let profile = home.profile("device", &device.profile());
        lose_and_find(&home, &profile, &[device.path.clone().into()], interface);
    };
    thread::scope(|scope| {
        for (interface, device) in &devices {
            scope.spawn(move || each(interface, device));
        }
    });
}

#[test]
fn without_its_write_map_nothing_counts_as_verified() {
    let home = Home::new();
    let profile = home.small_files("mapless");
    run(&home, &profile, "out", "sync", "1MB/s");
    fs::remove_dir_all(home.path("state/stacktune/writes")).unwrap();
    let ran = home.run(&["verify", &profile]);
    ran.ended(1, &["not checked for lost writes: it has no write map"]);
    assert!(ran.out.starts_with("lost writes: not checked") && !ran.out.contains("verified"), "{}", ran.out);
    // The next run begins one: what it writes is checked, and of the rest that is said.
    run(&home, &profile, "next", "sync", "1MB/s");
    let report = home.run(&["verify", &profile, "--json"]).json();
    assert!(report["sectors_unchecked"].as_u64() > Some(0), "{report:#}");
    assert!(report["sectors_ok"].as_u64() > Some(0), "{report:#}");
}
