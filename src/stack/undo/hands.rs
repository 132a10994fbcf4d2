//! Taking away what a step made: each undo looks for what is named, does nothing where that is gone,
//! and touches nothing that is not provably the stack's.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::host::{Facts, Usage, mounted_at};
use crate::stack::devices::{self, Drive, Found, Place, gpt, node, same_id};
use crate::stack::guard::holders;
use crate::stack::handover;
use crate::stack::id::StackId;
use crate::stack::journal::{Entry, Undo};
use crate::stack::runner::{BLKID, LOSETUP, MDADM, Runner, Tool, UMOUNT, UNSHARE, WIPEFS, failure, quoted};
use crate::stack::tuning::cgroup;
use crate::stack::tuning::queue::{self, in_force};

/// What was closed a moment ago may still be held: by the kernel, which ends I/O after its process,
/// or by udev, which looks at each device that changes.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

/// What undoes.
pub(crate) struct Hands<'a> {
    /// Runs the tools.
    pub(crate) runner: &'a Runner,
    /// The stack, of which the folders are named by its id.
    pub(crate) id: &'a StackId,
    /// Whether it was built since the kernel came up.
    pub(crate) same_boot: bool,
    /// What lay on a drive that is not there any more counts as gone with it.
    pub(crate) forget_missing: bool,
    /// Whether it was kept, so that somebody may have put something on it.
    kept: bool,
    /// The folders that the stack made.
    folders: Vec<PathBuf>,
}

/// How an undo went that did not fail.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// What it takes away is gone.
    Undone,
    /// So it is, but for what lies on a drive that is not there.
    Missing(Error),
}

/// Nodes that carry what is the stack's, and a drive that may and is not there.
type Ours = (Vec<PathBuf>, Option<Drive>);

impl<'a> Hands<'a> {
    /// Hands for a stack of which that is the id, what the journal says of it, and whether it was kept.
    pub(crate) fn of(
        (id, entries, kept): (&'a StackId, &[Entry], bool),
        runner: &'a Runner,
        (same_boot, forget_missing): (bool, bool),
    ) -> Self {
        let folders = entries.iter().filter_map(|entry| match &entry.undo {
            Some(Undo::RemoveFolder { dir }) => Some(dir.clone()),
            _ => None,
        });
        Self { runner, id, same_boot, forget_missing, kept, folders: folders.collect() }
    }
}

impl Hands<'_> {
    /// Undoes it. Once more does nothing.
    pub(crate) fn undo(&self, undo: &Undo) -> Result<Outcome> {
        let missing = match undo {
            Undo::RemovePartitions { drive, disk_uuid } => self.remove_table(drive, disk_uuid)?,
            Undo::RemoveArray { uuid, members, .. } => self.remove_array(uuid, members)?,
            Undo::RemoveFilesystem { uuid, places } => self.remove_filesystem(uuid, places)?,
            other => {
                self.undo_in_kernel_or_folder(other)?;
                None
            }
        };
        Ok(missing
            .filter(|_| !self.forget_missing)
            .map_or(Outcome::Undone, |drive| Outcome::Missing(self.missing(&drive))))
    }

    fn missing(&self, drive: &Drive) -> Error {
        let (drive, id) = (drive.describe(), &self.id.0);
        Error::failed(format!("{drive} is not there, so what the stack left on it stays on it")).hint(
            format!(
                "bring it back and run `stacktune cleanup {id}`, or give it up: \
             `stacktune cleanup --forget-missing {id}`"
            ),
        )
    }

    fn undo_in_kernel_or_folder(&self, undo: &Undo) -> Result<()> {
        match undo {
            Undo::RemoveFolder { dir } if self.is_above(dir) => remove_if_empty(dir),
            Undo::RemoveFolder { dir } => self.own(dir).and_then(|()| remove_folder(dir)),
            Undo::RemoveFile { file } => self.own(file).and_then(|()| self.remove_file(file)),
            Undo::DetachLoop { file } => self.own(file).and_then(|()| self.detach_loops(file)),
            gone if self.went_with_the_kernel(gone) => Ok(()),
            Undo::Unmount { dir } => self.own(dir).and_then(|()| self.unmount(dir)),
            Undo::RestoreQueue { drive, attribute, old, new, beside } => {
                queue::restore(drive, attribute, (old, new), beside)
            }
            Undo::GiveBack { address } => handover::give_back(address),
            Undo::RemoveCgroup { dir, switched_on } => {
                self.own(dir).and_then(|()| persist(|| cgroup::remove(dir, *switched_on)))
            }
            Undo::RemovePartitions { .. } | Undo::RemoveArray { .. } | Undo::RemoveFilesystem { .. } => {
                unreachable!("these lie on devices")
            }
        }
    }

    /// A path is the stack's own if a folder in it is named by the stack's id, which is random.
    fn own(&self, path: &Path) -> Result<()> {
        let id = &self.id.0;
        let names = [id.clone(), format!("stack-{id}"), format!("stacktune-{id}")];
        let is_within = |path: &Path| path.iter().any(|part| names.iter().any(|name| part == name.as_str()));
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        // By way of a link in it a path could lead anywhere.
        let really = devices::canonical_parent(path);
        if self.id.is_sound() && path.is_absolute() && !goes_up && is_within(path) && is_within(&really) {
            return Ok(());
        }
        Err(Error::refused(format!("{} is not in a folder of stack {}", path.display(), self.id.0)))
    }

    /// Whether a folder was made to make the stack's own in it: it is named by whoever named the target.
    fn is_above(&self, dir: &Path) -> bool {
        let in_it = |folder: &&PathBuf| folder.starts_with(dir) && self.own(folder).is_ok();
        self.own(dir).is_err() && self.folders.iter().any(|folder| in_it(&folder))
    }

    fn remove_file(&self, file: &Path) -> Result<()> {
        let found = match file.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found.map_err(|error| Error::os("cannot examine", file, error))?,
        };
        if !found.is_file() {
            return Err(Error::refused(format!("{} is not the file that was made there", file.display())));
        }
        if let Some(node) = devices::loops_over(self.runner, file)?.first() {
            return Err(Error::failed(format!("{} is still attached to {}", file.display(), node.display())));
        }
        if self.kept {
            self.refuse_unseen(file)?;
        }
        fs::remove_file(file).map_err(|error| Error::os("cannot remove", file, error))
    }

    fn detach_loops(&self, file: &Path) -> Result<()> {
        for node in devices::loops_over(self.runner, file)? {
            // The kernel would detach a device in use later, and say that it has.
            refuse_used(&node)?;
            self.tool(LOSETUP, &["--detach".as_ref(), node.as_os_str()])?;
        }
        persist(|| match devices::loops_over(self.runner, file)?.first() {
            None => Ok(()),
            Some(node) => {
                let holders = holders::in_words(node);
                Err(Error::failed(format!("{} is still held{holders}", node.display())))
            }
        })
    }

    fn unmount(&self, dir: &Path) -> Result<()> {
        // The kernel tells mount points without links, and the folder itself may not answer any more.
        let dir = &devices::canonical_parent(dir);
        let mounted = || {
            mounted_at(dir)
                .map_err(|error| Error::os("cannot read", Path::new("/proc/self/mountinfo"), error))
        };
        let sources = mounted()?;
        if sources.len() > 1 {
            let what = format!("{} is mounted over {}", sources[1], dir.display());
            return Err(Error::refused(what).hint("unmount that first: it is not the stack's"));
        }
        if sources.is_empty() {
            return Ok(());
        }
        refuse_others_files(dir)?;
        let arguments = ["--no-canonicalize".as_ref(), dir.as_os_str()];
        persist(|| {
            let answer = self.runner.run(UMOUNT, &arguments)?;
            if answer.status == 0 || mounted()?.is_empty() {
                return Ok(());
            }
            let error = failure(UMOUNT, &arguments, &answer);
            Err(match holders::in_words(dir).as_str() {
                "" => error.hint("see `fuser -vm` and `lsof` for what works in it"),
                holders => error.hint(format!("it is held{holders}: end that, or leave the folder")),
            })
        })
    }

    fn remove_filesystem(&self, uuid: &str, places: &[Place]) -> Result<Option<Drive>> {
        self.own_id(uuid)?;
        let (nodes, missing) = self.filesystems(uuid, places)?;
        nodes.iter().try_for_each(|node| refuse_used(node))?;
        if self.kept && !nodes.is_empty() {
            self.look_inside(&nodes)?;
        }
        for node in nodes {
            refuse_used(&node)?;
            // Not by force: wipefs then refuses what is in use after all.
            self.tool(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), node.as_os_str()])?;
        }
        Ok(missing)
    }

    /// Refuses a kept file system in which somebody has put something, also where it is not mounted any more:
    /// it is mounted in a namespace that goes with the tool that looks. Of several nodes each has all of it.
    fn look_inside(&self, nodes: &[PathBuf]) -> Result<()> {
        const LOOK: &str = r#"mount -o "$1" -- "$2" "$3" && ls -A -- "$3""#;
        let (node, dir) = (&nodes[0], std::env::temp_dir());
        let look = |options: &str| {
            let words = ["--mount", "--propagation=private", "sh", "-c", LOOK, "sh", options].map(OsStr::new);
            let arguments = [&words[..], &[node.as_os_str(), dir.as_os_str()]].concat();
            self.runner.run(UNSHARE, &arguments)
        };
        let mut answer = look("ro")?;
        if answer.status != 0 {
            // Btrfs's own RAID without one of its drives.
            let degraded = look("ro,degraded")?;
            answer = if degraded.status == 0 { degraded } else { answer };
        }
        if answer.status != 0 {
            let why = answer.stderr.lines().last().unwrap_or("it gave no reason").to_owned();
            let all = nodes.iter().map(|node| quoted(node.as_os_str())).collect::<Vec<_>>().join(" ");
            return Err(Error::refused(format!(
                "nobody can tell whether somebody has put something on the file system of {}: {why}",
                node.display()
            ))
            .hint(format!("look yourself, and give it up by `wipefs --all {all}`; then clean up again")));
        }
        let names: Vec<String> = answer.stdout.lines().map(str::to_owned).collect();
        refuse_others(&format!("the file system of {}", node.display()), &names)
    }

    /// Refuses a kept file into which nobody has looked yet: where its loop device is gone, as after a boot,
    /// what lies on it is found by no node.
    fn refuse_unseen(&self, file: &Path) -> Result<()> {
        self.refuse_foreign(file)?;
        match self.probe(file, "TYPE")?.as_deref() {
            None => Ok(()),
            Some("linux_raid_member") => {
                let what = format!(
                    "{} is of an array that does not run, and nobody can tell what is on it",
                    file.display()
                );
                let file = quoted(file.as_os_str());
                Err(Error::refused(what).hint(format!(
                    "attach it and its like (`losetup --find {file}`), start the array (`mdadm --assemble --scan`) \
                     and clean up again, or give it up by `wipefs --all {file}`"
                )))
            }
            Some(_) => self.look_inside(&[file.to_owned()]),
        }
    }

    /// The nodes that carry the file system of that UUID.
    fn filesystems(&self, uuid: &str, places: &[Place]) -> Result<Ours> {
        let ours = |node: &Path| Ok(self.filesystem_uuid(node)?.is_some_and(|found| same_id(&found, uuid)));
        self.ours(places, ours)
    }

    /// The UUID of the file system on a device.
    fn filesystem_uuid(&self, node: &Path) -> Result<Option<String>> {
        self.probe(node, "UUID")
    }

    /// What blkid finds of that name on a device or a file; none where there is no signature.
    fn probe(&self, node: &Path, tag: &str) -> Result<Option<String>> {
        let arguments = ["-p", "-o", "value", "-s", tag].map(OsStr::new);
        let arguments = [&arguments[..], &[node.as_os_str()]].concat();
        let answer = self.runner.run(BLKID, &arguments)?;
        match answer.status {
            0 => Ok(Some(answer.stdout.trim().to_owned()).filter(|value| !value.is_empty())),
            2 => Ok(None),
            8 => Err(Error::failed(format!("{} has contradictory signatures", node.display()))
                .hint("it is left as it is; `wipefs` lists them")),
            _ => Err(failure(BLKID, &arguments, &answer)),
        }
    }

    fn remove_array(&self, uuid: &str, members: &[Place]) -> Result<Option<Drive>> {
        self.own_id(uuid)?;
        let mut stopped = false;
        for node in devices::arrays(self.runner, uuid)? {
            node::check(&node)?;
            refuse_used(&node)?;
            // On one that nobody was given, marks are of what its drives held long before.
            if self.kept {
                refuse_in_part(&node)?;
                self.refuse_foreign(&node)?;
            }
            self.tool(MDADM, &["--stop".as_ref(), node.as_os_str()])?;
            stopped = true;
        }
        let (nodes, missing) = self.members(uuid, members)?;
        if self.kept && !stopped && !nodes.is_empty() {
            let what = format!("the array {uuid} does not run, and nobody can tell what is on it now");
            let all = nodes.iter().map(|node| quoted(node.as_os_str())).collect::<Vec<_>>().join(" ");
            return Err(Error::refused(what).hint(format!(
                "`mdadm --assemble --scan` starts it where it can be; or give it up by \
                 `mdadm --zero-superblock {all}`; then clean up again"
            )));
        }
        for node in nodes {
            self.tool(MDADM, &["--zero-superblock".as_ref(), node.as_os_str()])?;
        }
        self.remove_links()?;
        Ok(missing)
    }

    /// Ids of layers are made of the stack's own: no journal is believed that names others.
    fn own_id(&self, uuid: &str) -> Result<()> {
        if self.id.is_of(uuid) {
            return Ok(());
        }
        Err(Error::refused(format!("{uuid} is no id of stack {}", self.id.0)))
    }

    /// Refuses a device of the stack's on which somebody has put something since: what the stack itself had
    /// on it is wiped by then.
    fn refuse_foreign(&self, node: &Path) -> Result<()> {
        let Some(kind) = self.probe(node, "TYPE")?.or(self.probe(node, "PTTYPE")?) else { return Ok(()) };
        // What a killed mkfs left is the stack's own.
        if self.probe(node, "UUID")?.is_some_and(|uuid| self.id.is_of(&uuid)) {
            return Ok(());
        }
        Err(Error::refused(format!("{} holds {kind}, which the stack did not put there", node.display()))
            .hint("save or wipe that first (`wipefs --all`), then clean up again"))
    }

    /// The nodes with a superblock that names the array.
    fn members(&self, uuid: &str, members: &[Place]) -> Result<Ours> {
        let ours = |node: &Path| {
            Ok(devices::member_uuid(self.runner, node)?.is_some_and(|found| same_id(&found, uuid)))
        };
        self.ours(members, ours)
    }

    /// Without udev mdadm makes links to an array itself, named as the array is, and leaves them.
    fn remove_links(&self) -> Result<()> {
        let links = fs::read_dir("/dev/md").into_iter().flatten().flatten().map(|entry| entry.path());
        // As the array is: by the first half of the stack's id.
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

    fn remove_table(&self, drive: &Drive, disk_uuid: &str) -> Result<Option<Drive>> {
        self.own_id(disk_uuid)?;
        let (nodes, missing) = self.tables(drive, disk_uuid)?;
        for node in nodes {
            refuse_used(&node)?;
            let table = devices::table(self.runner, &node)?;
            let foreign = table.and_then(|table| table.other_than(|uuid| self.id.is_of(uuid)));
            if let Some(partition) = foreign {
                let what = format!("{} was not made by the stack", partition.display());
                return Err(Error::refused(what)
                    .hint("save what is in it and delete it (`sfdisk --delete`), then clean up again"));
            }
            if self.kept {
                partitions(&node).iter().try_for_each(|partition| self.refuse_foreign(partition))?;
            }
            self.tool(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), node.as_os_str()])?;
            persist(|| no_partitions(&node))?;
        }
        Ok(missing)
    }

    /// The nodes with the partition table of that id, or with what a power cut left of it.
    fn tables(&self, drive: &Drive, disk_uuid: &str) -> Result<Ours> {
        let ours = |node: &Path| {
            let table = devices::table(self.runner, node)?;
            if let Some(table) = table {
                return Ok(same_id(&table.id, disk_uuid));
            }
            let ids = gpt::disk_ids(node).map_err(|error| Error::os("cannot read", node, error))?;
            Ok(ids.iter().any(|id| same_id(id, disk_uuid)))
        };
        self.ours(&[Place::Drive(drive.clone())], ours)
    }

    /// The nodes of the places that pass the test.
    fn ours(&self, places: &[Place], test: impl Fn(&Path) -> Result<bool>) -> Result<Ours> {
        let (mut found, mut missing) = (Vec::new(), None);
        for place in places {
            match place.nodes(self.runner, self.same_boot)? {
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

    /// Runs a tool until it succeeds; what was closed a moment ago may make it fail for a while.
    fn tool(&self, tool: Tool, arguments: &[&OsStr]) -> Result<()> {
        persist(|| self.runner.run_well(tool, arguments).map(drop))
    }
}

/// Commands to be typed.
impl Hands<'_> {
    /// The commands that undo the same by hand, with the nodes as they are now; none where what they
    /// would take away is not there, or not the stack's.
    pub(crate) fn commands(&self, undo: &Undo) -> Vec<String> {
        if self.went_with_the_kernel(undo) {
            return Vec::new();
        }
        let typed = |words: &str, path: &Path| format!("{words} {}", quoted(path.as_os_str()));
        let all = |words: &str, nodes: Vec<PathBuf>| nodes.iter().map(|node| typed(words, node)).collect();
        // What can't be told just now is not offered to be typed.
        let found = |ours: Result<Ours>| ours.map(|(nodes, _)| nodes).unwrap_or_default();
        match undo {
            Undo::RemoveFolder { dir } | Undo::RemoveCgroup { dir, .. } => vec![typed("rmdir", dir)],
            Undo::RemoveFile { file } => vec![typed("rm", file)],
            Undo::GiveBack { address } => handover::commands(address),
            Undo::Unmount { dir } => vec![typed("umount", dir)],
            Undo::DetachLoop { file } => {
                all("losetup --detach", devices::loops_over(self.runner, file).unwrap_or_default())
            }
            Undo::RemovePartitions { drive, disk_uuid } => {
                all("wipefs --all", found(self.tables(drive, disk_uuid)))
            }
            Undo::RemoveFilesystem { uuid, places } => {
                all("wipefs --all", found(self.filesystems(uuid, places)))
            }
            Undo::RemoveArray { uuid, members, .. } => {
                let arrays = devices::arrays(self.runner, uuid).unwrap_or_default();
                let mut commands: Vec<String> = all("mdadm --stop", arrays);
                let members: Vec<String> = all("mdadm --zero-superblock", found(self.members(uuid, members)));
                commands.extend(members);
                commands
            }
            Undo::RestoreQueue { drive, attribute, old, .. } => {
                let file = PathBuf::from(format!("/sys/block/{}/queue/{attribute}", drive.name));
                vec![typed(&format!("echo {} >", quoted(OsStr::new(in_force(old)))), &file)]
            }
        }
    }

    /// Whether it was gone when the kernel went that knew it: what is there now is somebody else's.
    pub(crate) fn went_with_the_kernel(&self, undo: &Undo) -> bool {
        let kernels = matches!(
            undo,
            Undo::Unmount { .. }
                | Undo::RestoreQueue { .. }
                | Undo::GiveBack { .. }
                | Undo::RemoveCgroup { .. }
        );
        kernels && !self.same_boot
    }
}

/// Tries again for a while.
fn persist(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    let patience_ends = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(_) if Instant::now() < patience_ends => std::thread::sleep(LOOK),
            outcome => return outcome,
        }
    }
}

/// Refuses a device on which somebody works; its being a member of what was just stopped is no use.
fn refuse_used(node: &Path) -> Result<()> {
    persist(|| {
        let facts = Facts::read_devices();
        let name = node.file_name().unwrap_or_default().to_string_lossy();
        let device = facts.iter().find(|device| {
            device.path == node || device.partitions.iter().any(|partition| *partition == name)
        });
        let usage = device.iter().flat_map(|device| &device.usage);
        // It is the stack's, by its id: what may be anybody's use is not this one's.
        match usage.into_iter().find(|usage| usage.is_sure() && !matches!(usage, Usage::Member(_))) {
            None => Ok(()),
            Some(usage) => {
                Err(Error::refused(format!("{} is in use: {usage}", node.display()))
                    .hint("end that use first"))
            }
        }
    })
}

/// Refuses an array that waits for members: it has no size, and shows nothing of what is on it.
fn refuse_in_part(node: &Path) -> Result<()> {
    let really = node.canonicalize().unwrap_or_else(|_| node.to_owned());
    let name = really.file_name().unwrap_or_default();
    let state = fs::read_to_string(Path::new("/sys/block").join(name).join("md/array_state"));
    if state.is_ok_and(|state| state.trim() != "inactive") {
        return Ok(());
    }
    let what = format!("{} is put together in part only, and nobody can tell what is on it", node.display());
    Err(Error::refused(what).hint(format!(
        "bring its drives back, or start it without (`mdadm --run {0}`), and clean up again; or stop it \
         (`mdadm --stop {0}`) and give it up by `mdadm --zero-superblock` of its members",
        quoted(node.as_os_str())
    )))
}

/// The nodes of the partitions that the kernel knows on a drive.
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
            let what = format!("the kernel still knows {} of {}", partition.display(), node.display());
            Err(Error::failed(what))
        }
    }
}

/// Refuses a file system in which somebody has put something beside the files of the set: it would go with
/// it. One that does not answer any more has nothing left to save.
fn refuse_others_files(dir: &Path) -> Result<()> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    refuse_others(&dir.display().to_string(), &names)
}

/// The same of a file system that holds these names.
fn refuse_others(place: &str, names: &[String]) -> Result<()> {
    // What `crate::load::volume` and `crate::load::kv` make in a folder, and mkfs.
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
    let others: Vec<&str> = names.iter().map(String::as_str).filter(|name| !is_ours(name)).take(3).collect();
    if others.is_empty() {
        return Ok(());
    }
    let what = format!("{place} holds {}, which stacktune did not put there", others.join(", "));
    Err(Error::refused(what).hint("move that to another place, then clean up again"))
}

/// What others have put there meanwhile needs the folder.
fn remove_if_empty(dir: &Path) -> Result<()> {
    match fs::remove_dir(dir) {
        Err(error) if [ErrorKind::NotFound, ErrorKind::DirectoryNotEmpty].contains(&error.kind()) => Ok(()),
        outcome => outcome.map_err(|error| Error::os("cannot remove", dir, error)),
    }
}

fn remove_folder(dir: &Path) -> Result<()> {
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            let names: Vec<_> =
                entries.take(3).map(|entry| entry.file_name().display().to_string()).collect();
            Err(Error::refused(format!("{} is not empty: it has {}", dir.display(), names.join(", ")))
                .hint("stacktune did not put that there: move it away"))
        }
        outcome => outcome.map_err(|error| Error::os("cannot remove", dir, error)),
    }
}
