//! A file system that somebody makes on the leftovers of a killed run: `cleanup` refuses until it is wiped.
//! For arrays, see `tests/lab/stack.sh`.

use std::fs;

use crate::common::devices::{Loops, run};
use crate::common::program::{Home, Running, wait_for};
use crate::stack_run::{TOOLS, assert_nothing_left, on_files, program, slow_mkfs};
use rustix::process::Signal;

/// Makes a file system with somebody's file on a device.
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

/// Cleanup is refused while that file system exists, leaves it intact, and succeeds afterwards.
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

/// Killed while its file system is made: the tool finishes, then somebody makes another file system there.
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
    // A file system made by the killed run's own tool is removed.
    begin();
    program(&home, &["cleanup"]).expect(0);
    assert_nothing_left(&home);
    begin();
    let folder = fs::read_dir(home.target()).unwrap().next().unwrap().unwrap().path();
    let file = folder.join("loop-0.img");
    let file = file.to_str().unwrap();
    let node = run("losetup", &["--noheadings", "--output", "NAME", "--associated", file]);
    used_by_others(&node);
    // The loop device is detached; its file stays.
    refused_until_wiped(&home, file);
}
