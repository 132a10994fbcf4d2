//! The options of mkfs that a profile may give.

use super::allowed::{Allowed, Takes, names, row};
use crate::settings::named::Named;
use crate::settings::values::{Filesystem, Stack};

const SWITCH: Takes = Takes::Word(&["0", "1"]);
const ANY: Takes = Takes::Number(u32::MAX as u64);

/// The words of `stack.mkfs_options`, each option and each value a word; none without a file system.
///
/// # Errors
/// Why one is not allowed, and what is.
pub fn mkfs(stack: &Stack) -> Result<Vec<String>, String> {
    if stack.filesystem == Filesystem::None {
        return Ok(Vec::new());
    }
    let (mut given, mut words) = (stack.mkfs_options.split_whitespace(), Vec::new());
    while let Some(word) = given.next() {
        let Some((name, glued)) = split(word) else {
            return Err(format!("`{word}` is neither an option nor the value of one; {}", allowed(stack)));
        };
        let Some(found) = rows(stack).find(|row| row.names.contains(&name)) else {
            return Err(format!("`{name}` is not allowed; {}", allowed(stack)));
        };
        words.push(name.to_owned());
        if matches!(found.takes, Takes::Nothing) && glued.is_none() {
            continue;
        }
        let Some(value) = glued.or_else(|| given.next()) else {
            return Err(format!("`{name}` needs a value, {}", found.takes.expected()));
        };
        if let Some(why) = found.takes.refuses(value) {
            return Err(format!("`{name}`: {why}"));
        }
        words.push(value.to_owned());
    }
    Ok(words)
}

/// An option and the value glued to it (`-m0`, `--nodesize=16k`); none if it is not an option.
fn split(word: &str) -> Option<(&str, Option<&str>)> {
    if word.starts_with("--") {
        return Some(word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value))));
    }
    let letter = word.strip_prefix('-')?.chars().next()?;
    let (name, value) = word.split_at(1 + letter.len_utf8());
    Some((name, Some(value).filter(|value| !value.is_empty())))
}

fn rows(stack: &Stack) -> impl Iterator<Item = &'static Allowed> {
    let rows = match stack.filesystem {
        Filesystem::Ext4 => EXT4,
        Filesystem::Xfs => XFS,
        Filesystem::Btrfs => BTRFS,
        Filesystem::F2fs => F2FS,
        Filesystem::None => &[],
    };
    // If Btrfs is the array, `stack.raid` says where copies are, and what the stack survives follows from that.
    let own_raid = stack.raid.is_btrfs();
    rows.iter().filter(move |row| !(own_raid && row.names.contains(&"-m")))
}

fn allowed(stack: &Stack) -> String {
    format!("mkfs.{} may be given {}", stack.filesystem.name(), names(rows(stack)))
}

const EXT4: &[Allowed] = &[
    row(&["-b"], Takes::Word(&["1024", "2048", "4096", "8192", "16384", "32768", "65536"])),
    row(&["-C"], Takes::Size),
    row(&["-E"], Takes::Settings(EXT4_EXTENDED)),
    row(&["-e"], Takes::Word(&["continue", "remount-ro"])),
    row(
        &["-G"],
        Takes::Word(&["1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096"]),
    ),
    row(&["-g"], ANY),
    row(&["-I"], Takes::Word(&["128", "256", "512", "1024", "2048", "4096"])),
    row(&["-i"], Takes::From(1024, 64 << 20)),
    row(&["-J"], Takes::Settings(&[row(&["size"], ANY), row(&["fast_commit_size"], ANY)])),
    row(&["-m"], Takes::Percent(50)),
    row(&["-N"], ANY),
    row(&["-O"], Takes::Words(EXT4_FEATURES)),
    row(&["-T"], Takes::Word(&["default", "small", "big", "huge", "largefile", "largefile4", "news"])),
];

const EXT4_EXTENDED: &[Allowed] = &[
    row(&["stride"], ANY),
    row(&["stripe_width", "stripe-width"], ANY),
    row(&["lazy_itable_init"], SWITCH),
    row(&["lazy_journal_init"], SWITCH),
    row(&["packed_meta_blocks"], SWITCH),
    row(&["num_backup_sb"], Takes::Word(&["0", "1", "2"])),
    row(&["assume_storage_prezeroed"], SWITCH),
    row(&["orphan_file_size"], Takes::Size),
    row(&["nodiscard"], Takes::Nothing),
];

/// Left out: journals for other file systems, encryption, quotas.
const EXT4_FEATURES: &[&str] = &[
    "64bit",
    "bigalloc",
    "dir_index",
    "dir_nlink",
    "ea_inode",
    "ext_attr",
    "extent",
    "extents",
    "extra_isize",
    "fast_commit",
    "filetype",
    "flex_bg",
    "has_journal",
    "huge_file",
    "inline_data",
    "large_dir",
    "large_file",
    "meta_bg",
    "metadata_csum",
    "metadata_csum_seed",
    "orphan_file",
    "resize_inode",
    "sparse_super",
    "sparse_super2",
    "uninit_bg",
];

const XFS: &[Allowed] = &[
    row(&["-b"], Takes::Settings(&[row(&["size"], Takes::Size)])),
    row(&["-d"], Takes::Settings(XFS_DATA)),
    row(&["-i"], Takes::Settings(XFS_INODES)),
    row(&["-l"], Takes::Settings(XFS_LOG)),
    row(&["-m"], Takes::Settings(XFS_METADATA)),
    row(&["-n"], Takes::Settings(XFS_NAMING)),
    row(&["-s"], Takes::Settings(&[row(&["size"], Takes::Size)])),
];

const XFS_DATA: &[Allowed] = &[
    row(&["agcount"], ANY),
    row(&["agsize"], Takes::Size),
    row(&["sunit"], Takes::Size),
    row(&["swidth"], Takes::Size),
    row(&["su"], Takes::Size),
    row(&["sw"], ANY),
    row(&["noalign"], Takes::Nothing),
    row(&["extszinherit"], ANY),
    row(&["cowextsize"], ANY),
    row(&["sectsize"], Takes::Size),
];

const XFS_INODES: &[Allowed] = &[
    row(&["size"], Takes::Size),
    row(&["perblock"], ANY),
    row(&["maxpct"], Takes::Number(100)),
    row(&["attr"], Takes::Word(&["0", "1", "2"])),
    row(&["projid32bit"], SWITCH),
    row(&["sparse"], SWITCH),
    row(&["nrext64"], SWITCH),
    row(&["exchange"], SWITCH),
];

const XFS_LOG: &[Allowed] = &[
    row(&["size"], Takes::Size),
    row(&["agnum"], ANY),
    row(&["version"], Takes::Word(&["1", "2"])),
    row(&["sunit"], Takes::Size),
    row(&["su"], Takes::Size),
    row(&["lazy-count"], SWITCH),
    row(&["sectsize"], Takes::Size),
];

const XFS_METADATA: &[Allowed] = &[
    row(&["crc"], SWITCH),
    row(&["finobt"], SWITCH),
    row(&["rmapbt"], SWITCH),
    row(&["reflink"], SWITCH),
    row(&["inobtcount"], SWITCH),
    row(&["bigtime"], SWITCH),
];

/// Left out: case-insensitive names, which kernels are no longer built with.
const XFS_NAMING: &[Allowed] =
    &[row(&["size"], Takes::Size), row(&["version"], Takes::Word(&["2"])), row(&["ftype"], SWITCH)];

const BTRFS: &[Allowed] = &[
    row(&["-m", "--metadata"], Takes::Word(&["single", "dup"])),
    row(&["-n", "--nodesize"], Takes::Size),
    row(&["-s", "--sectorsize"], Takes::Size),
    row(&["-O", "--features"], Takes::Words(BTRFS_FEATURES)),
    row(&["-R", "--runtime-features"], Takes::Words(&["free-space-tree"])),
    row(&["--csum", "--checksum"], Takes::Word(&["crc32c", "xxhash", "sha256", "blake2"])),
];

/// Left out: quotas and zones.
const BTRFS_FEATURES: &[&str] = &[
    "bgt",
    "block-group-tree",
    "extref",
    "free-space-tree",
    "fst",
    "no-holes",
    "raid-stripe-tree",
    "raid56",
    "rst",
    "skinny-metadata",
];

const F2FS: &[Allowed] = &[
    row(&["-a"], SWITCH),
    row(&["-i"], Takes::Nothing),
    row(&["-O"], Takes::Words(F2FS_FEATURES)),
    row(&["-o"], Takes::Percent(50)),
    row(&["-s"], ANY),
    row(&["-w"], ANY),
    row(&["-z"], ANY),
];

/// Left out: encryption and quotas.
const F2FS_FEATURES: &[&str] = &[
    "compression",
    "extra_attr",
    "flexible_inline_xattr",
    "inode_checksum",
    "inode_crtime",
    "lost_found",
    "sb_checksum",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::values::Raid;

    fn stack(filesystem: Filesystem, options: &str) -> Stack {
        Stack { filesystem, mkfs_options: options.into(), ..Stack::default() }
    }

    #[test]
    fn options_become_words_and_may_be_glued_to_their_values() {
        for (filesystem, options, words) in [
            (Filesystem::Xfs, " -m reflink=0,crc=1  -ssize=4096 ", "-m reflink=0,crc=1 -s size=4096"),
            (Filesystem::Ext4, "-m0.5 -O ^has_journal,bigalloc", "-m 0.5 -O ^has_journal,bigalloc"),
            (
                Filesystem::Ext4,
                "-E stride=4,stripe_width=8,nodiscard",
                "-E stride=4,stripe_width=8,nodiscard",
            ),
            (Filesystem::Btrfs, "--nodesize=16k -m single", "--nodesize 16k -m single"),
            (Filesystem::Btrfs, "--csum xxhash", "--csum xxhash"),
            (Filesystem::F2fs, "-i -O extra_attr,inode_checksum", "-i -O extra_attr,inode_checksum"),
            (Filesystem::None, "-p anything", ""),
        ] {
            assert_eq!(mkfs(&stack(filesystem, options)).unwrap().join(" "), words);
        }
    }

    #[test]
    fn whatever_is_not_in_the_list_is_refused() {
        for (filesystem, wrong) in [
            (Filesystem::Xfs, "-pproto"),
            (Filesystem::Xfs, "-p proto"),
            (Filesystem::Xfs, "-c options=x"),
            (Filesystem::Xfs, "-N"),
            (Filesystem::Xfs, "-l logdev=sdb,size=64m"),
            (Filesystem::Xfs, "-r rtdev=sdb"),
            (Filesystem::Xfs, "-m uuid=generate"),
            (Filesystem::Xfs, "-m reflink=0,uuid=x"),
            (Filesystem::Xfs, "-dname=x"),
            (Filesystem::Xfs, "-d file,size=64m"),
            (Filesystem::Xfs, "-d agcount"),
            (Filesystem::Ext4, "-dDIR"),
            (Filesystem::Ext4, "-z FILE"),
            (Filesystem::Ext4, "-zFILE"),
            (Filesystem::Ext4, "-lbadblocks"),
            (Filesystem::Ext4, "-J device=LABEL=x"),
            (Filesystem::Ext4, "-O journal_dev"),
            (Filesystem::Ext4, "-E offset=4096"),
            (Filesystem::Ext4, "-E discard"),
            (Filesystem::Ext4, "-E stride=4,root_owner=1000:1000"),
            (Filesystem::Ext4, "-e panic"),
            (Filesystem::Ext4, "-epanic"),
            (Filesystem::Ext4, "-U random"),
            (Filesystem::Ext4, "-n"),
            (Filesystem::Ext4, "-t ext2"),
            (Filesystem::Ext4, "-m 0 sda"),
            (Filesystem::Ext4, "-m"),
            (Filesystem::Ext4, "-m -d"),
            (Filesystem::Ext4, "-G 0"),
            (Filesystem::Ext4, "-G 12"),
            (Filesystem::Ext4, "-i 1"),
            (Filesystem::Ext4, "-µ"),
            (Filesystem::Btrfs, "sda"),
            (Filesystem::Btrfs, "/dev/sda"),
            (Filesystem::Btrfs, "-rDIR"),
            (Filesystem::Btrfs, "--rootdir=DIR"),
            (Filesystem::Btrfs, "--rootd=DIR"),
            (Filesystem::Btrfs, "-d single"),
            (Filesystem::Btrfs, "-b 64m"),
            (Filesystem::F2fs, "-c sdb"),
            (Filesystem::F2fs, "-csdb"),
            (Filesystem::F2fs, "-i1"),
            (Filesystem::F2fs, "-t 1"),
        ] {
            assert!(mkfs(&stack(filesystem, wrong)).is_err(), "{wrong}");
        }
        let of_raid = Stack { raid: Raid::Btrfs1, ..stack(Filesystem::Btrfs, "-m single") };
        assert!(mkfs(&of_raid).is_err(), "what the stack survives would be another");
    }

    #[test]
    fn a_refusal_names_what_is_allowed() {
        let refused = |filesystem, options| mkfs(&stack(filesystem, options)).unwrap_err();
        assert_eq!(
            refused(Filesystem::Xfs, "-pproto"),
            "`-p` is not allowed; mkfs.xfs may be given -b, -d, -i, -l, -m, -n, -s"
        );
        assert_eq!(
            refused(Filesystem::Xfs, "-m uuid=1"),
            "`-m`: `uuid` is not allowed; these are: crc, finobt, rmapbt, reflink, inobtcount, bigtime"
        );
        assert_eq!(refused(Filesystem::Xfs, "-m crc=7"), "`-m`: `crc`: `7` is not one of 0, 1");
        assert_eq!(refused(Filesystem::Ext4, "-e panic"), "`-e`: `panic` is not one of continue, remount-ro");
        assert_eq!(refused(Filesystem::Ext4, "-m"), "`-m` needs a value, a number up to 50");
        assert_eq!(refused(Filesystem::F2fs, "-i1"), "`-i`: `1` is not possible: it takes no value");
    }
}
