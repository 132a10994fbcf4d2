//! stacktune's figures compared with the block layer's and fio's on the same device. They check what a figure
//! means, not speed: runs alternate, and the bounds hold even on a busy host.

use std::fs;
use std::process::Command;

use crate::common;
use crate::common::devices::{Loop, Loops, has};
use crate::common::recorded::{Home, Recorded};
use crate::common::{is_soak, remark};
use serde_json::Value;

/// Records a single class with these settings.
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

/// A filled device and its profile.
fn filled(home: &Home, loops: &Loops) -> (Loop, String) {
    let device = loops.blank(128);
    let profile = home.profile("device", &device.profile());
    record(home, &profile, "point", "200ms", &[]).summary();
    (device, profile)
}

fn bytes(summary: &Value, class: &str) -> f64 {
    summary["classes"][class]["bytes"].as_f64().unwrap()
}

/// Records; returns its own and the block layer's counts: bytes read, bytes written.
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
    // The block layer's counts recorded beside ours cover only the run itself.
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

/// I/O that may be in flight at the end of a run, or come after its last window.
const OUTSTANDING_BYTES: f64 = 4e6;

#[test]
fn bytes_are_those_that_the_block_layer_counts() {
    let Some(loops) = Loops::alone("bytes_are_those_that_the_block_layer_counts") else { return };
    let home = Home::new();
    let (device, profile) = filled(&home, &loops);
    let little = record_beside_block_layer(&home, &device, &profile, "little", "1MB/s");
    let much = record_beside_block_layer(&home, &device, &profile, "much", "50MB/s");
    for (little, much) in little.into_iter().zip(much) {
        // Reads and writes before a run (headers, samples) are the same for both.
        let (ours, block) = (much.0 - little.0, much.1 - little.1);
        assert!((ours - block).abs() <= ours * 0.02 + OUTSTANDING_BYTES, "{ours} and {block}");
    }
}

/// Both programs' figures for random reads of 16 KiB: reads per second, and their median latency in ns.
struct Reads {
    iops: f64,
    p50_ns: f64,
}

fn by_fio(device: &Loop, depth: u32) -> Reads {
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
        .args(["--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50"])
        .args([format!("--filename={}", device.path), format!("--iodepth={depth}")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let read = &report["jobs"][0]["read"];
    let p50_ns = read["lat_ns"]["percentile"]["50.000000"].as_f64().unwrap();
    Reads { iops: read["iops"].as_f64().unwrap(), p50_ns }
}

fn by_stacktune(home: &Home, profile: &str, depth: u32) -> Reads {
    let sets = [format!("point.depth={depth}"), "point.interface=libaio".into()];
    let summary = record(home, profile, "point", "500ms", &[&sets[0], &sets[1]]).summary();
    let point = &summary["classes"]["point"];
    let p50_ns = point["service_ns"]["p50"].as_f64().unwrap();
    Reads { iops: point["iops"].as_f64().unwrap(), p50_ns }
}

/// The pairs' median ratio, and the range of fio's own figures relative to their median.
fn compared(pairs: &[(Reads, Reads)], of: fn(&Reads) -> f64) -> (f64, (f64, f64)) {
    let sorted = |values: &mut dyn Iterator<Item = f64>| {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let ratios = sorted(&mut pairs.iter().map(|(ours, fio)| of(ours) / of(fio)));
    let fio = sorted(&mut pairs.iter().map(|(_, fio)| of(fio)));
    let median = fio[fio.len() / 2];
    (ratios[ratios.len() / 2], (fio[0] / median, fio[fio.len() - 1] / median))
}

#[test]
fn reads_and_their_latency_are_those_that_fio_reports() {
    let test = "reads_and_their_latency_are_those_that_fio_reports";
    if !has("fio") {
        return common::skip(test, "needs fio");
    }
    let Some(loops) = Loops::alone(test) else { return };
    let home = Home::new();
    let (device, profile) = filled(&home, &loops);
    let pairs = |depth: u32, count: usize| -> Vec<(Reads, Reads)> {
        (0..count)
            .map(|n| {
                let fio = (n % 2 == 0).then(|| by_fio(&device, depth));
                let ours = by_stacktune(&home, &profile, depth);
                (ours, fio.unwrap_or_else(|| by_fio(&device, depth)))
            })
            .collect()
    };
    let is_close = |depth, name, most: f64, (ratio, (low, high)): (f64, (f64, f64)), own: bool| {
        println!("depth {depth}: {name} {ratio:.3} of fio's, whose own are {low:.3} to {high:.3}");
        let range = if own { low.min(1.0 - most)..=high.max(1.0 + most) } else { 1.0 - most..=1.0 + most };
        range.contains(&ratio)
    };
    // At depth 1 only the device matters: the latency must equal fio's, however much fio's own runs vary.
    let one_is_fios = || {
        let pairs = pairs(1, 7);
        is_close(1, "p50", 0.15, compared(&pairs, |reads| reads.p50_ns), false)
            & is_close(1, "IOPS", 0.25, compared(&pairs, |reads| reads.iops), true)
    };
    assert!((0..3).any(|_| one_is_fios()), "at depth 1 reads are not as fio's are");
    // At depth 32, how each program submits I/O matters too.
    let many_are_fios = || {
        let pairs = pairs(32, 5);
        is_close(32, "p50", 0.3, compared(&pairs, |reads| reads.p50_ns), true)
            & is_close(32, "IOPS", 0.3, compared(&pairs, |reads| reads.iops), true)
    };
    assert!((0..3).any(|_| many_are_fios()), "at depth 32 reads are not as fio's are");
}

#[test]
fn a_rate_is_held() {
    let Some(loops) = Loops::alone("a_rate_is_held") else { return };
    let home = Home::new();
    let (_device, profile) = filled(&home, &loops);
    // A stall of the machine may affect a short run, but hardly all of them.
    let (time, most) = if is_soak() { ("20s", 0.001) } else { ("2s", 0.015) };
    for class in ["background", "scan"] {
        let sets = [format!("{class}.rate=10MB/s"), format!("{class}.depth=16")];
        let sets = [&*sets[0], &*sets[1], "io.interface=libaio"];
        let rate = || {
            let summary = record(&home, &profile, class, time, &sets).summary();
            let figures = &summary["classes"][class];
            assert_eq!(figures["target_mb_per_s"], 10.0, "{figures:#}");
            figures["mb_per_s"].as_f64().unwrap()
        };
        let held = |rate: f64| (rate / 10.0 - 1.0).abs() <= most;
        if is_soak() {
            let mut rates = [rate(), rate(), rate()];
            rates.sort_by(f64::total_cmp);
            remark(&format!("{class} at 10 MB/s: {rates:?}"));
            assert!(held(rates[1]), "{class}: {rates:?}");
        } else {
            assert!((0..4).any(|_| held(rate())), "{class} holds no 10 MB/s");
        }
    }
}
