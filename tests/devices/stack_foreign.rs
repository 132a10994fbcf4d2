//! A file system that somebody makes on what a killed run has left: `cleanup` refuses until it is wiped. On an array,
//! `tests/lab/stack.sh` does the same.

use std::fs;
use std::process::Command;

use crate::common::devices::{Loops, run};
use crate::common::program::{Home, MODEST, Running, json_lines, wait_for};
use crate::stack_run::{TOOLS, assert_nothing_left, on_files, program, slow_mkfs};
use rustix::process::Signal;

/// Makes a file system with a file of somebody's on a device.
fn used_by_others(node: &str) {
    run("mkfs.ext4", &["-q", "-F", node]);
    within(node, |dir| fs::write(format!("{dir}/letters"), "precious").unwrap());
}

fn within(node: &str, look: impl Fn(&str)) {
    let at = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = at.path().to_str().unwrap();
    run("mount", &[node, dir]);
    look(dir);
    run("umount", &[dir]);
}

/// Cleaning up is refused as long as that file system is there, which stays whole, and goes through afterwards.
#[track_caller]
fn refused_until_wiped(home: &Home, node: &str) {
    for _ in 0..2 {
        let refused = program(home, &["cleanup"]).expect(3);
        let sentence = format!("{node} holds ext4, which the stack did not put there");
        assert!(refused.stdout.contains(&sentence), "{refused:?}");
        assert!(refused.stdout.contains("wipefs --all"), "what to do: {refused:?}");
        run("e2fsck", &["-f", "-n", node]);
        within(node, |dir| assert_eq!(fs::read_to_string(format!("{dir}/letters")).unwrap(), "precious"));
    }
    run("wipefs", &["--all", "--quiet", node]);
    program(home, &["cleanup"]).expect(0);
    assert_nothing_left(home);
}

/// Its partition was unmounted, and made into something else.
#[test]
fn a_file_system_on_the_partition_of_a_killed_run_stays() {
    let Some(loops) = Loops::take("a_file_system_on_the_partition_of_a_killed_run_stays", 1) else { return };
    let (home, device) = (Home::new(), loops.in_memory(256, &["--partscan"]));
    let profile = home.path("mine.toml");
    fs::write(&profile, format!("name = \"mine\"\n[target]\ndevices = [{:?}]\n", device.path)).unwrap();
    let mut command = home.command(["record", profile.to_str().unwrap(), "--for", "5m", "--json", "--out"]);
    command.arg(home.path("out")).env("XDG_STATE_HOME", home.path("state"));
    command.args(["--destroy", &device.path, "--set=stack.use=50%", "--set=stack.filesystem=ext4"]);
    command.args(MODEST.map(|set| format!("--set={set}")));
    let mut running = Running::start(&mut command);
    let windows = home.path("out/windows.jsonl");
    wait_for("the load", || (running.is_alive() && json_lines(&windows).len() > 1).then_some(()));
    running.signal(Signal::KILL);
    assert!(running.outcome().status.is_none());
    let partition = format!("{}p1", device.path);
    wait_for("the unmount", || {
        let done = Command::new("umount").arg(&partition).output().unwrap();
        done.status.success().then_some(())
    });
    used_by_others(&partition);
    refused_until_wiped(&home, &partition);
    assert_eq!(run("wipefs", &["--noheadings", &device.path]), "", "the table is gone");
}

/// Killed while its file system is made: the tool makes it to its end, then somebody makes another one there.
#[test]
fn a_file_system_on_the_loop_device_of_a_build_that_was_killed_stays() {
    let test = "a_file_system_on_the_loop_device_of_a_build_that_was_killed_stays";
    let Some(_loops) = Loops::take(test, 1) else { return };
    let home = Home::new();
    let tools = slow_mkfs(&home);
    let begin = || {
        let running = Running::start(on_files(&home, "5m").env(TOOLS, &tools));
        wait_for("mkfs", || home.path("mkfs-begun").exists().then_some(()));
        running.signal(Signal::KILL);
        assert!(running.outcome().status.is_none());
        wait_for("its end", || home.path("mkfs-ended").exists().then_some(()));
        ["mkfs-begun", "mkfs-ended"].iter().for_each(|note| fs::remove_file(home.path(note)).unwrap());
        let _ = fs::remove_dir_all(home.path("out"));
    };
    // What the killed run's own tool has made goes.
    begin();
    program(&home, &["cleanup"]).expect(0);
    assert_nothing_left(&home);
    begin();
    let folder = fs::read_dir(home.target()).unwrap().next().unwrap().unwrap().path();
    let file = folder.join("loop-0.img");
    let file = file.to_str().unwrap();
    let node = run("losetup", &["--noheadings", "--output", "NAME", "--associated", file]);
    used_by_others(&node);
    // The loop device is detached; the file under it stays.
    refused_until_wiped(&home, file);
}
