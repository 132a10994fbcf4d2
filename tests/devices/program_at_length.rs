//! Tests of `stacktune run` that take minutes: processor time and caps checked against known programs, a real
//! database's knob turned on the screen, and file systems swept. For the soak.

use std::fs;
use std::process::Command;

use crate::common::devices::{Loops, has};
use crate::common::program::{Home, json_lines};
use crate::common::terminal::{Terminal, first_line};
use crate::common::{LEFT_TO_SOAK, is_soak, skip};
use crate::program::{USER, figure, nothing_runs, of_profile, on_files, outcome};
use crate::stack_run::assert_nothing_left;
use crate::stack_screen::ALL;

#[test]
fn what_four_orphans_burn_is_counted_within_three_hundredths() {
    let name = "what_four_orphans_burn_is_counted_within_three_hundredths";
    if !is_soak() {
        return skip(name, LEFT_TO_SOAK);
    }
    let Some(_loops) = Loops::alone(name) else { return };
    let home = Home::new();
    let burn = "python3 -c \"import time\nwhile time.process_time() < 3.0: pass\"; touch done$i";
    // Double-forked, and orphaned.
    let script = format!(
        "for i in 1 2 3 4; do export i; (setsid sh -c '{burn}' &) & done; \
         until [ -e done1 ] && [ -e done2 ] && [ -e done3 ] && [ -e done4 ]; do sleep 0.1; done; sleep 0.5"
    );
    let summary = outcome(on_files(&home, "1m", &["--user", USER], &script)).expect(0).json();
    let cpu_s = figure(&summary, "cpu_ns") as f64 / 1e9;
    assert!((cpu_s / 12.0 - 1.0).abs() < 0.03, "{cpu_s} s of 12");
    nothing_runs(&home);
}

#[test]
fn a_run_until_it_is_steady_ends_soon_after_its_rate_is() {
    let name = "a_run_until_it_is_steady_ends_soon_after_its_rate_is";
    if !is_soak() {
        return skip(name, LEFT_TO_SOAK);
    }
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    // Ten seconds, or longer on a busy host, at twice the rate.
    let text = "[command]\nrun = [\"sh\", \"-c\", \"i=0; while :; do echo rate = $((i < 50 ? 800 + i % 3 : 400 + i % 3)); \
                i=$((i + 1)); sleep 0.2; done\"]\n\
                [command.metrics]\nrate = { line = 'rate = ([0-9]+)', unit = \"1/s\", better = \"higher\" }\n";
    let ran = outcome(of_profile(&home, "3m", text, &["--user", USER, "--until-steady"])).expect(2);
    assert!(ran.stderr.contains("cannot be used with"), "{ran:?}");
    let profile = home.path("p.toml");
    let words = ["--user", USER, "--until-steady", "--at-most", "3m", "--json", "--out"];
    let mut command = home.command([["run", profile.to_str().unwrap()].as_slice(), &words].concat());
    command.arg(home.path("out")).env("XDG_STATE_HOME", home.path("state"));
    let summary = outcome(command).expect(0).json();
    assert!(summary["steady"]["state"] == "steady" && summary["steady"]["figures"][0] == "rate", "{summary}");
    let at_s = summary["steady"]["at_s"].as_f64().unwrap();
    assert!((9.0..30.0).contains(&at_s), "steady since {at_s} s");
    // Thirty bins of a second.
    let duration_s = summary["duration_s"].as_f64().unwrap();
    assert!((29.0..35.0).contains(&(duration_s - at_s)), "{duration_s} s, steady since {at_s} s");
    assert!(summary["flags"].as_array().unwrap().is_empty(), "{summary}");
    nothing_runs(&home);
}

const MB: u64 = 1_000_000;

#[test]
fn a_cap_decides_whether_a_file_is_read_twice() {
    let name = "a_cap_decides_whether_a_file_is_read_twice";
    if !is_soak() {
        return skip(name, LEFT_TO_SOAK);
    }
    let Some(_loops) = Loops::alone(name) else { return };
    // The first read goes to the drives in any case.
    let script = "dd if=/dev/zero of=f bs=1M count=954 oflag=direct 2>&1; cat f f >/dev/null; sleep 1.2";
    for (cap, read_mb, cached_mb) in [("200MB", 1800..2100, 0..201), ("2GB", 1000..1051, 900..2001)] {
        let home = Home::new();
        let sets =
            ["--set=target.files.count=1", "--set=target.files.size=1500MiB", "--set=stack.filesystem=ext4"];
        let more = [&["--user", USER, "--mem", cap][..], &sets].concat();
        let summary = outcome(on_files(&home, "2m", &more, script)).expect(0).json();
        let read = figure(&summary, "top_read_bytes") / MB;
        assert!(read_mb.contains(&read), "{cap}: {read} MB read");
        let windows = json_lines(&home.path("out/windows.jsonl"));
        let cached = windows.iter().filter_map(|window| window["program"]["cache_bytes"].as_u64()).max();
        assert!(cached_mb.contains(&(cached.unwrap() / MB)), "{cap}: {cached:?} bytes cached");
        assert_nothing_left(&home);
    }
}

#[test]
fn sqlite_is_compared_on_three_file_systems() {
    let name = "sqlite_is_compared_on_three_file_systems";
    if !is_soak() {
        return skip(name, LEFT_TO_SOAK);
    }
    for tool in ["sqlite3", "mkfs.xfs", "mkfs.btrfs"] {
        if !has(tool) {
            return skip(name, &format!("needs {tool}"));
        }
    }
    let Some(_loops) = Loops::alone(name) else { return };
    let home = Home::new();
    let profile =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/run-sqlite.toml")).unwrap();
    let (_, program) = profile.split_once("\n[command]\n").unwrap();
    let text = format!(
        "[command]\n{program}\n[sweep]\nfor = \"6s\"\n[sweep.product]\nstack.filesystem = [\"ext4\", \"xfs\", \"btrfs\"]\n"
    );
    let sizes = ["--user", USER, "--set=target.files.count=1", "--set=target.files.size=512MiB"];
    let json = outcome(of_profile(&home, "6s", &text, &sizes)).expect(0).json();
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3, "{json}");
    for step in steps {
        let commits = step["figures"]["program.metrics.commits.mean"]["median"].as_f64();
        assert!(commits > Some(1.0), "{step}");
    }
    assert_nothing_left(&home);
}

/// The server's value of a setting.
fn shown(home: &Home, setting: &str) -> String {
    let socket = home.path("files/stacktune-program");
    let asked = Command::new("psql")
        .args(["-U", "bench", "-d", "postgres", "-Atc", &format!("show {setting}"), "-h"])
        .arg(socket)
        .output()
        .unwrap();
    String::from_utf8_lossy(&asked.stdout).trim().to_owned()
}

#[test]
fn postgresqls_commits_are_turned_on_the_screen_and_the_server_agrees() {
    let name = "postgresqls_commits_are_turned_on_the_screen_and_the_server_agrees";
    if !is_soak() {
        return skip(name, LEFT_TO_SOAK);
    }
    if !has("pgbench") {
        return skip(name, "needs pgbench");
    }
    let Some(_loops) = Loops::alone(name) else { return };
    let home = Home::new();
    let files = format!("target.files.dir={}", home.path("files").display());
    let arguments = ["run", "run-pgbench", "--user", USER, "--set", &files].map(str::to_owned);
    let state = home.path("state");
    let mut terminal =
        Terminal::start(&home, &arguments, ALL, &[("XDG_STATE_HOME", state.to_str().unwrap())]);
    terminal.wait("the program's figures", |screen| {
        screen.contains("what it reports") && first_line(screen).contains("running")
    });
    terminal.choose("command.synchronous_commit");
    terminal.wait("a baseline", |screen| screen.contains("ready: turn a knob"));
    assert_eq!(shown(&home, "synchronous_commit"), "on");
    terminal.press("\x1b[C");
    terminal.wait_for("synchronous_commit on → off");
    assert_eq!(shown(&home, "synchronous_commit"), "off");
    // Where flushes are slow, it gives more transactions per second; whatever it gives, it is never called a gain.
    let judged = ["TRADE-OFF  less durable", "WORSE  less durable", "no clear change  less durable"];
    let screen = terminal
        .wait("its verdict and its price", |screen| judged.iter().any(|verdict| screen.contains(verdict)));
    assert!(!screen.contains("tps +") || screen.contains(judged[0]), "{screen}");
    terminal.press("u");
    terminal.wait_for("undo command.synchronous_commit off → on");
    assert_eq!(shown(&home, "synchronous_commit"), "on");
    terminal.press("q");
    terminal.left().expect(0);
    nothing_runs(&home);
}
