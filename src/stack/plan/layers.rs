//! From settings to steps: members, drive state, array, command layers and file system, bottom up.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::fit::file_sizes;
use super::model::{Destroyed, Exposed};
use super::spec::StackSpec;
use super::step::Step;
use super::{capacity, filesystem_options};
use crate::error::{Error, Result};
use crate::settings::paths::absolute;
use crate::settings::{DriveState, Filesystem, Raid, Stack};
use crate::stack::devices::BlockDevice;
use crate::stack::id::StackId;
use crate::stack::layer::Layer;
use crate::units::{MIB, approx_size, floor_mib};

/// A member must have room for a header and some pages of WAL and data.
pub(super) const MEMBER_BYTES_MIN: u64 = 64 * MIB;

/// Random pages are written for this many times the size that is preconditioned.
const RANDOM_TIMES: u64 = 2;

/// A member on which the next layer is built.
struct Member {
    device: BlockDevice,
    bytes: u64,
}

/// The steps to a stack, and their result.
pub(super) struct Layers {
    pub steps: Vec<Step>,
    pub exposed: Exposed,
    pub usable_bytes: u64,
    /// Bytes of each device below the file system.
    pub bytes_below: Vec<u64>,
    /// Bytes written to each member, by the steps and by the fill.
    pub writes_bytes: Vec<u64>,
}

/// The id and folders that a stack's layers are named after.
pub(super) struct StackPlace<'a> {
    pub id: &'a StackId,
    pub state_dir: &'a Path,
    /// Missing parents of the stack's folder, topmost first.
    pub missing: &'a [PathBuf],
}

impl Layers {
    /// The layers on these drives or, without drives, on loop devices over files.
    pub(super) fn of(spec: &StackSpec, drives: &[Destroyed], place: &StackPlace) -> Result<Self> {
        let stack = &spec.layers;
        let mut steps = Vec::new();
        let members = if drives.is_empty() {
            loops(spec, place, &mut steps)?
        } else {
            drives.iter().for_each(|d| steps.push(Step::Blank { drive: d.drive.clone() }));
            let member = |d: &Destroyed| Member {
                device: BlockDevice::Drive(d.drive.clone()),
                bytes: d.drive.size_bytes,
            };
            drives.iter().map(member).collect()
        };
        prepare(spec, &members, &mut steps);
        let members = divide(stack, members, place.id, &mut steps)?;
        let sizes: Vec<u64> = members.iter().map(|member| member.bytes).collect();
        let devices = array(stack, members, place.id, &mut steps);
        let devices = by_commands(stack, devices, place.id, &mut steps)?;
        let exposed = filesystem(spec, devices, &sizes, place, &mut steps)?;
        Ok(Self {
            steps,
            writes_bytes: writes_bytes(spec, &sizes, &exposed),
            exposed,
            usable_bytes: capacity::usable_bytes(stack, &sizes),
            bytes_below: if stack.raid.is_btrfs() {
                sizes
            } else {
                vec![capacity::device_bytes(stack, &sizes)]
            },
        })
    }
}

/// The stack's folder for the files of its loop devices.
pub(super) fn files_dir(spec: &StackSpec, id: &StackId) -> Result<PathBuf> {
    folder_in("target.files.dir", &spec.target.dir, id)
}

/// Its folder for the log of the program on it; none if the log has no place of its own.
pub(super) fn log_dir(spec: &StackSpec, id: &StackId) -> Result<Option<PathBuf>> {
    let wal = spec.wal_target.as_ref().filter(|_| spec.program);
    wal.map(|wal| folder_in("wal.target", wal, id)).transpose()
}

fn folder_in(setting: &str, dir: &str, id: &StackId) -> Result<PathBuf> {
    Ok(absolute(setting, dir)?.join(format!("stack-{}", id.0)))
}

/// Loop devices over new files, in a folder of the stack.
fn loops(spec: &StackSpec, place: &StackPlace, steps: &mut Vec<Step>) -> Result<Vec<Member>> {
    let folder = files_dir(spec, place.id)?;
    let bytes = floor_mib(spec.target.size_bytes);
    if bytes < MEMBER_BYTES_MIN {
        let (has, needs) = (approx_size(bytes), approx_size(MEMBER_BYTES_MIN));
        let what = format!("files of {has} are too small to build on: {needs} is needed");
        return Err(Error::input(what).hint("set target.files.size"));
    }
    steps.extend(place.missing.iter().cloned().map(|dir| Step::MakeFolder { dir }));
    steps.push(Step::MakeFolder { dir: folder.clone() });
    let members = (0..spec.target.count).map(|index| {
        let file = folder.join(format!("loop-{index}.img"));
        steps.push(Step::MakeFile { file: file.clone(), bytes });
        steps.push(Step::AttachLoop { file: file.clone() });
        Member { device: BlockDevice::Loop { file }, bytes }
    });
    Ok(members.collect())
}

/// Brings the members into the requested state, as whole devices, since the backup of a partition table is at
/// the very end, in the trimmed part.
fn prepare(spec: &StackSpec, members: &[Member], steps: &mut Vec<Step>) {
    let stack = &spec.layers;
    for Member { device, bytes } in members {
        let used_bytes = capacity::used_bytes(stack, *bytes);
        let trimmed_from = match stack.state {
            // A new file is all zeros: it is as good as trimmed, and a discard would free its space.
            DriveState::Trimmed => (!matches!(device, BlockDevice::Loop { .. })).then_some(0),
            _ => (used_bytes < *bytes).then_some(used_bytes),
        };
        steps.extend(trimmed_from.map(|from_bytes| Step::Trim { device: device.clone(), from_bytes }));
        if stack.state == DriveState::Preconditioned {
            // Pages are filled sequentially, so the random ones come after the fill.
            let fills_pages = spec.pairs.is_none() && !spec.program;
            let random_bytes = if fills_pages { 0 } else { RANDOM_TIMES * used_bytes };
            steps.push(Step::Precondition { device: device.clone(), bytes: used_bytes, random_bytes });
        }
    }
}

/// Partitions each drive if not all of it is used.
fn divide(stack: &Stack, members: Vec<Member>, id: &StackId, steps: &mut Vec<Step>) -> Result<Vec<Member>> {
    if stack.use_percent >= 100 {
        return Ok(members);
    }
    let divided = members.into_iter().enumerate().map(|(number, member)| {
        let BlockDevice::Drive(drive) = member.device else {
            let what =
                "stack.use applies to drives, but the target is files: use smaller files for the same effect";
            return Err(Error::input(what).hint("set target.devices, or stack.use = \"100%\""));
        };
        let bytes = capacity::member_bytes(stack, member.bytes);
        let (disk_uuid, uuid) = (id.uuid(1, number), id.uuid(2, number));
        steps.push(Step::Partition { drive: drive.clone(), disk_uuid, uuid: uuid.clone(), bytes });
        Ok(Member { device: BlockDevice::Partition { drive, uuid }, bytes })
    });
    divided.collect()
}

/// Makes an md array of the members, if one is requested.
fn array(stack: &Stack, members: Vec<Member>, id: &StackId, steps: &mut Vec<Step>) -> Vec<BlockDevice> {
    let (raid, members) = (stack.raid, members.into_iter().map(|member| member.device).collect());
    if !raid.is_md() {
        return members;
    }
    // Named after the stack's id, so that the plan stays the same whatever arrays exist meanwhile.
    let number = 200 + u64::from_str_radix(&id.0[..8], 16).unwrap_or_default() % 800;
    let (path, uuid) = (PathBuf::from(format!("/dev/md{number}")), id.uuid(3, 0));
    let array = BlockDevice::Array { path: path.clone(), uuid: uuid.clone() };
    steps.push(Step::CreateArray {
        path,
        uuid,
        raid,
        chunk_bytes: (raid != Raid::Md1).then_some(stack.chunk_bytes),
        assume_clean: stack.assume_clean && raid != Raid::Md0,
        bitmap: stack.bitmap,
        members,
    });
    if awaits_resync(stack) {
        steps.push(Step::AwaitResync { array: array.clone() });
    }
    vec![array]
}

/// Makes the layers that the profile's own commands make.
fn by_commands(
    stack: &Stack,
    mut devices: Vec<BlockDevice>,
    id: &StackId,
    steps: &mut Vec<Step>,
) -> Result<Vec<BlockDevice>> {
    for layer in &stack.by_commands {
        let layer = Arc::new(Layer::of(layer, &devices, id)?);
        steps.extend((0..layer.up.len()).map(|number| Step::RaiseLayer { layer: layer.clone(), number }));
        steps.push(Step::HoldLayer { layer: layer.clone() });
        devices = vec![layer.made.device()];
    }
    Ok(devices)
}

fn awaits_resync(stack: &Stack) -> bool {
    stack.raid.is_md() && stack.raid != Raid::Md0 && !stack.assume_clean
}

/// Bytes written to each member: by bringing it into its state, by md's resync, and by the fill with its copies or
/// parity. Metadata that md and mkfs write is not counted, nor is parity that is written more than once.
fn writes_bytes(spec: &StackSpec, members: &[u64], exposed: &Exposed) -> Vec<u64> {
    let stack = &spec.layers;
    let count = members.len() as u64;
    let smallest = members.iter().min().copied().unwrap_or(0);
    let halves = capacity::data_halves(stack.raid, count).max(1);
    let (state, fills) = match (stack.state, spec.pairs.is_some() || spec.program) {
        (DriveState::Preconditioned, true) => ((1 + RANDOM_TIMES) * smallest, 1),
        (DriveState::Preconditioned, false) => (smallest, 1 + RANDOM_TIMES),
        _ => (0, 1),
    };
    let redundant = (2 * count).saturating_sub(halves);
    let fill = match exposed {
        Exposed::Devices(_) => capacity::device_bytes(stack, members),
        Exposed::Files { data_bytes, wal_bytes, .. } => data_bytes + wal_bytes,
    };
    let filled = (u128::from(fills * fill) * 2 / u128::from(halves)) as u64;
    let resync = |number: u64| match stack.raid {
        _ if !awaits_resync(stack) => 0,
        // md computes the last member of a new array from the others.
        Raid::Md5 => smallest * u64::from(number + 1 == count),
        // … and copies the first of each pair, or of all, to the others.
        Raid::Md1 => smallest * u64::from(number > 0),
        Raid::Md10 if count.is_multiple_of(2) => number % 2 * smallest,
        _ => smallest / (2 * count) * redundant,
    };
    (0..count).map(|number| state + resync(number) + filled).collect()
}

/// Makes and mounts the file system, if one is requested.
fn filesystem(
    spec: &StackSpec,
    devices: Vec<BlockDevice>,
    members: &[u64],
    place: &StackPlace,
    steps: &mut Vec<Step>,
) -> Result<Exposed> {
    let (stack, filesystem) = (&spec.layers, spec.layers.filesystem);
    if filesystem == Filesystem::None {
        // Whole drives have been wiped, and new files are zeros.
        let made =
            devices.iter().filter(|at| !matches!(at, BlockDevice::Drive(_) | BlockDevice::Loop { .. }));
        steps.extend(made.map(|device| Step::Clear { device: device.clone() }));
        return Ok(Exposed::Devices(devices));
    }
    capacity::refuse_too_small(stack, members)?;
    let room_bytes = capacity::usable_bytes(stack, members);
    let (data_bytes, wal_bytes) = file_sizes(stack, (spec.pairs.as_ref(), spec.program), room_bytes)?;
    let (mkfs_options, mount_options) = (filesystem_options::mkfs(stack)?, filesystem_options::mount(stack)?);
    let (device, uuid) = (devices[0].clone(), place.id.uuid(4, 0));
    let dir = place.state_dir.join("mnt").join(&place.id.0);
    steps.push(Step::MakeFilesystem {
        filesystem,
        raid: stack.raid,
        devices,
        uuid: uuid.clone(),
        options: mkfs_options,
    });
    steps.push(Step::MakeFolder { dir: dir.clone() });
    steps.push(Step::Mount { filesystem, device, dir: dir.clone(), options: mount_options, uuid });
    Ok(Exposed::Files { dir, data_bytes, wal_bytes })
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
