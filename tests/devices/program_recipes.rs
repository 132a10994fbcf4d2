//! The built-in profiles of programs. Real database systems aren't installed everywhere, and take minutes:
//! the soak checks our figures of them against their own.

use std::process::Command;

use serde_json::Value;

use crate::common::devices::{Loops, has};
use crate::common::program::{Home, Outcome, json_lines};
use crate::common::{LEFT_TO_SOAK, is_soak, skip};
use crate::program::{USER, log, nothing_runs, outcome};
use crate::stack_run::program;

/// Why a test can't run: it is left to the soak, or the program is not installed.
fn lacking(program: &str) -> Option<String> {
    if is_soak() {
        (!has(program)).then(|| format!("needs {program}"))
    } else {
        Some(LEFT_TO_SOAK.to_owned())
    }
}

/// Runs a built-in profile on files for that many seconds.
fn run(home: &Home, profile: &str, seconds: u32, sets: &[&str]) -> Outcome {
    let time = format!("{seconds}s");
    let mut run = home.command(["run", profile, "--user", USER, "--warmup", "0s", "--for", &time, "--json"]);
    run.arg("--set").arg(format!("target.files.dir={}", home.path("files").display()));
    run.args(sets.iter().flat_map(|set| ["--set", set])).arg("--out").arg(home.path("out"));
    outcome(run)
}

/// The number after those words in a program's report.
fn reported(report: &str, words: &str) -> f64 {
    let behind = report.rsplit_once(words).unwrap_or_else(|| panic!("no {words}: {report}")).1;
    let number: String = behind.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse().unwrap_or_else(|_| panic!("{words}{behind}"))
}

#[test]
fn postgresql_reports_as_many_transactions_as_we_do() {
    let name = "postgresql_reports_as_many_transactions_as_we_do";
    if let Some(why) = lacking("pgbench") {
        return skip(name, &why);
    }
    let Some(_loops) = Loops::alone(name) else { return };
    let home = Home::new();
    let summary = run(&home, "run-pgbench", 20, &["stack.filesystem=none"]).expect(0).json();
    let ours = summary["program"]["metrics"]["tps"]["mean"].as_f64().unwrap();
    let own = reported(&log(&home), "\ntps = ");
    assert!((ours / own - 1.0).abs() < 0.02, "ours {ours}, its own {own}");
    let windows = json_lines(&home.path("out/windows.jsonl"));
    let with = windows.iter().filter(|window| window["program"]["metrics"]["tps"] != Value::Null).count();
    assert!(with * 100 >= windows.len() * 95, "{with} of {} windows", windows.len());
    let by_name = summary["program"]["by_name"].as_object().unwrap();
    for process in ["postgres: walwriter", "postgres: background writer", "postgres: bench postgres"] {
        assert!(by_name.contains_key(process), "{process}: {by_name:?}");
    }
    // The drives write somewhat more than it reports: partial pages of its log are rewritten.
    let of = |key: &str| summary["program"][key].as_f64().unwrap_or_else(|| panic!("no {key}: {summary}"));
    let wa_a = of("application_drives_bytes") / of("application_bytes");
    assert!((0.8..4.0).contains(&wa_a), "{wa_a}");
    nothing_runs(&home);

    // A finished setup is reused.
    std::fs::remove_dir_all(home.path("out")).unwrap();
    let again = run(&home, "run-pgbench", 2, &[]).expect(0);
    assert!(again.stderr.contains("command.setup is skipped"), "{again:?}");
}

#[test]
fn transactions_like_tpc_cs_have_its_mix_and_its_size() {
    let name = "transactions_like_tpc_cs_have_its_mix_and_its_size";
    if let Some(why) = lacking("pgbench") {
        return skip(name, &why);
    }
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    // `stop` checks its consistency conditions: a violation fails the run.
    run(&home, "run-tpcc", 20, &["command.warehouses=2"]).expect(0);
    let report = log(&home);
    let mb = reported(&report, "MB a warehouse: ");
    assert!((90.0..=120.0).contains(&mb), "{mb} MB a warehouse");
    assert!(report.contains("conditions 1 to 4: 0\n"), "{report}");
    for (script, share) in [
        ("new_order", 45.0),
        ("payment", 43.0),
        ("order_status", 4.0),
        ("delivery", 4.0),
        ("stock_level", 4.0),
    ] {
        let (_, of_script) =
            report.split_once(&format!("{script}.sql\n")).unwrap_or_else(|| panic!("{report}"));
        let (_, found) = of_script.split_once(" transactions (").unwrap_or_else(|| panic!("{report}"));
        let found: f64 = found.split('%').next().unwrap().parse().unwrap();
        assert!((found - share).abs() < 2.0, "{script}: {found}%: {report}");
    }

    // A deleted order violates the second condition in its district, and its remaining lines the fourth.
    let built_in = include_str!("../../profiles/run-tpcc.toml");
    let looks = "    violated=$(";
    let deletes =
        "    ./psql -h {dir} -U bench -qc 'delete from orders where o_w_id = 1 and o_d_id = 1 and o_id = (
        select max(o_id) from orders where o_w_id = 1 and o_d_id = 1)' postgres\n";
    assert_eq!(built_in.matches(looks).count(), 1);
    let planted = home.path("planted.toml");
    std::fs::write(&planted, built_in.replace(looks, &format!("{deletes}{looks}"))).unwrap();
    std::fs::remove_dir_all(home.path("out")).unwrap();
    let failed = run(&home, planted.to_str().unwrap(), 2, &["command.warehouses=2"]).expect(1);
    assert!(failed.stderr.contains("stop"), "{failed:?}");
    assert!(log(&home).contains("conditions 1 to 4: 2\n"), "{}", log(&home));
    nothing_runs(&home);
}

fn first_word(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}

/// Those whose programs are installed.
#[test]
fn the_built_in_profiles_of_programs_run_and_are_measured() {
    let name = "the_built_in_profiles_of_programs_run_and_are_measured";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let list = program(&home, &["run", "--list"]).expect(0).stdout;
    assert_eq!(list.lines().count(), 14, "{list}");
    // No list of programs shows whether Python has the binding.
    let import = || Command::new("/usr/bin/python3").args(["-c", "import plyvel"]).output();
    let has_leveldb = is_soak() && import().is_ok_and(|ran| ran.status.success());
    let can_run = |line: &&str| line.ends_with("; here") && (has_leveldb || !line.starts_with("run-leveldb"));
    let (here, absent): (Vec<_>, Vec<_>) = list.lines().partition(can_run);
    if is_soak() {
        absent.iter().for_each(|line| skip(name, &format!("needs what {} runs", first_word(line))));
    }
    for line in here.into_iter().take(if is_soak() { usize::MAX } else { 2 }) {
        let name = first_word(line);
        let out = home.path(name);
        // One round of its queries takes longer than most.
        let time = if name == "run-duckdb" { "40s" } else { "6s" };
        let mut run = home.command(["run", name, "--user", USER, "--for", time, "--json", "--out"]);
        run.arg(&out).env("XDG_STATE_HOME", home.path("state"));
        let summary = outcome(run).expect(0).json();
        let metrics = summary["program"]["metrics"].as_object().unwrap();
        assert!(
            !metrics.is_empty() && metrics.values().all(|of| of["mean"].as_f64() > Some(0.0)),
            "{name}: {metrics:?}"
        );
    }
    nothing_runs(&home);
}
