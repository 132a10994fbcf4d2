//! Which kernel drivers for arrays and file systems this host lacks.

use crate::host::root::Root;

/// The drivers that stacks need, by the names of their modules.
const FILESYSTEMS: [&str; 4] = ["ext4", "xfs", "btrfs", "f2fs"];
const RAID: [&str; 4] = ["raid0", "raid1", "raid10", "raid456"];

/// Drivers known to be neither in the running kernel nor among its modules. If its modules are not visible, as
/// in a container, the kernel may still load them, so none is known to be missing.
pub(in crate::host) fn lacking(root: &Root) -> Vec<String> {
    let Some(modules) = modules(root) else { return Vec::new() };
    let filesystems = root.text("proc/filesystems").unwrap_or_default();
    let arrays = root.text("proc/mdstat").unwrap_or_default();
    let known = |name: &&str| {
        let personality = if *name == "raid456" { "[raid5]".to_owned() } else { format!("[{name}]") };
        let loaded = filesystems.split_whitespace().any(|word| word == *name)
            || arrays.split_whitespace().any(|word| word == personality);
        loaded || modules.iter().any(|module| module == name)
    };
    FILESYSTEMS.iter().chain(&RAID).filter(|name| !known(name)).map(|name| (*name).to_owned()).collect()
}

/// The modules that the running kernel has built in or can load; none if that is not visible.
fn modules(root: &Root) -> Option<Vec<String>> {
    if !root.has("proc/modules") {
        // A kernel without modules can load nothing: it has only what it shows.
        return root.has("proc/filesystems").then(Vec::new);
    }
    let release = root.text("proc/sys/kernel/osrelease")?;
    let list = |name: &str| root.text(&format!("lib/modules/{release}/{name}"));
    let builtin = list("modules.builtin")?;
    let forbidden = root.number("proc/sys/kernel/modules_disabled") == Some(1);
    let loadable = if forbidden { root.text("proc/modules")? } else { list("modules.dep")? };
    // `kernel/fs/f2fs/f2fs.ko.xz: kernel/lib/…`, `kernel/fs/ext4/ext4.ko`, `f2fs 1064960 0 - Live …`.
    let name = |line: &str| {
        let path = line.split([':', ' ']).next()?;
        let file = path.rsplit('/').next()?;
        Some(file.split(".ko").next()?.replace('-', "_"))
    };
    Some(builtin.lines().chain(loadable.lines()).filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn lacking_of(files: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [("proc/sys/kernel/osrelease", "6.1\n")].iter().chain(files) {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        lacking(&Root::new(dir.path()))
    }

    const SHOWN: (&str, &str) = ("proc/filesystems", "nodev\tproc\n\text4\n\txfs\n");

    #[test]
    fn a_kernel_without_modules_has_what_it_shows() {
        assert_eq!(lacking_of(&[SHOWN]), ["btrfs", "f2fs", "raid0", "raid1", "raid10", "raid456"]);
        let arrays =
            ("proc/mdstat", "Personalities : [raid0] [raid6] [raid5] [raid4]\nunused devices: <none>\n");
        assert_eq!(lacking_of(&[SHOWN, arrays]), ["btrfs", "f2fs", "raid1", "raid10"]);
    }

    #[test]
    fn loadable_drivers_are_not_missing_unless_loading_is_forbidden() {
        let loaded = ("proc/modules", "raid1 1 0 - Live 0x0\n");
        let builtin = ("lib/modules/6.1/modules.builtin", "kernel/fs/btrfs/btrfs.ko\n");
        let all = "kernel/fs/f2fs/f2fs.ko.xz: kernel/lib/crc32.ko\nkernel/drivers/md/raid1.ko: \n";
        let loadable = ("lib/modules/6.1/modules.dep", all);
        assert_eq!(lacking_of(&[SHOWN, loaded, builtin, loadable]), ["raid0", "raid10", "raid456"]);
        let forbidden = ("proc/sys/kernel/modules_disabled", "1\n");
        assert_eq!(
            lacking_of(&[SHOWN, loaded, builtin, loadable, forbidden]),
            ["f2fs", "raid0", "raid10", "raid456"]
        );
    }

    #[test]
    fn without_visible_modules_nothing_is_known_to_be_missing() {
        assert_eq!(lacking_of(&[SHOWN, ("proc/modules", "")]), Vec::<String>::new());
        assert_eq!(lacking_of(&[]), Vec::<String>::new());
    }
}
