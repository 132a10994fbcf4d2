//! From settings to steps: members, drive state, array, file system, one layer on the other.

use std::path::{Path, PathBuf};

use super::place::Place;
use super::plan::{Destroyed, StackId, Top};
use super::step::Step;
use crate::error::{Error, Result};
use crate::profile::expand_home;
use crate::profile::settings::{DriveState, Filesystem, Raid, Settings};
use crate::units::{MIB, approx_size};
use crate::volume::layout::floor_mib;

/// The paper's data and WAL (section 3.2), in whole MiB.
const PAPERS_DATA_BYTES: u64 = floor_mib(400_000_000_000);
const PAPERS_WAL_BYTES: u64 = floor_mib(100_000_000_000);
/// A partition begins at the usual first MiB, and ends a MiB before the backup of its table.
const TABLE_BYTES: u64 = 2 * MIB;
/// What md keeps of a member for itself, at most (its superblock and what lies before the data).
const MD_OWN_BYTES_MAX: u64 = 132 * MIB;

/// A member on which the next layer is built.
struct Member {
    place: Place,
    bytes: u64,
}

/// The steps to a stack, and what they come to.
pub(super) struct Layers {
    pub steps: Vec<Step>,
    pub top: Top,
    pub usable_bytes: u64,
    pub writes_bytes: u64,
}

impl Layers {
    /// The layers of the settings on these drives; on loop devices over files where there are none.
    pub(super) fn of(
        settings: &Settings,
        drives: &[Destroyed],
        state_dir: &Path,
        id: &StackId,
    ) -> Result<Self> {
        let mut steps = Vec::new();
        let members = if drives.is_empty() {
            loops(settings, id, &mut steps)?
        } else {
            drives.iter().for_each(|d| steps.push(Step::Blank { drive: d.drive.clone() }));
            let member =
                |d: &Destroyed| Member { place: Place::Drive(d.drive.clone()), bytes: d.drive.size_bytes };
            drives.iter().map(member).collect()
        };
        let prepared_bytes = prepare(settings, &members, &mut steps);
        let members = divide(settings, members, id, &mut steps)?;
        let members = array(settings, members, id, &mut steps);
        let usable_bytes = usable(settings.stack.raid, &members);
        let top = filesystem(settings, &members, usable_bytes, (state_dir, id), &mut steps)?;
        let filled_bytes = match &top {
            Top::Files { data_bytes, wal_bytes, .. } => data_bytes + wal_bytes,
            Top::Devices(_) => usable_bytes,
        };
        let writes_bytes = prepared_bytes + (filled_bytes as f64 * copies(settings)) as u64;
        Ok(Self { steps, top, usable_bytes, writes_bytes })
    }
}

/// An id of the plan's own: a version 4 UUID of the stack's id, and of what it is for.
fn uuid(id: &StackId, kind: u16, number: usize) -> String {
    let id = &id.0;
    format!("{}-{}-4{kind:03x}-8{number:03x}-{}{:08x}", &id[..8], &id[8..12], &id[12..16], 0x57ac_4e00)
}

/// Loop devices over new files, in a folder of the stack's own.
fn loops(settings: &Settings, id: &StackId, steps: &mut Vec<Step>) -> Result<Vec<Member>> {
    let dir = std::path::absolute(expand_home(&settings.target.dir)?)
        .map_err(|error| Error::input(format!("target.files.dir: {error}")))?;
    let folder = dir.join(format!("stack-{}", id.0));
    let bytes = floor_mib(settings.target.size_bytes);
    steps.push(Step::MakeFolder { dir: folder.clone() });
    let members = (0..settings.target.count).map(|index| {
        let file = folder.join(format!("loop-{index}.img"));
        steps.push(Step::MakeFile { file: file.clone(), bytes });
        steps.push(Step::AttachLoop { file: file.clone() });
        Member { place: Place::Loop { file }, bytes }
    });
    Ok(members.collect())
}

/// Brings the drives into the state asked for. Returns the bytes that it writes.
fn prepare(settings: &Settings, members: &[Member], steps: &mut Vec<Step>) -> u64 {
    let mut written_bytes = 0;
    for Member { place, bytes } in members {
        match settings.stack.state {
            DriveState::AsIs => {}
            DriveState::Trimmed => steps.push(Step::Trim { place: place.clone(), from_bytes: 0 }),
            DriveState::Preconditioned => {
                let bytes = share(*bytes, settings);
                steps.push(Step::Precondition { place: place.clone(), bytes });
                written_bytes += 3 * bytes;
            }
        }
    }
    written_bytes
}

fn share(bytes: u64, settings: &Settings) -> u64 {
    floor_mib(bytes / 100 * settings.stack.use_percent)
}

/// Makes a partition of each drive where not all of it is used, and trims the rest.
fn divide(
    settings: &Settings,
    members: Vec<Member>,
    id: &StackId,
    steps: &mut Vec<Step>,
) -> Result<Vec<Member>> {
    if settings.stack.use_percent >= 100 {
        return Ok(members);
    }
    let divided = members.into_iter().enumerate().map(|(number, member)| {
        let Place::Drive(drive) = member.place else {
            let what = "stack.use concerns drives, and the target is files: a smaller file does the same";
            return Err(Error::input(what).hint("set target.devices, or stack.use = \"100%\""));
        };
        let bytes = share(member.bytes, settings).saturating_sub(TABLE_BYTES);
        let (disk_uuid, uuid) = (uuid(id, 1, number), uuid(id, 2, number));
        let whole = Place::Drive(drive.clone());
        // All of it where it was to be trimmed, the rest in any case.
        if settings.stack.state != DriveState::Trimmed {
            steps.push(Step::Trim { place: whole, from_bytes: share(member.bytes, settings) });
        }
        steps.push(Step::Partition { drive: drive.clone(), disk_uuid, uuid: uuid.clone(), bytes });
        Ok(Member { place: Place::Partition { drive, uuid }, bytes })
    });
    divided.collect()
}

/// Makes an md array of the members, where one is asked for.
fn array(settings: &Settings, members: Vec<Member>, id: &StackId, steps: &mut Vec<Step>) -> Vec<Member> {
    let (stack, raid) = (&settings.stack, settings.stack.raid);
    if !raid.is_md() {
        return members;
    }
    // Of its own id, so that the plan is the same whatever stands while it is made.
    let number = 200 + u64::from_str_radix(&id.0[..8], 16).unwrap_or_default() % 800;
    let (path, uuid) = (PathBuf::from(format!("/dev/md{number}")), uuid(id, 3, 0));
    let array = Place::Array { path: path.clone(), uuid: uuid.clone() };
    steps.push(Step::CreateArray {
        path,
        uuid,
        raid,
        chunk_bytes: (raid != Raid::Md1).then_some(stack.chunk_bytes),
        assume_clean: stack.assume_clean && raid != Raid::Md0,
        members: members.iter().map(|member| member.place.clone()).collect(),
    });
    if raid != Raid::Md0 && !stack.assume_clean {
        steps.push(Step::AwaitResync { array: array.clone() });
    }
    let smallest = members.iter().map(|member| member.bytes).min().unwrap_or_default();
    let own_bytes = (smallest / 16).min(MD_OWN_BYTES_MAX);
    let each_bytes = floor_mib(smallest - own_bytes);
    vec![Member { place: array, bytes: striped(raid, members.len() as u64, each_bytes) }]
}

/// Bytes that a RAID of members of that size holds.
fn striped(raid: Raid, members: u64, each_bytes: u64) -> u64 {
    match raid {
        Raid::None | Raid::Md0 | Raid::Btrfs0 => members * each_bytes,
        Raid::Md1 => each_bytes,
        Raid::Md5 | Raid::Btrfs5 => members.saturating_sub(1) * each_bytes,
        Raid::Md6 => members.saturating_sub(2) * each_bytes,
        Raid::Md10 | Raid::Btrfs1 | Raid::Btrfs10 => members * each_bytes / 2,
    }
}

/// Bytes that are written to the drives for one of data.
fn copies(settings: &Settings) -> f64 {
    let members = super::worth::members(settings);
    let (all, data) = (members * MIB, striped(settings.stack.raid, members, MIB).max(1));
    all as f64 / data as f64
}

fn usable(raid: Raid, members: &[Member]) -> u64 {
    let smallest = members.iter().map(|member| member.bytes).min().unwrap_or_default();
    if raid.is_md() { smallest } else { striped(raid, members.len() as u64, smallest) }
}

/// Makes and mounts the file system, where one is asked for.
fn filesystem(
    settings: &Settings,
    members: &[Member],
    usable_bytes: u64,
    (state_dir, id): (&Path, &StackId),
    steps: &mut Vec<Step>,
) -> Result<Top> {
    let stack = &settings.stack;
    let places: Vec<Place> = members.iter().map(|member| member.place.clone()).collect();
    if stack.filesystem == Filesystem::None {
        return Ok(Top::Devices(places));
    }
    let place = places[0].clone();
    let (uuid, dir) = (uuid(id, 4, 0), state_dir.join("mnt").join(&id.0));
    let (data_bytes, wal_bytes) = file_sizes(settings, usable_bytes)?;
    steps.push(Step::MakeFilesystem {
        filesystem: stack.filesystem,
        raid: stack.raid,
        places,
        uuid: uuid.clone(),
        options: stack.mkfs_options.split_whitespace().map(str::to_owned).collect(),
    });
    steps.push(Step::MakeFolder { dir: dir.clone() });
    let in_place = stack.filesystem == Filesystem::Btrfs && !stack.copy_on_write;
    let own = in_place.then_some("nodatacow");
    let options = own.into_iter().chain(Some(stack.mount_options.as_str()).filter(|text| !text.is_empty()));
    let options = options.collect::<Vec<_>>().join(",");
    steps.push(Step::Mount { filesystem: stack.filesystem, place, dir: dir.clone(), options, uuid });
    Ok(Top::Files { dir, data_bytes, wal_bytes })
}

/// Bytes of a file system that files can have: an estimate on the safe side, for nothing tells before
/// it is made. What does not fit after all is refused when the files are made.
fn room(filesystem: Filesystem, bytes: u64) -> u64 {
    let (percent, own_bytes) = match filesystem {
        Filesystem::None => (100, 0),
        Filesystem::Ext4 => (92, 24 * MIB),
        Filesystem::Xfs => (95, 80 * MIB),
        Filesystem::Btrfs => (88, 96 * MIB),
        Filesystem::F2fs => (82, 96 * MIB),
    };
    floor_mib((bytes / 100 * percent).saturating_sub(own_bytes))
}

/// Bytes of the data file and of the WAL file.
fn file_sizes(settings: &Settings, usable_bytes: u64) -> Result<(u64, u64)> {
    let stack = &settings.stack;
    let room_bytes = room(stack.filesystem, usable_bytes);
    let data_bytes = stack.data_bytes.unwrap_or_else(|| {
        let left = stack.wal_bytes.map_or(room_bytes / 5 * 4, |wal| room_bytes.saturating_sub(wal));
        floor_mib(left.min(PAPERS_DATA_BYTES))
    });
    let wal_bytes = stack.wal_bytes.unwrap_or_else(|| floor_mib((data_bytes / 4).min(PAPERS_WAL_BYTES)));
    let least = 8 * MIB;
    if data_bytes + wal_bytes > room_bytes || data_bytes < least || wal_bytes < 2 * MIB {
        let (data, wal) = (approx_size(data_bytes), approx_size(wal_bytes));
        let (room, usable) = (approx_size(room_bytes), approx_size(usable_bytes));
        let what =
            format!("{data} of data and {wal} of WAL on a file system of {usable}: it has about {room}");
        return Err(Error::input(what).hint("choose stack.data and stack.wal to fit, or larger members"));
    }
    Ok((data_bytes, wal_bytes))
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
