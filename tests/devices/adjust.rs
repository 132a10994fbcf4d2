//! Host settings that a run changes while it goes on: queue settings, and the page cache's budget.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common;
use crate::common::devices::{Loop, Loops};
use crate::common::program::{Home, Outcome, Running, wait_for};
use crate::common::skip;
use crate::common::this_test;
use rustix::process::Signal;
use stacktune::testing::host::Facts;
use stacktune::testing::runs::session::{Attendant, Event, Options, PlanShown, Progress, Session, Wanted};
use stacktune::testing::settings::knobs::{Conditions, Value, find};
use stacktune::testing::settings::{Interface, MdSettings, QueueSettings, Settings};
use stacktune::testing::stack::devices::Drive;
use stacktune::testing::stack::plan::{LiveValues, live_values};
use stacktune::testing::stack::tuning::Adjustments;
use stacktune::testing::stack::undo::leftovers;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// The page cache's budget in the tests.
const LIMIT: u64 = 64 * MIB;

/// A queue setting of a device.
fn queue(device: &Loop, attribute: &str) -> String {
    let text = fs::read_to_string(format!("/sys/block/{}/queue/{attribute}", device.name())).unwrap();
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text.trim(), |(name, _)| name).to_owned()
}

/// All settings that have knobs.
fn queues(device: &Loop) -> Vec<String> {
    let attributes = ["scheduler", "nr_requests", "read_ahead_kb", "wbt_lat_usec", "nomerges", "rq_affinity"];
    attributes.iter().map(|attribute| queue(device, attribute)).collect()
}

fn adjustments(state: &Path, device: &Loop) -> Adjustments {
    let facts = Facts::read(Path::new("/"));
    Adjustments::new(state.to_owned(), "mine", vec![Drive::of(facts.find(&device.path).unwrap())])
}

#[test]
fn queue_settings_are_as_they_were_after_any_order_of_turns() {
    let Some(loops) = Loops::take("queue_settings_are_as_they_were_after_any_order_of_turns", 1) else {
        return;
    };
    let (device, state) = (loops.blank(64), TempDir::new().unwrap());
    // A value that the kernel would not set when it changes the scheduler.
    let own = format!("/sys/block/{}/queue/nr_requests", device.name());
    fs::write(&own, "100").unwrap();
    let found = queues(&device);
    let mut adjustments = adjustments(state.path(), &device);
    let turn = |scheduler: Option<&str>, requests, wbt| QueueSettings {
        scheduler: scheduler.map(Into::into),
        nr_requests: requests,
        wbt_lat_usec: wbt,
        read_ahead_kb: Some(64),
        ..QueueSettings::default()
    };
    let mq = Some("mq-deadline");
    let turns = [
        turn(None, Some(64), None),
        turn(mq, Some(64), Some(500)),
        turn(Some("bfq"), Some(32), None),
        turn(mq, None, Some(0)),
        turn(None, Some(16), Some(0)),
        turn(mq, Some(16), None),
    ];
    for settings in &turns {
        adjustments.apply(None, &live_values(settings, &MdSettings::default()), None).unwrap();
        let scheduler = settings.scheduler.as_deref().unwrap_or("none");
        assert_eq!(
            (queue(&device, "scheduler").as_str(), queue(&device, "read_ahead_kb").as_str()),
            (scheduler, "64")
        );
        if let Some(requests) = settings.nr_requests {
            assert_eq!(queue(&device, "nr_requests"), requests.to_string(), "{settings:?}");
        }
        assert_eq!(leftovers(state.path()).unwrap().len(), 1);
    }
    adjustments.apply(None, &LiveValues::default(), None).unwrap();
    assert_eq!(queues(&device), found);
    assert!(leftovers(state.path()).unwrap().is_empty(), "an empty journal is removed");

    adjustments.apply(None, &live_values(&turns[1], &MdSettings::default()), None).unwrap();
    assert_ne!(queues(&device), found);
    drop(adjustments);
    assert_eq!(queues(&device), found);
    assert!(leftovers(state.path()).unwrap().is_empty());
}

#[test]
fn where_one_setting_is_refused_none_is_changed() {
    let Some(loops) = Loops::take("where_one_setting_is_refused_none_is_changed", 1) else { return };
    let (device, state) = (loops.blank(64), TempDir::new().unwrap());
    let found = queues(&device);
    let mut adjustments = adjustments(state.path(), &device);
    let good =
        QueueSettings { scheduler: Some("kyber".into()), nomerges: Some(2), ..QueueSettings::default() };
    let bad = [
        (QueueSettings { scheduler: Some("no-such".into()), ..good.clone() }, "cannot write no-such"),
        (QueueSettings { nomerges: Some(1), read_ahead_kb: Some(67), ..good.clone() }, "turns 67 into 64"),
        (QueueSettings { nr_requests: Some(1), ..good.clone() }, "turns 1 into 4"),
    ];
    for (settings, why) in &bad {
        let error =
            adjustments.apply(None, &live_values(settings, &MdSettings::default()), None).unwrap_err();
        assert!(error.what.contains(why), "{error}");
        assert_eq!(queues(&device), found);
        assert!(leftovers(state.path()).unwrap().is_empty());
    }
    adjustments.apply(None, &live_values(&good, &MdSettings::default()), None).unwrap();
    let turned = queues(&device);
    for (settings, _) in &bad {
        adjustments.apply(None, &live_values(settings, &MdSettings::default()), None).unwrap_err();
        assert_eq!(queues(&device), turned);
    }
    adjustments.restore(None).unwrap();
    assert_eq!(queues(&device), found);
}

#[test]
fn a_value_that_a_device_can_not_have_is_unavailable_with_the_reason() {
    let Some(loops) = Loops::take("a_value_that_a_device_can_not_have_is_unavailable_with_the_reason", 1)
    else {
        return;
    };
    let device = loops.blank(64);
    let mut facts = Facts::read(Path::new("/"));
    let mut settings = Settings::default();
    settings.target.devices = vec![device.path.clone()];
    let why = |facts: &Facts, knob: &str, value: Value| {
        find(knob).unwrap().unavailable(&value, &settings, Conditions { facts, target: None })
    };
    assert_eq!(why(&facts, "queue.scheduler", Value::Text("mq-deadline".into())), None);
    let reason = why(&facts, "queue.scheduler", Value::Text("cfq".into())).unwrap();
    assert!(reason.contains("mq-deadline") && reason.contains("not cfq"), "{reason}");
    assert!(why(&facts, "queue.read_ahead_kb", Value::Int(67)).unwrap().contains("4 KiB"));
    let queue = |facts: &mut Facts, change: fn(&mut stacktune::testing::host::Queue)| {
        change(&mut facts.devices.iter_mut().find(|one| one.name == device.name()).unwrap().queue);
    };
    queue(&mut facts, |queue| drop(queue.settings.remove("wbt_lat_usec")));
    assert!(why(&facts, "queue.wbt_lat_usec", Value::Int(0)).unwrap().contains("no queue/wbt_lat_usec"));
    queue(&mut facts, |queue| queue.fixed = Some("changing a queue setting requires root".into()));
    assert!(why(&facts, "queue.nomerges", Value::Int(2)).unwrap().contains("requires root"));
    assert_eq!(why(&facts, "queue.nomerges", Value::Inherit), None);
    // Files have no queue of their own.
    let knob = find("queue.nomerges").unwrap();
    assert_eq!(knob.inactive(&Settings::default()), Some("the target is files"));
    assert_eq!(knob.inactive(&settings), None);
}

/// A profile of a device with a light load, and more lines.
fn profile(home: &Home, device: &Loop, more: &str) -> PathBuf {
    let path = home.path("mine.toml");
    let light = "rate = \"1MB/s\"\n";
    let classes: Vec<_> =
        ["scan", "point", "wal", "background"].iter().map(|class| format!("[{class}]\n{light}")).collect();
    let text = format!(
        "[target]\ndevices = [{:?}]\n[io]\nregistered_buffers = false\n{}{more}",
        device.path,
        classes.join("")
    );
    fs::write(&path, text).unwrap();
    path
}

fn with_state(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env("XDG_STATE_HOME", home.path("state"));
    command
}

fn recording(home: &Home, profile: &Path, time: &str, destroy: Option<&Loop>) -> Command {
    let out = home.path(&format!("out-{time}"));
    let mut command = with_state(
        home,
        &["record", profile.to_str().unwrap(), "--for", time, "--out", out.to_str().unwrap()],
    );
    if let Some(device) = destroy {
        command.args(["--destroy", &device.path]);
    }
    command
}

#[test]
fn a_recording_sets_the_queues_and_puts_them_back_and_cleanup_does_after_a_kill() {
    let Some(loops) =
        Loops::take("a_recording_sets_the_queues_and_puts_them_back_and_cleanup_does_after_a_kill", 1)
    else {
        return;
    };
    let (home, device) = (Home::new(), loops.blank(96));
    let found = queues(&device);
    let settings = "[queue]\nscheduler = \"mq-deadline\"\nnr_requests = 64\nread_ahead_kb = 64\n";
    let profile = profile(&home, &device, settings);
    let set = |running: &mut Running| {
        wait_for("the queue settings", || {
            assert!(running.is_alive(), "it ended");
            let now = ["scheduler", "nr_requests", "read_ahead_kb"].map(|one| queue(&device, one));
            (now == ["mq-deadline", "64", "64"]).then_some(())
        });
    };
    let mut running = Running::start(&mut recording(&home, &profile, "5m", Some(&device)));
    set(&mut running);
    running.signal(Signal::INT);
    running.outcome().expect(130);
    assert_eq!(queues(&device), found);

    let mut running = Running::start(&mut recording(&home, &profile, "10m", Some(&device)));
    set(&mut running);
    running.signal(Signal::KILL);
    running.outcome();
    let program = |arguments: &[&str]| Outcome::of(&with_state(&home, arguments).output().unwrap()).expect(0);
    let status = program(&["status"]);
    assert!(status.stdout.contains("queue setting scheduler"), "{status:?}");
    program(&["cleanup"]);
    assert_eq!(queues(&device), found);
    assert_eq!(program(&["status"]).stdout, "no stacks, and nothing left behind\n");
}

pub struct Nobody;

impl Attendant for Nobody {
    fn progress(&mut self, _: Progress) -> bool {
        true
    }
    fn notice(&mut self, _: &str) {}
    fn consent(&mut self, _: Vec<Wanted>) -> Option<Vec<String>> {
        None
    }
    fn plan(&mut self, _: PlanShown) -> Option<Vec<String>> {
        None
    }
    fn step(&mut self, _: &stacktune::testing::runs::session::Advance) -> bool {
        true
    }
}

/// The environment variable that makes a process of this test the session.
const DEVICE: &str = "STACKTUNE_TEST_DEVICE";

/// Runs in a process of its own, whose environment sets the place of the journals.
#[test]
fn queue_settings_are_turned_while_the_load_runs() {
    let name = "queue_settings_are_turned_while_the_load_runs";
    if let Ok(device) = std::env::var(DEVICE) {
        return turns_on(&device);
    }
    let Some(loops) = Loops::take(name, 1) else { return };
    let (home, device) = (TempDir::new().unwrap(), loops.blank(96));
    let found = queues(&device);
    let mut command = this_test(module_path!(), name);
    command.env(DEVICE, &device.path).env("XDG_STATE_HOME", home.path());
    let ran = Outcome::of(&command.output().unwrap());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!(queues(&device), found);
    assert!(leftovers(&home.path().join("stacktune")).unwrap().is_empty());
}

fn turns_on(device: &str) {
    let name = device.trim_start_matches("/dev/");
    let scheduler = || fs::read_to_string(format!("/sys/block/{name}/queue/scheduler")).unwrap();
    let mut settings = Settings::default();
    settings.target.devices = vec![device.to_owned()];
    settings.io.interface = Interface::Sync;
    settings.classes.iter_mut().for_each(|class| class.rate_bytes_per_s = Some(1_000_000));
    settings.classes.iter_mut().for_each(|class| class.depth = 1);
    let options = Options { destroy: vec![device.to_owned()], ..Options::default() };
    let facts = Arc::new(Facts::read(Path::new("/")));
    let mut session = Session::open(settings, options, facts, &mut Nobody).unwrap();
    session.start().unwrap();
    let turn = |session: &mut Session, knob: &str, value: Value| -> Vec<Event> {
        session.turn(knob, &value);
        session.events().collect()
    };
    let refused = |events: &[Event]| {
        events.iter().find_map(|event| match event {
            Event::Turned { outcome: Err(why), .. } => Some(why.clone()),
            _ => None,
        })
    };
    let text = |name: &str| Value::Text(name.into());
    let events = turn(&mut session, "queue.scheduler", text("mq-deadline"));
    assert!(scheduler().contains("[mq-deadline]"), "{events:?}");
    // In force at once, with a line in the ledger, and without restarting any class.
    assert!(events.iter().any(|event| matches!(event, Event::Turned { outcome: Ok(true), .. })));
    let line = events.iter().find_map(|event| match event {
        Event::Ledger(line) => Some(line.clone()),
        _ => None,
    });
    let line = line.unwrap();
    assert_eq!((line.from.as_str(), line.to.as_str()), ("default", "mq-deadline"));
    assert!(!session.is_settling());
    let why = refused(&turn(&mut session, "queue.scheduler", text("cfq"))).unwrap();
    assert!(why.contains("not cfq"), "{why}");
    // For limits that only the kernel knows, its own error is reported.
    let why = refused(&turn(&mut session, "queue.nr_requests", Value::Int(65_536))).unwrap();
    assert!(why.contains("nr_requests"), "{why}");
    assert!(scheduler().contains("[mq-deadline]"));
    session.undo();
    assert!(scheduler().contains("[none]"));
    assert!(refused(&turn(&mut session, "queue.nomerges", Value::Int(2))).is_none());
    session.dismantle(false, &mut |_| true).unwrap();
}

/// A process's memory cgroup: its folder, and whether it is v1.
fn memory_cgroup(pid: u32) -> Option<(PathBuf, bool)> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let v1 = text.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    let mount = |kind: &str| {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let of_kind =
            |line: &&str| line.contains(kind) && (kind.contains("cgroup2") || line.ends_with("memory"));
        mounts.lines().find(of_kind).map(|line| line.split(' ').nth(4).unwrap().to_owned())
    };
    if let Some(path) = v1 {
        return Some((PathBuf::from(format!("{}{path}", mount(" - cgroup ")?)), true));
    }
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some((PathBuf::from(format!("{}{path}", mount(" - cgroup2 ")?)), false))
}

/// Bytes of these files in the page cache.
fn cached_bytes(files: &[PathBuf]) -> u64 {
    let output =
        Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).args(files).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    output.split_whitespace().map(|bytes| bytes.parse::<u64>().unwrap()).sum()
}

#[test]
fn the_page_cache_of_a_cached_scan_stays_within_its_budget() {
    let name = "the_page_cache_of_a_cached_scan_stays_within_its_budget";
    if let Some(why) = Facts::read(Path::new("/")).cgroup_memory.limit.reason() {
        return skip(name, why);
    }
    let home = Home::new();
    let run = |out: &str, time: &str| {
        let mut command = with_state(&home, &["record", "demo", "--for", time, "--out"]);
        command.arg(home.path(out));
        let off = ["point", "wal", "background"].map(|class| format!("{class}.enabled=false"));
        let mut sets: Vec<&str> = off.iter().map(String::as_str).collect();
        sets.extend([
            "scan.interface=sync",
            "scan.depth=4",
            "scan.batch=1",
            "scan.rate=200MB/s",
            "scan.page_size=128KiB",
        ]);
        sets.extend(["io.buffering=cached", "run.cache_limit=64MiB", "run.window=100ms"]);
        command.args(home.sets(&sets)).arg("--set=target.files.size=96MiB");
        Running::start(&mut command)
    };
    let limited = |running: &mut Running| {
        wait_for("the cgroup", || {
            assert!(running.is_alive(), "it ended");
            memory_cgroup(running.pid()).filter(|(dir, _)| dir.to_string_lossy().contains("/stacktune-"))
        })
    };
    // Once it has read four times the budget; the whole target is three times the budget.
    let mut running = run("one", "10m");
    let (dir, v1) = limited(&mut running);
    let windows = home.path("one").join("windows.jsonl");
    let read = || {
        let bytes = |window: &serde_json::Value| window["total"]["bytes"].as_u64().unwrap();
        common::program::json_lines(&windows).iter().map(bytes).sum::<u64>()
    };
    wait_for("the scan", || (read() > 4 * LIMIT).then_some(()));
    let (limit, key) = if v1 { ("memory.limit_in_bytes", "cache ") } else { ("memory.max", "file ") };
    assert_eq!(fs::read_to_string(dir.join(limit)).unwrap().trim(), LIMIT.to_string());
    let stat = fs::read_to_string(dir.join("memory.stat")).unwrap();
    let counted: u64 = stat.lines().find_map(|line| line.strip_prefix(key)).unwrap().parse().unwrap();
    assert!((LIMIT / 4..=LIMIT).contains(&counted), "{counted}");
    let files: Vec<PathBuf> =
        fs::read_dir(home.target()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let cached = cached_bytes(&files);
    assert!((LIMIT / 4..=LIMIT + MIB).contains(&cached), "{cached} of {files:?}");

    running.signal(Signal::KILL);
    running.outcome();
    let program = |arguments: &[&str]| Outcome::of(&with_state(&home, arguments).output().unwrap()).expect(0);
    assert!(program(&["status"]).stdout.contains("cgroup"), "the dead run's cgroup is listed");
    program(&["cleanup"]);
    assert!(!dir.exists());

    // A run that ends by itself removes its cgroup.
    let mut running = run("two", "1s");
    let (dir, _) = limited(&mut running);
    running.outcome().expect(0);
    assert!(!dir.exists());
    assert_eq!(program(&["status"]).stdout, "no stacks, and nothing left behind\n");
}
