//! The mount options that a profile may give.

use super::allowed::{Allowed, Takes, refuses_setting, row};
use crate::settings::named::Named;
use crate::settings::values::{Filesystem, Stack};

const SWITCH: Takes = Takes::Word(&["0", "1"]);
const ANY: Takes = Takes::Number(u32::MAX as u64);

/// The options of `stack.mount_options`; none without a file system.
///
/// # Errors
/// Why one is not allowed, and what is.
pub fn mount(stack: &Stack) -> Result<Vec<&str>, String> {
    let name = stack.filesystem.name();
    let own = match stack.filesystem {
        Filesystem::Ext4 => EXT4,
        Filesystem::Xfs => XFS,
        Filesystem::Btrfs => BTRFS,
        Filesystem::F2fs => F2FS,
        Filesystem::None => return Ok(Vec::new()),
    };
    let rows = [ALL, own].concat();
    let given = stack.mount_options.split(',').map(str::trim).filter(|option| !option.is_empty());
    let allowed =
        |option| refuses_setting(&rows, option).map_or(Ok(option), |why| Err(format!("{why} (for {name})")));
    given.map(allowed).collect()
}

/// For every file system. The last three are set anyway; options that would undo them are left out.
const ALL: &[Allowed] = &[
    row(&["defaults"], Takes::Nothing),
    row(&["rw"], Takes::Nothing),
    row(&["atime"], Takes::Nothing),
    row(&["noatime"], Takes::Nothing),
    row(&["diratime"], Takes::Nothing),
    row(&["nodiratime"], Takes::Nothing),
    row(&["relatime"], Takes::Nothing),
    row(&["norelatime"], Takes::Nothing),
    row(&["strictatime"], Takes::Nothing),
    row(&["nostrictatime"], Takes::Nothing),
    row(&["lazytime"], Takes::Nothing),
    row(&["nolazytime"], Takes::Nothing),
    row(&["async"], Takes::Nothing),
    row(&["sync"], Takes::Nothing),
    row(&["dirsync"], Takes::Nothing),
    row(&["iversion"], Takes::Nothing),
    row(&["noiversion"], Takes::Nothing),
    row(&["acl"], Takes::Nothing),
    row(&["noacl"], Takes::Nothing),
    row(&["discard"], Takes::Nothing),
    row(&["nodiscard"], Takes::Nothing),
    row(&["barrier"], Takes::Nothing),
    row(&["nobarrier"], Takes::Nothing),
    row(&["nosuid"], Takes::Nothing),
    row(&["nodev"], Takes::Nothing),
    row(&["noexec"], Takes::Nothing),
];

/// Left out: external journals, quotas, `errors=panic`.
const EXT4: &[Allowed] = &[
    row(&["data"], Takes::Word(&["ordered", "writeback", "journal"])),
    row(&["barrier"], SWITCH),
    row(&["commit"], ANY),
    row(&["journal_checksum"], Takes::Nothing),
    row(&["nojournal_checksum"], Takes::Nothing),
    row(&["journal_async_commit"], Takes::Nothing),
    row(&["journal_ioprio"], Takes::Number(7)),
    row(&["min_batch_time"], ANY),
    row(&["max_batch_time"], ANY),
    row(&["delalloc"], Takes::Nothing),
    row(&["nodelalloc"], Takes::Nothing),
    row(&["auto_da_alloc"], Takes::Nothing),
    row(&["auto_da_alloc"], SWITCH),
    row(&["noauto_da_alloc"], Takes::Nothing),
    row(&["dioread_lock"], Takes::Nothing),
    row(&["dioread_nolock"], Takes::Nothing),
    row(&["nodioread_nolock"], Takes::Nothing),
    row(&["stripe"], ANY),
    row(&["inode_readahead_blks"], ANY),
    row(&["init_itable"], Takes::Nothing),
    row(&["init_itable"], ANY),
    row(&["noinit_itable"], Takes::Nothing),
    row(&["block_validity"], Takes::Nothing),
    row(&["noblock_validity"], Takes::Nothing),
    row(&["max_dir_size_kb"], ANY),
    row(&["i_version"], Takes::Nothing),
    row(&["user_xattr"], Takes::Nothing),
    row(&["nouser_xattr"], Takes::Nothing),
    row(&["nombcache"], Takes::Nothing),
    row(&["mb_optimize_scan"], SWITCH),
    row(&["prefetch_block_bitmaps"], Takes::Nothing),
    row(&["no_prefetch_block_bitmaps"], Takes::Nothing),
    row(&["errors"], Takes::Word(&["continue", "remount-ro"])),
];

/// 0 leaves the choice to the file system.
const LOG_BUFFERS: &[&str] =
    &["0", "16k", "32k", "64k", "128k", "256k", "16384", "32768", "65536", "131072", "262144"];

/// Left out: an external log or real-time device, quotas, `nouuid`.
const XFS: &[Allowed] = &[
    row(&["allocsize"], Takes::Size),
    row(&["attr2"], Takes::Nothing),
    row(&["noattr2"], Takes::Nothing),
    row(&["filestreams"], Takes::Nothing),
    row(&["ikeep"], Takes::Nothing),
    row(&["noikeep"], Takes::Nothing),
    row(&["inode32"], Takes::Nothing),
    row(&["inode64"], Takes::Nothing),
    row(&["largeio"], Takes::Nothing),
    row(&["nolargeio"], Takes::Nothing),
    row(&["logbufs"], Takes::From(2, 8)),
    row(&["logbsize"], Takes::Word(LOG_BUFFERS)),
    row(&["max_atomic_write"], Takes::Size),
    row(&["noalign"], Takes::Nothing),
    row(&["sunit"], ANY),
    row(&["swidth"], ANY),
    row(&["swalloc"], Takes::Nothing),
    row(&["wsync"], Takes::Nothing),
];

const COMPRESSED: Takes = Takes::Leveled(&["zlib", "lzo", "zstd", "no", "none"]);

/// Left out: other devices, subvolumes, `fatal_errors=panic`; and `nodatacow`, which `stack.copy_on_write` sets.
const BTRFS: &[Allowed] = &[
    row(&["autodefrag"], Takes::Nothing),
    row(&["noautodefrag"], Takes::Nothing),
    row(&["clear_cache"], Takes::Nothing),
    row(&["commit"], ANY),
    row(&["compress"], Takes::Nothing),
    row(&["compress"], COMPRESSED),
    row(&["compress-force"], Takes::Nothing),
    row(&["compress-force"], COMPRESSED),
    row(&["datasum"], Takes::Nothing),
    row(&["nodatasum"], Takes::Nothing),
    row(&["discard"], Takes::Word(&["sync", "async"])),
    row(&["flushoncommit"], Takes::Nothing),
    row(&["noflushoncommit"], Takes::Nothing),
    row(&["max_inline"], Takes::Size),
    row(&["metadata_ratio"], ANY),
    row(&["space_cache"], Takes::Nothing),
    row(&["space_cache"], Takes::Word(&["v1", "v2"])),
    row(&["nospace_cache"], Takes::Nothing),
    row(&["ssd"], Takes::Nothing),
    row(&["nossd"], Takes::Nothing),
    row(&["ssd_spread"], Takes::Nothing),
    row(&["nossd_spread"], Takes::Nothing),
    row(&["thread_pool"], Takes::From(1, 1024)),
    row(&["treelog"], Takes::Nothing),
    row(&["notreelog"], Takes::Nothing),
];

/// Left out: fault injection, quotas, `checkpoint=disable`, `errors=panic`.
const F2FS: &[Allowed] = &[
    row(&["active_logs"], Takes::Word(&["2", "4", "6"])),
    row(&["age_extent_cache"], Takes::Nothing),
    row(&["alloc_mode"], Takes::Word(&["default", "reuse"])),
    row(&["atgc"], Takes::Nothing),
    row(&["background_gc"], Takes::Word(&["on", "off", "sync"])),
    row(&["checkpoint_merge"], Takes::Nothing),
    row(&["nocheckpoint_merge"], Takes::Nothing),
    row(&["compress_algorithm"], Takes::Leveled(&["lzo", "lz4", "zstd", "lzo-rle"])),
    row(&["compress_cache"], Takes::Nothing),
    row(&["compress_chksum"], Takes::Nothing),
    row(&["compress_log_size"], Takes::Number(8)),
    row(&["compress_mode"], Takes::Word(&["fs", "user"])),
    row(&["discard_unit"], Takes::Word(&["block", "segment", "section"])),
    row(&["errors"], Takes::Word(&["continue", "remount-ro"])),
    row(&["extent_cache"], Takes::Nothing),
    row(&["noextent_cache"], Takes::Nothing),
    row(&["fastboot"], Takes::Nothing),
    row(&["flush_merge"], Takes::Nothing),
    row(&["noflush_merge"], Takes::Nothing),
    row(&["fsync_mode"], Takes::Word(&["posix", "strict", "nobarrier"])),
    row(&["gc_merge"], Takes::Nothing),
    row(&["nogc_merge"], Takes::Nothing),
    row(&["inline_data"], Takes::Nothing),
    row(&["noinline_data"], Takes::Nothing),
    row(&["inline_dentry"], Takes::Nothing),
    row(&["noinline_dentry"], Takes::Nothing),
    row(&["inline_xattr"], Takes::Nothing),
    row(&["noinline_xattr"], Takes::Nothing),
    row(&["inline_xattr_size"], ANY),
    row(&["memory"], Takes::Word(&["normal", "low"])),
    row(&["mode"], Takes::Word(&["adaptive", "lfs"])),
    row(&["nat_bits"], Takes::Nothing),
    row(&["user_xattr"], Takes::Nothing),
    row(&["nouser_xattr"], Takes::Nothing),
];

#[cfg(test)]
mod tests {
    use super::*;

    const FILESYSTEMS: [Filesystem; 4] =
        [Filesystem::Ext4, Filesystem::Xfs, Filesystem::Btrfs, Filesystem::F2fs];

    fn stack(filesystem: Filesystem, options: &str) -> Stack {
        Stack { filesystem, mount_options: options.into(), ..Stack::default() }
    }

    #[test]
    fn known_options_pass_without_spaces_and_empty_ones() {
        for (filesystem, options, passed) in [
            (Filesystem::Ext4, " noatime, ,data=writeback,barrier=0,", "noatime data=writeback barrier=0"),
            (
                Filesystem::Xfs,
                "nodiscard,logbsize=256k,allocsize=64m",
                "nodiscard logbsize=256k allocsize=64m",
            ),
            (Filesystem::Btrfs, "compress=zstd:3,discard=async", "compress=zstd:3 discard=async"),
            (Filesystem::Btrfs, "compress,discard", "compress discard"),
            (Filesystem::F2fs, "nobarrier,fsync_mode=nobarrier", "nobarrier fsync_mode=nobarrier"),
            (Filesystem::None, "anything", ""),
        ] {
            assert_eq!(mount(&stack(filesystem, options)).unwrap().join(" "), passed);
        }
    }

    #[test]
    fn whatever_is_not_in_the_list_is_refused_on_every_file_system() {
        let wrong = [
            "loop=loop7",
            "loop",
            "offset=4096",
            "sizelimit=1",
            "errors=panic",
            "fatal_errors=panic",
            "bind",
            "rbind",
            "move",
            "remount",
            "ro",
            "suid",
            "dev",
            "exec",
            "user",
            "users",
            "owner",
            "group",
            "uid=1000",
            "logdev=sdb",
            "rtdev=sdb",
            "device=/dev/sda",
            "journal_dev=2049",
            "journal_path=/x",
            "subvol=x",
            "subvolid=5",
            "usrjquota=file",
            "context=x",
            "x-systemd.automount",
            "X-mount.mkdir",
            "X-mount.owner=1",
            "noatime=1",
            "noatime=",
            "=",
            "commit=-1",
            "nouuid",
            "norecovery",
            "abort",
            "sb=8193",
            "fault_injection=1",
            "data=/etc",
            "compress=zstd:/x",
            "-o",
            "noatime suid",
            "noatime\nsuid",
            "verity.roothash=x",
        ];
        for filesystem in FILESYSTEMS {
            for option in wrong {
                assert!(mount(&stack(filesystem, option)).is_err(), "{filesystem:?} {option}");
            }
        }
    }

    #[test]
    fn a_refusal_names_what_is_allowed() {
        let refused = |filesystem, options| mount(&stack(filesystem, options)).unwrap_err();
        assert_eq!(
            refused(Filesystem::Ext4, "errors=panic"),
            "`errors`: `panic` is not one of continue, remount-ro (for ext4)"
        );
        let unknown = refused(Filesystem::Xfs, "loop=loop7");
        assert!(unknown.starts_with("`loop` is not allowed; these are: defaults, rw, atime,"), "{unknown}");
        assert!(unknown.ends_with("swalloc, wsync (for xfs)"), "{unknown}");
    }
}
