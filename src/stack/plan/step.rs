//! The steps by which a stack is built: each is a command, and each has an undo.

use std::path::PathBuf;

use crate::settings::{Filesystem, Raid};
use crate::stack::devices::{Drive, Place};
use crate::stack::journal::Undo;
use crate::stack::runner::Tool;

/// A step. Everything that it makes is named by the plan, so that its undo can be written down
/// before it acts, and finds just that again.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Makes a folder of the stack's own.
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
    /// Discards from `from_bytes` to the end.
    Trim {
        /// What is discarded.
        place: Place,
        /// The first byte.
        from_bytes: u64,
    },
    /// Writes all of it once in order, then random pages of twice its size.
    Precondition {
        /// What is written.
        place: Place,
        /// Bytes of it.
        bytes: u64,
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
    /// Creates an md array.
    CreateArray {
        /// The node.
        path: PathBuf,
        /// Its UUID.
        uuid: String,
        /// The level.
        raid: Raid,
        /// Bytes of a chunk; none for a mirror.
        chunk_bytes: Option<u64>,
        /// Whether the members are taken to be in sync.
        assume_clean: bool,
        /// The members.
        members: Vec<Place>,
    },
    /// Waits until the array is in sync.
    AwaitResync {
        /// The array.
        array: Place,
    },
    /// Makes a file system.
    MakeFilesystem {
        /// Which.
        filesystem: Filesystem,
        /// Btrfs's own RAID, or none.
        raid: Raid,
        /// On what; several with Btrfs's own RAID.
        places: Vec<Place>,
        /// Its UUID.
        uuid: String,
        /// More options.
        options: Vec<String>,
    },
    /// Mounts it.
    Mount {
        /// Which.
        filesystem: Filesystem,
        /// On what it lies (any of them with Btrfs's own RAID).
        place: Place,
        /// Where.
        dir: PathBuf,
        /// Options, separated by commas.
        options: String,
        /// The file system's UUID.
        uuid: String,
    },
}

impl Step {
    /// The drives that it works on as a whole.
    pub(crate) fn drives(&self) -> Vec<&Drive> {
        let places = match self {
            Self::Blank { drive } | Self::Partition { drive, .. } => return vec![drive],
            Self::Trim { place, .. } | Self::Precondition { place, .. } | Self::Mount { place, .. } => {
                std::slice::from_ref(place)
            }
            Self::CreateArray { members: places, .. } | Self::MakeFilesystem { places, .. } => places,
            Self::MakeFolder { .. }
            | Self::MakeFile { .. }
            | Self::AttachLoop { .. }
            | Self::AwaitResync { .. } => &[],
        };
        let whole = places.iter().filter_map(|place| match place {
            Place::Drive(drive) => Some(drive),
            _ => None,
        });
        whole.collect()
    }

    /// What takes away what the step makes.
    pub fn undo(&self) -> Option<Undo> {
        Some(match self {
            Self::MakeFolder { dir } => Undo::RemoveFolder { dir: dir.clone() },
            Self::MakeFile { file, .. } => Undo::RemoveFile { file: file.clone() },
            Self::AttachLoop { file } => Undo::DetachLoop { file: file.clone() },
            Self::Partition { drive, disk_uuid, .. } => {
                Undo::RemovePartitions { drive: drive.clone(), disk_uuid: disk_uuid.clone() }
            }
            Self::CreateArray { path, uuid, members, .. } => {
                Undo::RemoveArray { path: path.clone(), uuid: uuid.clone(), members: members.clone() }
            }
            Self::MakeFilesystem { places, uuid, .. } => {
                Undo::RemoveFilesystem { uuid: uuid.clone(), places: places.clone() }
            }
            Self::Mount { dir, .. } => Undo::Unmount { dir: dir.clone() },
            Self::Blank { .. } | Self::Trim { .. } | Self::Precondition { .. } | Self::AwaitResync { .. } => {
                return None;
            }
        })
    }
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// As it is.
    Text(String),
    /// The node of a place, which may be known only once it was made.
    Place(Place),
}

/// A command that a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The tool.
    pub tool: Tool,
    /// Its arguments.
    pub args: Vec<Arg>,
    /// What it reads from its standard input; empty is nothing.
    pub input: String,
}
