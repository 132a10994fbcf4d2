//! Runs are read back as they were written.

use std::fs;
use std::path::Path;

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::fixture::{self, Like};
use super::names::{HOST, LATENCY, LEDGER, SCHEMA, SUMMARY, WINDOWS};
use super::*;
use crate::class::Class;
use crate::error::Kind;
use crate::meter::window::{Latency, Window};

pub(super) fn written(dir: &Path, windows: &[Window]) -> Writer {
    let mut writer = Writer::create(dir, &fixture::header()).unwrap();
    for window in windows {
        writer.window(window).unwrap();
    }
    writer
}

/// Histograms are not part of `windows.jsonl`.
fn bare(windows: &[Window]) -> Vec<Window> {
    windows.iter().map(|w| Window { histograms: std::sync::Arc::default(), ..w.clone() }).collect()
}

/// Equal except for rounding of float sums and their decimal forms.
fn same<T: serde::Serialize>(a: &T, b: &T) {
    fn round(value: &mut serde_json::Value) {
        use serde_json::Value;
        match value {
            Value::Number(n) if n.is_f64() => {
                *value = Value::String(format!("{:.9e}", n.as_f64().unwrap()));
            }
            Value::Array(items) => items.iter_mut().for_each(round),
            Value::Object(map) => map.values_mut().for_each(round),
            _ => {}
        }
    }
    let [a, b] = [a, b].map(|item| {
        let mut value = serde_json::to_value(item).unwrap();
        round(&mut value);
        serde_json::to_string_pretty(&value).unwrap()
    });
    assert_eq!(a, b);
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("a/run");
    let windows = fixture::windows(Like::default());
    let mut writer = written(&dir, &windows);
    writer.ledger(&fixture::turn(1)).unwrap();
    let summary = writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();

    let read = Recording::open(&dir).unwrap();
    assert_eq!(read.name(), "run");
    same(&read.summary, &summary);
    same(&read.windows, &bare(&windows));
    assert_eq!(read.ledger, [fixture::turn(1)]);
    assert_eq!(read.host["cpu"]["governor"], "performance");
    assert_eq!(read.host["devices"][0]["firmware"], "F2");
    assert_eq!(read.profile_toml, fixture::header().profile_toml);
    assert_eq!(read.notes, [] as [String; 0]);
    assert_eq!((summary.warmup_s, summary.warmup_windows, summary.windows), (1.0, 1, 4));
}

#[test]
fn a_killed_recording_gives_all_its_finished_windows() {
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like::default());
    drop(written(dir.path(), &windows));
    // Killed while writing another window: its histograms are complete, its line is partial.
    let next = fixture::window(windows.len() as u64, Like::default());
    let log = hlog::intervals(&next, &mut hdrhistogram::serialization::V2DeflateSerializer::new()).unwrap();
    append(&dir.path().join(LATENCY), &log[..log.len() - 7]);
    append(&dir.path().join(WINDOWS), br#"{"index":5,"start_ns":50"#);

    let read = Recording::open(dir.path()).unwrap();
    assert_eq!(read.windows.len(), windows.len());
    assert!(read.summary.rebuilt);
    assert!(read.notes[0].contains("windows.jsonl is incomplete"), "{:?}", read.notes);
    assert!(read.notes[1].contains("summary.json is missing"), "{:?}", read.notes);
    assert_eq!(read.notes.len(), 2);

    let mut finished = read.summary.clone();
    finished.rebuilt = false;
    let whole = tempfile::tempdir().unwrap();
    let totals = fixture::totals(&windows);
    let summary = written(whole.path(), &windows).finish(&totals, &Outcome::Complete).unwrap();
    same(&finished, &summary);
}

fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_recording_killed_before_its_first_window_is_read() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path(), &[]));
    let read = Recording::open(dir.path()).unwrap();
    assert_eq!((read.windows.len(), read.summary.total.bytes), (0, 0));
    assert_eq!(read.summary.classes.scan.service_ns, None);
}

#[test]
fn a_line_damaged_in_the_middle_is_reported_with_its_position() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path(), &fixture::windows(Like::default())));
    let path = dir.path().join(WINDOWS);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines[2] = "{";
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = Recording::open(dir.path()).unwrap_err();
    assert!(error.what.contains("windows.jsonl:3: damaged"), "{error}");
}

/// Puts a count into a field of a JSON line.
fn with_count(line: &str, place: &str, count: u64) -> String {
    let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
    *value.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = count.into();
    value.to_string()
}

#[test]
fn counts_that_no_run_has_are_refused_before_they_are_added_up() {
    let windows = fixture::windows(Like::default());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(WINDOWS);
    drop(written(dir.path(), &windows));
    let text = fs::read_to_string(&path).unwrap();
    let places =
        ["duration_ns", "classes/scan/bytes", "classes/wal/ios", "members/0/read_bytes", "total/bytes"];
    for place in places.map(|place| format!("/{place}")) {
        let lines: Vec<_> = text.lines().map(|line| with_count(line, &place, u64::MAX / 3)).collect();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let error = Recording::open(dir.path()).unwrap_err();
        assert!(error.what.contains("windows.jsonl is damaged: it counts more than"), "{place}: {error}");
    }
    fs::write(&path, &text).unwrap();
    Recording::open(dir.path()).unwrap();
    let whole = tempfile::tempdir().unwrap();
    written(whole.path(), &windows).finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
    let path = whole.path().join(SUMMARY);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, with_count(&text, "/classes/scan/errors", u64::MAX)).unwrap();
    let error = Recording::open(whole.path()).unwrap_err();
    assert!(error.what.contains("summary.json is damaged: it counts more than"), "{error}");
}

#[test]
fn the_log_sums_to_the_windows() {
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like::default());
    drop(written(dir.path(), &windows));
    let log = fs::read(dir.path().join(LATENCY)).unwrap();
    let entries: Vec<_> = IntervalLogIterator::new(&log).map(Result::unwrap).collect();
    assert!(matches!(entries[0], LogEntry::StartTime(t) if t.as_secs() == 1_700_000_000));
    assert!(matches!(entries[1], LogEntry::BaseTime(_)));
    let intervals = entries.iter().filter_map(|e| match e {
        LogEntry::Interval(interval) => Some(interval),
        _ => None,
    });
    // Services of four classes, responses of two, the WAL's writes and flushes.
    assert_eq!(intervals.clone().count(), windows.len() * 8);
    let tags: std::collections::BTreeSet<_> = intervals.map(|i| i.tag().unwrap().as_str()).collect();
    let (of_warm_up, tags): (Vec<_>, Vec<_>) = tags.into_iter().partition(|tag| tag.starts_with("warmup."));
    assert!(of_warm_up.iter().map(|tag| &tag["warmup.".len()..]).eq(tags.iter().copied()));
    let expected = [
        "background",
        "background.response",
        "point",
        "scan",
        "wal",
        "wal.flush",
        "wal.response",
        "wal.write",
    ];
    assert!(tags.into_iter().eq(expected));

    let counted: Vec<_> = windows.iter().filter(|window| !window.warmup).collect();
    let hlog::Logged { sums, damage, repeated, .. } = hlog::sums(&*log, &counted).unwrap();
    assert_eq!((damage, repeated), (None, 0));
    for class in Class::ALL {
        let ios: u64 = counted.iter().map(|window| window.class(class).ios).sum();
        assert_eq!(sums[class.name()].len(), ios, "{class}");
    }
}

#[test]
fn the_summary_is_the_sum_of_the_counted_windows() {
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like { warmup: 2, ..Like::default() });
    drop(written(dir.path(), &windows));
    let read = Recording::open(dir.path()).unwrap();
    let counted = || read.windows.iter().filter(|window| !window.warmup);
    // Merging everything under a tag gives the summary's figures.
    let log = fs::read(dir.path().join(LATENCY)).unwrap();
    let merged = hlog::sums(&*log, &read.windows.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(merged.damage, None);
    let merged = merged.sums;
    for class in Class::ALL {
        assert_eq!(merged[class.name()].len(), read.summary.class(class).ios);
    }
    for class in Class::ALL {
        let figures = read.summary.class(class);
        assert_eq!(figures.bytes, counted().map(|w| w.class(class).bytes).sum::<u64>());
        assert_eq!(figures.ios, counted().map(|w| w.class(class).ios).sum::<u64>());
        assert_eq!(figures.service_ns.as_ref().unwrap().count, figures.ios);
    }
    assert_eq!(read.summary.total.bytes, counted().map(|w| w.total.bytes).sum::<u64>());
    assert!((read.summary.duration_s - 4.0).abs() < 1e-9);
}

#[test]
fn a_nonempty_folder_is_left_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like::default());
    drop(written(dir.path(), &windows));
    let before = fs::read(dir.path().join(WINDOWS)).unwrap();
    let error = Writer::create(dir.path(), &fixture::header()).err().unwrap();
    assert_eq!(error.kind, Kind::Input);
    assert!(error.what.ends_with("already holds a recording"), "{error}");
    assert_eq!(fs::read(dir.path().join(WINDOWS)).unwrap(), before);

    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("letter.txt"), "dear").unwrap();
    let error = Writer::create(other.path(), &fixture::header()).err().unwrap();
    assert!(error.what.ends_with("is not empty"), "{error}");
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);

    let error = Recording::open(other.path()).unwrap_err();
    assert_eq!(error.kind, Kind::Input);
}

#[test]
fn a_file_in_the_folders_place_is_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Writer::create(file.path(), &fixture::header()).err().unwrap();
    assert!(error.what.contains(&file.path().display().to_string()), "{error}");
}

#[test]
fn an_open_line_is_written_once_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = written(dir.path(), &[]);
    let open = |number| crate::meter::window::LedgerLine { open: true, ..fixture::turn(number) };
    for turn in [open(1), open(2), open(1), fixture::turn(1)] {
        writer.ledger(&turn).unwrap();
    }
    writer.finish(&crate::meter::whole_run::totals::Totals::default(), &Outcome::Interrupted).unwrap();
    let read = Recording::open(dir.path()).unwrap();
    assert_eq!(read.ledger, [fixture::turn(1), open(2)]);
    assert!(read.summary.interrupted);
}

#[test]
fn the_summary_has_the_keys_that_scripts_read() {
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like::default());
    let mut totals = fixture::totals(&windows);
    totals.classes[0].mb_per_s = f64::NAN; // of a run without time
    totals.classes[1].latencies.service_ns = Some(Latency::default());
    totals.classes[3].not_held = true;
    written(dir.path(), &windows).finish(&totals, &Outcome::Complete).unwrap();
    let text = fs::read(dir.path().join(SUMMARY)).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["stacktune"], env!("CARGO_PKG_VERSION"));
    assert!(json["duration_s"].is_f64());
    for class in ["scan", "point", "wal", "background"] {
        for key in ["bytes", "ios", "errors", "missed", "mb_per_s", "iops"] {
            assert!(json["classes"][class][key].is_number(), "{class}.{key}");
        }
        assert!(json["classes"][class]["flags"].is_array());
        assert_eq!(json["classes"][class]["state"], "running");
    }
    let wal = &json["classes"]["wal"];
    for key in ["service_ns", "response_ns", "write_ns", "flush_ns"] {
        for figure in ["mean", "p50", "p90", "p99", "max"] {
            assert!(wal[key][figure].is_number(), "{key}.{figure}");
        }
        assert!(wal[key].as_object().unwrap()["p9999"].is_null());
    }
    let total = &json["total"];
    for key in ["bytes", "mb_per_s", "cycles_per_byte", "cpu_busy"] {
        assert!(total[key].is_number(), "{key}");
    }
    assert_eq!(total["cycles_source"], "estimate");
    assert_eq!(json["classes"]["scan"]["mb_per_s"], 0.0);
    assert!(json["classes"]["point"].as_object().unwrap()["service_ns"].is_null());
    assert!(json["classes"]["background"].as_object().unwrap()["response_ns"].is_null());
    assert!(json["flags"].is_array());
}

#[test]
fn errors_are_reported_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like::default());
    let mut totals = fixture::totals(&windows);
    assert_eq!(Summary::of(&totals, summary::Frame::default()).errors_line(), None);
    totals.classes[0].errors = 2;
    totals.classes[0].errnos.insert("EIO".into(), 2);
    totals.classes[2].errors = 1;
    let summary = written(dir.path(), &windows).finish(&totals, &Outcome::Complete).unwrap();
    assert_eq!(summary.errors_line().unwrap(), "3 I/O errors: scan 2 (EIO), wal 1");
}

#[test]
fn a_newer_layout_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path(), &[]));
    fs::write(dir.path().join(SUMMARY), r#"{"schema": 99}"#).unwrap();
    let error = Recording::open(dir.path()).unwrap_err();
    assert!(error.what.contains("newer stacktune"), "{error}");
}

#[test]
fn what_is_no_regular_file_is_neither_waited_for_nor_read() {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let windows = fixture::windows(Like::default());
    for name in [PROFILE, HOST, WINDOWS, LATENCY, LEDGER, SUMMARY] {
        let dir = tempfile::tempdir().unwrap();
        let writer = written(dir.path(), &windows);
        if name == LATENCY {
            drop(writer);
        } else {
            writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
        }
        let path = dir.path().join(name);
        fs::remove_file(&path).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let read = || match Recording::open(dir.path()) {
            Ok(recording) => recording.notes.concat(),
            Err(error) => error.what,
        };
        assert!(read().contains("not a regular file"), "{name}: {}", read());
        fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        assert!(read().contains("not a regular file"), "{name}: {}", read());
    }
}

#[test]
fn a_line_without_an_end_is_not_read_into_memory() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path(), &fixture::windows(Like::default())));
    let file = fs::OpenOptions::new().append(true).open(dir.path().join(WINDOWS)).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len + (1 << 30)).unwrap();
    let error = Recording::open(dir.path()).unwrap_err();
    assert!(error.what.ends_with("windows.jsonl:6: damaged: it is longer than any line"), "{error}");
    file.set_len(3 << 30).unwrap();
    let error = Recording::open(dir.path()).unwrap_err();
    assert!(error.what.ends_with("windows.jsonl is larger than any recording's"), "{error}");
}

/// A recording as read after a change to one of its files.
pub(super) fn changed(name: &str, killed: bool, change: impl Fn(&str) -> String) -> Recording {
    let dir = tempfile::tempdir().unwrap();
    let windows = fixture::windows(Like::default());
    let mut writer = written(dir.path(), &windows);
    writer.ledger(&fixture::turn(1)).unwrap();
    if killed {
        drop(writer);
    } else {
        writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
    }
    let path = dir.path().join(name);
    fs::write(&path, change(&fs::read_to_string(&path).unwrap())).unwrap();
    Recording::open(dir.path()).unwrap()
}

/// Sets a figure of a file, or of its first line.
pub(super) fn set(text: &str, at: &str, figure: impl Into<serde_json::Value>) -> String {
    let is_whole = serde_json::from_str::<serde_json::Value>(text).is_ok();
    let (first, rest) = if is_whole { (text, "") } else { text.split_once('\n').unwrap() };
    let mut value: serde_json::Value = serde_json::from_str(first).unwrap();
    *value.pointer_mut(at).unwrap_or_else(|| panic!("{at}")) = figure.into();
    format!("{value}\n{rest}")
}

#[test]
fn figures_that_contradict_each_other_are_called_inconsistent() {
    let without = |text: &str, lines: [usize; 2]| -> String {
        let kept = text.lines().enumerate().filter(|(at, _)| !lines.contains(at));
        kept.flat_map(|(_, line)| [line, "\n"]).collect()
    };
    let twice = |text: &str, at: usize| {
        text.replace(text.lines().nth(at).unwrap(), &{
            let line = text.lines().nth(at).unwrap();
            format!("{line}\n{line}")
        })
    };
    let said = |recording: &Recording, what: &str| {
        let is_it = |note: &&String| note.starts_with("Inconsistent: ") && note.contains(what);
        assert_eq!(recording.notes.iter().filter(is_it).count(), 1, "{what}: {:?}", recording.notes);
        assert!(recording.summary.forbids_verdict(&recording.summary.flags), "{what}");
    };
    for (at, figure, what) in [
        ("/classes/scan/service_ns/p99", 1.into(), "scan has p99 below p90"),
        ("/classes/wal/flush_ns/max", 1.into(), "wal has its maximum below p99"),
        ("/classes/point/service_ns/mean", 1e12.into(), "a mean above its maximum"),
        ("/classes/scan/mb_per_s", 9999.0.into(), "scan has 9999.000 MB/s"),
        ("/total/mb_per_s", 0.5.into(), "the total has 0.500 MB/s"),
        ("/windows", 9.into(), "9 windows, windows.jsonl 4"),
        ("/warmup_windows", 0.into(), "0 windows of warm-up, windows.jsonl 1"),
        ("/classes/wal/ios", 7.into(), "7 I/Os of wal"),
        ("/classes/wal/errors", 7.into(), "7 errors of wal, windows.jsonl 0"),
    ] {
        let figure: serde_json::Value = figure;
        said(&changed(SUMMARY, false, |text| set(text, at, figure.clone())), what);
    }
    for (at, figure, what) in [
        ("/classes/scan/latencies/service_ns/p50", 99_999_999_999u64, "scan in window 0 has p90 below p50"),
        ("/total/bytes", 1, "the classes in window 0 have"),
        ("/start_ns", 5, "window 1 does not begin where window 0 ends"),
    ] {
        said(&changed(WINDOWS, false, |text| set(text, at, figure)), what);
    }
    said(&changed(LEDGER, false, |text| set(text, "/scan_mb_per_s/before", 5.0)), "outside its own range");
    for killed in [false, true] {
        said(&changed(WINDOWS, killed, |text| without(text, [2, 3])), "windows 2 to 3 are missing");
        said(&changed(WINDOWS, killed, |text| without(text, [2, 2])), "window 2 is missing");
        said(&changed(WINDOWS, killed, |text| twice(text, 2)), "window 2 is there twice");
        let moved = |text: &str| without(text, [0, 0]) + text.lines().next().unwrap() + "\n";
        said(&changed(WINDOWS, killed, moved), "window 0 comes after window 4");
    }
    let log = changed(LATENCY, true, |text| twice(text, 14));
    said(&log, "latency.hlog repeats 1 line");
    let whole = changed(LATENCY, true, str::to_owned);
    assert_eq!(log.summary.classes, whole.summary.classes, "it counts once");
    said(&changed(LATENCY, true, |text| without(text, [13, 13])), "samples of `scan`");
    let many = changed(WINDOWS, false, |text| text.replace("\"mb_per_s\":", "\"mb_per_s\":1"));
    assert!(many.notes.len() == 6 && many.notes[5].contains("more contradictions"), "{:?}", many.notes);
}
