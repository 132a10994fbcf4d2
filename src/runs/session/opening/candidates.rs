//! The devices of this host that a target could use, as the guard judges them.

use super::consent::{DEVICE_BYTES_MIN, OursCheck};
use crate::host::{Device, Facts};
use crate::short_list;
use crate::stack::devices::Drive;
use crate::stack::guard;
use crate::threads;

/// A device that a target could use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name in a profile: the current one, else by-id, else its node.
    pub name: String,
    /// Node, model, serial and size.
    pub about: String,
    /// Its content, or why it can't be used.
    pub found: OnDevice,
}

/// The content of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnDevice {
    /// Unknown: the asking run holds it.
    Held,
    /// Nothing.
    Empty,
    /// A stacktune fill, and nothing else.
    Ours,
    /// What would be destroyed, in words.
    Foreign(Vec<String>),
    /// The guard refuses it, in its own words.
    Refused(String),
}

/// Every device as it is now, and the named ones that do not exist; `held` are those of the run itself.
/// Nothing is written.
pub fn candidates(facts: &Facts, named: &[String], held: &[String]) -> Vec<Candidate> {
    among(&Facts { devices: Facts::read_devices(), ..facts.clone() }, named, held)
}

/// The same for the devices in the facts.
fn among(facts: &Facts, named: &[String], held: &[String]) -> Vec<Candidate> {
    let is = |name: &&String, device: &Device| facts.find(name).is_ok_and(|other| other.name == device.name);
    let mut found = threads::each(&facts.devices, "examine a device", |device| {
        let known = named.iter().chain(held).find(|name| is(name, device)).cloned();
        let lasting = device.by_id.first().unwrap_or(&device.path);
        Candidate {
            name: known.unwrap_or_else(|| lasting.to_string_lossy().into_owned()),
            about: Drive::of(device).in_full(),
            found: if held.iter().any(|name| is(&name, device)) {
                OnDevice::Held
            } else {
                look(device, facts)
            },
        }
    });
    // Devices that can be chosen come first.
    short_list::sort_by_key(&mut found, |candidate| matches!(candidate.found, OnDevice::Refused(_)));
    found.extend(named.iter().filter_map(|name| {
        let error = facts.find(name).err()?;
        Some(Candidate {
            name: name.clone(),
            about: String::new(),
            found: OnDevice::Refused(error.one_line()),
        })
    }));
    found
}

fn look(device: &Device, facts: &Facts) -> OnDevice {
    let name = device.path.to_string_lossy();
    match guard::examine(&name, facts, DEVICE_BYTES_MIN, &OursCheck) {
        Ok(found) if found.needs_consent() => OnDevice::Foreign(found.content),
        Ok(found) if found.own_fill => OnDevice::Ours,
        Ok(_) => OnDevice::Empty,
        Err(error) => OnDevice::Refused(error.one_line()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::host::Usage;

    #[test]
    fn what_the_guard_says_and_what_the_run_holds() {
        let mut facts = crate::settings::testing::capable_host();
        facts.devices[0].usage = vec![Usage::System("/".into()), Usage::Swap("/swap".into())];
        let names = ["/dev/nvme1n1", "/dev/disk/by-id/no-such-drive"].map(str::to_owned);
        let found = among(&facts, &names, &names[..1]);
        let [held, system, missing] = &found[..] else { panic!("{found:?}") };
        assert_eq!((held.name.as_str(), &held.found), ("/dev/nvme1n1", &OnDevice::Held), "as it is named");
        assert!(held.about.starts_with("/dev/nvme1n1, drive, no serial, "), "{}", held.about);
        assert_eq!(system.name, "/dev/disk/by-id/nvme-drive-0");
        let why = |candidate: &Candidate| match &candidate.found {
            OnDevice::Refused(why) => why.clone(),
            other => panic!("{other:?}"),
        };
        assert!(
            why(system).starts_with("/dev/nvme0n1 is in use: the system's own drive: holds /"),
            "{system:?}"
        );
        assert!(
            missing.name.ends_with("no-such-drive") && why(missing).contains("no-such-drive"),
            "{missing:?}"
        );
    }
}
