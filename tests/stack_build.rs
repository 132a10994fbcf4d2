//! Stacks built on real loop devices, torn down, broken and cleaned up: nothing is left, and nothing
//! of anybody else's is touched.

mod common;

use std::fs;
use std::path::PathBuf;

use common::devices::Loops;
use common::stacks::{Ground, confirmed, new_id, traces};
use stacktune::profile::settings::{Filesystem, Raid};
use stacktune::stack::build::{self, Advance};

/// Lets everything go on.
fn go_on(_: &Advance) -> bool {
    true
}

/// What is mounted at the plan's top.
fn mounted_as(dir: &std::path::Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(&format!(" {} ", dir.display())))?;
    Some(line.split(" - ").nth(1)?.split(' ').next()?.to_owned())
}

fn builds_and_goes(test: &str, filesystem: Filesystem, raid: Raid, name: &str) {
    let Some(_loops) = Loops::take(test) else { return };
    let (ground, id) = (Ground::new(), new_id());
    let plan = ground.plan(&id, filesystem, raid);
    let mount = ground.state().join("mnt").join(&id);
    let mut told: Vec<Advance> = Vec::new();
    let mut watch = |advance: &Advance| {
        told.push(advance.clone());
        true
    };
    let built = build::build(confirmed(plan.clone()), &ground.site(), &mut watch).unwrap();
    assert_eq!(mounted_as(&mount).as_deref(), Some(name));
    fs::write(mount.join("data"), "of the load").unwrap();
    built.tear_down(&mut watch).unwrap();
    ground.assert_nothing_left(&id);
    // Each step was announced in order, and then its undo in reverse.
    told.dedup_by_key(|advance| (advance.step, advance.undoing));
    let built: Vec<usize> = told.iter().filter(|advance| !advance.undoing).map(|a| a.step).collect();
    assert_eq!(built, (0..plan.steps.len()).collect::<Vec<_>>());
    let undone: Vec<usize> = told.iter().filter(|advance| advance.undoing).map(|a| a.step).collect();
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
