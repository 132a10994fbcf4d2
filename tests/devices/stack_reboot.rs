//! Undoing a stack that was taken apart by a reboot, or whose device is gone.

use std::fs::{self, File};
use std::process::Command;

use crate::common;
use crate::common::devices::{Loops, run};
use crate::common::stacks::{Ground, confirmed, new_id};
use crate::stack_build::{clean, go_on, mounted_as};
use stacktune::testing::settings::{Filesystem, Raid};
use stacktune::testing::stack::build;
use stacktune::testing::stack::undo;

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
    // A mount in its place now belongs to others: it stays, and is reported.
    let problem = clean(&ground, &[])[0].problem.clone().unwrap();
    assert!(problem.contains("mnt"), "{problem}");
    let mount = ground.state().join("mnt").join(&id);
    assert_eq!(mounted_as(&mount).as_deref(), Some("ext4"));
    run("umount", &[mount.to_str().unwrap()]);
    assert_eq!(clean(&ground, &[])[0].problem, None);
    ground.assert_nothing_left(&id);
}

/// A retained stack's loop device is gone, and its number now belongs to somebody else's device.
#[test]
fn after_another_boot_a_loop_devices_number_leads_to_nobody_elses_file() {
    let test = "after_another_boot_a_loop_devices_number_leads_to_nobody_elses_file";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let (ground, id) = (Ground::new(), new_id());
    let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    let built = build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap();
    let wipe =
        built.commands_down().iter().find_map(|it| it.strip_prefix("wipefs --all ").map(str::to_owned));
    let node = wipe.unwrap();
    built.keep().unwrap();
    run("umount", &[ground.state().join("mnt").join(&id).to_str().unwrap()]);
    run("losetup", &["--detach", &node]);
    let free = || {
        fs::read_to_string(node.replace("/dev/", "/sys/block/") + "/loop/backing_file").is_err().then_some(())
    };
    common::program::wait_for("the device to go", free);
    let theirs = ground.path().join("theirs");
    File::create(&theirs).unwrap().set_len(32 << 20).unwrap();
    run("mkfs.ext4", &["-q", theirs.to_str().unwrap()]);
    let before = fs::read(&theirs).unwrap();
    // Another test may hold the number for a while.
    let attach = || {
        let attached =
            Command::new("losetup").args([node.as_str(), theirs.to_str().unwrap()]).output().unwrap();
        attached.status.success().then_some(())
    };
    common::program::wait_for("the number to be free", attach);
    let journal = ground.state().join("journal").join(format!("{id}.jsonl"));
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replace(boot.trim(), "another")).unwrap();
    let problem = clean(&ground, &[&id])[0].problem.clone();
    let attached = run("losetup", &["--noheadings", "--output", "BACK-FILE", &node]);
    run("losetup", &["--detach", &node]);
    assert_eq!(problem, None);
    assert_eq!(attached.trim(), theirs.to_str().unwrap());
    assert!(fs::read(&theirs).unwrap() == before, "their file was written to");
    ground.assert_nothing_left(&id);
}

/// Its content can no longer be read by anybody.
#[test]
fn a_mounted_stack_without_its_device_is_removed() {
    let Some(_loops) = Loops::take("a_mounted_stack_without_its_device_is_removed", 2) else { return };
    let (ground, id) = (Ground::new(), new_id());
    let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    drop(build::build(confirmed(plan), &ground.site(), &mut go_on).unwrap());
    let member = ground.target().join(format!("stacktune-{id}/member-0"));
    run("sync", &[]);
    File::options().write(true).open(&member).unwrap().set_len(0).unwrap();
    fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
    assert_eq!(clean(&ground, &[])[0].problem, None);
    ground.assert_nothing_left(&id);
}
