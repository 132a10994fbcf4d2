//! Partition tables, and finding the partition with a given id.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ids::same_id;
use crate::error::{Error, Result};
use crate::host::Device;
use crate::json;
use crate::stack::runner::{Runner, SFDISK, failure};

/// The node of a drive's first partition, as the kernel names it.
pub(super) fn first_partition(drive: &Path) -> PathBuf {
    let text = drive.display().to_string();
    let divider = if text.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
    PathBuf::from(format!("{text}{divider}1"))
}

/// A partition table as sfdisk reads it from the device.
#[derive(Debug, Deserialize)]
pub(crate) struct Table {
    /// Its unique id; a short number for an MBR.
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    partitions: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    node: PathBuf,
    #[serde(default)]
    uuid: String,
}

impl Table {
    /// A partition whose id fails the test.
    pub(crate) fn other_than(&self, is_ours: impl Fn(&str) -> bool) -> Option<PathBuf> {
        self.partitions.iter().find(|entry| !is_ours(&entry.uuid)).map(|entry| entry.node.clone())
    }
}

/// The partition table of a device, if it has one.
pub(crate) fn table(runner: &Runner, node: &Path) -> Result<Option<Table>> {
    #[derive(Deserialize)]
    struct Answer {
        partitiontable: Table,
    }
    let arguments = ["--json".as_ref(), node.as_os_str()];
    let answer = runner.run(SFDISK, &arguments)?;
    if answer.status != 0 && answer.stderr.contains("does not contain a recognized partition table") {
        return Ok(None);
    }
    if answer.status != 0 {
        return Err(failure(SFDISK, &arguments, &answer));
    }
    let parsed = json::read::<Answer>(answer.stdout.as_bytes())
        .map_err(|error| Error::failed(format!("sfdisk's output can't be parsed: {error}")))?;
    Ok(Some(parsed.partitiontable))
}

/// The node of the partition with that id, if the kernel knows it already.
pub(super) fn partition(runner: &Runner, device: &Device, uuid: &str) -> Result<Option<PathBuf>> {
    let entries = table(runner, &device.path)?.map_or(Vec::new(), |table| table.partitions);
    let node = entries.into_iter().find(|entry| same_id(&entry.uuid, uuid)).map(|entry| entry.node);
    let known = |node: &PathBuf| {
        node.file_name()
            .is_some_and(|name| Path::new("/sys/class/block").join(name).join("partition").exists())
    };
    Ok(node.filter(known))
}
