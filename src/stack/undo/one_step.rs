//! A single undo: looks for what it names, does nothing if that is gone, and touches nothing that is not
//! provably the stack's.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::undoer::{OwnNodes, Undoer, persist};
use crate::error::{Error, Result};
use crate::stack::devices::{self, Drive};
use crate::stack::handover;
use crate::stack::journal::Undo;
use crate::stack::program;
use crate::stack::runner::quoted;
use crate::stack::tuning::attributes::{self, in_force};
use crate::stack::tuning::cgroup;

/// The outcome of a successful undo.
#[derive(Debug)]
pub(crate) enum UndoOutcome {
    /// What it removes is gone.
    Undone,
    /// The same, except for what is on a missing drive.
    Missing(Error),
}

impl Undoer<'_> {
    /// Undoes it; idempotent.
    pub(crate) fn undo(&self, undo: &Undo) -> Result<UndoOutcome> {
        let missing = match undo {
            Undo::RemovePartitions { drive, disk_uuid } => self.remove_table(drive, disk_uuid)?,
            Undo::RemoveArray { uuid, members, .. } => self.remove_array(uuid, members)?,
            Undo::RemoveFilesystem { uuid, devices } => self.remove_filesystem(uuid, devices)?,
            Undo::RestoreFormat { drive, namespace, old, new } => {
                self.restore_format(drive, *namespace, (*old, *new))?
            }
            Undo::LowerLayer { name, made } => self.lower_layer(name, made)?,
            other => {
                self.undo_in_kernel_or_folder(other)?;
                None
            }
        };
        Ok(missing
            .filter(|_| !self.forget_missing)
            .map_or(UndoOutcome::Undone, |drive| UndoOutcome::Missing(self.missing(&drive))))
    }

    fn missing(&self, drive: &Drive) -> Error {
        let (drive, id) = (drive.describe(), &self.id.0);
        Error::failed(format!("{drive} is missing, so what the stack left on it remains there")).hint(
            format!(
                "reattach it and run `stacktune cleanup {id}`, or give it up: \
             `stacktune cleanup --forget-missing {id}`"
            ),
        )
    }

    fn undo_in_kernel_or_folder(&self, undo: &Undo) -> Result<()> {
        match undo {
            Undo::RemoveFolder { dir, .. } if self.is_above(dir) => self.remove_above(dir),
            Undo::RemoveFolder { dir, .. } => self.remove_folder(dir),
            Undo::RemoveFile { file } => self.remove_file(file),
            Undo::RemoveLog { dir, mount } => self.remove_log(dir, mount),
            Undo::DetachLoop { file } => self.own(file).and_then(|()| self.detach_loops(file)),
            Undo::LeaveLayer { name, made } => self.leave_layer(name, made),
            gone if self.went_with_the_kernel(gone) => Ok(()),
            Undo::Unmount { dir } => self.own(dir).and_then(|()| self.unmount(dir)),
            Undo::RestoreQueue { drive, attribute, old, new, beside } => {
                if self.is_own_drive(drive)? {
                    attributes::restore(drive, attribute, (old, new), beside)?;
                }
                Ok(())
            }
            Undo::RestoreArray { uuid, attribute, old, new, .. } => {
                self.own_id(uuid).and_then(|()| attributes::restore_array(uuid, attribute, (old, new)))
            }
            // The array is removed whole, whatever members it has.
            Undo::ReplaceMember { uuid, .. } => self.own_id(uuid),
            Undo::GiveBack { address } => handover::give_back(address),
            Undo::RestoreIommu { address, group, old, new, .. } => {
                handover::restore_type(address, group, (old, new))
            }
            Undo::RemoveCgroup { dir, switched_on } => {
                self.own(dir).and_then(|()| persist(|| cgroup::remove(dir, *switched_on)))
            }
            Undo::EndProgram { dirs, switched_on } => {
                dirs.iter().try_for_each(|dir| self.own(dir))?;
                program::end(dirs)?;
                dirs.iter().try_for_each(|dir| persist(|| program::remove_all(dir, *switched_on)))
            }
            Undo::RemovePartitions { .. }
            | Undo::RemoveArray { .. }
            | Undo::LowerLayer { .. }
            | Undo::RemoveFilesystem { .. }
            | Undo::RestoreFormat { .. } => {
                unreachable!("these are on devices")
            }
        }
    }
}

/// Commands to be typed.
impl Undoer<'_> {
    /// The commands that undo the same by hand, with the current nodes; empty if what they would remove is
    /// gone, or not the stack's.
    pub(crate) fn commands(&self, undo: &Undo) -> Vec<String> {
        if self.went_with_the_kernel(undo) {
            return Vec::new();
        }
        let typed = |words: &str, path: &Path| format!("{words} {}", quoted(path.as_os_str()));
        let all = |words: &str, nodes: Vec<PathBuf>| nodes.iter().map(|node| typed(words, node)).collect();
        // If the nodes can't be found at the moment, no command is offered.
        let found = |nodes: Result<OwnNodes>| nodes.map(|(nodes, _)| nodes).unwrap_or_default();
        match undo {
            Undo::RemoveFolder { dir, .. } | Undo::RemoveCgroup { dir, .. } => vec![typed("rmdir", dir)],
            Undo::EndProgram { dirs, .. } => {
                let kill = |dir: &PathBuf| {
                    let file = dir.join("cgroup.kill");
                    file.exists().then(|| typed("echo 1 >", &file))
                };
                let rmdir = dirs.iter().map(|dir| typed("rmdir", dir));
                dirs.iter().filter_map(kill).chain(rmdir).collect()
            }
            Undo::RemoveFile { file } => vec![typed("rm", file)],
            Undo::RemoveLog { dir, .. } => vec![typed("rm --recursive --one-file-system", dir)],
            Undo::GiveBack { address } => handover::commands(address),
            Undo::RestoreFormat { drive, namespace, old, new } => {
                self.format_command(drive, *namespace, (*old, *new)).into_iter().collect()
            }
            Undo::RestoreIommu { address, group, old, .. } => handover::commands_of(address, group, old),
            Undo::Unmount { dir } => vec![typed("umount", dir)],
            Undo::DetachLoop { file } => {
                all("losetup --detach", devices::loops_over(self.runner, file).unwrap_or_default())
            }
            Undo::RemovePartitions { drive, disk_uuid } => {
                all("wipefs --all", found(self.tables(drive, disk_uuid)))
            }
            Undo::RemoveFilesystem { uuid, devices } => {
                all("wipefs --all", found(self.filesystems(uuid, devices)))
            }
            Undo::RemoveArray { uuid, members, .. } => {
                let arrays = devices::arrays(self.runner, uuid).unwrap_or_default();
                let mut commands: Vec<String> = all("mdadm --stop", arrays);
                let members: Vec<String> = all("mdadm --zero-superblock", found(self.members(uuid, members)));
                commands.extend(members);
                commands
            }
            Undo::LowerLayer { made, .. } => self.layer_commands(made),
            Undo::LeaveLayer { .. } | Undo::ReplaceMember { .. } => Vec::new(),
            Undo::RestoreQueue { drive, .. } if !self.is_own_drive(drive).unwrap_or(false) => Vec::new(),
            Undo::RestoreArray { uuid, attribute, old, .. } => {
                let dir = self.own_id(uuid).and_then(|()| attributes::array_dir(uuid)).unwrap_or_default();
                let echo = format!("echo {} >", quoted(OsStr::new(in_force(old))));
                dir.into_iter().map(|dir| typed(&echo, &dir.join(attribute))).collect()
            }
            Undo::RestoreQueue { drive, attribute, old, .. } => {
                let file = PathBuf::from(format!("/sys/block/{}/queue/{attribute}", drive.name));
                vec![typed(&format!("echo {} >", quoted(OsStr::new(in_force(old)))), &file)]
            }
        }
    }
}
