//! How a change to the host is undone, as recorded in the journal.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::LbaFormat;
use crate::printable::{self, Shown as _};
use crate::stack::devices::{BlockDevice, Drive};
use crate::stack::layer::LayerMade;

/// How to remove something that a step made. Each undo looks for what it names, does nothing if that is gone,
/// and touches nothing but the stack's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo")]
pub enum Undo {
    /// Removes a folder of the stack, if it is empty.
    RemoveFolder {
        /// The folder.
        dir: PathBuf,
        /// The folder of the stack for which this one is made, if it lies above that folder, which may not exist yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        above: Option<PathBuf>,
    },
    /// Removes a file in a folder of the stack.
    RemoveFile {
        /// The file.
        file: PathBuf,
    },
    /// Detaches the loop devices over a file of the stack.
    DetachLoop {
        /// The file.
        file: PathBuf,
    },
    /// Wipes the partition table with this id.
    RemovePartitions {
        /// The drive.
        drive: Drive,
        /// The table's unique id.
        disk_uuid: String,
    },
    /// Stops the array with this UUID and clears the superblocks that name it.
    RemoveArray {
        /// The node.
        path: PathBuf,
        /// Its UUID.
        uuid: String,
        /// The members.
        members: Vec<BlockDevice>,
    },
    /// Wipes the file system with this UUID from the devices.
    RemoveFilesystem {
        /// Its UUID.
        uuid: String,
        /// The devices.
        #[serde(rename = "places")]
        devices: Vec<BlockDevice>,
    },
    /// Takes down a command layer with the commands of its profile.
    LowerLayer {
        /// Its name in the profile.
        name: String,
        /// What it may have made, and its commands.
        made: LayerMade,
    },
    /// Makes sure that a layer holds nothing of others before it is taken down.
    LeaveLayer {
        /// Its name in the profile.
        name: String,
        /// What it has made.
        made: LayerMade,
    },
    /// Unmounts everything at a folder of the stack.
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
        /// The old value.
        old: String,
        /// The value that stacktune wrote.
        new: String,
        /// Settings that the kernel changes along with this one, and their old values.
        #[serde(default)]
        beside: Vec<(String, String)>,
    },
    /// Writes a setting of the stack's md array back, likewise.
    RestoreArray {
        /// The node.
        path: PathBuf,
        /// Its UUID.
        uuid: String,
        /// The file below `md/`.
        attribute: String,
        /// The old value.
        old: String,
        /// The value that stacktune wrote.
        new: String,
    },
    /// Does nothing if the stack goes, since its array goes too; if the stack stays, a member that was failed
    /// on purpose is replaced.
    ReplaceMember {
        /// The array's node.
        path: PathBuf,
        /// Its UUID.
        uuid: String,
        /// The member.
        member: BlockDevice,
    },
    /// Gives a drive that was handed over back to the kernel's driver.
    GiveBack {
        /// Its PCI address.
        address: String,
    },
    /// Restores the old LBA format of an `NVMe` drive that was formatted, if it holds nothing of others.
    RestoreFormat {
        /// The drive.
        drive: Drive,
        /// The number of its namespace.
        namespace: u32,
        /// The format that it had.
        old: LbaFormat,
        /// The one that stacktune gave it.
        new: LbaFormat,
    },
    /// Restores the old type of a drive's IOMMU group.
    RestoreIommu {
        /// The drive.
        drive: Drive,
        /// Its PCI address.
        address: String,
        /// The group's number.
        group: String,
        /// The old type.
        old: String,
        /// The type that stacktune wrote.
        new: String,
    },
    /// Removes a memory cgroup that stacktune made.
    RemoveCgroup {
        /// Its folder.
        dir: PathBuf,
        /// Whether stacktune enabled the memory controller in the folder above, for this cgroup.
        #[serde(default)]
        switched_on: bool,
    },
    /// Removes the folder of a program's log, which is on others' file system, with everything left in it.
    RemoveLog {
        /// The folder.
        dir: PathBuf,
        /// Where that file system is mounted: the folder still exists while it is unmounted.
        mount: PathBuf,
    },
    /// Kills everything in the cgroups of a program, and removes them.
    EndProgram {
        /// Their folders.
        dirs: Vec<PathBuf>,
        /// As in [`Undo::RemoveCgroup`].
        #[serde(default)]
        switched_on: bool,
    },
}

impl Undo {
    /// What it removes, in words.
    pub fn describe(&self) -> String {
        match self {
            Self::RemoveFolder { dir, .. } => format!("folder {}", dir.shown()),
            Self::RemoveLog { dir, .. } => format!("program's log in {}", dir.shown()),
            Self::RemoveFile { file } => format!("file {}", file.shown()),
            Self::DetachLoop { file } => format!("loop device over {}", file.shown()),
            Self::RemovePartitions { drive, .. } => format!("partition table on {}", drive.describe()),
            Self::RemoveArray { path, uuid, .. } => format!("md array {} ({uuid})", path.shown()),
            Self::RemoveFilesystem { uuid, devices } => {
                let devices: Vec<String> = devices.iter().map(BlockDevice::describe).collect();
                format!("file system {uuid} on {}", devices.join(", "))
            }
            Self::LowerLayer { name, made } => {
                format!("layer `{}` at {}", printable::line(name), made.path.shown())
            }
            Self::LeaveLayer { name, made } => {
                format!("use of layer `{}` at {}", printable::line(name), made.path.shown())
            }
            Self::Unmount { dir } => format!("mount at {}", dir.shown()),
            Self::RestoreQueue { drive, attribute, old, new, .. } => {
                format!("queue setting {attribute} of {}: {new} instead of {old}", drive.describe())
            }
            Self::RestoreArray { path, attribute, old, new, .. } => {
                format!("setting {attribute} of md array {}: {new} instead of {old}", path.shown())
            }
            Self::ReplaceMember { path, member, .. } => {
                let (member, array) = (member.describe(), path.shown());
                format!("member {member} of md array {array}, failed on purpose (md.array)")
            }
            Self::GiveBack { address } => format!("drive {address}, detached from the kernel"),
            Self::RestoreFormat { drive, old, new, .. } => format!(
                "LBA format of {}: blocks of {} instead of {} B",
                drive.describe(),
                new.block_bytes,
                old.block_bytes
            ),
            Self::RestoreIommu { drive, old, new, .. } => {
                format!("IOMMU type of {}: {new} instead of {old}", drive.describe())
            }
            Self::RemoveCgroup { dir, .. } => format!("cgroup {}", dir.shown()),
            Self::EndProgram { dirs, .. } => {
                let dirs: Vec<_> = dirs.iter().map(|dir| dir.shown()).collect();
                format!("program in cgroup {}", dirs.join(" and "))
            }
        }
    }
}
