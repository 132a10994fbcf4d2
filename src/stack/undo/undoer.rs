//! What all undos share: whether something is provably the stack's, what is found on it, and retrying.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::host::{Facts, Usage};
use crate::printable::Shown as _;
use crate::stack::devices::{self, BlockDevice, Drive, Found};
use crate::stack::guard::{Consent, OwnData};
use crate::stack::id::StackId;
use crate::stack::journal::{JournalEntry, JournalHeader, Undo};
use crate::stack::runner::{BLKID, Runner, Tool, failure};

/// A device that was just closed may still be held: by the kernel, which completes I/O after the process is
/// gone, or by udev, which probes every device that changes.
const PATIENCE: Duration = Duration::from_secs(3);

const LOOK: Duration = Duration::from_millis(20);

/// An entry of a folder, with the folder held open.
pub(super) struct InFolder {
    folder: OwnedFd,
    name: OsString,
    pub(super) kind: FileType,
}

impl InFolder {
    /// Opens it if it is a folder.
    pub(super) fn open(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.folder, &self.name, flags, Mode::empty())
    }

    /// Removes it: `REMOVEDIR` for a folder, which must be empty.
    pub(super) fn remove(&self, flags: AtFlags) -> rustix::io::Result<()> {
        unlinkat(&self.folder, &self.name, flags)
    }
}

/// An array of the stack.
pub(super) struct OwnArray {
    pub(super) uuid: String,
    pub(super) members: Vec<BlockDevice>,
    /// Whether the step that made it was completed: anything foreign on it was put there later.
    pub(super) is_complete: bool,
}

/// The means to decide whether unmarked data on a drive may be destroyed.
#[derive(Clone, Copy)]
pub(super) struct Scrutiny<'a> {
    /// Recognizes stacktune's own data.
    pub(super) own_data: &'a dyn OwnData,
    /// The operator's consent to lose what is not the stack's.
    pub(super) consent: &'a Consent,
}

/// Undoes the steps of one stack.
pub(crate) struct Undoer<'a> {
    /// Runs the tools.
    pub(crate) runner: &'a Runner,
    /// The stack, whose id is in the names of its folders.
    pub(crate) id: &'a StackId,
    /// Whether it was built since the last boot.
    pub(crate) same_boot: bool,
    /// Whether data on a missing drive counts as gone with it.
    pub(crate) forget_missing: bool,
    /// Whether it was retained, so that others may have put something on it.
    pub(super) retained: bool,
    /// Whether its file system was mounted, so that others may have put something on it, too.
    was_mounted: bool,
    /// Given if the stack's drives were out of this process's hands.
    pub(super) scrutiny: Option<Scrutiny<'a>>,
    /// The data sets that were filled on it.
    pub(super) data_sets: Vec<u64>,
    /// Nodes on which this undoer has found something of the stack.
    marked: Mutex<Vec<PathBuf>>,
    /// Whether this undoer has looked into its file system, and unmounted it.
    pub(super) unmounted: AtomicBool,
    /// The folders that the stack made or was about to make.
    pub(super) folders: Vec<PathBuf>,
    /// Its arrays.
    pub(super) arrays: Vec<OwnArray>,
    /// The paths of its completed command layers.
    pub(super) complete_layers: Vec<PathBuf>,
    /// The devices below its command layers, on which these may have left signatures.
    below_layers: Vec<BlockDevice>,
    /// The drives that it works on.
    pub(super) drives: Vec<Drive>,
    /// The files behind its loop devices.
    pub(super) files: Vec<PathBuf>,
    /// When its journal began, in seconds since 1970.
    pub(super) since_unix_s: u64,
}

impl<'a> Undoer<'a> {
    /// An undoer for the stack of this journal: its first line, its entries, and whether the stack was retained.
    pub(crate) fn of(
        (header, entries, retained): (&'a JournalHeader, &[JournalEntry], bool),
        runner: &'a Runner,
        (same_boot, forget_missing): (bool, bool),
    ) -> Self {
        let was_mounted =
            entries.iter().any(|entry| entry.done && matches!(entry.undo, Some(Undo::Unmount { .. })));
        let folders = entries.iter().flat_map(|entry| match &entry.undo {
            Some(Undo::RemoveFolder { dir, above }) => [Some(dir.clone()), above.clone()],
            _ => [None, None],
        });
        let arrays = entries.iter().filter_map(|entry| match &entry.undo {
            Some(Undo::RemoveArray { uuid, members, .. }) => {
                Some(OwnArray { uuid: uuid.clone(), members: members.clone(), is_complete: entry.done })
            }
            _ => None,
        });
        let complete_layers =
            entries.iter().filter(|entry| entry.done).filter_map(|entry| match &entry.undo {
                Some(Undo::LeaveLayer { made, .. }) => Some(made.path.clone()),
                _ => None,
            });
        let below_layers = entries.iter().flat_map(|entry| match &entry.undo {
            Some(Undo::LowerLayer { made, .. }) => made.below.clone(),
            _ => Vec::new(),
        });
        let files = entries.iter().filter_map(|entry| match &entry.undo {
            Some(Undo::DetachLoop { file }) => Some(file.clone()),
            _ => None,
        });
        Self {
            runner,
            id: &header.id,
            same_boot,
            forget_missing,
            retained,
            was_mounted,
            scrutiny: None,
            data_sets: Vec::new(),
            marked: Mutex::default(),
            unmounted: AtomicBool::new(false),
            folders: folders.flatten().collect(),
            arrays: arrays.collect(),
            complete_layers: complete_layers.collect(),
            below_layers: below_layers.collect(),
            drives: header.drives.clone(),
            files: files.collect(),
            since_unix_s: header.started_unix_s,
        }
    }

    /// The same for drives that were out of this process's hands; these data sets were filled on them.
    pub(super) fn under(self, scrutiny: Option<Scrutiny<'a>>, data_sets: Vec<u64>) -> Self {
        Self { scrutiny, data_sets, ..self }
    }
}

/// Nodes with something of the stack, and a drive that may have it but is missing.
pub(super) type OwnNodes = (Vec<PathBuf>, Option<Drive>);

impl Undoer<'_> {
    /// Whether the file system may hold others' files that nobody has looked for yet.
    pub(super) fn may_hold_others(&self) -> bool {
        self.retained || self.was_mounted && !self.unmounted.load(Ordering::Relaxed)
    }

    /// Whether a command layer that is down may hold something of others.
    pub(super) fn may_hide_others(&self, layer: &Path) -> bool {
        let was_left = self.scrutiny.is_some() && self.complete_layers.iter().any(|path| path == layer);
        self.may_hold_others() || was_left
    }

    /// A path is the stack's if a folder in it is named after the stack's id, which is random.
    pub(super) fn own(&self, path: &Path) -> Result<()> {
        // Through a symbolic link, a path could lead anywhere.
        if self.is_own(path) && self.is_own(&devices::canonical_parent(path)) {
            return Ok(());
        }
        Err(self.foreign(path))
    }

    fn is_own(&self, path: &Path) -> bool {
        let id = &self.id.0;
        let names = [id.clone(), format!("stack-{id}"), format!("stacktune-{id}")];
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        let is_within = path.iter().any(|part| names.iter().any(|name| part == name.as_str()));
        self.id.is_sound() && path.is_absolute() && !goes_up && is_within
    }

    fn foreign(&self, path: &Path) -> Error {
        Error::refused(format!("{} is not in a folder of stack {}", path.shown(), self.id.0))
    }

    /// Like [`Undoer::own`], for an entry that is to be removed: its folder is held open, so that it is
    /// removed from where it was found. None if it is gone.
    pub(super) fn own_entry(&self, path: &Path) -> Result<Option<InFolder>> {
        let failed = |error: Errno| Error::os("cannot examine", path, error);
        let (Some(above), Some(name), true) = (path.parent(), path.file_name(), self.is_own(path)) else {
            return Err(self.foreign(path));
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match openat(CWD, above, flags, Mode::empty()) {
            // A name that is too long was never made.
            Err(Errno::NOENT | Errno::NAMETOOLONG) => return Ok(None),
            folder => folder.map_err(failed)?,
        };
        let really = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        let really = really.map_err(|error| Error::os("cannot examine", above, error))?;
        if !self.is_own(&really.join(name)) {
            return Err(self.foreign(path));
        }
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT | Errno::NAMETOOLONG) => Ok(None),
            found => {
                let kind = FileType::from_raw_mode(found.map_err(failed)?.st_mode);
                Ok(Some(InFolder { folder, name: name.to_owned(), kind }))
            }
        }
    }

    /// The value that blkid reports for that tag of a device or a file; none without a signature.
    pub(super) fn probe(&self, node: &Path, tag: &str) -> Result<Option<String>> {
        let arguments = ["-p", "-o", "value", "-s", tag].map(OsStr::new);
        let arguments = [&arguments[..], &[node.as_os_str()]].concat();
        let answer = self.runner.run(BLKID, &arguments)?;
        match answer.status {
            0 => Ok(Some(answer.stdout.trim().to_owned()).filter(|value| !value.is_empty())),
            2 => Ok(None),
            8 => Err(Error::failed(format!("{} has contradictory signatures", node.shown()))
                .hint("it is left alone; `wipefs` lists them")),
            _ => Err(failure(BLKID, &arguments, &answer)),
        }
    }

    /// Layer ids are derived from the stack's id: a journal that names others is not trusted.
    pub(super) fn own_id(&self, uuid: &str) -> Result<()> {
        if self.id.is_of(uuid) {
            return Ok(());
        }
        Err(Error::refused(format!("{uuid} is not an id of stack {}", self.id.0)))
    }

    /// Refuses a device of the stack with something foreign on it, whether the stack was retained or its process
    /// died. By now the stack's own content has been wiped; its drives' old content was wiped when it was built.
    pub(super) fn refuse_foreign(&self, node: &Path) -> Result<()> {
        let Some(kind) = self.probe(node, "TYPE")?.or(self.probe(node, "PTTYPE")?) else { return Ok(()) };
        // Left by a killed mkfs of this stack.
        if self.probe(node, "UUID")?.is_some_and(|uuid| self.id.is_of(&uuid)) {
            return Ok(());
        }
        Err(Error::refused(format!("{} holds {kind}, which the stack did not put there", node.shown()))
            .hint("save or wipe that first (`wipefs --all`), then clean up again"))
    }

    /// The same for a device on which command layers may be built: what they leave there for themselves, such
    /// as an LVM volume group, is not foreign. On a retained stack, that can't be told from others' data.
    pub(super) fn refuse_foreign_below(
        &self,
        node: &Path,
        is_it: impl Fn(&BlockDevice) -> bool,
    ) -> Result<()> {
        if !self.retained && self.below_layers.iter().any(is_it) {
            return self.refuse_file_system(node);
        }
        self.refuse_foreign(node)
    }

    /// Whether it is one of the stack's drives, or currently a loop device over one of its files. A loop
    /// device over someone else's file is not: the stack's own is gone.
    ///
    /// # Errors
    /// Refused if it is a drive that the stack has nothing to do with.
    pub(super) fn is_own_drive(&self, drive: &Drive) -> Result<bool> {
        if self.drives.contains(drive) {
            return Ok(true);
        }
        if !drive.name.starts_with("loop") {
            let what = format!("{} is not a drive of stack {}", drive.describe(), self.id.0);
            return Err(Error::refused(what));
        }
        for file in self.files.iter().filter(|file| self.own(file).is_ok()) {
            if devices::loops_over(self.runner, file)?.contains(&drive.path) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The nodes of the devices that pass the test.
    pub(super) fn own_nodes(
        &self,
        devices: &[BlockDevice],
        test: impl Fn(&Path) -> Result<bool>,
    ) -> Result<OwnNodes> {
        let (mut found, mut missing) = (Vec::new(), None);
        for device in devices {
            match device.nodes(self.runner, self.same_boot)? {
                Found::Missing(drive) => drop(missing.get_or_insert(drive)),
                Found::At(nodes) => {
                    for node in nodes {
                        if test(&node)? {
                            found.push(node);
                        }
                    }
                }
            }
        }
        Ok((found, missing))
    }

    /// Records that a node bore a mark of the stack, now about to be removed: nobody has reused it since.
    pub(super) fn mark(&self, node: &Path) {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).push(node.to_owned());
    }

    /// Whether this undoer has found something of the stack on a node.
    pub(super) fn is_marked(&self, node: &Path) -> bool {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|marked| marked == node)
    }

    /// Runs a tool until it succeeds: a device closed a moment ago may make it fail for a while.
    pub(super) fn tool(&self, tool: Tool, arguments: &[&OsStr]) -> Result<()> {
        persist(|| self.runner.run_well(tool, arguments).map(drop))
    }

    /// Whether a reboot has removed it: anything there now belongs to others.
    pub(crate) fn went_with_the_kernel(&self, undo: &Undo) -> bool {
        let kernels = matches!(
            undo,
            Undo::Unmount { .. }
                | Undo::RestoreQueue { .. }
                | Undo::RestoreArray { .. }
                | Undo::ReplaceMember { .. }
                | Undo::RestoreIommu { .. }
                | Undo::GiveBack { .. }
                | Undo::RemoveCgroup { .. }
                | Undo::EndProgram { .. }
        );
        kernels && !self.same_boot
    }
}

/// Retries for a while.
pub(super) fn persist<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let patience_ends = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(_) if Instant::now() < patience_ends => std::thread::sleep(LOOK),
            outcome => return outcome,
        }
    }
}

/// Refuses a device in use, except as a member of something that was just stopped.
pub(super) fn refuse_used(node: &Path) -> Result<()> {
    persist(|| {
        let facts = Facts::read_devices();
        let name = node.file_name().unwrap_or_default().to_string_lossy();
        let device = facts.iter().find(|device| {
            device.path == node || device.partitions.iter().any(|partition| *partition == name)
        });
        let usage = device.iter().flat_map(|device| &device.usage);
        // Its id proves that it is the stack's, so a merely suspected use must be another device's.
        match usage.into_iter().find(|usage| usage.is_sure() && !matches!(usage, Usage::Member(_))) {
            None => Ok(()),
            Some(usage) => {
                Err(Error::refused(format!("{} is in use: {usage}", node.shown()))
                    .hint("stop using it first"))
            }
        }
    })
}
