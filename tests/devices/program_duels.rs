//! Duels of a program's own knobs and of the stack's, turned while it runs or built for each block, decided
//! by the program's own figure. The programs report their settings, so the better value is known.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::common::devices::Loops;
use crate::common::program::{Home, Outcome, json_file, json_lines, wait_for};
use crate::program::{USER, nothing_runs, of_profile, outcome};
use crate::program_screen::on_screen;
use crate::stack_run::{ON_EXT4, assert_nothing_left};

/// Reports a figure of three knobs ten times a second, with little noise: `rate` makes a difference, `idle`
/// makes none, and `sync` makes one at the cost of durability.
const BENCH: &str = r#"
[run]
window = "200ms"
[command]
setup = ["sh", "-c", "echo 1000 >{dir}/rate; echo 2 >{dir}/sync"]
run = ["sh", "-c", '''i=0
while :; do
    echo rate = $(($(cat {dir}/rate) * $(cat {dir}/sync) / 2 + i % 3)), size {size}
    i=$((i + 1)); sleep 0.1
done''']
[command.metrics]
count = { line = '^rate = ([0-9])' }
rate = { line = 'rate = ([0-9]+)', unit = "1/s", better = "higher" }
[[command.knob]]
name = "rate"
values = [1000, 1400]
turn = ["sh", "-c", "echo {value} >{dir}/r; mv {dir}/r {dir}/rate"]
[[command.knob]]
name = "idle"
values = ["a", "b"]
turn = ["true"]
[[command.knob]]
name = "sync"
values = [2, 3]
turn = ["sh", "-c", "echo {value} >{dir}/s; mv {dir}/s {dir}/sync"]
less_durable = [3]
[[command.knob]]
name = "broken"
values = ["a", "b"]
turn = ["sh", "-c", "[ {value} = a ] || { echo no such luck; exit 3; }"]
[[command.knob]]
name = "size"
values = ["small", "large"]
"#;

/// A recorded duel while a program runs.
fn duel(home: &Home, text: &str, duel: &str, more: &[&str]) -> Outcome {
    let (path, target) = (home.path("p.toml"), home.target().display().to_string());
    fs::write(&path, format!("[target]\nfiles = {{ dir = \"{target}\" }}\n{text}\n")).unwrap();
    let words = ["--user", USER, "--json", "--duel-seed", "7", "--duel", duel, "--out"];
    let mut run = home.command(["run", path.to_str().unwrap()].into_iter().chain(words));
    run.arg(home.path("out")).env("XDG_STATE_HOME", home.path("state")).args(more);
    outcome(run)
}

/// A recording's duel, and whether the machine was quiet enough for a verdict.
fn found(home: &Home) -> (Value, bool) {
    let report = json_file(&home.path("out/duel.json"));
    let dropped = report["dropped"].as_array().unwrap().len();
    let is_judged = report["verdict"] != "not_judged" || dropped < 2;
    if is_judged {
        assert!(report["pairs"].as_array().unwrap().len() >= 7, "{report:#}");
    }
    (report, is_judged)
}

#[test]
fn a_duel_finds_the_value_under_which_a_program_does_more() {
    let name = "a_duel_finds_the_value_under_which_a_program_does_more";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let run = duel(&home, BENCH, "command.rate=1400,1000", &["--set=command.size=large"]).expect(0);
    let (report, is_judged) = found(&home);
    assert_eq!(run.json(), report, "what is printed is what is kept");
    assert_eq!((&report["figure"], &report["begins"]), (&"rate".into(), &"turned".into()));
    assert_eq!(report["measured"], serde_json::json!(["rate", "count"]));
    assert_eq!((&report["values"][0], &report["less_durable"]), (&"1400".into(), &Value::Null));
    if is_judged {
        assert_eq!(report["verdict"], "first", "{report:#}");
        let change = report["figures"][0]["change"].as_f64().unwrap();
        assert!((change - (1001.0 / 1401.0 - 1.0)).abs() < 0.02, "{change}");
    }
    // The ledger has it as one line with each turn, made by the knob's command, and the verdict.
    let lines = json_lines(&home.path("out/ledger.jsonl"));
    assert!(lines.iter().all(|line| line["number"] == 1 && line["knob"] == "command.rate"), "{lines:#?}");
    let line = lines.last().unwrap();
    assert!(line["duel"].as_array().unwrap().len() >= 4 && line["open"] != true, "{line:#}");
    assert_eq!((&line["from"], &line["to"]), (&"1400".into(), &"1000".into()));
    let outcome = &line["duel_outcome"];
    assert_eq!((&outcome["verdict"], &outcome["figure"]), (&report["verdict"], &"rate".into()), "{line:#}");
    let summary = json_file(&home.path("out/summary.json"));
    let rate = summary["program"]["metrics"]["rate"]["mean"].as_f64().unwrap();
    assert!((1001.0..=1401.0).contains(&rate), "{rate}");
    nothing_runs(&home);
}

#[test]
fn values_that_make_no_difference_or_cost_durability_do_not_win() {
    let name = "values_that_make_no_difference_or_cost_durability_do_not_win";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    duel(&home, BENCH, "command.idle=a,b", &[]).expect(0);
    let (report, is_judged) = found(&home);
    let verdict = report["verdict"].as_str().unwrap();
    assert!(!is_judged || ["no_difference", "unclear"].contains(&verdict), "{report:#}");
    nothing_runs(&home);

    fs::remove_dir_all(home.path("out")).unwrap();
    duel(&home, BENCH, "command.sync=2,3", &["--duel-figure", "rate"]).expect(0);
    let (report, is_judged) = found(&home);
    assert_eq!(report["less_durable"], 1);
    assert!(!is_judged || report["verdict"] == "less_durable", "{report:#}");
    let lines = json_lines(&home.path("out/ledger.jsonl"));
    assert_eq!(lines.last().unwrap()["duel_outcome"]["less_durable"], 1, "{lines:#?}");
    nothing_runs(&home);
}

#[test]
fn a_step_that_is_less_durable_is_never_the_best() {
    let Some(_loops) = Loops::take("a_step_that_is_less_durable_is_never_the_best", 1) else { return };
    let home = Home::new();
    let text = format!("{BENCH}[sweep.product]\ncommand.sync = [2, 3]\n");
    outcome(of_profile(&home, "2s", &text, &["--user", USER])).expect(0);
    let shown = home.run(["show".as_ref(), home.path("out").as_os_str()]).expect(0).stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Best by rate, 1/s (higher is better): sync=2 with 10"), "{shown}");
    let less = "; all others are less durable. sync=3 has 15";
    assert!(words.contains(less), "{shown}");
    assert!(words.contains("but is less durable (command.sync 3), which is no gain."), "{shown}");
    nothing_runs(&home);
}

#[test]
fn a_duel_that_can_not_be_is_refused_or_ends_with_the_reason() {
    let name = "a_duel_that_can_not_be_is_refused_or_ends_with_the_reason";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    for (asked, more, why) in [
        ("scan.depth=1,4", &[][..], "no effect where a program is the load"),
        ("command.size=small,large", &["--keep"], "no stack stays"),
        ("command.rate=1000,300", &[], "`command.rate` is one of 1000, 1400"),
        ("command.memory_max=1GB,2GB", &[], "all blocks of a duel have the same memory limit"),
        ("command.rate=1000,1400", &["--duel-figure=count"], "it is one of rate"),
        ("command.rate=1000,1400", &["--turn=1s:command.idle=b"], "cannot be used with"),
    ] {
        let refused = duel(&home, BENCH, asked, more).expect(2);
        assert!(refused.stderr.contains(why), "{why}: {refused:?}");
    }
    let sized = BENCH.replace("setup = [\"sh\", \"-c\", \"", "setup = [\"sh\", \"-c\", \"echo {size}; ");
    let refused = duel(&home, &sized, "command.size=small,large", &[]).expect(2);
    assert!(refused.stderr.contains("command.setup names {size}, and runs once"), "{refused:?}");
    let silent = BENCH.replace(", better = \"higher\"", "");
    let refused = duel(&home, &silent, "command.rate=1000,1400", &[]).expect(2);
    assert!(refused.stderr.contains("no figure that the program reports can decide a duel"), "{refused:?}");
    let swept = format!("{BENCH}[sweep.product]\ncommand.size = [\"small\", \"large\"]\n");
    let refused = duel(&home, &swept, "command.rate=1000,1400", &[]).expect(2);
    assert!(refused.stderr.contains("--duel needs a single run"), "{refused:?}");
    assert!(!home.path("out").exists(), "nothing was begun");

    let broken = duel(&home, BENCH, "command.broken=a,b", &[]).expect(1);
    assert!(
        broken.stderr.contains("command.broken can't be turned") && broken.stderr.contains("no such luck"),
        "{broken:?}"
    );
    fs::remove_dir_all(home.path("out")).unwrap();
    // A program that ends before the duel is decided.
    let short = BENCH.replace("while :; do", "while [ $i -lt 30 ]; do");
    let early = duel(&home, &short, "command.rate=1000,1400", &[]).expect(0);
    assert!(early.stderr.contains("the program ended before the duel was decided"), "{early:?}");
    assert_eq!(json_file(&home.path("out/duel.json"))["verdict"], "unclear");
    nothing_runs(&home);
}

#[test]
fn what_is_live_of_the_stack_is_fought_over_by_what_the_program_reports() {
    let name = "what_is_live_of_the_stack_is_fought_over_by_what_the_program_reports";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    // Reports the kernel's setting of the queue below its folder.
    let text = r#"
[run]
window = "200ms"
[stack]
filesystem = "ext4"
[command]
run = ["sh", "-c", '''
of=$(while read -r id parent of root at rest; do case {dir} in ($at*) echo $of;; esac; done </proc/self/mountinfo | tail -n 1)
while :; do
    echo ahead $(cat /sys/dev/block/$of/queue/read_ahead_kb || cat /sys/dev/block/$of/../queue/read_ahead_kb)
    sleep 0.1
done''']
[command.metrics]
ahead = { line = '^ahead ([0-9]+)$', unit = "KiB", better = "higher" }
"#;
    let sets = ON_EXT4.map(|set| format!("--set={set}"));
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    duel(&home, text, "queue.read_ahead_kb=128,192", &sets).expect(0);
    let (report, is_judged) = found(&home);
    if is_judged {
        assert_eq!(report["verdict"], "second", "{report:#}");
        let change = report["figures"][0]["change"].as_f64().unwrap();
        assert!((change - 0.5).abs() < 1e-6, "{change}");
    }
    assert_nothing_left(&home);
}

/// A program that reports its file system and its memory limit.
const ON_WHAT: &str = r#"
[run]
window = "100ms"
[command]
setup = ["sh", "-c", "echo made; echo here >{dir}/made"]
start = ["sleep", "1000"]
run = ["sh", "-c", '''
case $(stat -f -c %T {dir}) in (btrfs) rate=1400;; (*) rate=1000;; esac
while cat {dir}/made && :; do echo rate = $rate, may use {memory} for {size}; sleep 0.05; done''']
[command.metrics]
rate = { line = 'rate = ([0-9]+)', unit = "1/s", better = "higher" }
[[command.knob]]
name = "size"
values = ["small", "large"]
[stack]
filesystem = "ext4"
"#;

#[test]
fn a_program_is_set_up_anew_on_the_stack_of_each_block() {
    let Some(_loops) = Loops::take("a_program_is_set_up_anew_on_the_stack_of_each_block", 1) else { return };
    let home = Home::new();
    let sets = ["target.files.count=1", "target.files.size=160MiB"].map(|set| format!("--set={set}"));
    let more: Vec<&str> = ["--mem", "64MiB"].into_iter().chain(sets.iter().map(String::as_str)).collect();
    let asked = "stack.filesystem=ext4,btrfs";
    let dry: Vec<&str> = more.iter().copied().chain(["--dry-run"]).collect();
    let shown = duel(&home, ON_WHAT, asked, &dry).expect(0);
    assert_eq!(shown.json()["builds_min"], 14, "{shown:?}");
    let anew = duel(&home, ON_WHAT, "command.size=small,large", &dry).expect(0);
    assert_eq!(anew.json()["builds_min"], 14, "it has no `turn`: {anew:?}");
    assert!(!home.path("out").exists());

    let run = duel(&home, ON_WHAT, asked, &more).expect(0);
    let (report, is_judged) = found(&home);
    assert_eq!(run.json(), report, "what is printed is what is kept");
    assert_eq!((&report["begins"], &report["figure"]), (&"built".into(), &"rate".into()));
    if is_judged {
        assert_eq!(report["verdict"], "second", "{report:#}");
        let change = report["figures"][0]["change"].as_f64().unwrap();
        assert!((change - 0.4).abs() < 1e-6, "{change}");
    }
    let entries = fs::read_dir(home.path("out")).unwrap().map(|entry| entry.unwrap().path());
    let blocks: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    // Flags on too many pairs end it earlier, without a verdict.
    assert!(blocks.len() >= if is_judged { 14 } else { 2 }, "{blocks:?}");
    for block in blocks {
        let log = fs::read_to_string(block.join("program.log")).unwrap();
        assert!(log.starts_with("[setup]\nmade\n") && log.contains("may use 67108864"), "{log}");
        let summary = json_file(&block.join("summary.json"));
        let expected = if block.to_str().unwrap().ends_with("btrfs") { 1400.0 } else { 1000.0 };
        let rate = summary["program"]["metrics"]["rate"]["mean"].as_f64();
        assert_eq!((rate, &summary["failure"]), (Some(expected), &Value::Null));
    }
    assert_nothing_left(&home);

    // If the program ends by itself, there is nothing to measure.
    fs::remove_dir_all(home.path("out")).unwrap();
    let ends = ON_WHAT.replace("made && :", "made && false");
    let early = duel(&home, &ends, asked, &more).expect(1);
    assert!(early.stderr.contains("before it was measured"), "{early:?}");
    let log = fs::read_dir(home.path("out"))
        .unwrap()
        .flatten()
        .find_map(|block| fs::read_to_string(block.path().join("program.log")).ok());
    assert!(log.is_some_and(|log| log.contains("made")), "what it said is kept");
    assert_nothing_left(&home);
}

#[test]
fn a_duel_on_the_screen_leaves_the_programs_knob_as_it_was() {
    let name = "a_duel_on_the_screen_leaves_the_programs_knob_as_it_was";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let rate = || {
        let text = fs::read_to_string(home.target().join("stacktune-program/rate"));
        text.unwrap_or_default().trim().to_owned()
    };
    let mut terminal = on_screen(&home, BENCH, &[]);
    terminal.choose("command.rate");
    terminal.press("\x1b[C");
    terminal.wait_for("command.rate 1000 → 1400");
    terminal.press("D");
    terminal.wait_for("Which figure decides");
    terminal.press("\r");
    terminal.wait_for("duel of command.rate by rate");
    terminal.wait("a pair", |screen| screen.contains("evidence ") && screen.contains(" of 40"));
    terminal.press("D");
    terminal.wait_for("it was ended before it was decided");
    wait_for("the value before the duel", || (rate() == "1400").then_some(()));
    // The duel's turns are one line of the ledger, and can't be undone.
    let screen = terminal.screen();
    assert!(!screen.contains("1400 → 1000"), "{screen}");
    wait_for("the undo, once the knob is at rest", || {
        terminal.press("u");
        std::thread::sleep(Duration::from_millis(300));
        terminal.screen().contains("undo command.rate 1400 → 1000").then_some(())
    });
    wait_for("the operator's turn, undone", || (rate() == "1000").then_some(()));
    terminal.press("q");
    terminal.left().expect(0);
    nothing_runs(&home);
}
