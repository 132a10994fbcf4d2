//! `stacktune run`'s figures of a program, checked against small programs that write, read, burn, print and
//! answer known amounts.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::devices::{Loops, has};
use crate::common::program::{Home, Outcome, Running, json_lines, wait_for};
use crate::common::{LEFT_TO_SOAK, is_soak, skip};
use crate::program::{USER, figure, log, nothing_runs, of_profile, on_ext4, on_files, outcome, process_with};
use crate::stack_run::{ON_EXT4, assert_nothing_left, program};

/// A shell function that burns that many seconds of processor time.
const BURN: &str =
    "burn() { python3 -c 'import time, sys\nwhile time.process_time() < float(sys.argv[1]): pass' $1; }; ";

#[test]
fn programs_have_their_io_by_name_although_they_have_ended() {
    let name = "programs_have_their_io_by_name_although_they_have_ended";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    // Each dd lives long enough to be sampled several times, even on a busy machine.
    let script = "dd if=/dev/zero of={dir}/f bs=1M count=64 oflag=direct,dsync 2>&1; \
                  for i in 1 2 3; do dd if={dir}/f of=/dev/null bs=256k iflag=direct 2>&1; done; \
                  for i in 1 2 3 4; do echo $i >>{dir}/g; sync {dir}/g; done; sleep 0.3";
    let summary = outcome(on_ext4(&home, "1m", &["--user", USER], script)).expect(0).json();
    let of = |key: &str| {
        summary["program"]["by_name"]["dd"][key].as_u64().unwrap_or(0) as f64 / f64::from(1 << 20)
    };
    let (read, written) = (of("read_bytes"), of("written_bytes"));
    assert!((read / 192.0 - 1.0).abs() < 0.02, "{read} MiB read: {}", summary["program"]["by_name"]);
    assert!((written / 64.0 - 1.0).abs() < 0.02, "{written} MiB written: {}", summary["program"]["by_name"]);
    let shell = summary["program"]["by_name"]["sh"]["read_bytes"].as_u64();
    assert!(shell.unwrap_or(0) < 1 << 20, "its children's count once: {}", summary["program"]["by_name"]);
    // The block layer's total time for the same I/O: at most 64 in flight throughout the run.
    let (ios, ms) = (figure(&summary, "drives_ios"), figure(&summary, "drives_ms"));
    assert!(ios > 256, "{ios}");
    assert!((ms as f64) < 1e3 * 64.0 * summary["duration_s"].as_f64().unwrap(), "{ms} ms");
    assert!(figure(&summary, "drives_flushes") >= 4, "each was synced: {}", summary["program"]);
    let text = home.run(["show".as_ref(), home.path("out").as_os_str()]).expect(0).stdout;
    assert!(text.contains("by process: dd read ") && text.contains("mean latency"), "{text}");
    assert_nothing_left(&home);
}

#[test]
fn processor_time_is_the_servers_or_the_runs_and_no_others() {
    let name = "processor_time_is_the_servers_or_the_runs_and_no_others";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    // The program double-forks and orphans its burners; the server burns on its own.
    let text = format!(
        r#"
[command]
start = ["sh", "-c", '''{BURN}while [ ! -e {{dir}}/go ]; do sleep 0.05; done; burn 1.0; sleep 60''']
run = ["sh", "-c", '''{BURN}touch {{dir}}/go; (burn 1.5 &); (setsid sh -c '{}' &); sleep 7''']
"#,
        BURN.replace('\'', "\"") + "burn 1.5"
    );
    let summary = outcome(of_profile(&home, "1m", &text, &["--user", USER])).expect(0).json();
    let of = |name: &str| figure(&summary, name) as f64 / 1e9;
    let (all, server, run) = (of("cpu_ns"), of("server_cpu_ns"), of("run_cpu_ns"));
    assert!((0.95..1.35).contains(&server), "server {server}");
    assert!((2.9..3.6).contains(&run), "run {run}");
    assert!((all - server - run).abs() < 0.2, "{all} of {server} and {run}");
    let others = summary["total"]["cpu"]["others_cores"].as_f64();
    let s = summary["duration_s"].as_f64().unwrap();
    if let Some(others) = others {
        // Other tests run concurrently, but must account for less than the daemons alone would.
        assert!(others * s < 30.0, "{others} cores of others");
    }
    nothing_runs(&home);
}

#[test]
fn probes_answer_every_so_often_and_are_ended_when_they_do_not() {
    let name = "probes_answer_every_so_often_and_are_ended_when_they_do_not";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    // The program reports half of what it wrote.
    let text = r#"
[command]
run = ["sh", "-c", '''
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    dd if=/dev/zero of={dir}/f bs=1M count=4 conv=notrunc oflag=direct 2>/dev/null
    echo $((i * 2097152)) >{dir}/n; mv {dir}/n {dir}/count; sleep 0.45
done''']
[command.probes.said]
run = ["cat", "{dir}/count"]
every = "1s"
kind = "application-bytes"
[command.probes.level]
run = ["sh", "-c", "echo level = 7.5; echo nothing"]
line = 'level = ([0-9.]+)'
every = "1s"
unit = "m"
[command.probes.hangs]
run = ["sleep", "77"]
every = "1s"
timeout = "500ms"
[stack]
filesystem = "ext4"
"#;
    let sets = ON_EXT4.map(|set| format!("--set={set}"));
    let more: Vec<&str> = ["--user", USER].into_iter().chain(sets.iter().map(String::as_str)).collect();
    let run = outcome(of_profile(&home, "1m", text, &more)).expect(0);
    let summary = run.json();
    let program = &summary["program"];
    let level = &program["metrics"]["level"];
    assert_eq!((level["mean"].as_f64(), level["unit"].as_str()), (Some(7.5), Some("m")), "{program}");
    assert!(level["count"].as_u64() >= Some(4), "{program}");
    assert!(program["metrics"]["hangs"].is_null(), "{program}");
    assert_eq!(
        run.stderr.matches("command.probes.hangs has no answer: it took too long").count(),
        1,
        "{run:?}"
    );
    let per_s = program["metrics"]["said"]["mean"].as_f64().unwrap();
    assert!((2e6..6e6).contains(&per_s), "{per_s} bytes a second");
    let bytes = |key: &str| figure(&summary, key) as f64;
    let wa = bytes("application_drives_bytes") / bytes("application_bytes");
    assert!((1.4..2.7).contains(&wa), "it wrote twice what it says: {wa}");
    assert_eq!(process_with("sleep 77"), None);
    assert_nothing_left(&home);
}

/// A program's windows with their flags and figures; `start` is its server, `run` its client.
fn windows_of(home: &Home, start: &str, run: &str) -> Vec<Value> {
    let text = format!(
        "[run]\nwindow = \"500ms\"\n[command]\nstart = [\"sh\", \"-c\", \"{start}\"]\nrun = [\"sh\", \"-c\", \"{run}\"]\n"
    );
    let _ = fs::remove_dir_all(home.path("out"));
    outcome(of_profile(home, "4s", &text, &["--user", USER])).expect(0);
    nothing_runs(home);
    json_lines(&home.path("out/windows.jsonl"))
}

fn has_flag(window: &Value, text: &str) -> bool {
    window["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag["text"] == text))
}

#[test]
fn a_client_that_burns_a_core_and_full_processors_are_flagged_and_idle_ones_are_not() {
    let name = "a_client_that_burns_a_core_and_full_processors_are_flagged_and_idle_ones_are_not";
    let Some(_loops) = Loops::alone(name) else { return };
    let home = Home::new();
    let (idle, burns) = ("exec sleep 60", "while :; do :; done");
    // Other programs on the host may take the core for a while.
    let flagged = |start: &str, run: &str, flag: &str| {
        (0..5).any(|_| windows_of(&home, start, run).iter().any(|window| has_flag(window, flag)))
    };
    assert!(flagged(idle, burns, "client-bound"), "a client of one thread, beside an idle server");
    let text = home.run(["show".as_ref(), home.path("out").as_os_str()]).expect(0).stdout;
    assert!(text.contains("client-bound"), "{text}");
    let all = "for i in $(seq {cpus}); do (while :; do :; done) & done; wait";
    assert!(flagged(idle, all, "cpu-bound"), "a client on every processor");

    // The other way round: the server burns, and the client is not bound.
    let windows = windows_of(&home, burns, idle);
    let burnt = |window: &Value| {
        window["program"]["server_cpu_ns"].as_f64().unwrap() / window["duration_ns"].as_f64().unwrap()
    };
    assert!(windows.iter().any(|window| burnt(window) > 0.5), "the server burnt nothing");
    assert!(!windows.iter().any(|window| has_flag(window, "client-bound")), "{windows:?}");
    let windows = windows_of(&home, idle, idle);
    for flag in ["client-bound", "cpu-bound"] {
        assert!(!windows.iter().any(|window| has_flag(window, flag)), "{flag}: {windows:?}");
    }
}

#[test]
fn figures_of_two_programs_are_compared() {
    let Some(_loops) = Loops::take("figures_of_two_programs_are_compared", 1) else { return };
    let home = Home::new();
    let record = |out: &str, tps: u32| {
        let script = format!("for i in $(seq 60); do echo tps $(({tps} + i % 3)); sleep 0.1; done");
        let text = format!(
            "[run]\nwindow = \"200ms\"\n[command]\nrun = [\"sh\", \"-c\", \"{script}\"]\n\
             [command.metrics]\ntps = {{ line = 'tps ([0-9]+)', unit = \"txn/s\" }}\n"
        );
        outcome(of_profile(&home, "20s", &text, &["--user", USER])).expect(0);
        fs::rename(home.path("out"), home.path(out)).unwrap();
        home.path(out)
    };
    let [a, b, same] = [("a", 1000), ("b", 1300), ("same", 1000)].map(|(out, tps)| record(out, tps));
    let compared = |other| {
        let mut command = home.command(["compare".as_ref(), "--json".as_ref(), a.as_os_str()]);
        outcome({
            command.arg(other);
            command
        })
        .expect(0)
        .json()
    };
    let row = |json: &Value| {
        let rows = json["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["figure"] == "program.metrics.tps.mean");
        row.unwrap_or_else(|| panic!("{json}"))["cells"][1].clone()
    };
    let (with_b, with_same) = (compared(&b), compared(&same));
    let cell = row(&with_b);
    assert!((cell["change"].as_f64().unwrap() - 0.3).abs() < 0.01, "{cell}");
    // With concurrent tests the processors may be full, and then nothing is judged.
    let is_judged = |cell: &Value| cell["why"] != "flagged";
    assert!(!is_judged(&cell) || cell["verdict"] == "higher", "{cell}");
    let cell = row(&with_same);
    assert!(!is_judged(&cell) || cell["verdict"] == "no_clear_change", "{cell}");
    let rows = with_b["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["figure"] != "total.mb_per_s"), "classes did nothing");
    let differ: Vec<_> =
        with_b["differences"].as_array().unwrap().iter().map(|of| of["what"].clone()).collect();
    assert_eq!(differ, ["command.run"], "{with_b}");
    let text = home.run(["compare".as_ref(), a.as_os_str(), b.as_os_str()]).expect(0).stdout;
    assert!(text.contains("tps, txn/s") && (text.contains("+30") || text.contains("flagged")), "{text}");
    assert!(
        text.lines().filter(|line| !line.contains("for i in")).all(|line| line.chars().count() <= 80),
        "{text}"
    );
    nothing_runs(&home);
}

/// `PostgreSQL` with a data set for its clients, in memory and out of memory.
#[test]
fn table7_runs_postgresql_in_memory_and_out_of_it() {
    let name = "table7_runs_postgresql_in_memory_and_out_of_it";
    if !is_soak() {
        return skip(name, LEFT_TO_SOAK);
    }
    if !has("pgbench") {
        return skip(name, "needs pgbench");
    }
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let words = "reproduce table7 --for 5s --warmup 1s --repeat 1 --json --set command.warehouses=4 \
                 --set command.clients=4 --user";
    let [files, out] = ["files", "rep"].map(|path| home.path(path));
    let words: Vec<_> = words.split(' ').filter(|word| !word.is_empty()).chain([USER, "--files"]).collect();
    let mut reproduce = home.command(words);
    reproduce.arg(&files).arg("--out").arg(&out);
    let shown = outcome(reproduce).expect(0).json();
    let row = |label: &str| {
        shown["rows"].as_array().unwrap().iter().find(|row| row["label"] == label).cloned().unwrap()
    };
    for label in ["PG-50", "PG-16"] {
        let txns = row(label)["here"]["ktxn_per_s"]["median"].as_f64();
        assert!(txns > Some(0.0), "{label}: {shown:#}");
    }
    let read = |label: &str| row(label)["here"]["drives_read_mb_per_s"]["median"].as_f64().unwrap();
    assert!(read("PG-16") > read("PG-50"), "less memory, more reads: {shown:#}");
    nothing_runs(&home);
}

#[test]
fn a_program_may_have_as_many_files_open_as_its_caller_says() {
    let name = "a_program_may_have_as_many_files_open_as_its_caller_says";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let inner = on_files(&home, "10s", &["--user", USER], "ulimit -Sn; ulimit -Hn");
    let mut outer = Command::new("sh");
    outer
        .args(["-c", "ulimit -Sn 777; ulimit -Hn 4096; exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    outer.env_clear().envs(home.environment());
    outcome(outer).expect(0);
    assert_eq!(log(&home), "[run]\n777\n4096\n");
}

#[test]
fn a_server_that_does_not_end_is_ended_in_its_time_or_at_a_second_signal() {
    let name = "a_server_that_does_not_end_is_ended_in_its_time_or_at_a_second_signal";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let deaf = "start = [\"sh\", \"-c\", \"trap '' INT TERM; while :; do sleep 1; done\"]\n\
                stop = [\"sleep\", \"88\"]\n";
    let home = Home::new();
    let text = format!("[command]\nstop_within = \"1s\"\n{deaf}run = [\"true\"]\n");
    let began = Instant::now();
    let failed = outcome(of_profile(&home, "20s", &text, &["--user", USER])).expect(1);
    assert!(failed.stderr.contains("command.stop has not ended"), "{failed:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(process_with("sleep 88"), None);
    nothing_runs(&home);

    let home = Home::new();
    let text = format!("[command]\n{deaf}run = [\"sleep\", \"89\"]\n");
    let running = Running::start(&mut of_profile(&home, "2m", &text, &["--user", USER]));
    wait_for("the program", || process_with("sleep 89"));
    let windows = home.path("out/windows.jsonl");
    wait_for("a window", || (!json_lines(&windows).is_empty()).then_some(()));
    running.signal(Signal::INT);
    wait_for("the command that stops it", || process_with("sleep 88"));
    let began = Instant::now();
    running.signal(Signal::INT);
    let ended: Outcome = running.outcome();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}: {ended:?}", began.elapsed());
    assert_eq!(process_with("sleep 88"), None);
    program(&home, &["cleanup"]).expect(0);
    nothing_runs(&home);
}
