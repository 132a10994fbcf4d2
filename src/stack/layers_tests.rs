//! The steps of each combination, as they are shown.

use super::*;
use crate::stack::place::Drive;
use crate::stack::plan::{Plan, Worth};
use crate::stack::worth::PowerCut;
use crate::units::GIB;

fn drives(count: u64) -> Vec<Destroyed> {
    let drive = |number: u64| Drive {
        name: format!("nvme{number}n1"),
        path: format!("/dev/nvme{number}n1").into(),
        number: format!("259:{number}"),
        model: None,
        serial: Some(format!("S{number}")),
        size_bytes: 100 * GIB,
    };
    let destroyed =
        |n| Destroyed { drive: drive(n), content: Vec::new(), writes_bytes: 0, rated_bytes: None };
    (0..count).map(destroyed).collect()
}

fn id() -> StackId {
    StackId("0123456789abcdef".into())
}

fn on_drives(change: impl Fn(&mut Settings)) -> Result<Layers> {
    let mut settings = Settings::default();
    settings.target.devices = (0..4).map(|n| format!("/dev/nvme{n}n1")).collect();
    change(&mut settings);
    Layers::of(&settings, &drives(4), Path::new("/state"), &id())
}

fn lines(layers: Layers) -> String {
    let worth =
        Worth { power_cut: PowerCut::Yes, why: String::new(), drives_lost: 0, usable_bytes: 0, price: None };
    let Layers { steps, top, writes_bytes, .. } = layers;
    Plan { id: id(), steps, destroys: Vec::new(), top, worth, writes_bytes }.lines().join("\n")
}

#[test]
fn each_raid_and_file_system_has_its_steps() {
    for raid in [Raid::Md0, Raid::Md1, Raid::Md5, Raid::Md6, Raid::Md10] {
        let text = lines(on_drives(|s| s.stack.raid = raid).unwrap());
        insta::assert_snapshot!(format!("array_{raid:?}").to_lowercase(), text);
    }
    for filesystem in [Filesystem::Ext4, Filesystem::Xfs, Filesystem::Btrfs, Filesystem::F2fs] {
        let text =
            lines(on_drives(|s| (s.stack.raid, s.stack.filesystem) = (Raid::Md0, filesystem)).unwrap());
        insta::assert_snapshot!(format!("filesystem_{filesystem:?}").to_lowercase(), text);
    }
    for raid in [Raid::Btrfs0, Raid::Btrfs1, Raid::Btrfs10, Raid::Btrfs5] {
        let text =
            lines(on_drives(|s| (s.stack.raid, s.stack.filesystem) = (raid, Filesystem::Btrfs)).unwrap());
        insta::assert_snapshot!(format!("own_{raid:?}").to_lowercase(), text);
    }
}

#[test]
fn a_part_of_each_drive_is_a_partition_and_the_rest_is_trimmed() {
    let text = lines(
        on_drives(|s| {
            (s.stack.use_percent, s.stack.state, s.stack.raid) = (80, DriveState::Preconditioned, Raid::Md5);
            s.stack.assume_clean = false;
        })
        .unwrap(),
    );
    insta::assert_snapshot!(text);
}

#[test]
fn files_are_as_in_the_paper_or_four_fifths_and_a_fifth() {
    let sizes = |gib: u64| {
        let mut settings = Settings::default();
        settings.stack.filesystem = Filesystem::Xfs;
        file_sizes(&settings, gib * GIB)
    };
    assert_eq!(sizes(1000).unwrap(), (PAPERS_DATA_BYTES, PAPERS_WAL_BYTES));
    let (data, wal) = sizes(10).unwrap();
    assert!((3.9..=4.1).contains(&(data as f64 / wal as f64)), "{data} {wal}");
    assert!(data + wal < 10 * GIB && data + wal > 9 * GIB);
    assert_eq!(file_sizes(&Settings::default(), 4 * MIB).unwrap_err().exit_status(), 2);
}

#[test]
fn ids_of_a_stack_are_its_own_and_differ() {
    let ids = [uuid(&id(), 1, 0), uuid(&id(), 1, 1), uuid(&id(), 2, 0)];
    assert_eq!(ids[0], "01234567-89ab-4001-8000-cdef57ac4e00");
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

#[test]
fn redundancy_costs_room_and_writes() {
    let layers = |raid| on_drives(|s| s.stack.raid = raid).unwrap();
    let usable = |raid| layers(raid).usable_bytes as f64 / (100 * GIB) as f64;
    assert!((usable(Raid::Md0) - 4.0).abs() < 0.02);
    assert!((usable(Raid::Md5) - 3.0).abs() < 0.02);
    assert!((usable(Raid::Md6) - 2.0).abs() < 0.02);
    assert!((usable(Raid::Md1) - 1.0).abs() < 0.02);
    let written = |raid| layers(raid).writes_bytes as f64 / (100 * GIB) as f64;
    assert!((written(Raid::Md5) - 4.0).abs() < 0.05, "{}", written(Raid::Md5));
}
