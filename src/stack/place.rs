//! The block devices of a stack, named before they exist and found again after a crash.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::node;
use super::runner::{LOSETUP, MDADM, Runner, SFDISK, failure, quoted};
use crate::error::{Error, Result};
use crate::host::{Device, Facts, number_text};
use crate::units::approx_size;

/// A node appears that long after what it stands for, at most: udev or devtmpfs makes it.
const NODE_PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// A drive as the host has it, by what stays its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drive {
    /// The kernel's name when the plan was made.
    pub name: String,
    /// Its node.
    pub path: PathBuf,
    /// `major:minor` when the plan was made.
    pub number: String,
    /// Model, where told.
    pub model: Option<String>,
    /// Serial, where told.
    pub serial: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
}

/// A block device that a step makes or uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A drive as the host has it.
    Drive(Drive),
    /// The loop device over a file of the stack's, whichever number the kernel gives it.
    Loop {
        /// The file.
        file: PathBuf,
    },
    /// The stack's partition of a drive.
    Partition {
        /// The drive.
        drive: Drive,
        /// The partition's unique id, chosen by the plan.
        uuid: String,
    },
    /// An md array.
    Array {
        /// The node that the plan chose.
        path: PathBuf,
        /// Its UUID, chosen by the plan.
        uuid: String,
    },
}

impl Drive {
    /// The drive that a device is.
    pub fn of(device: &Device) -> Self {
        Self {
            name: device.name.clone(),
            path: device.path.clone(),
            number: device.number.clone(),
            model: device.model.clone(),
            serial: device.serial.clone(),
            size_bytes: device.size_bytes,
        }
    }

    /// In one line: node, model, serial and size.
    pub(super) fn in_full(&self) -> String {
        let model = self.model.as_deref().unwrap_or("unknown model");
        let serial =
            self.serial.as_deref().map_or("no serial".to_owned(), |serial| format!("serial {serial}"));
        format!("{}, {model}, {serial}, {}", self.path.display(), approx_size(self.size_bytes))
    }

    /// The drive as the host has it now.
    ///
    /// # Errors
    /// Refused where it is gone, or where another one has come in its place.
    pub(super) fn find(&self) -> Result<Device> {
        self.among(Facts::read_devices())
    }

    fn among(&self, devices: Vec<Device>) -> Result<Device> {
        let at = devices.into_iter().find(|device| device.number == self.number);
        let Some(device) = at else {
            return Err(Error::refused(format!("{} is no longer there", self.describe()))
                .hint("it was removed meanwhile; plan again"));
        };
        let same =
            device.name == self.name && device.serial == self.serial && device.size_bytes == self.size_bytes;
        if same {
            return Ok(device);
        }
        let serial = device.serial.as_deref().unwrap_or("none");
        let what = format!(
            "{} is another device than {}: its serial is {serial}, it has {} bytes",
            device.path.display(),
            self.describe(),
            device.size_bytes
        );
        Err(Error::refused(what).hint("it was replaced meanwhile; plan again"))
    }

    /// The devices that may be this drive: the very same in the same boot. After another one, or after
    /// it was pulled and plugged in again, names and numbers may have changed, and whoever looks has
    /// to go by an id that lies on the device.
    pub(super) fn candidates(&self, same_boot: bool) -> Vec<Device> {
        let devices = Facts::read_devices();
        match self.among(devices.clone()) {
            Ok(device) if same_boot => vec![device],
            _ => self.alike(devices, same_boot),
        }
    }

    /// The devices of the same serial and size; of the same name, where it has no serial.
    fn alike(&self, devices: Vec<Device>, same_boot: bool) -> Vec<Device> {
        let same = |device: &Device| {
            let told = if self.serial.is_some() {
                device.serial == self.serial
            } else {
                // In the same boot a name without a serial that has changed is another drive's.
                !same_boot && device.name == self.name && device.serial.is_none()
            };
            told && device.size_bytes == self.size_bytes
        };
        devices.into_iter().filter(same).collect()
    }

    /// `/dev/nvme0n1 (serial S1)`.
    pub(super) fn describe(&self) -> String {
        match &self.serial {
            Some(serial) => format!("{} (serial {serial})", self.path.display()),
            None => self.path.display().to_string(),
        }
    }
}

impl Place {
    /// Its node now. One that was just made is waited for.
    ///
    /// # Errors
    /// Refused where a drive is gone or another one; failed where no node appears.
    pub fn resolve(&self, runner: &Runner) -> Result<PathBuf> {
        let patience_ends = Instant::now() + NODE_PATIENCE;
        loop {
            let found = match self {
                Self::Drive(drive) => Some(drive.find()?.path),
                Self::Loop { file } => loops_over(runner, file)?.pop(),
                Self::Partition { drive, uuid } => partition(runner, &drive.find()?, uuid)?,
                Self::Array { uuid, .. } => arrays(runner, uuid)?.pop(),
            };
            if let Some(node) = found.filter(|node| node.exists()) {
                node::check(&node)?;
                return Ok(node);
            }
            if Instant::now() >= patience_ends {
                return Err(Error::failed(format!("there is no node for {}", self.describe()))
                    .hint("in a container /dev may lack what the kernel makes: run on the host itself"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// All nodes that it may have, without waiting; after another boot a drive's may be several.
    ///
    /// None is no error, except for a drive that is not there at all: what lies on it can't be seen.
    /// # Errors
    /// Refused where a node is another device's.
    pub(super) fn nodes(&self, runner: &Runner, same_boot: bool) -> Result<Found> {
        let found = self.find_nodes(runner, same_boot)?;
        if let Found::At(nodes) = &found {
            nodes.iter().filter(|node| node.exists()).try_for_each(|node| node::check(node))?;
        }
        Ok(found)
    }

    fn find_nodes(&self, runner: &Runner, same_boot: bool) -> Result<Found> {
        match self {
            Self::Loop { file } => loops_over(runner, file).map(Found::At),
            Self::Array { uuid, .. } => arrays(runner, uuid).map(Found::At),
            Self::Drive(drive) => Ok(match drive.candidates(same_boot) {
                none if none.is_empty() => Found::Missing(drive.clone()),
                devices => Found::At(devices.into_iter().map(|device| device.path).collect()),
            }),
            Self::Partition { drive, uuid } => {
                let devices = drive.candidates(same_boot);
                if devices.is_empty() {
                    return Ok(Found::Missing(drive.clone()));
                }
                let nodes = devices.iter().map(|device| partition(runner, device, uuid));
                Ok(Found::At(nodes.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()))
            }
        }
    }

    /// As a word of a command: its node, or what stands for one that is not known yet.
    pub fn shown(&self) -> String {
        match self {
            Self::Drive(drive) => quoted(drive.path.as_os_str()),
            Self::Loop { file } => {
                format!("<loop of {}>", file.file_name().unwrap_or_default().to_string_lossy())
            }
            Self::Partition { drive, .. } => quoted(first_partition(&drive.path).as_os_str()),
            Self::Array { path, .. } => quoted(path.as_os_str()),
        }
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Drive(drive) => drive.describe(),
            Self::Loop { file } => format!("the loop device over {}", file.display()),
            Self::Partition { drive, uuid } => format!("partition {uuid} of {}", drive.describe()),
            Self::Array { path, uuid } => format!("the array {} ({uuid})", path.display()),
        }
    }
}

/// The node of a drive's first partition, as the kernel names it.
fn first_partition(drive: &Path) -> PathBuf {
    let text = drive.display().to_string();
    let divider = if text.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
    PathBuf::from(format!("{text}{divider}1"))
}

/// What [`Place::nodes`] found.
#[derive(Debug)]
pub(super) enum Found {
    /// At these nodes, or nowhere.
    At(Vec<PathBuf>),
    /// The drive that it is on is not there.
    Missing(Drive),
}

/// The loop devices over a file: by its path, and where the file is still there by its inode too.
pub(super) fn loops_over(runner: &Runner, file: &Path) -> Result<Vec<PathBuf>> {
    let file = canonical(file);
    let deleted = PathBuf::from(format!("{} (deleted)", file.display()));
    let mut found = Vec::new();
    for name in block_names("loop") {
        let Ok(backing) = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")) else {
            continue;
        };
        let backing = Path::new(backing.trim_end_matches('\n'));
        let node = Path::new("/dev").join(&name);
        if backing == deleted || backing == file && is_over(runner, &node, &file)? {
            found.push(node);
        }
    }
    Ok(found)
}

/// Whether a loop device is over this very file, and not over one that had its name before.
fn is_over(runner: &Runner, node: &Path, file: &Path) -> Result<bool> {
    let Ok(metadata) = file.metadata() else { return Ok(true) };
    let arguments = ["--noheadings", "--output", "BACK-INO,BACK-MAJ:MIN"].map(AsRef::as_ref);
    let answer = runner.run_well(LOSETUP, &[&arguments[..], &[node.as_os_str()]].concat())?;
    let mut words = answer.stdout.split_whitespace();
    let same = [metadata.ino().to_string(), number_text(metadata.dev())];
    Ok(same.iter().all(|value| words.next() == Some(value)))
}

/// A path without links, also where its end is not there any more.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| canonical_parent(path))
}

/// A path without links before its last part.
pub(super) fn canonical_parent(path: &Path) -> PathBuf {
    let parts = path.parent().and_then(|dir| dir.canonicalize().ok()).zip(path.file_name());
    parts.map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name))
}

fn block_names(prefix: &str) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// A partition table as sfdisk reads it from the device.
#[derive(Debug, Deserialize)]
pub(super) struct Table {
    /// Its unique id; an MBR's is a short number.
    #[serde(default)]
    pub(super) id: String,
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
    /// A partition whose id does not pass.
    pub(super) fn other_than(&self, is_ours: impl Fn(&str) -> bool) -> Option<PathBuf> {
        self.partitions.iter().find(|entry| !is_ours(&entry.uuid)).map(|entry| entry.node.clone())
    }
}

/// The partition table of a device, where it has one.
pub(super) fn table(runner: &Runner, node: &Path) -> Result<Option<Table>> {
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
    let parsed = serde_json::from_str::<Answer>(&answer.stdout)
        .map_err(|error| Error::failed(format!("sfdisk's answer can't be read: {error}")))?;
    Ok(Some(parsed.partitiontable))
}

/// The node of the partition of that id, once the kernel has it.
fn partition(runner: &Runner, device: &Device, uuid: &str) -> Result<Option<PathBuf>> {
    let entries = table(runner, &device.path)?.map_or(Vec::new(), |table| table.partitions);
    let node = entries.into_iter().find(|entry| same_id(&entry.uuid, uuid)).map(|entry| entry.node);
    let known = |node: &PathBuf| {
        node.file_name()
            .is_some_and(|name| Path::new("/sys/class/block").join(name).join("partition").exists())
    };
    Ok(node.filter(known))
}

/// The nodes of the arrays of that UUID, whether they run or were only put together in part.
pub(super) fn arrays(runner: &Runner, uuid: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in block_names("md") {
        let node = Path::new("/dev").join(&name);
        if !is_array(&node) {
            continue;
        }
        let arguments = ["--detail".as_ref(), "--export".as_ref(), node.as_os_str()];
        let answer = runner.run(MDADM, &arguments)?;
        if answer.status == 0 && exported_uuid(&answer.stdout).is_some_and(|id| same_id(id, uuid)) {
            found.push(node);
        }
    }
    Ok(found)
}

/// Whether there is an array at a node, or at what it links to: a stopped one may stay as an empty node.
pub(super) fn is_array(node: &Path) -> bool {
    let name = node.canonicalize().ok().and_then(|node| Some(node.file_name()?.to_owned()));
    let state = |name| fs::read_to_string(Path::new("/sys/block").join(name).join("md/array_state")).ok();
    name.and_then(state).is_some_and(|state| state.trim() != "clear")
}

/// The UUID of the md superblock on a device, where it has one.
pub(super) fn member_uuid(runner: &Runner, node: &Path) -> Result<Option<String>> {
    let arguments = ["--examine".as_ref(), "--export".as_ref(), node.as_os_str()];
    let answer = runner.run(MDADM, &arguments)?;
    match exported_uuid(&answer.stdout) {
        Some(uuid) => Ok(Some(uuid.to_owned())),
        None if answer.status == 0 || answer.stderr.contains("No md superblock") => Ok(None),
        None => Err(failure(MDADM, &arguments, &answer)),
    }
}

fn exported_uuid(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("MD_UUID="))
}

/// Whether two ids are the same, however they are divided and in whichever case.
pub(super) fn same_id(one: &str, other: &str) -> bool {
    let digits = |id: &str| -> Vec<u8> {
        id.bytes().filter(u8::is_ascii_hexdigit).map(|digit| digit.to_ascii_lowercase()).collect()
    };
    !digits(one).is_empty() && digits(one) == digits(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive() -> Drive {
        Drive {
            name: "nvme9n1".into(),
            path: "/dev/nvme9n1".into(),
            number: "259:99".into(),
            model: None,
            serial: Some("S1".into()),
            size_bytes: 1 << 30,
        }
    }

    fn device(drive: &Drive) -> Device {
        Device {
            name: drive.name.clone(),
            path: drive.path.clone(),
            number: drive.number.clone(),
            by_id: Vec::new(),
            model: None,
            serial: drive.serial.clone(),
            firmware: None,
            size_bytes: drive.size_bytes,
            logical_block_bytes: 512,
            physical_block_bytes: 512,
            volatile_write_cache: None,
            rotational: false,
            read_only: false,
            numa_node: None,
            scheduler: None,
            queue: crate::host::Queue::default(),
            controller: None,
            link: None,
            temperature: None,
            health: None,
            partitions: Vec::new(),
            members: Vec::new(),
            usage: Vec::new(),
        }
    }

    #[test]
    fn a_drive_is_the_same_only_with_its_number_name_serial_and_size() {
        let same = device(&drive());
        assert_eq!(drive().among(vec![same.clone()]).unwrap().path, drive().path);
        let others = [
            Device { serial: Some("S2".into()), ..same.clone() },
            Device { serial: None, ..same.clone() },
            Device { size_bytes: 2 << 30, ..same.clone() },
            Device { name: "nvme8n1".into(), ..same.clone() },
        ];
        for other in others {
            let error = drive().among(vec![other]).unwrap_err();
            assert_eq!(error.exit_status(), 3);
            assert!(error.what.contains("another device than /dev/nvme9n1 (serial S1)"), "{error}");
        }
        let gone = drive().among(vec![Device { number: "259:98".into(), ..same }]).unwrap_err();
        assert!(gone.what.contains("no longer there"), "{gone}");
    }

    #[test]
    fn a_drive_is_found_again_by_its_serial_and_without_one_by_its_name_after_a_boot() {
        let moved = Device { name: "nvme3n1".into(), number: "259:3".into(), ..device(&drive()) };
        let other = Device { serial: Some("S2".into()), ..moved.clone() };
        let found = drive().alike(vec![other, moved.clone()], true);
        assert_eq!(found, [moved]);
        let nameless = Drive { serial: None, ..drive() };
        let same_name = device(&nameless);
        assert_eq!(nameless.alike(vec![same_name.clone()], false), std::slice::from_ref(&same_name));
        assert!(nameless.alike(vec![same_name], true).is_empty());
    }

    #[test]
    fn ids_are_the_same_however_tools_write_them() {
        assert!(same_id("0a1b:2C3d", "0A1B-2c3D"));
        assert!(!same_id("0a1b2c3d", "0a1b2c3e"));
        assert!(!same_id("", ""), "no id is nobody's");
    }

    #[test]
    fn a_uuid_is_read_from_what_mdadm_exports() {
        let text = "MD_LEVEL=raid1\nMD_DEVICES=2\nMD_UUID=11111111:22222222:33333333:44444444\n";
        assert_eq!(exported_uuid(text), Some("11111111:22222222:33333333:44444444"));
        assert_eq!(exported_uuid("MD_LEVEL=raid1\n"), None);
    }
}
