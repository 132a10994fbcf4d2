//! The program on stacks over loop devices: what is refused before anything is touched, and how a run ends
//! when it is stopped early.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::devices::{Loop, Loops, Mount, run};
use crate::common::program::{Home, MODEST, Outcome, Running, json_file, wait_for};
use crate::common::terminal::Terminal;
use crate::stack_screen::ALL;
use rustix::process::{Pid, Signal, kill_process_group};

/// A folder of tools that take precedence over the real ones, in builds with debug assertions.
pub const TOOLS: &str = "STACKTUNE_TEST_TOOLS";

/// The program with a state folder of the test's own.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env("XDG_STATE_HOME", home.path("state"));
    command
}

pub fn program(home: &Home, arguments: &[&str]) -> Outcome {
    Outcome::of(&command(home, arguments).output().unwrap())
}

/// `record` of a light load on that target.
fn on_target(home: &Home, target: &str, sets: &[&str]) -> Command {
    let profile = home.path("mine.toml");
    fs::write(&profile, format!("name = \"mine\"\n[target]\n{target}\n")).unwrap();
    let mut command = command(home, &["record", profile.to_str().unwrap(), "--for", "1s", "--json"]);
    command.arg("--out").arg(home.path("out"));
    command.args(MODEST.iter().chain(sets).map(|set| format!("--set={set}")));
    command
}

/// The same on devices, with consent to destroy their content.
fn on_devices(home: &Home, devices: &[&str], sets: &[&str]) -> Command {
    let list: Vec<String> = devices.iter().map(|device| format!("{device:?}")).collect();
    let mut command = on_target(home, &format!("devices = [{}]", list.join(", ")), sets);
    command.args(devices.iter().map(|device| format!("--destroy={device}")));
    command
}

/// `record` of a light load for that long, on ext4 over a loop device over a file.
pub fn on_files(home: &Home, time: &str) -> Command {
    let mut command = home.record("out", time, &MODEST);
    command.env("XDG_STATE_HOME", home.path("state"));
    command.args(ON_EXT4.map(|set| format!("--set={set}")));
    command.arg("--json");
    command
}

pub const ON_EXT4: [&str; 3] = ["target.files.count=1", "target.files.size=96MiB", "stack.filesystem=ext4"];

/// Nothing of a stack is left: no journal, mount, loop device or file.
#[track_caller]
pub fn assert_nothing_left(home: &Home) {
    let status = program(home, &["status"]).expect(0).stdout;
    assert_eq!(status, "no stacks, and nothing left behind\n");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let loops = run("losetup", &["--list", "--noheadings", "--output", "NAME,BACK-FILE"]);
    for folder in [home.target(), home.path("state")] {
        let folder = folder.to_str().unwrap();
        let left = mounts.lines().chain(loops.lines()).find(|line| line.contains(folder));
        assert_eq!(left, None);
    }
    let of = |dir: &Path| fs::read_dir(dir).map_or(0, Iterator::count);
    for dir in [home.target(), home.path("state/stacktune/journal"), home.path("state/stacktune/mnt")] {
        assert_eq!(of(&dir), 0, "{}", dir.display());
    }
}

/// A folder with a tool that takes precedence over the real one, for [`TOOLS`].
pub fn fake(home: &Home, tool: &str, script: &str) -> String {
    let dir = home.path("tools");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(tool);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    dir.display().to_string()
}

/// A mkfs that reports its begin and end, and takes a while in between.
pub fn slow_mkfs(home: &Home) -> String {
    let (begun, ended) = (home.path("mkfs-begun"), home.path("mkfs-ended"));
    let script = format!(
        "touch {}; sleep 1; /usr/sbin/mkfs.ext4 \"$@\" || exit; touch {}",
        begun.display(),
        ended.display()
    );
    fake(home, "mkfs.ext4", &script)
}

/// The tools that build a stack over files, wrapped to log their command lines.
fn noted(home: &Home, log: &Path) -> String {
    let tools =
        ["losetup", "mkfs.ext4", "mkfs.btrfs", "mount", "umount", "wipefs", "blkdiscard", "sfdisk", "mdadm"];
    let noted = tools.map(|tool| {
        // Files held open are logged by their own paths, as the plan shows them.
        let script = format!(
            "words={tool}; for word in \"$@\"; do case $word in /proc/*) words=\"$words $(readlink $word)\";; *) words=\"$words $word\";; esac; done
             echo \"$words\" >>{}; exec {tool} \"$@\"",
            log.display()
        );
        fake(home, tool, &script)
    });
    noted.into_iter().next().unwrap()
}

/// Strips from a command what differs each time: the stack's id, and which loop devices were free.
fn alike(command: &str) -> String {
    let is_id =
        |part: &&str| [4, 8, 12, 16].contains(&part.len()) && part.chars().all(|c| c.is_ascii_hexdigit());
    let word = |word: &str| match word {
        word if word.starts_with("/dev/loop") => "LOOP".to_owned(),
        word if !word.contains(['-', '/']) => word.to_owned(),
        word => {
            let parts = word.split(['-', '/', '=']).map(|part| if is_id(&part) { "ID" } else { part });
            parts.collect::<Vec<_>>().join("-")
        }
    };
    let looped = command.split("<loop of ").enumerate().map(|(at, text)| match text.split_once('>') {
        Some((_, rest)) if at > 0 => format!("LOOP{rest}"),
        _ => text.to_owned(),
    });
    looped.collect::<String>().split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn formatted(loops: &Loops, size_mib: u64) -> Loop {
    loops.device(size_mib, |file| drop(run("mkfs.ext4", &["-q", file.to_str().unwrap()])))
}

#[test]
fn a_stack_over_the_limit_of_writes_is_refused_before_anything_is_destroyed() {
    let test = "a_stack_over_the_limit_of_writes_is_refused_before_anything_is_destroyed";
    let Some(loops) = Loops::take(test, 2) else { return };
    let (home, device) = (Home::new(), formatted(&loops, 128));
    let before = device.hash();
    let sets = ["stack.filesystem=ext4", "run.max_writes=16MiB"];
    let outcome = Outcome::of(&on_devices(&home, &[&device.path], &sets).output().unwrap()).expect(2);
    assert!(outcome.stderr.contains("run.max_writes is 16MiB"), "{outcome:?}");
    assert_eq!(device.hash(), before, "its content is what it was");
    assert_nothing_left(&home);
}

#[test]
fn what_is_last_written_to_a_preconditioned_drive_are_random_pages() {
    let test = "what_is_last_written_to_a_preconditioned_drive_are_random_pages";
    let Some(loops) = Loops::take(test, 2) else { return };
    let (home, device) = (Home::new(), loops.blank(256));
    let before = device.block_bytes().1;
    let sets = ["stack.filesystem=ext4", "stack.state=preconditioned"];
    let mut recording = on_devices(&home, &[&device.path], &sets);
    Outcome::of(&recording.arg("--verify").output().unwrap()).expect(0);
    let circumstances = &json_file(&home.path("out/host.json"))["circumstances"];
    assert_eq!(circumstances["last"], "at_random", "{circumstances}");
    // One sequential pass, then data and WAL sequentially, and twice at random.
    let data = circumstances["data_bytes"].as_u64().unwrap();
    let written = device.block_bytes().1 - before;
    assert!(written >= (256 << 20) + 3 * data, "{written} with {data} of data");
    assert_nothing_left(&home);
}

#[test]
fn check_refuses_what_a_run_refuses() {
    let Some(loops) = Loops::take("check_refuses_what_a_run_refuses", 3) else { return };
    let home = Home::new();
    let ext4 = "stack.filesystem=ext4";
    for (size, sets, words) in [
        ("16MiB", &[ext4][..], "files of 16.0 MiB are too small to build on"),
        ("96MiB", &["stack.filesystem=xfs"], "too small for xfs"),
        ("96MiB", &[ext4, "stack.data=1GiB"], "do not fit"),
        ("16TiB", &[ext4], "the files of the loop devices take"),
        ("96MiB", &[ext4, "run.max_writes=16MiB"], "run.max_writes is 16MiB"),
        ("96MiB", &[ext4, "wal.target=/tmp/wal"], "wal.target names a place"),
        ("96MiB", &["stack.loops=on", "stack.use=50%"], "stack.use"),
        // Errors that only mkfs finds, or the kernel when it mounts.
        ("96MiB", &[ext4, "stack.mkfs_options=-N 4000000000"], "too big for a filesystem"),
        ("96MiB", &[ext4, "stack.mkfs_options=-C 16k"], "requires the bigalloc feature"),
        ("96MiB", &[ext4, "stack.mkfs_options=-O inline_data -I 128"], "too small for inline data"),
        (
            "320MiB",
            &["stack.filesystem=xfs", "stack.mkfs_options=-d sunit=3"],
            "both data sunit and data swidth",
        ),
        (
            "320MiB",
            &["stack.filesystem=xfs", "stack.mkfs_options=-d agcount=4000"],
            "agsize (21 blocks) too small",
        ),
        ("128MiB", &["stack.filesystem=btrfs", "stack.mkfs_options=-n 3000"], "illegal nodesize 3000"),
    ] {
        let files = format!("files = {{ dir = {:?}, count = 1, size = {size:?} }}", home.target());
        let mut record = on_target(&home, &files, sets);
        let mut plan = on_target(&home, &files, sets);
        plan.arg("--dry-run");
        let mut check = command(&home, &["check", home.path("mine.toml").to_str().unwrap()]);
        check.args(sets.iter().map(|set| format!("--set={set}")));
        for command in [&mut record, &mut plan, &mut check] {
            let outcome = Outcome::of(&command.output().unwrap());
            assert!(outcome.status == Some(2) && outcome.stderr.contains(words), "{words}: {outcome:?}");
        }
        assert_nothing_left(&home);
    }
    // Only the run itself asks for consent.
    let device = formatted(&loops, 128);
    drop(on_devices(&home, &[&device.path], &[]));
    let profile = home.path("mine.toml");
    let check = ["check", profile.to_str().unwrap(), "--set=stack.filesystem=ext4"];
    let outcome = program(&home, &check).expect(0);
    assert!(outcome.stdout.contains(&format!("--destroy {}", device.path)), "{outcome:?}");
}

#[test]
fn what_runs_is_what_the_dry_run_has_shown() {
    let Some(_loops) = Loops::take("what_runs_is_what_the_dry_run_has_shown", 2) else { return };
    let stacks: [&[&str]; 2] = [
        &ON_EXT4,
        &[
            "target.files.count=2",
            "target.files.size=160MiB",
            "stack.raid=btrfs1",
            "stack.filesystem=btrfs",
            "stack.copy_on_write=on",
        ],
    ];
    for sets in stacks {
        let home = Home::new();
        let log = home.path("called");
        let path = noted(&home, &log);
        let record = |out: &str, more: &[&str]| {
            let mut command = home.record(out, "1s", &[&MODEST[..], sets].concat());
            command.env("XDG_STATE_HOME", home.path("state")).env(TOOLS, &path).args(more);
            Outcome::of(&command.output().unwrap()).expect(0)
        };
        let plan = record("none", &["--dry-run", "--json"]).json();
        let all: Vec<_> =
            plan["steps"].as_array().unwrap().iter().map(|step| step["command"].as_str().unwrap()).collect();
        let by_itself =
            |line: &&&str| ["mkdir ", "fallocate ", "fill "].iter().any(|word| line.starts_with(word));
        let shown: Vec<_> = all.iter().filter(|line| !by_itself(line)).map(|line| alike(line)).collect();
        assert!(
            !log.exists() || !fs::read_to_string(&log).unwrap().contains("mkfs"),
            "a dry run does nothing"
        );
        let _ = fs::remove_file(&log);
        record("out", &[]);
        let called = fs::read_to_string(&log).unwrap();
        // Up to the undo; and without losetup's repeated checks of the loop devices' files.
        let building = called.lines().take_while(|line| !line.starts_with("umount "));
        let made = building.filter(|line| !line.starts_with("losetup --noheadings "));
        assert_eq!(made.map(alike).collect::<Vec<_>>(), shown, "{called}");
        assert!(shown.len() >= 3, "{shown:?}");
        assert_nothing_left(&home);
    }
}

#[test]
fn the_summary_is_printed_though_the_stack_can_not_be_taken_down() {
    let test = "the_summary_is_printed_though_the_stack_can_not_be_taken_down";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let home = Home::new();
    let running = Running::start(&mut on_files(&home, "1s"));
    let mounts = home.path("state/stacktune/mnt");
    // Somebody has a file open when it is to be taken down.
    let held = wait_for("the data file", || {
        let mount = fs::read_dir(&mounts).ok()?.next()?.ok()?.path();
        File::open(mount.join("data-0")).ok()
    });
    let outcome = running.outcome().expect(1);
    assert!(outcome.stderr.contains("could be undone"), "{outcome:?}");
    let summary = outcome.json();
    assert!(summary["total"]["bytes"].as_u64() > Some(0), "{summary:#}");
    drop(held);
    program(&home, &["cleanup"]).expect(0);
    assert_nothing_left(&home);
}

#[test]
fn a_signal_while_a_tool_works_lets_it_finish_and_undoes_all() {
    let Some(_loops) = Loops::take("a_signal_while_a_tool_works_lets_it_finish_and_undoes_all", 2) else {
        return;
    };
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let home = Home::new();
        let mut command = on_files(&home, "1m");
        // Like a terminal, which sends it to the whole process group.
        command.env(TOOLS, slow_mkfs(&home)).process_group(0);
        let running = Running::start(&mut command);
        wait_for("mkfs", || home.path("mkfs-begun").exists().then_some(()));
        kill_process_group(Pid::from_raw(running.pid().cast_signed()).unwrap(), signal).unwrap();
        let outcome = running.outcome().expect(130);
        assert!(home.path("mkfs-ended").exists(), "the tool was let finish: {outcome:?}");
        assert!(outcome.stderr.contains("everything built so far is undone"), "{outcome:?}");
        assert_nothing_left(&home);
    }
}

#[test]
fn where_the_terminal_of_a_recording_hangs_up_what_was_built_is_undone() {
    let test = "where_the_terminal_of_a_recording_hangs_up_what_was_built_is_undone";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let home = Home::new();
    let (state, path, out) = (home.path("state"), slow_mkfs(&home), home.path("out"));
    let environment = [("XDG_STATE_HOME", state.to_str().unwrap()), (TOOLS, &path)];
    let sets: Vec<_> = MODEST.iter().chain(&ON_EXT4).copied().collect();
    let mut arguments =
        ["record", "demo", "--for", "1m", "--out", out.to_str().unwrap()].map(String::from).to_vec();
    arguments.extend(home.sets(&sets));
    let terminal = Terminal::start(&home, &arguments, ALL, &environment);
    wait_for("mkfs", || home.path("mkfs-begun").exists().then_some(()));
    assert_eq!(terminal.hang_up(), 130);
    assert!(home.path("mkfs-ended").exists());
    assert_nothing_left(&home);
}

/// A loop device set read-only, which would carry over to the next one of its number.
struct ReadOnly<'a>(&'a Loop);

impl<'a> ReadOnly<'a> {
    fn set(device: &'a Loop) -> Self {
        run("blockdev", &["--setro", &device.path]);
        Self(device)
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        let _ = Command::new("blockdev").args(["--setrw", &self.0.path]).status();
    }
}

#[test]
fn devices_that_are_no_members_are_refused_and_untouched() {
    let Some(loops) = Loops::take("devices_that_are_no_members_are_refused_and_untouched", 3) else { return };
    let home = Home::new();
    let (good, read_only, small) = (formatted(&loops, 192), formatted(&loops, 192), formatted(&loops, 24));
    let _read_only = ReadOnly::set(&read_only);
    let link = home.path("another-name");
    symlink(&good.path, &link).unwrap();
    let link = link.to_str().unwrap();
    let before = [&good, &read_only, &small].map(Loop::hash);
    for raid in ["stack.raid=btrfs0", "stack.raid=btrfs1"] {
        for (devices, status, words) in [
            ([good.path.as_str(), &read_only.path], 3, "read-only"),
            ([&good.path, &small.path], 3, "too small"),
            ([&good.path, link], 2, "are the same device"),
            ([&good.path, "/dev/no-such-drive"], 2, "there is no block device /dev/no-such-drive"),
        ] {
            let sets = ["stack.filesystem=btrfs", raid, "stack.data=32MiB", "stack.wal=16MiB"];
            let outcome = Outcome::of(&on_devices(&home, &devices, &sets).output().unwrap());
            assert!(outcome.stderr.contains(words), "{raid}, {words}: {outcome:?}");
            assert_eq!(outcome.status, Some(status), "{outcome:?}");
            assert_eq!([&good, &read_only, &small].map(Loop::hash), before, "{words}");
            assert_nothing_left(&home);
        }
    }
}

/// Somebody's disk: a device that holds the root folder, or the program's state.
#[test]
fn a_device_that_the_system_lives_on_is_refused_and_untouched() {
    let Some(loops) = Loops::take("a_device_that_the_system_lives_on_is_refused_and_untouched", 2) else {
        return;
    };
    let home = Home::new();
    let disk = formatted(&loops, 192);
    let mount = Mount::of(&disk, "noatime");
    let theirs = mount.at.path().join("theirs");
    fs::write(&theirs, "kept").unwrap();
    let refused = |command: &mut Command| {
        let outcome = Outcome::of(&command.output().unwrap()).expect(3);
        let why = ["in use: mounted at", "the system's own drive"];
        assert!(why.iter().any(|why| outcome.stderr.contains(why)), "{outcome:?}");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "kept");
    };
    let sets = ["stack.filesystem=ext4"];
    refused(&mut on_devices(&home, &[&disk.path], &sets));
    // The program's own state is on it.
    let mut on_itself = on_devices(&home, &[&disk.path], &sets);
    refused(on_itself.env("XDG_STATE_HOME", mount.at.path().join("state")));
    if let Some(root) = root_device() {
        refused(&mut on_devices(&home, &[&root], &sets));
    }
    assert_nothing_left(&home);
}

/// The node of the root folder's device, if it has one here.
fn root_device() -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/"))?;
    let source = root.split(" - ").nth(1)?.split(' ').nth(1)?;
    (source.starts_with("/dev/") && Path::new(source).exists()).then(|| source.to_owned())
}

#[test]
fn on_a_full_disk_nothing_is_built_or_destroyed() {
    let Some(loops) = Loops::take("on_a_full_disk_nothing_is_built_or_destroyed", 2) else { return };
    let (home, device, disk) = (Home::new(), formatted(&loops, 128), formatted(&loops, 16));
    let before = device.hash();
    let full = Mount::of(&disk, "noatime");
    fill(&full.at.path().join("fills-it"));
    // The journal has no room, and nothing may be done without one.
    let mut journal = on_devices(&home, &[&device.path], &["stack.filesystem=ext4"]);
    let outcome = Outcome::of(&journal.env("XDG_STATE_HOME", full.at.path()).output().unwrap()).expect(1);
    assert!(outcome.stderr.contains("no space left on device"), "{outcome:?}");
    assert_eq!(device.hash(), before);
    // Nor do the members' files have room.
    let dir = full.at.path().join("target");
    let files = format!("files = {{ dir = {:?}, count = 1, size = \"96MiB\" }}", dir.to_str().unwrap());
    let mut members = on_target(&home, &files, &["stack.filesystem=ext4"]);
    let outcome = Outcome::of(&members.output().unwrap());
    assert!(outcome.stderr.contains("has 0 B free"), "{outcome:?}");
    assert_eq!(outcome.status, Some(2), "{outcome:?}");
    assert!(!full.at.path().join("target").exists());
    assert_nothing_left(&home);
}

/// Writes a file until the disk is full.
fn fill(path: &PathBuf) {
    use std::io::Write;
    let mut file = File::create(path).unwrap();
    for bytes in [1 << 20, 1024] {
        while file.write_all(&vec![1; bytes]).is_ok() {}
    }
    file.sync_all().unwrap();
}
