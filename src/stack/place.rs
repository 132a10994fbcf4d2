//! The block devices of a stack, named before they exist and found again after a crash.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A drive as the host has it, by what stays its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drive {
    /// The kernel's name when the plan was made.
    pub name: String,
    /// Its node.
    pub path: PathBuf,
    /// `major:minor` when the plan was made.
    pub number: String,
    /// Model, where told.
    pub model: Option<String>,
    /// Serial, where told.
    pub serial: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
}

/// A block device that a step makes or uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A drive as the host has it.
    Drive(Drive),
    /// The loop device over a file of the stack's, whichever number the kernel gives it.
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
}
