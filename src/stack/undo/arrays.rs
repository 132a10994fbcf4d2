//! Removing md arrays.

use std::fs;
use std::path::{Path, PathBuf};

use super::undoer::{OwnNodes, Undoer, refuse_used};
use crate::error::{Error, Result};
use crate::stack::devices::{self, BlockDevice, Drive, node, same_id};
use crate::stack::runner::{MDADM, quoted};

impl Undoer<'_> {
    pub(super) fn remove_array(&self, uuid: &str, members: &[BlockDevice]) -> Result<Option<Drive>> {
        self.own_id(uuid)?;
        let mut stopped = false;
        for node in devices::arrays(self.runner, uuid)? {
            node::check(&node)?;
            refuse_used(&node)?;
            // On an array that was never used, signatures are old content of its drives.
            if self.kept {
                refuse_in_part(&node)?;
                self.refuse_foreign(&node)?;
            }
            self.tool(MDADM, &["--stop".as_ref(), node.as_os_str()])?;
            stopped = true;
        }
        let (nodes, missing) = self.members(uuid, members)?;
        if self.kept && !stopped && !nodes.is_empty() {
            let what = format!("the array {uuid} is not running, so what is on it now is unknown");
            let all = nodes.iter().map(|node| quoted(node.as_os_str())).collect::<Vec<_>>().join(" ");
            return Err(Error::refused(what).hint(format!(
                "`mdadm --assemble --scan` starts it where that is possible; or discard it with \
                 `mdadm --zero-superblock {all}`; then clean up again"
            )));
        }
        for node in nodes {
            self.tool(MDADM, &["--zero-superblock".as_ref(), node.as_os_str()])?;
        }
        self.remove_links()?;
        Ok(missing)
    }

    /// The nodes whose superblock names the array.
    pub(super) fn members(&self, uuid: &str, members: &[BlockDevice]) -> Result<OwnNodes> {
        let is_own = |node: &Path| {
            Ok(devices::member_uuid(self.runner, node)?.is_some_and(|found| same_id(&found, uuid)))
        };
        self.own_nodes(members, is_own)
    }

    /// Without udev, mdadm itself makes links to an array, named after it, and leaves them behind.
    pub(super) fn remove_links(&self) -> Result<()> {
        let links = fs::read_dir("/dev/md").into_iter().flatten().flatten().map(|entry| entry.path());
        // Named after the array: by the first half of the stack's id.
        let wanted = self.id.0.get(..8).filter(|_| self.id.is_sound()).map(|id| format!("stacktune-{id}"));
        let is_named = |link: &PathBuf| {
            let name = link.file_name().unwrap_or_default().to_string_lossy();
            wanted.as_ref().is_some_and(|wanted| name.contains(wanted.as_str()))
        };
        for link in links.filter(|link| link.is_symlink() && is_named(link)) {
            if !devices::is_array(&link) {
                fs::remove_file(&link).map_err(|error| Error::os("cannot remove", &link, error))?;
            }
        }
        Ok(())
    }
}

/// Refuses an array that is waiting for members: it has no size, and its content is not visible.
fn refuse_in_part(node: &Path) -> Result<()> {
    let really = node.canonicalize().unwrap_or_else(|_| node.to_owned());
    let name = really.file_name().unwrap_or_default();
    let state = fs::read_to_string(Path::new("/sys/block").join(name).join("md/array_state"));
    if state.is_ok_and(|state| state.trim() != "inactive") {
        return Ok(());
    }
    let what = format!("{} is only partly assembled, so what is on it is unknown", node.display());
    Err(Error::refused(what).hint(format!(
        "bring its drives back, or start it without them (`mdadm --run {0}`), and clean up again; or stop it \
         (`mdadm --stop {0}`) and discard it with `mdadm --zero-superblock` on its members",
        quoted(node.as_os_str())
    )))
}
