//! What undoing a stack removes, and what it leaves to others.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common;
use crate::common::devices::{Loops, run};
use crate::common::program::{Home, wait_for};
use crate::common::stacks::{Ground, confirmed, new_id, of_steps, traces};
use crate::stack_build::{clean, go_on, mounted_as};
use crate::stack_drives::drive;
use stacktune::testing::error::Error;
use stacktune::testing::runs::session::Advance;
use stacktune::testing::settings::{Filesystem, Raid};
use stacktune::testing::stack::build;
use stacktune::testing::stack::id::StackId;
use stacktune::testing::stack::journal::{Journal, Undo};
use stacktune::testing::stack::plan::{Exposed, Step};
use stacktune::testing::stack::runner::Runner;
use stacktune::testing::stack::undo::{self, StackState};

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
    // Everything below it still stands.
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
        assert_eq!((left[0].state, left[0].stands.len()), (StackState::Retained, 8));
        if by_hand {
            commands.iter().for_each(|command| drop(run("sh", &["-ec", command])));
            assert!(traces(&id).is_empty());
        }
        assert_eq!(clean(&ground, &[&id])[0].problem, None);
        ground.assert_nothing_left(&id);
    }
}

/// Even if it is no longer mounted, as after a reboot, and if a name only resembles ours; whether the stack
/// was retained, or its process died.
#[test]
fn what_was_put_on_a_stack_is_found_although_it_is_not_mounted() {
    let name = "what_was_put_on_a_stack_is_found_although_it_is_not_mounted";
    let Some(_loops) = Loops::take(name, 2) else { return };
    for (filesystem, kept) in [
        (Filesystem::Ext4, true),
        (Filesystem::Xfs, true),
        (Filesystem::Btrfs, true),
        (Filesystem::Ext4, false),
        (Filesystem::Btrfs, false),
    ] {
        let (ground, id) = (Ground::new(), new_id());
        let plan = ground.plan(&id, filesystem, Raid::None);
        let built = build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap();
        let commands = built.commands_down();
        if kept {
            built.keep().unwrap();
        } else {
            drop(built);
        }
        let mount = ground.state().join("mnt").join(&id);
        let at = mount.to_str().unwrap();
        let theirs = mount.join("data-backup.tar");
        fs::write(&theirs, "precious").unwrap();
        run("umount", &[at]);
        let problem = clean(&ground, &[&id])[0].problem.clone().unwrap();
        assert!(problem.contains("holds data-backup.tar, which stacktune did not put there"), "{problem}");
        // As after a reboot: not attached either.
        let node = commands.iter().find_map(|command| command.strip_prefix("wipefs --all ")).unwrap();
        detach(node);
        let problem = clean(&ground, &[&id])[0].problem.clone().unwrap();
        assert!(problem.contains("holds data-backup.tar, which stacktune did not put there"), "{problem}");
        let file = ground.target().join(format!("stacktune-{id}/member-0"));
        let node = &run("losetup", &["--find", "--show", file.to_str().unwrap()]);
        // The mount point was empty, and has been removed already.
        let elsewhere = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (at, theirs) = (elsewhere.path().to_str().unwrap(), elsewhere.path().join("data-backup.tar"));
        run("mount", &[node, at]);
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "precious");
        fs::remove_file(&theirs).unwrap();
        run("umount", &[at]);
        detach(node);
        assert_eq!(clean(&ground, &[&id])[0].problem, None);
        ground.assert_nothing_left(&id);
    }
}

/// Detaches a loop device. If others have it open at that moment, it is released when they close it.
fn detach(node: &str) {
    run("losetup", &["--detach", node]);
    let is_gone = || !Path::new("/sys/block").join(node.trim_start_matches("/dev/")).join("loop").exists();
    wait_for(&format!("{node} to be detached"), || is_gone().then_some(()));
}

/// Names alone prove nothing, whether the file system is still mounted or not.
#[test]
fn what_only_has_a_name_of_ours_on_a_dead_stack_keeps_it() {
    let test = "what_only_has_a_name_of_ours_on_a_dead_stack_keeps_it";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let (ground, home, id) = (Ground::new(), Home::new(), new_id());
    let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    let built = build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap();
    let commands = built.commands_down();
    drop(built);
    let node = commands.iter().find_map(|command| command.strip_prefix("wipefs --all ")).unwrap();
    let mounted = ground.state().join("mnt").join(&id);
    let elsewhere = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for is_mounted in [true, false] {
        let dir = if is_mounted { mounted.as_path() } else { elsewhere.path() };
        let at = dir.to_str().unwrap();
        for (path, named) in [
            ("data-7/precious", "data-7"),
            ("data-9", "data-9"),
            ("wal/precious", "wal"),
            ("lost+found/precious", "lost+found/precious"),
            ("data-9\nwal", "data-9␊wal"),
        ] {
            if !is_mounted {
                run("mount", &[node, at]);
            }
            let theirs = dir.join(path);
            let _ = fs::create_dir(theirs.parent().unwrap());
            fs::write(&theirs, "a").unwrap();
            if !is_mounted {
                run("umount", &[at]);
            }
            let problem = clean(&ground, &[&id])[0].problem.clone().unwrap();
            assert!(
                problem.contains(&format!("holds {named}, which stacktune did not put there")),
                "{problem}"
            );
            if !is_mounted {
                run("mount", &[node, at]);
            }
            assert_eq!(fs::read_to_string(&theirs).unwrap(), "a");
            fs::remove_file(&theirs).unwrap();
            if theirs.parent() != Some(dir) && !named.starts_with("lost") {
                fs::remove_dir(theirs.parent().unwrap()).unwrap();
            }
            if !is_mounted {
                run("umount", &[at]);
            }
        }
        if is_mounted {
            run("umount", &[at]);
        }
    }
    // A mere look doesn't need a folder for temporary files.
    let mut command = home.command(&["cleanup"]);
    command.env("XDG_STATE_HOME", ground.path().join("state")).env("TMPDIR", "/nonexistent");
    common::program::Outcome::of(&command.output().unwrap()).expect(0);
    ground.assert_nothing_left(&id);
}

/// A file at a dead stack's mount point preserves everything below.
#[test]
fn what_was_put_at_the_mount_point_of_a_dead_stack_keeps_it() {
    let name = "what_was_put_at_the_mount_point_of_a_dead_stack_keeps_it";
    let Some(_loops) = Loops::take(name, 2) else { return };
    let (ground, id) = (Ground::new(), new_id());
    let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    drop(build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap());
    let mount = ground.state().join("mnt").join(&id);
    run("umount", &[mount.to_str().unwrap()]);
    let theirs = mount.join("theirs");
    fs::write(&theirs, "kept").unwrap();
    for _ in 0..2 {
        let problem = clean(&ground, &[])[0].problem.clone().unwrap();
        assert!(problem.contains("is not empty: it holds theirs"), "{problem}");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "kept");
        assert!(!traces(&id).is_empty(), "what is below stays");
    }
    fs::remove_file(theirs).unwrap();
    assert_eq!(clean(&ground, &[])[0].problem, None);
    ground.assert_nothing_left(&id);
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
        // Turned twice: the original value is restored.
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
    // Another test's tool started at the wrong moment could hold this one's journal for a while.
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

/// At that point the journal names only the folder above: the stack's own does not exist yet.
#[test]
fn a_stop_or_a_kill_in_the_first_step_leaves_no_folder_above_the_stacks_own() {
    let (ground, id) = (Ground::new(), new_id());
    let above = [ground.path().join("above"), ground.path().join("above/inner")];
    let own = above[1].join(format!("stack-{id}"));
    let steps: Vec<Step> =
        above.iter().chain([&own]).map(|dir| Step::MakeFolder { dir: dir.clone() }).collect();
    for stop_at in 0..3 {
        let plan = of_steps(&id, steps.clone(), Exposed::Devices(Vec::new()));
        let mut watch = |advance: &Advance| advance.step != stop_at;
        let error = build::build(confirmed(plan), &ground.site(), &mut watch).unwrap_err();
        assert_eq!(error.exit_status(), 130, "{error}");
        assert!(!above[0].exists());
        ground.assert_nothing_left(&id);
    }
    let plan = of_steps(&id, steps, Exposed::Devices(Vec::new()));
    drop(build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap());
    // The state after a kill: the first step is in the journal, the others have not begun.
    let journal = ground.state().join("journal").join(format!("{id}.jsonl"));
    let text = fs::read_to_string(&journal).unwrap();
    let begun: String = text.split_inclusive('\n').take(2).collect();
    fs::write(&journal, begun).unwrap();
    fs::remove_dir(&own).unwrap();
    fs::remove_dir(&above[1]).unwrap();
    assert_eq!(clean(&ground, &[])[0].problem, None);
    assert!(!above[0].exists());
    ground.assert_nothing_left(&id);
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
        Undo::RemoveFolder { dir: ground.target(), above: None },
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
fn a_forged_journal_changes_no_queue_and_no_folder_of_others() {
    let test = "a_forged_journal_changes_no_queue_and_no_folder_of_others";
    let Some(loops) = Loops::take(test, 1) else { return };
    let (device, ground) = (loops.blank(16), Ground::new());
    let drive = drive(&device);
    let file = format!("/sys/block/{}/queue/read_ahead_kb", drive.name);
    let now = fs::read_to_string(&file).unwrap();
    let theirs = ground.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    let id = StackId(new_id());
    let restore = Undo::RestoreQueue {
        drive,
        attribute: "read_ahead_kb".into(),
        old: "4".into(),
        new: now.trim().into(),
        beside: Vec::new(),
    };
    let folder = Undo::RemoveFolder { dir: theirs.clone(), above: Some(theirs.join(&id.0)) };
    let mut journal = Journal::begin(&ground.state(), &id, "mine", &[]).unwrap();
    journal.act("forged", Some(restore), || Ok(())).unwrap();
    journal.act("forged", Some(folder), || Ok(())).unwrap();
    drop(journal);
    // The folder is older than the journal.
    let journal = ground.state().join("journal").join(format!("{}.jsonl", id.0));
    let text = fs::read_to_string(&journal).unwrap();
    let (before, after) = text.split_once("\"started_unix_s\":").unwrap();
    let (since, after) = after.split_once(',').unwrap();
    let since = since.parse::<u64>().unwrap() + 1000;
    fs::write(&journal, format!("{before}\"started_unix_s\":{since},{after}")).unwrap();
    assert_eq!(clean(&ground, &[&id.0])[0].problem, None);
    assert_eq!(fs::read_to_string(&file).unwrap(), now);
    assert!(theirs.exists());
    // A folder that others can enter was not made for a stack, whatever time the journal gives.
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&journal, format!("{before}\"started_unix_s\":1,{after}")).unwrap();
    let cleaned = clean(&ground, &[&id.0]);
    assert_eq!((&cleaned[0].problem, &cleaned[0].folders), (&None, &vec![theirs.clone()]));
    assert!(theirs.exists());
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
    // Neither is touched unless it is named, and a running one not even then.
    assert_eq!(program(&["cleanup", "--json"]).expect(0).json().as_array().unwrap().len(), 0);
    assert!(program(&["cleanup", &id]).expect(3).stderr.contains("is in use by process"));
    assert!(program(&["cleanup", "0000"]).expect(2).stderr.contains("there is no stack 0000"));
    drop(running);
    let status = program(&["status"]).expect(0).stdout;
    assert!(status.contains(&format!("{id} was left behind: of mine")), "{status}");
    assert!(commands.iter().all(|command| status.contains(command)), "{status}\n{commands:?}");
    let cleaned = program(&["cleanup"]).expect(0).stdout;
    assert!(cleaned.starts_with(&format!("{id} of mine was removed")), "{cleaned}");
    assert!(cleaned.ends_with(&format!("{kept} of mine is retained: stacktune cleanup {kept} removes it\n")));
    assert!(traces(&id).is_empty() && !traces(&kept).is_empty());
    assert_eq!(program(&["cleanup", "--all", "--json"]).expect(0).json()[0]["leftover"]["id"], kept.as_str());
    ground.assert_nothing_left(&kept);
}
