//! Real I/O through the program: each interface, buffering and class on files and on devices, with errors,
//! limits and forbidden features. Every run ends with a verification.

use std::{fs, thread};

use crate::common;
use crate::common::devices::{Loop, Loops, Mount, run};
use crate::common::recorded::{Home, Recorded, texts};

pub const INTERFACES: [&str; 3] = ["sync", "libaio", "io_uring"];
const BUFFERINGS: [&str; 3] = ["cached", "direct", "uncached"];

/// Every page of a profile's target is as it was written.
#[track_caller]
pub fn verify(home: &Home, profile: &str, sets: &[&str]) {
    let arguments = [&["verify", profile, "--json"][..], &set(sets)].concat();
    let report = home.run(&arguments).json();
    assert_eq!(report["complete"], true, "{report:#}");
    assert!(report["sectors_ok"].as_u64() > Some(0), "{report:#}");
    assert_eq!(report["write_map"]["compared"], true, "{report:#}");
    for kind in ["never_written", "foreign", "misplaced", "damaged", "lost", "stale", "torn", "unreadable"] {
        assert_eq!(report[kind]["sectors"], 0, "{report:#}");
    }
}

/// `--set` before each of them.
pub fn set<'a>(sets: &[&'a str]) -> Vec<&'a str> {
    sets.iter().flat_map(|set| ["--set", set]).collect()
}

/// A short recording with these settings.
pub fn record(home: &Home, profile: &str, out: &str, sets: &[&str], more: &[&str]) -> Recorded {
    let run =
        |time: &str, out: &str| home.record(profile, out, &[&["--for", time][..], &set(sets), more].concat());
    let recorded = run("500ms", out);
    if recorded.ran.status == Some(0) && recorded.starved() {
        // The machine was busy: a second attempt gets more time.
        return run("6s", &format!("{out} again"));
    }
    recorded
}

/// All classes run with these settings, and their writes are verified.
#[track_caller]
fn runs_and_verifies(home: &Home, profile: &str, sets: &[&str], more: &[&str]) -> Recorded {
    let out = format!("out {}", sets.join(" ").replace('/', "-"));
    let recorded = record(home, profile, &out, sets, more);
    recorded.all_classes_ran();
    // The target's own settings find it again; the load's settings do no harm.
    verify(home, profile, sets);
    recorded
}

/// Whether it was refused because the kernel, the file system or the device lacks uncached I/O.
fn refused_uncached(recorded: &Recorded, on: &str) -> bool {
    let refused = recorded.ran.status == Some(2);
    if refused {
        recorded.ran.ended(2, &["can't be uncached: "]);
        common::skip("uncached I/O", &format!("{on} has none"));
        assert!(!recorded.dir.exists(), "a recording without a run");
    }
    refused
}

#[test]
fn every_interface_and_buffering_runs_all_classes_on_files() {
    let each = |interface: &str| {
        for buffering in BUFFERINGS {
            let home = Home::new();
            let profile = home.small_files("small");
            let sets = [format!("io.interface={interface}"), format!("io.buffering={buffering}")];
            let sets = [sets[0].as_str(), sets[1].as_str(), "scan.depth=64"];
            let recorded = record(&home, &profile, "out", &sets, &[]);
            if buffering == "uncached" && refused_uncached(&recorded, "this file system") {
                continue;
            }
            recorded.all_classes_ran();
            verify(&home, &profile, &[]);
        }
    };
    thread::scope(|scope| {
        for interface in INTERFACES {
            scope.spawn(move || each(interface));
        }
    });
}

#[test]
fn a_polled_submission_queue_runs_all_classes_and_wakes_after_its_sleep() {
    let home = Home::new();
    let profile = home.small_files("small");
    // Reads so rare that the kernel's thread sleeps before each of them.
    let rare = ["point.rate=32KB/s", "scan.rate=32KB/s", "wal.rate=32KB/s", "background.rate=32KB/s"];
    for buffering in ["cached", "direct"] {
        for rates in [&[][..], &rare[..]] {
            let buffering = format!("io.buffering={buffering}");
            let mut sets = vec!["io.submission=sqpoll", "io.sqpoll_idle=1ms", buffering.as_str()];
            sets.extend(rates);
            let recorded = record(&home, &profile, &format!("{buffering}-{}", rates.len()), &sets, &[]);
            recorded.all_classes_ran();
            verify(&home, &profile, &[]);
        }
    }
}

#[test]
fn every_interface_and_buffering_runs_all_classes_on_a_direct_loop_device() {
    let test = "every_interface_and_buffering_runs_all_classes_on_a_direct_loop_device";
    let Some(loops) = Loops::take(test, INTERFACES.len()) else { return };
    let devices = INTERFACES.map(|interface| (interface, loops.blank(64)));
    let each = |interface: &str, device: &Loop| {
        let home = Home::new();
        // Somebody's data, which the operator consents to destroy.
        run("mkfs.ext4", &["-q", "-F", &device.path]);
        let profile = home.profile("device", &device.profile());
        let refused = record(&home, &profile, "refused", &[], &[]);
        refused.ran.ended(3, &["ext4 signature", "--destroy"]);
        for buffering in BUFFERINGS {
            let sets = [format!("io.interface={interface}"), format!("io.buffering={buffering}")];
            let sets = [sets[0].as_str(), sets[1].as_str()];
            let destroy: &[&str] = if buffering == "cached" { &["--destroy", &device.path] } else { &[] };
            let recorded = record(&home, &profile, buffering, &sets, destroy);
            if buffering == "uncached" && refused_uncached(&recorded, "a block device") {
                continue;
            }
            let summary = recorded.all_classes_ran();
            assert!(summary["members"][0]["block_read_bytes"].is_u64(), "{summary:#}");
            verify(&home, &profile, &[]);
        }
    };
    thread::scope(|scope| {
        for (interface, device) in &devices {
            scope.spawn(move || each(interface, device));
        }
    });
}

#[test]
fn every_page_size_and_mixtures_of_them_cover_the_same_bytes() {
    let home = Home::new();
    let profile = home.small_files("pages");
    let sizes = [
        "512B", "1KiB", "2KiB", "4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "512KiB",
        "1MiB",
    ];
    let limit = smallest_direct_page_bytes(&home);
    for pair in sizes.chunks(2) {
        // Two sizes at a time: pages written in one size are read in the other.
        let buffering =
            if size_bytes(pair[0]) < limit { "io.buffering=cached" } else { "io.buffering=direct" };
        let sets = [
            format!("scan.page_size={}", pair[1]),
            format!("point.page_size={}", pair[0]),
            format!("wal.page_size={}", pair[0]),
            format!("background.page_size={}", pair[1]),
        ];
        let sets = [buffering, &sets[0], &sets[1], &sets[2], &sets[3]];
        let recorded = home.record(&profile, pair[0], &[&["--for", "1s"][..], &set(&sets)].concat());
        recorded.all_classes_ran();
    }
    verify(&home, &profile, &[]);
}

/// The smallest page size for direct I/O in the home folder, found by trying.
fn smallest_direct_page_bytes(home: &Home) -> u64 {
    let profile = home.small_files("limit");
    let tried = record(home, &profile, "limit", &["io.page_size=512B", "run.window=100ms"], &[]);
    if tried.ran.status == Some(0) {
        return 512;
    }
    tried.ran.ended(2, &["io.page_size", "512B"]);
    4096
}

fn size_bytes(text: &str) -> u64 {
    stacktune::testing::units::parse_size(text).unwrap()
}

#[test]
fn every_way_to_commit_runs_and_verifies() {
    let each = |interface: &str| {
        let home = Home::new();
        let profile = home.small_files("commit");
        let interface_set = format!("io.interface={interface}");
        for (sync, every) in [("fdatasync", "1"), ("fdatasync", "8"), ("dsync", "1"), ("none", "1")] {
            let sets = [format!("wal.sync={sync}"), format!("wal.sync_every={every}")];
            // Eight outstanding writes, so that a flush has something to wait for.
            let sets = [interface_set.as_str(), &sets[0], &sets[1], "wal.depth=8"];
            let out = format!("{sync} {every}");
            let summary = record(&home, &profile, &out, &sets, &[]).all_classes_ran();
            let wal = &summary["classes"]["wal"];
            let (ios, commits) = (wal["ios"].as_u64().unwrap(), wal["service_ns"]["count"].as_u64().unwrap());
            let flushes = wal["flush_ns"]["count"].as_u64().unwrap_or(0);
            // A few may complete between two reads of the counters.
            let close = |a: u64, b: u64| a.abs_diff(b) <= 16;
            // At the end each stream may have writes without a flush; `sync` has eight streams.
            let streams = if interface == "sync" { 8 } else { 1 };
            let open = if sync == "fdatasync" { streams * every.parse::<u64>().unwrap() } else { 0 };
            assert!(commits > 0 && commits <= ios + 16 && ios <= commits + open + 16, "{sync}: {wal:#}");
            match (sync, every) {
                ("fdatasync", "1") => assert!(close(flushes, commits), "{wal:#}"),
                // A stream's last flush may cover fewer.
                ("fdatasync", _) => assert!(
                    flushes * 8 + 16 >= commits && flushes * 8 <= commits + 16 + 8 * streams,
                    "{wal:#}"
                ),
                _ => assert_eq!(flushes, 0, "{wal:#}"),
            }
            let durable = !texts(&wal["flags"]).contains(&"not durable");
            assert_eq!(durable, sync != "none", "{wal:#}");
        }
        verify(&home, &profile, &[]);
    };
    thread::scope(|scope| {
        for interface in INTERFACES {
            scope.spawn(move || each(interface));
        }
    });
}

#[test]
fn the_wal_lies_in_a_file_of_its_own() {
    let home = Home::new();
    let profile = home.small_files("elsewhere");
    fs::create_dir(home.path("other")).unwrap();
    let wal = home.path("other/log");
    let target = format!("wal.target={}", wal.display());
    let recorded = runs_and_verifies(&home, &profile, &[&target], &[]);
    let summary = recorded.summary();
    let members = summary["members"].as_array().unwrap();
    assert_eq!(members.len(), 3, "{summary:#}");
    assert_eq!(members[2]["written_bytes"], summary["classes"]["wal"]["bytes"], "{summary:#}");
    assert!(fs::metadata(&wal).unwrap().len() > 1 << 20);
    assert!(!home.path("elsewhere-files/wal").exists(), "a WAL file that nothing uses");
}

#[test]
fn the_wal_lies_on_a_device_of_its_own() {
    let Some(loops) = Loops::take("the_wal_lies_on_a_device_of_its_own", 1) else { return };
    let device = loops.blank(64);
    let home = Home::new();
    let profile = home.small_files("files");
    let target = format!("wal.target={}", device.path);
    run("mkswap", &["-q", &device.path]);
    let refused = record(&home, &profile, "refused", &[&target], &[]);
    refused.ran.ended(3, &["swap signature"]);
    let before = device.block_bytes().1;
    let recorded = runs_and_verifies(&home, &profile, &[&target], &["--destroy", &device.path]);
    let summary = recorded.summary();
    let written = summary["classes"]["wal"]["bytes"].as_u64().unwrap();
    assert!(device.block_bytes().1 - before >= written);
    assert_eq!(summary["members"][2]["written_bytes"], written, "{summary:#}");
}

#[test]
fn hot_pages_and_runs_of_pages_run() {
    let home = Home::new();
    let profile = home.small_files("offsets");
    for offsets in ["zipf", "runs"] {
        let sets = ["scan", "point", "background"].map(|class| format!("{class}.offsets={offsets}"));
        let sets = [&*sets[0], &*sets[1], &*sets[2], "scan.zipf_theta=1.2", "point.jump_share=0.1"];
        record(&home, &profile, offsets, &sets, &[]).all_classes_ran();
    }
    verify(&home, &profile, &[]);
}

/// Content of no known format, different everywhere.
fn noise(path: &std::path::Path) {
    let size = fs::metadata(path).unwrap().len();
    let word = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    let bytes: Vec<u8> = (0..size / 8).flat_map(word).collect();
    fs::write(path, bytes).unwrap();
}

#[test]
fn read_only_works_on_a_foreign_device_and_changes_nothing() {
    let test = "read_only_works_on_a_foreign_device_and_changes_nothing";
    let Some(loops) = Loops::take(test, 1) else { return };
    let device = loops.device(64, noise);
    let (home, before, written) = (Home::new(), device.hash(), device.block_bytes().1);
    let profile = home.profile("foreign", &device.profile());
    for interface in INTERFACES {
        let interface = &*format!("io.interface={interface}");
        let recorded = record(&home, &profile, &interface.replace('/', "-"), &[interface], &["--read-only"]);
        let summary = recorded.summary();
        for class in ["scan", "point"] {
            let figures = &summary["classes"][class];
            assert!(figures["ios"].as_u64() > Some(0), "{summary:#}");
            assert!(texts(&figures["flags"]).contains(&"unfilled"), "{summary:#}");
        }
        for class in ["wal", "background"] {
            assert_eq!(
                (&summary["classes"][class]["bytes"], &summary["classes"][class]["state"]),
                (&0.into(), &"off".into())
            );
        }
    }
    assert_eq!((device.hash(), device.block_bytes().1), (before, written), "something was written");
}

#[test]
fn read_only_works_on_a_mounted_device_at_a_gentle_rate() {
    let test = "read_only_works_on_a_mounted_device_at_a_gentle_rate";
    let Some(loops) = Loops::take(test, 1) else { return };
    let device = loops.blank(64);
    run("mkfs.ext4", &["-q", "-F", &device.path]);
    let _mount = Mount::of(&device, "ro,noload");
    let (home, before) = (Home::new(), device.hash());
    let profile = home.profile("mounted", &device.profile());
    let refused = record(&home, &profile, "refused", &[], &["--destroy", &device.path]);
    refused.ran.ended(3, &["mounted at"]);
    let recorded = record(&home, &profile, "out", &[], &["--read-only"]);
    let summary = recorded.summary();
    let scan = &summary["classes"]["scan"];
    assert_eq!(scan["target_mb_per_s"], 100.0, "{summary:#}");
    let rate = scan["mb_per_s"].as_f64().unwrap();
    // Plus at most one batch that came late.
    assert!(rate > 0.0 && rate < 105.0, "{summary:#}");
    assert!(texts(&summary["flags"]).contains(&"mounted"), "{summary:#}");
    let faster = record(&home, &profile, "faster", &["scan.rate=150MB/s"], &["--read-only"]);
    assert_eq!(faster.summary()["classes"]["scan"]["target_mb_per_s"], 150.0);
    assert_eq!(device.hash(), before, "something was written");
}
