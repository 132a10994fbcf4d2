//! Reports of made-up runs.

use std::path::Path;

use super::compare::Comparison;
use super::*;
use crate::meter::flag::FlagKind;
use crate::meter::window::{CyclesSource, Flag, Verdict, Window};
use crate::runs::record::fixture::{self, Like};
use crate::runs::record::{Header, Outcome, Recording, Writer};
use crate::settings::testing::capable_host;

/// A recording in `dir/name`, written and read back.
fn recorded(dir: &Path, name: &str, header: &Header, windows: &[Window]) -> Recording {
    let dir = dir.join(name);
    let mut writer = Writer::create(&dir, header).unwrap();
    for window in windows {
        writer.window(window).unwrap();
    }
    writer.finish(&fixture::totals(windows), &Outcome::Complete).unwrap();
    Recording::open(&dir).unwrap()
}

fn like(dir: &Path, name: &str, like: Like) -> Recording {
    recorded(dir, name, &fixture::header(), &fixture::windows(like))
}

fn cell<'a>(comparison: &'a Comparison, figure: &str, column: usize) -> &'a compare::Cell {
    &comparison.rows.iter().find(|row| row.figure == figure).unwrap().cells[column]
}

fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

fn flagged(windows: &mut [Window], forbids_verdict: bool) {
    for window in windows {
        window.classes[0].flags = vec![Flag {
            text: "data fits memory".into(),
            why: "The reads may be served without storage I/O, so they say little about the drives".into(),
            forbids_verdict,
        }];
    }
}

#[test]
fn a_recording_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let mut windows = fixture::windows(Like::default());
    flagged(&mut windows, true);
    for window in &mut windows {
        window.classes[3].missed = 100;
    }
    windows[2].classes[0].errors = 3;
    windows[2].classes[0].errnos.insert("EIO".into(), 3);
    let mut writer = Writer::create(&dir.path().join("base"), &fixture::header()).unwrap();
    for window in &windows {
        writer.window(window).unwrap();
    }
    writer.ledger(&fixture::turn(1)).unwrap();
    writer.finish(&fixture::totals(&windows), &Outcome::Interrupted).unwrap();
    let recording = Recording::open(&dir.path().join("base")).unwrap();
    let text = show(&recording);
    fits(&text);
    insta::assert_snapshot!(text);
    let json = serde_json::to_value(Shown::of(&recording)).unwrap();
    assert_eq!(json["summary"]["classes"]["scan"]["flags"][0], "data fits memory");
    assert_eq!(json["ledger"][0]["knob"], "scan.depth");
}

#[test]
fn a_killed_recording_is_shown_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&dir.path().join("cut"), &fixture::header()).unwrap();
    writer.window(&fixture::window(1, Like::default())).unwrap();
    drop(writer);
    let text = show(&Recording::open(&dir.path().join("cut")).unwrap());
    assert!(text.contains("note: summary.json is missing"), "{text}");
}

#[test]
fn two_recordings_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let a = like(dir.path(), "base", Like::default());
    let mut header = fixture::header();
    header.facts.kernel = "6.14.2-amd64".into();
    header.facts.cpu.governor = None;
    header.profile_toml = "name = \"other\"\n[io]\ninterface = \"libaio\"\n[scan]\ndepth = 64\n".into();
    let faster = Like { scan_ios: 75_000, commit_ns: 600_000, ..Like::default() };
    let b = recorded(dir.path(), "faster", &header, &fixture::windows(faster));
    let comparison = compare(&[a, b]).unwrap();
    let difference = |what: &str| {
        let found = comparison.differences.iter().find(|difference| difference.what == what);
        found.map(|found| found.values.iter().flatten().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(difference("scan.depth"), Some(vec!["128", "64"]), "what is not given has its default");
    assert_eq!(difference("scan.interface"), None, "it is listed with `[io]`");

    let scan = cell(&comparison, "classes.scan.mb_per_s", 1);
    assert_eq!(scan.verdict, Verdict::Higher);
    let (low, high) = scan.change_range.unwrap();
    assert!(low > 0.0 && low < scan.change.unwrap() && scan.change.unwrap() < high);
    assert_eq!(cell(&comparison, "classes.point.service_ns.p50", 1).verdict, Verdict::NoClearChange);
    assert_eq!(cell(&comparison, "classes.wal.service_ns.p50", 1).verdict, Verdict::Higher);
    assert_eq!(cell(&comparison, "total.cycles_per_byte", 1).verdict, Verdict::Lower);
    let text = comparison.to_string();
    fits(&text);
    insta::assert_snapshot!(text);
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["recordings"][1]["name"], "faster");
    assert_eq!(json["rows"][0]["cells"][1]["verdict"], "higher");
}

#[test]
fn a_percentile_of_few_commits_a_second_is_judged_by_windows_together() {
    let dir = tempfile::tempdir().unwrap();
    let recording = |name: &str, like: &dyn Fn(u64) -> Like| {
        let windows: Vec<_> = (0..25).map(|index| fixture::window(index, like(index))).collect();
        recorded(dir.path(), name, &fixture::header(), &windows)
    };
    let slow = |commit_ns| Like { commits: 120, commit_ns, ..Like::default() };
    let before = recording("before", &|_| slow(4_000_000));
    let after = recording("after", &|_| slow(8_000_000));
    let comparison = compare(&[before, after]).unwrap();
    for percentile in ["p50", "p90", "p99"] {
        let p = cell(&comparison, &format!("classes.wal.service_ns.{percentile}"), 1);
        assert_eq!((p.verdict, p.why.as_deref()), (Verdict::Higher, None), "{percentile}");
        assert!(p.change_range.unwrap().0 > 0.05);
    }
    // Three hundred commits make a stretch; those of 24 windows have no p99.9.
    assert_eq!(cell(&comparison, "classes.wal.service_ns.p99", 0).windows, 8);
    assert!(comparison.rows.iter().all(|row| row.figure != "classes.wal.service_ns.p999"));

    // If only some windows have a p99 of their own, the others count, too.
    let mixed = recording("mixed", &|index| match index % 4 {
        0 => Like { commits: 1_200, ..Like::default() },
        _ => slow(4_000_000),
    });
    let comparison = compare(&[mixed.clone(), mixed]).unwrap();
    let (low, high) = cell(&comparison, "classes.wal.service_ns.p99", 0).range.unwrap();
    assert!(low < 700_000.0 && high > 5_000_000.0, "{low} {high}");
}

#[test]
fn overlapping_windows_are_no_clear_change() {
    let dir = tempfile::tempdir().unwrap();
    let a = like(dir.path(), "a", Like { jitter_ios: 4_000, ..Like::default() });
    let b = like(dir.path(), "b", Like { scan_ios: 66_000, jitter_ios: 4_000, ..Like::default() });
    let comparison = compare(&[a, b]).unwrap();
    let scan = cell(&comparison, "classes.scan.mb_per_s", 1);
    assert_eq!(scan.verdict, Verdict::NoClearChange);
    assert!(scan.change.unwrap() > 0.05);
}

#[test]
fn many_recordings_are_shown_in_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let recordings: Vec<_> = (0..4)
        .map(|i| {
            like(dir.path(), &format!("run-{i}"), Like { scan_ios: 60_000 + i * 10_000, ..Like::default() })
        })
        .collect();
    let comparison = compare(&recordings).unwrap();
    assert_eq!(comparison.differences, []);
    assert!(comparison.rows.iter().all(|row| row.cells.len() == 4));
    let text = comparison.to_string();
    fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn what_cannot_be_judged_gets_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let faster = Like { scan_ios: 90_000, ..Like::default() };
    let a = like(dir.path(), "a", Like::default());
    let against = |name: &str, change: &dyn Fn(&mut Vec<Window>)| {
        let mut windows = fixture::windows(faster);
        change(&mut windows);
        let b = recorded(dir.path(), name, &fixture::header(), &windows);
        let comparison = compare(&[a.clone(), b]).unwrap();
        let scan = cell(&comparison, "classes.scan.mb_per_s", 1).clone();
        (scan.verdict, scan.why.unwrap_or_default(), comparison)
    };

    let (verdict, why, comparison) = against("flagged", &|windows| flagged(windows, true));
    assert_eq!((verdict, why.as_str()), (Verdict::None, "flagged"));
    assert!(comparison.to_string().contains("! B scan: data fits memory"));
    assert_eq!(cell(&comparison, "total.mb_per_s", 1).verdict, Verdict::None);
    assert_eq!(cell(&comparison, "classes.point.mb_per_s", 1).verdict, Verdict::NoClearChange);

    let (verdict, ..) = against("remarked", &|windows| flagged(windows, false));
    assert_eq!(verdict, Verdict::Higher);
    let (verdict, why, _) = against("short", &|windows| windows.truncate(3));
    assert_eq!((verdict, why.as_str()), (Verdict::None, "few windows"));
    let (verdict, why, _) = against("turned", &|windows| windows[4].setting = 1);
    assert_eq!((verdict, why.as_str()), (Verdict::None, "knobs turned"));
    let (verdict, _, comparison) = against("counted", &|windows| {
        for window in windows {
            window.cpu.cycles_source = CyclesSource::Pmu;
        }
    });
    assert_eq!(verdict, Verdict::Higher);
    assert_eq!(cell(&comparison, "total.cycles_per_byte", 1).verdict, Verdict::None);
    let (verdict, _, comparison) = against("beside others", &|windows| {
        for window in windows {
            window.cpu.others_cores = Some(0.92);
            window.flags.push(FlagKind::Others.with_cores(0.92, ""));
        }
    });
    assert_eq!(verdict, Verdict::Higher, "others' use forbids that on cycles and cores alone");
    for figure in ["total.cycles_per_byte", "total.cycles_per_op", "total.cpu_busy"] {
        let cell = cell(&comparison, figure, 1);
        assert_eq!((cell.verdict, cell.why.as_deref()), (Verdict::None, Some("others' CPU")), "{figure}");
    }
    assert!(comparison.to_string().contains("B: cycles and cores are not judged: others used 0.9 cores."));
    let (.., comparison) = against("behind", &|windows| {
        for window in windows {
            window.classes[3].missed = 100;
        }
    });
    let response = cell(&comparison, "classes.background.response_ns.p50", 1);
    assert_eq!((response.value, response.why.as_deref()), (None, Some("not held")));
}

#[test]
fn less_durable_is_never_a_gain() {
    let dir = tempfile::tempdir().unwrap();
    let a = like(dir.path(), "a", Like::default());
    let mut header = fixture::header();
    header.profile_toml += "[wal]\nsync = \"none\"\n";
    let b =
        recorded(dir.path(), "b", &header, &fixture::windows(Like { commit_ns: 20_000, ..Like::default() }));
    let comparison = compare(&[a, b]).unwrap();
    assert!(cell(&comparison, "classes.wal.service_ns.p50", 1).less_durable);
    let text = comparison.to_string();
    assert!(text.contains("note: B is less durable than A (wal.sync none)"), "{text}");
}

#[test]
fn a_stack_that_survives_fewer_drives_never_gains() {
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &str, raid: &str, array: &str| {
        let mut header = fixture::header();
        let own = format!(
            "[target]\ndevices = [\"/dev/a\", \"/dev/b\", \"/dev/c\", \"/dev/d\"]\n\
             [stack]\nraid = \"{raid}\"\n[md]\narray = \"{array}\"\n"
        );
        header.profile_toml += &own;
        recorded(dir.path(), name, &header, &fixture::windows(Like::default()))
    };
    let note = |a: &Recording, b: &Recording| {
        let comparison = compare(&[a.clone(), b.clone()]).unwrap();
        let text = comparison.to_string();
        let counts_as_no_gain = cell(&comparison, "classes.scan.mb_per_s", 1).less_durable;
        assert_eq!(text.contains("less durable"), counts_as_no_gain, "{text}");
        text.lines().find(|line| line.contains("less durable")).map(str::to_owned)
    };
    let [striped, mirrored, degraded] =
        [("a", "md0", "healthy"), ("b", "md10", "healthy"), ("c", "md10", "degraded")]
            .map(|(name, raid, array)| of(name, raid, array));
    for fewer in [&striped, &degraded] {
        let less = note(&mirrored, fewer).unwrap();
        assert!(less.contains("B is less durable than A (survives the loss of drives: 1 → 0)"), "{less}");
        assert_eq!(note(fewer, &mirrored), None);
    }
    assert_eq!(note(&striped, &degraded), None, "neither survives a loss");
    let bare = of("d", "none", "healthy");
    assert_eq!(note(&mirrored, &bare), None, "what is below a bare device is unknown");
}

#[test]
fn a_file_system_that_does_not_flush_never_gains_unless_the_caches_last() {
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &str, options: &str, volatile: Option<bool>| {
        let mut header = fixture::header();
        header.facts.devices = capable_host().devices;
        header.facts.devices.iter_mut().for_each(|device| device.volatile_write_cache = volatile);
        let paths: Vec<_> = header.facts.devices.iter().map(|device| format!("{:?}", device.path)).collect();
        let own = format!(
            "[target]\ndevices = [{}]\n[stack]\nfilesystem = \"ext4\"\nraid = \"md0\"\nmount_options = \"{options}\"\n",
            paths.join(", ")
        );
        header.profile_toml += &own;
        recorded(dir.path(), name, &header, &fixture::windows(Like::default()))
    };
    let flushes = of("a", "", None);
    let note = |other: Recording| {
        let text = compare(&[flushes.clone(), other]).unwrap().to_string();
        text.lines().find(|line| line.contains("less durable")).map(str::to_owned)
    };
    for volatile in [None, Some(true)] {
        let less = note(of(&format!("b{volatile:?}"), "nobarrier", volatile)).unwrap();
        assert!(less.contains("less durable than A (stack.mount_options nobarrier)"), "{less}");
    }
    assert_eq!(note(of("c", "nobarrier", Some(false))), None);
    assert_eq!(note(of("d", "barrier=0,barrier", Some(true))), None);
}

#[test]
fn a_programs_less_durable_value_is_never_a_gain() {
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &str, value: &str, slack: &str| {
        let mut header = fixture::header();
        let own = format!(
            "[command]\nrun = [\"bench\"]\n[[command.knob]]\nname = \"sync\"\nvalues = [\"on\", \"off\"]\n\
             value = \"{value}\"\nturn = [\"set\"]\n{slack}"
        );
        header.profile_toml += &own;
        recorded(dir.path(), name, &header, &fixture::windows(Like::default()))
    };
    let declared = "less_durable = [\"off\"]\n";
    let [on, off] = [of("on", "on", declared), of("off", "off", declared)];
    let text = compare(&[on.clone(), off.clone()]).unwrap().to_string();
    assert!(text.contains("note: B is less durable than A (command.sync off)"), "{text}");
    for other in [&[off, on][..], &[of("c", "on", ""), of("d", "off", "")]] {
        let text = compare(other).unwrap().to_string();
        assert!(!text.contains("less durable"), "{text}");
    }
}

#[test]
fn windows_cut_short_do_not_widen_a_range() {
    let dir = tempfile::tempdir().unwrap();
    let mut windows = fixture::windows(Like::default());
    let whole = recorded(dir.path(), "whole", &fixture::header(), &windows);
    let mut cut = fixture::window(5, Like::default());
    cut.duration_ns /= 20;
    cut.classes[0].mb_per_s = 1.0;
    windows.push(cut);
    let with = recorded(dir.path(), "cut", &fixture::header(), &windows);
    let comparison = compare(&[whole, with]).unwrap();
    let range = |column| cell(&comparison, "classes.scan.mb_per_s", column).range;
    assert_eq!(range(0), range(1));
}

#[test]
fn unreadable_settings_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let a = like(dir.path(), "a", Like::default());
    let mut header = fixture::header();
    header.profile_toml = "[scan]\ndepht = 3\n".into();
    let b = recorded(dir.path(), "b", &header, &fixture::windows(Like::default()));
    let comparison = compare(&[a, b]).unwrap();
    let said = |note: &String| note.starts_with("B: its settings can't be read");
    assert!(comparison.notes.iter().any(said), "{:?}", comparison.notes);
}

#[test]
fn one_recording_is_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let a = like(dir.path(), "a", Like::default());
    assert_eq!(compare(&[a]).unwrap_err().kind, crate::error::Kind::Input);
}

/// Every place of a text in the value.
fn texts(value: &serde_json::Value, at: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(_) => found.push(at.to_owned()),
        serde_json::Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| texts(item, &format!("{at}/{index}"), found));
        }
        serde_json::Value::Object(map) => {
            map.iter().for_each(|(key, item)| texts(item, &format!("{at}/{key}"), found));
        }
        _ => {}
    }
}

/// What is printed for a recording, even if that is an error.
fn printed(dir: &Path) -> String {
    let recording = match Recording::open(dir) {
        Ok(recording) => recording,
        Err(error) => return error.to_string(),
    };
    let compared = compare(&[recording.clone(), recording.clone()]).map(|comparison| comparison.to_string());
    let over_time = OverTime::of(&recording).map(|over_time| over_time.to_string());
    let others = [compared, over_time].map(|text| text.unwrap_or_else(|error| error.to_string()));
    show(&recording) + &others.concat()
}

#[test]
fn no_text_of_a_recording_reaches_the_terminal_raw_or_makes_a_line() {
    const EVIL: &str = "x\nFALSE\x1b]0;y\x07\u{9b}31m\u{202e}\r";
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("a\nFALSE\x1b[2J");
    let mut windows = fixture::windows(Like::default());
    flagged(&mut windows, true);
    let mut writer = Writer::create(&run, &fixture::header()).unwrap();
    windows.iter().for_each(|window| writer.window(window).unwrap());
    writer.ledger(&fixture::turn(1)).unwrap();
    writer.finish(&fixture::totals(&windows), &Outcome::Failed("a drive is gone".into())).unwrap();
    let mut tried = 0;
    for name in ["summary.json", "host.json", "windows.jsonl", "ledger.jsonl"] {
        let path = run.join(name);
        let whole = std::fs::read_to_string(&path).unwrap();
        let (first, rest) = if name.ends_with('l') { whole.split_once('\n').unwrap() } else { (&*whole, "") };
        let value: serde_json::Value = serde_json::from_str(first).unwrap();
        let mut places = Vec::new();
        texts(&value, "", &mut places);
        for place in places {
            let mut changed = value.clone();
            *changed.pointer_mut(&place).unwrap() = EVIL.into();
            std::fs::write(&path, format!("{changed}\n{rest}")).unwrap();
            let text = printed(&run);
            let is_wrong =
                |line: &str| line.trim_start().starts_with("FALSE") || !crate::printable::is_line(line);
            let wrong: Vec<_> = text.lines().filter(|line| is_wrong(line)).collect();
            assert!(wrong.is_empty(), "{name}{place}: {wrong:?}");
            tried += 1;
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert!(tried > 70, "{tried}");
}
