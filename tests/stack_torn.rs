//! What a power cut in the middle of a tool leaves is taken away like what the tool leaves whole.

mod common;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use common::devices::{Loops, run};
use common::stacks::{Ground, new_id};
use stacktune::host::Facts;
use stacktune::stack::build::undo_all;
use stacktune::stack::journal::Journal;
use stacktune::stack::place::Drive;
use stacktune::stack::plan::StackId;
use stacktune::stack::runner::Runner;
use stacktune::stack::step::Undo;

const ID: &str = "0f1e2d3c-4b5a-4697-8879-6a5b4c3d2e1f";
const MIB: usize = 1 << 20;

#[test]
fn what_is_left_of_a_torn_partition_table_is_wiped_and_a_foreign_one_is_not() {
    let test = "what_is_left_of_a_torn_partition_table_is_wiped_and_a_foreign_one_is_not";
    let Some(loops) = Loops::take(test) else { return };
    let ground = Ground::new();
    // Which end is lost, whose table it is, and whether it goes.
    for (lost_at, id, goes) in
        [(0, ID, true), (63 * MIB, ID, true), (0, "11111111-2222-4333-8444-555555555555", false)]
    {
        let device = loops.device(64, |backing| {
            let script =
                format!("printf 'label: gpt\\nlabel-id: {id}\\nstart=1MiB, size=8MiB\\n' | sfdisk -q \"$0\"");
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
        let mut journal =
            Journal::begin(&state, &StackId(new_id()), "mine", std::slice::from_ref(&drive)).unwrap();
        let undo = Undo::RemovePartitions { drive, disk_uuid: ID.into() };
        journal.act("sfdisk", Some(undo), || Ok(())).unwrap();
        undo_all(journal, &Runner::default(), &mut |_| true).unwrap();
        assert_eq!(signatures().contains("gpt"), !goes, "{lost_at} {id}");
    }
}
