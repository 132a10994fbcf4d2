//! Removing md arrays.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::undoer::{OwnArray, OwnNodes, Undoer, refuse_used};
use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::stack::devices::{self, BlockDevice, Drive, node, same_id};
use crate::stack::journal::Undo;
use crate::stack::runner::{LOSETUP, MDADM, quoted};
use crate::stack::tuning::array_state;

impl Undoer<'_> {
    pub(super) fn remove_array(&self, uuid: &str, members: &[BlockDevice]) -> Result<Option<Drive>> {
        self.own_id(uuid)?;
        // Others may have used an array left by a dead run, and stopped it afterwards.
        if self.scrutiny.is_some() && !self.retained && self.is_complete(uuid) {
            self.start_array(uuid)?;
        }
        let mut stopped = false;
        for node in devices::arrays(self.runner, uuid)? {
            node::check(&node)?;
            refuse_used(&node)?;
            self.refuse_foreign_on(&node, uuid)?;
            self.tool(MDADM, &["--stop".as_ref(), node.as_os_str()])?;
            stopped = true;
        }
        let (nodes, missing) = self.members(uuid, members)?;
        if self.retained && !stopped && !nodes.is_empty() {
            let what = format!("the array {uuid} is not running, so its content is unknown");
            let nodes: Vec<&OsStr> = nodes.iter().map(|node| node.as_os_str()).collect();
            let start = "`mdadm --assemble --scan` starts it where that is possible";
            return Err(Error::refused(what).hint(discard(start, &nodes)));
        }
        for node in nodes {
            // If others wrote directly to a member, the superblock may still be intact.
            self.refuse_foreign(&node)?;
            self.mark(&node);
            self.tool(MDADM, &["--zero-superblock".as_ref(), node.as_os_str()])?;
        }
        self.remove_links()?;
        Ok(missing)
    }

    /// Whether the array was made and wiped: before that, its drives' old content may show through it.
    fn is_complete(&self, uuid: &str) -> bool {
        self.arrays.iter().any(|array: &OwnArray| array.is_complete && same_id(&array.uuid, uuid))
    }

    /// Refuses an array with something foreign on it. An array that waits for members shows no content; one
    /// of a dead run is started without them, and if that fails, nobody can read it any more.
    fn refuse_foreign_on(&self, node: &Path, uuid: &str) -> Result<()> {
        if self.retained {
            refuse_in_part(node)?;
        } else if !self.is_complete(uuid) || !self.runs(node)? {
            return Ok(());
        }
        let is_it =
            |device: &BlockDevice| matches!(device, BlockDevice::Array { uuid: id, .. } if same_id(id, uuid));
        self.refuse_foreign_below(node, is_it)
    }

    /// What an undo removes, in words; for an array, also its condition.
    pub(super) fn describe(&self, undo: &Undo) -> String {
        let Undo::RemoveArray { uuid, .. } = undo else { return undo.describe() };
        let running = devices::arrays(self.runner, uuid).unwrap_or_default();
        let condition = running.first().and_then(|node| array_state::condition(node));
        condition.map_or_else(|| undo.describe(), |how| format!("{}, {how}", undo.describe()))
    }

    /// Starts arrays that others may have used and stopped since; otherwise their content can't be seen.
    ///
    /// # Errors
    /// Refused if one has all its members and does not start, or could start once a missing one is back.
    pub(super) fn start_arrays(&self, devices: &[BlockDevice]) -> Result<()> {
        devices.iter().try_for_each(|device| match device {
            BlockDevice::Array { uuid, .. } => self.start_array(uuid),
            _ => Ok(()),
        })
    }

    fn start_array(&self, uuid: &str) -> Result<()> {
        self.own_id(uuid)?;
        let Some(array) = self.arrays.iter().find(|array| same_id(&array.uuid, uuid)) else { return Ok(()) };
        let running = devices::arrays(self.runner, uuid)?;
        if let Some(node) = running.first() {
            // Partly assembled when its drives were found, as after a boot. A retained one may wait for more members.
            if self.retained || self.runs(node)? {
                return Ok(());
            }
            return self.refuse_missing(uuid, self.members(uuid, &array.members)?.1);
        }
        self.attach_files(&array.members)?;
        let (nodes, missing) = self.members(uuid, &array.members)?;
        if nodes.is_empty() {
            return self.refuse_missing(uuid, missing);
        }
        // The node that the plan chose may be taken by now; for this name, mdadm finds a free number.
        let link = Path::new("/dev/md").join(format!("{}-assembled", self.array_name().unwrap_or_default()));
        let options = ["--assemble", "--run"].map(OsStr::new);
        let named: Vec<&OsStr> = nodes.iter().map(|node| node.as_os_str()).collect();
        let answer = self.runner.run(MDADM, &[&options[..], &[link.as_os_str()], &named].concat())?;
        if answer.status == 0 {
            return Ok(());
        }
        if nodes.len() < array.members.len() {
            return self.refuse_missing(uuid, missing);
        }
        let why = answer.stderr.lines().last().unwrap_or("no reason given").to_owned();
        Err(Error::refused(format!("the array {uuid} can't be started to check it for foreign files: {why}"))
            .hint(discard("`mdadm --assemble --scan` may start it", &named)))
    }

    /// Whether an array runs; starts it without some of its members if need be.
    fn runs(&self, node: &Path) -> Result<bool> {
        if !is_active(node) {
            self.runner.run(MDADM, &["--run".as_ref(), node.as_os_str()])?;
        }
        Ok(is_active(node))
    }

    /// Refuses an array that can't run without a drive that may come back. If the drive is there but no
    /// longer a member, nobody can read the array again.
    fn refuse_missing(&self, uuid: &str, missing: Option<Drive>) -> Result<()> {
        let Some(drive) = missing.filter(|_| !self.forget_missing) else { return Ok(()) };
        let (drive, id) = (drive.describe(), &self.id.0);
        let what = format!(
            "the array {uuid} does not run without {drive}, which is missing, so its content is unknown"
        );
        Err(Error::refused(what).hint(format!(
            "reattach the drive and run `stacktune cleanup {id}`, or give up what is on the array: \
             `stacktune cleanup --forget-missing {id}`"
        )))
    }

    /// Attaches the files below an array that were detached by a reboot or by somebody else. Undoing the step
    /// that first attached them detaches them again.
    fn attach_files(&self, members: &[BlockDevice]) -> Result<()> {
        if self.scrutiny.is_none() || self.retained {
            return Ok(());
        }
        let files = members.iter().filter_map(|member| match member {
            BlockDevice::Loop { file } => Some(file),
            _ => None,
        });
        for file in files.filter(|file| file.is_file()) {
            self.own(file)?;
            if devices::loops_over(self.runner, file)?.is_empty() {
                self.tool(LOSETUP, &["--find".as_ref(), file.as_os_str()])?;
            }
        }
        Ok(())
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
        let wanted = self.array_name();
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

    /// The name of its arrays, from the first half of the stack's id.
    fn array_name(&self) -> Option<String> {
        self.id.0.get(..8).filter(|_| self.id.is_sound()).map(|id| format!("stacktune-{id}"))
    }
}

/// What to do about an array that is not running: how to start it, or how to discard its content.
fn discard(start: &str, nodes: &[&OsStr]) -> String {
    let all = nodes.iter().map(|node| quoted(node)).collect::<Vec<_>>().join(" ");
    format!("{start}; or discard it with `mdadm --zero-superblock {all}`; then clean up again")
}

/// Refuses an array that is waiting for members: it has no size, and its content is not visible.
fn refuse_in_part(node: &Path) -> Result<()> {
    if is_active(node) {
        return Ok(());
    }
    let what = format!("{} is only partly assembled, so its content is unknown", node.shown());
    Err(Error::refused(what).hint(format!(
        "bring its drives back, or start it without them (`mdadm --run {0}`), and clean up again; or stop it \
         (`mdadm --stop {0}`) and discard it with `mdadm --zero-superblock` on its members",
        quoted(node.as_os_str())
    )))
}

/// Whether an array runs, with all its members or without some.
fn is_active(node: &Path) -> bool {
    let really = node.canonicalize().unwrap_or_else(|_| node.to_owned());
    let name = really.file_name().unwrap_or_default();
    let state = fs::read_to_string(Path::new("/sys/block").join(name).join("md/array_state"));
    state.is_ok_and(|state| state.trim() != "inactive")
}
