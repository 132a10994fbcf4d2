//! Recordings with one or more of their files replaced.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use stacktune::testing::class::Class;
use stacktune::testing::runs::record::Recording;
use stacktune::testing::ui::report::{CostMap, OverTime, Shown, compare, show};

use super::{files, json, printed, put, report};

/// A recording of an earlier build.
const GOOD: [(&str, &[u8]); 6] = [
    ("profile.toml", include_bytes!("../recordings/earlier/run/profile.toml")),
    ("host.json", include_bytes!("../recordings/earlier/run/host.json")),
    ("windows.jsonl", include_bytes!("../recordings/earlier/run/windows.jsonl")),
    ("latency.hlog", include_bytes!("../recordings/earlier/run/latency.hlog")),
    ("ledger.jsonl", include_bytes!("../recordings/earlier/run/ledger.jsonl")),
    ("summary.json", include_bytes!("../recordings/earlier/run/summary.json")),
];

/// `summary.json`, and other files.
pub fn summary(input: &[u8]) {
    with("summary.json", input, &[]);
}

/// `windows.jsonl`, and other files: in a finished and in a killed recording.
pub fn windows(input: &[u8]) {
    with("windows.jsonl", input, &[]);
    with("windows.jsonl", input, &["summary.json"]);
}

/// `latency.hlog`, and other files. It is only read if the run was killed.
pub fn hlog(input: &[u8]) {
    with("latency.hlog", input, &["summary.json"]);
}

/// Opens the recording with the input's files in place of its own, and with some removed.
fn with(name: &str, input: &[u8], without: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let (own, further) = files(input);
    let is_known = |name: &str| GOOD.iter().any(|(known, _)| *known == name);
    put(dir.path(), &GOOD, |name| !without.contains(&name));
    put(dir.path(), &[&[(name, own)], &*further].concat(), is_known);
    opened(dir.path());
}

/// Opens a recording and prints everything in it.
fn opened(dir: &Path) {
    let recording = match Recording::open(dir) {
        Ok(recording) => recording,
        Err(error) => {
            printed(&error.to_string());
            return;
        }
    };
    adds_up(&recording);
    let mut windows = 0;
    match recording.replay(|_| windows += 1) {
        Ok(_) => assert_eq!(windows, recording.windows.len()),
        Err(error) => drop(printed(&error.to_string())),
    }
    report(&show(&recording));
    json(&Shown::of(&recording));
    match OverTime::of(&recording) {
        Ok(over_time) => {
            report(&over_time.to_string());
            json(&over_time);
        }
        Err(error) => drop(printed(&error.to_string())),
    }
    let pair = [recording, good()];
    match compare(&pair) {
        Ok(comparison) => {
            report(&comparison.to_string());
            json(&comparison);
        }
        Err(error) => drop(printed(&error.to_string())),
    }
    for (data_bytes, mb_per_s) in [(None, None), (Some(1 << 40), Some(1000.0))] {
        match CostMap::of([&pair[0], &pair[1]], data_bytes, mb_per_s) {
            Ok(map) => {
                report(&map.to_string());
                json(&map);
            }
            Err(error) => drop(printed(&error.to_string())),
        }
    }
    // Reading changes nothing.
    assert!(fs::read_dir(dir).unwrap().count() <= GOOD.len());
}

/// The unmodified recording.
fn good() -> Recording {
    static GOOD_ONE: OnceLock<Recording> = OnceLock::new();
    let open = || {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &GOOD, |_| true);
        Recording::open(dir.path()).unwrap()
    };
    GOOD_ONE.get_or_init(open).clone()
}

/// Totals equal those of the windows, or the recording is called inconsistent.
fn adds_up(recording: &Recording) {
    let summary = &recording.summary;
    if summary.flags.iter().any(|flag| flag == "inconsistent") {
        assert!(recording.notes.iter().any(|note| note.starts_with("Inconsistent: ")), "{summary:?}");
        return;
    }
    let counted = || recording.windows.iter().filter(|window| !window.warmup);
    assert_eq!(summary.windows, counted().count() as u64);
    let whole_log = !recording.notes.iter().any(|note| note.starts_with("latency.hlog is damaged"));
    for class in Class::ALL {
        let figures = summary.class(class);
        let sum = |of: &dyn Fn(&_) -> u64| counted().map(|window| u128::from(of(window.class(class)))).sum();
        let sums: [u128; 3] = [sum(&|of| of.bytes), sum(&|of| of.ios), sum(&|of| of.errors)];
        assert_eq!([figures.bytes, figures.ios, figures.errors].map(u128::from), sums, "{class}");
        if summary.rebuilt && whole_log {
            let samples = figures.service_ns.as_ref().map_or(0, |latency| u128::from(latency.count));
            let of_windows = sum(&|of| of.latencies.service_ns.as_ref().map_or(0, |latency| latency.count));
            assert_eq!(samples, of_windows, "{class}");
        }
    }
}
