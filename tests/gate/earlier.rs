//! Earlier builds' files stay readable: recordings, sweeps and journals in `tests/recordings/earlier`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::common::program::{Home, json_file};
use crate::common::terminal::Terminal;
use crate::terminal::{ALL, quit};

/// Kinds of recordings, with some of the text shown for each.
const KINDS: [(&str, &[&str]); 4] = [
    ("duel", &["scan.rate 4MB/s against 8MB/s", "8MB/s is better: scan MB/s"]),
    ("program", &["profile counts", "command.rate 100 → 400", "better"]),
    ("traced", &["Rules of drives", "misses of a cache", "traced"]),
    (
        "turned",
        &["wal.sync fdatasync → none", "less durable", "WAL p99       9.20ms [4.62ms–13.1ms] → 2.84ms"],
    ),
];

fn earlier(name: &str) -> String {
    format!("{}/tests/recordings/earlier/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A kept recording, unpacked into the home.
fn unpacked(home: &Home, name: &str) -> String {
    let dir = home.path("kinds").join(name);
    fs::create_dir_all(&dir).unwrap();
    for entry in fs::read_dir(earlier(name)).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let mut to = dir.join(path.file_name().unwrap());
        if path.extension().is_some_and(|extension| extension == "gz") {
            let packed = std::mem::take(&mut bytes);
            GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
            to.set_extension("");
        }
        fs::write(to, bytes).unwrap();
    }
    dir.to_str().unwrap().to_owned()
}

/// Opens it with everything that reads recordings.
#[track_caller]
fn read_by_all(home: &Home, dir: &str, words: &[&str]) {
    let shown = home.run(["show", dir]).expect(0);
    for word in words {
        assert!(shown.stdout.contains(word), "{word}: {shown:?}");
    }
    assert!(!shown.stdout.contains("Inconsistent"), "{shown:?}");
    let summary = home.run(["show", "--json", dir]).expect(0).json()["summary"].take();
    assert_eq!((&summary["schema"], &summary["rebuilt"]), (&1.into(), &false.into()), "{dir}");
    for arguments in [
        &["show", "--over-time", dir][..],
        &["show", "--over-time", "--json", dir],
        &["compare", dir, &earlier("run")],
        &["compare", "--json", &earlier("run"), dir],
    ] {
        home.run(arguments).expect(0);
    }
    let arguments = ["show", dir, "--screen"].map(str::to_owned);
    let mut terminal = Terminal::start(home, &arguments, ALL, &[]);
    terminal.wait_for("RECORDING");
    // Its end, the next turn, and its totals.
    for (keys, shown) in [("\x1b[F", "RECORDING"), ("N", "RECORDING"), ("c", "total")] {
        terminal.press(keys);
        terminal.wait_for(shown);
    }
    quit(terminal);
}

#[test]
fn each_kind_of_recording_is_opened_by_every_reader() {
    let home = Home::new();
    for (kind, words) in KINDS {
        let dir = unpacked(&home, kind);
        read_by_all(&home, &dir, words);
        let host = json_file(&Path::new(&dir).join("host.json"));
        assert_eq!(host["hostname"], "vm", "{kind}");
        let devices = host["devices"].as_array().unwrap();
        assert!(devices.iter().all(|device| device["serial"].is_null()), "{kind}");
    }
    let kinds = home.path("kinds");
    let kinds = kinds.to_str().unwrap();
    let listed = home.run(["show", "--list", "--json", kinds]).expect(0).json();
    let recordings = listed[0]["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), KINDS.len(), "{listed:#}");
    assert!(recordings.iter().all(|recording| !recording["figures"].is_null()), "{listed:#}");

    // Files that only some of them have.
    let duel = json_file(&Path::new(kinds).join("duel/duel.json"));
    assert_eq!((&duel["verdict"], &duel["figure"]), (&"second".into(), &"scan".into()));
    let scored = home.run(["contract", "--json", &format!("{kinds}/traced")]).expect(0).json();
    assert!(scored["request_scale"]["by_operation"]["read"].is_object(), "{scored:#}");
    home.run(["cost", &format!("{kinds}/traced"), &format!("{kinds}/traced")]).expect(0);
    let flash = home.run(["ftl", "--from", &format!("{kinds}/traced/trace.blktrace.0")]).expect(0);
    assert!(flash.stdout.contains("WA-D"), "{flash:?}");

    // A trace with fewer I/Os than were traced is not scored as if it were whole.
    let file = fs::OpenOptions::new().write(true).open(format!("{kinds}/traced/trace.blktrace.0")).unwrap();
    file.set_len(file.metadata().unwrap().len() - 20 * 48).unwrap();
    let cut = home.run(["contract", &format!("{kinds}/traced")]).expect(2);
    assert!(cut.stderr.contains("was cut off: it has"), "{cut:?}");
}

#[test]
fn an_earlier_recording_is_shown_and_compared() {
    let home = Home::new();
    let shown = home.run(["show", &earlier("run")]).expect(0);
    for expected in ["profile demo, 3s", "AMD EPYC", "scan                3608", "missed 1421 of 3053"] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown:?}");
    }
    let shown = home.run(["show", "--json", &earlier("run")]).expect(0).json();
    assert_eq!(shown["summary"]["schema"], 1);
    let compared = home.run(["compare", &earlier("run"), &earlier("other")]).expect(0);
    assert!(compared.stdout.contains("scan.depth: A 128 | B 4"), "{compared:?}");
}

/// Ledger lines as the first version wrote them: with five figures, and without intervals.
#[test]
fn earlier_turns_are_shown() {
    let home = Home::new();
    let dir = home.path("turned");
    fs::create_dir(&dir).unwrap();
    for name in ["host.json", "latency.hlog", "profile.toml", "summary.json", "windows.jsonl"] {
        fs::copy(format!("{}/{name}", earlier("run")), dir.join(name)).unwrap();
    }
    fs::copy(earlier("turns.jsonl"), dir.join("ledger.jsonl")).unwrap();
    let folder = dir.to_str().unwrap();
    let shown = home.run(["show", folder]).expect(0);
    for expected in ["scan.depth 128 → 4", "wal.sync fdatasync → none", "less durable", "too short"] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown:?}");
    }
    assert!(!shown.stdout.contains("Inconsistent"), "{shown:?}");
    let ledger = home.run(["show", "--json", folder]).expect(0).json()["ledger"].take();
    let scan = &ledger[0]["scan_mb_per_s"];
    assert_eq!((&scan["verdict"], &scan["interval"]), (&"lower".into(), &Value::Null), "{scan}");
    assert_eq!(ledger[0]["wal_mb_per_s"]["before"], Value::Null);
    home.run(["compare", folder, &earlier("other")]).expect(0);
}

/// Adds the paths of all keys in a JSON text, or in JSON lines.
fn key_paths(text: &str, paths: &mut BTreeSet<String>) {
    fn of(value: &Value, at: &str, paths: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                let path = format!("{at}/{key}");
                of(value, &path, paths);
                paths.insert(path);
            }),
            Value::Array(items) => items.iter().for_each(|item| of(item, &format!("{at}/*"), paths)),
            _ => {}
        }
    }
    serde_json::Deserializer::from_str(text)
        .into_iter::<Value>()
        .for_each(|value| of(&value.unwrap(), "", paths));
}

/// The text without the keys at these paths.
fn without(text: &str, gone: &BTreeSet<String>) -> String {
    fn strip(value: &mut Value, at: &str, gone: &BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| !gone.contains(&format!("{at}/{key}")));
                map.iter_mut().for_each(|(key, value)| strip(value, &format!("{at}/{key}"), gone));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| strip(item, &format!("{at}/*"), gone)),
            _ => {}
        }
    }
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>().map(|value| {
        let mut value = value.unwrap();
        strip(&mut value, "", gone);
        value.to_string() + "\n"
    });
    values.collect()
}

/// Keys have been added one by one since the kept recording, so recordings of builds in between lack some of
/// them.
#[test]
fn a_recording_without_some_of_the_later_keys_is_shown() {
    const FILES: [&str; 4] = ["host.json", "ledger.jsonl", "summary.json", "windows.jsonl"];
    let home = Home::new();
    let dir = home.path("today");
    let arguments =
        ["record", "demo", "--set", "io.interface=sim", "--duel", "scan.depth=4,64", "--duel-seed", "1"];
    home.run([&arguments[..], &["--out", dir.to_str().unwrap()]].concat()).expect(0);
    let read = |folder: &str, name: &str| fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let today = FILES.map(|name| read(dir.to_str().unwrap(), name));
    let mut later = Vec::new();
    for (at, name) in FILES.iter().enumerate() {
        let (mut now, mut before) = (BTreeSet::new(), BTreeSet::new());
        key_paths(&today[at], &mut now);
        for kept in ["run", "other"] {
            key_paths(&read(&earlier(kept), name), &mut before);
        }
        // Those two have no turns.
        if *name == "ledger.jsonl" {
            key_paths(&fs::read_to_string(earlier("turns.jsonl")).unwrap(), &mut before);
        }
        assert!(!now.is_empty() && !before.is_empty(), "{name}");
        // Keys below a new key go with it.
        let is_new = |path: &&String| {
            !before.contains(*path)
                && path.rsplit_once('/').is_some_and(|(above, _)| {
                    above.is_empty() || before.contains(above) || above.ends_with('*')
                })
        };
        later.extend(now.iter().filter(is_new).map(|path| (at, path.clone())));
    }
    assert!(later.len() > 5, "{later:?}");
    for key in ["/scan_mb_per_s/interval", "/point_p50_ns", "/missed_share"] {
        assert!(later.contains(&(1, key.to_owned())), "{key}: {later:?}");
    }
    let whole = home.run(["show", "--json", dir.to_str().unwrap()]).expect(0).json();
    let turns = whole["ledger"].as_array().unwrap().len();
    assert_eq!(turns, 1, "a duel is one line");
    // Each alone, and one to four quarters of them from either end.
    let mut sets: Vec<Vec<_>> = later.iter().map(|one| vec![one.clone()]).collect();
    for share in 1..=4 {
        let count = later.len() * share / 4;
        sets.extend([later[..count].to_vec(), later[later.len() - count..].to_vec()]);
    }
    for gone in sets {
        for (at, name) in FILES.iter().enumerate() {
            let of_file = gone.iter().filter(|(file, _)| *file == at).map(|(_, path)| path.clone()).collect();
            fs::write(dir.join(name), without(&today[at], &of_file)).unwrap();
        }
        let shown = home.run(["show", dir.to_str().unwrap()]);
        assert_eq!(shown.status, Some(0), "without {gone:?}: {shown:?}");
        assert_eq!(shown.stdout.matches(" scan.depth ").count(), turns, "without {gone:?}: {shown:?}");
        let compared = home.run(["compare", dir.to_str().unwrap(), &earlier("run")]);
        assert_eq!(compared.status, Some(0), "without {gone:?}: {compared:?}");
    }
}

/// HdrHistogram's own tools' figures of its log; `KEEP=1 scripts/hlog.sh` saves them.
#[test]
fn figures_from_the_log_are_those_of_hdrhistograms_own_tools() {
    let text = include_str!("../recordings/hlog-tools.json");
    let theirs: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
    // Without a summary, all figures come from the windows and the log.
    let home = Home::new();
    let dir = home.path("killed");
    fs::create_dir(&dir).unwrap();
    for name in ["host.json", "latency.hlog", "ledger.jsonl", "profile.toml", "windows.jsonl"] {
        fs::copy(format!("{}/{name}", earlier("run")), dir.join(name)).unwrap();
    }
    let summary = home.run(["show", "--json", dir.to_str().unwrap()]).expect(0).json()["summary"].take();
    assert_eq!(summary["rebuilt"], true);
    let mut compared = 0;
    for (tag, theirs) in &theirs {
        let (class, kind) = tag.split_once('.').unwrap_or((tag, "service"));
        let ours = &summary["classes"][class][format!("{kind}_ns")];
        if ours.is_null() {
            assert_eq!(
                (kind, &summary["classes"][class]["response_not_held"]),
                ("response", &Value::Bool(true))
            );
            continue;
        }
        assert_eq!(ours["count"], theirs["count"], "{tag}");
        for figure in ["max", "mean", "p50", "p90", "p99", "p999", "p9999"] {
            let Some(value) = ours[figure].as_f64() else { continue };
            let bounds = theirs[figure].as_array().map_or(vec![theirs[figure].clone()], Vec::clone);
            let bounds: Vec<_> = bounds.iter().map(|bound| bound.as_f64().unwrap()).collect();
            let (low, high) = (bounds[0] * 0.998, bounds[bounds.len() - 1] * 1.002);
            assert!((low..=high).contains(&value), "{tag} {figure}: {value}, theirs {bounds:?}");
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn an_earlier_sweep_is_shown() {
    let shown = Home::new().run(["show", &earlier("sweep")]).expect(0);
    for expected in ["2 of 2 runs, shuffled by seed 1", "scan.depth=1 ", "scan.depth=4 "] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown:?}");
    }
}

/// It was killed once its first member was attached, and the machine rebooted.
#[test]
fn what_an_earlier_build_left_is_listed_and_cleaned_up() {
    let home = Home::new();
    let (state, members) = (home.path("state"), home.path("members"));
    let journals = state.join("stacktune/journal");
    let stack = members.join("stack-1d09c32e70b2af8b");
    fs::create_dir_all(&journals).unwrap();
    fs::set_permissions(&journals, fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir_all(&stack).unwrap();
    fs::write(stack.join("loop-0.img"), [0; 4096]).unwrap();
    let text = fs::read_to_string(earlier("journal.jsonl")).unwrap();
    let journal = journals.join("1d09c32e70b2af8b.jsonl");
    fs::write(&journal, text.replace("@FOLDER@", members.to_str().unwrap())).unwrap();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o600)).unwrap();

    let run = |command: &str| {
        let mut command = home.command([command]);
        let output = command.env("XDG_STATE_HOME", &state).output().unwrap();
        crate::common::program::Outcome::of(&output).expect(0)
    };
    let status = run("status");
    assert!(status.stdout.contains("loop-0.img"), "{status:?}");
    let cleaned = run("cleanup");
    assert!(cleaned.stdout.contains("1d09c32e70b2af8b"), "{cleaned:?}");
    assert!(!stack.exists() && !journal.exists(), "{cleaned:?}");
}
