//! `stacktune reproduce` as a person would run it: small files on a real disk, and simulated devices.

use std::fs;
use std::path::Path;

use crate::common::program::{Home, Outcome, json_file};
use serde_json::Value;

/// Options for runs that are short and write little.
const SHORT: [&str; 10] = [
    "--for",
    "400ms",
    "--warmup",
    "0s",
    "--set=target.files.size=16MiB",
    "--set=target.files.count=2",
    "--set=wal.rate=2MB/s",
    "--set=background.rate=2MB/s",
    "--set=run.window=200ms",
    // An ordinary user's processes share one limit on locked memory.
    "--set=scan.depth=8",
];

fn reproduce(home: &Home, name: &str, out: &str, more: &[&str]) -> Outcome {
    let mut command = home.command(["reproduce", name, "--files"]);
    command.arg(home.target()).args(["--out".as_ref(), home.path(out).as_os_str()]).args(more);
    Outcome::of(&command.output().unwrap())
}

fn row<'a>(shown: &'a Value, label: &str) -> &'a Value {
    shown["rows"].as_array().unwrap().iter().find(|row| row["label"] == label).unwrap()
}

fn claim<'a>(shown: &'a Value, words: &str) -> &'a Value {
    shown["claims"].as_array().unwrap().iter().find(|claim| claim["words"] == words).unwrap()
}

/// The summary of a row's only run.
fn summary(out: &Path, label: &str) -> Value {
    let of_row = |name: &str| name.split('-').nth(1) == Some(label);
    let entries = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    let dirs: Vec<_> = entries.filter(|path| of_row(path.file_name().unwrap().to_str().unwrap())).collect();
    let [dir] = &dirs[..] else { panic!("{dirs:?}") };
    json_file(&dir.join("summary.json"))
}

#[test]
fn table_2_on_small_files_shows_what_was_recorded_and_continues() {
    let home = Home::new();
    let arguments = [&SHORT[..], &["--repeat", "1", "--json"]].concat();
    let first = reproduce(&home, "table2", "out", &arguments).expect(0);
    assert!(first.stderr.contains("4 runs into"), "{first:?}");
    let shown = first.json();
    for label in ["1", "2", "3", "4"] {
        let (row, summary) = (row(&shown, label), summary(&home.path("out"), label));
        for (figure, class) in
            [("scan", "scan"), ("point", "point"), ("background", "background"), ("wal", "wal")]
        {
            let here = &row["here"][format!("{figure}_mb_per_s")]["median"];
            let recorded = &summary["classes"][class]["mb_per_s"];
            // On a busy machine a class may do nothing for a second, and then has no figure.
            let is_idle = here.is_null() && *recorded == 0.0;
            assert!(here == recorded || is_idle, "{label} {class}: {here}, {recorded}");
        }
        assert_eq!(row["here"]["total_mb_per_s"]["median"], summary["total"]["mb_per_s"]);
        assert_eq!(row["here"]["cycles_per_byte"]["median"], summary["total"]["cycles_per_byte"]);
        assert!(row["reason"].is_null(), "{row}");
    }
    assert!(row(&shown, "5")["reason"].as_str().unwrap().contains("give --devices"));
    for claim in shown["claims"].as_array().unwrap() {
        assert_eq!(claim["ruling"], "unclear", "one repeat is inconclusive: {claim}");
    }

    let text = home.run(["show".as_ref(), home.path("out").as_os_str()]).expect(0).stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("given for every row: target.files.size=16MiB"), "{text}");
    let run = |name: &str| fs::metadata(home.path("out").join(name)).unwrap().modified().unwrap();
    let before = run("01-1-r1/summary.json");
    let again = reproduce(&home, "table2", "out", &arguments[..arguments.len() - 1]).expect(0);
    assert_eq!(again.stdout, text, "what is complete is not run again, and shown alike");
    assert_eq!(run("01-1-r1/summary.json"), before);

    let beside = ["--beside", home.path("out").to_str().unwrap()].map(String::from);
    let plain = home.path("out").join("01-1-r1");
    let beside = [&beside[0], &beside[1], "--beside", plain.to_str().unwrap()];
    let shown = reproduce(&home, "table2", "out", &[&arguments[..], &beside].concat()).expect(0).json();
    assert_eq!(shown["beside"][0]["name"], "out");
    assert_eq!(row(&shown, "1")["beside"][0], row(&shown, "1")["here"]);
    assert_eq!(
        shown["beside"][1]["own_rows"][0][1]["scan_mb_per_s"],
        row(&shown, "1")["here"]["scan_mb_per_s"]
    );
}

/// Simulated flushes block everything, like those of the paper's drives.
#[test]
fn a_claim_is_not_judged_on_simulated_devices_into_which_it_was_put() {
    let home = Home::new();
    let simulated = ["--set=io.interface=sim", "--for", "1s", "--warmup", "1s", "--json"];
    let shown = reproduce(&home, "table2", "out", &simulated).expect(0).json();
    let gains = claim(&shown, "without fdatasync the scan gains");
    assert_eq!(
        (&gains["ruling"], &gains["why"]),
        (&Value::from("not_judged"), &Value::from("simulated")),
        "{gains}"
    );
    assert!(gains["factor"].as_f64() > Some(1.0), "{gains}");
    let medians = |label: &str| row(&shown, label)["here"]["scan_mb_per_s"]["median"].as_f64().unwrap();
    assert_eq!(gains["factor"].as_f64(), Some(medians("2") / medians("1")));
    assert!((gains["paper"].as_f64().unwrap() - 5055.0 / 3503.0).abs() < 1e-12);
    assert!(!home.target().exists(), "nothing touches storage");
    let deviations = shown["deviations"].as_array().unwrap();
    assert!(deviations[0].as_str().unwrap().starts_with("simulated devices"), "{deviations:?}");
}

#[test]
fn a_steady_long_run_has_no_change() {
    let home = Home::new();
    let more = ["--set=io.interface=sim", "--set=scan.depth=1", "--for", "40s", "--json"];
    let shown = reproduce(&home, "figure7", "out", &more).expect(0).json();
    let changes = &shown["over_time"]["changes"];
    assert_eq!((&changes["too_short"], &changes["found"]), (&Value::Bool(false), &Value::Array(vec![])));
    let written = changes["written_bytes"].as_u64().unwrap();
    let summary = summary(&home.path("out"), "5");
    let of = |class: &str| summary["classes"][class]["bytes"].as_u64().unwrap();
    assert_eq!(written, of("wal") + of("background"));
}

#[test]
fn a_dry_run_shows_what_would_be_done_and_does_nothing() {
    let home = Home::new();
    let outcome = reproduce(&home, "table2", "out", &[&SHORT[..], &["--dry-run"]].concat()).expect(0);
    for said in ["12 runs", "the load writes up to", "row 5 is left out: files are on a file system"] {
        assert!(outcome.stdout.contains(said), "{said}: {outcome:?}");
    }
    assert!(!home.path("out").exists() && !home.target().exists());
}

#[test]
fn what_can_not_be_is_refused_with_what_to_do() {
    let home = Home::new();
    let refused = |name: &str, more: &[&str], said: &str| {
        let outcome = reproduce(&home, name, "out", more).expect(2);
        assert!(outcome.stderr.contains(said), "{said}: {outcome:?}");
    };
    refused("tabel2", &[], "did you mean `table2`?");
    refused("table5", &["--hardware-raid", "7=/dev/null"], "the paper has no such level");
    refused("table5", &["--hardware-raid", "5"], "a device is missing");
    refused("figure4", &["--set=run.max_writes=1GiB"], "run.max_writes allows 1.00 GiB");
    refused("table2", &["--set=scan.deepth=3"], "scan.depth");
    let nowhere = home.run(["reproduce", "table2"]).expect(2);
    assert!(nowhere.stderr.contains("table2 needs drives or a folder"), "{nowhere:?}");
    let missing = home.run(["reproduce", "table2", "--devices", "/dev/no-such-drive"]).expect(2);
    assert!(missing.stderr.contains("no-such-drive"), "{missing:?}");
    assert!(!home.path("out").exists());
    let list = home.run(["reproduce", "--list"]).expect(0).stdout;
    assert!(list.contains("table2") && list.contains("figure8"), "{list}");
}
