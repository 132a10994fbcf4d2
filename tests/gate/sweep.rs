//! A profile's steps, run by the real program: the table, the folder, and resuming after any kind of end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::common::devices::Loops;
use crate::common::program::{Home, Outcome, Running, json_file, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// Settings for small files that stay within an ordinary user's memory limit.
const FILES: &str = "io.registered_buffers = false\nscan.rate = \"20MB/s\"\npoint.rate = \"1MB/s\"\n\
    wal.rate = \"1MB/s\"\nbackground.rate = \"1MB/s\"\nrun.window = \"100ms\"\n";

/// A profile file whose target is in the home's folder.
fn profile(home: &Home, text: &str) -> PathBuf {
    let path = home.path("steps.toml");
    let target = home.target();
    let files =
        format!("target.files = {{ dir = {:?}, count = 2, size = \"16MiB\" }}\n", target.to_str().unwrap());
    fs::write(&path, format!("name = \"steps\"\n{files}{text}")).unwrap();
    path
}

fn record(home: &Home, profile: &Path, more: &[&str]) -> Command {
    let mut command = home.command(["record".as_ref(), profile.as_os_str(), "--out".as_ref()]);
    command.arg(home.path("out")).args(more);
    command.env("XDG_STATE_HOME", home.path("state"));
    command
}

fn recorded(home: &Home, profile: &Path, more: &[&str]) -> Outcome {
    Outcome::of(&record(home, profile, more).output().unwrap())
}

/// A sweep's runs in order.
fn runs(home: &Home) -> Vec<String> {
    let sweep = json_file(&home.path("out").join("sweep.json"));
    let runs = sweep["runs"].as_array().unwrap();
    runs.iter().map(|run| run["dir"].as_str().unwrap().to_owned()).collect()
}

fn summary(home: &Home, run: &str) -> PathBuf {
    home.path("out").join(run).join("summary.json")
}

/// When a run was completed.
fn completed(home: &Home, run: &str) -> Option<SystemTime> {
    fs::metadata(summary(home, run)).and_then(|metadata| metadata.modified()).ok()
}

/// How many runs are complete, according to `show --json`.
fn done(shown: &Value) -> usize {
    let steps = shown["steps"].as_array().unwrap();
    let runs = steps.iter().flat_map(|step| step["runs"].as_array().unwrap());
    runs.filter(|run| run["state"] == "done").count()
}

#[test]
fn a_sweep_over_one_knob_is_a_table_with_charts_alike_every_time() {
    let home = Home::new();
    let text = "io.interface = \"sim\"\n[sweep]\nfor = \"4s\"\nrepeat = 3\n\
        [sweep.product]\n\"scan.depth\" = [128, 1, 16]\n";
    let path = profile(&home, text);
    let first = recorded(&home, &path, &[]).expect(0);
    assert!(first.stdout.lines().all(|line| line.chars().count() <= 80), "{}", first.stdout);
    insta::assert_snapshot!(first.stdout);
    let shown = home.run(["show".as_ref(), home.path("out").as_os_str()]).expect(0);
    assert_eq!(shown.stdout, first.stdout);
    // Simulated runs are deterministic to the last byte, so repeats do not differ.
    let json = home.show(&home.path("out")).expect(0).json();
    let depth_1 = &json["steps"][1]["figures"]["total.mb_per_s"];
    assert_eq!((&depth_1["low"], &depth_1["runs"]), (&depth_1["high"], &Value::from(3)));
    // Each run is a recording like any other.
    let dirs = runs(&home);
    let two = [home.path("out").join(&dirs[0]), home.path("out").join(&dirs[1])];
    home.run(["show".as_ref(), two[0].as_os_str()]).expect(0);
    let over_time = |dir: &Path| home.run(["show".as_ref(), "--over-time".as_ref(), dir.as_os_str()]);
    assert!(over_time(&two[0]).expect(0).stdout.contains("scan MB/s"));
    assert!(over_time(&home.path("out")).expect(2).stderr.contains("holds a sweep"));
    home.run(["compare".as_ref(), two[0].as_os_str(), two[1].as_os_str()]).expect(0);
}

#[test]
fn a_sweep_over_two_knobs_is_drawn_with_both() {
    let home = Home::new();
    let text = "io.interface = \"sim\"\n[sweep]\nfor = \"3s\"\n\
        [sweep.product]\n\"scan.depth\" = [64, 8, 1]\n\"wal.sync\" = [\"none\", \"fdatasync\"]\n";
    let shown = recorded(&home, &profile(&home, text), &[]).expect(0).stdout;
    let chart = shown.split("total MB/s by ").nth(1).unwrap();
    let labels: Vec<_> =
        chart.lines().skip(1).take(6).map(|line| line.split('│').next().unwrap().trim()).collect();
    assert!(chart.starts_with("wal.sync and scan.depth\n"), "{shown}");
    assert_eq!(
        labels,
        ["none 1", "none 8", "none 64", "fdatasync 1", "fdatasync 8", "fdatasync 64"],
        "{shown}"
    );
}

#[test]
fn what_this_host_cannot_do_is_a_row_with_its_reason() {
    let home = Home::new();
    let text = "io.interface = \"sim\"\n[sweep]\nfor = \"3s\"\n[[step]]\nlabel = \"can\"\n\
        [[step]]\nlabel = \"a label that is too long for its column\"\nio.interface = \"sync\"\ntarget.files.dir = \"\"\n";
    let path = profile(&home, text);
    let outcome = recorded(&home, &path, &[]).expect(0);
    insta::assert_snapshot!(outcome.stdout);
    let checked = home.run(["check".as_ref(), path.as_os_str()]).expect(2);
    assert!(
        checked.stderr.contains("a label that is too long for its column: `target.files.dir` can't be"),
        "{checked:?}"
    );
}

#[test]
fn the_dry_run_shows_order_time_and_writes_and_creates_nothing() {
    let home = Home::new();
    let text = format!(
        "{FILES}[sweep]\nfor = \"3s\"\nwarmup = \"500ms\"\nrepeat = 2\nidle = \"1s\"\n[sweep.product]\nwal.sync_every = [1, 8]"
    );
    let outcome = recorded(&home, &profile(&home, &text), &["--dry-run"]).expect(0);
    insta::assert_snapshot!(outcome.stdout.replace(home.target().to_str().unwrap(), "TARGET"));
    let json = recorded(&home, &profile(&home, &text), &["--dry-run", "--json"]).expect(0).json();
    assert_eq!(json["schedule"]["runs"].as_array().unwrap().len(), 4);
    assert_eq!(json["targets"].as_array().unwrap().len(), 1);
    assert!(
        json["targets"][0]["plan"]["steps"][0]["command"].as_str().unwrap().starts_with("open "),
        "{json}"
    );
    assert!(!home.path("out").exists() && !home.target().exists());
}

#[test]
fn a_sweep_of_files_goes_on_after_kill_9_and_after_a_signal() {
    let home = Home::new();
    let text = format!(
        "{FILES}[sweep]\nfor = \"700ms\"\nrepeat = 2\nidle = \"1ms\"\n[sweep.product]\nscan.depth = [1, 4]"
    );
    let path = profile(&home, &text);

    let killed = Running::start(&mut record(&home, &path, &[]));
    let second = wait_for("the schedule", || {
        home.path("out").join("sweep.json").exists().then(|| runs(&home)[1].clone())
    });
    let windows = home.path("out").join(&second).join("windows.jsonl");
    wait_for("the second run", || fs::metadata(&windows).is_ok_and(|m| m.len() > 0).then_some(()));
    killed.signal(Signal::KILL);
    assert_eq!(killed.outcome().status, None);
    let dirs = runs(&home);
    let first_at = completed(&home, &dirs[0]).expect("the first run was complete");
    assert_eq!(completed(&home, &dirs[1]), None, "the second was not");

    let interrupted = Running::start(&mut record(&home, &path, &[]));
    wait_for("the second run again", || completed(&home, &dirs[1]));
    interrupted.signal(Signal::INT);
    let outcome = interrupted.outcome().expect(130);
    assert!(outcome.stderr.contains("the same command continues"), "{outcome:?}");
    assert!(outcome.stdout.contains("left to do"), "{outcome:?}");

    let outcome = recorded(&home, &path, &["--json"]).expect(0);
    assert_eq!(done(&outcome.json()), 4);
    assert_eq!(completed(&home, &dirs[0]), Some(first_at), "what was complete stays");
    assert!(!outcome.stderr.contains("run 1 of 4"), "{outcome:?}");

    let other = format!("point.depth = 2\n{}", fs::read_to_string(&path).unwrap());
    fs::write(&path, other).unwrap();
    let refused = recorded(&home, &path, &[]).expect(2);
    assert!(refused.stderr.contains("point.depth is 2, but 1 there"), "{refused:?}");
}

#[test]
fn a_knob_that_the_steps_turn_is_refused_on_the_command_line() {
    let home = Home::new();
    let path = profile(&home, "io.interface = \"sim\"\n[sweep.product]\nscan.depth = [1, 4]");
    let outcome = recorded(&home, &path, &["--set=scan.depth=8"]).expect(2);
    assert!(outcome.stderr.contains("the profile's steps already turn `scan.depth`"), "{outcome:?}");
    let outcome = recorded(&home, &path, &["--set=point.depth=8", "--for=1s", "--json"]).expect(0);
    assert_eq!(outcome.json()["steps"][0]["for_s"], 1.0);
}

/// The stacks in the home's journals.
fn stacks(home: &Home) -> Vec<Value> {
    let mut command = home.command(["status", "--json"]);
    command.env("XDG_STATE_HOME", home.path("state"));
    let outcome = Outcome::of(&command.output().unwrap()).expect(0);
    outcome.json().as_array().unwrap().clone()
}

#[test]
fn a_sweep_over_stacks_goes_on_after_kill_9_and_leaves_nothing_and_no_other_is_touched() {
    let test = "a_sweep_over_stacks_goes_on_after_kill_9_and_leaves_nothing_and_no_other_is_touched";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let home = Home::new();
    let text = format!(
        "{FILES}stack.data = \"32MiB\"\nstack.wal = \"16MiB\"\n[sweep]\nfor = \"700ms\"\nrepeat = 2\n\
         [[step]]\nlabel = \"ext4\"\nstack.filesystem = \"ext4\"\n\
         [[step]]\nlabel = \"xfs\"\nstack.filesystem = \"xfs\"\n"
    );
    let path = profile(&home, &text);
    let large = fs::read_to_string(&path)
        .unwrap()
        .replace("count = 2, size = \"16MiB\"", "count = 1, size = \"320MiB\"");
    fs::write(&path, large).unwrap();

    // Another run's stack, whose process is dead too.
    let alone = home.path("alone.toml");
    let other_target = home.path("other");
    let single = format!(
        "{FILES}target.files = {{ dir = {:?}, count = 1, size = \"64MiB\" }}\nstack.filesystem = \"ext4\"\n\
         stack.data = \"16MiB\"\nstack.wal = \"16MiB\"\n",
        other_target.to_str().unwrap()
    );
    fs::write(&alone, single).unwrap();
    [&other_target, &home.target()].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
    let mut other =
        home.command(["record".as_ref(), alone.as_os_str(), "--for=10m".as_ref(), "--out".as_ref()]);
    other.arg(home.path("alone")).env("XDG_STATE_HOME", home.path("state"));
    let other = Running::start(&mut other);
    wait_for("the other run", || home.path("alone/windows.jsonl").exists().then_some(()));
    other.signal(Signal::KILL);
    other.outcome();
    let others = stacks(&home);
    assert_eq!(others.len(), 1, "{others:?}");

    let killed = Running::start(&mut record(&home, &path, &[]));
    let second = wait_for("the schedule", || {
        home.path("out").join("sweep.json").exists().then(|| runs(&home)[1].clone())
    });
    wait_for("the second run", || {
        home.path("out").join(&second).join("windows.jsonl").exists().then_some(())
    });
    killed.signal(Signal::KILL);
    killed.outcome();
    assert_eq!(stacks(&home).len(), 2, "its stack is left");

    let outcome = recorded(&home, &path, &["--json"]).expect(0);
    assert!(outcome.stderr.contains("removing the stack that the sweep left behind"), "{outcome:?}");
    let shown = outcome.json();
    assert_eq!((done(&shown), &shown["kept_together"]), (4, &Value::Bool(true)), "{shown}");
    // Both repeats of a step ran on one stack, one after the other.
    let steps: Vec<String> = runs(&home).iter().map(|run| run[..2].to_owned()).collect();
    assert!(steps[0] == steps[1] && steps[2] == steps[3] && steps[0] != steps[2], "{steps:?}");
    assert_eq!(stacks(&home), others, "nothing of the sweep is left, and the other is as it was");

    let mut cleanup = home.command(["cleanup"]);
    cleanup.env("XDG_STATE_HOME", home.path("state"));
    Outcome::of(&cleanup.output().unwrap()).expect(0);
    assert!(stacks(&home).is_empty());
}

#[test]
fn a_sweep_that_destroys_is_refused_before_it_begins_unless_each_drive_is_named() {
    let test = "a_sweep_that_destroys_is_refused_before_it_begins_unless_each_drive_is_named";
    let Some(loops) = Loops::take(test, 2) else { return };
    let (home, device) = (Home::new(), loops.blank(96));
    let path = home.path("steps.toml");
    let text = format!(
        "name = \"steps\"\n{FILES}target.devices = [{:?}]\nstack.data = \"16MiB\"\nstack.wal = \"16MiB\"\n\
         [sweep]\nfor = \"500ms\"\nrebuild = true\n[[step]]\nlabel = \"ext4\"\nstack.filesystem = \"ext4\"\n\
         [[step]]\nlabel = \"bare\"\n[[step]]\nlabel = \"three parities\"\nstack.raid = \"md6\"\n",
        device.path
    );
    fs::write(&path, text).unwrap();
    let refused = recorded(&home, &path, &[]).expect(3);
    assert!(refused.stderr.contains(&device.path), "{refused:?}");
    assert!(!home.path("out").exists(), "nothing was begun");
    let stray =
        recorded(&home, &path, &["--destroy", &device.path, "--destroy", "/dev/loop0-of-nobody"]).expect(2);
    assert!(stray.stderr.contains("/dev/loop0-of-nobody"), "{stray:?}");

    let outcome = recorded(&home, &path, &["--destroy", &device.path, "--json"]).expect(0);
    let shown = outcome.json();
    assert_eq!(done(&shown), 2, "{shown}");
    let md6 = &shown["steps"][2]["runs"][0];
    assert_eq!((&md6["state"], &md6["not_run"]["kind"]), (&"not_run".into(), &"input".into()), "{shown}");
    assert!(stacks(&home).is_empty());
}
