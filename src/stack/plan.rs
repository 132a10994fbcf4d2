//! What is to be done to build a stack, as data: shown, confirmed, and then run as it was shown.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::content::Ours;
use super::guard::{self, Claim, Consent};
use super::layers::{Ground, Layers, MEMBER_BYTES_MIN, files_dir};
use super::place::{Drive, Place};
use super::runner::{BLKID, Runner, UMOUNT, WIPEFS};
use super::step::Step;
use super::wear::{self, Wear};
use super::worth::worth;
pub use super::worth::{PowerCut, Worth};
use crate::error::{Error, Result};
use crate::host::{Device, Facts};
use crate::settings::profile::settings::DriveState;
use crate::settings::profile::{Settings, expand_home};
use crate::units::{approx_size, floor_mib};

/// The end of the ids of all layers of all stacks.
const LAYER: u32 = 0x57ac_4e00;

/// A stack's own id: 16 hexadecimal digits, random; folders, arrays and ids are named after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackId(pub String);

impl StackId {
    /// A new one.
    pub fn random() -> Self {
        Self(format!("{:016x}", rand::random::<u64>()))
    }

    /// Whether it looks like one: what is named after nothing would be anybody's.
    pub(super) fn is_sound(&self) -> bool {
        self.0.len() == 16 && self.0.bytes().all(|digit| digit.is_ascii_hexdigit())
    }

    /// An id of a layer of the stack's: a version 4 UUID of the stack's id, and of what it is for.
    pub fn uuid(&self, kind: u16, number: usize) -> String {
        let id = &self.0;
        format!("{}-{}-4{kind:03x}-8{number:03x}-{}{LAYER:08x}", &id[..8], &id[8..12], &id[12..16])
    }

    /// Whether a UUID is such an id, however it is divided and in whichever case.
    pub(super) fn is_of(&self, uuid: &str) -> bool {
        let digits: String =
            uuid.chars().filter(char::is_ascii_hexdigit).map(|c| c.to_ascii_lowercase()).collect();
        let id = self.0.to_ascii_lowercase();
        self.is_sound()
            && digits.len() == 32
            && digits[..12] == id[..12]
            && digits[20..24] == id[12..16]
            && digits[24..] == format!("{LAYER:08x}")
    }
}

/// Steps to a stack, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The stack's id.
    pub id: StackId,
    /// The steps.
    pub steps: Vec<Step>,
    /// Drives of which everything is destroyed, with what is on them now.
    pub destroys: Vec<Destroyed>,
    /// What the target is then opened on.
    pub top: Top,
    /// What it survives and costs.
    pub worth: Worth,
    /// What that takes of each drive's life, as sentences; empty where it is built on files.
    pub wear: Vec<String>,
    /// Bytes that the steps write, and then the fill, of all drives; what mkfs and md note for themselves
    /// is not counted.
    pub writes_bytes: u64,
}

/// A drive of which everything is destroyed.
#[derive(Debug, Clone, PartialEq)]
pub struct Destroyed {
    /// The drive.
    pub drive: Drive,
    /// What is on it, in words; empty where nothing but stacktune's own data was found.
    pub content: Vec<String>,
    /// Bytes that are written to it, by steps and fill.
    pub writes_bytes: u64,
    /// Bytes that may be written to it over its life, where known: by the settings
    /// (`stack.endurance_tb`), or by its own estimate.
    pub rated_bytes: Option<u64>,
}

/// What the target is opened on once the stack stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Top {
    /// Block devices, pages interleaved over them.
    Devices(Vec<Place>),
    /// A data file and a WAL file in a folder of a file system.
    Files {
        /// The folder.
        dir: PathBuf,
        /// Bytes of the data file.
        data_bytes: u64,
        /// Bytes of the WAL file.
        wal_bytes: u64,
    },
}

/// A plan that the operator has agreed to. Only [`Plan::confirm`] makes one.
#[derive(Debug)]
pub struct Confirmed {
    pub(super) plan: Plan,
}

/// What a plan is made on.
pub struct Lay<'a> {
    /// The host.
    pub facts: &'a Facts,
    /// Where stacktune keeps journals and mount points.
    pub state_dir: &'a Path,
    /// Tells stacktune's own data on a drive.
    pub ours: &'a dyn Ours,
    /// A stack that is taken down before: its drives are used by just that, and are not looked at, and
    /// the room that its files take will be free.
    pub standing: Option<&'a Plan>,
    /// Drives that this process itself holds, and lets go before anything is built.
    pub held: &'a [Claim],
}

/// Plans the stack of the settings. Looks at drives and files, writes nothing. The same id gives the
/// same plan on the same host.
///
/// # Errors
/// Refused (3) where the guard refuses a drive, or where a tool or a right is missing; input (2) where
/// the settings don't make a stack.
pub fn plan(settings: &Settings, lay: &Lay, id: StackId) -> Result<Plan> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::refused("building a stack takes root: it attaches devices, and mounts")
            .hint("start stacktune with sudo, or set stack.* to none"));
    }
    let mut destroys = destroyed(settings, lay)?;
    let missing = if destroys.is_empty() { missing_folders(settings, lay, &id)? } else { Vec::new() };
    let ground = Ground { id: &id, state_dir: lay.state_dir, missing: &missing };
    let layers = Layers::of(settings, &destroys, &ground)?;
    if destroys.is_empty() && lay.standing.is_none() {
        refuse_full(settings)?;
    }
    require_tools(&layers.steps)?;
    for (destroyed, writes_bytes) in destroys.iter_mut().zip(&layers.writes_bytes) {
        destroyed.writes_bytes = *writes_bytes;
    }
    let wear = wears(settings, lay, &mut destroys)?;
    Ok(Plan {
        worth: worth(settings, lay.facts, layers.usable_bytes),
        id,
        destroys,
        steps: layers.steps,
        top: layers.top,
        writes_bytes: layers.writes_bytes.iter().sum(),
        wear,
    })
}

/// Refuses where a tool is missing that the guard, the steps or their undo run.
fn require_tools(steps: &[Step]) -> Result<()> {
    let runner = Runner::default();
    let mounts = steps.iter().any(|step| matches!(step, Step::Mount { .. }));
    let own = [BLKID, WIPEFS].into_iter().chain(mounts.then_some(UMOUNT));
    let tools = own.chain(steps.iter().flat_map(Step::commands).map(|command| command.tool));
    tools.into_iter().try_for_each(|tool| runner.find(tool).map(drop))
}

/// The folders above the stack's own that it has to make, the uppermost first; those of the stack that
/// is taken down before go with it.
fn missing_folders(settings: &Settings, lay: &Lay, id: &StackId) -> Result<Vec<PathBuf>> {
    let own = files_dir(settings, id)?;
    let goes = |dir: &Path| {
        let steps = lay.standing.iter().flat_map(|plan| &plan.steps);
        steps.into_iter().any(|step| matches!(step, Step::MakeFolder { dir: made } if made == dir))
    };
    let above = own.ancestors().skip(1).take_while(|dir| !dir.exists() || goes(dir));
    let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
    missing.reverse();
    Ok(missing)
}

/// The drives of the target with what is on them; none where it is files.
fn destroyed(settings: &Settings, lay: &Lay) -> Result<Vec<Destroyed>> {
    let devices = lay.facts.find_all(&settings.target.devices)?;
    let look = |(device, named): (&&Device, &String)| {
        let drive = Drive::of(device);
        let stands = lay.standing.is_some_and(|plan| plan.drives().contains(&drive));
        let held = lay.held.iter().find(|held| held.device().number == device.number);
        let content = match held {
            _ if stands => vec!["the stack that stands now".to_owned()],
            Some(held) => guard::examine_held(held, lay.facts, MEMBER_BYTES_MIN, lay.ours)?.content,
            None => guard::examine(named, lay.facts, MEMBER_BYTES_MIN, lay.ours)?.content,
        };
        Ok(Destroyed { drive, content, writes_bytes: 0, rated_bytes: None })
    };
    devices.iter().try_for_each(|device| refuse_undiscardable(settings, device))?;
    devices.iter().try_for_each(|device| refuse_undividable(settings, device))?;
    devices.iter().zip(&settings.target.devices).map(look).collect()
}

/// What the writes take of each drive's life, as sentences.
fn wears(settings: &Settings, lay: &Lay, destroys: &mut [Destroyed]) -> Result<Vec<String>> {
    let devices = lay.facts.find_all(&settings.target.devices)?;
    let drives = destroys.iter_mut().zip(devices).map(|(destroyed, device)| {
        let wear: Wear = wear::wear(settings, device);
        destroyed.rated_bytes = wear.rated.map(wear::Rated::bytes);
        (destroyed.clone(), wear)
    });
    Ok(wear::sentences(&drives.collect::<Vec<_>>()))
}

/// Refuses a drive that has to discard and can't, before anything on it is destroyed.
fn refuse_undiscardable(settings: &Settings, device: &Device) -> Result<()> {
    let takes = match (settings.stack.state, settings.stack.use_percent) {
        (DriveState::Trimmed, _) => "stack.state = \"trimmed\"",
        (_, ..100) => "stack.use",
        _ => return Ok(()),
    };
    let file = format!("/sys/block/{}/queue/discard_max_bytes", device.name);
    if std::fs::read_to_string(file).is_ok_and(|text| text.trim() != "0") {
        return Ok(());
    }
    let what = format!("{} can't discard, which {takes} takes", device.path.display());
    Err(Error::input(what).hint("use all of the drive as it is, or precondition it"))
}

/// Refuses a loop device of which the kernel looks for no partitions: the one made there would get no
/// node.
fn refuse_undividable(settings: &Settings, device: &Device) -> Result<()> {
    let file = format!("/sys/block/{}/loop/partscan", device.name);
    let scans = std::fs::read_to_string(file).map_or(true, |text| text.trim() != "0");
    if settings.stack.use_percent >= 100 || scans {
        return Ok(());
    }
    let what = format!(
        "{} was attached without partition scanning, and stack.use takes a partition",
        device.path.display()
    );
    Err(Error::input(what)
        .hint("attach it with `losetup --partscan`, or use all of it: stack.use = \"100%\""))
}

/// Refuses files that the disk has no room for.
fn refuse_full(settings: &Settings) -> Result<()> {
    let dir = expand_home(&settings.target.dir)?;
    let there = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let free = rustix::fs::statvfs(there).map_err(|error| Error::os("cannot examine", there, error))?;
    let free_bytes = free.f_bavail.saturating_mul(free.f_frsize);
    let files_bytes = settings.target.count.saturating_mul(floor_mib(settings.target.size_bytes));
    // What the file system notes about them takes room too.
    let bytes = files_bytes.saturating_add(files_bytes / 100);
    if bytes <= free_bytes {
        return Ok(());
    }
    let what = format!(
        "the files of the loop devices take {}, and {} has {} free",
        approx_size(bytes),
        there.display(),
        approx_size(free_bytes)
    );
    Err(Error::input(what).hint("choose a smaller target.files.size or count, or another folder"))
}

impl Plan {
    /// The drives that it is built on; none where it is built on files.
    pub fn drives(&self) -> Vec<Drive> {
        self.destroys.iter().map(|destroyed| destroyed.drive.clone()).collect()
    }

    /// The plan as text, a line a step, each with the command that it is; what runs is what is shown.
    pub fn lines(&self) -> Vec<String> {
        let fill = match &self.top {
            Top::Files { dir, data_bytes, wal_bytes: 0 } => {
                format!("load {} of pairs in {}", approx_size(*data_bytes), dir.display())
            }
            Top::Files { dir, data_bytes, wal_bytes } => {
                let (data, wal) = (approx_size(*data_bytes), approx_size(*wal_bytes));
                format!("fill {data} of data and {wal} of WAL in {}", dir.display())
            }
            Top::Devices(places) => {
                let places: Vec<_> = places.iter().map(Place::shown).collect();
                format!("fill {}", places.join(", "))
            }
        };
        self.steps.iter().map(Step::words).chain([fill]).collect()
    }

    /// Goes on only with consent for each drive that is destroyed.
    ///
    /// # Errors
    /// Refused (3), naming the drives without consent, with what is on them.
    pub fn confirm(self, consent: &Consent) -> Result<Confirmed> {
        let covered = |destroyed: &&Destroyed| {
            let drive = &destroyed.drive;
            !consent.covers_device(&drive.name, drive.serial.as_deref())
        };
        let missing: Vec<&Destroyed> = self.destroys.iter().filter(covered).collect();
        if missing.is_empty() {
            return Ok(Confirmed { plan: self });
        }
        let list: Vec<_> = missing.iter().map(|destroyed| destroyed.describe()).collect();
        let hint: Vec<_> = missing.iter().map(|d| format!("--destroy {}", d.drive.path.display())).collect();
        Err(Error::refused(format!("building this stack destroys all that is on:\n  {}", list.join("\n  ")))
            .hint(format!("to do that, add: {}", hint.join(" "))))
    }
}

impl Destroyed {
    fn describe(&self) -> String {
        let content =
            if self.content.is_empty() { "nothing found on it".to_owned() } else { self.content.join("; ") };
        format!("{}: {content}", self.drive.in_full())
    }
}
