//! Bytes that reach the drives per byte written, compared with this test's own reading of the block layer's
//! counters; and the program's figures of them.

use std::fs;
use std::process::Command;

use crate::common::devices::{Loop, Loops};
use crate::common::program::{Home, Outcome, json_file, json_lines};
use serde_json::Value;

/// Direct writes at a rate that any machine can sustain, in short windows.
const LOAD: [&str; 9] = [
    "scan.enabled=false",
    "point.enabled=false",
    "wal.rate=4MB/s",
    "background.rate=20MB/s",
    "io.buffering=direct",
    "run.window=250ms",
    "stack.data=48MiB",
    "stack.wal=16MiB",
    "stack.copy_on_write=true",
];

/// Windows between the two readings of the device.
const WINDOWS: usize = 10;

fn on_device(home: &Home, device: &Loop, filesystem: &str, time: &str) -> Command {
    let profile = home.path("mine.toml");
    fs::write(&profile, format!("name = \"mine\"\n[target]\ndevices = [{:?}]\n", device.path)).unwrap();
    let mut command = home.command(["record", profile.to_str().unwrap(), "--for", time, "--json", "--out"]);
    command.arg(home.path(filesystem)).arg(format!("--destroy={}", device.path));
    command.arg(format!("--set=stack.filesystem={filesystem}"));
    command.args(
        LOAD.iter()
            .filter(|set| filesystem == "btrfs" || !set.contains("copy_on_write"))
            .map(|set| format!("--set={set}")),
    );
    command.env("XDG_STATE_HOME", home.path("state"));
    command
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Runs on that file system; WA-A must match the device's own count.
fn is_what_the_device_counts(home: &Home, device: &Loop, filesystem: &str) -> Value {
    // On a busy machine the device's counter is read late; a count that is really wrong is wrong every time.
    let counted = (0..3).find_map(|_| counted_alike(home, device, filesystem));
    counted.unwrap_or_else(|| panic!("{filesystem}: what is recorded is not what the device counted"))
}

/// The summary of a run, if its windows' bytes match the device's count.
fn counted_alike(home: &Home, device: &Loop, filesystem: &str) -> Option<Value> {
    let mut child = on_device(home, device, filesystem, "6s").spawn().unwrap();
    let dir = home.path(filesystem);
    // The load has begun when the first window ends.
    let (from, at_first) = device.written_by_window(&dir, 1);
    let (to, at_last) = device.written_by_window(&dir, from + WINDOWS);
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{filesystem}: {ended}");
    let windows = json_lines(&dir.join("windows.jsonl"));
    let sum = |of: &str, windows: &[Value]| -> f64 {
        let of_one = |window: &Value| {
            window["written"][of].as_f64().unwrap_or_else(|| panic!("{filesystem}: no {of} in {window:#}"))
        };
        windows.iter().map(of_one).sum()
    };
    let (recorded, counted) = (sum("drives_bytes", &windows[from..to]), (at_last - at_first) as f64);
    // Writes between a window's end and the counter's reading are in only one of the two counts.
    let off = (recorded / counted - 1.0).abs();
    println!("{filesystem}: {recorded} bytes recorded, {counted} counted");
    if off >= 0.1 {
        fs::remove_dir_all(&dir).unwrap();
        return None;
    }

    let summary = json_file(&dir.join("summary.json"));
    let ratio = sum("drives_bytes", &windows) / sum("application_bytes", &windows);
    let parts = ["engine", "file_system", "raid"].map(|part| number(&summary["wa_a_parts"][part]));
    assert!((number(&summary["wa_a"]) / ratio - 1.0).abs() < 1e-9, "{filesystem}: {summary:#}");
    assert!((parts.iter().product::<f64>() / ratio - 1.0).abs() < 1e-9, "{filesystem}: {parts:?}");
    // Classes and members are read one after the other: a page may complete in between.
    assert!((parts[0] - 1.0).abs() < 1e-3, "{filesystem}: pages as they are: {parts:?}");
    assert!((parts[2] - 1.0).abs() < 1e-9, "{filesystem}: on one device: {parts:?}");
    let classes = &summary["classes"];
    let of_classes = number(&classes["wal"]["bytes"]) + number(&classes["background"]["bytes"]);
    let written = number(&summary["written"]["application_bytes"]);
    assert!((written - of_classes).abs() < 0.5, "{filesystem}: {written} bytes, of the classes {of_classes}");
    // The last writes may have completed without being counted yet; nothing else may be missing.
    assert!(parts[1] > 0.98, "{filesystem}: {parts:?}");
    assert_eq!((&summary["wa_d"], &summary["wa_total"]), (&Value::Null, &Value::Null), "a loop device");
    let space = number(&summary["space_amplification"]);
    assert!((0.9..3.0).contains(&space), "{filesystem}: {space}");
    Some(summary)
}

#[test]
fn what_reaches_the_drives_is_what_they_count() {
    let Some(loops) = Loops::take("what_reaches_the_drives_is_what_they_count", 1) else { return };
    let (home, device) = (Home::new(), loops.blank(384));
    let part = |summary: &Value| number(&summary["wa_a_parts"]["file_system"]);
    let ext4 = part(&is_what_the_device_counts(&home, &device, "ext4"));
    let xfs = part(&is_what_the_device_counts(&home, &device, "xfs"));
    let btrfs = part(&is_what_the_device_counts(&home, &device, "btrfs"));
    assert!(ext4 < 1.6 && xfs < 1.6, "in place, with a journal: {ext4} {xfs}");
    assert!(btrfs > ext4.min(xfs), "copied on write, with checksums: {btrfs} {ext4} {xfs}");

    let shown = home.run(["show".as_ref(), home.path("ext4").as_os_str()]).expect(0).stdout;
    for said in
        ["WA-A ", " = engine 1.00 × file system ", "WA-D not reported by this drive", "Can I believe it?"]
    {
        assert!(shown.contains(said), "{said:?} is missing\n{shown}");
    }
    is_drawn_over_time(&home);
    map_is_drawn(&home);
}

/// The cumulative ratio lies between the smallest and the largest ratio of the parts; the parts exclude the
/// drives' writes after the last window.
fn is_drawn_over_time(home: &Home) {
    let over_time = |more: &[&str]| {
        let mut command = home.command(["show", "--over-time"]);
        Outcome::of(&command.arg(home.path("ext4")).args(more).output().unwrap()).expect(0)
    };
    let json = over_time(&["--json"]).json();
    let of_spans = json["spans"].as_array().unwrap().iter().map(|span| number(&span["wa_a"]));
    let (least, most) = of_spans.fold((f64::MAX, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    let wa_a = number(&json_file(&home.path("ext4/summary.json"))["wa_a"]);
    assert!(least * 0.99 <= wa_a && wa_a <= most * 1.01 && least > 0.0, "{wa_a} of {json:#}");
    let drawn = over_time(&[]).stdout;
    assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
    for chart in ["total MB/s", "wal MB/s", "WA-A of each column", "in use on the file system"] {
        assert!(drawn.contains(chart), "{chart:?} is missing\n{drawn}");
    }
}

/// The map of the two runs, recomputed from its own figures of each.
fn map_is_drawn(home: &Home) {
    let cost = |more: &[&str]| {
        let mut command = home.command(["cost"]);
        command.arg(home.path("ext4")).arg(home.path("xfs")).args(more);
        Outcome::of(&command.output().unwrap()).expect(0)
    };
    let map = cost(&["--json", "--data", "1TiB"]).json();
    assert_eq!(map["data_bytes"][9], 1_u64 << 40);
    for (at, of) in map["instances"].as_array().unwrap().iter().enumerate() {
        let (data, rate) = (number(&of["data_bytes"]), number(&of["mb_per_s"]));
        assert!((1e7..4e8).contains(&data), "{of}");
        for (row, wanted) in map["drives"].as_array().unwrap().iter().zip(map["mb_per_s"].as_array().unwrap())
        {
            for (cell, bytes) in row.as_array().unwrap().iter().zip(map["data_bytes"].as_array().unwrap()) {
                let needs = (number(bytes) / data).ceil().max((number(wanted) / rate - 1e-9).ceil());
                assert!((number(&cell[at]) - needs).abs() < 0.5, "{map:#}");
            }
        }
    }
    let drawn = cost(&[]).stdout;
    assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
    assert!(drawn.contains("fewer drives") && drawn.contains("(not steady)"), "{drawn}");
}

#[test]
fn a_run_until_it_is_steady_says_since_when_or_what_it_waits_for() {
    let home = Home::new();
    let until = |out: &str, more: &[&str]| {
        let mut command = home.command(["record", "demo", "--json", "--until-steady", "--out"]);
        command.arg(home.path(out)).args(home.sets(&["io.interface=sim"])).args(more);
        Outcome::of(&command.output().unwrap())
    };
    let steady = until("steady", &["--at-most=10m"]).expect(0).json();
    assert_eq!(steady["steady"]["state"], "steady", "{steady:#}");
    assert!(number(&steady["duration_s"]) < 200.0 && number(&steady["duration_s"]) >= 30.0);
    assert!(number(&steady["steady"]["steady"]["mb_per_s"]) > 0.0);
    let shown = home.run(["show".as_ref(), home.path("steady").as_os_str()]).expect(0).stdout;
    assert!(shown.contains("steady since ") && shown.contains("burst "), "{shown}");
    let short = until("short", &["--at-most=20s"]).expect(0);
    assert!(short.stderr.contains("not steady after 20s (no level has lasted yet)"), "{short:?}");
    assert_eq!(short.json()["pitfalls"][0]["light"], "bad");
    assert_eq!(until("both", &["--for=1m"]).status, Some(2));
    // Neither run touches storage, so there are no drives to count.
    let mut cost = home.command(["cost"]);
    let refused =
        Outcome::of(&cost.args([home.path("steady"), home.path("short")]).output().unwrap()).expect(2);
    assert!(refused.stderr.contains("has no dedicated drives"), "{refused:?}");
}
