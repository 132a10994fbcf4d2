//! Btrfs file systems on several devices: whether they still have all of them.
//!
//! A pulled device keeps its link in `devices`, and `devinfo/N/missing` covers only what was missing at mount
//! time, so a lost device is found at the device itself. A device that is there but accepts no writes shows
//! in `devinfo/N/error_stats`, which has the device's number, not its name.

use super::members::{Lost, NamedMember, Upkeep};
use crate::host::root::Root;

/// A Btrfs file system on several devices, with those that it had when the watch began.
#[derive(Debug, Clone)]
pub struct BtrfsWatch {
    root: Root,
    id: String,
    members: Vec<NamedMember>,
    /// The devices by Btrfs's numbers, with their failed writes and flushes at that time.
    numbers: Vec<(String, u64)>,
}

impl BtrfsWatch {
    /// None if it is on a single device: then it has no members.
    pub(in crate::host) fn of(root: &Root, id: &str) -> Option<Self> {
        let names = root.names(&format!("sys/fs/btrfs/{id}/devices"));
        let numbers = root.names(&format!("sys/fs/btrfs/{id}/devinfo"));
        if names.len().max(numbers.len()) < 2 {
            return None;
        }
        let members = names.iter().map(|name| NamedMember::of(root, name)).collect();
        let mut watch = Self { root: root.clone(), id: id.to_owned(), members, numbers: Vec::new() };
        watch.numbers =
            numbers.into_iter().map(|number| (number.clone(), watch.failed_writes(&number))).collect();
        Some(watch)
    }

    pub(in crate::host) fn id(&self) -> &str {
        &self.id
    }

    /// Balancing, and adding or removing devices; a scrub is not visible here.
    pub(in crate::host) fn upkeep(&self) -> Option<Upkeep> {
        let action = self.text("exclusive_operation")?;
        let rests = action == "none" || action.ends_with("paused");
        if rests {
            return None;
        }
        Some(Upkeep { array: format!("Btrfs file system {}", self.id), action })
    }

    pub(in crate::host) fn look(&self) -> Option<Lost> {
        let gone = self.members.iter().filter(|member| member.is_gone(&self.root));
        let members: Vec<String> = gone.map(|member| member.shown.clone()).collect();
        let is_missing =
            |number: &str| self.text(&format!("devinfo/{number}/missing")).as_deref() == Some("1");
        let missing = self.numbers.iter().filter(|(number, _)| is_missing(number)).count() as u64;
        let spares = self.spares();
        let failed = missing.max(members.len() as u64) > spares;
        // Without redundancy, a failed write is an error of the class that wrote, and is reported there.
        let is_stale = |(number, before): &&(String, u64)| {
            is_missing(number) || (spares > 0 && self.failed_writes(number) > *before)
        };
        let stale = self.numbers.iter().filter(is_stale).count() as u64;
        let array = format!("Btrfs file system {}", self.id);
        let lost = Lost { array, members, missing: stale, failed };
        (lost.count() > 0).then_some(lost)
    }

    /// How many members may be lost, whichever they are: the minimum over data, metadata and system.
    fn spares(&self) -> u64 {
        let kinds = ["data", "metadata", "system"];
        let profiles = kinds
            .iter()
            .flat_map(|kind| self.root.names(&format!("sys/fs/btrfs/{}/allocation/{kind}", self.id)));
        profiles.filter_map(|name| spares_of(&name)).min().unwrap_or(0)
    }

    /// Writes and flushes of a device that failed since the file system was made.
    fn failed_writes(&self, number: &str) -> u64 {
        let text = self.text(&format!("devinfo/{number}/error_stats")).unwrap_or_default();
        let counts = text.lines().filter_map(|line| line.split_once(' '));
        let failed = counts.filter(|(name, _)| ["write_errs", "flush_errs"].contains(name));
        failed.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
    }

    fn text(&self, file: &str) -> Option<String> {
        self.root.text(&format!("sys/fs/btrfs/{}/{file}", self.id))
    }
}

/// How many devices a block group profile can lose; none for an unknown profile.
fn spares_of(profile: &str) -> Option<u64> {
    match profile {
        "single" | "dup" | "raid0" => Some(0),
        "raid1" | "raid10" | "raid5" => Some(1),
        "raid1c3" | "raid6" => Some(2),
        "raid1c4" => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::block::arrays::ArrayWatch;
    use std::fs;
    use std::path::Path;

    struct Host(tempfile::TempDir);

    impl Host {
        /// A file system of two drives.
        fn new(data: &str) -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            for (at, name) in ["nvme0n1", "nvme1n1"].iter().enumerate() {
                host.write(&format!("sys/block/{name}/device/serial"), &format!("S{at}"));
                host.write(&format!("sys/class/block/{name}/dev"), "259:0");
                host.write(&format!("sys/fs/btrfs/8d12/devices/{name}"), "");
                host.write(&format!("sys/fs/btrfs/8d12/devinfo/{}/missing", at + 1), "0\n");
                host.errors(at + 1, 7);
            }
            host.write("sys/fs/btrfs/features/raid1c34", "0\n");
            for kind in [&format!("data/{data}"), "metadata/raid1", "system/raid1"] {
                host.write(&format!("sys/fs/btrfs/8d12/allocation/{kind}/total_bytes"), "1\n");
            }
            host
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn errors(&self, number: usize, count: u64) {
            let text = format!("write_errs {count}\nread_errs 9\nflush_errs 0\ncorruption_errs 9\n");
            self.write(&format!("sys/fs/btrfs/8d12/devinfo/{number}/error_stats"), &text);
        }

        fn watch(&self) -> ArrayWatch {
            ArrayWatch::Btrfs(BtrfsWatch::of(&Root::new(self.0.path()), "8d12").unwrap())
        }

        fn pull(&self, name: &str) {
            fs::remove_dir_all(self.0.path().join("sys/class/block").join(name)).unwrap();
        }
    }

    #[test]
    fn a_mirror_works_without_a_drive_which_is_reported_with_its_serial() {
        let host = Host::new("raid1");
        let watch = host.watch();
        assert_eq!(watch.look(), None, "writes that failed before are none of ours");
        host.pull("nvme1n1");
        host.errors(2, 12);
        let lost = watch.look().unwrap();
        assert_eq!((lost.members.as_slice(), lost.count()), (&["nvme1n1 (serial S1)".to_owned()][..], 1));
        assert!(!lost.failed && lost.array.contains("8d12"));
        host.pull("nvme0n1");
        assert!(watch.look().unwrap().failed, "one of two is all that a mirror can do without");
    }

    #[test]
    fn a_stripe_has_failed_without_a_drive_although_its_metadata_is_mirrored() {
        let host = Host::new("raid0");
        let watch = host.watch();
        host.errors(1, 8);
        assert_eq!(watch.look(), None, "a write that fails is an error of its class");
        host.pull("nvme0n1");
        assert!(watch.look().unwrap().failed);
    }

    #[test]
    fn a_device_that_fails_writes_or_was_missing_from_the_start_counts() {
        let host = Host::new("raid1");
        let watch = host.watch();
        host.errors(1, 8);
        let lost = watch.look().unwrap();
        assert_eq!((lost.members.len(), lost.missing, lost.failed), (0, 1, false));
        host.errors(1, 7);
        host.write("sys/fs/btrfs/8d12/devinfo/2/missing", "1\n");
        assert_eq!(watch.look().unwrap().missing, 1);
    }

    #[test]
    fn a_file_system_on_one_device_has_no_members() {
        let host = Host::new("raid1");
        host.write("sys/fs/btrfs/aaaa/devices/nvme0n1", "");
        host.write("sys/fs/btrfs/aaaa/devinfo/1/missing", "0\n");
        assert!(BtrfsWatch::of(&Root::new(host.0.path()), "aaaa").is_none());
        assert!(BtrfsWatch::of(&Root::new(Path::new("/nowhere")), "aaaa").is_none());
    }
}
