//! Two values of a knob in one run, on simulated devices: minutes of load take no time.

use crate::common::program::{Home, MODEST, Outcome, json_file, json_lines};
use crate::common::terminal::Terminal;

/// Runs a duel on simulated devices.
fn duel(home: &Home, out: &str, duel: &str, more: &[&str]) -> Outcome {
    let mut command = home.command(["record", "demo", "--set", "io.interface=sim", "--duel-seed", "7"]);
    Outcome::of(&command.args(["--duel", duel, "--out"]).arg(home.path(out)).args(more).output().unwrap())
}

#[test]
fn a_duel_finds_the_better_value_and_repeats_by_its_seed() {
    let home = Home::new();
    let found = duel(&home, "first", "scan.depth=2,64", &["--duel-figure", "scan"]).expect(0);
    assert!(
        found.stdout.contains("\nB is better: scan MB/s ") && found.stdout.contains("% higher with B (+"),
        "{}",
        found.stdout
    );
    let report = json_file(&home.path("first").join("duel.json"));
    assert_eq!((&report["verdict"], &report["figure"]), (&"second".into(), &"scan".into()));
    let row = &report["figures"][0];
    assert!(row["evidence"].as_f64().unwrap() >= 40.0 && row["change"].as_f64().unwrap() > 1.0, "{row}");
    let pairs = report["pairs"].as_array().unwrap();
    let firsts: Vec<_> = pairs.iter().map(|pair| pair["first"].as_u64().unwrap()).collect();
    assert!(firsts.contains(&0) && firsts.contains(&1), "{firsts:?}");
    // It is also a recording like any other.
    let shown = Outcome::of(&home.command(["show"]).arg(home.path("first")).output().unwrap()).expect(0);
    assert!(
        shown.stdout.contains("scan.depth 2 against 64\n     64 is better: scan MB/s "),
        "{}",
        shown.stdout
    );
    // The ledger has its turns as one line that lists each of them.
    let lines = json_lines(&home.path("first").join("ledger.jsonl"));
    assert_eq!((lines.len(), &lines[0]["from"], &lines[0]["to"]), (1, &"2".into(), &"64".into()));
    let outcome = &lines[0]["duel_outcome"];
    assert_eq!((&outcome["verdict"], &outcome["change"]), (&"second".into(), &row["change"]), "{outcome}");
    let turns = lines[0]["duel"].as_array().unwrap();
    let settings = json_lines(&home.path("first").join("windows.jsonl"));
    let settings = settings.iter().filter_map(|window| window["setting"].as_u64()).max();
    assert_eq!(Some(turns.len() as u64), settings, "{turns:?}");
    assert!(turns.windows(2).all(|pair| pair[0][1] != pair[1][1]), "{turns:?}");

    let again = duel(&home, "again", "scan.depth=2,64", &["--duel-figure", "scan"]).expect(0);
    assert_eq!(again.stdout, found.stdout);
}

#[test]
fn what_survives_less_does_not_win() {
    let home = Home::new();
    let found = duel(
        &home,
        "less",
        "wal.sync=fdatasync,none",
        &["--duel-figure", "wal-p99", "--set", "scan.enabled=false"],
    )
    .expect(0);
    assert!(!found.stdout.contains("B is better"), "{}", found.stdout);
    assert!(found.stdout.contains("B does more, but is less durable"), "{}", found.stdout);
}

#[test]
fn a_duel_that_can_not_be_is_refused_before_anything_is_made() {
    let home = Home::new();
    for (asked, said) in [
        ("scan.depth", "there are no values"),
        ("scan.depth=4", "there is one value only"),
        ("scan.depth=4,4", "both values are the same"),
        ("scan.depht=4,8", "did you mean `scan.depth`?"),
        ("scan.depth=4,many", "scan.depth"),
        ("run.drives=4,8", "it changes nothing that is measured"),
        ("stack.filesystem=ext4,no", "stack.filesystem"),
        ("scan.zipf_theta=0.5,0.9", "scan.zipf_theta has no effect with these settings"),
        ("stack.endurance_tb=1,2", "it changes nothing that is measured"),
    ] {
        let refused = duel(&home, "none", asked, &[]).expect(2);
        assert!(refused.stderr.contains(said), "{asked}: {}", refused.stderr);
        assert!(!home.path("none").exists(), "{asked}");
    }
    let both = duel(&home, "none", "scan.depth=4,8", &["--for", "5s"]).expect(2);
    assert!(both.stderr.contains("--for"), "{}", both.stderr);
}

/// On files, so that the load is real; with short blocks, and a margin wide enough for any two values.
fn on_files(home: &Home, out: &str, duel: &str, more: &[&str]) -> Outcome {
    let mut command = home.command(["record", "demo", "--duel", duel, "--duel-margin", "90", "--out"]);
    let sets = [&MODEST[..], &["run.window=100ms"]].concat();
    Outcome::of(&command.arg(home.path(out)).args(home.sets(&sets)).args(more).output().unwrap())
}

/// How many pairs decided a duel: at least seven, unless the machine was too busy for a verdict.
#[track_caller]
fn decided(report: &serde_json::Value) -> usize {
    let pairs = report["pairs"].as_array().unwrap().len();
    // With concurrent tests, pairs may be dropped: the machine and the disk are busy.
    let dropped = report["dropped"].as_array().unwrap().len();
    assert!(pairs >= 7 || report["verdict"] == "not_judged" && dropped >= 2, "{report:#}");
    pairs
}

#[test]
fn a_target_is_opened_anew_for_each_block_where_its_values_need_that() {
    let home = Home::new();
    let folders = ["one", "other"].map(|name| home.path(name).display().to_string());
    let asked = format!("target.files.dir={},{}", folders[0], folders[1]);
    let plan = on_files(&home, "none", &asked, &["--dry-run", "--json"]).expect(0).json();
    assert_eq!((&plan["builds_min"], &plan["builds_max"]), (&14.into(), &80.into()));
    assert!(folders.iter().all(|folder| !std::path::Path::new(folder).exists()), "nothing is made");

    let found = on_files(&home, "out", &asked, &[]).expect(0);
    assert!(found.stdout.contains("on what was built for it"), "{}", found.stdout);
    let report = json_file(&home.path("out/duel.json"));
    assert_eq!(report["begins"], "built");
    let pairs = decided(&report);
    // Each block is a recording, in the order of the coin tosses.
    let mut blocks: Vec<_> = std::fs::read_dir(home.path("out")).unwrap().flatten().collect();
    blocks.retain(|entry| entry.path().is_dir());
    blocks.sort_by_key(std::fs::DirEntry::file_name);
    assert!(blocks.len() >= 2 * pairs, "{}", found.stdout);
    let shown = home.show(&blocks[0].path()).expect(0).json();
    assert!(shown["summary"]["total"]["bytes"].as_u64() > Some(0), "{shown}");

    let whole = Outcome::of(&home.command(["show"]).arg(home.path("out")).output().unwrap()).expect(2);
    assert!(whole.stderr.contains("holds a duel: duel.json has its verdict"), "{}", whole.stderr);

    let keeps = on_files(&home, "kept", &asked, &["--keep"]).expect(2);
    assert!(keeps.stderr.contains("no stack stays"), "{}", keeps.stderr);
}

#[test]
fn between_cached_and_direct_the_page_cache_is_emptied_before_each_block() {
    let home = Home::new();
    let found = on_files(&home, "out", "io.buffering=cached,direct", &[]).expect(0);
    let report = json_file(&home.path("out/duel.json"));
    assert_eq!(report["begins"], "uncached", "{}", found.stdout);
    // Each block has a window marked as turned, even if the block before had the same value.
    let windows = json_lines(&home.path("out/windows.jsonl"));
    let turned = windows.iter().filter(|window| window["turned"] == true).count();
    let pairs =
        ["pairs", "dropped"].map(|pairs| report[pairs].as_array().unwrap().len()).iter().sum::<usize>();
    assert!(pairs >= 6 && turned >= 2 * pairs, "{turned} windows of {pairs} pairs: {}", found.stdout);
    // So little data is read from memory anyway, and that forbids a verdict.
    assert_eq!(report["verdict"], "not_judged", "{}", found.stdout);
}

#[test]
fn a_duel_on_the_screen_turns_the_knob_back_and_forth_and_leaves_it_as_it_was() {
    let home = Home::new();
    let sets = [&MODEST[..], &["io.interface=sim", "run.window=100ms", "scan.depth=64"]].concat();
    let mut terminal = Terminal::demo(&home, &sets, (160, 50));
    terminal.wait_until_running();
    terminal.choose("scan.depth");
    terminal.press("l");
    terminal.wait_for("64 → 128");
    terminal.press("D");
    terminal.wait_for("Which figure decides");
    terminal.press("\r");
    terminal.wait_for("duel of scan.depth by scan MB/s: A 64, B 128");
    terminal.wait_for("pairs · change (");
    terminal.press("D");
    terminal.wait_for("it was ended before it was decided");
    terminal.press("q");
    terminal.left().expect(0);
}
