//! Drives under a stack: blanked, held until something is built on them, preconditioned.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use crate::common::devices::{Loop, Loops, Mount, run};
use crate::common::stacks::{Ground, Nobodys, confirmed, new_id, of_steps};
use crate::stack_build::go_on;
use stacktune::testing::host::Facts;
use stacktune::testing::runs::session::Advance;
use stacktune::testing::settings::{Filesystem, Raid};
use stacktune::testing::stack::build;
use stacktune::testing::stack::devices::{BlockDevice, Drive};
use stacktune::testing::stack::guard::{self, Consent};
use stacktune::testing::stack::id::StackId;
use stacktune::testing::stack::plan::{Destroyed, Endurance, Exposed, Plan, Step};

/// The loop device as a drive given by the operator.
pub fn drive(device: &Loop) -> Drive {
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

/// A plan of these steps on drives, with consent to destroy their present content.
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
    // Somebody has reformatted one of them: it is no longer the stack's.
    run("mkfs.ext4", &["-q", "-F", &other.path]);
    built.tear_down(&mut go_on).unwrap();
    assert_eq!(run("wipefs", &["--no-act", &one.path]), "");
    assert_eq!(run("blkid", &["-p", "-o", "value", "-s", "TYPE", &other.path]), "ext4");
    ground.assert_nothing_left(&id);
}

/// An array or partition of the same layout begins where an older one did.
#[test]
fn what_an_older_data_set_began_with_is_cleared() {
    let Some(_loops) = Loops::take("what_an_older_data_set_began_with_is_cleared", 1) else { return };
    let (ground, id) = (Ground::new(), new_id());
    let file = ground.target().join(format!("stacktune-{id}/member-0"));
    let device = BlockDevice::Loop { file: file.clone() };
    let mut plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
    plan.steps.retain(|step| {
        matches!(step, Step::MakeFolder { .. } | Step::MakeFile { .. } | Step::AttachLoop { .. })
            && !step.words().contains("/mnt/")
    });
    plan.steps.push(Step::Clear { device: device.clone() });
    plan.exposed = Exposed::Devices(vec![device]);
    let mut left = false;
    let mut leave = |advance: &Advance| {
        if advance.command.contains("first MiB") && !std::mem::replace(&mut left, true) {
            fs::OpenOptions::new()
                .write(true)
                .open(&file)
                .unwrap()
                .write_all_at(&vec![7; 3 << 20], 0)
                .unwrap();
        }
        true
    };
    let built = build::build(confirmed(plan), &ground.site(), &mut leave).unwrap();
    let content = fs::read(&file).unwrap();
    assert!(content[..1 << 20].iter().all(|byte| *byte == 0));
    assert!(content[1 << 20..3 << 20].iter().all(|byte| *byte == 7));
    built.tear_down(&mut go_on).unwrap();
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
        // Just before the file system is made, not while it is being made.
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
    let random_bytes = 2 * drive.size_bytes;
    let first = [
        Step::Blank { drive: drive.clone() },
        Step::Precondition { device, bytes: drive.size_bytes, random_bytes },
    ];
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
    // The next step is stopped, but the completed preconditioning is remembered.
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
    // No two pages are alike, so that no drive can skip any.
    let image = fs::read(&device.backing).unwrap();
    let pages: std::collections::HashSet<&[u8]> = image[2 << 20..62 << 20].chunks(4096).collect();
    assert_eq!(pages.len(), (60 << 20) / 4096);

    let (outcome, written, _) = build(2, &mut seen);
    assert_eq!(outcome.unwrap_err().exit_status(), 130);
    assert!(written < 8 << 20, "it was all there: {written}");
    // Somebody wrote to it in between: it starts over, and the record of it is gone.
    run(
        "dd",
        &["if=/dev/zero", &format!("of={}", device.path), "bs=4096", "count=1", "seek=5000", "conv=fsync"],
    );
    let (outcome, written, _) = build(usize::MAX, &mut seen);
    outcome.unwrap().unwrap();
    assert!(written >= all, "{written}");
    assert!(!ground.state().join("preconditioned").exists());
    // Everything beyond 32 MiB was discarded.
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
