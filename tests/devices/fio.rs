//! stacktune's figures beside those of others on the same device: the block layer's and fio's. These
//! are about what a figure means, not about speed: the bounds are wide and the runs alternate.

use std::fs;
use std::process::Command;

use crate::common;
use crate::common::devices::{Loop, Loops, has};
use crate::common::recorded::{Home, Recorded};
use serde_json::Value;

/// Records one class alone with these knobs turned.
fn record(home: &Home, profile: &str, class: &str, time: &str, sets: &[&str]) -> Recorded {
    let others = ["scan", "point", "wal", "background"].into_iter().filter(|other| *other != class);
    let sets = others.map(|other| format!("{other}.enabled=off")).chain(sets.iter().map(ToString::to_string));
    let mut arguments = vec!["--for".to_owned(), time.to_owned()];
    for set in sets {
        arguments.extend(["--set".to_owned(), set]);
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let taken = fs::read_dir(home.dir.path()).unwrap().count();
    home.record(profile, &format!("out-{taken}"), &arguments)
}

/// A filled device with a profile of it.
fn filled(home: &Home, loops: &Loops) -> (Loop, String) {
    let device = loops.blank(128);
    let profile = home.profile("device", &device.profile());
    record(home, &profile, "point", "200ms", &[]).summary();
    (device, profile)
}

fn bytes(summary: &Value, class: &str) -> f64 {
    summary["classes"][class]["bytes"].as_f64().unwrap()
}

/// A recording, with what it counted and what the block layer did: bytes read, bytes written.
fn record_beside_block_layer(
    home: &Home,
    device: &Loop,
    profile: &str,
    out: &str,
    rate: &str,
) -> [(f64, f64); 2] {
    let before = device.block_bytes();
    let sets = [format!("scan.rate={rate}"), format!("point.rate={rate}"), format!("background.rate={rate}")];
    let sets: Vec<_> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let recorded = home.record(profile, out, &[&["--for", "1s"][..], &sets].concat());
    let after = device.block_bytes();
    let summary = recorded.all_classes_ran();
    // The block layer's own counts that stand beside ours are of the run alone.
    let member = &summary["members"][0];
    for (ours, block) in [("read_bytes", "block_read_bytes"), ("written_bytes", "block_written_bytes")] {
        let (ours, block) = (member[ours].as_f64().unwrap(), member[block].as_f64().unwrap());
        assert!((ours - block).abs() <= ours * 0.02 + OUTSTANDING_BYTES, "{member:#}");
    }
    let ours = [
        bytes(&summary, "scan") + bytes(&summary, "point"),
        bytes(&summary, "wal") + bytes(&summary, "background"),
    ];
    let block = [(after.0 - before.0) as f64, (after.1 - before.1) as f64];
    [(ours[0], block[0]), (ours[1], block[1])]
}

/// What may be under way at the end of a run, or come after its last window.
const OUTSTANDING_BYTES: f64 = 4e6;

#[test]
fn bytes_are_those_that_the_block_layer_counts() {
    let Some(loops) = Loops::alone("bytes_are_those_that_the_block_layer_counts") else { return };
    let home = Home::new();
    let (device, profile) = filled(&home, &loops);
    let little = record_beside_block_layer(&home, &device, &profile, "little", "1MB/s");
    let much = record_beside_block_layer(&home, &device, &profile, "much", "50MB/s");
    for (little, much) in little.into_iter().zip(much) {
        // What is read and written before a run (headers, samples) is the same for both.
        let (ours, block) = (much.0 - little.0, much.1 - little.1);
        assert!((ours - block).abs() <= ours * 0.02 + OUTSTANDING_BYTES, "{ours} and {block}");
    }
}

/// fio's random reads a second of 16 KiB.
fn fio_iops(device: &Loop, depth: u32) -> f64 {
    let output = Command::new("fio")
        .args([
            "--name=randread",
            "--rw=randread",
            "--bs=16k",
            "--direct=1",
            "--ioengine=libaio",
            "--readonly",
        ])
        .args(["--time_based", "--runtime=500ms", "--norandommap", "--output-format=json", "--thread"])
        .args([format!("--filename={}", device.path), format!("--iodepth={depth}")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["jobs"][0]["read"]["iops"].as_f64().unwrap()
}

#[test]
fn reads_a_second_are_those_that_fio_counts() {
    let test = "reads_a_second_are_those_that_fio_counts";
    if !has("fio") {
        return common::skip(test, "needs fio");
    }
    let Some(loops) = Loops::alone(test) else { return };
    let home = Home::new();
    let (device, profile) = filled(&home, &loops);
    for depth in [1, 32] {
        let sets = [format!("point.depth={depth}"), "point.interface=libaio".into()];
        let sets = [&*sets[0], &*sets[1]];
        let mut ratios: Vec<f64> = (0..5)
            .map(|_| {
                let fio = fio_iops(&device, depth);
                let summary = record(&home, &profile, "point", "500ms", &sets).summary();
                summary["classes"]["point"]["iops"].as_f64().unwrap() / fio
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        assert!((0.6..1.6).contains(&ratios[2]), "depth {depth}: {ratios:?}");
    }
}

#[test]
fn a_rate_is_held() {
    let Some(loops) = Loops::alone("a_rate_is_held") else { return };
    let home = Home::new();
    let (_device, profile) = filled(&home, &loops);
    for class in ["background", "scan"] {
        let sets = [format!("{class}.rate=10MB/s"), format!("{class}.depth=16")];
        let sets = [&*sets[0], &*sets[1], "io.interface=libaio"];
        // A stall of the machine may fall into a run, hardly into all of them.
        let mut rates = (0..4).map(|_| {
            let summary = record(&home, &profile, class, "2s", &sets).summary();
            let figures = &summary["classes"][class];
            assert_eq!(figures["target_mb_per_s"], 10.0, "{figures:#}");
            figures["mb_per_s"].as_f64().unwrap()
        });
        assert!(rates.any(|rate| (9.85..=10.15).contains(&rate)), "{class} holds no 10 MB/s");
    }
}
