//! Removing file systems.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::undoer::{OwnNodes, Undoer, refuse_used};
use crate::error::{Error, Result};
use crate::stack::devices::{BlockDevice, Drive, same_id};
use crate::stack::runner::{UNSHARE, WIPEFS, quoted};

impl Undoer<'_> {
    pub(super) fn remove_filesystem(&self, uuid: &str, devices: &[BlockDevice]) -> Result<Option<Drive>> {
        self.own_id(uuid)?;
        if self.may_hold_others() {
            self.start_arrays(devices)?;
        }
        let (nodes, missing) = self.filesystems(uuid, devices)?;
        nodes.iter().try_for_each(|node| refuse_used(node))?;
        if self.may_hold_others() && !nodes.is_empty() {
            match self.names_in(&nodes) {
                // Without its other devices, wiped or lost, nobody reads it any more.
                Err(_) if !self.kept && nodes.len() < devices.len() => {}
                names => refuse_others(&on(&nodes[0]), &names?)?,
            }
        }
        for node in nodes {
            refuse_used(&node)?;
            // Without --force, so that wipefs refuses a device that is in use after all.
            self.tool(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), node.as_os_str()])?;
        }
        Ok(missing)
    }

    /// Refuses a file system with others' files, even if it is no longer mounted.
    pub(super) fn look_inside(&self, node: &Path) -> Result<()> {
        refuse_others(&on(node), &self.names_in(&[node.to_owned()])?)
    }

    /// What is in the root folder of a file system that is not mounted: it is mounted in a namespace that ends with
    /// the tool that lists it. If there are several nodes, each leads to all of it.
    fn names_in(&self, nodes: &[PathBuf]) -> Result<Vec<String>> {
        const LOOK: &str = r#"mount -o "$1" -- "$2" "$3" && ls -A -- "$3""#;
        let (node, dir) = (&nodes[0], std::env::temp_dir());
        let look = |options: &str| {
            let words = ["--mount", "--propagation=private", "sh", "-c", LOOK, "sh", options].map(OsStr::new);
            let arguments = [&words[..], &[node.as_os_str(), dir.as_os_str()]].concat();
            self.runner.run(UNSHARE, &arguments)
        };
        let mut answer = look("ro,nosuid,nodev,noexec")?;
        if answer.status != 0 {
            // Btrfs's own RAID without one of its drives.
            let degraded = look("ro,nosuid,nodev,noexec,degraded")?;
            answer = if degraded.status == 0 { degraded } else { answer };
        }
        if answer.status != 0 {
            let why = answer.stderr.lines().last().unwrap_or("no reason given").to_owned();
            let all = nodes.iter().map(|node| quoted(node.as_os_str())).collect::<Vec<_>>().join(" ");
            return Err(Error::refused(format!("{} can't be checked for files of others: {why}", on(node)))
                .hint(format!(
                    "check it yourself, and discard it with `wipefs --all {all}`; then clean up again"
                )));
        }
        Ok(answer.stdout.lines().map(str::to_owned).collect())
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
    format!("the file system of {}", node.display())
}

/// Refuses a file system or folder with others' files in it, by the names in it.
pub(super) fn refuse_others(on: &str, names: &[String]) -> Result<()> {
    let others = names_of_others(names);
    if others.is_empty() {
        return Ok(());
    }
    let named = others.into_iter().take(3).collect::<Vec<_>>().join(", ");
    Err(Error::refused(format!("{on} holds {named}, which stacktune did not put there"))
        .hint("move that elsewhere, then clean up again"))
}

/// Of the names in a folder of a target, those that are not stacktune's.
pub fn names_of_others(names: &[String]) -> Vec<&str> {
    // Made by `crate::load::volume`, `crate::load::kv` and mkfs.
    let has_pairs = names.iter().any(|name| name == "stacktune-pairs.json");
    let numbered = |name: &str| {
        name.strip_prefix("data-").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    // A file before it is renamed into place.
    let temporary = |name: &str| {
        let random = name.strip_prefix(".stacktune-");
        random.is_some_and(|random| random.len() == 6 && random.bytes().all(|b| b.is_ascii_alphanumeric()))
    };
    let is_ours = |name: &str| {
        numbered(name)
            || temporary(name)
            || ["wal", "stacktune-set", "lost+found"].contains(&name)
            || has_pairs && ["rocksdb", "stacktune-pairs.json"].contains(&name)
    };
    names.iter().map(String::as_str).filter(|name| !is_ours(name)).collect()
}
