//! Examining a device before it is written; nothing is written here.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;

use super::claim::{Claim, claim, gone};
use super::content::{self, OwnData, Signature};
use super::sampling;
use super::uses::{refuse_in_use, refuse_member, refuse_written_below, whole_device};
use crate::error::{Error, Result};
use crate::host::{Device, Facts};
use crate::stack::devices::Drive;
use crate::stack::runner::Runner;
use crate::threads;

/// What was found on a device that nothing uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Examination {
    /// The device.
    pub device: Device,
    /// What would be destroyed, in words; empty if there is nothing, or only stacktune's own data.
    pub content: Vec<String>,
    /// Whether it has a valid stacktune fill, complete or not, which is kept. Anything beyond the fill may
    /// still be listed in `content`.
    pub own_fill: bool,
    /// The stacktune data set that begins there.
    pub set: Option<u64>,
    pub(super) min_bytes: u64,
    pub(super) seen: Seen,
}

/// What must not change between examining and opening.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) signatures: Vec<Signature>,
    pub(super) edges_crc: u32,
}

impl Examination {
    /// Whether writing the device needs the operator's consent.
    pub fn needs_consent(&self) -> bool {
        !self.content.is_empty()
    }

    /// The device in one line: node, model, serial and size.
    pub fn describe(&self) -> String {
        Drive::of(&self.device).in_full()
    }
}

/// Examines a device before it is written, and writes nothing.
///
/// Refused (3) while anything uses it, its partitions, or a device above or below it; if it is read-only or
/// smaller than `min_bytes`; if a signature makes it a member of md, LVM, ZFS or the like; and if its content
/// can't be identified.
pub fn examine(named: &str, facts: &Facts, min_bytes: u64, own_data: &dyn OwnData) -> Result<Examination> {
    examine_device(whole_device(named, facts)?, min_bytes, own_data)
}

/// The same for several devices in parallel, since reading each may take seconds.
pub fn examine_all(
    named: &[String],
    facts: &Facts,
    min_bytes: u64,
    own_data: &dyn OwnData,
) -> Vec<Result<Examination>> {
    threads::each(named, "examine a device", |named| examine(named, facts, min_bytes, own_data))
}

/// The same for a device whose facts were just read.
pub(crate) fn examine_device(device: &Device, min_bytes: u64, own_data: &dyn OwnData) -> Result<Examination> {
    refuse_in_use(device, min_bytes)?;
    refuse_written_below(device)?;
    let held = claim(device, OpenOptions::new().read(true))?;
    // Looking takes seconds, and the device is not locked meanwhile: whoever writes it claims it and looks again.
    let file = File::open(format!("/proc/self/fd/{}", held.as_raw_fd()))
        .map_err(|error| Error::os("cannot open", &device.path, error))?;
    drop(held);
    looked_at(device, &file, min_bytes, own_data)
}

/// The same for a device that this process holds: its own claim is not a use by others.
pub fn examine_held(
    held: &Claim,
    facts: &Facts,
    min_bytes: u64,
    own_data: &dyn OwnData,
) -> Result<Examination> {
    let device = whole_device(&held.device.path.display().to_string(), facts)?;
    if device.number != held.device.number {
        return Err(gone(&held.device));
    }
    refuse_in_use(device, min_bytes)?;
    refuse_written_below(device)?;
    looked_at(device, &held.file, min_bytes, own_data)
}

/// Examines the content of a device that no other program holds.
fn looked_at(device: &Device, file: &File, min_bytes: u64, own_data: &dyn OwnData) -> Result<Examination> {
    let signatures = content::signatures(&Runner::default(), device)?;
    refuse_member(device, &signatures)?;
    let samples = sampling::sample(file, device, own_data)?;
    let mut content: Vec<String> = signatures.iter().map(Signature::describe).collect();
    if let Some(first) = samples.foreign.first() {
        let (foreign, pages) = (samples.foreign.len(), samples.pages);
        content.push(format!("data at {foreign} of {pages} sampled pages, the first at byte {first}"));
    }
    Ok(Examination {
        device: device.clone(),
        set: samples.set,
        own_fill: samples.fill && signatures.is_empty(),
        content,
        min_bytes,
        seen: Seen { signatures, edges_crc: samples.edges_crc },
    })
}
