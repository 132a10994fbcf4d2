//! Removing file systems.

use std::path::{Path, PathBuf};

use super::inside::{self, Closed};
use super::undoer::{OwnNodes, Undoer, refuse_used};
use crate::error::{Error, Result};
use crate::printable::{self, Shown as _};
use crate::stack::devices::{BlockDevice, Drive, same_id};
use crate::stack::runner::{WIPEFS, quoted};

impl Undoer<'_> {
    pub(super) fn remove_filesystem(&self, uuid: &str, devices: &[BlockDevice]) -> Result<Option<Drive>> {
        self.own_id(uuid)?;
        if self.may_hold_others() {
            self.start_arrays(devices)?;
        }
        let (nodes, missing) = self.filesystems(uuid, devices)?;
        nodes.iter().try_for_each(|node| refuse_used(node))?;
        if self.may_hold_others() && !nodes.is_empty() {
            match self.others_on(&nodes) {
                // Its other devices are wiped or lost, so nobody can read it any more.
                Err(_) if !self.retained && nodes.len() < devices.len() => {}
                others => refuse_others(&on(&nodes[0]), &others?)?,
            }
        }
        for node in nodes {
            refuse_used(&node)?;
            self.mark(&node);
            // No --force, so that wipefs still refuses a device in use.
            self.tool(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), node.as_os_str()])?;
        }
        Ok(missing)
    }

    /// Refuses a file system with others' files, even if it is no longer mounted.
    pub(super) fn look_inside(&self, node: &Path) -> Result<()> {
        refuse_others(&on(node), &self.others_on(&[node.to_owned()])?)
    }

    /// Others' files in a file system that is not mounted.
    fn others_on(&self, nodes: &[PathBuf]) -> Result<Vec<String>> {
        let node = &nodes[0];
        let refused =
            |why: &str| Error::refused(format!("{} can't be checked for foreign files: {why}", on(node)));
        inside::others_on(self.runner, node, self.retained).map_err(|closed| match closed {
            Closed::Damaged(why) => {
                let all = nodes.iter().map(|node| quoted(node.as_os_str())).collect::<Vec<_>>().join(" ");
                refused(&why).hint(format!(
                    "check it yourself, and discard it with `wipefs --all {all}`; then clean up again"
                ))
            }
            // Such a failure says nothing about its content.
            Closed::Failed(error) => Error { hint: error.hint, ..refused(&error.what) },
        })
    }

    /// The nodes with the file system of that UUID.
    pub(super) fn filesystems(&self, uuid: &str, devices: &[BlockDevice]) -> Result<OwnNodes> {
        let is_own = |node: &Path| Ok(self.filesystem_uuid(node)?.is_some_and(|found| same_id(&found, uuid)));
        self.own_nodes(devices, is_own)
    }

    /// The UUID of the file system on a device.
    pub(super) fn filesystem_uuid(&self, node: &Path) -> Result<Option<String>> {
        self.probe(node, "UUID")
    }
}

fn on(node: &Path) -> String {
    format!("the file system of {}", node.shown())
}

/// Refuses a file system with files of others.
pub(super) fn refuse_others(on: &str, others: &[String]) -> Result<()> {
    if others.is_empty() {
        return Ok(());
    }
    let named = others.iter().take(3).map(|name| printable::line(name)).collect::<Vec<_>>().join(", ");
    Err(Error::refused(format!("{on} holds {named}, which stacktune did not put there"))
        .hint("move that elsewhere, then clean up again"))
}
