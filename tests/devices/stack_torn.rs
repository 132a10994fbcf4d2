//! Leftovers of a tool interrupted by a power cut are removed like its complete result.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::devices::{Loops, run};
use crate::common::stacks::{Ground, new_id};
use stacktune::testing::host::Facts;
use stacktune::testing::stack::devices::Drive;
use stacktune::testing::stack::id::StackId;
use stacktune::testing::stack::journal::{Journal, Undo};
use stacktune::testing::stack::runner::Runner;
use stacktune::testing::stack::undo::undo_all;

const MIB: usize = 1 << 20;

#[test]
fn what_is_left_of_a_torn_partition_table_is_wiped_and_a_foreign_one_is_not() {
    let test = "what_is_left_of_a_torn_partition_table_is_wiped_and_a_foreign_one_is_not";
    let Some(loops) = Loops::take(test, 1) else { return };
    let ground = Ground::new();
    let stack = StackId(new_id());
    let (own, partition, other) =
        (stack.uuid(1, 0), stack.uuid(2, 0), "11111111-2222-4333-8444-555555555555");
    // Which end is lost, whose table it is, and whether it is removed.
    for (lost_at, id, goes) in [(0, own.as_str(), true), (63 * MIB, &own, true), (0, other, false)] {
        let device = loops.device(64, |backing| {
            let script = format!(
                "printf 'label: gpt\\nlabel-id: {id}\\nstart=1MiB, size=8MiB, uuid={partition}\\n' | sfdisk -q \"$0\""
            );
            run("sh", &["-c", &script, backing.to_str().unwrap()]);
            let file = OpenOptions::new().write(true).open(backing).unwrap();
            file.write_all_at(&vec![0; MIB], lost_at as u64).unwrap();
        });
        let found =
            Facts::read_devices().into_iter().find(|found| found.path == Path::new(&device.path)).unwrap();
        let drive = Drive::of(&found);
        let signatures = || run("wipefs", &["--noheadings", "--output", "TYPE", &device.path]);
        assert!(signatures().contains("gpt"), "what is torn is still seen");
        let state = ground.site().state_dir;
        let mut journal = Journal::begin(&state, &stack, "mine", std::slice::from_ref(&drive)).unwrap();
        let undo = Undo::RemovePartitions { drive, disk_uuid: own.clone() };
        journal.act("sfdisk", Some(undo), || Ok(())).unwrap();
        undo_all(journal, &Runner::default(), &mut |_| true).unwrap();
        assert_eq!(signatures().contains("gpt"), !goes, "{lost_at} {id}");
    }
}

#[test]
fn a_partition_that_was_made_beside_the_stacks_keeps_the_table() {
    let Some(loops) = Loops::take("a_partition_that_was_made_beside_the_stacks_keeps_the_table", 1) else {
        return;
    };
    let (ground, stack) = (Ground::new(), StackId(new_id()));
    let (table, partition) = (stack.uuid(1, 0), stack.uuid(2, 0));
    let device = loops.device(64, |backing| {
        let script = format!(
            "printf 'label: gpt\\nlabel-id: {table}\\nstart=1MiB, size=8MiB, uuid={partition}\\nsize=8MiB\\n' | sfdisk -q \"$0\""
        );
        run("sh", &["-c", &script, backing.to_str().unwrap()]);
    });
    let found =
        Facts::read_devices().into_iter().find(|found| found.path == Path::new(&device.path)).unwrap();
    let drive = Drive::of(&found);
    let mut journal =
        Journal::begin(&ground.site().state_dir, &stack, "mine", std::slice::from_ref(&drive)).unwrap();
    journal.act("sfdisk", Some(Undo::RemovePartitions { drive, disk_uuid: table }), || Ok(())).unwrap();
    let error = undo_all(journal, &Runner::default(), &mut |_| true).unwrap_err();
    assert!(error.what.contains("was not made by the stack"), "{error}");
    assert!(run("wipefs", &["--noheadings", "--output", "TYPE", &device.path]).contains("gpt"));
}
