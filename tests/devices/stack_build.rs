//! Stacks built on real loop devices, torn down, broken and cleaned up: nothing is left, and nothing of
//! anybody else's is touched.

use std::fs;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::devices::{Loops, Mount, run};
use crate::common::stacks::{Ground, Nobodys, confirmed, new_id, of_steps, plan};
use crate::common::{self, this_test};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use stacktune::testing::runs::session::Advance;
use stacktune::testing::settings::{Filesystem, Raid};
use stacktune::testing::stack::build;
use stacktune::testing::stack::plan::{Exposed, Step};
use stacktune::testing::stack::runner::Runner;
use stacktune::testing::stack::undo::{self, CleanupRequest, StackState};

/// Tells a helper process, which runs this same binary, what to build.
const HELPER: &str = "STACKTUNE_TEST_BUILD";
/// How often a process is killed at a random moment; more often in the soak.
fn kills() -> u32 {
    if common::is_soak() { 50 } else { 12 }
}

/// Never stops anything.
pub fn go_on(_: &Advance) -> bool {
    true
}

/// A folder of tools that take precedence over the real ones: name and shell script.
fn fakes(ground: &Ground, tools: &[(&str, &str)]) -> Runner {
    let dir = ground.path().join("tools");
    fs::create_dir_all(&dir).unwrap();
    for (name, script) in tools {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    Runner::in_folders(std::iter::once(dir).chain(system).collect())
}

pub fn clean(ground: &Ground, ids: &[&str]) -> Vec<undo::Cleaned> {
    let wanted =
        CleanupRequest { ids: ids.iter().map(ToString::to_string).collect(), ..CleanupRequest::default() };
    undo::cleanup(&ground.state(), &wanted, (&Runner::default(), &Nobodys), &mut go_on).unwrap()
}

/// The type of file system mounted where the plan exposes its files.
pub fn mounted_as(dir: &std::path::Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(&format!(" {} ", dir.display())))?;
    Some(line.split(" - ").nth(1)?.split(' ').next()?.to_owned())
}

fn builds_and_goes(test: &str, filesystem: Filesystem, raid: Raid, name: &str) {
    let Some(_loops) = Loops::take(test, 2) else { return };
    let (ground, id) = (Ground::new(), new_id());
    let plan = ground.plan(&id, filesystem, raid);
    let mount = ground.state().join("mnt").join(&id);
    let mut seen: Vec<Advance> = Vec::new();
    let mut watch = |advance: &Advance| {
        seen.push(advance.clone());
        true
    };
    let built = build::build(confirmed(plan.clone()), &ground.site(), &mut watch).unwrap();
    assert_eq!(mounted_as(&mount).as_deref(), Some(name));
    fs::write(mount.join("data-0"), "stacktune volume").unwrap();
    built.tear_down(&mut watch).unwrap();
    ground.assert_nothing_left(&id);
    // Each step was announced in order, and then each undo in reverse order.
    seen.dedup_by_key(|advance| (advance.step, advance.undoing));
    let built: Vec<usize> = seen.iter().filter(|advance| !advance.undoing).map(|a| a.step).collect();
    assert_eq!(built, (0..plan.steps.len()).collect::<Vec<_>>());
    let undone: Vec<usize> = seen.iter().filter(|advance| advance.undoing).map(|a| a.step).collect();
    assert_eq!(undone, (0..plan.steps.len()).rev().collect::<Vec<_>>());
}

#[test]
fn ext4_is_built_and_nothing_is_left() {
    builds_and_goes("ext4_is_built_and_nothing_is_left", Filesystem::Ext4, Raid::None, "ext4");
}

#[test]
fn xfs_is_built_and_nothing_is_left() {
    builds_and_goes("xfs_is_built_and_nothing_is_left", Filesystem::Xfs, Raid::None, "xfs");
}

#[test]
fn btrfs_is_built_and_nothing_is_left() {
    builds_and_goes("btrfs_is_built_and_nothing_is_left", Filesystem::Btrfs, Raid::None, "btrfs");
}

#[test]
fn striped_btrfs_is_built_and_nothing_is_left() {
    builds_and_goes("striped_btrfs_is_built_and_nothing_is_left", Filesystem::Btrfs, Raid::Btrfs0, "btrfs");
}

#[test]
fn mirrored_btrfs_is_built_and_nothing_is_left() {
    builds_and_goes("mirrored_btrfs_is_built_and_nothing_is_left", Filesystem::Btrfs, Raid::Btrfs1, "btrfs");
}

#[test]
fn a_failing_tool_at_any_step_leaves_nothing_and_is_quoted() {
    let Some(_loops) = Loops::take("a_failing_tool_at_any_step_leaves_nothing_and_is_quoted", 2) else {
        return;
    };
    let losetup = |nth: u32| {
        format!(
            "case $1 in --find) echo >>$0.calls; [ $(wc -l <$0.calls) -lt {nth} ] || {{ echo no device >&2; exit 5; }};; esac
             exec /usr/sbin/losetup \"$@\""
        )
    };
    let (first, second) = (losetup(1), losetup(2));
    let tools = [
        ("losetup", first.as_str(), "step 3 of 8", "no device"),
        ("losetup", second.as_str(), "step 5 of 8", "no device"),
        ("mkfs.btrfs", "echo bad blocks; exit 1", "step 6 of 8", "bad blocks"),
        // It has already done its work when it fails.
        ("mkfs.btrfs", "/usr/sbin/mkfs.btrfs \"$@\"; echo late >&2; exit 9", "step 6 of 8", "late"),
        ("mount", "echo wrong fs type >&2; exit 32", "step 8 of 8", "wrong fs type"),
        ("mount", "/usr/bin/mount \"$@\"; echo late >&2; exit 32", "step 8 of 8", "late"),
    ];
    for (tool, script, step, words) in tools {
        let (ground, id) = (Ground::new(), new_id());
        let runner = fakes(&ground, &[(tool, script)]);
        let plan = ground.plan(&id, Filesystem::Btrfs, Raid::Btrfs1);
        let error = build::build(confirmed(plan), &ground.site_with(runner), &mut go_on).unwrap_err();
        assert_eq!(error.exit_status(), 1);
        for part in [step, words, tool, "everything built so far is undone"] {
            assert!(error.what.contains(part), "{part}: {error}");
        }
        ground.assert_nothing_left(&id);
    }
}

#[test]
fn the_watch_stops_it_at_any_step_and_nothing_is_left() {
    let Some(_loops) = Loops::take("the_watch_stops_it_at_any_step_and_nothing_is_left", 2) else { return };
    for stop_at in 0..6 {
        let (ground, id) = (Ground::new(), new_id());
        let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
        assert_eq!(plan.steps.len(), 6);
        let mut watch = |advance: &Advance| advance.step != stop_at;
        let error = build::build(confirmed(plan), &ground.site(), &mut watch).unwrap_err();
        assert_eq!(error.exit_status(), 130, "{error}");
        ground.assert_nothing_left(&id);
    }
    // In the middle of a step: the tool may finish, and is then undone.
    let (ground, id) = (Ground::new(), new_id());
    let runner = fakes(&ground, &[("mkfs.ext4", "sleep 0.3; exec /usr/sbin/mkfs.ext4 \"$@\"")]);
    let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    let mut looks = 0;
    let mut watch = |advance: &Advance| {
        looks += usize::from(advance.command.starts_with("mkfs.ext4"));
        looks < 2
    };
    let error = build::build(confirmed(plan), &ground.site_with(runner), &mut watch).unwrap_err();
    assert!(error.what.contains("stopped in step 4 of 6"), "{error}");
    ground.assert_nothing_left(&id);
}

#[test]
fn a_full_disk_under_the_journal_or_the_members_is_undone() {
    let Some(loops) = Loops::take("a_full_disk_under_the_journal_or_the_members_is_undone", 3) else {
        return;
    };
    let disk = loops.device(24, |file| drop(run("mkfs.ext4", &["-q", file.to_str().unwrap()])));
    let mount = Mount::of(&disk, "noatime");
    let id = new_id();
    let dir = mount.at.path().join(format!("stacktune-{id}"));
    let file = dir.join("member");
    let steps = vec![Step::MakeFolder { dir: dir.clone() }, Step::MakeFile { file, bytes: 1 << 30 }];
    let ground = Ground::new();
    let exposed = Exposed::Devices(Vec::new());
    let error =
        build::build(confirmed(of_steps(&id, steps, exposed)), &ground.site(), &mut go_on).unwrap_err();
    assert!(error.what.contains("no space left on device"), "{error}");
    ground.assert_nothing_left(&id);
    assert!(!dir.exists());
}

/// The helper process: builds what its environment names, and dies by its own hand or is killed.
#[test]
fn helper_process() {
    let Some(order) = std::env::var_os(HELPER) else { return };
    let order = order.into_string().unwrap();
    let [ground, id, kind, die_at] = order.split('|').collect::<Vec<_>>().try_into().unwrap();
    let (filesystem, raid) = match kind {
        "ext4" => (Filesystem::Ext4, Raid::None),
        _ => (Filesystem::Btrfs, Raid::Btrfs1),
    };
    let ground = Path::new(ground);
    let die_at: Option<usize> = die_at.parse().ok();
    let (mut begun, mut last) = (0, None);
    let mut watch = |advance: &Advance| {
        // Once per step and per undo: on a slow host the watch is also called while a tool works.
        if last.replace((advance.step, advance.undoing)) != Some((advance.step, advance.undoing)) {
            if Some(begun) == die_at {
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            }
            begun += 1;
        }
        true
    };
    let site = stacktune::testing::stack::build::BuildContext {
        state_dir: ground.join("state/stacktune"),
        profile: "mine".into(),
        runner: fakes_of(ground),
        own_data: &Nobodys,
    };
    loop {
        let plan = plan(ground, id, filesystem, raid);
        let built = build::build(confirmed(plan), &site, &mut watch).unwrap();
        built.tear_down(&mut watch).unwrap();
    }
}

/// The test's fakes, ahead of the real tools.
fn fakes_of(ground: &Path) -> Runner {
    let folders =
        [ground.join("tools"), "/usr/sbin".into(), "/sbin".into(), "/usr/bin".into(), "/bin".into()];
    Runner::in_folders(folders.to_vec())
}

fn helper(ground: &Ground, id: &str, kind: &str, die_at: &str) -> Command {
    let mut command = this_test(module_path!(), "helper_process");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.env(HELPER, format!("{}|{id}|{kind}|{die_at}", ground.path().display()));
    command
}

#[test]
fn a_build_that_is_killed_at_any_step_is_cleaned_up() {
    let Some(_loops) = Loops::take("a_build_that_is_killed_at_any_step_is_cleaned_up", 2) else { return };
    // The watch is called before each of the six steps, and before each of their undos.
    for die_at in 0..12 {
        let (ground, id) = (Ground::new(), new_id());
        let died = helper(&ground, &id, "ext4", &die_at.to_string()).status().unwrap();
        assert!(!died.success());
        let left = undo::leftovers(&ground.state()).unwrap();
        assert_eq!(left.len(), 1, "killed at {die_at}");
        assert_eq!((left[0].state, left[0].id.as_str()), (StackState::Dead, id.as_str()));
        let cleaned = clean(&ground, &[]);
        assert_eq!(cleaned[0].problem, None, "killed at {die_at}");
        ground.assert_nothing_left(&id);
        assert!(clean(&ground, &[]).is_empty(), "once more does nothing");
    }
}

#[test]
fn a_build_that_is_killed_at_any_moment_is_cleaned_up_and_no_more() {
    let Some(loops) = Loops::take("a_build_that_is_killed_at_any_moment_is_cleaned_up_and_no_more", 3) else {
        return;
    };
    // Somebody else's device, mount and file, beside the stack's.
    let disk = loops.device(24, |file| drop(run("mkfs.ext4", &["-q", file.to_str().unwrap()])));
    let mount = Mount::of(&disk, "noatime");
    fs::write(mount.at.path().join("theirs"), "kept").unwrap();
    // Measures building and taking down once, so that the moments cover all of it.
    let (ground, id) = (Ground::new(), new_id());
    let began = Instant::now();
    let plan = ground.plan(&id, Filesystem::Btrfs, Raid::Btrfs1);
    build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap().tear_down(&mut go_on).unwrap();
    let (whole, seed) = (began.elapsed(), rand::random::<u64>());
    let mut moments = StdRng::seed_from_u64(seed);
    let (mut left, mut kill) = (0, 0);
    let kills = kills();
    // On a busy machine more of the moments fall before the build, so more are tried.
    while kill < kills || left <= kills / 2 && kill < 3 * kills {
        let (ground, id) = (Ground::new(), new_id());
        let theirs = ground.path().join("theirs");
        fs::write(&theirs, "kept").unwrap();
        let mut child = helper(&ground, &id, "btrfs1", "never").spawn().unwrap();
        let moment = whole.mul_f64(moments.random_range(0.0..1.5));
        std::thread::sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        for cleaned in clean(&ground, &[]) {
            assert_eq!(cleaned.problem, None, "seed {seed}, kill {kill} after {moment:?}");
            left += 1;
        }
        ground.assert_nothing_left(&id);
        assert_eq!(fs::read_to_string(theirs).unwrap(), "kept");
        kill += 1;
    }
    println!("seed {seed}: {left} of {kill} left something to clean up, within {whole:?}");
    assert!(left > kills / 2, "seed {seed}: only {left} of {kill} were killed while a stack stood");
    assert_eq!(fs::read_to_string(mount.at.path().join("theirs")).unwrap(), "kept");
    assert!(mounted_as(mount.at.path()).is_some());
}

#[test]
fn a_tool_that_outlives_its_killed_process_is_waited_for() {
    let Some(_loops) = Loops::take("a_tool_that_outlives_its_killed_process_is_waited_for", 2) else {
        return;
    };
    let (ground, id) = (Ground::new(), new_id());
    fakes(&ground, &[("mkfs.ext4", "kill -9 $PPID; sleep 0.5; exec /usr/sbin/mkfs.ext4 \"$@\"")]);
    helper(&ground, &id, "ext4", "never").status().unwrap();
    let left = undo::leftovers(&ground.state()).unwrap();
    assert_eq!(left[0].state, StackState::Ending);
    assert_eq!(clean(&ground, &[])[0].problem, None);
    ground.assert_nothing_left(&id);
}
