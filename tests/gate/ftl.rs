//! `stacktune ftl` and the simulated device `ftl`: known figures, and invalid input.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::program::json_file;
use crate::common::recorded::{Home, Ran};

/// A fio log, version 2: writes of 2 KiB, 4 KiB apart or adjacent.
fn log(pages: impl Iterator<Item = u64>) -> String {
    let writes = pages.map(|page| format!("/dev/sda write {} 2048\n", page * 2048));
    let begins = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n".to_owned();
    begins + &writes.collect::<String>() + "/dev/sda close\n"
}

fn written(home: &Home, name: &str, content: &str) -> PathBuf {
    let path = home.path(name);
    fs::write(&path, content).unwrap();
    path
}

fn ftl(home: &Home, trace: &str, arguments: &[&str]) -> Ran {
    home.run(&[&["ftl", "--from", trace][..], arguments].concat())
}

fn figure(json: &Value, key: &str) -> f64 {
    json["figures"][key]["value"].as_f64().unwrap_or_else(|| panic!("{key}: {json:#}"))
}

/// Writes a space of 1 MiB sequentially, six times.
#[test]
fn a_trace_is_counted_as_text_json_and_csv() {
    let home = Home::new();
    let trace = written(&home, "in-order", &log((0..6).flat_map(|_| 0..512)));
    let trace = trace.to_str().unwrap();
    let ran = ftl(&home, trace, &["--ftl", "page", "--dies", "1"]);
    ran.ended(0, &[]);
    for said in ["3,072 I/Os", "by model", "WA-D", "1.00  ratio", "moved by garbage collection"] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    let json = ftl(&home, trace, &["--ftl", "page", "--dies", "1", "--json"]).json();
    assert_eq!((&json["by_model"], &json["drive"]["capacity_bytes"]), (&true.into(), &(1 << 20).into()));
    // Eight blocks, one each for host writes, for collection and for emptying, and two that stay free.
    assert_eq!(json["drive"]["data_blocks"], 13);
    // 48 blocks are written. After eleven, two are left: from then on each new block takes an erase of
    // another one, in which nothing is valid.
    let known = [("wa_d", 1.0), ("pages_moved", 0.0), ("times_written", 6.0), ("erases", 38.0)];
    for (key, value) in known {
        assert!((figure(&json, key) - value).abs() < 1e-9, "{key}: {json:#}");
    }
    let csv = ftl(&home, trace, &["--ftl", "page", "--dies", "1", "--csv"]);
    assert!(csv.out.starts_with("figure,value,unit,by\nwa_d,1,ratio,model\n"), "{}", csv.out);
}

/// 2048 pages take four translation pages; every other page is written, from first to last, four times over.
#[test]
fn the_cache_of_the_mapping_is_a_share_or_a_size() {
    let home = Home::new();
    let trace = written(&home, "sparse", &log((0..4).flat_map(|_| (0..1024).map(|at| at * 2))));
    let trace = trace.to_str().unwrap();
    let misses = |cache: &str| {
        let json = ftl(&home, trace, &["--capacity", "4MiB", "--cache", cache, "--json"]).json();
        assert_eq!(json["flash"]["lookups"], 4096);
        (figure(&json, "misses"), figure(&json, "write_backs"))
    };
    // One of four fits in the cache: each is loaded four times, and every load but the last is written back.
    assert_eq!(misses("25%"), (16.0, 15.0));
    assert_eq!(misses("2KiB"), (16.0, 15.0));
    assert_eq!(misses("100%"), (4.0, 0.0));
}

/// `contract` computes the misses of every cache size from reuse distances, `ftl` by simulating one cache.
#[test]
fn misses_are_those_of_the_contract() {
    let home = Home::new();
    let mut state = 3_u64;
    let random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // A few of the 64 translation pages are used more often than the others.
        let within = if state >> 62 == 0 { 32_768 } else { 4096 };
        (state >> 33) % within
    };
    let trace = written(&home, "random", &log(std::iter::repeat_with(random).take(20_000)));
    let trace = trace.to_str().unwrap();
    let scores = home.run(&["contract", trace, "--logical", "64MiB", "--json"]).json();
    for of in scores["locality"].as_array().unwrap() {
        let bytes = format!("{}B", of["cached_translation_pages"].as_u64().unwrap() * 2048);
        let json = ftl(&home, trace, &["--capacity", "64MiB", "--cache", &bytes, "--json"]).json();
        assert!((figure(&json, "misses") - of["misses"].as_f64().unwrap()).abs() < 0.5, "{of} {json:#}");
        assert_eq!(json["flash"]["lookups"], of["lookups"]);
    }
}

#[test]
fn a_full_drive_is_collected_and_hybrid_mapping_merges() {
    let home = Home::new();
    // Every seventh page, again and again: covers the whole space, far from sequentially.
    let trace = written(&home, "scattered", &log((0..40_000).map(|at| at * 7 % 8192)));
    let trace = trace.to_str().unwrap();
    let page = ftl(&home, trace, &["--ftl", "page", "--full", "--dies", "1", "--json"]).json();
    assert!(figure(&page, "pages_moved") > 0.0 && figure(&page, "wa_d") > 1.0, "{page:#}");
    let sum = |json: &Value, of: &str| -> f64 {
        json["flash"][of].as_object().unwrap().values().map(|count| count.as_f64().unwrap()).sum()
    };
    let by_cause = sum(&page, "pages_written");
    assert!((by_cause / 40_000.0 - figure(&page, "wa_d")).abs() < 1e-9, "{page:#}");
    let hybrid = ftl(&home, trace, &["--ftl", "hybrid", "--full", "--dies", "1", "--json"]).json();
    assert!(figure(&hybrid, "merges_full") > 0.0, "{hybrid:#}");
    assert!(figure(&hybrid, "wa_d") > figure(&page, "wa_d"), "{hybrid:#}");
}

#[test]
fn what_cannot_be_simulated_ends_with_a_sentence() {
    let home = Home::new();
    let trace = written(&home, "trace", &log(0..64));
    let letter = written(&home, "letter", "Dear all,\n");
    let (trace, letter) = (trace.to_str().unwrap(), letter.to_str().unwrap());
    let table: &[(&str, &[&str], &str)] = &[
        (letter, &[], "it is no trace in a form that is read here"),
        ("nothing", &[], "no such file"),
        (trace, &["--over-provision", "7"], "a share such as 7%"),
        (trace, &["--over-provision=-1%"], "a share such as 7%"),
        (trace, &["--cache", "much"], "or a share such as 10%"),
        (trace, &["--ftl", "fast"], "page, dftl, hybrid"),
        (trace, &["--block", "3KiB"], "at least two whole pages"),
        (trace, &["--capacity", "0B"], "above 0"),
        (trace, &["--capacity", "65KiB"], "crosses the space's end"),
        (trace, &["--capacity", "64TiB"], "more than is simulated"),
        (trace, &["--dies", "0"], "0"),
        (trace, &["--repeat", "1000000000"], "more than is simulated"),
        (trace, &["--json", "--csv"], "cannot be used with"),
    ];
    for (trace, arguments, said) in table {
        let ran = ftl(&home, trace, arguments);
        assert!(ran.out.is_empty(), "{arguments:?}: {}", ran.out);
        ran.ended(2, &[said]);
    }
}

/// The simulated device under live load: WA-D is shown where drives' WA-D is, and is lower with more flash.
#[test]
fn drives_by_model_report_their_write_amplification() {
    let home = Home::new();
    let recorded = |out: &str, sets: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
        let begin = ["record", "inside-the-drive", "--out", out, "--warmup", "20s", "--for", "10s"];
        home.run(&[&begin[..], &sets].concat()).ended(0, &[]);
        let summary = json_file(&home.path(out).join("summary.json"));
        let number = |pointer: &str| summary.pointer(pointer).and_then(Value::as_f64);
        (number("/wa_d").unwrap(), number("/classes/point/service_ns/p50").unwrap(), summary)
    };
    let (little, _, summary) = recorded("little", &[]);
    assert!(summary.to_string().contains("simulated"));
    let (more, in_memory, _) = recorded("more", &["sim.over_provision=50"]);
    let (placed, _, _) = recorded("log", &["background.pattern=log", "sim.over_provision=50"]);
    let (_, on_flash, _) = recorded("map", &["sim.over_provision=50", "sim.mapping_cache=5"]);
    assert!(little > 2.0 && more < little && placed < 1.1, "{little} {more} {placed}");
    // Most reads first read the map from flash, which takes 20 µs.
    assert!(on_flash - in_memory > 15_000.0, "{on_flash} {in_memory}");
}
