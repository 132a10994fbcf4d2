//! Reasons not to write to a device, even before its content is examined: uses, membership, size.

use std::path::Path;

use super::content::Signature;
use super::holders;
use crate::error::{Error, Result};
use crate::host::{Device, Facts, Usage};
use crate::printable::Shown as _;
use crate::units::approx_size;

/// The device of that name. A partition is refused, since its device holds more than that.
pub(super) fn whole_device<'a>(named: &str, facts: &'a Facts) -> Result<&'a Device> {
    let device = facts.find(named)?;
    match facts.partition_named(named) {
        None => Ok(device),
        Some(partition) => Err(Error::input(format!(
            "{named} is a partition ({partition}) of {}; only whole devices can be a target",
            device.path.shown()
        ))),
    }
}

pub(super) fn read_only(path: &Path) -> Error {
    Error::refused(format!("{} is read-only", path.shown()))
}

/// Refuses a device that is in use.
pub(crate) fn refuse_used(path: &Path, uses: &[Usage]) -> Result<()> {
    // That it is the system's own drive tells more than its mounts do.
    let system = uses.iter().find(|usage| matches!(usage, Usage::System(_)));
    let Some(usage) = system.or(uses.first()) else { return Ok(()) };
    let more = match uses.len() {
        1 => String::new(),
        uses => format!(" (and {} more)", uses - 1),
    };
    Err(Error::refused(format!("{} is in use: {usage}{more}", path.shown())).hint(way_out(usage)))
}

/// Refuses a device that is in use or can't be written, judging by the facts alone.
pub(super) fn refuse_in_use(device: &Device, min_bytes: u64) -> Result<()> {
    let path = device.path.shown();
    refuse_used(&device.path, &device.usage)?;
    if !device.members.is_empty() {
        let what = format!("{path} is not a drive: it is built on {}", device.members.join(", "));
        return Err(Error::refused(what).hint("specify the drives themselves"));
    }
    if device.read_only {
        return Err(read_only(&device.path));
    }
    if device.size_bytes < min_bytes {
        let (has, needs) = (approx_size(device.size_bytes), approx_size(min_bytes));
        return Err(Error::refused(format!("{path} is too small: it has {has}, but {needs} is needed")));
    }
    Ok(())
}

/// Refuses a loop device whose file a program, such as a virtual machine, has open for writing, which the
/// kernel does not prevent. Without root, only this user's programs are visible.
pub(super) fn refuse_written_below(device: &Device) -> Result<()> {
    let Ok(file) = std::fs::read_to_string(format!("/sys/block/{}/loop/backing_file", device.name)) else {
        return Ok(());
    };
    let file = Path::new(file.trim_end_matches('\n'));
    let Some(writer) = holders::writer(file) else { return Ok(()) };
    let what =
        format!("{} is backed by {}, which {writer} has open for writing", device.path.shown(), file.shown());
    Err(Error::refused(what).hint("stop that program first, or choose another device"))
}

/// What the operator can do about a use.
fn way_out(usage: &Usage) -> &'static str {
    match usage {
        Usage::System(_) => "the system's own drive is never written to; choose another one",
        Usage::Mounted(_) => "unmount it first, if its data is no longer needed",
        Usage::Swap(_) => "disable swap on it first (swapoff)",
        Usage::Holder(_) => "first remove it from what is built on it, if that is no longer needed",
        Usage::Member(_) => MEMBER_WAY_OUT,
        Usage::Exported(_) => "end the export first",
        Usage::Reserved(_) => "another host may use it: release the reservation there first",
        Usage::Claimed(_) => "stop using it first",
    }
}

const MEMBER_WAY_OUT: &str = "if that is no longer needed, remove it from there first \
     (mdadm --zero-superblock, pvremove, zpool labelclear, or wipefs --all)";

/// A member of md, LVM or ZFS may belong to a set that is merely not assembled now: consent is not enough.
pub(super) fn refuse_member(device: &Device, signatures: &[Signature]) -> Result<()> {
    let member = signatures.iter().find_map(|signature| Some((signature, signature.member.as_ref()?)));
    let Some((signature, of)) = member else { return Ok(()) };
    let what = format!("{} is part of {of}: {}", device.path.shown(), signature.describe());
    Err(Error::refused(what).hint(MEMBER_WAY_OUT))
}

/// Refuses (3) a device whose serial is not the one recorded in the profile.
///
/// `serials` corresponds to `devices`; an empty or missing one was not recorded.
pub fn check_serials(devices: &[&Device], serials: &[String]) -> Result<()> {
    for (device, recorded) in devices.iter().zip(serials) {
        let serial = device.serial.as_deref().unwrap_or("");
        if !recorded.is_empty() && serial != recorded {
            let now = if serial.is_empty() { "none".to_owned() } else { format!("`{serial}`") };
            let what = format!(
                "{} is not the profile's device: its serial is {now}, but the profile has `{recorded}`",
                device.path.shown()
            );
            return Err(Error::refused(what).hint("specify the right device, and save the profile with it"));
        }
    }
    Ok(())
}
