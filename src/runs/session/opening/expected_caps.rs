//! A stack's future abilities, as far as they are known before anything is destroyed for it. The rest is
//! found out once it is built.

use std::fs::File;

use crate::host::{Facts, Feature, TargetFacts, kernel_version};
use crate::load::volume::try_uncached;
use crate::settings::{Filesystem, Named};
use crate::stack::plan::StackSpec;

/// The newest kernel on which Btrfs and F2FS are known to lack uncached I/O for reads or writes; on a later
/// one it is tried once the file system exists.
const NO_UNCACHED_UNTIL: (u32, u32) = (6, 18);
/// Direct I/O on these two takes whole blocks only.
const BLOCK_BYTES: u64 = 4096;

/// The expected abilities of a target on this stack.
pub(in crate::runs::session) fn expected_caps(stack: &StackSpec, facts: &Facts) -> TargetFacts {
    let filesystem = stack.layers.filesystem;
    let blocky = matches!(filesystem, Filesystem::Btrfs | Filesystem::F2fs);
    let drives = stack.target.devices.iter().filter_map(|name| facts.find(name).ok());
    let found_bytes = drives.map(|drive| drive.logical_block_bytes).max().unwrap_or(512);
    let sector_bytes = stack.layers.lba_size.bytes().unwrap_or(found_bytes);
    TargetFacts {
        devices: filesystem == Filesystem::None,
        medium: filesystem.name().to_owned(),
        direct: Feature::Present,
        direct_align_bytes: if blocky { BLOCK_BYTES.max(sector_bytes) } else { sector_bytes },
        uncached: uncached(filesystem, facts),
        polled: polled(stack, facts),
        nvme_commands: Feature::Missing("a stack is the kernel's".to_owned()),
        quietly_buffered: None,
        emulated: None,
        read_only: false,
        mounted: None,
    }
}

/// Polling works on a stack if it is a file system on one drive, and the drive can be polled.
fn polled(stack: &StackSpec, facts: &Facts) -> Feature {
    if !stack.layers.by_commands.is_empty() {
        return Feature::Missing(
            "whether the command layers (stack.layer) can be polled is unknown".to_owned(),
        );
    }
    let polls = |name: &String| facts.find(name).is_ok_and(|drive| drive.queue.polling == Some(true));
    match stack.target.devices.as_slice() {
        [drive] if polls(drive) && stack.layers.filesystem != Filesystem::Btrfs => Feature::Present,
        [_] => Feature::Missing("the drive has no poll queues, or its file system is not polled".to_owned()),
        _ => Feature::Missing("what is built on several drives, or on files, can't be polled".to_owned()),
    }
}

fn uncached(filesystem: Filesystem, facts: &Facts) -> Feature {
    let old = kernel_version(&facts.kernel).is_none_or(|version| version <= NO_UNCACHED_UNTIL);
    match filesystem {
        Filesystem::Btrfs | Filesystem::F2fs if old => {
            let (name, kernel) = (filesystem.name(), &facts.kernel);
            Feature::Missing(format!("{name} has no uncached I/O (RWF_DONTCACHE) on Linux {kernel}"))
        }
        // All block devices are alike in this: an existing one shows what the new one will be able to do.
        Filesystem::None => {
            let devices = facts.devices.iter().filter_map(|device| File::open(&device.path).ok());
            devices.map(|file| try_uncached(&file)).next().unwrap_or(Feature::Present)
        }
        _ => Feature::Present,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::session::resolve::refuse_unable;
    use crate::settings::knobs::Conditions;
    use crate::settings::profile::check;
    use crate::settings::testing::capable_host;
    use crate::settings::values::LbaSize;
    use crate::settings::{Buffering, Raid, Settings};

    fn refused(
        kernel: &str,
        filesystem: Filesystem,
        buffering: Buffering,
        page_bytes: u64,
    ) -> Option<String> {
        let facts = Facts { kernel: kernel.into(), dontcache: Feature::Present, ..capable_host() };
        let mut settings = Settings::default();
        settings.target.devices = vec!["nvme0n1".into(), "nvme1n1".into()];
        (settings.stack.raid, settings.stack.filesystem) = (Raid::Md0, filesystem);
        (settings.io.buffering, settings.io.page_size_bytes) = (buffering, page_bytes);
        refuse_unable(&settings, &facts).err().map(|error| error.to_string())
    }

    #[test]
    fn what_a_file_system_is_known_not_to_do_is_refused_before_it_is_made() {
        for filesystem in [Filesystem::Btrfs, Filesystem::F2fs] {
            let why = refused("6.18.44", filesystem, Buffering::Uncached, 16384).unwrap();
            assert!(why.contains("`io.buffering` can't be uncached") && why.contains("6.18.44"), "{why}");
            assert_eq!(refused("6.19.0", filesystem, Buffering::Uncached, 16384), None, "it is tried later");
            assert_eq!(refused("6.18.44", filesystem, Buffering::Direct, 16384), None);
            let why = refused("6.18.44", filesystem, Buffering::Direct, 512).unwrap();
            assert!(why.contains("`io.page_size` can't be 512B"), "{why}");
            assert_eq!(refused("6.18.44", filesystem, Buffering::Cached, 512), None);
        }
        assert_eq!(refused("6.18.44", Filesystem::Xfs, Buffering::Uncached, 16384), None);
        assert_eq!(refused("6.18.44", Filesystem::Ext4, Buffering::Direct, 512), None);
    }

    #[test]
    fn a_driver_that_the_kernel_lacks_is_named_before_anything_is_destroyed() {
        let mut facts = capable_host();
        facts.platform.lacking_drivers = vec!["f2fs".into(), "raid456".into()];
        let refused = |raid, filesystem| {
            let mut settings = Settings::default();
            settings.target.devices = ["nvme0n1", "nvme1n1", "nvme2n1"].map(String::from).into();
            (settings.stack.raid, settings.stack.filesystem) = (raid, filesystem);
            refuse_unable(&settings, &facts).err().map(|error| (error.kind, error.what))
        };
        let (kind, why) = refused(Raid::Md0, Filesystem::F2fs).unwrap();
        assert_eq!(kind, crate::error::Kind::Input);
        assert!(why.contains("this kernel has no f2fs, neither built in nor as a module"), "{why}");
        assert!(refused(Raid::Md5, Filesystem::Xfs).unwrap().1.contains("no raid456"));
        assert_eq!(refused(Raid::Md0, Filesystem::Xfs), None);
    }

    #[test]
    fn a_tool_or_a_right_that_is_missing_is_named_by_the_value_that_takes_it() {
        let mut facts = capable_host();
        let tool = |name: &str, path: Option<&str>| crate::host::ToolFound {
            name: name.into(),
            path: path.map(Into::into),
            version: None,
            package: format!("{name}-package"),
        };
        facts.storage.tools =
            vec![tool("mdadm", None), tool("mkfs.xfs", None), tool("mkfs.ext4", Some("/x"))];
        let refused = |facts: &Facts, raid, filesystem, use_percent| {
            let mut settings = Settings::default();
            settings.target.devices = ["nvme0n1", "nvme1n1"].map(String::from).into();
            (settings.stack.raid, settings.stack.filesystem) = (raid, filesystem);
            settings.stack.use_percent = use_percent;
            refuse_unable(&settings, facts).err().map(|error| error.what)
        };
        let why = refused(&facts, Raid::Md0, Filesystem::Ext4, 100).unwrap();
        assert!(why.contains("mdadm is not installed: apt-get install mdadm-package"), "{why}");
        let why = refused(&facts, Raid::Btrfs0, Filesystem::Xfs, 100).unwrap();
        assert!(why.contains("mkfs.xfs is not installed"), "{why}");
        facts.storage.tools.remove(0);
        assert_eq!(refused(&facts, Raid::Md0, Filesystem::Ext4, 100), None);
        facts.storage.tools.push(tool("sfdisk", None));
        let why = refused(&facts, Raid::Md0, Filesystem::Ext4, 80).unwrap();
        assert!(why.contains("`stack.use`") && why.contains("sfdisk is not installed"), "{why}");
        facts.platform.unprivileged = true;
        let why = refused(&facts, Raid::Md0, Filesystem::Ext4, 100).unwrap();
        assert!(why.contains("requires root"), "{why}");
        // Settings that touch no storage build nothing.
        let mut simulated = Settings::default();
        (simulated.stack.filesystem, simulated.target.count) = (Filesystem::Xfs, 1);
        assert!(!check(&simulated, Conditions { facts: &facts, target: None }).is_empty());
        simulated.io.interface = crate::settings::Interface::Sim;
        assert!(check(&simulated, Conditions { facts: &facts, target: None }).is_empty());
    }

    #[test]
    fn a_sector_is_the_least_of_direct_io() {
        let mut facts = capable_host();
        facts.devices.iter_mut().for_each(|device| device.logical_block_bytes = 4096);
        let mut settings = Settings::default();
        settings.target.devices = vec!["nvme0n1".into(), "nvme1n1".into()];
        (settings.stack.raid, settings.io.page_size_bytes) = (Raid::Md0, 512);
        settings.io.buffering = Buffering::Direct;
        assert!(refuse_unable(&settings, &facts).is_err());
        // Formatting the drives will make their blocks smaller.
        settings.stack.lba_size = LbaSize::Small;
        assert!(refuse_unable(&settings, &facts).is_ok());
        facts.devices.iter_mut().for_each(|device| device.logical_block_bytes = 512);
        settings.stack.lba_size = LbaSize::Large;
        let why = refuse_unable(&settings, &facts).unwrap_err().what;
        assert!(why.contains("`io.page_size` can't be 512B") && why.contains("multiples of 4KiB"), "{why}");
        settings.stack.lba_size = LbaSize::Keep;
        settings.stack.raid = Raid::None;
        assert!(refuse_unable(&settings, &facts).is_ok(), "nothing is built: the target itself is asked");
    }
}
