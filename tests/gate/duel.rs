//! Two values of a knob in one run, on simulated devices: minutes of it take no time.

use crate::common::program::{Home, MODEST, Outcome, json_file};
use crate::common::terminal::Terminal;

/// Fights on simulated devices.
fn duel(home: &Home, out: &str, duel: &str, more: &[&str]) -> Outcome {
    let mut command = home.command(["record", "demo", "--set", "io.interface=sim", "--duel-seed", "7"]);
    Outcome::of(&command.args(["--duel", duel, "--out"]).arg(home.path(out)).args(more).output().unwrap())
}

#[test]
fn a_duel_finds_the_better_value_and_repeats_by_its_seed() {
    let home = Home::new();
    let found = duel(&home, "first", "scan.depth=2,64", &["--duel-figure", "scan"]).expect(0);
    assert!(found.stdout.contains("\nB is better: scan MB/s +"), "{}", found.stdout);
    let report = json_file(&home.path("first").join("duel.json"));
    assert_eq!((&report["verdict"], &report["figure"]), (&"second".into(), &"scan".into()));
    let row = &report["figures"][0];
    assert!(row["evidence"].as_f64().unwrap() >= 40.0 && row["change"].as_f64().unwrap() > 1.0, "{row}");
    let pairs = report["pairs"].as_array().unwrap();
    let firsts: Vec<_> = pairs.iter().map(|pair| pair["first"].as_u64().unwrap()).collect();
    assert!(firsts.contains(&0) && firsts.contains(&1), "{firsts:?}");
    // It is a recording like others, too.
    let shown = Outcome::of(&home.command(["show"]).arg(home.path("first")).output().unwrap()).expect(0);
    assert!(shown.stdout.contains("scan.depth"), "{}", shown.stdout);

    let again = duel(&home, "again", "scan.depth=2,64", &["--duel-figure", "scan"]).expect(0);
    assert_eq!(again.stdout, found.stdout);
}

#[test]
fn what_survives_less_does_not_win() {
    let home = Home::new();
    let found = duel(&home, "less", "wal.sync=fdatasync,none", &["--duel-figure", "wal-p99"]).expect(0);
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
        ("stack.filesystem=ext4,xfs", "each turn would build the storage anew"),
        ("io.buffering=direct,cached", "the page cache remembers longer than a block lasts"),
    ] {
        let refused = duel(&home, "none", asked, &[]).expect(2);
        assert!(refused.stderr.contains(said), "{asked}: {}", refused.stderr);
        assert!(!home.path("none").exists(), "{asked}");
    }
    let both = duel(&home, "none", "scan.depth=4,8", &["--for", "5s"]).expect(2);
    assert!(both.stderr.contains("--for"), "{}", both.stderr);
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
    terminal.wait_for("By which figure");
    terminal.press("\r");
    terminal.wait_for("duel of scan.depth by scan MB/s: A 64, B 128");
    terminal.wait_for("pairs · change (");
    terminal.press("D");
    terminal.wait_for("it was ended before it was decided");
    terminal.press("q");
    terminal.left().expect(0);
}
