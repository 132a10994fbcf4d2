//! `stacktune run`: what a program inherits, as which user it runs, what it may use, and that nothing of it
//! outlives the run. The programs are short shell scripts.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{fs, iter};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::devices::Loops;
use crate::common::is_soak;
use crate::common::program::{Home, Outcome, Running, json_lines, wait_for};
use crate::stack_run::{ON_EXT4, assert_nothing_left, program};

/// Nobody: neither root nor any caller.
pub const USER: &str = "65534";

/// `run` of a script for that long in a folder of files.
pub fn on_files(home: &Home, time: &str, more: &[&str], script: &str) -> Command {
    let mut command = home.command(["run", "demo", "--for", time, "--json", "--out"]);
    command.arg(home.path("out")).env("XDG_STATE_HOME", home.path("state")).args(home.sets(&[])).args(more);
    command.args(["--", "sh", "-c", script]);
    command
}

/// The same on ext4 over a loop device over a file.
pub fn on_ext4(home: &Home, time: &str, more: &[&str], script: &str) -> Command {
    let sets = ON_EXT4.map(|set| format!("--set={set}"));
    let more: Vec<&str> = more.iter().copied().chain(sets.iter().map(String::as_str)).collect();
    on_files(home, time, &more, script)
}

/// `run` of a profile's own program.
pub fn of_profile(home: &Home, time: &str, command: &str, more: &[&str]) -> Command {
    let path = home.path("p.toml");
    let target = home.target().display().to_string();
    fs::write(&path, format!("[target]\nfiles = {{ dir = \"{target}\" }}\n{command}\n")).unwrap();
    let mut run = home.command(["run", path.to_str().unwrap(), "--for", time, "--json", "--out"]);
    run.arg(home.path("out")).env("XDG_STATE_HOME", home.path("state")).args(more);
    run
}

pub fn outcome(mut command: Command) -> Outcome {
    Outcome::of(&command.output().unwrap())
}

pub fn log(home: &Home) -> String {
    fs::read_to_string(home.path("out/program.log")).unwrap()
}

pub fn figure(summary: &Value, name: &str) -> u64 {
    summary["program"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {}", summary["program"]))
}

/// No journal or cgroup is left; of the files, the program's folder stays.
#[track_caller]
pub fn nothing_runs(home: &Home) {
    assert_eq!(program(home, &["status"]).expect(0).stdout, "no stacks, and nothing left behind\n");
    let journal = home.path("state/stacktune/journal");
    assert_eq!(fs::read_dir(journal).map_or(0, Iterator::count), 0);
}

/// A process whose command line is exactly these words, which the tests' own bystander's is not.
pub fn process_with(words: &str) -> Option<u32> {
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).eq(words.split(' ').chain([""]).map(str::as_bytes))
    };
    pids.into_iter().find(has)
}

/// A program of the tests' own with the same name and arguments as one that will be ended.
struct Bystander(Child, PathBuf);

impl Bystander {
    fn start(words: &str) -> Self {
        let (name, argument) = words.split_once(' ').unwrap();
        let dir = tempfile::tempdir().unwrap().keep();
        // Under the same name, but distinguished by its folder.
        fs::copy(format!("/bin/{name}"), dir.join(name)).unwrap();
        Self(Command::new(dir.join(name)).arg(argument).spawn().unwrap(), dir)
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "the bystander was ended");
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        fs::remove_dir_all(&self.1).unwrap();
    }
}

#[test]
fn a_program_has_nothing_of_ours_but_what_is_said() {
    let Some(_loops) = Loops::take("a_program_has_nothing_of_ours_but_what_is_said", 1) else { return };
    let home = Home::new();
    let script = "echo user=$(id -u):$(id -g):$(id -G); pwd; env | sort; echo mask=$(umask); \
                  for fd in /proc/self/fd/*; do echo fd $(readlink $fd); done; tty; \
                  grep -E '^(NoNewPrivs|Cap(Inh|Prm|Eff|Amb)|PPid)' /proc/self/status; cat /proc/self/cgroup; \
                  ls -d /var/lib /media | sort; ls {dir}/.. >/dev/null; touch {dir}/mine; stat -c %u:%a {dir} {dir}/mine";
    let inner = on_files(&home, "10s", &["--user", USER], script);
    // Descriptors and environment variables of its caller are not passed on.
    let mut outer = Command::new("sh");
    outer
        .args(["-c", "exec 7</etc/passwd; exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    outer.env_clear().envs(home.environment()).env("SECRET", "1").env("LD_PRELOAD", "");
    let run = outcome(outer).expect(0);
    let log = log(&home);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[..2], ["[run]", "user=65534:65534:65534"], "{log}");
    let environment: Vec<_> = lines[2..].iter().take_while(|line| !line.starts_with("mask=")).collect();
    let names: Vec<_> = environment.iter().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert_eq!(names, ["HOME", "LANG", "LOGNAME", "PATH", "PWD", "USER"], "{log}");
    assert!(lines.contains(&"mask=0022") && lines.contains(&"not a tty"), "{log}");
    assert!(!log.contains("/etc/passwd") && !log.contains("journal") && !log.contains("socket:"), "{log}");
    assert!(lines.contains(&"fd /dev/null"), "{log}");
    // Tabs are shown as symbols.
    for word in
        ["NoNewPrivs:␉1", "CapPrm:␉0000000000000000", "CapEff:␉0000000000000000", "CapAmb:␉0000000000000000"]
    {
        assert!(lines.contains(&word), "{word}: {log}");
    }
    assert!(log.contains("/stacktune-"), "it is in no cgroup of its own: {log}");
    assert!(log.contains("65534:700") && log.contains("65534:644"), "{log}");
    assert!(run.json()["failure"].is_null());
    assert!(home.target().join("stacktune-program/mine").exists());
    nothing_runs(&home);
}

#[test]
fn root_is_named_by_the_command_line_or_nobody_is_it() {
    let Some(_loops) = Loops::take("root_is_named_by_the_command_line_or_nobody_is_it", 1) else { return };
    let who = |more: &[&str], environment: &[(&str, &str)]| {
        let home = Home::new();
        let mut command = on_files(&home, "5s", more, "id -u");
        command.envs(environment.iter().copied());
        let outcome = outcome(command);
        nothing_runs(&home);
        if outcome.status == Some(0) { Ok(log(&home)) } else { Err(outcome) }
    };
    let refused = who(&[], &[]).unwrap_err().expect(2);
    assert!(refused.stderr.contains("--user NAME"), "{refused:?}");
    who(&[], &[("SUDO_UID", "0"), ("SUDO_GID", "0")]).unwrap_err().expect(2);
    who(&[], &[("SUDO_UID", "x"), ("SUDO_GID", "1")]).unwrap_err().expect(2);
    who(&["--user", "no-such-user"], &[]).unwrap_err().expect(2);
    assert_eq!(who(&[], &[("SUDO_UID", "4321"), ("SUDO_GID", "4322")]).unwrap(), "[run]\n4321\n");
    assert_eq!(who(&["--user", "root"], &[]).unwrap(), "[run]\n0\n");
    for asks in ["root", "0"] {
        let home = Home::new();
        let text = format!("[command]\nuser = \"{asks}\"\nrun = [\"id\", \"-u\"]");
        let refused = outcome(of_profile(&home, "5s", &text, &[])).expect(2);
        assert!(refused.stderr.contains("--user root"), "{refused:?}");
        assert_eq!(fs::read_dir(home.target()).map_or(0, Iterator::count), 0);
        outcome(of_profile(&home, "5s", &text, &["--user", USER])).expect(0);
        assert_eq!(log(&home), "[run]\n65534\n");
    }
}

#[test]
fn a_program_on_a_stack_is_measured_and_everything_goes() {
    let Some(_loops) = Loops::take("a_program_on_a_stack_is_measured_and_everything_goes", 1) else { return };
    let home = Home::new();
    let script = "dd if=/dev/zero of={dir}/f bs=1M count=40 oflag=direct 2>&1; sync f; \
                  for i in 1 2; do dd if=f of=/dev/null bs=1M iflag=direct 2>&1; done; \
                  i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 1";
    let run = outcome(on_ext4(&home, "30s", &["--user", USER], script)).expect(0);
    let summary = run.json();
    assert!(summary["duration_s"].as_f64().unwrap() < 25.0, "it ended by itself");
    assert!(summary["flags"].as_array().unwrap().iter().any(|flag| flag == "ended early"), "{summary}");
    let (mib, of) = (1 << 20, |name: &str| figure(&summary, name));
    for level in ["top", "drives"] {
        let (read, written) = (of(&format!("{level}_read_bytes")), of(&format!("{level}_written_bytes")));
        assert!((80 * mib..84 * mib).contains(&read), "{level}: {read} read");
        assert!((40 * mib..44 * mib).contains(&written), "{level}: {written} written");
    }
    let cpu_s = of("cpu_ns") as f64 / 1e9;
    assert!((0.05..10.0).contains(&cpu_s), "{cpu_s} s");
    assert!(
        summary["classes"]["scan"]["state"] == "off" && summary["pitfalls"].as_array().unwrap().is_empty()
    );
    let shown = home.show(&home.path("out")).expect(0).stdout;
    assert!(!shown.contains("inconsistent"), "{shown}");
    let text = home.run(["show".as_ref(), home.path("out").as_os_str()]).expect(0).stdout;
    assert!(text.contains("MB/s at the top: read ") && !text.contains("not what"), "{text}");
    assert_nothing_left(&home);
}

#[test]
fn a_cap_of_memory_holds_for_the_page_cache_and_ends_what_needs_more() {
    let name = "a_cap_of_memory_holds_for_the_page_cache_and_ends_what_needs_more";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let script = "dd if=/dev/zero of=f bs=1M count=60 2>&1; cat f f >/dev/null; sleep 1.2";
    let capped = ["--user", USER, "--mem", "16MiB"];
    let summary = outcome(on_ext4(&home, "60s", &capped, script)).expect(0).json();
    assert!(figure(&summary, "cache_bytes") <= 16 << 20, "{summary}");
    assert!(figure(&summary, "memory_bytes") <= 16 << 20, "{summary}");
    assert!(figure(&summary, "top_read_bytes") >= 100 << 20, "nothing stayed cached: {summary}");
    let windows = json_lines(&home.path("out/windows.jsonl"));
    let cached = windows.iter().map(|window| window["program"]["cache_bytes"].as_u64().unwrap());
    assert!(cached.max().unwrap() <= 16 << 20);
    fs::remove_dir_all(home.path("out")).unwrap();

    let hungry = "head -c 200M /dev/zero | tail >/dev/null; sleep 20";
    let failed = outcome(on_ext4(&home, "60s", &capped, hungry)).expect(1);
    assert!(failed.stderr.contains("killed 1 of the program's processes for memory"), "{failed:?}");
    assert_eq!(figure(&failed.json(), "oom_kills"), 1);
    assert_nothing_left(&home);
}

#[test]
fn nothing_that_it_started_outlives_the_run() {
    let Some(_loops) = Loops::take("nothing_that_it_started_outlives_the_run", 1) else { return };
    let (home, words) = (Home::new(), format!("sleep 9{}", std::process::id()));
    let bystander = Bystander::start(&words);
    // One that left its parents and its session, one that ignores signals, and one started at the very end.
    let script = format!(
        "setsid sh -c '{words} & exit' & (trap '' INT TERM HUP; {words}; {words}) & \
         trap 'setsid {words} & exit 3' INT; while :; do sleep 0.1; done"
    );
    let run = outcome(on_ext4(&home, "2s", &["--user", USER], &script)).expect(0);
    assert!(run.json()["failure"].is_null(), "it was ended in time: {run:?}");
    assert_eq!(process_with(&words), None);
    assert_nothing_left(&home);
    drop(bystander);
}

#[test]
fn killed_at_any_time_cleanup_ends_it_and_nothing_else() {
    let Some(_loops) = Loops::take("killed_at_any_time_cleanup_ends_it_and_nothing_else", 1) else { return };
    let words = format!("sleep 8{}", std::process::id());
    let bystander = Bystander::start(&words);
    // Its log is beside the stack.
    let script = format!(
        "echo {{wal}} >{{wal}}/log; (setsid {words} &); (trap '' INT TERM; {words}) & {words}; {words}"
    );
    let times = if is_soak() { 20 } else { 1 };
    for phase in ["setup", "start", "run", "stop"].into_iter().flat_map(|phase| iter::repeat_n(phase, times))
    {
        let home = Home::new();
        let before = if phase == "setup" { "" } else { "setup = [\"true\"]\n" };
        let run = if phase == "run" { "" } else { "run = [\"true\"]\n" };
        let server = if phase == "stop" { "start = [\"sleep\", \"50\"]\n" } else { "" };
        let ready = if phase == "start" { "ready = [\"false\"]\n" } else { "" };
        let text = format!(
            "[command]\n{before}{server}{ready}{run}{phase} = [\"sh\", \"-c\", \"echo in {phase}; {script}\"]\n[stack]\nfilesystem = \"ext4\"\n"
        );
        let log_dir = home.path("log");
        fs::create_dir(&log_dir).unwrap();
        let mut sets = ON_EXT4.map(|set| format!("--set={set}")).to_vec();
        sets.push(format!("--set=wal.target={}", log_dir.display()));
        let more: Vec<&str> = ["--user", USER].into_iter().chain(sets.iter().map(String::as_str)).collect();
        let mut running = Running::start(&mut of_profile(&home, "1m", &text, &more));
        wait_for(phase, || process_with(&words));
        assert!(running.is_alive());
        running.signal(Signal::KILL);
        assert!(running.outcome().status.is_none());
        let status = program(&home, &["status"]).expect(0).stdout;
        assert!(status.contains("program in cgroup /sys/fs/cgroup/"), "{phase}: {status}");
        let kept = fs::read_dir(&log_dir).unwrap().next().unwrap().unwrap().path();
        assert!(status.contains(&format!("program's log in {}", kept.display())), "{status}");
        assert!(kept.join("stacktune-program/log").exists());
        program(&home, &["cleanup"]).expect(0);
        assert_eq!(process_with(&words), None, "{phase}");
        assert_eq!(fs::read_dir(&log_dir).unwrap().count(), 0, "{phase}");
        assert_nothing_left(&home);
    }
    drop(bystander);
}

#[test]
fn killed_on_files_cleanup_ends_it() {
    let Some(_loops) = Loops::take("killed_on_files_cleanup_ends_it", 1) else { return };
    let (home, words) = (Home::new(), format!("sleep 7{}", std::process::id()));
    let script = format!("echo begun; (setsid {words} &); {words}; true");
    let running = Running::start(&mut on_files(&home, "1m", &["--user", USER], &script));
    wait_for("the program", || process_with(&words));
    let windows = home.path("out/windows.jsonl");
    wait_for("a window", || (!json_lines(&windows).is_empty()).then_some(()));
    running.signal(Signal::KILL);
    assert!(running.outcome().status.is_none());
    assert_eq!(log(&home), "[run]\nbegun\n");
    program(&home, &["cleanup"]).expect(0);
    assert_eq!(process_with(&words), None);
    nothing_runs(&home);
}

#[test]
fn its_phases_run_in_order_and_setup_once() {
    let Some(_loops) = Loops::take("its_phases_run_in_order_and_setup_once", 1) else { return };
    let home = Home::new();
    let text = r#"
[command]
setup = ["sh", "-c", "echo setup >>order; echo made"]
start = ["sh", "-c", "echo start >>order; trap 'echo server ended >>order; exit' TERM; echo $$ >pid; while :; do sleep 0.05; done"]
ready = ["test", "-s", "{dir}/pid"]
run = ["sh", "-c", "echo run of $SECONDS_OF >>order; echo tps = 1.5; echo tps = 2.5; sleep 1.3; echo tps = 3.5"]
stop = ["sh", "-c", "echo stop >>order; kill -TERM $(cat pid); echo stopped"]
environment = { SECONDS_OF = "{seconds}" }
[command.metrics]
tps = { line = 'tps = ([0-9.]+)', unit = "txn/s" }
none = { line = 'never ([0-9.]+)' }
"#;
    let order = || fs::read_to_string(home.target().join("stacktune-program/order")).unwrap();
    let summary = outcome(of_profile(&home, "20s", text, &["--user", USER])).expect(0).json();
    assert_eq!(order(), "setup\nstart\nrun of 20\nstop\nserver ended\n");
    assert!(
        log(&home) == "[setup]\nmade\n[run]\ntps = 1.5\ntps = 2.5\ntps = 3.5\n[stop]\nstopped\n",
        "{}",
        log(&home)
    );
    let tps = &summary["program"]["metrics"]["tps"];
    assert_eq!(
        (tps["count"].as_u64(), tps["mean"].as_f64(), tps["unit"].as_str()),
        (Some(3), Some(2.5), Some("txn/s"))
    );
    assert!(summary["program"]["metrics"]["none"].is_null());
    let windows = json_lines(&home.path("out/windows.jsonl"));
    let counts: Vec<_> =
        windows.iter().filter_map(|w| w["program"]["metrics"]["tps"]["count"].as_u64()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 3, "{counts:?}");

    let again = |text: &str| {
        fs::remove_dir_all(home.path("out")).unwrap();
        outcome(of_profile(&home, "20s", text, &["--user", USER]))
    };
    let second = again(text).expect(0);
    assert!(second.stderr.contains("command.setup is skipped"), "{second:?}");
    assert_eq!(order().matches("setup").count(), 1);
    let other = again(&text.replace("echo made", "echo other")).expect(3);
    assert!(other.stderr.contains("another setup"), "{other:?}");
}

#[test]
fn a_phase_that_fails_is_said_with_its_last_line_and_nothing_is_left() {
    let Some(_loops) = Loops::take("a_phase_that_fails_is_said_with_its_last_line_and_nothing_is_left", 1)
    else {
        return;
    };
    let fails = "[\"sh\", \"-c\", \"echo first; echo no space >&2; exit 7\"]";
    for (command, why) in [
        (format!("setup = {fails}\nrun = [\"true\"]"), "command.setup ended with status 7: no space"),
        (
            format!("start = {fails}\nready = [\"false\"]\nrun = [\"true\"]"),
            "command.start ended with status 7: no space",
        ),
        (format!("run = {fails}"), "command.run ended with status 7: no space"),
        ("run = [\"sh\", \"-c\", \"kill -9 $$\"]".to_owned(), "command.run was ended by signal 9"),
        (
            "start = [\"sleep\", \"1\"]\nrun = [\"sleep\", \"50\"]".to_owned(),
            "command.start ended with status 0",
        ),
    ] {
        let home = Home::new();
        let text = format!("[command]\n{command}\n[stack]\nfilesystem = \"ext4\"");
        let sets = ON_EXT4.map(|set| format!("--set={set}"));
        let more: Vec<&str> = ["--user", USER].into_iter().chain(sets.iter().map(String::as_str)).collect();
        let failed = outcome(of_profile(&home, "30s", &text, &more)).expect(1);
        assert!(failed.stderr.contains(why), "{why}: {failed:?}");
        assert_nothing_left(&home);
    }
}

#[test]
fn a_signal_ends_it_in_order_and_a_second_one_at_once() {
    let Some(_loops) = Loops::take("a_signal_ends_it_in_order_and_a_second_one_at_once", 1) else { return };
    let words = format!("sleep 6{}", std::process::id());
    for signals in [1, 2] {
        let home = Home::new();
        let script = if signals == 1 {
            format!("setsid {words} & {words}")
        } else {
            format!("trap '' INT TERM; {words}; {words}")
        };
        let running = Running::start(&mut on_ext4(&home, "1m", &["--user", USER], &script));
        wait_for("the program", || process_with(&words));
        let windows = home.path("out/windows.jsonl");
        wait_for("a window", || (!json_lines(&windows).is_empty()).then_some(()));
        let began = Instant::now();
        running.signal(Signal::INT);
        if signals == 2 {
            std::thread::sleep(Duration::from_millis(300));
            running.signal(Signal::INT);
        }
        running.outcome().expect(130);
        assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
        assert_eq!(process_with(&words), None);
        program(&home, &["cleanup"]).expect(0);
        assert_nothing_left(&home);
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_made() {
    let Some(loops) = Loops::take("what_cannot_be_run_is_refused_before_anything_is_made", 1) else { return };
    let device = loops.blank(64);
    let bare = format!("--set=target.devices={}", device.path);
    let home = Home::new();
    let run = |more: &[&str], words: &[&str]| {
        let mut command = home.command(["run", "demo", "--user", USER, "--out"]);
        command
            .arg(home.path("out"))
            .env("XDG_STATE_HOME", home.path("state"))
            .args(home.sets(&[]))
            .args(more);
        outcome({
            command.arg("--").args(words);
            command
        })
    };
    for (more, words, status, why) in [
        (&[][..], &["no-such-program"][..], 2, "not installed"),
        (&[], &["./x"], 2, "absolute path"),
        (&[], &["/no/such"], 2, "there is no program"),
        (&[], &["echo", "{dri}"], 2, "did you mean {dir}?"),
        (&["--set=io.interface=sim"], &["true"], 2, "one of the kernel's file systems"),
        (&["--set=run.cache_limit=1GiB"], &["true"], 2, "--mem"),
        (&["--read-only"], &["true"], 2, "--read-only"),
        (&[&bare], &["true"], 2, "needs a file system"),
        (&["--stop-if=load > 3"], &["true"], 2, "psi.io.some > 5%"),
    ] {
        let refused = run(more, words).expect(status);
        assert!(refused.stderr.contains(why), "{why}: {refused:?}");
    }
    let no_words = home.command(["run", "demo", "--user", USER, "--out", "x"]).output().unwrap();
    assert!(Outcome::of(&no_words).expect(2).stderr.contains("no program is named"));
    let profile = home.path("p.toml");
    fs::write(&profile, "[command]\nrun = [\"true\"]\n").unwrap();
    let record =
        program(&home, &["record", profile.to_str().unwrap(), "--out", home.path("out").to_str().unwrap()]);
    assert!(record.expect(2).stderr.contains("stacktune run"));
    let checked = program(&home, &["check", profile.to_str().unwrap()]);
    assert!(checked.stdout.contains("run: true"), "{checked:?}");
    let dry = program(&home, &["run", profile.to_str().unwrap(), "--user", USER, "--dry-run"]).expect(0);
    assert!(dry.stderr.contains("run: true") && dry.stderr.contains("as nobody"), "{dry:?}");
    assert!(!home.target().exists() && !home.path("out").exists());
    nothing_runs(&home);
}

#[test]
fn a_folder_of_anothers_is_left_alone() {
    let Some(_loops) = Loops::take("a_folder_of_anothers_is_left_alone", 1) else { return };
    let home = Home::new();
    let folder = home.target().join("stacktune-program");
    fs::create_dir_all(&folder).unwrap();
    let owner = |path: &Path| std::os::unix::fs::MetadataExt::uid(&path.metadata().unwrap());
    let refused = outcome(on_files(&home, "5s", &["--user", USER], "true")).expect(3);
    assert!(refused.stderr.contains("belongs to user 0"), "{refused:?}");
    fs::remove_dir(&folder).unwrap();
    let elsewhere = home.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    assert_ne!(outcome(on_files(&home, "5s", &["--user", USER], "true")).status, Some(0));
    assert_eq!((owner(&folder), fs::read_dir(&elsewhere).unwrap().count()), (0, 0));
    nothing_runs(&home);
}
