//! Members of arrays, and what an array has lost or does on its own.

use std::path::PathBuf;

use crate::host::root::Root;

/// A member of an array.
#[derive(Debug, Clone)]
pub(in crate::host) struct NamedMember {
    /// The kernel's name, of a partition too.
    pub(in crate::host) name: String,
    /// The name with the serial of its drive, if it has one.
    pub(in crate::host) shown: String,
}

/// What an array has lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The array, as `md array md127` or `Btrfs file system 8d12…`.
    pub array: String,
    /// The members that failed or are gone, as `nvme1n1 (serial S1)`; empty if unknown.
    pub members: Vec<String>,
    /// How many members it is missing by its own count.
    pub missing: u64,
    /// Whether it has failed: data is gone, or every write fails.
    pub failed: bool,
}

/// What an array does on its own besides the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upkeep {
    /// The array, as `md array md127` or `Btrfs file system 8d12…`.
    pub array: String,
    /// What it does, in the kernel's words: `resync`, `recover`, `check`, `balance`.
    pub action: String,
}

impl Lost {
    /// How many of the members are lost.
    pub fn count(&self) -> u64 {
        self.missing.max(self.members.len() as u64)
    }
}

impl NamedMember {
    pub(in crate::host) fn of(root: &Root, name: &str) -> Self {
        Self { shown: shown(root, name), name: name.to_owned() }
    }

    /// Whether there is no such device any more.
    pub(in crate::host) fn is_gone(&self, root: &Root) -> bool {
        !root.has(&format!("sys/class/block/{}", self.name))
    }
}

/// A member's name, with the serial of its drive.
fn shown(root: &Root, member: &str) -> String {
    let dir = root.at(&format!("sys/class/block/{member}")).canonicalize().unwrap_or_default();
    let whole = if dir.join("partition").exists() { dir.parent().map(PathBuf::from) } else { Some(dir) };
    let name = whole.and_then(|dir| Some(dir.file_name()?.to_string_lossy().into_owned()));
    let serial = name.and_then(|name| root.text(&format!("sys/block/{name}/device/serial")));
    serial.map_or_else(|| member.to_owned(), |serial| format!("{member} (serial {serial})"))
}
