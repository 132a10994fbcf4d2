//! The steps of each combination, as shown.

use super::*;
use crate::settings::{Named as _, Settings};
use crate::stack::devices::Drive;
use crate::stack::guard::Consent;
use crate::stack::plan::{Endurance, Plan, PowerCutReason, Properties, Resilience};
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
    let destroyed = |n| Destroyed {
        drive: drive(n),
        content: Vec::new(),
        writes_bytes: 0,
        endurance: Endurance::default(),
    };
    (0..count).map(destroyed).collect()
}

fn id() -> StackId {
    StackId("0123456789abcdef".into())
}

fn on_drives(change: impl Fn(&mut Settings)) -> Result<Layers> {
    let mut settings = Settings::default();
    settings.target.devices = (0..4).map(|n| format!("/dev/nvme{n}n1")).collect();
    change(&mut settings);
    Layers::of(
        &StackSpec::of(&settings),
        &drives(4),
        &StackPlace { id: &id(), state_dir: Path::new("/state"), missing: &[] },
    )
}

fn lines(layers: Layers) -> String {
    let properties = Properties {
        resilience: Resilience { power_cut: PowerCutReason::LoopDevices, drives_lost: 0, fewer: None },
        usable_bytes: 0,
        at_most: false,
        price: None,
        price_missing: None,
    };
    let Layers { steps, exposed, .. } = layers;
    Plan { id: id(), steps, destroys: Vec::new(), exposed, log: None, properties, writes_bytes: 0, fit: None }
        .lines()
        .join("\n")
}

#[test]
fn each_raid_and_file_system_has_its_steps() {
    let filesystems =
        [Filesystem::Ext4, Filesystem::Xfs, Filesystem::Btrfs, Filesystem::F2fs, Filesystem::None];
    let md = [Raid::Md0, Raid::Md1, Raid::Md5, Raid::Md6, Raid::Md10];
    let on_md = md.into_iter().flat_map(|raid| filesystems.map(|filesystem| (raid, filesystem)));
    let own = [Raid::Btrfs0, Raid::Btrfs1, Raid::Btrfs10, Raid::Btrfs5].map(|raid| (raid, Filesystem::Btrfs));
    for (raid, filesystem) in on_md.chain(own) {
        let text = lines(on_drives(|s| (s.stack.raid, s.stack.filesystem) = (raid, filesystem)).unwrap());
        insta::assert_snapshot!(format!("{}_{}", raid.name(), filesystem.name()), text);
    }
}

#[test]
fn files_are_made_in_the_stacks_folder_with_its_missing_parents() {
    let mut settings = Settings::default();
    (settings.target.dir, settings.target.count) = ("/data/new".into(), 2);
    (settings.stack.raid, settings.stack.filesystem) = (Raid::Btrfs1, Filesystem::Btrfs);
    settings.stack.state = DriveState::Trimmed;
    let missing = [PathBuf::from("/data/new")];
    let place = StackPlace { id: &id(), state_dir: Path::new("/state"), missing: &missing };
    insta::assert_snapshot!(lines(Layers::of(&StackSpec::of(&settings), &[], &place).unwrap()));
    settings.target.size_bytes = 63 * MIB;
    assert_eq!(Layers::of(&StackSpec::of(&settings), &[], &place).err().unwrap().exit_status(), 2);
    (settings.target.size_bytes, settings.stack.use_percent) = (GIB, 80);
    assert!(Layers::of(&StackSpec::of(&settings), &[], &place).err().unwrap().what.contains("stack.use"));
}

#[test]
fn the_used_part_of_a_preconditioned_drive_is_not_trimmed() {
    let layers = on_drives(|s| {
        (s.stack.use_percent, s.stack.state) = (80, DriveState::Preconditioned);
    });
    let layers = layers.unwrap();
    let trims = layers.steps.iter().filter_map(|step| match step {
        Step::Trim { from_bytes, .. } => Some(*from_bytes),
        _ => None,
    });
    assert_eq!(trims.collect::<Vec<_>>(), [80 * GIB; 4]);
    let order = |wanted: fn(&Step) -> bool| layers.steps.iter().position(wanted).unwrap();
    let (trim, partition) = (
        order(|step| matches!(step, Step::Trim { .. })),
        order(|step| matches!(step, Step::Partition { .. })),
    );
    assert!(trim < partition, "the table's copy at the end would be discarded");
    assert_eq!(layers.writes_bytes[0], 4 * (80 * GIB - MIB));
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
fn ids_of_a_stack_are_recognized_and_differ() {
    let ids = [id().uuid(1, 0), id().uuid(1, 1), id().uuid(2, 0)];
    assert_eq!(ids[0], "01234567-89ab-4001-8000-cdef57ac4e00");
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    // In mdadm's format, and in capitals.
    assert!(id().is_of(&ids[1]) && id().is_of("01234567:89AB4001:8001CDEF:57AC4E00"));
    let other = StackId("0123456789abcdee".into());
    assert!(!other.is_of(&ids[1]) && !id().is_of("01234567-89ab") && !StackId("m".into()).is_of(&ids[1]));
}

#[test]
fn redundancy_costs_room_and_writes() {
    let layers = |raid| on_drives(|s| s.stack.raid = raid).unwrap();
    let usable = |raid| layers(raid).usable_bytes as f64 / (100 * GIB) as f64;
    assert!((usable(Raid::Md0) - 4.0).abs() < 0.02);
    assert!((usable(Raid::Md5) - 3.0).abs() < 0.02);
    assert!((usable(Raid::Md6) - 2.0).abs() < 0.02);
    assert!((usable(Raid::Md1) - 1.0).abs() < 0.02);
    let written = |raid| (layers(raid).writes_bytes.iter().sum::<u64>()) as f64 / (100 * GIB) as f64;
    assert!((written(Raid::Md5) - 4.0).abs() < 0.05, "{}", written(Raid::Md5));
    let resynced = on_drives(|s| (s.stack.raid, s.stack.assume_clean) = (Raid::Md1, false)).unwrap();
    let each = resynced.writes_bytes.iter().sum::<u64>() as f64 / 4.0 / (100 * GIB) as f64;
    assert_eq!(
        resynced.writes_bytes[3] - resynced.writes_bytes[0],
        resynced.writes_bytes[2] - resynced.writes_bytes[0]
    );
    assert!(resynced.writes_bytes[1] > resynced.writes_bytes[0], "the first is the source of the copy");
    let rebuilt = on_drives(|s| (s.stack.raid, s.stack.assume_clean) = (Raid::Md5, false)).unwrap();
    let extra = rebuilt.writes_bytes[3] - rebuilt.writes_bytes[0];
    assert!(
        (extra as f64 / (100 * GIB) as f64 - 1.0).abs() < 0.01,
        "the last member is computed from the others"
    );
    assert!((each - 1.75).abs() < 0.01, "{each}: three of four are copied to, and then all are filled");
}

fn lvm_and_crypt(settings: &mut Settings) {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let lvm = crate::settings::Layer {
        name: "lvm".into(),
        up: vec![words("vgcreate st{id} {devices}"), words("lvcreate --stripes={count} --name=data st{id}")],
        down: vec![words("vgremove --yes st{id}")],
        device: "/dev/mapper/st{id}-data".into(),
    };
    let crypt = crate::settings::Layer {
        name: "crypt".into(),
        up: vec![words("cryptsetup open {device} c{id}")],
        down: vec![words("cryptsetup close c{id}")],
        device: "/dev/mapper/c{id}".into(),
    };
    settings.stack.by_commands = vec![lvm, crypt];
}

#[test]
fn layers_by_commands_lie_between_the_members_and_the_file_system() {
    let layers = on_drives(|settings| {
        lvm_and_crypt(settings);
        settings.stack.filesystem = Filesystem::Ext4;
    });
    let shown = lines(layers.unwrap());
    let wanted = [
        "vgcreate st0123456789abcdef /dev/nvme0n1 /dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1\n",
        "lvcreate --stripes=4 --name=data st0123456789abcdef\n",
        "is built on nothing but /dev/nvme0n1, /dev/nvme1n1, /dev/nvme2n1, /dev/nvme3n1, and wipe old \
         signatures on it; layer `lvm` is taken away by vgremove --yes st0123456789abcdef\n",
        "cryptsetup open /dev/mapper/st0123456789abcdef-data c0123456789abcdef\n",
        "layer `crypt` is taken away by cryptsetup close c0123456789abcdef\nmkfs.ext4 ",
        "/dev/mapper/c0123456789abcdef\n",
    ];
    let mut at = 0;
    for wanted in wanted {
        at += shown[at..].find(wanted).unwrap_or_else(|| panic!("{wanted}\n{shown}"));
    }
    let bare = on_drives(lvm_and_crypt).unwrap();
    assert!(matches!(bare.steps.last(), Some(Step::Clear { device: BlockDevice::Layer { .. } })));
    let on_md = on_drives(|settings| {
        lvm_and_crypt(settings);
        settings.stack.raid = Raid::Md0;
    });
    assert!(lines(on_md.unwrap()).contains("vgcreate st0123456789abcdef /dev/md"));
    let one = on_drives(|settings| {
        lvm_and_crypt(settings);
        settings.stack.by_commands.remove(0);
    });
    let error = one.err().unwrap();
    assert!(error.exit_status() == 2 && error.what.contains("4 are below it"), "{error}");
}

#[test]
fn the_first_command_of_a_layer_has_the_undo_of_all() {
    let layers = on_drives(lvm_and_crypt).unwrap();
    let undos: Vec<_> = layers.steps.iter().map(Step::undo).collect();
    let raised: Vec<_> = layers
        .steps
        .iter()
        .zip(&undos)
        .filter(|(step, _)| matches!(step, Step::RaiseLayer { .. }))
        .map(|(_, undo)| matches!(undo, Some(crate::stack::journal::Undo::LowerLayer { .. })))
        .collect();
    assert_eq!(raised, [true, false, true]);
}

/// Until the device exists, the sizes are upper bounds; commands run only if they are allowed.
#[test]
fn what_layers_leave_is_measured_and_their_commands_want_leave() {
    let mut settings = Settings::default();
    lvm_and_crypt(&mut settings);
    settings.stack.filesystem = Filesystem::Ext4;
    settings.target.devices = (0..4).map(|n| format!("/dev/nvme{n}n1")).collect();
    let spec = StackSpec::of(&settings);
    let place = StackPlace { id: &id(), state_dir: Path::new("/state"), missing: &[] };
    let layers = Layers::of(&spec, &drives(4), &place).unwrap();
    let facts = crate::settings::testing::capable_host();
    let properties = crate::stack::plan::properties(&spec, &facts, layers.usable_bytes);
    assert_eq!(properties.resilience.power_cut, PowerCutReason::UnknownLayers);
    let plan = Plan {
        id: id(),
        steps: layers.steps,
        destroys: Vec::new(),
        exposed: layers.exposed,
        log: None,
        properties: Properties { at_most: true, ..properties },
        writes_bytes: 0,
        fit: crate::stack::plan::fit::Fit::of(&spec),
    };
    assert!(plan.lines().last().unwrap().starts_with("fill at most "), "{:?}", plan.lines());
    let measured = plan.measured(10 * GIB).unwrap();
    let Exposed::Files { data_bytes, wal_bytes, .. } = measured.exposed else { panic!("{measured:?}") };
    assert!(data_bytes + wal_bytes < 10 * GIB && data_bytes > 6 * GIB, "{data_bytes}");
    assert!(!measured.properties.at_most && measured.properties.usable_bytes < 10 * GIB);
    assert_eq!(plan.measured(20 * MIB).unwrap_err().exit_status(), 2);

    let refused = plan.clone().confirm(&Consent::default()).unwrap_err();
    assert!(refused.exit_status() == 2 && refused.to_string().contains("--allow-commands"), "{refused}");
    let allowed = Consent::default().and_commands(&settings.stack.by_commands);
    assert!(plan.clone().confirm(&allowed).is_ok());
    let other = Consent::default().and_commands(&settings.stack.by_commands[..1]);
    assert_eq!(plan.confirm(&other).unwrap_err().exit_status(), 2, "a part of them is not what was allowed");
}
