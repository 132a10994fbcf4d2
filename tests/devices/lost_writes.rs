//! Writes reverted after a run: verification finds and names each of them, and nothing else.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;

use crate::common::devices::{Loop, Loops, run as device_run};
use crate::common::is_soak;
use crate::common::recorded::Home;
use crate::real_io::{set, verify};

const PAGE_BYTES: usize = 16 << 10;
const HEADER_BYTES: u64 = 1 << 20;

/// Interfaces and buffering to test, as words for `--set`: first the gate's, then the rest.
const WAYS: [&str; 3] = [
    "io.interface=sync io.buffering=cached",
    "io.interface=libaio io.buffering=direct",
    "io.interface=io_uring io.buffering=direct io.submission=sqpoll",
];
const MORE_WAYS: [&str; 4] = [
    "io.interface=sync io.buffering=direct",
    "io.interface=libaio io.buffering=cached",
    "io.interface=io_uring io.buffering=direct",
    "io.interface=io_uring io.buffering=cached",
];
const PAGES: &str = "io.page_size=16KiB";

fn ways() -> Vec<&'static str> {
    let more = if is_soak() { &MORE_WAYS[..] } else { &[] };
    [&WAYS[..], more].concat()
}

/// A file or device, and the size of the pages written to it.
type Member = (PathBuf, usize);

/// How many writes of each kind are reverted.
fn wanted() -> usize {
    if is_soak() { 1000 } else { 50 }
}

/// MiB of each target, large enough that a short run writes enough pages only once.
fn size_mib() -> u64 {
    if is_soak() { 512 } else { 64 }
}

/// A run in which only the WAL and the background writer do I/O.
fn run(home: &Home, profile: &str, out: &str, way: &str, rate: &str) {
    let rate = format!("background.rate={rate}");
    let time = if is_soak() { "6s" } else { "1s" };
    let sets = ["scan.enabled=false", "point.enabled=false", "wal.rate=none", &*rate, "background.threads=2"];
    let sets = [&way.split(' ').collect::<Vec<_>>()[..], &sets].concat();
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

/// Offsets of a member's pages that were written in between.
fn written(before: &[u8], after: &[u8], page_bytes: usize) -> Vec<u64> {
    let is_written = |at: &u64| {
        let page = *at as usize..*at as usize + page_bytes;
        before[page.clone()] != after[page]
    };
    (HEADER_BYTES..after.len() as u64).step_by(page_bytes).filter(is_written).collect()
}

/// How many pages of a member must be written, so that `count` writes of each kind can be reverted.
fn enough(count: usize) -> usize {
    4 * count
}

/// Reverts pages, reverts half pages, and puts pages of elsewhere in place of others. Returns where.
fn plant((path, page_bytes): &Member, before: &[u8], after: &[u8], count: usize) -> [Vec<u64>; 3] {
    let page = |at: u64| at as usize..at as usize + page_bytes;
    // In these pages both halves changed, so that half an old page is not a whole one.
    let written = written(before, after, *page_bytes);
    assert!(written.len() >= enough(count), "{} pages were written", written.len());
    let spread = written.len() / (3 * count);
    let mut planted: [Vec<u64>; 3] = Default::default();
    let file = open(path);
    for (n, at) in written.iter().step_by(spread).take(3 * count).enumerate() {
        let (content, at_byte) = match n % 3 {
            0 => (&before[page(*at)], 0),
            1 if n % 2 == 0 => (&before[page(*at)][..page_bytes / 2], 0),
            1 => (&before[page(*at)][page_bytes / 2..], *page_bytes as u64 / 2),
            // A write meant for another place has arrived here.
            _ => (&after[page(written[(n * spread + 1) % written.len()])], 0),
        };
        file.write_all_at(content, at + at_byte).unwrap();
        planted[n % 3].push(*at);
    }
    file.sync_all().unwrap();
    planted
}

/// Verification reports exactly the planted damage, in pages of these sizes.
#[track_caller]
fn finds(report: &Value, planted: &[Vec<u64>; 3], members: &[Member]) {
    for (kind, planted) in ["lost", "torn", "misplaced"].into_iter().zip(planted) {
        assert_eq!(report[kind]["pages"], planted.len(), "{kind}: {report:#}");
        for place in report[kind]["first"].as_array().unwrap() {
            let at = place["offset_bytes"].as_u64().unwrap();
            let is_planted = |(_, bytes): &Member| planted.contains(&(at / *bytes as u64 * *bytes as u64));
            assert!(members.iter().any(is_planted), "{kind} at {at}: {report:#}");
        }
    }
    for kind in ["never_written", "foreign", "damaged", "stale", "unreadable"] {
        assert_eq!(report[kind]["sectors"], 0, "{kind}: {report:#}");
    }
}

/// Runs again until enough pages are written, which on a busy machine takes several runs; returns the
/// members' content.
fn write_enough(
    home: &Home,
    profile: &str,
    members: &[Member],
    way: &str,
    before: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    const RUNS_MAX: usize = 30;
    let mut after = before.to_vec();
    for number in 0..RUNS_MAX {
        run(home, profile, &format!("second-{number}"), way, "none");
        after = members.iter().map(|(path, _)| read(path)).collect();
        let is_enough = |(((_, page_bytes), before), after): ((&Member, &Vec<u8>), &Vec<u8>)| {
            written(before, after, *page_bytes).len() >= enough(planted_each(members.len()))
        };
        if members.iter().zip(before).zip(&after).all(is_enough) {
            break;
        }
    }
    after
}

/// Runs twice, first with other pages; reverts writes of the second run, checks the report, restores them.
fn lose_and_find(home: &Home, profile: &str, members: &[Member], way: &str, (first, then): (&str, &str)) {
    run(home, profile, "first", &format!("{way} {first}"), "none");
    let before: Vec<Vec<u8>> = members.iter().map(|(path, _)| read(path)).collect();
    let after = write_enough(home, profile, members, &format!("{way} {then}"), &before);
    verify(home, profile, &[]);
    let mut planted: [Vec<u64>; 3] = Default::default();
    for ((member, before), after) in members.iter().zip(&before).zip(&after) {
        let places = plant(member, before, after, planted_each(members.len()));
        planted.iter_mut().zip(places).for_each(|(all, places)| all.extend(places));
    }
    assert!(planted.iter().all(|places| places.len() >= wanted()));
    let ran = home.run(&["verify", profile, "--json"]);
    ran.ended(1, &["not everything is as written"]);
    finds(&serde_json::from_str(&ran.out).unwrap(), &planted, members);
    // The whole run reverted: the complete image, with its headers.
    for ((path, _), before) in members.iter().zip(&before) {
        let file = open(path);
        file.write_all_at(before, 0).unwrap();
        file.sync_all().unwrap();
    }
    let ran = home.run(&["verify", profile, "--json"]);
    ran.ended(1, &["not everything is as written"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(report["lost"]["pages"].as_u64().unwrap() as usize >= 4 * wanted());
    assert_eq!((&report["torn"]["pages"], &report["foreign"]["pages"]), (&0.into(), &0.into()), "{report:#}");
    for ((path, _), after) in members.iter().zip(&after) {
        let file = open(path);
        file.write_all_at(after, 0).unwrap();
        file.sync_all().unwrap();
    }
    verify(home, profile, &[]);
}

fn planted_each(members: usize) -> usize {
    wanted().div_ceil(members)
}

/// A home with a profile of two files, and these with the WAL's file.
fn files(data_page_bytes: usize, wal_page_bytes: usize) -> (Home, String, [Member; 3]) {
    let home = Home::new();
    let profile = home.small_files("lost");
    let size = format!("{}MiB", size_mib() / 2);
    let text = fs::read_to_string(&profile).unwrap().replace("16MiB", &size);
    fs::write(&profile, text).unwrap();
    let member = |name, page_bytes| (home.path("lost-files").join(name), page_bytes);
    let members =
        [member("data-0", data_page_bytes), member("data-1", data_page_bytes), member("wal", wal_page_bytes)];
    (home, profile, members)
}

#[test]
fn writes_taken_back_from_files_are_all_found() {
    thread::scope(|scope| {
        for way in ways() {
            scope.spawn(move || {
                let (home, profile, members) = files(PAGE_BYTES, PAGE_BYTES);
                lose_and_find(&home, &profile, &members, way, (PAGES, PAGES));
            });
        }
    });
}

/// Smaller pages over larger ones, and other WAL pages, through the page cache, which takes any size.
#[test]
fn writes_of_several_sizes_that_are_taken_back_are_all_found() {
    let (home, profile, members) = files(4096, 1024);
    let then = "background.page_size=4KiB wal.page_size=1KiB";
    let first = "background.page_size=64KiB wal.page_size=64KiB";
    lose_and_find(&home, &profile, &members, "io.buffering=cached", (first, then));
}

#[test]
fn writes_taken_back_from_a_loop_device_are_all_found() {
    let test = "writes_taken_back_from_a_loop_device_are_all_found";
    let Some(loops) = Loops::take(test, ways().len()) else { return };
    let devices: Vec<_> = ways().into_iter().map(|way| (way, loops.blank(size_mib()))).collect();
    let each = |way: &str, device: &Loop| {
        let home = Home::new();
        let profile = home.profile("device", &device.profile());
        lose_and_find(&home, &profile, &[(device.path.clone().into(), PAGE_BYTES)], way, (PAGES, PAGES));
    };
    thread::scope(|scope| {
        for (way, device) in &devices {
            scope.spawn(move || each(way, device));
        }
    });
}

/// The state folder is on a file system mounted read-only, which stops even root.
#[test]
fn verification_writes_nothing_to_the_state_folder() {
    let Some(_loops) = Loops::take("verification_writes_nothing_to_the_state_folder", 0) else { return };
    let (home, profile, _) = files(PAGE_BYTES, PAGE_BYTES);
    run(&home, &profile, "out", PAGES, "1MB/s");
    let state = ReadOnly::of(&home.path("state"));
    verify(&home, &profile, &[]);
    // A run without a map is noticed afterwards.
    home.record(&profile, "unkept", &["--for", "500ms"]).ran.ended(0, &["won't see lost writes", "EROFS"]);
    drop(state);
    let ran = home.run(&["verify", &profile]);
    ran.ended(1, &["not checked for lost writes: its write map is older than the data"]);
}

/// A folder mounted read-only, so that even root can't write to it.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn of(path: &Path) -> Self {
        let at = path.to_str().unwrap();
        device_run("mount", &["--bind", at, at]);
        let mount = Self(path.to_owned());
        device_run("mount", &["-o", "remount,ro,bind", at]);
        mount
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        device_run("umount", &[self.0.to_str().unwrap()]);
    }
}

#[test]
fn without_its_write_map_nothing_counts_as_verified() {
    let home = Home::new();
    let profile = home.small_files("mapless");
    run(&home, &profile, "out", PAGES, "1MB/s");
    fs::remove_dir_all(home.path("state/stacktune/writes")).unwrap();
    let ran = home.run(&["verify", &profile]);
    ran.ended(1, &["not checked for lost writes: it has no write map"]);
    assert!(ran.out.starts_with("lost writes: not checked") && !ran.out.contains("verified"), "{}", ran.out);
    // A run that writes nothing begins an empty map.
    let reads = ["--for", "300ms", "--set", "wal.enabled=false", "--set", "background.enabled=false"];
    home.record(&profile, "read", &reads).ran.ended(0, &[]);
    let ran = home.run(&["verify", &profile]);
    ran.ended(1, &["not checked for lost writes: no run wrote there since the write map began"]);
    assert!(!ran.out.contains("verified"), "{}", ran.out);
    // The next run's writes are checked; the rest is reported as unchecked.
    run(&home, &profile, "next", PAGES, "1MB/s");
    let report = home.run(&["verify", &profile, "--json"]).json();
    let [checked, unchecked] = ["sectors_ok", "sectors_unchecked"].map(|key| report[key].as_u64().unwrap());
    assert!(checked > 0 && unchecked > 0, "{report:#}");
    let thousandths = checked * 1000 / (checked + unchecked);
    let share = format!("{}.{}% checked for lost writes: ", thousandths / 10, thousandths % 10);
    let ran = home.run(&["verify", &profile]);
    assert!(ran.out.starts_with(&share), "{share}: {}", ran.out);
    assert!(ran.out.contains("not checked for lost writes: no run wrote there since"), "{}", ran.out);
    ran.ended(0, &[]);
}
