//! Layers made by commands, on loop devices. A link is the simplest: it lacks only a device of its own, and
//! needs no kernel feature. LVM and dm-crypt are in `tests/lab/layers.sh`.

use std::fs;
use std::process::Command;

use crate::common::devices::Loops;
use crate::common::program::{Home, MODEST, Outcome, Running, json_lines, wait_for};
use crate::stack_run::{assert_nothing_left, program};

/// A profile with a layer made by the commands `up`, on a loop device over a file of 96 MiB.
fn profile(home: &Home, up: &str) -> String {
    let path = home.path("layered.toml");
    let text = format!(
        "[target]\nfiles = {{ dir = \"{}\", count = 1, size = \"96MiB\" }}\n[stack]\nfilesystem = \"ext4\"\n\
         [[stack.layer]]\nname = \"alias\"\nup = [{up}]\ndown = [\"rm\", \"--force\", \"/dev/stacktune-{{id}}\"]\n\
         device = \"/dev/stacktune-{{id}}\"\n",
        home.target().display()
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

const LINK: &str = r#"["ln", "--symbolic", "{device}", "/dev/stacktune-{id}"]"#;

fn record(home: &Home, profile: &str, time: &str, more: &[&str]) -> Command {
    let mut command = home.command(["record", profile, "--for", time, "--json", "--out"]);
    command.arg(home.path("out")).env("XDG_STATE_HOME", home.path("state")).args(more);
    command.args(MODEST.map(|set| format!("--set={set}")));
    command
}

fn outcome(mut command: Command) -> Outcome {
    Outcome::of(&command.output().unwrap())
}

/// Only one of these tests at a time: each checks for leftover links.
fn turn() -> fs::File {
    let lock = fs::File::create(std::env::temp_dir().join("stacktune-test-layers")).unwrap();
    lock.lock().unwrap();
    lock
}

/// All links made by such layers.
fn links() -> Vec<String> {
    let names = fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("stacktune-")).collect()
}

#[track_caller]
fn nothing_left(home: &Home) {
    assert_nothing_left(home);
    assert_eq!(links(), [""; 0]);
}

#[test]
fn a_layer_is_shown_allowed_built_verified_and_taken_away() {
    let Some(_loops) = Loops::take("a_layer_is_shown_allowed_built_verified_and_taken_away", 1) else {
        return;
    };
    let _turn = turn();
    let home = Home::new();
    let profile = profile(&home, LINK);
    let shown = program(&home, &["check", &profile]).expect(0).stdout;
    for command in ["ln --symbolic '{device}' '/dev/stacktune-{id}'", "rm --force '/dev/stacktune-{id}'"] {
        assert!(shown.contains(command), "{shown}");
    }
    let dry = outcome(record(&home, &profile, "1s", &["--dry-run"])).expect(0);
    assert!(dry.stderr.contains("--allow-commands") && dry.stdout.contains("ln --symbolic"), "{dry:?}");
    assert!(dry.stdout.contains("is taken away by rm --force /dev/stacktune-"), "{dry:?}");

    let refused = outcome(record(&home, &profile, "1s", &[])).expect(2);
    assert!(
        refused.stderr.contains("layer `alias`") && refused.stderr.contains("--allow-commands"),
        "{refused:?}"
    );
    nothing_left(&home);

    outcome(record(&home, &profile, "1s", &["--allow-commands", "--verify"])).expect(0);
    nothing_left(&home);
    let host = fs::read_to_string(home.path("out/host.json")).unwrap();
    assert!(host.contains("layers by the profile's commands, the lowest first: `alias`"), "{host}");
    let kept = fs::read_to_string(home.path("out/profile.toml")).unwrap();
    assert!(kept.contains("[[stack.layer]]"), "{kept}");
}

#[test]
fn a_layer_on_anothers_device_is_refused_and_taken_away() {
    let Some(loops) = Loops::take("a_layer_on_anothers_device_is_refused_and_taken_away", 2) else { return };
    let _turn = turn();
    let theirs = loops.blank(64);
    let before = fs::read(&theirs.backing).unwrap();
    let home = Home::new();
    let up = format!(r#"["ln", "--symbolic", "{}", "/dev/stacktune-{{id}}"]"#, theirs.path);
    let refused = outcome(record(&home, &profile(&home, &up), "1s", &["--allow-commands"])).expect(3);
    assert!(refused.stderr.contains("which is not this stack's"), "{refused:?}");
    nothing_left(&home);
    assert!(fs::read(&theirs.backing).unwrap() == before, "it was written to");

    let up = r#"["touch", "/dev/stacktune-{id}"]"#;
    let refused = outcome(record(&home, &profile(&home, up), "1s", &["--allow-commands"])).expect(1);
    assert!(refused.stderr.contains("layer `alias` left no device"), "{refused:?}");
    nothing_left(&home);

    let failing = format!("{LINK}, [\"ls\", \"/no-such-{{id}}\"]");
    let failed = outcome(record(&home, &profile(&home, &failing), "1s", &["--allow-commands"])).expect(1);
    assert!(failed.stderr.contains("`ls /no-such-"), "{failed:?}");
    nothing_left(&home);
}

#[test]
fn killed_while_it_is_made_and_under_load_cleanup_takes_a_layer_away() {
    let name = "killed_while_it_is_made_and_under_load_cleanup_takes_a_layer_away";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let _turn = turn();
    let home = Home::new();
    let slow = profile(&home, &format!("{LINK}, [\"sleep\", \"3\"]"));
    let mut running = Running::start(&mut record(&home, &slow, "1m", &["--allow-commands"]));
    wait_for("the link", || (!links().is_empty()).then_some(()));
    running.signal(rustix::process::Signal::KILL);
    assert!(running.outcome().status.is_none());
    // The tool that it started holds the journal until it ends.
    program(&home, &["cleanup"]).expect(0);
    nothing_left(&home);

    let under_load = profile(&home, LINK);
    running = Running::start(&mut record(&home, &under_load, "1m", &["--allow-commands"]));
    let windows = home.path("out/windows.jsonl");
    wait_for("the load", || (json_lines(&windows).len() > 1).then_some(()));
    running.signal(rustix::process::Signal::KILL);
    assert!(running.outcome().status.is_none());
    let status = program(&home, &["status"]).expect(0).stdout;
    assert!(status.contains("layer `alias` at /dev/stacktune-"), "{status}");
    program(&home, &["cleanup"]).expect(0);
    nothing_left(&home);
}

#[test]
fn a_kept_layer_that_is_down_is_not_given_up_unasked() {
    let Some(_loops) = Loops::take("a_kept_layer_that_is_down_is_not_given_up_unasked", 1) else { return };
    let _turn = turn();
    let home = Home::new();
    let profile = profile(&home, LINK);
    outcome(record(&home, &profile, "1s", &["--allow-commands", "--keep"])).expect(0);
    let refused = program(&home, &["verify", &profile]).expect(2);
    assert!(refused.stderr.contains("record --verify"), "{refused:?}");
    let [link] = <[String; 1]>::try_from(links()).unwrap();
    let id = link.trim_start_matches("stacktune-");
    let target = fs::read_link(format!("/dev/{link}")).unwrap();
    program(&home, &["status"]).expect(0);
    fs::remove_file(format!("/dev/{link}")).unwrap();
    crate::common::devices::run("umount", &[home.path("state/stacktune/mnt").join(id).to_str().unwrap()]);
    let down = program(&home, &["cleanup", "--all"]).expect(3);
    assert!(
        down.stdout.contains("layer `alias` is down") && down.stdout.contains("--forget-missing"),
        "{down:?}"
    );
    std::os::unix::fs::symlink(target, format!("/dev/{link}")).unwrap();
    program(&home, &["cleanup", "--all"]).expect(0);
    nothing_left(&home);
}
