//! Journals of stacks.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use stacktune::testing::stack::journal::{Journal, Opened};
use stacktune::testing::stack::undo::{Leftover, Remnant, StackState};
use stacktune::testing::ui::report::stacks::status;

use super::printed;

/// A journal: rereading it yields the same content, and only a torn end is cut off.
pub fn journal(input: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("journal");
    fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let path = folder.join("0011223344556677.jsonl");
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
    file.write_all(input).unwrap();
    drop(file);
    let opened = match Journal::open(&path) {
        Ok(opened) => opened,
        Err(error) => {
            printed(&error.to_string());
            assert_eq!(fs::read(&path).unwrap(), input, "what can't be read stays as it is");
            return;
        }
    };
    let Opened::Free(journal) = opened else { panic!("nobody else has it: {opened:?}") };
    let record = journal.record().clone();
    drop(journal);
    let left = fs::read(&path).unwrap();
    assert!(input.starts_with(&left) && left.ends_with(b"\n"));
    let Opened::Free(again) = Journal::open(&path).unwrap() else { panic!("nobody else has it") };
    assert_eq!(*again.record(), record);
    for (number, entry) in record.entries.iter().enumerate() {
        assert_eq!(entry.number, number as u64);
    }
    let to_undo = record.entries.iter().rev().filter_map(|entry| entry.to_undo());
    let stands = to_undo.map(|undo| Remnant { what: undo.describe(), commands: Vec::new() });
    let leftover = Leftover {
        id: record.header.id.0.clone(),
        state: if record.retained { StackState::Retained } else { StackState::Dead },
        profile: record.header.profile.clone(),
        pid: record.header.pid,
        since_unix_s: record.header.started_unix_s,
        restarted: false,
        drives: record.header.drives.iter().map(|drive| drive.path.display().to_string()).collect(),
        stands: stands.collect(),
        problem: None,
    };
    printed(&status(&[leftover], 1_800_000_000));
}
