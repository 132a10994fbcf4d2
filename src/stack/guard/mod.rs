//! The one guard before a block device is written: writing destroys what is on it.
//!
//! [`examine`] refuses a device in use and tells what is on it; [`permit`] weighs that against the
//! operator's consent; [`Permit::open`] looks again, claims the device and opens it for writing.

mod content;
pub(crate) mod holders;
mod wipe;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

pub use self::content::Ours;
use self::content::Signature;
use crate::error::{Error, Result};
use crate::host::{Device, Facts, Usage, number_text};
use crate::stack::devices::{Drive, node};
use crate::stack::runner::Runner;
use crate::units::approx_size;

/// What was found on a device that nothing uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Examination {
    /// The device.
    pub device: Device,
    /// What would be destroyed, in words; empty where there is nothing, or only what is ours.
    pub content: Vec<String>,
    /// It holds a valid fill of ours, complete or not, which is kept. What lies beyond it may still
    /// be in `content`.
    pub ours: bool,
    min_bytes: u64,
    seen: Seen,
}

/// What must not change between the examination and the opening.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    signatures: Vec<Signature>,
    edges_crc: u32,
}

impl Examination {
    /// Whether the operator must consent before the device is written.
    pub fn needs_consent(&self) -> bool {
        !self.content.is_empty()
    }

    /// What the operator types to consent: the serial, or the name where there is none.
    pub fn to_type(&self) -> &str {
        self.device.serial.as_deref().unwrap_or(&self.device.name)
    }

    /// The device in one line: node, model, serial and size.
    pub fn describe(&self) -> String {
        Drive::of(&self.device).in_full()
    }
}

/// The operator's consent to destroy what is on devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    devices: Vec<String>,
    typed: Vec<String>,
}

impl Consent {
    /// No consent at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Consent by `--destroy DEVICE`; a name that means no whole device here is wrong input.
    pub fn named(names: &[String], facts: &Facts) -> Result<Self> {
        let devices = names.iter().map(|name| Ok(whole_device(name, facts)?.name.clone()));
        Ok(Self { devices: devices.collect::<Result<_>>()?, typed: Vec::new() })
    }

    /// This consent, and what the operator typed besides.
    #[must_use]
    pub fn and_typed(mut self, words: &[String]) -> Self {
        self.typed.extend(words.iter().map(|word| word.trim().to_owned()));
        self
    }

    /// Consent by what the operator typed, which must be [`Examination::to_type`] in full.
    pub fn typed(text: &str) -> Self {
        Self { devices: Vec::new(), typed: vec![text.trim().to_owned()] }
    }

    fn covers(&self, examination: &Examination) -> bool {
        self.covers_device(&examination.device.name, examination.device.serial.as_deref())
    }

    /// Whether it is consent to destroy what is on the device of that name and serial.
    pub(crate) fn covers_device(&self, name: &str, serial: Option<&str>) -> bool {
        let word = serial.unwrap_or(name);
        self.devices.iter().any(|device| device == name)
            || !word.is_empty() && self.typed.iter().any(|typed| typed == word)
    }
}

/// A device that may be written, and how far the permission reaches. Only [`permit`] makes one.
#[derive(Debug)]
pub struct Permit {
    examination: Examination,
}

/// The device that a name means; a partition is refused, as its device holds more than it.
fn whole_device<'a>(named: &str, facts: &'a Facts) -> Result<&'a Device> {
    let device = facts.find(named)?;
    match facts.partition_named(named) {
        None => Ok(device),
        Some(partition) => Err(Error::input(format!(
            "{named} is a partition ({partition}) of {}; only whole devices can be a target",
            device.path.display()
        ))),
    }
}

/// Looks at a device before it is written, and writes nothing.
///
/// Refused (3) while anything uses it, its partitions, what is built on it or what it is built on; if
/// it is read-only or smaller than `min_bytes`; if it is a member of md, LVM, ZFS or the like by a
/// signature; and if its content can't be told.
pub fn examine(named: &str, facts: &Facts, min_bytes: u64, ours: &dyn Ours) -> Result<Examination> {
    examine_device(whole_device(named, facts)?, min_bytes, ours)
}

/// The same for a device that was read from this host just now.
pub(crate) fn examine_device(device: &Device, min_bytes: u64, ours: &dyn Ours) -> Result<Examination> {
    refuse_in_use(device, min_bytes)?;
    refuse_written_below(device)?;
    let file = claim(device, OpenOptions::new().read(true))?;
    looked_at(device, &file, min_bytes, ours)
}

/// The same for a device that this process holds: its own claim is no use by others.
pub fn examine_held(held: &Claim, facts: &Facts, min_bytes: u64, ours: &dyn Ours) -> Result<Examination> {
    let device = whole_device(&held.device.path.display().to_string(), facts)?;
    if device.number != held.device.number {
        return Err(gone(&held.device));
    }
    refuse_in_use(device, min_bytes)?;
    refuse_written_below(device)?;
    looked_at(device, &held.file, min_bytes, ours)
}

/// What is on a device that nobody else holds.
fn looked_at(device: &Device, file: &File, min_bytes: u64, ours: &dyn Ours) -> Result<Examination> {
    let signatures = content::signatures(&Runner::default(), device)?;
    refuse_member(device, &signatures)?;
    let samples = content::sample(file, device, ours)?;
    let mut content: Vec<String> = signatures.iter().map(Signature::describe).collect();
    if let Some(first) = samples.foreign.first() {
        let (foreign, pages) = (samples.foreign.len(), samples.pages);
        content.push(format!("data at {foreign} of {pages} sampled pages, the first at byte {first}"));
    }
    Ok(Examination {
        device: device.clone(),
        ours: samples.fill && signatures.is_empty(),
        content,
        min_bytes,
        seen: Seen { signatures, edges_crc: samples.edges_crc },
    })
}

/// Permits writing where there is nothing to lose, or where the operator consents to lose it.
pub fn permit(examination: Examination, consent: &Consent) -> Result<Permit> {
    if !examination.needs_consent() || consent.covers(&examination) {
        return Ok(Permit { examination });
    }
    let device = &examination.device;
    let what = format!("{} is not empty: {}", examination.describe(), examination.content.join("; "));
    Err(Error::refused(what)
        .hint(format!("to destroy all that is on it, add: --destroy {}", name_to_give(device))))
}

fn name_to_give(device: &Device) -> String {
    device.by_id.first().unwrap_or(&device.path).display().to_string()
}

impl Permit {
    /// What was found.
    pub fn examination(&self) -> &Examination {
        &self.examination
    }

    /// Opens the device for reading and writing and claims it for this process.
    ///
    /// Looks again right before: refused (3) if it came into use, became another device or changed
    /// its content since it was examined.
    pub fn open(self) -> Result<Claim> {
        let examined = &self.examination.device;
        let now = Facts::read_devices();
        let device = now.iter().find(|device| device.number == examined.number);
        let device = device.ok_or_else(|| gone(examined))?;
        let same = |device: &Device| {
            (&device.name, &device.serial, device.size_bytes)
                == (&examined.name, &examined.serial, examined.size_bytes)
        };
        if !same(device) {
            return Err(gone(examined));
        }
        refuse_in_use(device, self.examination.min_bytes)?;
        refuse_written_below(device)?;
        let file = claim(device, OpenOptions::new().read(true).write(true))?;
        let signatures = content::signatures(&Runner::default(), device)?;
        let edges_crc = content::edges_crc(&file, device)?;
        if (Seen { signatures, edges_crc }) != self.examination.seen {
            let what = format!("{} was written to since it was examined", device.path.display());
            return Err(Error::refused(what).hint("find out by whom, then start again"));
        }
        Ok(Claim { file, device: device.clone(), ours: self.examination.ours })
    }
}

fn gone(device: &Device) -> Error {
    let what = format!("{} is no longer the device that was examined", device.path.display());
    Error::refused(what).hint("it was removed or replaced meanwhile; start again")
}

/// A device that is open for writing and that nobody else can mount, swap on or build upon.
///
/// Closing it ends the claim.
#[derive(Debug)]
pub struct Claim {
    file: File,
    device: Device,
    ours: bool,
}

impl Claim {
    /// The device, open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether it holds a valid fill of ours, which [`Claim::wipe`] keeps.
    pub fn ours(&self) -> bool {
        self.ours
    }

    /// Opens the claimed device once more, with flags such as `O_DIRECT`, for reading and writing.
    pub fn reopen(&self, flags: i32) -> Result<File> {
        use std::os::fd::AsRawFd;
        // By way of the open descriptor it can't become another device.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(path)
            .map_err(|error| Error::os("cannot open", &self.device.path, error))
    }

    /// Makes the device blank like [`Claim::wipe`], a fill of ours as well.
    pub(crate) fn blank(&self, runner: &Runner) -> Result<()> {
        wipe::wipe(runner, &self.file, &self.device)
    }

    /// Makes the device blank for programs that look at signatures: wipes those, and the first and
    /// the last MiB. A valid fill of ours is kept as it is.
    pub fn wipe(&self) -> Result<()> {
        if self.ours { Ok(()) } else { wipe::wipe(&Runner::default(), &self.file, &self.device) }
    }
}

/// Opens a device so that nobody else holds it exclusively, and makes sure that it is the one meant.
fn claim(device: &Device, options: &mut OpenOptions) -> Result<File> {
    let opened = options.custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(&device.path);
    let file = opened.map_err(|error| cannot_claim(&device.path, error))?;
    let metadata = file.metadata().map_err(|error| Error::os("cannot examine", &device.path, error))?;
    if number_text(metadata.rdev()) == device.number { Ok(file) } else { Err(gone(device)) }
}

fn cannot_claim(path: &Path, error: std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EBUSY) => {
            let what = format!("{} is opened exclusively elsewhere", path.display());
            Error::refused(what).hint(
                "another program or run, or a mount in another name space (a container), holds it: \
                 see `fuser -v` and `lsblk`",
            )
        }
        Some(libc::EROFS) => read_only(path),
        Some(libc::EACCES | libc::EPERM) => {
            Error::os("cannot open", path, error).hint("writing to block devices needs root")
        }
        _ => Error::os("cannot open", path, error),
    }
}

/// Claims a device for a step of a plan that the operator has confirmed: a drive, or what the stack has
/// made of it. Its content was judged before the first step; uses are judged anew.
pub(crate) fn claim_again(device: &Device, min_bytes: u64) -> Result<Claim> {
    refuse_in_use(device, min_bytes)?;
    let file = claim(device, OpenOptions::new().read(true).write(true))?;
    Ok(Claim { file, device: device.clone(), ours: false })
}

/// Claims a block device that a stack was built to: its top. What was on it before was the stack's
/// own matter.
pub fn claim_built(node: &Path) -> Result<Claim> {
    let devices = Facts::read_devices();
    let name = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let gone = || Error::failed(format!("{} has gone", node.display()));
    let is_of = |device: &&Device| device.path == node || device.partitions.contains(&name);
    let whole = devices.iter().find(is_of).ok_or_else(gone)?;
    node::check(node)?;
    let number = std::fs::metadata(node).map_err(|e| Error::os("cannot examine", node, e))?.rdev();
    let mut device = Device { path: node.to_owned(), number: number_text(number), ..whole.clone() };
    let file = claim(&device, OpenOptions::new().read(true).write(true))?;
    if whole.path != node {
        (device.name, device.partitions) = (name, Vec::new());
        let end = std::io::Seek::seek(&mut &file, std::io::SeekFrom::End(0));
        device.size_bytes = end.map_err(|e| Error::os("cannot measure", node, e))?;
    }
    Ok(Claim { file, device, ours: false })
}

/// For reading: nobody else can hold it exclusively at that moment.
fn open_exclusively(node: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(node)
}

fn is_held(node: &Path) -> bool {
    open_exclusively(node).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// Makes sure that nobody holds a node exclusively.
pub(crate) fn refuse_claimed(node: &Path) -> Result<()> {
    node::check(node)?;
    open_exclusively(node).map(drop).map_err(|error| cannot_claim(node, error))
}

fn read_only(path: &Path) -> Error {
    Error::refused(format!("{} is read-only", path.display()))
}

/// Refuses what something uses.
pub(crate) fn refuse_used(path: &Path, uses: &[Usage]) -> Result<()> {
    // The system's own drive says more than its mounts do.
    let system = uses.iter().find(|usage| matches!(usage, Usage::System(_)));
    let Some(usage) = system.or(uses.first()) else { return Ok(()) };
    let more = match uses.len() {
        1 => String::new(),
        uses => format!(" (and {} more)", uses - 1),
    };
    Err(Error::refused(format!("{} is in use: {usage}{more}", path.display())).hint(way_out(usage)))
}

/// Refuses a device that something uses, or that can't be written, by the facts alone.
fn refuse_in_use(device: &Device, min_bytes: u64) -> Result<()> {
    let path = device.path.display();
    refuse_used(&device.path, &device.usage)?;
    if !device.members.is_empty() {
        let what = format!("{path} is not a drive: it is built on {}", device.members.join(", "));
        return Err(Error::refused(what).hint("name the drives themselves"));
    }
    if device.read_only {
        return Err(read_only(&device.path));
    }
    if device.size_bytes < min_bytes {
        let (has, needs) = (approx_size(device.size_bytes), approx_size(min_bytes));
        return Err(Error::refused(format!("{path} is too small: it has {has}, {needs} are needed")));
    }
    Ok(())
}

/// Refuses a loop device over a file that a program has open for writing, a virtual machine say: the
/// kernel keeps nobody from it. Without root only the programs of this user are seen.
fn refuse_written_below(device: &Device) -> Result<()> {
    let Ok(file) = std::fs::read_to_string(format!("/sys/block/{}/loop/backing_file", device.name)) else {
        return Ok(());
    };
    let file = Path::new(file.trim_end_matches('\n'));
    let Some(writer) = holders::writer(file) else { return Ok(()) };
    let what = format!("{} lies on {}, which {writer} writes to", device.path.display(), file.display());
    Err(Error::refused(what).hint("end that program first, or choose another device"))
}

/// What the operator can do about a use.
fn way_out(usage: &Usage) -> &'static str {
    match usage {
        Usage::System(_) => "the system's own drive is never written to; choose another one",
        Usage::Mounted(_) => "unmount it first, if its data is no longer needed",
        Usage::Swap(_) => "swap it off first (swapoff)",
        Usage::Holder(_) => "take it out of what is built on it first, if that is no longer needed",
        Usage::Member(_) => MEMBER_WAY_OUT,
        Usage::Exported(_) => "end the export first",
        Usage::Reserved(_) => "another host may use it: release the reservation there first",
        Usage::Claimed(_) => "end that use first",
    }
}

const MEMBER_WAY_OUT: &str = "if that is no longer needed, take it out first \
     (mdadm --zero-superblock, pvremove, zpool labelclear, or wipefs --all)";

/// A member of md, LVM or ZFS may belong to a whole that is just not assembled: consent does not do.
fn refuse_member(device: &Device, signatures: &[Signature]) -> Result<()> {
    let member = signatures.iter().find_map(|signature| Some((signature, signature.member.as_ref()?)));
    let Some((signature, of)) = member else { return Ok(()) };
    let what = format!("{} is part of {of}: {}", device.path.display(), signature.describe());
    Err(Error::refused(what).hint(MEMBER_WAY_OUT))
}

/// A device to read from only; it may be in use.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOnly {
    /// The device.
    pub device: Device,
    /// What uses it, in words, to be shown beside every figure.
    pub flags: Vec<String>,
    /// Somebody works with a file system or swap on it: be careful with its bandwidth.
    pub mounted: bool,
}

/// Looks at a device that is only read from: uses are told, not refused.
pub fn examine_read_only(named: &str, facts: &Facts) -> Result<ReadOnly> {
    let device = whole_device(named, facts)?;
    let in_use = |usage: &Usage| matches!(usage, Usage::Mounted(_) | Usage::System(_) | Usage::Swap(_));
    let mut flags: Vec<String> = device.usage.iter().map(ToString::to_string).collect();
    // A mount in another name space is in no list, but it holds the device.
    let held = flags.is_empty() && is_held(&device.path);
    flags.extend(
        held.then(|| "opened exclusively elsewhere, by a mount in another name space perhaps".to_owned()),
    );
    Ok(ReadOnly { flags, mounted: held || device.usage.iter().any(in_use), device: device.clone() })
}

/// Refuses (3) a device of which the serial is not the one that a profile recorded.
///
/// `serials` goes along with `devices`; an empty or missing one was not recorded.
pub fn check_serials(devices: &[&Device], serials: &[String]) -> Result<()> {
    for (device, recorded) in devices.iter().zip(serials) {
        let serial = device.serial.as_deref().unwrap_or("");
        if !recorded.is_empty() && serial != recorded {
            let now = if serial.is_empty() { "none".to_owned() } else { format!("`{serial}`") };
            let what = format!(
                "{} is another device than the profile's: its serial is {now}, the profile has `{recorded}`",
                device.path.display()
            );
            return Err(Error::refused(what).hint("name the right device, and save the profile with it"));
        }
    }
    Ok(())
}
