//! A program's own knobs: set on the command line, swept, and turned while it runs.

use std::fs;

use serde_json::Value;

use crate::common::devices::Loops;
use crate::common::program::{Home, json_lines};
use crate::program::{USER, log, nothing_runs, of_profile, outcome};
use crate::stack_run::{ON_EXT4, assert_nothing_left, program};

/// Prints its rate ten times a second: the initial one, or the one set since.
pub const BENCH: &str = r#"
[run]
window = "200ms"
[command]
setup = ["sh", "-c", "echo {size} >>{dir}/made"]
run = ["sh", "-c", '''echo {rate} >{dir}/rate; i=0
while [ $i -lt {loops} ]; do echo rate = $(($(cat {dir}/rate) + i % 3)); i=$((i + 1)); sleep 0.1; done''']
[command.metrics]
rate = { line = 'rate = ([0-9]+)', unit = "1/s", better = "higher" }
[[command.knob]]
name = "size"
values = ["small", "large"]
[[command.knob]]
name = "loops"
values = [12, 100]
[[command.knob]]
name = "rate"
values = [100, 200, 400]
turn = ["sh", "-c", "echo {value} >{dir}/r; mv {dir}/r {dir}/rate; echo turned to {value}"]
"#;

fn rate(json: &Value) -> Option<f64> {
    json["program"]["metrics"]["rate"]["mean"].as_f64()
}

#[test]
fn knobs_are_given_on_the_command_line_and_turned_by_their_commands() {
    let name = "knobs_are_given_on_the_command_line_and_turned_by_their_commands";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let run = |more: &[&str]| {
        let _ = fs::remove_dir_all(home.path("out"));
        outcome(of_profile(&home, "20s", BENCH, &[&["--user", USER], more].concat()))
    };
    let summary = run(&["--set", "command.rate=200", "--set=command.size=large"]).expect(0).json();
    assert_eq!(rate(&summary).map(f64::round), Some(201.0), "{summary}");
    assert_eq!(fs::read_to_string(home.target().join("stacktune-program/made")).unwrap(), "large\n");
    assert!(log(&home).contains("[knob.turn]\nturned to 200\n"), "{}", log(&home));
    for (set, why) in [
        ("command.rate=300", "`command.rate` is one of 100, 200, 400"),
        ("command.rat=100", "there is no `command.rat`"),
        ("command.memory_max=x", "must be a size"),
    ] {
        let refused = run(&["--set", set]).expect(2);
        assert!(refused.stderr.contains(why), "{why}: {refused:?}");
    }
    let no_turn = run(&["--turn", "1s:command.size=large"]).expect(2);
    assert!(no_turn.stderr.contains("has no `turn`"), "{no_turn:?}");
    let rebuilds = run(&["--turn", "1s:stack.filesystem=xfs"]).expect(2);
    assert!(rebuilds.stderr.contains("builds the stack anew"), "{rebuilds:?}");
    let unlimited = run(&["--turn", "1s:command.memory_max=1GB"]).expect(2);
    assert!(unlimited.stderr.contains("no memory limit from the beginning"), "{unlimited:?}");
    let checked = program(&home, &["check", home.path("p.toml").to_str().unwrap()]);
    assert!(checked.stdout.contains("knob rate = 100, turned by: sh -c"), "{checked:?}");
    nothing_runs(&home);
}

#[test]
fn a_knob_that_is_turned_while_it_runs_is_a_line_of_the_ledger() {
    let name = "a_knob_that_is_turned_while_it_runs_is_a_line_of_the_ledger";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let turns = ["--user", USER, "--set=command.loops=100", "--turn", "4s:command.rate=400"];
    outcome(of_profile(&home, "9s", BENCH, &turns)).expect(0);
    let lines = json_lines(&home.path("out/ledger.jsonl"));
    let line = lines.last().unwrap();
    assert_eq!(
        (line["knob"].as_str(), line["from"].as_str(), line["to"].as_str()),
        (Some("command.rate"), Some("100"), Some("400"))
    );
    let change = &line["metrics"]["rate"];
    // With concurrent tests the processors may be full, and then nothing is judged.
    let is_full = line["flags"].as_array().unwrap().iter().any(|flag| flag == "processors full");
    assert!(is_full || change["verdict"] == "higher", "{line}");
    let of = |side: &str| change[side].as_f64().unwrap();
    assert!((of("before") - 101.0).abs() < 3.0 && (of("after") - 401.0).abs() < 3.0, "{line}");
    let text = home.run(["show".as_ref(), home.path("out").as_os_str()]).expect(0).stdout;
    assert!(text.contains("command.rate 100 → 400") && text.contains("rate          101 → 401"), "{text}");
    assert!(is_full || text.contains(", better\n"), "{text}");
    nothing_runs(&home);
}

#[test]
fn its_memory_limit_is_turned_while_it_runs() {
    let Some(_loops) = Loops::take("its_memory_limit_is_turned_while_it_runs", 1) else { return };
    let home = Home::new();
    let text = "[run]\nwindow = \"200ms\"\n[command]\nsetup = [\"sh\", \"-c\", \"head -c 40M /dev/zero >{dir}/f\"]\n\
                run = [\"sh\", \"-c\", \"while :; do cat {dir}/f >/dev/null; done\"]\n";
    let turns = ["--mem=200MiB", "--turn=1s:command.memory_max=16MiB", "--turn=2s:command.memory_max=100MiB"];
    outcome(of_profile(&home, "3s", text, &[&["--user", USER][..], &turns].concat())).expect(0);
    let windows = json_lines(&home.path("out/windows.jsonl"));
    let cached_mib = |from_s: f64, to_s: f64| {
        let within = |window: &&Value| (from_s..to_s).contains(&(window["start_ns"].as_f64().unwrap() / 1e9));
        let cached = |window: &Value| window["program"]["cache_bytes"].as_u64().unwrap() >> 20;
        windows.iter().filter(within).map(cached).collect::<Vec<_>>()
    };
    assert!(cached_mib(0.0, 1.0).into_iter().any(|mib| mib >= 40), "{:?}", cached_mib(0.0, 9.0));
    assert!(cached_mib(1.3, 1.9).into_iter().all(|mib| mib <= 16), "{:?}", cached_mib(0.0, 9.0));
    assert!(cached_mib(2.3, 9.0).into_iter().any(|mib| mib >= 40), "{:?}", cached_mib(0.0, 9.0));
    let lines = json_lines(&home.path("out/ledger.jsonl"));
    let turned = |line: &&Value| line["knob"] == "command.memory_max" && line["from"] == "200MiB";
    assert!(lines.iter().find(turned).is_some_and(|line| line["to"] == "16MiB"), "{lines:?}");
    nothing_runs(&home);
}

#[test]
fn steps_turn_the_knobs_of_a_program_and_its_stack() {
    let Some(_loops) = Loops::take("steps_turn_the_knobs_of_a_program_and_its_stack", 1) else { return };
    let home = Home::new();
    let steps = "[sweep]\nfor = \"20s\"\nrepeat = 2\n[sweep.product]\ncommand.rate = [100, 400]\n";
    let text = format!("{BENCH}{steps}");
    let run = |text: &str, more: &[&str]| {
        outcome(of_profile(&home, "20s", text, &[&["--user", USER], more].concat()))
    };
    let swept = run(&text, &[]).expect(0);
    let json = swept.json();
    let steps = json["steps"].as_array().unwrap();
    let rates =
        [0, 1].map(|at| steps[at]["figures"]["program.metrics.rate.mean"]["median"].as_f64().unwrap());
    assert_eq!(rates.map(|rate| rate.round() as u64), [101, 401], "{json}");
    // In a folder, the setup runs once for all of them.
    assert_eq!(fs::read_to_string(home.target().join("stacktune-program/made")).unwrap(), "small\n");
    let dirs: Vec<String> = fs::read_dir(home.path("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let runs = dirs.iter().filter(|name| home.path("out").join(name).join("program.log").exists());
    assert_eq!(runs.count(), 4, "{dirs:?}");
    let shown = home.run(["show".as_ref(), home.path("out").as_os_str()]).expect(0).stdout;
    assert!(
        shown.contains("rate=400") && shown.contains("cores") && shown.contains("rate, 1/s by"),
        "{shown}"
    );
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let best = "Best by rate, 1/s (higher is better): rate=400 with 401, then rate=100 with 101; each of its runs is \
                better than all others.";
    assert!(words.contains(best), "{shown}");
    fs::remove_dir_all(home.path("out")).unwrap();
    // In a folder, a program's own folder stays from run to run.
    fs::remove_dir_all(home.target()).unwrap();

    // A stack is rebuilt if the setup or the stack differs, and kept if only the run does.
    let steps = "[sweep]\nfor = \"20s\"\norder = \"as-written\"\n[sweep.product]\n\
                 stack.filesystem = [\"ext4\", \"xfs\"]\ncommand.size = [\"small\", \"large\"]\ncommand.rate = [100, 200]\n";
    let text = format!("{BENCH}[stack]\nfilesystem = \"ext4\"\n{steps}");
    let sizes: Vec<String> = ON_EXT4[..1]
        .iter()
        .map(|set| format!("--set={set}"))
        .chain(["--set=target.files.size=400MiB".to_owned()])
        .collect();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    let swept = run(&text, &sizes).expect(0);
    let json = swept.json();
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 8, "{json}");
    for step in steps {
        let expected = if step["label"].as_str().unwrap().contains("rate=100") { 101.0 } else { 201.0 };
        let rate = step["figures"]["program.metrics.rate.mean"]["median"].as_f64().unwrap();
        assert!((rate - expected).abs() < 0.1, "{step}");
    }
    assert_eq!(swept.stderr.matches("command.setup is skipped").count(), 4, "{swept:?}");
    assert_nothing_left(&home);
}

#[test]
fn steps_that_turn_what_has_no_effect_are_refused() {
    let Some(_loops) = Loops::take("steps_that_turn_what_has_no_effect_are_refused", 1) else { return };
    let home = Home::new();
    for (steps, why) in [
        ("[sweep.product]\nscan.depth = [1, 2]", "no effect where a program is the load"),
        ("[sweep.product]\ncommand.rate = [1]", "is one of 100, 200, 400"),
        ("[[step]]\ncommand.none = 1", "there is no `command.none`"),
    ] {
        let text = format!("{BENCH}{steps}\n");
        let refused = outcome(of_profile(&home, "20s", &text, &["--user", USER])).expect(2);
        assert!(refused.stderr.contains(why), "{why}: {refused:?}");
    }
    assert!(!home.path("out").exists());
    let turned_twice = format!("{BENCH}[sweep.product]\ncommand.rate = [100]\n");
    let refused =
        outcome(of_profile(&home, "20s", &turned_twice, &["--user", USER, "--set=command.rate=200"]))
            .expect(2);
    assert!(refused.stderr.contains("already turn `command.rate`"), "{refused:?}");
    nothing_runs(&home);
}
