//! The options of mkfs and mount: the stack's own, and the operator's as far as they are allowed.

use crate::error::{Error, Result};
use crate::settings::{Filesystem, Stack, filesystem_options};

/// Nothing on a stack may be a program or a device. These come last, since the last option counts.
const INERT: [&str; 3] = ["nosuid", "nodev", "noexec"];

/// The operator's options of mkfs, with an option and its value as separate words.
///
/// # Errors
/// Input if one is not allowed.
pub(super) fn mkfs(stack: &Stack) -> Result<Vec<String>> {
    filesystem_options::mkfs(stack).map_err(|why| Error::input(format!("stack.mkfs_options: {why}")))
}

/// Options for mount: the stack's, then the operator's.
///
/// # Errors
/// Input if one is not allowed.
pub(super) fn mount(stack: &Stack) -> Result<String> {
    let own = match stack.filesystem {
        // Otherwise the kernel would write what mkfs skipped under the load, for minutes.
        Filesystem::Ext4 => Some("noinit_itable"),
        Filesystem::Btrfs if !stack.copy_on_write => Some("nodatacow"),
        _ => None,
    };
    let theirs = filesystem_options::mount(stack);
    let theirs = theirs.map_err(|why| Error::input(format!("stack.mount_options: {why}")))?;
    let all: Vec<&str> = own.into_iter().chain(theirs).chain(INERT).collect();
    Ok(all.join(","))
}

/// The mount option that keeps the file system from flushing drives, if any; the last one counts.
pub fn without_barriers(stack: &Stack) -> Option<&str> {
    // F2FS has two independent pairs.
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
    fn what_is_not_allowed_is_refused_when_planned() {
        for (mkfs_options, mount_options) in [("-pproto", ""), ("", "errors=panic"), ("", "loop=loop7")] {
            let asked = stack(Filesystem::Xfs, mkfs_options, mount_options);
            let error = mkfs(&asked).and_then(|_| mount(&asked)).unwrap_err();
            assert!(error.exit_status() == 2 && error.what.starts_with("stack.m"), "{error}");
        }
        assert_eq!(mkfs(&stack(Filesystem::Ext4, "-m0", "")).unwrap(), ["-m", "0"]);
    }

    #[test]
    fn mount_gets_the_stacks_options_and_the_operators() {
        let options = |filesystem, options| mount(&stack(filesystem, "", options));
        assert_eq!(options(Filesystem::Xfs, "").unwrap(), "nosuid,nodev,noexec");
        assert_eq!(
            options(Filesystem::Ext4, "noatime, lazytime").unwrap(),
            "noinit_itable,noatime,lazytime,nosuid,nodev,noexec"
        );
        assert_eq!(options(Filesystem::Btrfs, "").unwrap(), "nodatacow,nosuid,nodev,noexec");
        let copying = Stack { copy_on_write: true, ..stack(Filesystem::Btrfs, "", "noatime") };
        assert_eq!(mount(&copying).unwrap(), "noatime,nosuid,nodev,noexec");
        let without = |options| without_barriers(&stack(Filesystem::F2fs, "", options)).map(str::to_owned);
        assert_eq!(without("nobarrier, barrier"), None);
        assert_eq!(without("nobarrier,fsync_mode=strict").as_deref(), Some("nobarrier"));
        assert_eq!(without("fsync_mode=nobarrier,barrier").as_deref(), Some("fsync_mode=nobarrier"));
    }
}
