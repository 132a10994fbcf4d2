//! Recordings: their files, keys and sums, and how they are shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::command_line::{CLASSES, simulated};
use crate::common;
use crate::common::recorded::{Home, Recorded, json};
use hdrhistogram::Histogram;
use serde_json::Value;

#[test]
fn a_recording_is_shown_compared_and_not_overwritten() {
    let home = Home::new();
    let first = simulated(&home, "a", &["--for", "10s"]);
    let table = &first.ran.out;
    assert!(CLASSES.iter().all(|class| table.contains(class)), "{table}");
    let again = simulated(&home, "a", &["--for", "1s"]);
    again.ran.ended(2, &["holds"]);
    assert_eq!(first.summary()["windows"], 10, "the first recording is as it was");

    let second = simulated(&home, "b", &["--for", "10s", "--set", "scan.depth=8", "--json"]);
    assert_eq!(second.ran.json(), second.any_summary(), "--json is the summary");
    let shown = home.run(&["show", "a", "--json"]).json();
    assert_eq!(shown["summary"], first.any_summary());
    assert!(home.run(&["show", "a"]).out.contains("cycles/byte"));
    let compared = home.run(&["compare", "a", "b", "a", "--json"]).json();
    assert!(compared.is_object(), "{compared:#}");
    let text = home.run(&["compare", "a", "b"]);
    text.ended(0, &[]);
    assert!(text.out.contains("scan.depth") && text.out.contains("scan MB/s"), "{}", text.out);
}

#[test]
fn a_simulated_run_repeats_exactly() {
    let home = Home::new();
    let [first, second] = ["a", "b"].map(|out| simulated(&home, out, &["--for", "5s"]).summary());
    for class in CLASSES {
        assert_eq!(first["classes"][class], second["classes"][class]);
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_summary_has_the_documented_keys() {
    let home = Home::new();
    let summary = simulated(&home, "out", &["--for", "10s"]).summary();
    assert_eq!(
        keys(&summary),
        [
            "classes",
            "cost",
            "duration_s",
            "failure",
            "flag_notes",
            "flags",
            "interrupted",
            "members",
            "pitfalls",
            "profile",
            "rebuilt",
            "schema",
            "space_amplification",
            "stacktune",
            "steady",
            "total",
            "variability",
            "wa_a",
            "wa_a_parts",
            "wa_d",
            "wa_total",
            "warmup_s",
            "warmup_windows",
            "windows",
            "written",
        ]
    );
    assert_eq!(summary["stacktune"], env!("CARGO_PKG_VERSION"));
    assert_eq!(summary["duration_s"], 10.0);
    assert_eq!(
        keys(&summary["total"]),
        ["bytes", "cpu", "cpu_busy", "cycles_per_byte", "cycles_per_op", "cycles_source", "iops", "mb_per_s"]
    );
    let iops = CLASSES.map(|class| summary["classes"][class]["iops"].as_f64().unwrap());
    assert!(
        (summary["total"]["iops"].as_f64().unwrap() - iops.iter().sum::<f64>()).abs() < 0.01,
        "{summary}"
    );
    assert_eq!(keys(&summary["classes"]), ["background", "point", "scan", "wal"]);
    CLASSES.into_iter().for_each(|class| class_has_the_documented_keys(class, &summary["classes"][class]));
}

fn class_has_the_documented_keys(class: &str, figures: &Value) {
    let mut expected = vec![
        "bytes",
        "errnos",
        "errors",
        "flags",
        "intended",
        "ios",
        "iops",
        "mb_per_s",
        "missed",
        "response_not_held",
        "response_ns",
        "service_ns",
        "state",
        "target_mb_per_s",
    ];
    if class == "wal" {
        expected.extend(["write_ns", "flush_ns"]);
    }
    // Only if I/O was in flight at the end.
    expected.extend(figures.get("drained").map(|_| "drained"));
    expected.sort_unstable();
    assert_eq!(keys(figures), expected, "{class}");
    let mut latencies = vec!["service_ns"];
    let rated = ["wal", "background"].contains(&class);
    assert_eq!(figures["response_ns"].is_null(), !rated, "{class}: {figures:#}");
    latencies.extend(rated.then_some("response_ns"));
    latencies.extend(["write_ns", "flush_ns"].into_iter().filter(|_| class == "wal"));
    for latency in latencies {
        let mut expected = vec!["count", "max", "mean", "p50", "p90", "p99", "p999", "p9999"];
        // Percentiles need ten samples beyond them.
        let count = figures[latency]["count"].as_u64().unwrap();
        expected.extend((count >= 1_000_000).then_some("p99999"));
        expected.extend((count >= 10_000_000).then_some("p999999"));
        expected.sort_unstable();
        assert_eq!(keys(&figures[latency]), expected, "{class} {latency}");
    }
}

/// The sum of a class's figure over these windows.
fn sum(windows: &[&Value], class: &str, figure: &str) -> u64 {
    windows.iter().map(|window| window["classes"][class][figure].as_u64().unwrap()).sum()
}

/// The counted windows sum exactly to the totals, and the histograms to their counts.
#[track_caller]
fn windows_sum_to_the_totals(recorded: &Recorded, warmup_windows: u64) {
    let summary = recorded.any_summary();
    let windows = recorded.windows();
    let counted: Vec<_> = windows.iter().filter(|window| window["warmup"] == false).collect();
    assert_eq!(summary["windows"], counted.len(), "{summary:#}");
    assert_eq!(summary["warmup_windows"], warmup_windows);
    assert_eq!(windows.len() - counted.len(), warmup_windows as usize);
    assert!(windows[..warmup_windows as usize].iter().all(|window| window["warmup"] == true));
    for class in CLASSES {
        let figures = &summary["classes"][class];
        for figure in ["ios", "bytes", "errors", "missed", "intended"] {
            assert_eq!(figures[figure], sum(&counted, class, figure), "{class} {figure}");
        }
        assert!(figures["ios"].as_u64() > Some(0), "{class}: {summary:#}");
    }
    let total: u64 = CLASSES.iter().map(|class| sum(&counted, class, "bytes")).sum();
    assert_eq!(summary["total"]["bytes"], total);
    let duration_ns: u64 = counted.iter().map(|window| window["duration_ns"].as_u64().unwrap()).sum();
    let duration_s = summary["duration_s"].as_f64().unwrap();
    assert!((duration_s - duration_ns as f64 / 1e9).abs() < 1e-6, "{duration_s} s, {duration_ns} ns");
    let logged = logged(recorded, &counted);
    for class in CLASSES {
        let figures = &summary["classes"][class];
        for (tag, latency) in
            [("", "service_ns"), (".response", "response_ns"), (".write", "write_ns"), (".flush", "flush_ns")]
        {
            // Response times of a rate that was not held are logged, but are not figures.
            if latency == "response_ns" && figures["response_not_held"] == true {
                continue;
            }
            let of_log = logged.get(&format!("{class}{tag}")).copied().unwrap_or(0);
            let of_summary = figures[latency]["count"].as_u64().unwrap_or(0);
            assert_eq!(of_log, of_summary, "{class} {latency}");
        }
    }
}

/// How many values each tag of `latency.hlog` has in the counted windows, read like other tools do.
fn logged(recorded: &Recorded, counted: &[&Value]) -> BTreeMap<String, u64> {
    let log = fs::read_to_string(recorded.dir.join("latency.hlog")).unwrap();
    let first_ns = counted[0]["start_ns"].as_u64().unwrap();
    let mut counts = BTreeMap::new();
    for line in log.lines().filter(|line| line.starts_with("Tag=")) {
        let fields: Vec<_> = line.splitn(5, ',').collect();
        let start_s: f64 = fields[1].parse().unwrap();
        // Timestamps have three decimals.
        if start_s < first_ns as f64 / 1e9 - 0.001 {
            continue;
        }
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, fields[4]).unwrap();
        let histogram: Histogram<u64> =
            hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        *counts.entry(fields[0].trim_start_matches("Tag=").to_owned()).or_default() += histogram.len();
    }
    counts
}

#[test]
fn simulated_windows_sum_exactly_to_the_totals() {
    let home = Home::new();
    let recorded = simulated(&home, "out", &["--for", "6s", "--warmup", "5s"]);
    recorded.summary();
    windows_sum_to_the_totals(&recorded, 5);
}

#[test]
fn real_windows_sum_exactly_to_the_totals_and_the_warm_up_is_left_out() {
    let home = Home::new();
    let profile = home.small_files("small");
    // The warm-up need not be a multiple of the window: exactly the requested time is measured.
    let recorded = home.record(&profile, "out", &["--for", "800ms", "--warmup", "500ms"]);
    let summary = recorded.summary();
    // Three, unless one ends late because other tests use the processors.
    let warmup_windows = summary["warmup_windows"].as_u64().unwrap();
    assert!((1..=3).contains(&warmup_windows), "{warmup_windows}");
    windows_sum_to_the_totals(&recorded, warmup_windows);
    let (warmup_s, duration_s) =
        (summary["warmup_s"].as_f64().unwrap(), summary["duration_s"].as_f64().unwrap());
    assert!((0.499..0.7).contains(&warmup_s), "{warmup_s}");
    assert!((0.6..1.0).contains(&duration_s), "{duration_s}");
    assert!(recorded.ran.out.contains("background"), "{}", recorded.ran.out);
    let host = json(&recorded.dir.join("host.json"));
    assert!(host["target"].is_object() && host["memory_bytes"].is_u64(), "{host:#}");
    // A recorded profile can be run again.
    let again = recorded.dir.join("profile.toml");
    home.run(&["check", again.to_str().unwrap()]).ended(0, &[]);
}

#[test]
fn the_dry_run_on_files_shows_how_much_is_filled() {
    let home = Home::new();
    let profile = home.small_files("small");
    let planned = |more: &[&str]| {
        let arguments = ["record", &profile, "--out", "none", "--for", "1s", "--dry-run"];
        home.run(&[&arguments[..], more].concat())
    };
    let writes = || planned(&["--json"]).json()["writes_bytes"].clone();
    let first = writes();
    home.record(&profile, "out", &["--for", "100ms"]).ran.ended(0, &[]);
    let folder =
        fs::read_dir(home.path("small-files")).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    let there: u64 = folder.filter(fs::Metadata::is_file).map(|found| found.len()).sum();
    assert!(
        first.as_u64().is_some_and(|bytes| bytes > there * 9 / 10 && bytes <= there),
        "{first} of {there}"
    );
    assert_eq!(writes(), 0);
    assert!(planned(&[]).out.contains("writes about 0 B"));
}

/// Whether each class completed an I/O in a recorded window: on a busy machine not all do in the first one.
fn every_class_moved(windows: &Path) -> bool {
    let text = fs::read_to_string(windows).unwrap_or_default();
    let windows: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ios = |window: &Value, class: &str| window["classes"][class]["ios"].as_u64();
    CLASSES.iter().all(|class| windows.iter().any(|window| ios(window, class) > Some(0)))
}

#[test]
fn an_interrupted_recording_has_a_valid_summary() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP]
    {
        let home = Home::new();
        let profile =
            home.profile("null", &format!("[io]\ninterface = \"null\"\n{}", common::recorded::LOAD));
        let mut command =
            home.command(&["record", &profile, "--out", "out", "--for", "1h", "--set", "scan.rate=10MB/s"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let recorded = home.path("out/windows.jsonl");
        let begun = Instant::now();
        while !every_class_moved(&recorded) {
            assert!(begun.elapsed() < Duration::from_secs(30), "a class does nothing");
            std::thread::sleep(Duration::from_millis(20));
        }
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, signal).unwrap();
        let ran = common::recorded::Ran::of(&child.wait_with_output().unwrap());
        ran.ended(130, &["interrupted"]);
        assert!(ran.out.contains("background"), "the table is printed: {}", ran.out);
        let recorded = Recorded { ran, dir: home.path("out") };
        assert_eq!(recorded.any_summary()["interrupted"], true);
        windows_sum_to_the_totals(&recorded, 0);
    }
}
