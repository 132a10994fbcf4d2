//! The knobs of `[stack]`: members, RAID, file system.

use super::spec::{Conditions, Named, PLAIN, Scope, Spec, always, names};
use super::value::{Kind, NONE, Value};
use crate::class::Class;
use crate::host::{ToolFound, kernel_version};
use crate::settings::filesystem_options;
use crate::settings::values::stack::CHUNK_BYTES_MAX;
use crate::settings::values::{Bitmap, DriveState, Filesystem, IommuMode, LbaSize, Raid, Settings};
use crate::units::{GIB, KIB, MIB};

pub(super) const STACK: &[Spec] = &[
    Spec {
        key: "loops",
        help: "Make loop devices over the target's files even if nothing is built on them.",
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| (!s.target.devices.is_empty()).then_some("the target is devices"),
        unavailable: |value, s, _, conditions| {
            (*value == Value::Bool(true)).then(|| not_built_with(&["losetup"], s, conditions))?
        },
        ..at!(Bool, |s, c| s.stack.loops)
    },
    Spec {
        key: "use",
        help: "The share of each drive that is used, as a partition; the rest is trimmed and never written.",
        paper: Some(
            "Space that is never written makes the drive's garbage collection cheaper (Didona et al. 2021, 4.6).",
        ),
        kind: Kind::Percent { min: 10, max: 100, steps: &[50, 60, 70, 80, 90, 100] },
        scope: Scope::Rebuild,
        of_target: always,
        unavailable: |value, s, _, conditions| {
            (*value != Value::Percent(100))
                .then(|| not_built_with(&["sfdisk", "blkdiscard"], s, conditions))?
        },
        ..at!(Percent, |s, c| s.stack.use_percent)
    },
    Spec {
        key: "lba_size",
        help: "Logical blocks of NVMe drives: they are formatted to that size (Format NVM) before anything is built, which \
               destroys everything on them; the old format is restored when the stack is removed.",
        kind: Kind::Choice(&names::<LbaSize, 3>()),
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| s.target.devices.is_empty().then_some("the target is files"),
        unavailable: lba_size_unavailable,
        ..at!(named LbaSize, |s, c| s.stack.lba_size)
    },
    Spec {
        key: "iommu",
        help: "How the IOMMU serves the drives during the run: mappings invalidated immediately (strict) or in batches (lazy), or none \
               (passthrough: a drive reaches all memory); restored when the stack is removed.",
        kind: Kind::Choice(&names::<IommuMode, 4>()),
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| s.target.devices.is_empty().then_some("the target is files"),
        unavailable: iommu_unavailable,
        ..at!(named IommuMode, |s, c| s.stack.iommu)
    },
    Spec {
        key: "state",
        help: "State of the drives before the run: as they are, trimmed, or written until garbage collection runs.",
        paper: Some(
            "A trimmed and a used drive behave like two different drives: state which one was measured (Didona et al. 2021, 3.4).",
        ),
        kind: Kind::Choice(&names::<DriveState, 3>()),
        scope: Scope::Rebuild,
        of_target: always,
        unavailable: |value, s, _, conditions| match value {
            Value::Choice("trimmed") => not_built_with(&["blkdiscard"], s, conditions),
            Value::Choice("preconditioned") => not_built_with(&[], s, conditions),
            _ => None,
        },
        ..at!(named DriveState, |s, c| s.stack.state)
    },
    Spec {
        key: "raid",
        help: "RAID level over the members; none interleaves pages over them.",
        paper: Some(
            "md RAID 0 costs little (5,443 against 5,665 MB/s of scan); RAID 5 nearly doubles the cycles per byte (Haas et al. 2020, 4.6, Table 5).",
        ),
        kind: Kind::Choice(&names::<Raid, 10>()),
        scope: Scope::Rebuild,
        of_target: always,
        unavailable: raid_unavailable,
        ..at!(named Raid, |s, c| s.stack.raid)
    },
    Spec {
        key: "chunk",
        help: "Chunk size of an md array.",
        kind: Kind::Size {
            min: 4 * KIB,
            max: CHUNK_BYTES_MAX,
            multiple: 4 * KIB,
            power_of_two: true,
            optional: false,
            steps: &[4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB],
        },
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| {
            (!s.stack.raid.is_md() || s.stack.raid == Raid::Md1).then_some("the RAID level has no md chunks")
        },
        ..at!(some Size, |s, c| s.stack.chunk_bytes)
    },
    Spec {
        key: "assume_clean",
        help: "Assume that the members of a redundant array are in sync (--assume-clean); off waits for md's resync.",
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| not_redundant(s),
        ..at!(Bool, |s, c| s.stack.assume_clean)
    },
    Spec {
        key: "bitmap",
        help: "Write-intent bitmap of a redundant md array: a short resync after a crash, at the cost of extra writes.",
        kind: Kind::Choice(&names::<Bitmap, 3>()),
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| not_redundant(s),
        unavailable: bitmap_unavailable,
        ..at!(named Bitmap, |s, c| s.stack.bitmap)
    },
    Spec {
        key: "filesystem",
        help: "File system; none uses the files or devices as they are.",
        paper: Some(
            "XFS comes close to the bare device; ext4 scans 18% less than the device, Btrfs 38% less (Haas et al. 2020, 4.4, Table 4).",
        ),
        kind: Kind::Choice(&names::<Filesystem, 5>()),
        scope: Scope::Rebuild,
        of_target: always,
        unavailable: filesystem_unavailable,
        ..at!(named Filesystem, |s, c| s.stack.filesystem)
    },
    Spec {
        key: "copy_on_write",
        help: "Btrfs: copy data on write, with checksums; off writes in place, as in Haas et al. 2020.",
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| (s.stack.filesystem != Filesystem::Btrfs).then_some("the file system is not btrfs"),
        ..at!(Bool, |s, c| s.stack.copy_on_write)
    },
    Spec {
        key: "mkfs_options",
        help: "Extra options for mkfs, separated by spaces: only those known to affect nothing but the stack's own file system.",
        kind: Kind::Text("options"),
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| no_filesystem(s),
        unavailable: |_, s, _, _| filesystem_options::mkfs(&s.stack).err(),
        ..at!(Text, |s, c| s.stack.mkfs_options)
    },
    Spec {
        key: "mount_options",
        help: "Mount options, separated by commas: only those known to affect nothing but the stack's own file system.",
        kind: Kind::Text("options"),
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| no_filesystem(s),
        unavailable: |_, s, _, _| filesystem_options::mount(&s.stack).err(),
        ..at!(Text, |s, c| s.stack.mount_options)
    },
    Spec {
        key: "data",
        help: "Size of the data file; none = 400 GB as in Haas et al. 2020, or four fifths of the file system if that is less.",
        paper: Some("400 GB of data and 100 GB of WAL (Haas et al. 2020, 3.2)."),
        kind: FILE_SIZE,
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| no_filesystem(s),
        ..at!(Size, |s, c| s.stack.data_bytes)
    },
    Spec {
        key: "wal",
        help: "Size of the WAL file; none = a quarter of the data file.",
        kind: FILE_SIZE,
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| no_filesystem(s),
        ..at!(Size, |s, c| s.stack.wal_bytes)
    },
    Spec {
        key: "price",
        help: "Price of a drive in $, for $ per TB and per GB/s; 0 = unknown.",
        kind: Kind::Float { min: 0.0, max: 1e6, steps: &[0.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0] },
        only_reckons: true,
        ..at!(Float, |s, c| s.stack.price)
    },
    Spec {
        key: "endurance_tb",
        help: "Rated endurance of a drive in TB written (TBW on its data sheet); 0 = unknown.",
        kind: Kind::Float { min: 0.0, max: 1e6, steps: &[0.0, 150.0, 300.0, 600.0, 1200.0, 2400.0, 7000.0] },
        only_reckons: true,
        ..at!(Float, |s, c| s.stack.endurance_tb)
    },
];

const FILE_SIZE: Kind = Kind::Size {
    min: 16 * MIB,
    max: 16 << 40,
    multiple: MIB,
    power_of_two: false,
    optional: true,
    steps: &[64 * MIB, GIB, 10 * GIB, 100 * GIB, 400 * GIB],
};

/// The number of members in the settings.
fn members(settings: &Settings) -> u64 {
    match settings.target.devices.len() as u64 {
        0 => settings.target.count,
        devices => devices,
    }
}

/// Why a setting of redundant arrays has no effect.
pub(super) fn not_redundant(settings: &Settings) -> Option<&'static str> {
    (!settings.stack.raid.is_md_redundant()).then_some("there is no md array with copies or parity")
}

fn bitmap_unavailable(value: &Value, s: &Settings, _: Class, conditions: Conditions) -> Option<String> {
    if *value != Value::Choice(Bitmap::Lockless.name()) || not_redundant(s).is_some() {
        return None;
    }
    let kernel = &conditions.facts.kernel;
    let has = kernel_version(kernel).is_none_or(|version| version >= (6, 18));
    (!has).then(|| format!("md has lockless bitmaps from Linux 6.18 on, this is {kernel}"))
}

fn lba_size_unavailable(value: &Value, s: &Settings, _: Class, conditions: Conditions) -> Option<String> {
    if *value == Value::Choice(LbaSize::Keep.name()) {
        return None;
    }
    if s.target.devices.is_empty() {
        return Some("the target is files: only NVMe drives can be formatted".into());
    }
    not_built_with(&[], s, conditions)
}

fn iommu_unavailable(value: &Value, s: &Settings, _: Class, conditions: Conditions) -> Option<String> {
    if *value == Value::Choice(IommuMode::Keep.name()) {
        return None;
    }
    if s.target.devices.is_empty() {
        return Some("the target is files: an IOMMU serves only drives".into());
    }
    if conditions.facts.platform.iommu_groups == 0 {
        return Some(
            "no IOMMU is in use: enable it in the firmware (VT-d, AMD-Vi) and the kernel (on Intel: intel_iommu=on)"
                .into(),
        );
    }
    not_built_with(&[], s, conditions)
}

fn no_filesystem(settings: &Settings) -> Option<&'static str> {
    (settings.stack.filesystem == Filesystem::None).then_some("there is no file system")
}

/// The reason if this host's kernel has no driver of that name.
fn no_driver(name: &str, conditions: Conditions) -> Option<String> {
    let lacks = conditions.facts.platform.lacking_drivers.iter().any(|lacking| lacking == name);
    lacks.then(|| format!("this kernel has no {name}, neither built in nor as a module"))
}

/// Why nothing can be built here with these tools.
fn not_built_with(tools: &[&str], settings: &Settings, conditions: Conditions) -> Option<String> {
    if !settings.touches_storage() {
        return None;
    }
    if conditions.facts.platform.unprivileged {
        return Some(
            "building a stack requires root (start stacktune with sudo): it attaches devices and mounts file systems"
                .to_owned(),
        );
    }
    let missing = |name: &&str| {
        let lacks = |tool: &&ToolFound| tool.name == **name && tool.path.is_none();
        conditions.facts.storage.tools.iter().find(lacks)
    };
    let tool = tools.iter().find_map(missing)?;
    Some(format!("{} is not installed: apt-get install {}", tool.name, tool.package))
}

fn raid_unavailable(value: &Value, s: &Settings, _: Class, conditions: Conditions) -> Option<String> {
    let Value::Choice(name) = value else { return None };
    let raid = Raid::named(name)?;
    let members = members(s);
    if members < raid.members_min() {
        return Some(format!("it needs {} members, but the target has {members}", raid.members_min()));
    }
    if raid.is_btrfs() && s.stack.filesystem != Filesystem::Btrfs {
        return Some("Btrfs's own RAID requires `stack.filesystem = \"btrfs\"`".into());
    }
    if raid.is_btrfs() && !s.stack.by_commands.is_empty() {
        return Some(
            "the layers by commands (stack.layer) leave one device, but Btrfs's own RAID needs several"
                .into(),
        );
    }
    let driver = match raid {
        Raid::Md0 => "raid0",
        Raid::Md1 => "raid1",
        Raid::Md5 | Raid::Md6 => "raid456",
        Raid::Md10 => "raid10",
        // Btrfs's own RAID: the file system's knob checks its driver.
        _ => return None,
    };
    no_driver(driver, conditions).or_else(|| not_built_with(&["mdadm"], s, conditions))
}

fn filesystem_unavailable(
    value: &Value,
    s: &Settings,
    class: Class,
    conditions: Conditions,
) -> Option<String> {
    let Value::Choice(name) = value else { return None };
    if *name == NONE {
        return None;
    }
    let missing = || not_built_with(&[&format!("mkfs.{name}")], s, conditions);
    if let Some(why) = no_driver(name, conditions).or_else(missing) {
        return Some(why);
    }
    // A layer made by commands turns them into one device.
    let several = members(s) > 1 && s.stack.raid == Raid::None && s.stack.by_commands.is_empty();
    several.then(|| {
        let one = if s.target.devices.is_empty() {
            "set `target.files.count` to 1 first"
        } else {
            "name a single device in `target.devices` first"
        };
        // No advice that this host can't follow.
        let md = Value::Choice(Raid::Md0.name());
        let joined = raid_unavailable(&md, s, class, conditions).is_none();
        let joined = if joined { ", or `stack.raid` to md0" } else { "" };
        format!(
            "{one}{joined}: a file system needs a single device, but the target has {} members",
            members(s)
        )
    })
}
