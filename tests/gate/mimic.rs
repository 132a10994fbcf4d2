//! `stacktune mimic`: a profile whose load resembles a trace, and traces that can't become a profile.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::common::recorded::Home;

/// 8 s in blkparse's text format: each millisecond a random 4 KiB read within 64 MiB, and an 8 KiB write to a
/// log beyond, followed by a flush; in the second half, `reads` such reads each millisecond.
fn text(reads: u64) -> String {
    let (mut text, mut random, mut number) = (String::new(), 7_u64, 0);
    for ms in 0..8000_u64 {
        let mut add = |us: u64, what: &str| {
            for (act, us) in [("D", us), ("C", us + 10)] {
                let (s, us) = (ms / 1000, ms % 1000 * 1000 + us);
                number += 1;
                writeln!(text, "  8,0    0 {number:8} {s:5}.{us:06}000     7  {act}  {what} [x]").unwrap();
            }
        };
        for read in 0..if ms < 4000 { 1 } else { reads } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            add(40 * read, &format!("R {} + 8", (random >> 40) % 16_384 * 8));
        }
        add(500, &format!("WS {} + 16", (1 << 21) + ms * 16));
        add(520, "FN 0");
    }
    text
}

#[test]
fn a_profile_is_fitted_to_a_trace_and_runs() {
    let home = Home::new();
    fs::write(home.path("steady"), text(1)).unwrap();
    let ran = home.run(&["mimic", "steady", "--out", "mine.toml", "--json"]);
    let figures = ran.json()["figures"].as_array().unwrap().clone();
    let figure = |class: &str, name: &str| {
        let is = |figure: &&Value| figure["class"] == class && figure["figure"] == name;
        figures.iter().find(is).unwrap_or_else(|| panic!("{class} {name}: {figures:#?}"))["fitted"].as_f64()
    };
    assert!((figure("point", "throughput").unwrap() - 4.096).abs() < 0.01, "{figures:#?}");
    assert_eq!((figure("point", "mean size"), figure("wal", "writes a flush")), (Some(4.0), Some(1.0)));
    assert!(figures.iter().all(|figure| figure["is_alike"] == true), "{figures:#?}");
    let profile = fs::read_to_string(home.path("mine.toml")).unwrap();
    for line in ["page_size = \"4KiB\"", "name = \"mimic\"", "size = \"64MiB\"", "sync = \"fdatasync\""] {
        assert!(profile.contains(line), "{line}: {profile}");
    }
    assert!(ran.err.contains("stacktune record ./mine.toml --trace"), "{}", ran.err);

    // Absent classes are off; the rest run, at their rate if the machine keeps up.
    let dir = format!("target.files.dir={}", home.path("files").display());
    let sets = ["--set", &dir, "--set", "io.registered_buffers=false", "--set", "io.buffering=cached"];
    let words = [&["record", "./mine.toml", "--out", "rec", "--for", "2s", "--json"][..], &sets].concat();
    let summary = home.run(&words).json();
    let number = |class: &str, key: &str| summary["classes"][class][key].as_f64().unwrap_or(0.0);
    assert!((number("point", "target_mb_per_s") / 4.096 - 1.0).abs() < 0.01, "{summary:#}");
    assert!(number("point", "ios") > 0.0 && number("wal", "ios") > 0.0, "{summary:#}");
    assert!(number("scan", "ios") + number("background", "ios") < 0.5, "{summary:#}");

    home.run(&["mimic", "steady", "--out", "mine.toml"]).ended(2, &["mine.toml exists already"]);
}

#[test]
fn a_load_that_changes_is_said_to_be_unlike() {
    let home = Home::new();
    fs::write(home.path("faster"), text(3)).unwrap();
    let ran = home.run(&["mimic", "faster"]);
    ran.ended(0, &[]);
    assert!(ran.out.contains("!-66.7%") && ran.out.contains("are not within 10%"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
}

#[test]
fn what_no_load_can_be_made_of_is_refused() {
    let home = Home::new();
    let log = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda write 0 4096\n/dev/sda close\n";
    fs::write(home.path("untimed"), log).unwrap();
    fs::write(home.path("letter"), "Dear all,\n").unwrap();
    home.run(&["mimic", "untimed"]).ended(2, &["no issue times", "version 3"]);
    let cut = text(1).lines().take(60).collect::<Vec<_>>().join("\n");
    fs::write(home.path("short"), cut).unwrap();
    home.run(&["mimic", "short", "--out", "x.toml"]).ended(2, &["no class has 100 I/Os"]);
    home.run(&["mimic", "letter"]).ended(2, &["it is no trace"]);
    assert!(!home.path("x.toml").exists());
}
