//! Arrays in use, md's and Btrfs's own, checked repeatedly: whether they still have all their members.

use std::path::Path;

use super::btrfs::BtrfsWatch;
use super::members::{Lost, NamedMember, Upkeep};
use crate::host::drive::emulated::{self, Below};
use crate::host::root::Root;

/// An array, with the members that it had when the watch began.
#[derive(Debug, Clone)]
pub enum ArrayWatch {
    /// An md array.
    Md(MdWatch),
    /// A Btrfs file system on several devices.
    Btrfs(BtrfsWatch),
}

/// An md array, with the members that it had when the watch began.
#[derive(Debug, Clone)]
pub struct MdWatch {
    root: Root,
    /// The kernel's name (`md127`).
    name: String,
    members: Vec<NamedMember>,
}

impl ArrayWatch {
    /// The arrays below a device of that number (major, minor), through partitions, arrays and loop
    /// devices; under a root (`/`).
    pub fn below(root: &Path, number: (u32, u32)) -> Vec<Self> {
        let root = Root::new(root);
        Self::of(&root, &emulated::below(&root, &format!("{}:{}", number.0, number.1)))
    }

    /// The same, below a file or a device of the running host.
    pub fn below_path(path: &Path) -> Vec<Self> {
        Self::of(&Root::new(Path::new("/")), &emulated::below_path(path))
    }

    fn of(root: &Root, below: &Below) -> Vec<Self> {
        let md = below.arrays.iter().filter_map(|dir| MdWatch::of(root, dir)).map(Self::Md);
        let btrfs = below.btrfs.iter().filter_map(|id| BtrfsWatch::of(root, id)).map(Self::Btrfs);
        md.chain(btrfs).collect()
    }

    /// The kernel's name of the array, or the id of the file system.
    pub fn name(&self) -> &str {
        match self {
            Self::Md(md) => &md.name,
            Self::Btrfs(btrfs) => btrfs.id(),
        }
    }

    /// What it is currently doing on its own; none if nothing.
    pub fn upkeep(&self) -> Option<Upkeep> {
        match self {
            Self::Md(md) => md.upkeep(),
            Self::Btrfs(btrfs) => btrfs.upkeep(),
        }
    }

    /// The members it has lost by now; none if all of them work.
    pub fn look(&self) -> Option<Lost> {
        match self {
            Self::Md(md) => md.look(),
            Self::Btrfs(btrfs) => btrfs.look(),
        }
    }
}

impl MdWatch {
    fn of(root: &Root, dir: &Path) -> Option<Self> {
        let name = dir.file_name()?.to_string_lossy().into_owned();
        let names = root.names(&format!("sys/block/{name}/md"));
        let members = names.iter().filter_map(|entry| entry.strip_prefix("dev-"));
        let members = members.map(|member| NamedMember::of(root, member)).collect();
        Some(Self { members, root: root.clone(), name })
    }

    fn text(&self, file: &str) -> Option<String> {
        self.root.text(&format!("sys/block/{}/md/{file}", self.name))
    }

    /// A level without redundancy has no such file, and nothing to maintain.
    fn upkeep(&self) -> Option<Upkeep> {
        let action = self.text("sync_action").filter(|action| !["idle", "frozen"].contains(&action.as_str()));
        // After a rebuild, and after a failure, md checks whether there is a spare, and reports that as a recovery.
        if action.as_deref() == Some("recover")
            && !has_spare(&self.root.at(&format!("sys/block/{}/md", self.name)))
        {
            return None;
        }
        Some(Upkeep { array: format!("md array {}", self.name), action: action? })
    }

    fn look(&self) -> Option<Lost> {
        let text = |file: &str| self.text(file);
        let is_lost = |member: &&NamedMember| {
            let state = text(&format!("dev-{}/state", member.name));
            let works = state.is_some_and(|state| state.split(',').all(|word| word != "faulty"));
            !works || member.is_gone(&self.root)
        };
        let members: Vec<String> =
            self.members.iter().filter(is_lost).map(|member| member.shown.clone()).collect();
        let missing = text("degraded").and_then(|count| count.parse().ok()).unwrap_or(0);
        // A striped array without redundancy has no count of missing members.
        let striped = text("level").is_some_and(|level| ["raid0", "linear"].contains(&level.as_str()));
        let state = text("array_state").unwrap_or_default();
        let failed =
            ["broken", "inactive", "clear", ""].contains(&state.as_str()) || (striped && !members.is_empty());
        (failed || missing > 0 || !members.is_empty()).then(|| Lost {
            array: format!("md array {}", self.name),
            members,
            missing,
            failed,
        })
    }
}

/// Whether an array, by its `md` folder in sysfs, has a member that is not in sync yet: without one, md
/// recovers nothing, whatever its `sync_action` says. True if the kernel reports no member's state.
pub fn has_spare(md: &Path) -> bool {
    let entries = std::fs::read_dir(md).into_iter().flatten().flatten();
    let members = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("dev-"));
    let states: Vec<_> =
        members.filter_map(|member| std::fs::read_to_string(member.path().join("state")).ok()).collect();
    states.is_empty() || states.iter().flat_map(|state| state.trim().split(',')).any(|word| word == "spare")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A fake host: an array of a drive and of a partition of another one, below a loop device over a file on it.
    fn host(level: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let write = |path: &str, text: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        };
        write("sys/block/nvme0n1/device/serial", "S0\n");
        write("sys/block/nvme1n1/device/serial", "S1\n");
        write("sys/block/nvme1n1/nvme1n1p1/partition", "1\n");
        write("sys/block/md127/md/array_state", "clean\n");
        write("sys/block/md127/md/level", level);
        for member in ["nvme0n1", "nvme1n1p1"] {
            write(&format!("sys/block/md127/md/dev-{member}/state"), "in_sync\n");
        }
        for made in ["sys/block/md127/slaves", "sys/dev/block", "sys/class/block"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        symlink("../../block/md127", at("sys/dev/block/9:127")).unwrap();
        for (member, to) in [("nvme0n1", "nvme0n1"), ("nvme1n1p1", "nvme1n1/nvme1n1p1")] {
            symlink(format!("../../{to}"), at(&format!("sys/block/md127/slaves/{member}"))).unwrap();
            symlink(format!("../../block/{to}"), at(&format!("sys/class/block/{member}"))).unwrap();
        }
        dir
    }

    fn watch(host: &tempfile::TempDir) -> ArrayWatch {
        let mut found = ArrayWatch::below(host.path(), (9, 127));
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn an_array_with_all_its_members_has_lost_nothing() {
        let host = host("raid1\n");
        fs::write(host.path().join("sys/block/md127/md/degraded"), "0\n").unwrap();
        assert_eq!(watch(&host).look(), None);
        assert!(ArrayWatch::below(host.path(), (259, 0)).is_empty(), "a drive is no array");
    }

    #[test]
    fn a_failed_or_missing_member_is_reported_with_its_serial() {
        let host = host("raid1\n");
        let watch = watch(&host);
        let at = |path: &str| host.path().join("sys").join(path);
        fs::write(at("block/md127/md/degraded"), "1\n").unwrap();
        fs::write(at("block/md127/md/dev-nvme1n1p1/state"), "faulty,blocked\n").unwrap();
        let lost = |member: &str| {
            let members = vec![member.to_owned()];
            Some(Lost { array: "md array md127".into(), members, missing: 1, failed: false })
        };
        assert_eq!(watch.look(), lost("nvme1n1p1 (serial S1)"));
        fs::remove_dir_all(at("block/md127/md/dev-nvme1n1p1")).unwrap();
        assert_eq!(watch.look(), lost("nvme1n1p1 (serial S1)"), "removed from the array");
        fs::write(at("block/md127/md/array_state"), "broken\n").unwrap();
        assert!(watch.look().unwrap().failed);
    }

    #[test]
    fn what_an_array_does_on_its_own_is_reported_while_it_does_it() {
        let host = host("raid1\n");
        let watch = watch(&host);
        let action =
            |text: &str| fs::write(host.path().join("sys/block/md127/md/sync_action"), text).unwrap();
        assert_eq!(watch.upkeep(), None, "a kernel that does not say");
        for quiet in ["idle\n", "frozen\n"] {
            action(quiet);
            assert_eq!(watch.upkeep(), None);
        }
        action("check\n");
        let upkeep = watch.upkeep().unwrap();
        assert_eq!((upkeep.array.as_str(), upkeep.action.as_str()), ("md array md127", "check"));
        action("recover\n");
        assert_eq!(watch.upkeep(), None, "md looks for a spare");
        fs::write(host.path().join("sys/block/md127/md/dev-nvme1n1p1/state"), "spare\n").unwrap();
        assert_eq!(watch.upkeep().unwrap().action, "recover");
        assert_eq!(watch.look(), None, "nothing is lost by that");
    }

    #[test]
    fn a_stripe_has_failed_as_soon_as_one_of_its_drives_is_gone() {
        let host = host("raid0\n");
        let watch = watch(&host);
        assert_eq!(watch.look(), None);
        fs::remove_file(host.path().join("sys/class/block/nvme0n1")).unwrap();
        let lost = watch.look().unwrap();
        assert_eq!((lost.failed, lost.members), (true, vec!["nvme0n1 (serial S0)".into()]));
    }
}
