//! Devices of a target and the guard: which they are, what they hold, and what the operator allowed.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::host::Facts;
use crate::load::volume::header::{Found, Header};
use crate::load::volume::{self, MemberSource, is_ours_at};
use crate::runs::session::attendant::Attendant;
use crate::runs::session::message::Wanted;
use crate::runs::session::options::Options;
use crate::settings::paths::expand_home;
use crate::settings::{Settings, Target, Wal};
use crate::stack::devices::Drive;
use crate::stack::guard::OwnData;
use crate::stack::guard::{self, Claim, Consent};
use crate::units::MIB;

/// A device must hold a header, and some pages of WAL and data.
pub(in crate::runs::session) const DEVICE_BYTES_MIN: u64 = 64 * MIB;

/// The devices to be destroyed that belong to the settings' target.
pub fn destroy_of(destroy: &[String], settings: &Settings, facts: &Facts) -> Vec<String> {
    let names = names_of(&settings.target, &settings.wal, facts);
    let is_of_target =
        |named: &&String| names.iter().any(|name| facts.same_device(named, name).unwrap_or(false));
    destroy.iter().filter(is_of_target).cloned().collect()
}

/// The devices of a target, including the WAL's own.
pub fn names_of(target: &Target, wal: &Wal, facts: &Facts) -> Vec<String> {
    let wal = wal.target.iter().filter(|name| facts.find(name).is_ok());
    target.devices.iter().chain(wal).cloned().collect()
}

/// Refuses devices, including the WAL's own, whose serials differ from the profile's.
///
/// # Errors
/// Input if there is no such device; refused (3) if it has another serial.
pub fn check_serials(target: &Target, wal: &Wal, facts: &Facts) -> Result<()> {
    let devices = facts.find_all(&target.devices)?;
    guard::check_serials(&devices, &target.serials)?;
    match (&wal.target, &wal.serial) {
        (Some(wal), Some(serial)) => guard::check_serials(&[facts.find(wal)?], std::slice::from_ref(serial)),
        _ => Ok(()),
    }
}

/// Consent for a device outside the target is a mistake: another device may have been meant.
pub fn refuse_stray_consent(destroy: &[String], names: &[String], facts: &Facts) -> Result<()> {
    for named in destroy {
        let is_of_target = |name: &String| facts.same_device(named, name).unwrap_or(false);
        if facts.find(named).is_ok() && !names.iter().any(is_of_target) {
            return Err(Error::input(format!("--destroy {named}: it is not a device of this target"))
                .hint("name a device of the profile's target, or leave --destroy out"));
        }
    }
    Ok(())
}

/// Claims devices that the guard permits, with the operator's consent if they hold anything. Nothing is written.
pub(in crate::runs::session) fn claim_all(
    names: &[String],
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
) -> Result<Vec<Claim>> {
    let mut consent = Consent::named(&options.destroy, facts)?.and_typed(&options.typed);
    let examined = guard::examine_all(names, facts, DEVICE_BYTES_MIN, &OursCheck);
    let examined = examined.into_iter().collect::<Result<Vec<_>>>()?;
    let wanted: Vec<_> = examined
        .iter()
        .filter(|e| guard::permit((*e).clone(), &consent).is_err())
        .map(|e| wanted_of(&Drive::of(&e.device), e.content.clone()))
        .collect();
    let typed = if wanted.is_empty() { None } else { attendant.consent(wanted) };
    let at_screen = typed.is_some();
    consent = consent.and_typed(&typed.unwrap_or_default());
    let permits = examined.into_iter().map(|examination| guard::permit(examination, &consent));
    let permits: Vec<_> =
        permits.collect::<Result<_>>().map_err(|error| if at_screen { not_typed(error) } else { error })?;
    permits.into_iter().map(guard::Permit::open).collect()
}

/// A refusal as worded for an operator at the screen, who types serials and gives no `--destroy`.
pub(in crate::runs::session) fn not_typed(error: Error) -> Error {
    error.hint("nothing was destroyed: open the profile again, and type each serial to allow it")
}

/// The claimed device as a member.
pub(in crate::runs::session) fn source(claim: &Claim) -> Result<MemberSource> {
    let device = claim.device();
    let file = claim.file().try_clone().map_err(|e| Error::os("cannot hold", &device.path, e))?;
    Ok(MemberSource::Device { path: device.path.clone(), file, size_bytes: device.size_bytes })
}

/// The request to the operator for a drive with this content.
pub(in crate::runs::session) fn wanted_of(drive: &Drive, content: Vec<String>) -> Wanted {
    Wanted {
        typed: drive.serial.clone().unwrap_or_else(|| drive.name.clone()),
        path: drive.path.clone(),
        model: drive.model.clone(),
        serial: drive.serial.clone(),
        size_bytes: drive.size_bytes,
        content,
    }
}

/// The WAL's own place.
pub(in crate::runs::session) enum OwnWal {
    /// In a file.
    File(PathBuf),
    /// On a device, by its name.
    Device(String),
}

pub(in crate::runs::session) fn own_wal(wal: &str, facts: &Facts) -> Result<OwnWal> {
    let path = expand_home(wal)?;
    let is_device = std::fs::metadata(&path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    // A new file under /dev would take memory; the path is a mistyped device.
    let among_devices = path.starts_with("/dev") && !path.starts_with("/dev/shm") && !path.exists();
    match facts.find(wal) {
        Err(error) if is_device || among_devices => Err(error),
        Err(_) => Ok(OwnWal::File(path)),
        Ok(_) => Ok(OwnWal::Device(wal.to_owned())),
    }
}

/// Refuses a WAL on a device that holds data already.
pub(in crate::runs::session) fn refuse_shared_wal(
    wal: Option<&OwnWal>,
    devices: &[String],
    facts: &Facts,
) -> Result<()> {
    let Some(OwnWal::Device(wal)) = wal else { return Ok(()) };
    for device in devices {
        if facts.same_device(wal, device)? {
            let what = format!("wal.target: {wal} is already a device of the target");
            return Err(Error::input(what).hint("leave wal.target out: each device has a region for the WAL"));
        }
    }
    Ok(())
}

/// Tells the guard which data stacktune wrote itself.
pub struct OursCheck;

impl OwnData for OursCheck {
    fn header(&self, head: &[u8]) -> bool {
        header_in(head).is_some()
    }

    fn set(&self, head: &[u8]) -> Option<u64> {
        header_in(head).map(|header| header.set)
    }

    fn says_filled(&self, head: &[u8], offset: u64) -> bool {
        header_in(head).is_some_and(|header| header.says_filled(offset))
    }

    fn page(&self, _: &File, offset: u64, page: &[u8]) -> bool {
        let sector_is_ours = |(i, sector): (usize, &[u8])| {
            is_ours_at(sector, offset + (i * volume::SECTOR_BYTES) as u64)
                || (offset < volume::layout::HEADER_BYTES && sector.iter().all(|byte| *byte == 0))
        };
        page.chunks(volume::SECTOR_BYTES).enumerate().all(sector_is_ours)
    }
}

fn header_in(head: &[u8]) -> Option<Header> {
    let copy = |at: &u64| head.get(*at as usize..*at as usize + volume::header::COPY_BYTES);
    let copies: Vec<&[u8]> = volume::header::COPIES_AT.iter().filter_map(copy).collect();
    match Found::of(&copies) {
        Found::Valid(header) => Some(header),
        Found::Damaged | Found::Absent => None,
    }
}
