//! The steps that build a stack: each is a command, and each has an undo.

use std::path::PathBuf;
use std::sync::Arc;

use crate::host::LbaFormat;
use crate::settings::{Bitmap, Filesystem, Raid};
use crate::stack::devices::{BlockDevice, Drive};
use crate::stack::journal::Undo;
use crate::stack::layer::Layer;
use crate::stack::runner::Tool;

/// A step. The plan names everything that a step makes, so that the undo can be recorded before the step
/// acts, and finds exactly that again.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Makes a folder for the stack.
    MakeFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// Makes a file of that size, all of it allocated, for a loop device.
    MakeFile {
        /// The file.
        file: PathBuf,
        /// Bytes.
        bytes: u64,
    },
    /// Attaches a loop device with direct I/O to a file.
    AttachLoop {
        /// The file.
        file: PathBuf,
    },
    /// Wipes signatures, and the first and the last MiB, through the guard.
    Blank {
        /// The drive.
        drive: Drive,
    },
    /// Discards everything from `from_bytes` to the end.
    Trim {
        /// The device.
        device: BlockDevice,
        /// The first byte.
        from_bytes: u64,
    },
    /// Writes all of it once sequentially, then pages at random.
    Precondition {
        /// The device.
        device: BlockDevice,
        /// Bytes of it.
        bytes: u64,
        /// Bytes of random pages; none if they follow the fill, which would otherwise overwrite them sequentially.
        random_bytes: u64,
    },
    /// Writes a partition table with one partition from the start.
    Partition {
        /// The drive.
        drive: Drive,
        /// The table's unique id.
        disk_uuid: String,
        /// The partition's unique id.
        uuid: String,
        /// Bytes of the partition.
        bytes: u64,
    },
    /// Formats an `NVMe` drive to blocks of another size, before it is wiped.
    Format {
        /// The drive.
        drive: Drive,
        /// The number of its namespace.
        namespace: u32,
        /// The format that it has.
        old: LbaFormat,
        /// The format that it gets.
        new: LbaFormat,
    },
    /// Changes the type of a drive's IOMMU group, while no driver has the drive.
    SetIommu {
        /// The drive.
        drive: Drive,
        /// Its PCI address.
        address: String,
        /// The group's number.
        group: String,
        /// The type before, as the kernel calls it.
        old: String,
        /// The new one.
        new: String,
    },
    /// Creates an md array, and wipes signatures left from its members' old content.
    CreateArray {
        /// The node.
        path: PathBuf,
        /// Its UUID.
        uuid: String,
        /// The level.
        raid: Raid,
        /// Bytes of a chunk; none for a mirror.
        chunk_bytes: Option<u64>,
        /// Whether the members are assumed to be in sync.
        assume_clean: bool,
        /// What it records about writes in progress.
        bitmap: Bitmap,
        /// The members.
        members: Vec<BlockDevice>,
    },
    /// Waits until the array is in sync.
    AwaitResync {
        /// The array.
        array: BlockDevice,
    },
    /// Runs one of the commands that make a layer. The first one's undo takes down the whole layer.
    RaiseLayer {
        /// The layer.
        layer: Arc<Layer>,
        /// The command's number, from 0.
        number: usize,
    },
    /// Makes sure that a layer's device stands on nothing but the stack's own devices, wipes signatures of
    /// old content showing through it, and measures it.
    HoldLayer {
        /// The layer.
        layer: Arc<Layer>,
    },
    /// Writes zeros over the first MiB of a partition or array, where an older stack of the same layout may
    /// have left its data set's header.
    Clear {
        /// An array or a partition.
        device: BlockDevice,
    },
    /// Makes a file system.
    MakeFilesystem {
        /// Its kind.
        filesystem: Filesystem,
        /// Btrfs's own RAID, or none.
        raid: Raid,
        /// The devices; several with Btrfs's own RAID.
        devices: Vec<BlockDevice>,
        /// Its UUID.
        uuid: String,
        /// More options.
        options: Vec<String>,
    },
    /// Mounts it.
    Mount {
        /// Its kind.
        filesystem: Filesystem,
        /// Its device (any of them with Btrfs's own RAID).
        device: BlockDevice,
        /// Where.
        dir: PathBuf,
        /// Options, separated by commas.
        options: String,
        /// The file system's UUID.
        uuid: String,
    },
}

impl Step {
    /// The drives that it uses as a whole.
    pub(crate) fn drives(&self) -> Vec<&Drive> {
        let devices = match self {
            Self::Blank { drive }
            | Self::Partition { drive, .. }
            | Self::Format { drive, .. }
            | Self::SetIommu { drive, .. } => {
                return vec![drive];
            }
            Self::Trim { device, .. }
            | Self::Precondition { device, .. }
            | Self::Clear { device }
            | Self::Mount { device, .. } => std::slice::from_ref(device),
            Self::CreateArray { members: devices, .. } | Self::MakeFilesystem { devices, .. } => devices,
            Self::RaiseLayer { layer, .. } | Self::HoldLayer { layer } => &layer.made.below,
            Self::MakeFolder { .. }
            | Self::MakeFile { .. }
            | Self::AttachLoop { .. }
            | Self::AwaitResync { .. } => &[],
        };
        let whole = devices.iter().filter_map(|device| match device {
            BlockDevice::Drive(drive) => Some(drive),
            _ => None,
        });
        whole.collect()
    }

    /// The undo of the step.
    pub fn undo(&self) -> Option<Undo> {
        Some(match self {
            Self::MakeFolder { dir } => Undo::RemoveFolder { dir: dir.clone(), above: None },
            Self::MakeFile { file, .. } => Undo::RemoveFile { file: file.clone() },
            Self::AttachLoop { file } => Undo::DetachLoop { file: file.clone() },
            Self::Partition { drive, disk_uuid, .. } => {
                Undo::RemovePartitions { drive: drive.clone(), disk_uuid: disk_uuid.clone() }
            }
            Self::Format { drive, namespace, old, new } => {
                Undo::RestoreFormat { drive: drive.clone(), namespace: *namespace, old: *old, new: *new }
            }
            Self::SetIommu { drive, address, group, old, new } => Undo::RestoreIommu {
                drive: drive.clone(),
                address: address.clone(),
                group: group.clone(),
                old: old.clone(),
                new: new.clone(),
            },
            Self::CreateArray { path, uuid, members, .. } => {
                Undo::RemoveArray { path: path.clone(), uuid: uuid.clone(), members: members.clone() }
            }
            Self::MakeFilesystem { devices, uuid, .. } => {
                Undo::RemoveFilesystem { uuid: uuid.clone(), devices: devices.clone() }
            }
            Self::Mount { dir, .. } => Undo::Unmount { dir: dir.clone() },
            Self::RaiseLayer { layer, number: 0 } => {
                Undo::LowerLayer { name: layer.name.clone(), made: layer.made.clone() }
            }
            Self::HoldLayer { layer } => {
                Undo::LeaveLayer { name: layer.name.clone(), made: layer.made.clone() }
            }
            Self::Blank { .. }
            | Self::Trim { .. }
            | Self::Precondition { .. }
            | Self::AwaitResync { .. }
            | Self::RaiseLayer { .. }
            | Self::Clear { .. } => return None,
        })
    }
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// Literal text.
    Text(String),
    /// The node of a device, which may be known only once it exists.
    Device(BlockDevice),
}

/// A command that a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The tool.
    pub tool: Tool,
    /// Its arguments.
    pub args: Vec<Arg>,
    /// Its standard input; may be empty.
    pub input: String,
}
