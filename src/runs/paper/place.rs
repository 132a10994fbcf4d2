//! From a row of the paper to knobs on this host's drives or files.

use crate::class::Class;
use crate::settings::knobs::{self, Value};
use crate::settings::profile::SweepStep;
use crate::settings::{Filesystem, Named, Raid, Settings};
use crate::units::{GIB, MIB, format_size};

use super::experiment::{Experiment, ExperimentRow, RowTarget};
use super::systems::{self, Room};

const CACHE_LIMIT: &str = "run.cache_limit";

/// The paper's data and WAL (section 4.1), and its page cache.
pub(super) const DATA_BYTES: u64 = 400_000_000_000;
const WAL_BYTES: u64 = 100_000_000_000;
pub(super) const CACHE_BYTES: u64 = 10_000_000_000;
/// A smaller page cache would leave no memory for stacktune itself, since threads and buffers count against it.
const CACHE_BYTES_MIN: u64 = 256 * MIB;
/// Files by default, as in the built-in profiles.
const FILES: (u64, u64) = (4, 4 * GIB);

/// The partition of He et al. 2017 as a file, and the smallest share of a drive that a stack uses.
const PARTITION_BYTES: u64 = GIB;
const PARTITION_PERCENT: u64 = 10;

/// The drives or files of a reproduction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// Block devices, which are destroyed.
    Devices(Vec<String>),
    /// Files in a folder.
    Files(String),
}

/// A device that is a hardware RAID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// Its level: `5`.
    pub level: String,
    /// The device.
    pub device: String,
    /// Its size.
    pub bytes: u64,
}

/// The storage that rows run on, and the host's abilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Bed {
    /// Drives or files.
    pub storage: Storage,
    /// Bytes of each drive.
    pub drives_bytes: Vec<u64>,
    /// Devices that are hardware RAIDs.
    pub hardware: Vec<Hardware>,
    /// Why the page cache can't have a budget, if so.
    pub no_cache_limit: Option<String>,
    /// Whether this process may attach loop devices and mount.
    pub root: bool,
    /// The host's memory.
    pub memory_bytes: u64,
}

impl Bed {
    /// The settings that all rows of an experiment start from.
    pub fn base(&self, experiment: &Experiment) -> Settings {
        let mut settings = Settings {
            name: experiment.name.into(),
            about: if experiment.is_traced() {
                format!("{}: {}", experiment.source, experiment.about)
            } else {
                format!("Haas et al. 2020, {}: {}", experiment.source, experiment.about)
            },
            ..Settings::default()
        };
        // As fio does by default.
        settings.io.registered_buffers = false;
        settings.io.registered_files = false;
        match &self.storage {
            Storage::Devices(devices) => settings.target.devices.clone_from(devices),
            Storage::Files(dir) => {
                settings.target.dir.clone_from(dir);
                (settings.target.count, settings.target.size_bytes) = FILES;
            }
        }
        settings.program = systems::program(experiment, self.room());
        settings
    }

    /// The memory and storage for a program and its data.
    fn room(&self) -> Room<'_> {
        let storage_bytes = match self.storage {
            Storage::Devices(_) => self.drives_bytes.iter().sum(),
            Storage::Files(_) => FILES.0 * FILES.1,
        };
        let no_limit = self.no_cache_limit.as_deref();
        Room { memory_bytes: self.memory_bytes, storage_bytes, no_limit }
    }

    fn members(&self) -> u64 {
        self.drives_bytes.len() as u64
    }

    /// Bytes of the drives below a row.
    fn drives_bytes_of(&self, place: RowTarget) -> Vec<u64> {
        match place {
            RowTarget::HardwareRaid(level) => {
                self.hardware(level).map(|given| given.bytes).into_iter().collect()
            }
            _ => self.drives_bytes.clone(),
        }
    }

    fn hardware(&self, level: &str) -> Option<&Hardware> {
        self.hardware.iter().find(|given| given.level == level)
    }
}

/// The capacity of an array of these drives.
fn usable_bytes(raid: Raid, drives_bytes: &[u64]) -> u64 {
    let smallest = drives_bytes.iter().min().copied().unwrap_or(0);
    let members = drives_bytes.len() as u64;
    match raid {
        Raid::Md1 => smallest,
        Raid::Md5 | Raid::Btrfs5 => smallest * members.saturating_sub(1),
        Raid::Md6 => smallest * members.saturating_sub(2),
        Raid::Md10 | Raid::Btrfs1 | Raid::Btrfs10 => smallest * members / 2,
        Raid::None | Raid::Md0 | Raid::Btrfs0 => smallest * members,
    }
}

/// The percentage of each drive that holds as much as the paper's two files, so that a block device has
/// neither more data nor less spare room than a file system.
fn use_percent(raid: Raid, drives_bytes: &[u64]) -> u64 {
    let wanted = u128::from(DATA_BYTES + WAL_BYTES) * 100;
    (wanted.div_ceil(u128::from(usable_bytes(raid, drives_bytes).max(1))) as u64).clamp(10, 100)
}

/// A row as a step on this host.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The row's label.
    pub label: String,
    /// The step, or why there is none, as a sentence without a full stop.
    pub step: std::result::Result<SweepStep, String>,
}

/// The base settings, with all values that rows give their program's knobs.
pub fn with_values_of_rows(base: &Settings, experiment: &Experiment, bed: &Bed) -> Settings {
    systems::with_values_of_rows(base, experiment, bed.room())
}

/// The steps of an experiment. `base` already has `sets`, the knobs given by the operator, applied: no row
/// turns these again.
pub fn steps(experiment: &Experiment, bed: &Bed, base: &Settings, sets: &[&str]) -> Vec<Planned> {
    let of = |row: &ExperimentRow| {
        let mut turns = turns(row, bed)?;
        turns.retain(|(path, _)| !sets.contains(path));
        let mut program = systems::turns(row, base, bed.room())?;
        program.retain(|(name, _)| !sets.contains(&&*format!("command.{name}")));
        let mut step =
            SweepStep { label: row.label.clone(), turns, program, time: None, warmup: None, repeat: None };
        let settings = step.settings(base);
        // A program's memory has its own limit.
        let is_program = settings.program.is_some();
        let limited = bed.no_cache_limit.is_none() && !settings.is_simulated() && !is_program;
        if limited && !sets.contains(&CACHE_LIMIT) {
            let bytes = data_bytes_of(&settings, &bed.drives_bytes_of(row.place));
            step.turns.push((CACHE_LIMIT, Value::Size(Some(cache_limit_bytes(bytes)))));
        }
        Ok(step)
    };
    experiment.rows.iter().map(|row| Planned { label: row.label.clone(), step: of(row) }).collect()
}

/// The knobs that make up a row on this bed, or why it is not possible here.
fn turns(row: &ExperimentRow, bed: &Bed) -> Result<Vec<(&'static str, Value)>, String> {
    if let Some(why) = row.lacking {
        return Err(why.into());
    }
    let place = match &bed.storage {
        Storage::Devices(_) => on_devices(row.place, bed)?,
        Storage::Files(_) => on_files(row.place, bed)?,
    };
    row.turns.iter().chain(&place).map(|(path, text)| Ok((*path, value(path, text)?))).collect()
}

/// A knob's value from its text.
fn value(path: &str, text: &str) -> Result<Value, String> {
    knobs::find(path).ok_or_else(|| format!("there is no `{path}`"))?.parse(text)
}

type Texts = Vec<(&'static str, String)>;

fn on_devices(place: RowTarget, bed: &Bed) -> Result<Texts, String> {
    let array = if bed.members() > 1 { Raid::Md0 } else { Raid::None };
    let stack = |raid: Raid, filesystem: Filesystem, percent: u64| {
        vec![
            ("stack.state", "trimmed".to_owned()),
            ("stack.raid", raid.name().to_owned()),
            ("stack.filesystem", filesystem.name().to_owned()),
            ("stack.use", format!("{percent}%")),
        ]
    };
    let bare = |raid: Raid| stack(raid, Filesystem::None, use_percent(raid, &bed.drives_bytes));
    Ok(match place {
        RowTarget::Ext4 => stack(array, Filesystem::Ext4, 100),
        RowTarget::Block | RowTarget::AnyBlock | RowTarget::Filesystem(Filesystem::None) => bare(array),
        RowTarget::Drives => Vec::new(),
        RowTarget::NinetyPercent => stack(array, Filesystem::None, 90),
        RowTarget::Filesystem(filesystem) => stack(array, filesystem, 100),
        RowTarget::Raid(raid) if bed.members() < raid.members_min() => {
            return Err(format!("{} needs at least {} drives", raid.name(), raid.members_min()));
        }
        RowTarget::Raid(raid) => bare(raid),
        RowTarget::Partition(_) if bed.members() > 1 => {
            return Err("the paper's rows are on one drive: give one".into());
        }
        RowTarget::Partition(filesystem) => stack(Raid::None, filesystem, PARTITION_PERCENT),
        RowTarget::HardwareRaid(level) => {
            let given = hardware(level, bed)?;
            let percent = use_percent(Raid::None, &[given.bytes]);
            let mut turns = stack(Raid::None, Filesystem::None, percent);
            turns.insert(0, ("target.devices", given.device.clone()));
            turns
        }
    })
}

fn on_files(place: RowTarget, bed: &Bed) -> Result<Texts, String> {
    let (count, bytes) = FILES;
    let loops = |count: u64, bytes: u64, raid: Raid, filesystem: Filesystem| {
        if !bed.root {
            return Err("loop devices and mounts require root: run it with sudo, or give --devices".into());
        }
        Ok(vec![
            ("stack.loops", "true".to_owned()),
            ("stack.raid", raid.name().to_owned()),
            ("stack.filesystem", filesystem.name().to_owned()),
            ("target.files.count", count.to_string()),
            ("target.files.size", format_size(bytes)),
        ])
    };
    match place {
        RowTarget::Ext4 | RowTarget::AnyBlock | RowTarget::Drives | RowTarget::NinetyPercent => {
            Ok(Vec::new())
        }
        RowTarget::Block => Err("files are on a file system, but this row has none: give --devices".into()),
        // Comparing file systems does not need four files on one drive.
        RowTarget::Filesystem(filesystem) => loops(1, count * bytes, Raid::None, filesystem),
        RowTarget::Raid(raid) => loops(count, bytes, raid, Filesystem::None),
        RowTarget::Partition(filesystem) => loops(1, PARTITION_BYTES, Raid::None, filesystem),
        RowTarget::HardwareRaid(level) => Err(hardware(level, bed).err().unwrap_or_else(|| {
            "a hardware RAID is compared with drives, but this runs on files: give --devices".into()
        })),
    }
}

fn hardware<'a>(level: &str, bed: &'a Bed) -> Result<&'a Hardware, String> {
    bed.hardware(level)
        .ok_or_else(|| format!("no hardware RAID {level} was given: add --hardware-raid {level}=DEVICE"))
}

/// The page cache's budget, in the same proportion to the data as the paper's 10 GB to its 400 GB.
pub fn cache_limit_bytes(data_bytes: u64) -> u64 {
    let share = u128::from(data_bytes) * u128::from(CACHE_BYTES) / u128::from(DATA_BYTES);
    (share as u64).clamp(CACHE_BYTES_MIN, CACHE_BYTES)
}

/// Bytes of the data that a row reads, as far as known before it is built.
pub fn data_bytes_of(settings: &Settings, drives_bytes: &[u64]) -> u64 {
    let on_files = settings.target.devices.is_empty();
    let members = if on_files {
        settings.target.count * settings.target.size_bytes
    } else {
        usable_bytes(settings.stack.raid, drives_bytes) / 100 * settings.stack.use_percent
    };
    let whole = if on_files && !settings.stack.is_built() { members } else { members / 5 * 4 };
    let of_files = settings.stack.data_bytes.unwrap_or_else(|| whole.min(DATA_BYTES));
    if settings.stack.filesystem == Filesystem::None { whole } else { of_files }
}

/// Bytes per second that the load of these settings writes at its rates; none if a writing class has no rate.
pub fn write_rate_bytes_per_s(settings: &Settings) -> Option<u64> {
    Class::ALL
        .into_iter()
        .filter(|class| class.writes() && settings.classes[class.index()].enabled)
        .map(|class| settings.classes[class.index()].rate_bytes_per_s)
        .sum()
}
