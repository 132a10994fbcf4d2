//! Removing partition tables.

use std::fs;
use std::path::{Path, PathBuf};

use super::undoer::{OwnNodes, Undoer, persist, refuse_used};
use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::stack::devices::{self, BlockDevice, Drive, gpt, same_id};
use crate::stack::runner::WIPEFS;

impl Undoer<'_> {
    pub(super) fn remove_table(&self, drive: &Drive, disk_uuid: &str) -> Result<Option<Drive>> {
        self.own_id(disk_uuid)?;
        let (nodes, missing) = self.tables(drive, disk_uuid)?;
        for node in nodes {
            refuse_used(&node)?;
            let table = devices::table(self.runner, &node)?;
            let foreign = table.and_then(|table| table.other_than(|uuid| self.id.is_of(uuid)));
            if let Some(partition) = foreign {
                let what = format!("{} was not made by the stack", partition.shown());
                return Err(Error::refused(what)
                    .hint("save its content and delete it (`sfdisk --delete`), then clean up again"));
            }
            // The partition's old content was wiped when it was made.
            partitions(&node).iter().try_for_each(|partition| self.refuse_foreign(partition))?;
            self.mark(&node);
            self.tool(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), node.as_os_str()])?;
            persist(|| no_partitions(&node))?;
        }
        Ok(missing)
    }

    /// The nodes with the partition table of that id, or with the remains of it after a power cut.
    pub(super) fn tables(&self, drive: &Drive, disk_uuid: &str) -> Result<OwnNodes> {
        let is_own = |node: &Path| {
            let table = devices::table(self.runner, node)?;
            if let Some(table) = table {
                return Ok(same_id(&table.id, disk_uuid));
            }
            let ids = gpt::disk_ids(node).map_err(|error| Error::os("cannot read", node, error))?;
            Ok(ids.iter().any(|id| same_id(id, disk_uuid)))
        };
        self.own_nodes(&[BlockDevice::Drive(drive.clone())], is_own)
    }
}

/// The nodes of a drive's partitions that the kernel knows.
fn partitions(node: &Path) -> Vec<PathBuf> {
    let dir = Path::new("/sys/block").join(node.file_name().unwrap_or_default());
    let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
    let those = entries.filter(|entry| entry.path().join("partition").exists());
    those.map(|entry| Path::new("/dev").join(entry.file_name())).collect()
}

fn no_partitions(node: &Path) -> Result<()> {
    match partitions(node).first() {
        None => Ok(()),
        Some(partition) => {
            let what = format!("the kernel still lists {} of {}", partition.shown(), node.shown());
            Err(Error::failed(what))
        }
    }
}
