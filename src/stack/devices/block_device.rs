//! The block devices of a stack, named before they exist and found again after a crash.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::arrays::arrays;
use super::drive::Drive;
use super::layers::layer_node;
use super::loops::loops_over;
use super::node;
use super::partitions::{first_partition, partition};
use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::stack::runner::{Runner, quoted};

/// How long udev or devtmpfs can take to make the node of a new device.
const NODE_PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// A block device that a step makes or uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockDevice {
    /// A drive of the host.
    Drive(Drive),
    /// The loop device over a file of the stack, whatever number the kernel gave it.
    Loop {
        /// The file.
        file: PathBuf,
    },
    /// The stack's partition of a drive.
    Partition {
        /// The drive.
        drive: Drive,
        /// The partition's unique id, chosen by the plan.
        uuid: String,
    },
    /// An md array.
    Array {
        /// The node that the plan chose.
        path: PathBuf,
        /// Its UUID, chosen by the plan.
        uuid: String,
    },
    /// The device that a command layer makes.
    Layer {
        /// Its path, with the stack's id.
        path: PathBuf,
    },
}

impl BlockDevice {
    /// Its current node. Waits for one that was just made.
    ///
    /// # Errors
    /// Refused if a drive is gone or a different one; failed if no node appears.
    pub fn resolve(&self, runner: &Runner) -> Result<PathBuf> {
        let patience_ends = Instant::now() + NODE_PATIENCE;
        loop {
            let found = match self {
                Self::Drive(drive) => Some(drive.find()?.path),
                Self::Loop { file } => loops_over(runner, file)?.pop(),
                Self::Partition { drive, uuid } => partition(runner, &drive.find()?, uuid)?,
                Self::Array { uuid, .. } => arrays(runner, uuid)?.pop(),
                Self::Layer { path } => layer_node(path)?,
            };
            if let Some(node) = found.filter(|node| node.exists()) {
                node::check(&node)?;
                return Ok(node);
            }
            if Instant::now() >= patience_ends {
                return Err(Error::failed(format!("there is no node for {}", self.describe()))
                    .hint("in a container /dev may lack what the kernel makes: run on the host itself"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// All nodes that it may have, without waiting; after a reboot a drive may have several candidates.
    ///
    /// Having none is not an error unless the drive itself is missing: then its content can't be seen.
    /// # Errors
    /// Refused if a node belongs to another device.
    pub(crate) fn nodes(&self, runner: &Runner, same_boot: bool) -> Result<Found> {
        let found = self.find_nodes(runner, same_boot)?;
        if let Found::At(nodes) = &found {
            nodes.iter().filter(|node| node.exists()).try_for_each(|node| node::check(node))?;
        }
        Ok(found)
    }

    fn find_nodes(&self, runner: &Runner, same_boot: bool) -> Result<Found> {
        match self {
            Self::Loop { file } => loops_over(runner, file).map(Found::At),
            Self::Array { uuid, .. } => arrays(runner, uuid).map(Found::At),
            Self::Layer { path } => Ok(Found::At(layer_node(path)?.into_iter().collect())),
            Self::Drive(drive) => Ok(match drive.candidates(same_boot) {
                none if none.is_empty() => Found::Missing(drive.clone()),
                devices => Found::At(devices.into_iter().map(|device| device.path).collect()),
            }),
            Self::Partition { drive, uuid } => {
                let devices = drive.candidates(same_boot);
                if devices.is_empty() {
                    return Ok(Found::Missing(drive.clone()));
                }
                let nodes = devices.iter().map(|device| partition(runner, device, uuid));
                Ok(Found::At(nodes.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()))
            }
        }
    }

    /// As a word of a command: its node, or a placeholder if that is not yet known.
    pub fn shown(&self) -> String {
        match self {
            Self::Drive(drive) => quoted(drive.path.as_os_str()),
            Self::Loop { file } => {
                format!("<loop of {}>", file.file_name().unwrap_or_default().to_string_lossy())
            }
            Self::Partition { drive, .. } => quoted(first_partition(&drive.path).as_os_str()),
            Self::Array { path, .. } | Self::Layer { path } => quoted(path.as_os_str()),
        }
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Drive(drive) => drive.describe(),
            Self::Loop { file } => format!("the loop device over {}", file.shown()),
            Self::Partition { drive, uuid } => format!("partition {uuid} of {}", drive.describe()),
            Self::Array { path, uuid } => format!("the array {} ({uuid})", path.shown()),
            Self::Layer { path } => format!("the layer {}", path.shown()),
        }
    }
}

/// What [`BlockDevice::nodes`] found.
#[derive(Debug)]
pub(crate) enum Found {
    /// At these nodes, or nowhere.
    At(Vec<PathBuf>),
    /// The drive that it is on is missing.
    Missing(Drive),
}
