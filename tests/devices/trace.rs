//! Drives traced while in use: the trace must match the kernel's counts.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::devices::{Loop, Loops, has, run};
use crate::common::recorded::{Home, LOAD, PROGRAM, Ran};
use crate::common::{LEFT_TO_SOAK, is_soak, skip};

/// Mounts tracefs if it isn't mounted, in a mount namespace of its own.
const WITH_TRACEFS: &str =
    "[ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing; exec \"$@\"";

/// The kernel's counts of completed reads, writes and discards with their sectors, and of flushes.
fn counted(name: &str) -> [u64; 7] {
    let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let fields: Vec<u64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
    [0, 2, 4, 6, 11, 13, 15].map(|field| fields[field])
}

/// The program with tracefs mounted.
pub fn with_tracefs(home: &Home, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    home.inhabit(command.args(["--mount", "sh", "-c", WITH_TRACEFS, "sh", PROGRAM]).args(words));
    command
}

/// The requirements of tracing.
pub const NEEDS: &str = "needs tracefs and perf events";

/// Whether traces can be made here, according to the error output.
pub fn can_be_made(said: &str) -> bool {
    !said.contains("tracepoints can't be seen") && !said.contains("does not allow tracing")
}

/// Traces reads, writes, flushes and a discard; returns the kernel's counts before and after. None if traces
/// can't be made here.
fn traced(home: &Home, device: &Loop) -> Option<([u64; 7], [u64; 7], String)> {
    let mut command = with_tracefs(home, &["trace", "--device", &device.path, "--out", "x.blktrace.0"]);
    let mut tracer = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(tracer.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = said.next().unwrap_or_default();
    if !can_be_made(&first) {
        tracer.wait().unwrap();
        return None;
    }
    assert!(first.contains("tracing ") && first.contains("Ctrl-C"), "{first}");
    let before = counted(device.name());
    let [from, to] = ["if", "of"].map(|key| format!("{key}={}", device.path));
    run("dd", &["if=/dev/zero", &to, "bs=4k", "count=500", "oflag=direct", "conv=fsync"]);
    run("dd", &[&from, "of=/dev/null", "bs=64k", "count=100", "iflag=direct"]);
    run("dd", &["if=/dev/zero", &to, "bs=1M", "count=32", "conv=fsync"]);
    run("blkdiscard", &["--offset", "1MiB", "--length", "1MiB", &device.path]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let after = counted(device.name());
    kill_process(Pid::from_child(&tracer), Signal::INT).unwrap();
    let end = said.collect::<Vec<_>>().join("\n");
    assert!(tracer.wait().unwrap().success(), "{end}");
    Some((before, after, end))
}

#[test]
fn a_trace_has_what_the_kernel_counts() {
    let test = "a_trace_has_what_the_kernel_counts";
    let Some(loops) = Loops::alone(test) else { return };
    let home = Home::new();
    let device = loops.blank(64);
    let _busy = Busy::start();
    let mut said = String::new();
    for _ in 0..ATTEMPTS {
        let Some((before, after, end)) = traced(&home, &device) else { return skip(test, NEEDS) };
        let whole = is_whole(&end);
        compare(&home, before, after, whole);
        if whole {
            return;
        }
        fs::remove_file(home.path("x.blktrace.0")).unwrap();
        said += &end;
    }
    panic!("each trace lacks events: {said}");
}

/// Whether nothing was lost. Only completions may be: the kernel holds them back while process 1 runs.
pub fn is_whole(said: &str) -> bool {
    let whole = said.contains(" 0 events lost");
    let of_kernel =
        said.contains("of them kept back by the kernel") && said.contains("lost, completions alone");
    assert!(whole || of_kernel, "{said}");
    whole
}

/// How many traces may lack events, one after another.
pub const ATTEMPTS: usize = 10;

/// Keeps all processors busy at idle priority: some kernels hold back events of interrupts that arrive on an
/// idle processor.
pub struct Busy(Vec<Child>);

/// Ends a process at last.
struct Killed<'a>(&'a mut Child);

impl Drop for Killed<'_> {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Busy {
    pub fn start() -> Self {
        let processors = std::thread::available_parallelism().unwrap().get();
        let spin =
            || Command::new("chrt").args(["-i", "0", "sh", "-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..processors).map(|_| spin()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Issued I/O is known and judged, whether or not completions are missing.
fn compare(home: &Home, before: [u64; 7], after: [u64; 7], whole: bool) {
    let scores = home.run(&["contract", "x.blktrace.0", "--json", "--logical", "64MiB"]).json();
    let traced = |pointer: &str| scores.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0) as u64;
    let of = |op: &str| {
        let pointer = |key: &str| format!("/request_scale/by_operation/{op}/bytes/{key}");
        [traced(&pointer("count")), traced(&pointer("sum")) / 512]
    };
    let counted: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    let found = [of("read"), of("write"), of("discard")].concat();
    for at in [0, 1, 3, 4, 5] {
        assert_eq!(found[at], counted[at], "{found:?} of {counted:?}: {scores:#}");
    }
    // The kernel counts a requested flush as an empty write.
    assert!((found[2]..=found[2] + counted[6]).contains(&counted[2]), "{found:?} of {counted:?}: {scores:#}");
    assert_eq!(traced("/request_scale/flushes"), counted[6], "{scores:#}");
    assert!(found[2] >= 500 && found[4] == 1 && found[5] == 2048, "{scores:#}");
    assert!(!scores["rules"].to_string().contains("events lost"), "{scores:#}");
    assert_eq!(scores["lost"], scores["lost_completions"], "{scores:#}");
    let depth = &scores["request_scale"]["mean_depth"];
    assert_eq!((traced("/lost") == 0, depth.is_number()), (whole, whole), "{scores:#}");
    if whole {
        assert_eq!((traced("/open"), traced("/unpaired")), (0, 0), "{scores:#}");
    }
}

/// Nobody: neither root nor any caller.
const USER: &str = "65534";

fn scored(home: &Home, arguments: &[&str]) -> Value {
    home.run(&[&["contract"][..], arguments, &["--json"]].concat()).json()
}

#[test]
fn a_command_is_traced_with_its_drives_and_ended_with_all_that_it_started() {
    let test = "a_command_is_traced_with_its_drives_and_ended_with_all_that_it_started";
    let Some(loops) = Loops::alone(test) else { return };
    let (home, _busy) = (Home::new(), Busy::start());
    let [a, b] = [loops.blank(64), loops.blank(64)];
    let trace = |out: &str, user: &str, script: &str| {
        let devices = ["trace", "--device", &a.path, "--device", &b.path, "--out", out, "--user", user];
        let words = [&devices[..], &["--", "sh", "-c", script]].concat();
        Ran::of(&with_tracefs(&home, &words).output().unwrap())
    };
    let script = format!(
        "dd if=/dev/zero of={} bs=4k count=300 oflag=direct; dd if={} of=/dev/null bs=64k count=50 iflag=direct; \
         id -u; setsid sleep 987654 & exit 3",
        a.path, b.path
    );
    let ran = trace("x", "root", &script);
    if !can_be_made(&ran.err) {
        return skip(test, NEEDS);
    }
    // The trace is kept, whatever the command's exit status.
    ran.ended(1, &["sh ended with status 3"]);
    is_whole(&ran.err);
    assert!(ran.out.lines().any(|line| line == "0") && ran.out.contains("records out"), "{}", ran.out);
    assert!(!is_running("987654"), "it goes on");
    let numbers = [&a, &b].map(|of| fs::read_to_string(format!("/sys/block/{}/dev", of.name())).unwrap());
    let of = |drive: &str, op: &str| {
        let scores = scored(&home, &["x", "--drive", drive.trim()]);
        scores.pointer(&format!("/request_scale/by_operation/{op}/bytes/count")).map(Value::as_u64)
    };
    let ios = (of(&numbers[0], "write"), of(&numbers[1], "read"));
    assert_eq!(ios, (Some(Some(300)), Some(Some(50))), "{}", ran.err);

    // The user can't write to the device, and is not root.
    let ran =
        trace("y", USER, &format!("id -u; : > {}; dd if={} of=/dev/null bs=4k count=1", a.path, b.path));
    assert!(ran.out.lines().any(|line| line == USER), "{}", ran.out);
    assert!(ran.out.contains("ermission denied"), "{}", ran.out);
    assert!(!home.path("y").exists(), "{}", ran.err);
    let status = home.run(&["status"]);
    assert_eq!((status.status, status.out.as_str()), (Some(0), "no stacks, and nothing left behind\n"));
}

/// Whether a process has this among its arguments.
fn is_running(argument: &str) -> bool {
    let of = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let has = |line: Vec<u8>| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes());
    fs::read_dir("/proc").unwrap().any(|entry| has(of(entry.unwrap())))
}

/// A trace that is killed at any moment, with I/O under way, leaves no tracing enabled.
#[test]
fn a_killed_trace_leaves_nothing_behind() {
    let test = "a_killed_trace_leaves_nothing_behind";
    let Some(loops) = Loops::alone(test) else { return };
    let (home, device) = (Home::new(), loops.blank(16));
    let to = format!("of={}", device.path);
    let writes = format!("while dd if=/dev/zero {to} bs=4k count=200 oflag=direct 2>/dev/null; do :; done");
    let mut writer = Command::new("sh").args(["-c", &writes]).spawn().unwrap();
    let _writer = Killed(&mut writer);
    // In the soak at twenty moments, which differ each time.
    let seed = u64::from(std::process::id());
    let kills = if is_soak() { 20 } else { 3 };
    for pause_ms in (0..kills).map(|kill| (kill * 17 + seed * kill) % 60) {
        let words = ["trace", "--device", &device.path, "--out", "x"];
        let mut tracer = with_tracefs(&home, &words).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(tracer.stderr.take().unwrap()).lines().map(Result::unwrap);
        let can = can_be_made(&said.next().unwrap_or_default());
        if !can {
            tracer.wait().unwrap();
            return skip(test, NEEDS);
        }
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        tracer.kill().unwrap();
        tracer.wait().unwrap();
        let of_events = "cat /sys/kernel/tracing/events/block/*/enable; ls /sys/kernel/tracing/instances";
        let mut left = Command::new("unshare");
        left.args(["--mount", "sh", "-c", WITH_TRACEFS, "sh", "sh", "-c", of_events]);
        let left = Ran::of(&left.output().unwrap()).out;
        assert!(left.lines().all(|line| line == "0"), "{left}");
        assert!(!home.path("x").exists());
    }
}

#[test]
fn a_recording_has_the_trace_of_its_targets_drives() {
    let test = "a_recording_has_the_trace_of_its_targets_drives";
    let Some(loops) = Loops::alone(test) else { return };
    let (home, device, _busy) = (Home::new(), loops.blank(64), Busy::start());
    let text = format!("[target]\ndevices = [\"{}\"]\n{LOAD}", device.path);
    let profile = home.profile("p", &text);
    let words = ["record", &profile, "--for", "2s", "--trace", "--destroy", &device.path, "--out", "rec"];
    let ran = Ran::of(&with_tracefs(&home, &[&words[..], &["--json"]].concat()).output().unwrap());
    if !can_be_made(&ran.err) {
        return skip(test, NEEDS);
    }
    let summary = ran.json();
    let whole = is_whole(&ran.err);
    let scores = scored(&home, &["rec"]);
    assert_eq!((&scores["space_bytes"], scores["lost"] == 0), (&(64 << 20).into(), whole), "{scores:#}");
    let count =
        |op: &str| scores["request_scale"]["by_operation"][op]["bytes"]["count"].as_u64().unwrap_or(0);
    let of_class = |class: &str| summary["classes"][class]["ios"].as_u64().unwrap();
    // I/O in flight at either end, and the commits' flushes, are counted differently.
    let (reads, writes) = (of_class("scan") + of_class("point"), of_class("wal") + of_class("background"));
    let is_near = |traced: u64, own: u64| traced.abs_diff(own) <= 64 + own / 20;
    assert!(is_near(count("read"), reads) && is_near(count("write"), writes), "{reads} {writes}: {scores:#}");
    assert!(summary["flags"].as_array().unwrap().iter().any(|flag| flag == "traced"), "{summary:#}");
    let kept: Value = serde_json::from_slice(&fs::read(home.path("rec/contract.json")).unwrap()).unwrap();
    assert_eq!((kept["lost"] == 0, &kept["drives"][0]["locality"]), (whole, &scores["locality"]), "{kept:#}");
    assert_eq!(kept["drives"][0]["lifetime"], scores["lifetime"], "{kept:#}");
    let shown = home.run(&["show", "rec"]);
    shown.ended(0, &[]);
    for said in ["Rules of drives", "grouping by death time", "misses of a cache"] {
        assert!(shown.out.contains(said), "{said}: {}", shown.out);
    }
    let facts: Value = serde_json::from_slice(&fs::read(home.path("rec/trace.json")).unwrap()).unwrap();
    assert_eq!((facts["lost"] == 0, &facts["drives"][0]["bytes"]), (whole, &(64 << 20).into()), "{facts}");
}

/// `RocksDB` on a loop device of its own for each file system of this kernel, traced.
#[test]
fn a_reproduction_traces_each_run() {
    let test = "a_reproduction_traces_each_run";
    let Some(_loops) = Loops::alone(test) else { return };
    let (home, _busy) = (Home::new(), Busy::start());
    let words = "reproduce contract-figure5 --for 2s --warmup 0s --repeat 1 --out rep --json --set kv.pairs=50000 \
                 --set target.files.size=400MiB --set background.rate=20MB/s --files";
    let files = home.path("files");
    let words: Vec<_> = words.split_whitespace().chain(files.to_str()).collect();
    let ran = Ran::of(&with_tracefs(&home, &words).output().unwrap());
    if !can_be_made(&ran.err) {
        return skip(test, NEEDS);
    }
    let shown = ran.json();
    let row =
        |label: &str| shown["rows"].as_array().unwrap().iter().find(|row| row["label"] == label).unwrap();
    let ext4 = row("update ext4");
    assert_eq!(ext4["runs"], 1, "{ext4:#}: {}", ran.err);
    let dirs = fs::read_dir(home.path("rep")).unwrap().map(|entry| entry.unwrap().path());
    let dir = dirs.into_iter().find(|dir| dir.to_string_lossy().contains("update-ext4")).unwrap();
    let kept: Value = serde_json::from_slice(&fs::read(dir.join("contract.json")).unwrap()).unwrap();
    let [drive] = &kept["drives"].as_array().unwrap()[..] else { panic!("{kept:#}") };
    let number = |pointer: &str| drive.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    assert!(number("/request_scale/by_operation/write/bytes/count") > 30.0, "{kept:#}");
    assert!((number("/space_bytes") - f64::from(400 << 20)).abs() < 1.0, "{kept:#}");
    // The files hold about the loaded data, in at most a few copies.
    assert!((4e6..100e6).contains(&number("/alignment/0/file_bytes")), "{kept:#}");
    let here = &ext4["here"]["discard_percent"]["median"];
    let ratio = 100.0 * number("/request_scale/discard_ratio");
    let is_shown = here.as_f64().is_some_and(|here| (here - ratio).abs() < 1e-9);
    assert!(is_shown && kept["lost"] == kept["lost_completions"], "{ext4:#}: {kept:#}");
    let claims = shown["claims"].as_array().unwrap();
    let ruled = |ruling: &str| claims.iter().filter(|claim| claim["ruling"] == ruling).count();
    assert_eq!((ruled("not_judged"), ruled("unclear"), claims.len()), (2, 2, 4), "{claims:#?}");
    let status = home.run(&["status"]);
    assert_eq!((status.status, status.out.as_str()), (Some(0), "no stacks, and nothing left behind\n"));
}

/// A profile of files with ext4 over a loop device, for a command.
fn on_ext4(home: &Home) -> String {
    let dir = home.path("files").display().to_string();
    let files = format!("[target]\nfiles = {{ dir = \"{dir}\", count = 1, size = \"96MiB\" }}\n");
    home.profile("ext4", &format!("{files}[stack]\nfilesystem = \"ext4\"\n"))
}

/// Writes left in the page cache are in the trace, and previously prepared files are read from the drive.
#[test]
fn a_command_is_traced_on_a_stack_that_is_built_for_it() {
    let test = "a_command_is_traced_on_a_stack_that_is_built_for_it";
    let Some(_loops) = Loops::alone(test) else { return };
    let home = Home::new();
    let profile = on_ext4(&home);
    let words = ["trace", "--on", &profile, "--out", "rec", "--user", USER];
    let prepare = ["--prepare", "head -c 8M /dev/urandom > {dir}/a; id -u > user"];
    let command = ["--", "sh", "-c", "cat user; cp a b; stat -c %s b"];
    let words = [&words[..], &prepare, &command].concat();
    let ran = Ran::of(&with_tracefs(&home, &words).output().unwrap());
    if !can_be_made(&ran.err) {
        return skip(test, NEEDS);
    }
    ran.ended(0, &["traced "]);
    let log = fs::read_to_string(home.path("rec/program.log")).unwrap();
    assert!(log.contains(USER) && log.contains(&(8 << 20).to_string()), "{log}");
    let moved = |more: &[&str], op: &str| {
        let scores = scored(&home, &[&["rec"], more].concat());
        let sum = scores.pointer(&format!("/request_scale/by_operation/{op}/bytes/sum"));
        sum.and_then(Value::as_f64).unwrap_or(0.0) / f64::from(1 << 20)
    };
    // The prepared file is not written again.
    let (read, written) = (moved(&[], "read"), moved(&[], "write"));
    assert!((8.0..10.0).contains(&read) && (8.0..15.0).contains(&written), "{read} {written}: {}", ran.err);
    let kept: Value = serde_json::from_slice(&fs::read(home.path("rec/contract.json")).unwrap()).unwrap();
    let occupied =
        kept["drives"][0]["alignment"][0]["file_bytes"].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
    assert!((16.0..17.0).contains(&occupied), "two files of 8 MiB: {kept:#}");
    let late = moved(&["--phase", "write-back"], "write");
    assert!((8.0..=written).contains(&late), "{late} of {written}");
    let status = home.run(&["status"]);
    assert_eq!((status.status, status.out.as_str()), (Some(0), "no stacks, and nothing left behind\n"));
}

#[test]
fn a_command_on_a_profile_is_refused_as_a_run_is() {
    let test = "a_command_on_a_profile_is_refused_as_a_run_is";
    let Some(loops) = Loops::take(test, 1) else { return };
    let (home, device) = (Home::new(), loops.blank(64));
    let files = on_ext4(&home);
    let bare = home.profile("bare", &format!("[target]\ndevices = [\"{}\"]\n", device.path));
    let foreign = home.profile(
        "foreign",
        &format!("[target]\ndevices = [\"{}\"]\n[stack]\nfilesystem = \"ext4\"\n", device.path),
    );
    run("mkfs.ext4", &["-q", &device.path]);
    let on = |profile: &str, more: &[&str]| {
        let words = [&["trace", "--on", profile, "--out", "rec"], more, &["--", "true"]].concat();
        home.run(&words)
    };
    // Without a user, without a file system, with unknown words, over others' data.
    on(&files, &[]).ended(2, &["a program does not run as root unless that is asked for", "--user NAME"]);
    on(&bare, &["--user", USER]).ended(2, &["a program needs a file system"]);
    on(&files, &["--user", USER, "--prepare", "{x}"]).ended(2, &["the line of --prepare"]);
    let ran = Ran::of(
        &with_tracefs(&home, &["trace", "--on", &foreign, "--out", "rec", "--user", USER, "--", "true"])
            .output()
            .unwrap(),
    );
    if !can_be_made(&ran.err) {
        return skip(test, NEEDS);
    }
    ran.ended(3, &[]);
    assert!(!home.path("rec").exists());
}

/// The report of an experiment whose rows run a traced program, each on a small file system of its own; none
/// if tracing isn't possible here.
fn reproduced(home: &Home, experiment: &str) -> Option<Value> {
    // Without a warm-up a run is flagged, because it settles in its first windows.
    let (repeat, time, warmup) = if is_soak() { ("3", "6s", "3s") } else { ("1", "3s", "0s") };
    let words = format!(
        "reproduce {experiment} --for {time} --warmup {warmup} --repeat {repeat} --out rep --json --user {USER} \
         --set target.files.size=400MiB --files {}",
        home.path("files").display()
    );
    let words: Vec<_> = words.split_whitespace().collect();
    let ran = Ran::of(&with_tracefs(home, &words).output().unwrap());
    can_be_made(&ran.err).then(|| ran.json())
}

/// A row's figure.
fn figure_of(shown: &Value, label: &str, figure: &str) -> Option<f64> {
    let row = shown["rows"].as_array().unwrap().iter().find(|row| row["label"] == label).unwrap();
    row["here"][figure]["median"].as_f64()
}

/// `SQLite` with two journal modes, run as a program in steps, each on a file system of its own, and traced.
#[test]
fn claims_about_sqlite_are_judged_by_traces() {
    let test = "claims_about_sqlite_are_judged_by_traces";
    if !has("sqlite3") {
        return skip(test, "needs sqlite3");
    }
    let Some(_loops) = Loops::alone(test) else { return };
    let home = Home::new();
    let Some(shown) = reproduced(&home, "contract-sqlite") else { return skip(test, NEEDS) };
    let [rb, wal] =
        ["sqlite-rb ext4", "sqlite-wal ext4"].map(|label| figure_of(&shown, label, "discard_percent"));
    assert!(rb.unwrap() > 4.0 * wal.unwrap(), "{rb:?} {wal:?}: {shown:#}");
    let claims = shown["claims"].as_array().unwrap();
    let of =
        |words: &str| claims.iter().find(|claim| claim["words"].as_str().unwrap().contains(words)).unwrap();
    let (reused, ruling) = (of("reuses its write-ahead log"), if is_soak() { "holds" } else { "unclear" });
    assert_eq!(reused["ruling"], ruling, "{reused:#}");
    let status = home.run(&["status"]);
    assert_eq!((status.status, status.out.as_str()), (Some(0), "no stacks, and nothing left behind\n"));
}

/// `LevelDB`, whose files are discarded as it compacts, and a mail server's files, each with its flush.
#[test]
fn claims_about_other_programs_are_judged_by_traces() {
    let test = "claims_about_other_programs_are_judged_by_traces";
    if !is_soak() {
        return skip(test, LEFT_TO_SOAK);
    }
    let Some(_loops) = Loops::alone(test) else { return };
    let has_leveldb =
        Command::new("/usr/bin/python3").args(["-c", "import plyvel"]).status().unwrap().success();
    for load in ["leveldb", "varmail"] {
        if load == "leveldb" && !has_leveldb {
            skip(test, "needs python3-plyvel");
            continue;
        }
        let home = Home::new();
        let Some(shown) = reproduced(&home, &format!("contract-{load}")) else { return skip(test, NEEDS) };
        for on in ["ext4", "xfs"] {
            let figure = |name: &str| figure_of(&shown, &format!("{load} {on}"), name);
            assert!(figure("discard_percent").unwrap() > 1.0, "{load} {on}: {shown:#}");
            let written_kib = figure("write_kib").filter(|_| load == "varmail");
            assert!(written_kib.is_none_or(|kib| kib > 0.0 && kib <= 64.0), "{on}: {shown:#}");
        }
    }
}
