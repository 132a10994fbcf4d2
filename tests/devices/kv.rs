//! The load on RocksDB: loaded pairs are found again, acknowledged commits survive a killed process, a full
//! disk, the engine's own counts against ours, and live turns.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common;
use crate::common::devices::{Loop, Loops, Mount, has, run};
use crate::common::kv_session::{DEVICES, STACKS, few_pairs, turns_each_kind, was_the_session};
use crate::common::operator::Operator;
use crate::common::program::{Home, Outcome, Running, json_file, json_lines, wait_for};
use crate::common::{is_soak, this_test};
use rustix::process::Signal;
use serde_json::Value;
use stacktune::testing::runs::session::Options;
use tempfile::TempDir;

/// All four classes on 20,000 small pairs.
const SMALL: [&str; 12] = [
    "load.engine=rocksdb",
    "kv.pairs=20000",
    "kv.value_size=400",
    "rocksdb.write_buffer=1MiB",
    "rocksdb.file_size=1MiB",
    "rocksdb.level_base=2MiB",
    "scan.depth=1",
    "point.misses=20%",
    "wal.rate=200kB/s",
    "background.rate=4MB/s",
    "background.reads=25%",
    "run.window=200ms",
];

fn sets(dir: &Path, more: &[&str]) -> Vec<String> {
    let target = format!("--set=target.files.dir={}", dir.display());
    let sets = SMALL.iter().chain(more).map(|set| format!("--set={set}"));
    [target].into_iter().chain(sets).collect()
}

fn record(home: &Home, dir: &Path, out: &str, time: &str, more: &[&str]) -> Command {
    let mut command = home.command(["record", "rocksdb", "--for", time, "--json", "--out"]);
    command.arg(home.path(out)).args(sets(dir, more));
    command
}

fn recorded(home: &Home, dir: &Path, out: &str, more: &[&str]) -> (Value, Outcome) {
    let outcome = Outcome::of(&record(home, dir, out, "2s", more).output().unwrap()).expect(0);
    (json_file(&home.path(out).join("summary.json")), outcome)
}

fn verify(home: &Home, dir: &Path, more: &[&str]) -> Value {
    let mut command = home.command(["verify", "rocksdb", "--json"]);
    Outcome::of(&command.args(sets(dir, more)).output().unwrap()).expect(0).json()
}

fn count(summary: &Value, path: &str) -> f64 {
    summary.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} of {summary}"))
}

fn whole(summary: &Value, path: &str) -> u64 {
    summary.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} of {summary}"))
}

/// All classes have run, and the engine's own counts match ours.
#[track_caller]
fn assert_plausible(summary: &Value) {
    for class in ["scan", "point", "wal", "background"] {
        assert!(count(summary, &format!("/classes/{class}/ios")) > 10.0, "{class}: {summary}");
        assert_eq!(whole(summary, &format!("/classes/{class}/errors")), 0, "{class}: {summary}");
    }
    let put = count(summary, "/engine/user_written_bytes");
    let log = count(summary, "/engine/log_bytes");
    // The log holds each key and value plus a few bytes of overhead.
    assert!(log >= put && log < put * 1.2, "{log} of log for {put} put");
    let members = summary["members"].as_array().unwrap();
    let ours: u64 = members.iter().map(|member| whole(member, "/written_bytes")).sum();
    assert_eq!(ours, whole(summary, "/engine/user_written_bytes"));
    // The engine's part of WA-A is computed from these counts.
    let of_engine = ["log_bytes", "flush_bytes", "compaction_written_bytes"];
    let wrote: u64 = of_engine.iter().map(|field| whole(summary, &format!("/engine/{field}"))).sum();
    assert_eq!(whole(summary, "/written/application_bytes"), ours);
    assert_eq!(whole(summary, "/written/engine_bytes"), wrote);
    assert!((count(summary, "/wa_a_parts/engine") - wrote as f64 / put).abs() < 1e-6, "{summary}");
    // All pairs are in the folder, and are not compressible.
    assert!(count(summary, "/space_amplification") > 0.9, "{summary}");
    // Each commit synced the log, and nothing else did.
    let (syncs, commits) = (count(summary, "/engine/log_syncs"), count(summary, "/classes/wal/ios"));
    assert!((syncs - commits).abs() <= 3.0, "{syncs} syncs for {commits} commits");
    // A point read gets a pair of 416 B, or a key that doesn't exist.
    let mean = count(summary, "/classes/point/bytes") / count(summary, "/classes/point/ios");
    assert!((mean - (0.8 * 416.0 + 0.2 * 16.0)).abs() < 60.0, "{mean} B a get");
    // The two counts are read one after the other: a range may finish in between.
    let (bytes, ranges) = (count(summary, "/classes/scan/bytes"), count(summary, "/classes/scan/ios"));
    let all = 128.0 * 416.0;
    assert!(bytes > 0.9 * all * ranges && bytes <= all * (ranges + 1.0), "{bytes} B of {ranges} ranges");
}

#[test]
fn all_classes_run_and_what_is_loaded_is_found_again() {
    let home = Home::new();
    let dir = home.target();
    let (summary, first) = recorded(&home, &dir, "first", &[]);
    assert_plausible(&summary);
    assert!(first.stderr.contains("loading"), "{}", first.stderr);
    let (_, second) = recorded(&home, &dir, "second", &[]);
    assert!(!second.stderr.contains("loading"), "{}", second.stderr);
    let report = verify(&home, &dir, &[]);
    assert!(report["pairs_ok"].as_u64().unwrap() >= 20_000, "{report}");
    assert_eq!(
        (&report["complete"], &report["missing"], &report["damaged"]),
        (&true.into(), &0.into(), &0.into())
    );
    let shown = home.run(["show".as_ref(), home.path("second").as_os_str()]).expect(0).stdout;
    assert!(shown.contains("RocksDB writes") && shown.contains("rocksdb.db.get"), "{shown}");
    // A refused load beyond the write limit removes nothing.
    let over = ["kv.pairs=30000", "run.max_writes=1MiB"];
    let refused = Outcome::of(&record(&home, &dir, "over", "1s", &over).output().unwrap()).expect(2);
    assert!(refused.stderr.contains("run.max_writes is 1MiB"), "{}", refused.stderr);
    assert_eq!(verify(&home, &dir, &[])["complete"], true);
    // Pairs on a stack can't be verified afterwards.
    let mut stacked = home.command(["verify", "rocksdb", "--set=stack.filesystem=ext4"]);
    let refused = Outcome::of(&stacked.args(sets(&dir, &[])).output().unwrap()).expect(2);
    assert!(refused.stderr.contains("which is taken down with the run"), "{}", refused.stderr);
    // Other pairs replace these.
    let (_, third) = recorded(&home, &dir, "third", &["kv.value_size=100", "kv.order=random"]);
    assert!(third.stderr.contains("is replaced"), "{}", third.stderr);
    // A database that is not ours stays.
    fs::remove_file(dir.join("stacktune-pairs.json")).unwrap();
    let refused = Outcome::of(&record(&home, &dir, "fourth", "1s", &[]).output().unwrap()).expect(3);
    assert!(refused.stderr.contains("no stacktune marker"), "{}", refused.stderr);
    assert!(dir.join("rocksdb/CURRENT").exists());
}

#[test]
fn file_systems_take_it_and_the_device_counts_the_same() {
    let home = Home::new();
    let Some(loops) = Loops::take("pairs: file systems", 1) else { return };
    let all = [("xfs", 320), ("ext4", 256), ("btrfs", 320)];
    for &(filesystem, mib) in &all[..if is_soak() { 3 } else { 1 }] {
        let tool = format!("mkfs.{filesystem}");
        if !has(&tool) {
            common::skip(&format!("pairs: {filesystem}"), &format!("needs {tool}"));
            continue;
        }
        let device = loops.device(mib, |path| drop(run(&tool, &["-q", path.to_str().unwrap()])));
        let mount = Mount::of(&device, "noatime");
        let dir = mount.at.path().join("set");
        let (summary, _) = recorded(&home, &dir, filesystem, &[]);
        assert_plausible(&summary);
        assert_is_what_the_device_counts(&home, &dir, filesystem, &device);
        let report = verify(&home, &dir, &[]);
        assert_eq!(
            (&report["complete"], &report["missing"], &report["damaged"]),
            (&true.into(), &0.into(), &0.into())
        );
    }
}

/// The drives' figures in a run on loaded pairs must match the block layer's count over the same time.
fn assert_is_what_the_device_counts(home: &Home, dir: &Path, filesystem: &str, device: &Loop) {
    const WINDOWS: usize = 20;
    let out = format!("{filesystem}-counted");
    let running = Running::start(&mut record(home, dir, &out, "10s", &["run.window=250ms"]));
    let out = home.path(&out);
    let (from, at_first) = device.written_by_window(&out, 1);
    let (to, at_last) = device.written_by_window(&out, from + WINDOWS);
    running.signal(Signal::INT);
    running.outcome();
    let windows = json_lines(&out.join("windows.jsonl"));
    let recorded: u64 = windows[from..to].iter().map(|window| whole(window, "/written/drives_bytes")).sum();
    let off = recorded as f64 / (at_last - at_first) as f64 - 1.0;
    // Writes between a window's end and the counter's reading are in only one of the two counts.
    assert!(off.abs() < 0.15, "{filesystem}: {recorded} recorded, {} counted", at_last - at_first);
}

#[test]
fn pages_and_pairs_stand_side_by_side() {
    let home = Home::new();
    let dir = home.target();
    recorded(&home, &dir, "pairs", &[]);
    let mut pages = home.command(["record", "demo", "--for", "2s", "--out"]);
    pages.arg(home.path("pages")).args(home.sets(&["target.files.size=32MiB", "run.window=200ms"]));
    Outcome::of(&pages.output().unwrap()).expect(0);
    let mut compare = home.command(["compare", "--json"]);
    let compared = compare.arg(home.path("pages")).arg(home.path("pairs")).output().unwrap();
    let compared = Outcome::of(&compared).expect(0).json();
    let differs = compared["differences"].to_string();
    assert!(differs.contains("load.engine") && differs.contains("rocksdb"), "{differs}");
    let rows = compared["rows"].as_array().unwrap();
    for wanted in ["total.cycles_per_byte", "total.cycles_per_op"] {
        let row = rows.iter().find(|row| row["figure"] == wanted);
        let row = row.unwrap_or_else(|| panic!("no {wanted} in {compared:#}"));
        let recorded = |cell: &Value| cell["value"].as_f64().is_some_and(|value| value > 0.0);
        assert_eq!(
            row["cells"].as_array().unwrap().iter().filter(|cell| recorded(cell)).count(),
            2,
            "{row:#}"
        );
    }
}

#[test]
fn loading_that_was_killed_goes_on() {
    let home = Home::new();
    let dir = home.target();
    let more = ["kv.pairs=400000", "kv.order=random"];
    let running = Running::start(&mut record(&home, &dir, "killed", "1s", &more));
    wait_for("some files", || {
        let files = fs::read_dir(dir.join("rocksdb")).ok()?.flatten();
        (files.filter(|file| file.path().extension().is_some_and(|e| e == "sst")).count() > 5).then_some(())
    });
    running.signal(Signal::KILL);
    running.outcome();
    let (_, second) = recorded(&home, &dir, "second", &more);
    assert!(second.stderr.contains("loading"), "{}", second.stderr);
    let report = verify(&home, &dir, &more);
    assert_eq!((&report["complete"], &report["missing"]), (&true.into(), &0.into()), "{report}");
}

#[test]
fn every_commit_that_was_acknowledged_survives_a_killed_process() {
    let home = Home::new();
    let (dir, acks) = (home.target(), home.path("acks"));
    let noted = format!("wal.acks={}", acks.display());
    let more = [noted.as_str(), "wal.rate=none", "wal.depth=4", "scan.enabled=false"];
    let planned = record(&home, &dir, "none", "1s", &more).arg("--dry-run").output().unwrap();
    let planned = Outcome::of(&planned).expect(0);
    let line = format!("create {}, which records acknowledged commits", acks.display());
    assert!(planned.stdout.contains(&line) && !acks.exists(), "{planned:?}");
    recorded(&home, &dir, "first", &more);
    for round in 0..3 {
        let out = format!("killed-{round}");
        let running = Running::start(&mut record(&home, &dir, &out, "10m", &more));
        let windows = home.path(&out).join("windows.jsonl");
        wait_for("some windows", || (json_lines(&windows).len() >= 2 + round).then_some(()));
        running.signal(Signal::KILL);
        running.outcome();
        let (_, after) = recorded(&home, &dir, &format!("after-{round}"), &more);
        let all = "previously acknowledged commits are there";
        assert!(after.stderr.contains(all) && !after.stderr.contains("are lost"), "{}", after.stderr);
        let host = fs::read_to_string(home.path(&format!("after-{round}")).join("host.json")).unwrap();
        assert!(host.contains(all), "the recording says it too");
    }
    let report = verify(&home, &dir, &[]);
    assert_eq!(
        (&report["complete"], &report["missing"], &report["damaged"]),
        (&true.into(), &0.into(), &0.into())
    );
}

#[test]
fn a_full_disk_stalls_and_is_said_and_frees_again() {
    let home = Home::new();
    let Some(loops) = Loops::take("pairs: a full disk", 1) else { return };
    let device = loops.device(192, |path| drop(run("mkfs.ext4", &["-q", path.to_str().unwrap()])));
    let mount = Mount::of(&device, "noatime");
    let dir = mount.at.path().join("set");
    let more = ["kv.pairs=100000", "background.rate=none", "background.reads=0%", "wal.rate=100kB/s"];
    recorded(&home, &dir, "first", &more);
    let ballast = mount.at.path().join("ballast");
    let running = Running::start(&mut record(&home, &dir, "full", "40s", &more));
    let windows = home.path("full").join("windows.jsonl");
    wait_for("a window", || (!json_lines(&windows).is_empty()).then_some(()));
    let _ =
        Command::new("dd").args(["if=/dev/zero", "bs=1M"]).arg(format!("of={}", ballast.display())).output();
    let flagged = |window: &Value| {
        window["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag["text"] == "disk full"))
    };
    wait_for("the flag", || json_lines(&windows).iter().any(flagged).then_some(()));
    fs::remove_file(&ballast).unwrap();
    let full = json_lines(&windows).len();
    wait_for("puts to go on", || {
        let lines = json_lines(&windows);
        let after = &lines[full.min(lines.len())..];
        let put = |w: &Value| w["classes"]["background"]["ios"].as_u64().unwrap_or(0) > 100 && !flagged(w);
        after.iter().any(put).then_some(())
    });
    running.signal(Signal::INT);
    let outcome = running.outcome();
    assert!(
        outcome.stderr.contains("puts are waiting") && outcome.stderr.contains("puts continue"),
        "{outcome:?}"
    );
    let report = verify(&home, &dir, &more);
    assert_eq!((&report["missing"], &report["damaged"]), (&0.into(), &0.into()), "{report}");
}

#[test]
fn pairs_in_a_folder_are_turned_opened_again_and_built_anew_under_load() {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let target = dir.path().join("target");
    let mut settings = few_pairs();
    settings.target.dir = target.to_string_lossy().into_owned();
    (settings.target.count, settings.target.size_bytes) = (1, 16 << 20);
    Operator::at(settings, Options::default(), |operator| {
        operator.runs("load", |_| true);
        turns_each_kind(operator, &|| target.clone(), true);
    });
}

#[test]
fn pairs_on_every_file_system_are_turned_opened_again_and_built_anew_under_load() {
    let name = "pairs_on_every_file_system_are_turned_opened_again_and_built_anew_under_load";
    if was_the_session() {
        return;
    }
    let Some(loops) = Loops::take(name, 1) else { return };
    // In the gate, a journaling and a copy-on-write file system stand for all.
    let filesystems: &[&str] = if is_soak() { &["ext4", "xfs", "btrfs"] } else { &["ext4", "btrfs"] };
    let there: Vec<_> = filesystems.iter().filter(|name| has(&format!("mkfs.{name}"))).collect();
    let (home, device) = (Home::new(), loops.blank(400));
    let stacks: Vec<_> = there.iter().map(|name| format!("none/{name}")).collect();
    let mut command = this_test(module_path!(), name);
    command.env("XDG_STATE_HOME", home.path("state"));
    command.env(DEVICES, &device.path).env(STACKS, stacks.join(","));
    Outcome::of(&command.output().unwrap()).expect(0);
    assert_eq!(there.len(), filesystems.len(), "what setup.sh installs has them all");
}
