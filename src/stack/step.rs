//! The steps by which a stack is built: each is a command, and each has an undo.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::place::{Drive, Place};
use super::runner::Tool;
use crate::profile::settings::{Filesystem, Raid};

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

/// How what a step made is taken away: each looks for what is named, does nothing where it is gone,
/// and touches nothing that is not the stack's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo")]
pub enum Undo {
    /// Removes a folder of the stack's own, if it is empty.
    RemoveFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// Removes a file in a folder of the stack's own.
    RemoveFile {
        /// The file.
        file: PathBuf,
    },
    /// Detaches the loop devices over a file of the stack's own.
    DetachLoop {
        /// The file.
        file: PathBuf,
    },
    /// Wipes the partition table with that id.
    RemovePartitions {
        /// The drive.
        drive: Drive,
        /// The table's unique id.
        disk_uuid: String,
    },
    /// Stops the array of that UUID and clears the superblocks that name it.
    RemoveArray {
        /// The node.
        path: PathBuf,
        /// Its UUID.
        uuid: String,
        /// The members.
        members: Vec<Place>,
    },
    /// Wipes the file system of that UUID from the devices.
    RemoveFilesystem {
        /// Its UUID.
        uuid: String,
        /// On what.
        places: Vec<Place>,
    },
    /// Unmounts what is mounted at a folder of the stack's own.
    Unmount {
        /// The folder.
        dir: PathBuf,
    },
    /// Writes a queue setting back, if it still has the value that stacktune gave it.
    RestoreQueue {
        /// The drive.
        drive: Drive,
        /// The file below `queue/`.
        attribute: String,
        /// What it was.
        old: String,
        /// What stacktune wrote.
        new: String,
        /// Settings that the kernel changes along with this one, as they were.
        #[serde(default)]
        beside: Vec<(String, String)>,
    },
    /// Removes a memory cgroup that stacktune made.
    RemoveCgroup {
        /// Its folder.
        dir: PathBuf,
        /// Whether stacktune switched the memory controller on in the folder above, for this one.
        #[serde(default)]
        switched_on: bool,
    },
}

impl Step {
    /// The commands that the step runs, in order.
    pub fn commands(&self) -> Vec<CommandLine> {
        let tool = |program, package| Tool { program, package };
        let line = |tool, text: &[&str], places: &[Place]| {
            let text = text.iter().map(|word| Arg::Text((*word).to_owned()));
            let args = text.chain(places.iter().cloned().map(Arg::Place)).collect();
            CommandLine { tool, args, input: String::new() }
        };
        match self {
            Self::AttachLoop { file } => vec![line(
                super::runner::LOSETUP,
                &["--find", "--show", "--direct-io=on", "--nooverlap", &file.display().to_string()],
                &[],
            )],
            Self::Trim { place, from_bytes } => {
                let offset = format!("--offset={from_bytes}");
                vec![line(tool("blkdiscard", "util-linux"), &[&offset], std::slice::from_ref(place))]
            }
            Self::Partition { drive, disk_uuid, uuid, bytes } => vec![CommandLine {
                input: format!(
                    "label: gpt\nlabel-id: {disk_uuid}\nstart=2048, size={}, uuid={uuid}\n",
                    bytes / 512
                ),
                ..line(super::runner::SFDISK, &["--quiet"], &[Place::Drive(drive.clone())])
            }],
            Self::CreateArray { path, uuid, raid, assume_clean, members, .. } => {
                let (path, uuid) = (path.display().to_string(), format!("--uuid={uuid}"));
                let level = match raid {
                    Raid::Md0 => "--level=0",
                    Raid::Md1 => "--level=1",
                    Raid::Md6 => "--level=6",
                    Raid::Md10 => "--level=10",
                    _ => "--level=5",
                };
                let devices = format!("--raid-devices={}", members.len());
                let mut words = vec!["--create", &path, "--run", &uuid, level, &devices];
                words.extend(assume_clean.then_some("--assume-clean"));
                vec![line(super::runner::MDADM, &words, members)]
            }
            Self::MakeFilesystem { filesystem, raid, places, uuid, options } => {
                let options = options.iter().map(String::as_str);
                let (tool, words) = match filesystem {
                    Filesystem::Ext4 => (tool("mkfs.ext4", "e2fsprogs"), vec!["-q", "-U", uuid]),
                    Filesystem::Xfs => (tool("mkfs.xfs", "xfsprogs"), vec!["-q", "-m", ""]),
                    Filesystem::F2fs => (tool("mkfs.f2fs", "f2fs-tools"), vec!["-q", "-U", uuid]),
                    _ => {
                        let data = match raid {
                            Raid::Btrfs1 => "raid1",
                            Raid::Btrfs0 => "raid0",
                            _ => "single",
                        };
                        (tool("mkfs.btrfs", "btrfs-progs"), vec!["-q", "-U", uuid, "-d", data])
                    }
                };
                let own = format!("uuid={uuid}");
                let words: Vec<&str> = words
                    .into_iter()
                    .map(|word| if word.is_empty() { &own } else { word })
                    .chain(options)
                    .collect();
                vec![line(tool, &words, places)]
            }
            Self::Mount { place, dir, options, .. } => {
                let mut mount = line(tool("mount", "mount"), &["-o", options], std::slice::from_ref(place));
                mount.args.push(Arg::Text(dir.display().to_string()));
                vec![mount]
            }
            Self::MakeFolder { .. }
            | Self::MakeFile { .. }
            | Self::Blank { .. }
            | Self::Precondition { .. }
            | Self::AwaitResync { .. } => Vec::new(),
        }
    }
}
