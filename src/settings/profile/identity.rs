//! Devices by what does not change: their by-id names and serials instead of `/dev/nvme0n1`.

use std::path::{Path, PathBuf};

use super::contents::Profile;
use crate::host::{Device, Facts};
use crate::settings::values::Settings;

/// The settings with devices given by their by-id names, including `wal.target` if it is a device, and with all
/// of these devices' serials if none are recorded and the host knows them.
///
/// A recorded serial is kept. A device that the host does not know keeps its name.
pub fn by_identity(settings: &Settings, facts: &Facts) -> Settings {
    let mut named = settings.clone();
    let target = &mut named.target;
    target.serials.resize(target.devices.len(), String::new());
    for (name, serial) in target.devices.iter_mut().zip(&mut target.serials) {
        if let Some((device, by_id)) = identify(name, facts) {
            *name = by_id;
            if serial.is_empty() {
                *serial = device.serial.clone().unwrap_or_default();
            }
        }
    }
    if target.serials.iter().all(String::is_empty) {
        target.serials.clear();
    }
    let wal = &mut named.wal;
    if let Some(name) = &mut wal.target
        && let Some((device, by_id)) = identify(name, facts)
    {
        *name = by_id;
        wal.serial = wal.serial.take().or_else(|| device.serial.clone());
    }
    named
}

impl Profile {
    /// The profile with its settings [`by_identity`]; the steps stay as written.
    #[must_use]
    pub fn by_identity(self, facts: &Facts) -> Self {
        Self { settings: by_identity(&self.settings, facts), ..self }
    }
}

/// The drive behind a device's name, and the best persistent name of that device.
fn identify<'a>(name: &str, facts: &'a Facts) -> Option<(&'a Device, String)> {
    let given = Path::new(name);
    if let Some(device) = facts.devices.iter().find(|device| device.by_id.iter().any(|id| id == given)) {
        return Some((device, name.to_owned()));
    }
    // Another link, such as a by-path one, leads to the node.
    let node = if given.starts_with("/dev") { given.canonicalize().ok() } else { None };
    let node = node.as_deref().unwrap_or(given);
    facts.devices.iter().find_map(|device| {
        let lasting = lasting_name(node, device)?;
        Some((device, lasting.to_string_lossy().into_owned()))
    })
}

/// The by-id name of a node that is the device or one of its partitions, else the node's name.
fn lasting_name(node: &Path, device: &Device) -> Option<PathBuf> {
    if node == device.path {
        return Some(device.by_id.first().unwrap_or(&device.path).clone());
    }
    let partition = device.partitions.iter().find(|name| node == Path::new("/dev").join(name))?;
    let number = partition.strip_prefix(&device.name)?.trim_start_matches('p');
    Some(match device.by_id.first() {
        Some(by_id) => PathBuf::from(format!("{}-part{number}", by_id.to_string_lossy())),
        None => node.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    fn on(devices: &[&str]) -> Settings {
        let mut settings = Settings::default();
        settings.target.devices = devices.iter().map(ToString::to_string).collect();
        settings
    }

    #[test]
    fn devices_get_their_by_id_names_and_known_serials() {
        let named = by_identity(&on(&["/dev/nvme1n1", "/dev/nvme0n1"]), &capable_host());
        assert_eq!(named.target.devices, ["/dev/disk/by-id/nvme-drive-1", "/dev/disk/by-id/nvme-drive-0"]);
        assert_eq!(named.target.serials, ["", "S4EWNX0R"]);
    }

    #[test]
    fn a_by_id_name_stays_and_a_recorded_serial_is_not_overwritten() {
        let mut settings = on(&["/dev/disk/by-id/nvme-eui.0"]);
        settings.target.serials = vec!["OTHER".into()];
        assert_eq!(by_identity(&settings, &capable_host()), settings);
    }

    #[test]
    fn an_unknown_device_and_files_stay_as_they_are() {
        let settings = on(&["/dev/nvme7n1"]);
        assert_eq!(by_identity(&settings, &capable_host()), settings);
        let mut files = Settings::default();
        files.wal.target = Some("/mnt/pmem/log".into());
        assert_eq!(by_identity(&files, &capable_host()), files);
    }

    #[test]
    fn partitions_and_the_log_are_named_too() {
        let mut settings = on(&["/dev/nvme0n1p1"]);
        settings.wal.target = Some("/dev/nvme1n1".into());
        let named = by_identity(&settings, &capable_host());
        assert_eq!(named.target.devices, ["/dev/disk/by-id/nvme-drive-0-part1"]);
        assert_eq!(named.target.serials, ["S4EWNX0R"]);
        assert_eq!(named.wal.target.as_deref(), Some("/dev/disk/by-id/nvme-drive-1"));
        assert_eq!(named.wal.serial, None, "it reports none");
    }

    #[test]
    fn the_serial_of_the_logs_device_is_recorded_once() {
        let mut settings = Settings::default();
        settings.wal.target = Some("/dev/nvme0n1".into());
        let named = by_identity(&settings, &capable_host());
        assert_eq!(named.wal.serial.as_deref(), Some("S4EWNX0R"));
        settings.wal.serial = Some("OTHER".into());
        assert_eq!(by_identity(&settings, &capable_host()).wal.serial.as_deref(), Some("OTHER"));
    }
}
