//! The operator's options for mkfs and mount, which must not reach beyond the stack's devices.

use crate::error::{Error, Result};
use crate::settings::{Filesystem, Stack};

/// Options of mkfs that put part of a file system on another device.
const ELSEWHERE: &[&str] = &["device=", "dev=", "name=", "label=", "partlabel=", "partuuid="];
/// Options of mount that are not about this file system.
const NO_OPTIONS: &[&str] = &["bind", "rbind", "move", "remount", "loop"];

/// The words of `stack.mkfs_options`.
///
/// # Errors
/// Input if one names a path or a device, which mkfs would write to, or replaces the UUID by which the file
/// system is recognized.
pub(super) fn mkfs(stack: &Stack) -> Result<Vec<String>> {
    let words: Vec<String> = stack.mkfs_options.split_whitespace().map(str::to_owned).collect();
    let mut after_option = false;
    for word in &words {
        let small = word.to_lowercase();
        let is_option = word.starts_with('-');
        let refuse = |why: &str| Err(Error::input(format!("stack.mkfs_options: `{word}` {why}")));
        if word.contains('/') || ELSEWHERE.iter().any(|start| names(&small, start)) {
            return refuse("names a path or a device, but only the stack's devices are written to");
        }
        if small.contains("uuid") || word.starts_with("-U") {
            return refuse("sets the UUID by which stacktune recognizes the file system");
        }
        if stack.filesystem == Filesystem::F2fs && word.starts_with("-c") {
            return refuse("adds devices, but only the stack's devices are written to");
        }
        // A word that does not belong to an option is taken for a device.
        if !is_option && !after_option {
            return refuse("does not belong to an option, so mkfs would take it for a device");
        }
        // `-m 0` and `-K x`: only mkfs knows whether an option takes a value, so at most one may follow.
        after_option = is_option;
        if !is_option && std::path::Path::new(word).exists() {
            return refuse("is a file here, which mkfs might write to");
        }
    }
    Ok(words)
}

/// Whether one of a word's settings (`a=1,b=2`) has this name.
fn names(word: &str, start: &str) -> bool {
    word.split(',').any(|setting| setting.contains(start))
}

/// Options for mount: the stack's, then the operator's.
///
/// # Errors
/// Input if one names a path or a device, or requests another kind of mount.
pub(super) fn mount(stack: &Stack) -> Result<String> {
    let own = match stack.filesystem {
        // What mkfs skipped would otherwise be written under the load, for minutes.
        Filesystem::Ext4 => Some("noinit_itable"),
        Filesystem::Btrfs if !stack.copy_on_write => Some("nodatacow"),
        _ => None,
    };
    let theirs = stack.mount_options.split(',').map(str::trim).filter(|option| !option.is_empty());
    let theirs: Vec<&str> = theirs.collect();
    for option in &theirs {
        let elsewhere = option.contains('/') || option.contains("dev=") || option.contains("device=");
        if elsewhere || NO_OPTIONS.contains(option) || option.starts_with("X-") {
            let what = format!("stack.mount_options: `{option}` reaches beyond the stack's own file system");
            return Err(Error::input(what));
        }
    }
    let all: Vec<&str> = own.into_iter().chain(theirs).collect();
    Ok(if all.is_empty() { "defaults".into() } else { all.join(",") })
}

/// The mount option that keeps the file system from flushing drives, if any; the last one counts.
pub(super) fn without_barriers(stack: &Stack) -> Option<&str> {
    // F2FS has two independent ones.
    let last = |without: &[&str], with: &[&str]| {
        let mut options = stack.mount_options.split(',').map(str::trim);
        options
            .rfind(|option| without.contains(option) || with.contains(option))
            .filter(|o| without.contains(o))
    };
    last(&["barrier=0", "nobarrier"], &["barrier=1", "barrier"])
        .or_else(|| last(&["fsync_mode=nobarrier"], &["fsync_mode=posix", "fsync_mode=strict"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(filesystem: Filesystem, mkfs: &str, mount: &str) -> Stack {
        Stack { filesystem, mkfs_options: mkfs.into(), mount_options: mount.into(), ..Stack::default() }
    }

    #[test]
    fn options_of_mkfs_never_name_another_device_or_another_id() {
        let words = |filesystem, options| mkfs(&stack(filesystem, options, ""));
        assert_eq!(words(Filesystem::Xfs, " -m reflink=0  -s size=4096 ").unwrap().len(), 4);
        assert_eq!(words(Filesystem::Ext4, "-m 0 -O ^has_journal").unwrap().len(), 4);
        for (filesystem, wrong) in [
            (Filesystem::Btrfs, "/dev/sda"),
            (Filesystem::Btrfs, "-d single sda"),
            (Filesystem::Btrfs, "sda"),
            (Filesystem::Btrfs, "-r Cargo.toml"),
            (Filesystem::Xfs, "-l logdev=sdb,size=64m"),
            (Filesystem::Xfs, "-r rtdev=sdb"),
            (Filesystem::Xfs, "-m uuid=generate"),
            (Filesystem::Xfs, "-d name=x"),
            (Filesystem::Ext4, "-J device=LABEL=x"),
            (Filesystem::Ext4, "-U random"),
            (Filesystem::F2fs, "-c sdb"),
        ] {
            assert_eq!(words(filesystem, wrong).unwrap_err().exit_status(), 2, "{wrong}");
        }
    }

    #[test]
    fn mount_gets_the_stacks_options_and_the_operators() {
        let options = |filesystem, options| mount(&stack(filesystem, "", options));
        assert_eq!(options(Filesystem::Xfs, "").unwrap(), "defaults");
        assert_eq!(options(Filesystem::Ext4, "noatime, nodev").unwrap(), "noinit_itable,noatime,nodev");
        assert_eq!(options(Filesystem::Btrfs, "").unwrap(), "nodatacow");
        let copying = Stack { copy_on_write: true, ..stack(Filesystem::Btrfs, "", "noatime") };
        assert_eq!(mount(&copying).unwrap(), "noatime");
        let without = |options| without_barriers(&stack(Filesystem::F2fs, "", options)).map(str::to_owned);
        assert_eq!(without("nobarrier, barrier"), None);
        assert_eq!(without("nobarrier,fsync_mode=strict").as_deref(), Some("nobarrier"));
        assert_eq!(without("fsync_mode=nobarrier,barrier").as_deref(), Some("fsync_mode=nobarrier"));
        for wrong in ["bind", "remount", "logdev=sdb", "device=/dev/sda", "journal_dev=2049", "X-mount.mkdir"]
        {
            assert_eq!(options(Filesystem::Ext4, wrong).unwrap_err().exit_status(), 2, "{wrong}");
        }
    }
}
