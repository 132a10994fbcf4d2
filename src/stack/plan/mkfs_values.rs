//! The values in `stack.mkfs_options`, and how much of the room they take.

use crate::settings::{Filesystem, Stack, filesystem_options};
use crate::units::{GIB, KIB, MIB};

/// Defaults of mkfs.ext4 (`mke2fs.conf` of e2fsprogs 1.47).
const INODE_BYTES: u64 = 256;
const BYTES_PER_INODE: u64 = 16 * KIB;
const BYTES_PER_INODE_NEWS: u64 = 4 * KIB;
const RESERVE_PERCENT: u64 = 5;
/// The smallest log that mkfs.xfs makes.
const LOG_BYTES: u64 = 64 * MIB;

/// Bytes that the options take from a file system of `bytes`, besides what it keeps by default.
pub(super) fn kept_bytes(stack: &Stack, bytes: u64) -> u64 {
    // Options that are not allowed are refused elsewhere.
    let options = filesystem_options::mkfs(stack).unwrap_or_default();
    let number = |option| value_of(&options, option, "").and_then(|value| value.parse::<u64>().ok());
    let size = |option, setting| value_of(&options, option, setting).and_then(bytes_of);
    let percent = |percent: u64| bytes / 100 * percent;
    match stack.filesystem {
        Filesystem::Ext4 => {
            let news = value_of(&options, "-T", "") == Some("news");
            let per_inode = if news { BYTES_PER_INODE_NEWS } else { BYTES_PER_INODE };
            // mkfs refuses more than that.
            let asked = number("-N").filter(|inodes| *inodes <= bytes / KIB);
            let inodes = asked.unwrap_or(bytes / number("-i").unwrap_or(per_inode).max(1));
            let tables = inodes.saturating_mul(number("-I").unwrap_or(INODE_BYTES));
            let reserve = number("-m").unwrap_or(0).saturating_sub(RESERVE_PERCENT);
            let journal = number_of_setting(&options, "-J", "size").unwrap_or(0).saturating_mul(MIB);
            tables
                .saturating_sub(bytes / BYTES_PER_INODE * INODE_BYTES)
                .saturating_add(percent(reserve))
                .saturating_add(journal)
        }
        Filesystem::Xfs => size("-l", "size").unwrap_or(0).saturating_sub(LOG_BYTES),
        Filesystem::F2fs => percent(number("-o").unwrap_or(0)),
        Filesystem::Btrfs | Filesystem::None => 0,
    }
}

fn number_of_setting(options: &[String], option: &str, setting: &str) -> Option<u64> {
    value_of(options, option, setting)?.parse().ok()
}

/// The last value of an option, or of one of its settings (`-d agcount=4`); empty for a setting without a value.
pub(super) fn value_of<'a>(options: &'a [String], option: &str, setting: &str) -> Option<&'a str> {
    let mut values = options.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].as_str());
    if setting.is_empty() {
        return values.next_back();
    }
    let settings = values.flat_map(|value| value.split(','));
    let named = settings.map(|one| one.split_once('=').unwrap_or((one, "")));
    named.rev().find(|(name, _)| *name == setting).map(|(_, value)| value)
}

/// A size in bytes, KiB, MiB or GiB; any other unit is left to mkfs.
pub(super) fn bytes_of(value: &str) -> Option<u64> {
    let unit = match value.chars().next_back()?.to_ascii_lowercase() {
        'k' => KIB,
        'm' => MIB,
        'g' => GIB,
        _ => 1,
    };
    let number = if unit == 1 { value } else { &value[..value.len() - 1] };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::plan::capacity;

    #[test]
    fn the_room_beside_what_options_take_is_never_overestimated() {
        // From statfs, for e2fsprogs 1.47 and xfsprogs 6.1: size, and free bytes for non-root users, in MiB.
        let seen = [
            (Filesystem::Ext4, "-i 1024", 256, 165),
            (Filesystem::Ext4, "-i 1024", 1024, 653),
            (Filesystem::Ext4, "-i 1024", 16_384, 11_268),
            (Filesystem::Ext4, "-i 1024 -I 128", 16_384, 13_316),
            (Filesystem::Ext4, "-i 4096 -I 1024", 16_384, 11_279),
            (Filesystem::Ext4, "-m 50", 256, 97),
            (Filesystem::Ext4, "-m50", 16_384, 7746),
            (Filesystem::Ext4, "-m 20", 1024, 752),
            (Filesystem::Ext4, "-J size=40", 256, 181),
            (Filesystem::Ext4, "-N 100000", 1024, 897),
            (Filesystem::Ext4, "-T news", 16_384, 14_351),
            (Filesystem::Xfs, "-l size=128m", 1024, 857),
            (Filesystem::Xfs, "-l size=128m", 16_384, 16_110),
        ];
        for (filesystem, options, size_mib, free_mib) in seen {
            let stack = Stack { filesystem, mkfs_options: options.into(), ..Stack::default() };
            let room_mib = capacity::file_room_bytes(&stack, size_mib * MIB) / MIB;
            assert!(room_mib <= free_mib, "{options} of {size_mib} MiB: {room_mib} of {free_mib}");
            assert!(room_mib >= free_mib / 2, "{options} of {size_mib} MiB: {room_mib} of {free_mib}");
        }
    }

    #[test]
    fn sizes_have_the_units_of_mkfs() {
        let sizes = ["4096", "4k", "4K", "128m", "1g", "", "k", "4x"].map(bytes_of);
        let seen = [Some(4096), Some(4096), Some(4096), Some(128 * MIB), Some(GIB), None, None, None];
        assert_eq!(sizes, seen);
    }
}
