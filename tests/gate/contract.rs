//! `stacktune contract` and `stacktune trace`: trace files in each format, and files that aren't traces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::recorded::{Home, Ran};
use crate::common::{LEFT_TO_SOAK, is_soak, skip};

/// WiscSee's events for that many writes: 128 KiB each, sequential over 4 MiB, again and again.
fn events(writes: u64) -> String {
    let line = |at: u64| {
        let (offset, from, to) = (at % 32 * (128 << 10), 20 * at, 20 * at + 10);
        format!("7 D write {offset} 131072 0.{from:09} 0 True\n0 C write {offset} 131072 0.{to:09} 0 True\n")
    };
    (0..writes).map(line).collect()
}

fn written(home: &Home, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = home.path(name);
    fs::write(&path, content).unwrap();
    path
}

fn scored(home: &Home, path: &Path, arguments: &[&str]) -> Ran {
    home.run(&[&["contract", path.to_str().unwrap()][..], arguments].concat())
}

#[test]
fn a_trace_is_scored_as_text_and_as_json() {
    let home = Home::new();
    let trace = written(&home, "events", events(32 * 60));
    let ran = scored(&home, &trace, &[]);
    ran.ended(0, &[]);
    for said in ["1,920 I/Os of drive 0:0", "no model", "WiscSee's events", "there is nothing to turn"] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    let json = scored(&home, &trace, &["--json"]).json();
    let kept: Vec<_> =
        json["rules"].as_array().unwrap().iter().map(|rule| rule["is_kept"].as_str().unwrap()).collect();
    assert_eq!(kept, ["no model", "good", "good", "good", "good"]);
    let figure = |pointer: &str| {
        json.pointer(pointer)
            .and_then(serde_json::Value::as_f64)
            .unwrap_or_else(|| panic!("{pointer}: {json:#}"))
    };
    // Four translation pages, each used 1024 times by 32 writes of 64 pages; only the first use misses.
    assert!((figure("/locality/4/lookups") - 122_880.0).abs() < 0.5);
    assert!((figure("/locality/4/misses") - 4.0).abs() < 0.5);
    assert!((figure("/lifetime/times_written") - 60.0).abs() < 1e-9);
    assert!((figure("/lifetime/p99_to_p50") - 1.0).abs() < 1e-9);
    assert!(figure("/alignment/0/ratio").abs() < 1e-9);
    assert!(figure("/grouping/one_segment/zombie_share").abs() < 1e-9);
    assert!((figure("/request_scale/mean_depth") - 19_200.0 / 38_390.0).abs() < 1e-9);
    assert!((figure("/request_scale/by_operation/write/bytes/median") - 131_072.0).abs() < 0.5);
}

/// Only the requested rules are scored, with other parameters than the authors'.
#[test]
fn a_rule_is_scored_alone_and_by_other_values() {
    let home = Home::new();
    let trace = written(&home, "events", events(32 * 60));
    let json = scored(&home, &trace, &["--rule", "locality", "--coverage", "50,100", "--json"]).json();
    let rules: Vec<_> = json["rules"].as_array().unwrap().iter().map(|rule| &rule["rule"]).collect();
    assert_eq!(rules, ["locality"]);
    assert_eq!(json["rules"][0]["is_kept"], "not asked for");
    for part in ["request_scale", "alignment", "grouping", "lifetime"] {
        assert!(json[part].is_null(), "{part}: {json:#}");
    }
    // Half the space caches two of the four translation pages, used in turn: each of the 240 uses misses.
    let misses: Vec<_> = json["locality"].as_array().unwrap().iter().map(|of| &of["misses"]).collect();
    assert_eq!(misses, [240, 4]);
    let text = scored(&home, &trace, &["--rule", "grouping", "--channels", "1", "--segment", "1MiB"]);
    text.ended(0, &[]);
    assert!(text.out.contains("0% in segments of 1MiB") && !text.out.contains("locality"), "{}", text.out);
    scored(&home, &trace, &["--blocks", "2MiB"]).ended(2, &["from 2KiB to 1MiB is expected"]);
    scored(&home, &trace, &["--coverage", "0"]).ended(2, &["can't cover 0% of a space"]);
    scored(&home, &trace, &["--channels", "65"]).ended(2, &["1 to 64 are expected"]);
    scored(&home, &trace, &["--rule", "speed"]).ended(2, &["request-scale"]);
}

#[test]
fn curves_are_files_that_are_not_overwritten() {
    let home = Home::new();
    let trace = written(&home, "events", events(64));
    scored(&home, &trace, &["--csv", "curves"]).ended(0, &[]);
    let mut names: Vec<_> = fs::read_dir(home.path("curves"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let all = [
        "depth.csv",
        "lifetime.csv",
        "miss.csv",
        "sizes.csv",
        "unaligned.csv",
        "zombie-segmented.csv",
        "zombie-single.csv",
    ];
    assert_eq!(names, all);
    let lifetime = fs::read_to_string(home.path("curves/lifetime.csv")).unwrap();
    assert_eq!(lifetime, "pages,ends_at,writes\n2048,1,2\n");
    scored(&home, &trace, &["--csv", "curves"]).ended(1, &["sizes.csv"]);
    assert_eq!(fs::read_to_string(home.path("curves/lifetime.csv")).unwrap(), lifetime);
}

#[test]
fn a_trace_says_the_same_in_another_form() {
    let home = Home::new();
    let trace = written(&home, "events", events(100));
    let scores = scored(&home, &trace, &["--json"]).json();
    let convert = |form: &str, out: &str| {
        home.run(&["trace", "--from", trace.to_str().unwrap(), "--as", form, "--out", out])
    };
    convert("blktrace", "x.blktrace.0").ended(0, &[]);
    let mut again = scored(&home, &home.path("x.blktrace.0"), &["--json"]).json();
    (again["trace"], again["form"]) = (scores["trace"].clone(), scores["form"].clone());
    assert_eq!(again, scores);
    convert("wiscsee", "again").ended(0, &[]);
    let mut again = scored(&home, &home.path("again"), &["--json"]).json();
    again["trace"] = scores["trace"].clone();
    assert_eq!(again, scores);
    convert("csv", "table").ended(0, &[]);
    assert_eq!(fs::read_to_string(home.path("table")).unwrap().lines().count(), 101);
    convert("fio", "x.iolog").ended(0, &[]);
    let log = scored(&home, &home.path("x.iolog"), &["--json"]).json();
    assert_eq!((&log["lifetime"], &log["grouping"]), (&scores["lifetime"], &scores["grouping"]));
    assert!(log["request_scale"]["mean_depth"].is_null());
    convert("fio", "x.iolog").ended(2, &["x.iolog exists already"]);
    convert("perf", "y").ended(2, &["blktrace", "fio"]);
    assert!(!home.path("y").exists());
}

#[test]
fn what_is_no_trace_ends_with_a_sentence() {
    let home = Home::new();
    let events = events(64);
    let back = events.replacen("0.000000030", "0.000000001", 1);
    let pipe = home.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let other_drive = "  8,0 0 1 0.000000001 1 D R 8 + 8 [x]\n  8,16 0 1 0.000000001 1 D R 8 + 8 [x]\n";
    let table: &[(&str, &[u8], &[&str], &str)] = &[
        ("empty", b"", &[], "it is empty"),
        ("letter", b"Dear all,\n", &[], "it is no trace in a form that is read here"),
        ("back", back.as_bytes(), &[], "time goes back from 20 ns to 1 ns"),
        ("cut", &events.as_bytes()[..events.len() - 20], &[], "line 128: it does not have eight columns"),
        ("past", events.as_bytes(), &["--logical", "1MiB", "--start", "64KiB"], "crosses the space's end"),
        ("drives", other_drive.as_bytes(), &[], "the trace is of 2 drives: 8:0, 8:16"),
        ("none", other_drive.as_bytes(), &["--drive", "8:1"], "the trace has no drive 8:1"),
        ("page", b"", &["--page", "3KiB"], "a power of two from 2KiB to 64KiB"),
        ("number", b"", &["--drive", "sda"], "such as 8:16"),
    ];
    for (name, content, arguments, said) in table {
        let ran = scored(&home, &written(&home, name, content), arguments);
        assert!(ran.out.is_empty(), "{name}: {}", ran.out);
        ran.ended(2, &[said]);
    }
    scored(&home, &pipe, &[]).ended(2, &["it is not a regular file"]);
    scored(&home, &home.path("nothing"), &[]).ended(2, &["no such file"]);
}

#[test]
fn names_in_a_trace_do_not_reach_the_terminal_raw() {
    let home = Home::new();
    let evil = "  8,0 0 1 0.000000001 1 D R 8 + 8 [x\u{1b}]0;title\u{7}]\n";
    let trace = written(&home, "a\u{1b}[2J\nfalse line", evil);
    for arguments in [&[][..], &["--json"]] {
        let ran = scored(&home, &trace, arguments);
        ran.ended(0, &[]);
        assert!(!ran.out.contains(|c: char| c.is_control() && c != '\n'), "{:?}", ran.out);
        assert!(!ran.out.lines().any(|line| line.starts_with("false line")), "{}", ran.out);
    }
}

/// blkparse and btt, if installed: the same counts, and the same mean time from issue to completion.
#[test]
fn blktraces_own_tools_agree() {
    let test = "blktraces_own_tools_agree";
    let has = |tool: &str| Command::new(tool).arg("-V").output().is_ok();
    if !is_soak() {
        return skip(test, LEFT_TO_SOAK);
    }
    if !has("blkparse") || !has("btt") {
        return skip(test, "needs blkparse and btt");
    }
    let home = Home::new();
    let trace = written(&home, "events", events(1000));
    home.run(&["trace", "--from", trace.to_str().unwrap(), "--out", "x.blktrace.0"]).ended(0, &[]);
    let ran = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(home.dir.path()).output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = ran("blkparse", &["-i", "x", "-d", "x.bin"]);
    let lines = |act: &str| text.lines().filter(|line| line.split_whitespace().nth(5) == Some(act)).count();
    assert_eq!((lines("D"), lines("C")), (1000, 1000));
    let from_text = scored(&home, &written(&home, "x.txt", &text), &["--json"]).json();
    let from_events = scored(&home, &trace, &["--json"]).json();
    assert_eq!(from_text["request_scale"], from_events["request_scale"]);
    let times = ran("btt", &["-i", "x.bin"]);
    let d2c = times.lines().find_map(|line| line.strip_prefix("D2C ")).unwrap_or_else(|| panic!("{times}"));
    let words: Vec<f64> = d2c.split_whitespace().map(|word| word.parse().unwrap()).collect();
    // Minimum, mean, maximum and count: each I/O takes 10 ns.
    assert!(words[..3].iter().all(|seconds| (seconds - 1e-8).abs() < 1e-9) && words[3] > 999.0, "{d2c}");
}
