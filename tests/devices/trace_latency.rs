//! I/O latency from a trace compared with fio's own clock: the trace has the drive's time, and fio's also has
//! the time that the kernel and fio itself take above it.

use std::fs;

use serde_json::Value;

use crate::common::devices::{Loops, has};
use crate::common::recorded::{Home, Ran};
use crate::common::skip;
use crate::trace::{ATTEMPTS, Busy, NEEDS, can_be_made, is_whole, with_tracefs};

/// Time spent above the drive per read, with all processors kept busy.
const ABOVE_NS_MAX: f64 = 200_000.0;

#[test]
fn reads_take_by_a_trace_what_fio_sees_of_the_drive() {
    let test = "reads_take_by_a_trace_what_fio_sees_of_the_drive";
    if !has("fio") {
        return skip(test, "needs fio");
    }
    let Some(loops) = Loops::alone(test) else { return };
    let (home, device, _busy) = (Home::new(), loops.blank(64), Busy::start());
    let file = format!("--filename={}", device.path);
    let fio = [
        "fio",
        "--name=r",
        "--rw=randread",
        "--bs=64k",
        "--direct=1",
        "--ioengine=psync",
        "--readonly",
        &file,
    ];
    let more = ["--time_based", "--runtime=1s", "--norandommap", "--output-format=json", "--output=fio.json"];
    // A trace that lacks completions gives no latencies.
    for _ in 0..ATTEMPTS {
        let _ = fs::remove_file(home.path("t.blktrace.0"));
        let trace = ["trace", "--device", &device.path, "--out", "t.blktrace.0", "--user", "root", "--"];
        let ran = Ran::of(&with_tracefs(&home, &[&trace[..], &fio, &more].concat()).output().unwrap());
        if !can_be_made(&ran.err) {
            return skip(test, NEEDS);
        }
        ran.ended(0, &[]);
        if !is_whole(&ran.err) {
            continue;
        }
        let report: Value = serde_json::from_slice(&fs::read(home.path("fio.json")).unwrap()).unwrap();
        let by_fio = report["jobs"][0]["read"]["clat_ns"]["percentile"]["50.000000"].as_f64().unwrap();
        let scores = home.run(&["contract", "t.blktrace.0", "--json"]).json();
        let reads = &scores["request_scale"]["latency"]["read"];
        assert!(reads["p99_ns"].as_f64() >= reads["p50_ns"].as_f64(), "{reads}");
        let above_ns = by_fio - reads["p50_ns"].as_f64().unwrap();
        println!("a read's p50 is {by_fio} ns by fio, and {above_ns} ns less by the trace");
        assert!((0.0..ABOVE_NS_MAX).contains(&above_ns), "{above_ns} ns of fio's {by_fio}: {reads}");
        let shown = home.run(&["contract", "t.blktrace.0"]);
        assert!(shown.out.contains("From issue to completion, at the drive:"), "{}", shown.out);
        return;
    }
    skip(test, "the kernel keeps back completions here");
}
