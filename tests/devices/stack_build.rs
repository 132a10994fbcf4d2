//! Stacks built on real loop devices, torn down, broken and cleaned up: nothing is left, and nothing
//! of anybody else's is touched.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common;
use crate::common::devices::{Loop, Loops, Mount, run};
use crate::common::program::Home;
use crate::common::stacks::{Ground, Nobodys, confirmed, new_id, of_steps, plan, traces};
use crate::common::this_test;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use stacktune::testing::error::Error;
use stacktune::testing::host::Facts;
use stacktune::testing::runs::session::Advance;
use stacktune::testing::settings::{Filesystem, Raid};
use stacktune::testing::stack::build;
use stacktune::testing::stack::devices::{BlockDevice, Drive};
use stacktune::testing::stack::guard::{self, Consent};
use stacktune::testing::stack::id::StackId;
use stacktune::testing::stack::journal::{Journal, Undo};
use stacktune::testing::stack::plan::{Destroyed, Endurance, Exposed, Plan, Step};
use stacktune::testing::stack::runner::Runner;
use stacktune::testing::stack::undo::{self, CleanupRequest, StackState};

/// Tells a helper process, which is this program, what to build.
const HELPER: &str = "STACKTUNE_TEST_BUILD";
/// How often a process is killed at a random moment; in the soak more often.
fn kills() -> u32 {
    if common::is_soak() { 50 } else { 12 }
}

/// Lets everything go on.
fn go_on(_: &Advance) -> bool {
    true
}

/// A folder of tools that stand before the real ones: name and shell script.
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

fn clean(ground: &Ground, ids: &[&str]) -> Vec<undo::Cleaned> {
    let wanted =
        CleanupRequest { ids: ids.iter().map(ToString::to_string).collect(), ..CleanupRequest::default() };
    undo::cleanup(&ground.state(), &wanted, &Runner::default(), &mut go_on).unwrap()
}

/// What is mounted where the plan exposes its files.
fn mounted_as(dir: &std::path::Path) -> Option<String> {
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
    fs::write(mount.join("data-0"), "of the load").unwrap();
    built.tear_down(&mut watch).unwrap();
    ground.assert_nothing_left(&id);
    // Each step was announced in order, and then its undo in reverse.
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
        // It has done its work by the time it fails.
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
    // In the middle of a step: its tool is let finish, and is undone then.
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

/// The helper process: builds what it is asked to, and dies by its own hand or its killer's.
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
        // Once for each step and each undo: where the host is slow it is asked while a tool works, too.
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

/// The fakes that the test has put there, before the real tools.
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
    // Its watch is asked before each of the six steps, and before each of their undos.
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
    // How long it takes to build and take down once, so that the moments lie in all of it.
    let (ground, id) = (Ground::new(), new_id());
    let began = Instant::now();
    let plan = ground.plan(&id, Filesystem::Btrfs, Raid::Btrfs1);
    build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap().tear_down(&mut go_on).unwrap();
    let (whole, seed) = (began.elapsed(), rand::random::<u64>());
    let mut moments = StdRng::seed_from_u64(seed);
    let mut left = 0;
    let kills = kills();
    for kill in 0..kills {
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
    }
    println!("seed {seed}: {left} of {kills} left something to clean up, within {whole:?}");
    assert!(left > kills / 2, "seed {seed}: only {left} of {kills} were killed while a stack stood");
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

#[test]
fn a_busy_mount_is_reported_with_its_holder_and_removed_later() {
    let Some(_loops) = Loops::take("a_busy_mount_is_reported_with_its_holder_and_removed_later", 2) else {
        return;
    };
    let (ground, id) = (Ground::new(), new_id());
    let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    let built = build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap();
    let mount = ground.state().join("mnt").join(&id);
    let held = File::create(mount.join("wal")).unwrap();
    let error = built.tear_down(&mut go_on).unwrap_err();
    assert!(error.what.contains("target is busy"), "{error}");
    let process = format!("process {} (", std::process::id());
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains(&process)), "{error}");
    // All below it still stands.
    assert_eq!(mounted_as(&mount).as_deref(), Some("ext4"));
    drop(held);
    assert_eq!(clean(&ground, &[&id])[0].problem, None);
    ground.assert_nothing_left(&id);
}

#[test]
fn what_others_put_into_a_stack_stays_theirs() {
    let Some(loops) = Loops::take("what_others_put_into_a_stack_stays_theirs", 3) else { return };
    let (ground, id) = (Ground::new(), new_id());
    let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    let built = build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap();
    let mount = ground.state().join("mnt").join(&id);
    // A mount over the stack's, and a file in its folder.
    let disk = loops.device(24, |file| drop(run("mkfs.ext4", &["-q", file.to_str().unwrap()])));
    run("mount", &[&disk.path, mount.to_str().unwrap()]);
    let theirs = ground.target().join(format!("stacktune-{id}")).join("theirs");
    fs::write(&theirs, "kept").unwrap();
    let error = built.tear_down(&mut go_on).unwrap_err();
    assert!(error.what.contains(&format!("{} is mounted over", disk.path)), "{error}");
    run("umount", &[mount.to_str().unwrap()]);
    // A file on the stack's own file system.
    let inside = mount.join("precious");
    fs::write(&inside, "kept").unwrap();
    let problem = clean(&ground, &[])[0].problem.clone().unwrap();
    assert!(problem.contains("holds precious, which stacktune did not put there"), "{problem}");
    fs::remove_file(inside).unwrap();
    let problem = clean(&ground, &[])[0].problem.clone().unwrap();
    assert!(problem.contains("is not empty: it holds theirs"), "{problem}");
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "kept");
    fs::remove_file(theirs).unwrap();
    assert_eq!(clean(&ground, &[])[0].problem, None);
    ground.assert_nothing_left(&id);
}

#[test]
fn a_kept_stack_stands_until_it_is_named_and_its_commands_remove_it() {
    let Some(_loops) = Loops::take("a_kept_stack_stands_until_it_is_named_and_its_commands_remove_it", 2)
    else {
        return;
    };
    for by_hand in [false, true] {
        let (ground, id) = (Ground::new(), new_id());
        let plan = ground.plan(&id, Filesystem::Btrfs, Raid::Btrfs0);
        let commands = build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap().keep().unwrap();
        assert!(clean(&ground, &[]).is_empty());
        assert!(!traces(&id).is_empty());
        let left = undo::leftovers(&ground.state()).unwrap();
        assert_eq!((left[0].state, left[0].stands.len()), (StackState::Kept, 8));
        if by_hand {
            commands.iter().for_each(|command| drop(run("sh", &["-ec", command])));
            assert!(traces(&id).is_empty());
        }
        assert_eq!(clean(&ground, &[&id])[0].problem, None);
        ground.assert_nothing_left(&id);
    }
}

/// Also where it is not mounted any more, as after a boot, and where a name is only like ours.
#[test]
fn what_was_put_on_a_kept_stack_is_found_although_it_is_not_mounted() {
    let name = "what_was_put_on_a_kept_stack_is_found_although_it_is_not_mounted";
    let Some(_loops) = Loops::take(name, 2) else { return };
    for filesystem in [Filesystem::Ext4, Filesystem::Xfs, Filesystem::Btrfs] {
        let (ground, id) = (Ground::new(), new_id());
        let plan = ground.plan(&id, filesystem, Raid::None);
        let commands = build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap().keep().unwrap();
        let mount = ground.state().join("mnt").join(&id);
        let at = mount.to_str().unwrap();
        let theirs = mount.join("data-backup.tar");
        fs::write(&theirs, "precious").unwrap();
        run("umount", &[at]);
        let problem = clean(&ground, &[&id])[0].problem.clone().unwrap();
        assert!(problem.contains("holds data-backup.tar, which stacktune did not put there"), "{problem}");
        // As after a boot: not attached either.
        let node = commands.iter().find_map(|command| command.strip_prefix("wipefs --all ")).unwrap();
        run("losetup", &["--detach", node]);
        let problem = clean(&ground, &[&id])[0].problem.clone().unwrap();
        assert!(problem.contains("holds data-backup.tar, which stacktune did not put there"), "{problem}");
        let file = ground.target().join(format!("stacktune-{id}/member-0"));
        let node = &run("losetup", &["--find", "--show", file.to_str().unwrap()]);
        // The mount point was empty, and has gone already.
        let elsewhere = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (at, theirs) = (elsewhere.path().to_str().unwrap(), elsewhere.path().join("data-backup.tar"));
        run("mount", &[node, at]);
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "precious");
        fs::remove_file(&theirs).unwrap();
        run("umount", &[at]);
        run("losetup", &["--detach", node]);
        assert_eq!(clean(&ground, &[&id])[0].problem, None);
        ground.assert_nothing_left(&id);
    }
}

/// The loop device as a drive that the operator gave.
fn drive(device: &Loop) -> Drive {
    let devices = Facts::read_devices();
    let found = devices.into_iter().find(|found| found.path == Path::new(&device.path)).unwrap();
    Drive {
        name: found.name,
        path: found.path,
        number: found.number,
        model: found.model,
        serial: found.serial,
        size_bytes: found.size_bytes,
    }
}

/// A plan of these steps on drives, which destroys what they hold now, with consent to that.
fn on_drives(id: &str, drives: &[Drive], mut steps: Vec<Step>) -> Plan {
    for step in &mut steps {
        if let Step::MakeFilesystem { uuid, .. } = step {
            *uuid = StackId(id.into()).uuid(4, 0);
        }
    }
    let facts = Facts::read(Path::new("/"));
    let destroyed = |drive: &Drive| Destroyed {
        drive: drive.clone(),
        content: guard::examine(&drive.path.display().to_string(), &facts, 0, &Nobodys).unwrap().content,
        writes_bytes: 0,
        endurance: Endurance::default(),
    };
    let destroys = drives.iter().map(destroyed).collect();
    Plan {
        destroys,
        ..of_steps(id, steps, Exposed::Devices(drives.iter().cloned().map(BlockDevice::Drive).collect()))
    }
}

fn consented(plan: Plan) -> stacktune::testing::stack::plan::Confirmed {
    let names: Vec<String> =
        plan.destroys.iter().map(|destroyed| destroyed.drive.path.display().to_string()).collect();
    plan.confirm(&Consent::named(&names, &Facts::read(Path::new("/"))).unwrap()).unwrap()
}

fn blanked_btrfs(drives: &[Drive]) -> Vec<Step> {
    let blank = drives.iter().map(|drive| Step::Blank { drive: drive.clone() });
    let filesystem = Step::MakeFilesystem {
        filesystem: Filesystem::Btrfs,
        raid: Raid::Btrfs1,
        devices: drives.iter().cloned().map(BlockDevice::Drive).collect(),
        uuid: String::new(),
        options: Vec::new(),
    };
    blank.chain([filesystem]).collect()
}

#[test]
fn drives_are_blanked_built_on_and_blank_again() {
    let Some(loops) = Loops::take("drives_are_blanked_built_on_and_blank_again", 2) else { return };
    let one = loops.device(128, |file| drop(run("mkfs.ext4", &["-q", file.to_str().unwrap()])));
    let other = loops.blank(128);
    let drives = [drive(&one), drive(&other)];
    let (ground, id) = (Ground::new(), new_id());
    let plan = on_drives(&id, &drives, blanked_btrfs(&drives));
    assert!(plan.clone().confirm(&Consent::default()).is_err());
    let built = build::build(consented(plan), &ground.site(), &mut go_on).unwrap();
    for device in [&one, &other] {
        assert_eq!(run("blkid", &["-p", "-o", "value", "-s", "TYPE", &device.path]), "btrfs");
    }
    // Somebody made something else of one of them meanwhile: that is not the stack's.
    run("mkfs.ext4", &["-q", "-F", &other.path]);
    built.tear_down(&mut go_on).unwrap();
    assert_eq!(run("wipefs", &["--no-act", &one.path]), "");
    assert_eq!(run("blkid", &["-p", "-o", "value", "-s", "TYPE", &other.path]), "ext4");
    ground.assert_nothing_left(&id);
}

#[test]
fn a_drive_that_changed_or_came_into_use_is_refused_and_untouched() {
    let Some(loops) = Loops::take("a_drive_that_changed_or_came_into_use_is_refused_and_untouched", 2) else {
        return;
    };
    let device = loops.device(128, |file| drop(run("mkfs.ext4", &["-q", file.to_str().unwrap()])));
    let drives = [drive(&device)];
    let refused = |plan: Plan, words: &str| {
        let (ground, before) = (Ground::new(), device.hash());
        let id = plan.id.0.clone();
        let error = build::build(consented(plan), &ground.site(), &mut go_on).unwrap_err();
        assert_eq!(error.exit_status(), 3, "{error}");
        assert!(error.what.contains(words), "{error}");
        assert_eq!(device.hash(), before);
        ground.assert_nothing_left(&id);
    };
    let plan = || on_drives(&new_id(), &drives, blanked_btrfs(&drives));
    let with = |change: &dyn Fn(&mut Drive)| {
        let mut plan = plan();
        change(&mut plan.destroys[0].drive);
        plan.steps = blanked_btrfs(&[plan.destroys[0].drive.clone()]);
        plan
    };
    refused(with(&|drive| drive.serial = Some("S2".into())), "is not ");
    refused(with(&|drive| drive.size_bytes += 4096), "is not ");
    refused(with(&|drive| drive.number = "7:9999".into()), "is no longer there");
    // A step on a drive that was not in the plan.
    let hidden = Plan { destroys: Vec::new(), ..plan() };
    refused(hidden, "the plan did not include destroying");
    let shown = plan();
    {
        let _mount = Mount::of(&device, "ro");
        refused(shown.clone(), "is in use: mounted at");
    }
    run("mkfs.xfs", &["-q", "-f", "-d", "size=64m", "--unsupported", &device.path]);
    refused(shown, "was written to after the plan was shown");
}

#[test]
fn from_its_blanking_until_it_is_built_on_a_drive_is_held() {
    let test = "from_its_blanking_until_it_is_built_on_a_drive_is_held";
    let Some(loops) = Loops::take(test, 2) else { return };
    let (device, other) = (loops.blank(128), loops.blank(128));
    let drives = [drive(&device), drive(&other)];
    let (ground, id) = (Ground::new(), new_id());
    let (mut tried, mut refused) = (false, 0);
    let mut watch = |advance: &Advance| {
        // Right before the file system is made, and not while it is.
        if advance.step == 2 && !advance.undoing && !std::mem::replace(&mut tried, true) {
            for path in [&device.path, &other.path] {
                let made = Command::new("mkfs.ext4").args(["-q", path]).output().unwrap();
                let said = String::from_utf8_lossy(&made.stderr).into_owned();
                refused += u32::from(!made.status.success() && said.contains("in use by the system"));
            }
        }
        true
    };
    let plan = on_drives(&id, &drives, blanked_btrfs(&drives));
    let built = build::build(consented(plan), &ground.site(), &mut watch).unwrap();
    assert_eq!(refused, 2);
    built.tear_down(&mut go_on).unwrap();
    ground.assert_nothing_left(&id);
}

fn preconditioned(drive: &Drive, then: Option<Step>) -> Vec<Step> {
    let device = BlockDevice::Drive(drive.clone());
    let first =
        [Step::Blank { drive: drive.clone() }, Step::Precondition { device, bytes: drive.size_bytes }];
    first.into_iter().chain(then).collect()
}

#[test]
fn preconditioning_writes_three_times_the_size_and_goes_on_where_it_was_stopped() {
    let test = "preconditioning_writes_three_times_the_size_and_goes_on_where_it_was_stopped";
    let Some(loops) = Loops::take(test, 2) else { return };
    let device = loops.blank(64);
    let all = 3 * (64 << 20);
    let drives = [drive(&device)];
    let ground = Ground::new();
    // The next step is stopped, and what was written is known the next time.
    let build = |stop_at: usize, seen: &mut Vec<(u64, u64)>| {
        let trim = Step::Trim { device: BlockDevice::Drive(drives[0].clone()), from_bytes: 32 << 20 };
        let id = new_id();
        let plan = on_drives(&id, &drives, preconditioned(&drives[0], Some(trim)));
        let mut watch = |advance: &Advance| {
            seen.extend(advance.bytes);
            advance.step != stop_at
        };
        let before = device.block_bytes().1;
        let outcome = build::build(consented(plan), &ground.site(), &mut watch);
        (outcome.map(|built| built.tear_down(&mut go_on)), device.block_bytes().1 - before, id)
    };
    let mut seen = Vec::new();
    let (outcome, written, id) = build(2, &mut seen);
    assert_eq!(outcome.unwrap_err().exit_status(), 130);
    ground.assert_nothing_left(&id);
    assert!((all..all + (4 << 20)).contains(&written), "{written}");
    assert!(seen.iter().all(|(done, of)| done <= of && *of == all), "{seen:?}");
    // Its pages are not alike, so that no drive can leave some out.
    let image = fs::read(&device.backing).unwrap();
    let pages: std::collections::HashSet<&[u8]> = image[2 << 20..62 << 20].chunks(4096).collect();
    assert_eq!(pages.len(), (60 << 20) / 4096);

    let (outcome, written, _) = build(2, &mut seen);
    assert_eq!(outcome.unwrap_err().exit_status(), 130);
    assert!(written < 8 << 20, "it was all there: {written}");
    // Somebody wrote to it in between: it begins anew, and the stack that stands forgets it.
    run(
        "dd",
        &["if=/dev/zero", &format!("of={}", device.path), "bs=4096", "count=1", "seek=5000", "conv=fsync"],
    );
    let (outcome, written, _) = build(usize::MAX, &mut seen);
    outcome.unwrap().unwrap();
    assert!(written >= all, "{written}");
    assert!(!ground.state().join("preconditioned").exists());
    // Beyond the 32 MiB everything was discarded.
    let image = fs::read(&device.backing).unwrap();
    assert!(image[33 << 20..].iter().all(|byte| *byte == 0));
    assert!(image[8 << 20..31 << 20].iter().any(|byte| *byte != 0));
}

#[test]
fn preconditioning_that_is_stopped_half_way_goes_on_from_there() {
    let Some(loops) = Loops::take("preconditioning_that_is_stopped_half_way_goes_on_from_there", 2) else {
        return;
    };
    let device = loops.blank(128);
    let all: u64 = 3 * (128 << 20);
    let drives = [drive(&device)];
    let ground = Ground::new();
    let mut written = Vec::new();
    for stop in [true, false] {
        let id = new_id();
        let plan = on_drives(&id, &drives, preconditioned(&drives[0], None));
        let mut watch = |advance: &Advance| !stop || advance.bytes.is_none_or(|(done, _)| done == 0);
        let before = device.block_bytes().1;
        let outcome = build::build(consented(plan), &ground.site(), &mut watch);
        written.push(device.block_bytes().1 - before);
        match outcome {
            Err(error) if stop => assert!(error.what.contains("stopped in step 2 of 2"), "{error}"),
            Ok(built) => built.tear_down(&mut go_on).unwrap(),
            Err(error) => panic!("{error}"),
        }
        ground.assert_nothing_left(&id);
    }
    let margin = 16 << 20;
    assert!(written[0] > 0 && written[0] < all, "{written:?}");
    let sum: u64 = written.iter().sum();
    assert!((all..all + margin).contains(&sum), "{written:?} of {all}");
}

#[test]
fn a_queue_setting_goes_back_unless_somebody_else_has_set_it_since() {
    let Some(loops) = Loops::take("a_queue_setting_goes_back_unless_somebody_else_has_set_it_since", 2)
    else {
        return;
    };
    let device = loops.blank(16);
    let drive = drive(&device);
    let file = format!("/sys/block/{}/queue/read_ahead_kb", drive.name);
    let read = || fs::read_to_string(&file).unwrap().trim().to_owned();
    let found = read();
    let ground = Ground::new();
    for (theirs, after) in [(None, found.as_str()), (Some("68"), "68")] {
        let id = StackId(new_id());
        let mut journal = Journal::begin(&ground.state(), &id, "mine", std::slice::from_ref(&drive)).unwrap();
        // Turned twice: the first value comes back.
        for (old, new) in [(found.as_str(), "256"), ("256", "512")] {
            let undo = Undo::RestoreQueue {
                drive: drive.clone(),
                attribute: "read_ahead_kb".into(),
                old: old.into(),
                new: new.into(),
                beside: Vec::new(),
            };
            let set = || fs::write(&file, new).map_err(|error| Error::failed(error.to_string()));
            journal.act(&format!("echo {new}"), Some(undo), set).unwrap();
        }
        theirs.iter().for_each(|value| fs::write(&file, value).unwrap());
        undo::undo_all(journal, &Runner::default(), &mut go_on).unwrap();
        assert_eq!(read(), after);
        ground.assert_nothing_left(&id.0);
    }
}

#[test]
fn a_cgroup_is_left_and_removed_and_one_with_others_in_it_is_reported() {
    let test = "a_cgroup_is_left_and_removed_and_one_with_others_in_it_is_reported";
    // A tool that another test starts at the wrong moment would hold this one's journal for a while.
    let Some(_alone) = Loops::alone(test) else { return };
    let roots = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
    let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists());
    let (ground, id) = (Ground::new(), StackId(new_id()));
    let made = root.map(|root| root.join(format!("stacktune-{}", id.0)));
    let Some(dir) = made.filter(|dir| fs::create_dir(dir).is_ok()) else {
        common::skip(test, "needs a memory cgroup that can be made");
        return;
    };
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(dir.join("cgroup.procs"), other.id().to_string()).unwrap();
    let mut journal = Journal::begin(&ground.state(), &id, "mine", &[]).unwrap();
    journal
        .act("mkdir", Some(Undo::RemoveCgroup { dir: dir.clone(), switched_on: false }), || Ok(()))
        .unwrap();
    let error = undo::undo_all(journal, &Runner::default(), &mut go_on).unwrap_err();
    assert!(error.what.contains(&format!("still has processes: {}", other.id())), "{error}");
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(clean(&ground, &[])[0].problem, None);
    assert!(!dir.exists());
    ground.assert_nothing_left(&id.0);
}

#[test]
fn after_another_boot_what_went_with_the_kernel_is_not_looked_for() {
    let test = "after_another_boot_what_went_with_the_kernel_is_not_looked_for";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let (ground, id) = (Ground::new(), new_id());
    let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    drop(build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap());
    let journal = ground.state().join("journal").join(format!("{id}.jsonl"));
    let text = fs::read_to_string(&journal).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    fs::write(&journal, text.replace(boot.trim(), "another")).unwrap();
    let left = &undo::leftovers(&ground.state()).unwrap()[0];
    assert!(left.restarted);
    assert!(left.stands.iter().all(|standing| !standing.what.contains("mount at")), "{left:?}");
    // What is mounted at its place now belongs to others: it stays, and is reported.
    let problem = clean(&ground, &[])[0].problem.clone().unwrap();
    assert!(problem.contains("mnt"), "{problem}");
    let mount = ground.state().join("mnt").join(&id);
    assert_eq!(mounted_as(&mount).as_deref(), Some("ext4"));
    run("umount", &[mount.to_str().unwrap()]);
    assert_eq!(clean(&ground, &[])[0].problem, None);
    ground.assert_nothing_left(&id);
}

#[test]
fn a_folder_made_above_the_stacks_own_goes_unless_others_use_it_by_then() {
    for used in [false, true] {
        let (ground, id) = (Ground::new(), new_id());
        let above = ground.path().join("above");
        let own = above.join(format!("stack-{id}"));
        let steps = [above.clone(), own].map(|dir| Step::MakeFolder { dir }).to_vec();
        let plan = of_steps(&id, steps, Exposed::Devices(Vec::new()));
        let built = build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap();
        if used {
            fs::write(above.join("theirs"), "kept").unwrap();
        }
        built.tear_down(&mut go_on).unwrap();
        assert_eq!(above.exists(), used);
        ground.assert_nothing_left(&id);
    }
}

#[test]
fn undos_that_name_what_is_not_the_stacks_are_refused() {
    let ground = Ground::new();
    let theirs = ground.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    let file = theirs.join("file");
    fs::write(&file, "kept").unwrap();
    let undos = [
        Undo::RemoveFile { file: file.clone() },
        Undo::RemoveFolder { dir: ground.target() },
        Undo::Unmount { dir: theirs.clone() },
        Undo::DetachLoop { file: file.clone() },
        Undo::RemoveCgroup { dir: theirs, switched_on: false },
    ];
    for undo in undos {
        let id = StackId(new_id());
        let mut journal = Journal::begin(&ground.state(), &id, "mine", &[]).unwrap();
        journal.act("forged", Some(undo), || Ok(())).unwrap();
        let error = undo::undo_all(journal, &Runner::default(), &mut go_on).unwrap_err();
        assert!(error.what.contains("is not in a folder of stack"), "{error}");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "kept");
    assert!(ground.target().exists());
}

#[test]
fn the_commands_list_the_stacks_and_clean_them_up() {
    let Some(_loops) = Loops::take("the_commands_list_the_stacks_and_clean_them_up", 2) else { return };
    let (ground, home) = (Ground::new(), Home::new());
    let program = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("XDG_STATE_HOME", ground.path().join("state"));
        common::program::Outcome::of(&command.output().unwrap())
    };
    assert_eq!(program(&["status"]).expect(0).stdout, "no stacks, and nothing left behind\n");
    assert_eq!(program(&["cleanup"]).expect(0).stdout, "nothing is left behind\n");
    let (id, kept) = (new_id(), new_id());
    let plan = |id: &str| confirmed(ground.plan(id, Filesystem::Ext4, Raid::None));
    let commands = build::build(plan(&kept), &ground.site(), &mut go_on).unwrap().keep().unwrap();
    let running = build::build(plan(&id), &ground.site(), &mut go_on).unwrap();
    let of = |state: &str, json: &serde_json::Value| {
        let all = json.as_array().unwrap();
        all.iter().find(|one| one["state"] == state).map(|one| one["id"].as_str().unwrap().to_owned())
    };
    let status = program(&["status", "--json"]).expect(0).json();
    assert_eq!((of("running", &status), of("kept", &status)), (Some(id.clone()), Some(kept.clone())));
    // Neither is touched unless it is named, and one that runs not even then.
    assert_eq!(program(&["cleanup", "--json"]).expect(0).json().as_array().unwrap().len(), 0);
    assert!(program(&["cleanup", &id]).expect(3).stderr.contains("is in use by process"));
    assert!(program(&["cleanup", "0000"]).expect(2).stderr.contains("there is no stack 0000"));
    drop(running);
    let status = program(&["status"]).expect(0).stdout;
    assert!(status.contains(&format!("{id} was left behind: of mine")), "{status}");
    assert!(commands.iter().all(|command| status.contains(command)), "{status}\n{commands:?}");
    let cleaned = program(&["cleanup"]).expect(0).stdout;
    assert!(cleaned.starts_with(&format!("{id} of mine was removed")), "{cleaned}");
    assert!(cleaned.ends_with(&format!("{kept} of mine was kept: stacktune cleanup {kept} removes it\n")));
    assert!(traces(&id).is_empty() && !traces(&kept).is_empty());
    assert_eq!(program(&["cleanup", "--all", "--json"]).expect(0).json()[0]["leftover"]["id"], kept.as_str());
    ground.assert_nothing_left(&kept);
}
