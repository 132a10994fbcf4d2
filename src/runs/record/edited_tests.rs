//! A recording whose figures somebody edited is called inconsistent; one that nobody edited is not.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::fixture::{self, Like};
use super::names::{HOST, LATENCY, PROFILE, SUMMARY, WINDOWS};
use super::tests::{changed, set, written};
use super::*;
use crate::meter::flag::FlagKind;
use crate::meter::window::Window;

/// Asserts that a note says it, and that the run is flagged.
#[track_caller]
fn says(recording: &Recording, what: &str) {
    let is_it = |note: &&String| note.starts_with("Inconsistent: ") && note.contains(what);
    assert!(recording.notes.iter().any(|note| is_it(&note)), "{what}: {:?}", recording.notes);
    assert!(recording.summary.forbids_verdict(&recording.summary.flags), "{what}");
}

/// Changes all numbers below a key.
fn each(text: &str, at: &str, change: fn(f64) -> f64) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap();
    for (key, number) in value.pointer_mut(at).unwrap().as_object_mut().unwrap() {
        if let Some(x) = number.as_f64().filter(|_| key != "count") {
            *number = if number.is_f64() { json!(change(x)) } else { json!(change(x) as u64) };
        }
    }
    value.to_string()
}

#[test]
fn an_edited_summary_is_inconsistent() {
    let summary = |change: &dyn Fn(&str) -> String| changed(SUMMARY, false, change);
    let times = |at: &'static str, by: f64| {
        move |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            let number = value.pointer(at).unwrap();
            let scaled = number.as_f64().unwrap() * by;
            set(text, at, if number.is_f64() { json!(scaled) } else { json!(scaled as u64) })
        }
    };
    says(&summary(&times("/classes/scan/iops", 10.0)), "I/Os per second of scan");
    says(&summary(&times("/total/iops", 10.0)), "I/Os per second is");
    says(&summary(&times("/total/cycles_per_byte", 0.5)), "cycles/byte");
    for (at, tag) in
        [("scan/service_ns", "scan"), ("wal/response_ns", "wal.response"), ("wal/flush_ns", "wal.flush")]
    {
        let at = format!("/classes/{at}");
        says(&summary(&|text| each(text, &at, |ns| ns / 100.0)), &format!(" of {tag} in the summary"));
        let count = format!("{at}/count");
        let doubled = |text: &str| set(text, &count, 2 * 4 * 60_000);
        says(&summary(&doubled), &format!("the count of {tag} in the summary"));
        let mean = format!("{at}/mean");
        says(&summary(&|text| set(text, &mean, 1.0)), &format!("the mean of {tag} in the summary"));
    }
    says(&summary(&|text| set(text, "/wa_a", 3.5)), "write amplification of the stack is 3.500");
}

#[test]
fn what_follows_from_the_windows_is_recomputed() {
    let edited = |change: &dyn Fn(&mut Value)| {
        changed(SUMMARY, false, |text| {
            let mut value: Value = serde_json::from_str(text).unwrap();
            change(&mut value);
            value.to_string()
        })
    };
    says(&edited(&|of| of["steady"]["state"] = json!("steady")), "the summary's run is steady since");
    says(&edited(&|of| of["steady"]["burst"]["mb_per_s"] = json!(9e6)), "the summary's burst figures");
    says(&edited(&|of| of["steady"]["burst"] = json!(null)), "the summary's burst figures");
    says(
        &edited(&|of| of["members"][1]["written_bytes"] = json!(1)),
        "bytes written to data-1: 1 in the summary",
    );
    says(&edited(&|of| of["members"][0]["temperature_c"] = json!(20.0)), "the temperature of data-0: 20 in");
    says(&edited(&|of| of["members"] = json!([])), "the summary has 0 members, windows.jsonl 2");
    says(&edited(&|of| of["variability"]["swing"] = json!(0.001)), "the summary's variability");
    let first = |of: &Value| of["pitfalls"][0]["light"] == "good";
    let turned = |of: &mut Value| of["pitfalls"][0]["light"] = json!(if first(of) { "bad" } else { "good" });
    says(&edited(&turned), "the pitfall `run length` is");
    says(&edited(&|of| of["pitfalls"] = json!([])), "the pitfall `run length` is missing");
}

/// The pointers to all numbers of a value.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| numbers(value, &format!("{at}/{key}"), found));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(n, value)| numbers(value, &format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

#[test]
fn no_number_of_a_summary_can_be_edited_unseen() {
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like::default());
    written(dir.path(), &windows).finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
    let path = dir.path().join(SUMMARY);
    let whole = fs::read_to_string(&path).unwrap();
    let mut all = Vec::new();
    numbers(&serde_json::from_str(&whole).unwrap(), "", &mut all);
    assert!(all.len() > 100, "{all:?}");
    let unseen = |at: &String| {
        let mut value: Value = serde_json::from_str(&whole).unwrap();
        let number = value.pointer_mut(at).unwrap();
        *number = match number.as_u64() {
            Some(count) => json!(count * 2 + 7),
            None => json!(number.as_f64().unwrap() * 2.0 + 7.0),
        };
        fs::write(&path, value.to_string()).unwrap();
        let read = Recording::open(dir.path()).unwrap();
        !read.notes.iter().any(|note| note.starts_with("Inconsistent: "))
    };
    // A newer layout is refused, which another test covers.
    all.retain(|at| at != "/schema");
    let unseen: Vec<_> = all.iter().filter(|at| unseen(at)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
    // A field that no run writes must not switch a check off.
    let rebuilt = set(&set(&whole, "/rebuilt", true), "/classes/scan/errors", 5);
    fs::write(&path, rebuilt).unwrap();
    says(&Recording::open(dir.path()).unwrap(), "5 errors of scan, windows.jsonl 0");
}

#[test]
fn latencies_of_the_log_are_not_left_out() {
    let summary = |at: &str| changed(SUMMARY, false, |text| set(text, at, Value::Null));
    says(&summary("/classes/point/service_ns/p99"), "the p99 of point in the summary");
    says(&summary("/classes/point/service_ns/max"), "the maximum of point in the summary");
    says(&summary("/classes/wal/flush_ns"), "the summary has no latency of wal.flush");
    says(&summary("/classes/wal/response_ns"), "the summary has no latency of wal.response");
    let window = |at: &str| {
        let at = format!("/classes/{at}");
        changed(WINDOWS, false, |text| set(text, &at, Value::Null))
    };
    says(&window("scan/latencies/service_ns/p90"), "the p90 of scan in window 0");
    says(&window("wal/latencies/response_ns"), "window 0 has no latency of wal.response");
}

#[test]
fn flags_that_figures_raise_are_not_taken_away() {
    let window = |at: &str, value: Value| {
        let says_so = |text: &str| set(text, at, value.clone());
        changed(WINDOWS, false, says_so)
    };
    let raised = "although its figures raise it";
    for (at, value, flag) in [
        ("/paused", json!(true), "window 0 is not flagged `paused`"),
        ("/turned", json!(true), "window 0 is not flagged `turned`"),
        ("/members/0/throttling", json!("yes"), "window 0 is not flagged `throttled`"),
        ("/classes/scan/busiest_worker", json!(0.99), "scan in window 0 is not flagged `worker-bound`"),
        ("/classes/scan/cache_share", json!(0.5), "scan in window 0 is not flagged `cache`"),
        ("/classes/scan/state", json!({"state": "draining"}), "scan in window 0 is not flagged `draining`"),
    ] {
        says(&window(at, value), &format!("{flag}, {raised}"));
    }
}

#[test]
fn an_edited_window_is_inconsistent() {
    for (figure, value, what) in [
        ("p50", 1, "p50"),
        ("p90", 2, "in window 0 has p90 below p50"),
        ("max", 1_000_000_000_000u64, "maximum"),
    ] {
        let at = format!("/classes/scan/latencies/service_ns/{figure}");
        says(&changed(WINDOWS, false, |text| set(text, &at, value)), what);
    }
    let all = |text: &str| {
        ["p50", "p90", "p99"].into_iter().zip(1u64..).fold(text.to_owned(), |text, (figure, value)| {
            set(&text, &format!("/classes/point/latencies/service_ns/{figure}"), value)
        })
    };
    says(&changed(WINDOWS, false, all), "the p50 of point in window 0");
    says(&changed(WINDOWS, false, |_| String::new()), "4 windows, windows.jsonl 0");
}

#[test]
fn an_edited_log_is_inconsistent_or_damaged() {
    let lines = |text: &str| text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>();
    says(&changed(LATENCY, false, |_| String::new()), "latency.hlog has 0 samples of `scan`");
    says(
        &changed(LATENCY, false, |text| lines(text)[..lines(text).len() - 1].concat()),
        "samples of `background",
    );
    says(
        &changed(LATENCY, false, |text| format!("{text}{}", lines(text).last().unwrap())),
        "latency.hlog repeats 1 line",
    );
    let garbage = changed(LATENCY, false, |_| "Tag=scan,nonsense\n".repeat(3));
    assert!(
        garbage.notes.iter().any(|note| note.contains("latency.hlog is damaged: line 1")),
        "{:?}",
        garbage.notes
    );
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like::default());
    written(dir.path(), &windows).finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
    fs::remove_file(dir.path().join(LATENCY)).unwrap();
    let notes = Recording::open(dir.path()).unwrap().notes;
    assert!(notes.len() == 1 && notes[0].starts_with("Its percentiles can't be checked"), "{notes:?}");
}

/// A run whose windows are flagged, as read after a change to its summary.
fn flagged(change: impl Fn(&mut Value)) -> Recording {
    let dir = tempfile::tempdir().unwrap();
    let mut windows = fixture::windows(Like::default());
    for window in &mut windows {
        window.classes[0].flags.push(FlagKind::WorkerBound.flag("A worker is the limit."));
        window.flags.push(FlagKind::Degraded.flag("A member is missing."));
    }
    let mut flags = vec![FlagKind::Cache.with_share(0.97, "Of the bytes.")];
    windows[1].classes[1].flags.append(&mut flags);
    written(dir.path(), &windows).finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
    edit(&dir.path().join(SUMMARY), change);
    Recording::open(dir.path()).unwrap()
}

fn edit(path: &Path, change: impl Fn(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

#[test]
fn flags_are_not_taken_away() {
    assert_eq!(flagged(|_| ()).notes, [] as [String; 0]);
    says(&flagged(|of| of["flags"] = json!([])), "the windows have the run flagged `degraded`");
    says(
        &flagged(|of| of["classes"]["scan"]["flags"] = json!([])),
        "the windows have scan flagged `worker-bound`",
    );
    says(&flagged(|of| of["flag_notes"]["degraded"]["forbids_verdict"] = json!(false)), "allows a verdict");
    says(&flagged(|of| of["flag_notes"] = json!({})), "has no note");
}

#[test]
fn flags_that_settings_and_target_raise_are_not_taken_away() {
    let read = |profile: &str, host: &dyn Fn(&mut Value)| {
        let dir = tempfile::tempdir().unwrap();
        let windows = fixture::windows(Like::default());
        written(dir.path(), &windows).finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
        fs::write(dir.path().join(PROFILE), profile).unwrap();
        edit(&dir.path().join(HOST), host);
        Recording::open(dir.path()).unwrap()
    };
    let plain = |_: &mut Value| ();
    assert_eq!(read("[io]\ninterface = \"io_uring\"\n", &plain).notes, [] as [String; 0]);
    let raised = |flag: FlagKind, of: &str| {
        format!(
            "{of} is not flagged `{}` in 5 windows, although its settings and target raise it",
            flag.text()
        )
    };
    let unsynced = "[wal]\nsync = \"none\"\n";
    says(&read(unsynced, &plain), &raised(FlagKind::NotDurable, "wal"));
    says(&read("[io]\ninterface = \"sim\"\n", &plain), &raised(FlagKind::Simulated, "background"));
    says(&read("[io]\ninterface = \"null\"\n", &plain), &raised(FlagKind::NoStorage, "background"));
    let emulated = |of: &mut Value| of["target"] = json!({ "emulated": "QEMU NVMe Ctrl" });
    says(&read("", &emulated), &raised(FlagKind::Emulated, "background"));
    says(&read("[command]\nrun = [\"bench\"]\n", &emulated), &raised(FlagKind::Emulated, "the run"));
    let mounted = |of: &mut Value| of["target"] = json!({ "mounted": "mounted at /srv" });
    says(&read("", &mounted), &raised(FlagKind::Mounted, "the run"));
    let cached = "[io]\nbuffering = \"cached\"\n";
    let fits = |of: &mut Value| {
        of["circumstances"]["cached"] = json!(true);
        of["circumstances"]["data_bytes"] = json!(1_u64 << 30);
        of["circumstances"]["memory_bytes"] = json!(1_u64 << 34);
    };
    says(&read(cached, &fits), &raised(FlagKind::DataFitsMemory, "background"));
    // Settings recorded in host.json.
    says(&read(cached, &plain), "host.json has no page cache, but the profile as run has the page cache");
    let used = |of: &mut Value| of["circumstances"]["use_percent"] = json!(50);
    says(&read("", &used), "host.json has 50% of each drive, but the profile as run has 100% of each drive");
    let trimmed = |of: &mut Value| of["circumstances"]["state"] = json!("trimmed");
    says(&read("", &trimmed), "host.json has drives trimmed, but the profile as run has drives as-is");
}

#[test]
fn recordings_of_earlier_versions_are_consistent() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/earlier");
    for name in ["run", "other", "sweep/01-scan.depth=1-r1", "sweep/02-scan.depth=4-r1"] {
        assert_eq!(Recording::open(&dir.join(name)).unwrap().notes, [] as [String; 0], "{name}");
    }
}

#[test]
fn a_long_recording_is_read_quickly() {
    let dir = tempfile::tempdir().unwrap();
    let first = fixture::window(0, Like { warmup: 0, ..Like::default() });
    let windows: Vec<_> = (0..100)
        .map(|index| Window { index, start_ns: index * first.duration_ns, ..first.clone() })
        .collect();
    written(dir.path(), &windows).finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
    let start = std::time::Instant::now();
    let read = Recording::open(dir.path()).unwrap();
    let taken = start.elapsed();
    assert_eq!(read.notes, [] as [String; 0]);
    // Even without optimization, on a busy machine.
    assert!(taken.as_secs() < 10, "{taken:?}");
}
