//! Duels whose values need the stack rebuilt for each block, and the page cache after a duel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::common::devices::{Loops, run};
use crate::common::program::{Home, MODEST, Outcome, Running, json_file, wait_for};
use crate::stack_run::{assert_nothing_left, program};

/// A small stack, short windows, and a margin wide enough for any two file systems: about seven pairs decide.
const SMALL: [&str; 4] = ["target.files.count=1", "stack.data=32MiB", "stack.wal=16MiB", "run.window=100ms"];

fn duel(home: &Home, duel: &str, more: &[&str]) -> Command {
    let mut command = home.command(["record", "demo", "--duel", duel, "--duel-margin", "90", "--out"]);
    command.arg(home.path("out")).args(home.sets(&[&MODEST[..], &SMALL].concat()));
    command.arg("--set=target.files.size=160MiB").args(more);
    command
}

/// The recordings of its blocks, in order.
fn blocks(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path("out")).into_iter().flatten().flatten();
    let mut blocks: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    blocks.sort();
    blocks
}

#[test]
fn a_stack_is_built_for_each_block_and_taken_down_after_it() {
    let Some(_loops) = Loops::take("a_stack_is_built_for_each_block_and_taken_down_after_it", 2) else {
        return;
    };
    let home = Home::new();
    let asked = "stack.filesystem=ext4,btrfs";
    let plan = Outcome::of(&duel(&home, asked, &["--dry-run"]).output().unwrap()).expect(0);
    for words in ["mkfs.ext4", "mkfs.btrfs", "14 builds at least, 80 at most", "14 builds write"] {
        assert!(plan.stdout.contains(words), "{words}: {}", plan.stdout);
    }
    assert!(!home.path("out").exists());

    let found = Outcome::of(&duel(&home, asked, &["--verify"]).output().unwrap()).expect(0);
    assert!(found.stderr.contains("14 builds at least"), "{}", found.stderr);
    let report = json_file(&home.path("out/duel.json"));
    assert_eq!(report["begins"], "built");
    let [pairs, dropped] = ["pairs", "dropped"].map(|pairs| report[pairs].as_array().unwrap());
    let blocks = blocks(&home);
    assert!(blocks.len() >= 2 * pairs.len() + dropped.len(), "{blocks:?}");
    // At least seven pairs, unless the machine or its disk was too busy for a verdict.
    let verdict = report["verdict"].as_str().unwrap();
    let is_decided = ["first", "second", "no_difference"].contains(&verdict) && pairs.len() >= 7;
    assert!(is_decided || verdict == "not_judged" && dropped.len() >= 2, "{found:?}");
    for (at, block) in blocks.iter().enumerate() {
        let filesystem = if block.to_str().unwrap().ends_with("ext4") { "ext4" } else { "btrfs" };
        let profile = fs::read_to_string(block.join("profile.toml")).unwrap();
        assert!(profile.contains(&format!("filesystem = {filesystem:?}")), "{at}: {profile}");
        assert_eq!(json_file(&block.join("summary.json"))["failure"], serde_json::Value::Null);
    }
    assert_nothing_left(&home);

    // The next duel's time is estimated from these builds.
    let plan = Outcome::of(&duel(&home, asked, &["--dry-run"]).output().unwrap()).expect(0);
    assert!(plan.stdout.contains("estimated from the last of each"), "{}", plan.stdout);
}

#[test]
fn a_duel_killed_between_two_builds_is_cleaned_up() {
    let Some(_loops) = Loops::take("a_duel_killed_between_two_builds_is_cleaned_up", 2) else { return };
    let home = Home::new();
    let mut running = Running::start(&mut duel(&home, "stack.filesystem=ext4,btrfs", &[]));
    wait_for("the second block", || {
        assert!(running.is_alive(), "it ended");
        let begun = blocks(&home).get(1)?.join("windows.jsonl");
        fs::read_to_string(begun).ok().filter(|text| !text.is_empty())
    });
    running.signal(Signal::KILL);
    running.outcome();
    assert!(!program(&home, &["status"]).stdout.contains("nothing left behind"));
    program(&home, &["cleanup"]).expect(0);
    assert_nothing_left(&home);
    // A signal ends it in order: finished measurements are kept, and no stack stands.
    fs::rename(home.path("out"), home.path("killed")).unwrap();
    let mut running = Running::start(&mut duel(&home, "stack.filesystem=ext4,btrfs", &[]));
    wait_for("the second block", || {
        assert!(running.is_alive(), "it ended");
        blocks(&home).get(1).cloned()
    });
    running.signal(Signal::INT);
    running.outcome().expect(130);
    assert_eq!(json_file(&home.path("out/duel.json"))["verdict"], "unclear");
    assert_nothing_left(&home);
}

#[test]
fn both_values_need_the_consent_that_one_build_needs() {
    let Some(loops) = Loops::take("both_values_need_the_consent_that_one_build_needs", 2) else { return };
    let home = Home::new();
    let format = |file: &Path| drop(run("mkfs.ext4", &["-q", file.to_str().unwrap()]));
    let device = loops.device(192, format);
    let before = device.hash();
    let devices = format!("--set=target.devices={}", device.path);
    let asked = "stack.filesystem=ext4,btrfs";
    let refused = Outcome::of(&duel(&home, asked, &[&devices]).output().unwrap()).expect(3);
    assert!(refused.stderr.contains(&format!("--destroy {}", device.path)), "{}", refused.stderr);
    let little = Outcome::of(
        &duel(&home, asked, &[&devices, "--destroy", &device.path, "--set=run.max_writes=256MiB"])
            .output()
            .unwrap(),
    )
    .expect(2);
    assert!(little.stderr.contains("the minimum of 14 builds of this duel writes"), "{}", little.stderr);
    assert_eq!(device.hash(), before, "its content is what it was");
    assert!(!home.path("out").exists());
    assert_nothing_left(&home);
}
