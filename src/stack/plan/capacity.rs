//! How much room there is: on members, on an array of them, and on a file system.

use super::mkfs_values;
use crate::error::{Error, Result};
use crate::settings::{Filesystem, Named, Raid, Stack};
use crate::units::{GIB, MIB, approx_size, floor_mib};

/// The paper's data (Haas et al. 2020, section 3.2).
const DATA_BYTES: u64 = 400_000_000_000;
/// The minimum size of a data file and of a WAL file.
const FILES_BYTES_MIN: u64 = 20 * MIB;

/// Where the single partition of a drive begins: aligned to the drive's erase units, as partitioning tools do.
pub(super) const PARTITION_START_BYTES: u64 = MIB;

/// Where the used part of a drive ends: at a whole MiB, or the end of the drive.
pub(super) fn used_bytes(stack: &Stack, drive_bytes: u64) -> u64 {
    if stack.use_percent >= 100 {
        return drive_bytes;
    }
    floor_mib((u128::from(drive_bytes) * u128::from(stack.use_percent) / 100) as u64)
}

/// Bytes of a drive that become a member: all of it, or a partition.
pub(super) fn member_bytes(stack: &Stack, drive_bytes: u64) -> u64 {
    match stack.use_percent {
        100.. => drive_bytes,
        _ => used_bytes(stack, drive_bytes).saturating_sub(PARTITION_START_BYTES),
    }
}

/// How many members hold distinct data, times two; the rest holds copies or parity.
pub(super) fn data_halves(raid: Raid, members: u64) -> u64 {
    match raid {
        Raid::None | Raid::Md0 | Raid::Btrfs0 => 2 * members,
        Raid::Md1 => 2,
        Raid::Md5 | Raid::Btrfs5 => 2 * members.saturating_sub(1),
        Raid::Md6 => 2 * members.saturating_sub(2),
        Raid::Md10 | Raid::Btrfs1 | Raid::Btrfs10 => members,
    }
}

/// Bytes of all members combined, limited by the smallest: without the part that md keeps for itself, but
/// with the part that a file system keeps.
pub(super) fn device_bytes(stack: &Stack, members: &[u64]) -> u64 {
    let smallest = members.iter().min().copied().unwrap_or(0);
    let each = if stack.raid.is_md() { md_data_bytes(stack, smallest) } else { smallest };
    let halves = u128::from(data_halves(stack.raid, members.len() as u64));
    (u128::from(each) * halves / 2) as u64
}

/// Bytes of a member that md leaves for data: mdadm reserves room for a reshape before the data, a thousandth
/// of the member up to 128 MiB, but at least a chunk; that is rounded up to a MiB with the superblock and
/// room for a bitmap, and the end is rounded down to a chunk.
fn md_data_bytes(stack: &Stack, member_bytes: u64) -> u64 {
    let chunk = if stack.raid == Raid::Md1 { 0 } else { stack.chunk_bytes };
    let aside = (member_bytes / 1024).min(128 * MIB).max(2 * chunk) + chunk + 2 * MIB;
    member_bytes.saturating_sub(aside)
}

/// Bytes for files on a file system of `bytes`: without the part that it was seen to keep for itself, and 3%
/// less again, since nobody wants to measure a file system that is filled to the brim.
///
/// Measured with fallocate for e2fsprogs 1.47, xfsprogs 6.1, btrfs-progs 6.2 (also over four members) and
/// f2fs-tools 1.15, from the smallest size that each accepts up to 4 TiB: ext4 keeps inode tables of 1.6% (6%
/// below 512 MiB), a journal, and 5% in reserve that is not counted as free; XFS a log of 64 MiB and groups;
/// Btrfs chunks of metadata, up to 1 GiB each and in two copies, and an end that is not a whole chunk; F2FS
/// room for its garbage collection, which grows with about the square root of the size.
pub(super) fn file_room_bytes(stack: &Stack, bytes: u64) -> u64 {
    let filesystem = stack.filesystem;
    let share = |thousandths: u64| bytes / 1000 * thousandths;
    let kept = match filesystem {
        Filesystem::None => 0,
        Filesystem::Ext4 => (share(80) + 64 * MIB).min(share(100) + 16 * MIB),
        Filesystem::Xfs => share(10) + 96 * MIB,
        Filesystem::Btrfs => share(60).min(2 * GIB) + 96 * MIB,
        Filesystem::F2fs => 6 * (bytes / MIB).isqrt() * MIB + 16 * MIB,
    };
    let spare = if filesystem == Filesystem::None { 0 } else { share(30) };
    let by_options = mkfs_values::kept_bytes(stack, bytes);
    floor_mib(bytes.saturating_sub(kept + spare).saturating_sub(by_options))
}

/// Usable bytes of a stack over members of these sizes.
pub(super) fn usable_bytes(stack: &Stack, members: &[u64]) -> u64 {
    file_room_bytes(stack, device_bytes(stack, members))
}

/// Refuses what mkfs would refuse: too few bytes below the file system, or on one of Btrfs's members.
pub(super) fn refuse_too_small(stack: &Stack, members: &[u64]) -> Result<()> {
    let has = match members.iter().min() {
        Some(smallest) if stack.raid.is_btrfs() => *smallest,
        _ => device_bytes(stack, members),
    };
    refuse_fewer(stack.filesystem, has)
}

/// The same check, given the bytes below the file system.
pub(super) fn refuse_fewer(filesystem: Filesystem, has: u64) -> Result<()> {
    let least = match filesystem {
        Filesystem::None | Filesystem::Ext4 => 0,
        Filesystem::Xfs => 300 * MIB,
        Filesystem::Btrfs => 128 * MIB,
        Filesystem::F2fs => 64 * MIB,
    };
    if has >= least {
        return Ok(());
    }
    let (name, has, needs) = (filesystem.name(), approx_size(has), approx_size(least));
    Err(Error::input(format!("{has} is too small for {name}, which needs {needs}"))
        .hint("use larger members, or choose another stack.filesystem"))
}

/// Bytes of the data file and of the WAL file, given room for `room_bytes`.
///
/// By default the paper's 400 GB and 100 GB, or four fifths and a fifth of the room. Btrfs with
/// copy-on-write gets half of the room: each page goes to a new place, and an extent of the first fill
/// stays as long as any page of it is in use, so that random writes may take the data's size twice.
///
/// # Errors
/// Input, with both figures, if the requested sizes do not fit, or nothing fits.
pub(super) fn file_sizes(stack: &Stack, room_bytes: u64) -> Result<(u64, u64)> {
    let copies = stack.filesystem == Filesystem::Btrfs && stack.copy_on_write;
    let free = if copies { room_bytes / 2 } else { room_bytes };
    let data = stack.data_bytes.unwrap_or_else(|| {
        let share = stack.wal_bytes.map_or(free / 5 * 4, |wal| free.saturating_sub(wal));
        floor_mib(share.min(DATA_BYTES))
    });
    let wal = stack.wal_bytes.unwrap_or_else(|| floor_mib(data / 4));
    if data.saturating_add(wal) > room_bytes || data == 0 {
        let what = format!(
            "a data file of {} (stack.data) and a WAL file of {} (stack.wal) do not fit: the file system has room for {}",
            approx_size(data),
            approx_size(wal),
            approx_size(room_bytes)
        );
        return Err(Error::input(what)
            .hint("use smaller files or larger members, or leave out stack.mkfs_options that take room"));
    }
    if data + wal < FILES_BYTES_MIN {
        let (has, needs) = (approx_size(room_bytes), approx_size(FILES_BYTES_MIN));
        let what = format!("the file system would have room for {has}; data and WAL need {needs}");
        return Err(Error::input(what).hint("use larger members"));
    }
    Ok((data, wal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(raid: Raid, filesystem: Filesystem) -> Stack {
        Stack { raid, filesystem, ..Stack::default() }
    }

    #[test]
    fn the_size_of_an_array_is_never_overestimated() {
        // Members and array in KiB, as mdadm 4.2 made them with chunks of 512 KiB.
        let made = [
            (Raid::Md5, 4, 65_536, 190_464),
            (Raid::Md5, 4, 1_048_576, 3_139_584),
            (Raid::Md5, 4, 67_108_864, 201_126_912),
            (Raid::Md6, 4, 65_536, 126_976),
            (Raid::Md6, 4, 67_108_864, 134_084_608),
            (Raid::Md10, 4, 1_048_576, 2_093_056),
            (Raid::Md10, 3, 67_108_864, 100_563_456),
            (Raid::Md1, 2, 65_536, 64_512),
            (Raid::Md1, 2, 67_108_864, 67_042_304),
            (Raid::Md0, 4, 65_536, 253_952),
            (Raid::Md0, 4, 67_108_864, 268_169_216),
        ];
        for (raid, members, member_kib, array_kib) in made {
            let counted =
                device_bytes(&stack(raid, Filesystem::None), &vec![member_kib << 10; members]) >> 10;
            assert!(counted <= array_kib, "{raid:?} of {members} × {member_kib}: {counted} > {array_kib}");
            assert!(array_kib - counted <= 16 << 10, "{raid:?} of {members} × {member_kib} wastes");
        }
    }

    #[test]
    fn the_room_of_a_file_system_is_never_overestimated() {
        use Filesystem::{Btrfs, Ext4, F2fs, Xfs};
        // Size, and what was missing from it after fallocate, in MiB; for ext4, its reserve is missing as well.
        let seen = [
            (Ext4, 16, 3),
            (Ext4, 64, 11),
            (Ext4, 320, 35),
            (Ext4, 1024, 67),
            (Ext4, 2048, 119),
            (Ext4, 65_536, 1609),
            (Ext4, 1 << 20, 17_574),
            (Xfs, 320, 83),
            (Xfs, 1024, 103),
            (Xfs, 65_536, 553),
            (Xfs, 4 << 20, 31_300),
            (Btrfs, 120, 81),
            (Btrfs, 512, 81),
            (Btrfs, 2048, 222),
            (Btrfs, 8192, 529),
            (Btrfs, 65_536, 2065),
            (F2fs, 64, 49),
            (F2fs, 128, 67),
            (F2fs, 512, 117),
            (F2fs, 2048, 216),
            (F2fs, 8192, 442),
            (F2fs, 65_536, 1470),
        ];
        for (filesystem, size_mib, kept_mib) in seen {
            let room_mib = file_room_bytes(&stack(Raid::None, filesystem), size_mib * MIB) / MIB;
            let kept_mib = kept_mib + if filesystem == Ext4 { size_mib / 20 } else { 0 };
            assert!(room_mib <= size_mib - kept_mib, "{filesystem:?} of {size_mib} MiB: {room_mib}");
        }
    }

    #[test]
    fn files_have_the_papers_sizes_or_four_fifths_and_a_fifth() {
        let xfs = stack(Raid::Md0, Filesystem::Xfs);
        let (data, wal) = file_sizes(&xfs, 4 << 40).unwrap();
        assert!(DATA_BYTES - data < MIB && data.is_multiple_of(MIB));
        assert!(100_000_000_000 - wal < MIB && wal.is_multiple_of(MIB));
        let (data, wal) = file_sizes(&xfs, 100 * GIB).unwrap();
        assert_eq!((data, wal), (80 * GIB, 20 * GIB));
        let copying = Stack { copy_on_write: true, ..stack(Raid::None, Filesystem::Btrfs) };
        assert_eq!(file_sizes(&copying, 100 * GIB).unwrap(), (40 * GIB, 10 * GIB));
    }

    #[test]
    fn files_that_do_not_fit_are_refused_with_both_figures() {
        let asked = Stack { data_bytes: Some(90 * GIB), ..stack(Raid::None, Filesystem::Ext4) };
        let error = file_sizes(&asked, 100 * GIB).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        for figure in ["90.0 GiB", "22.5 GiB", "100 GiB"] {
            assert!(error.what.contains(figure), "{error}");
        }
        let fits = Stack { wal_bytes: Some(10 * GIB), ..asked };
        assert_eq!(file_sizes(&fits, 100 * GIB).unwrap(), (90 * GIB, 10 * GIB));
        let error = file_sizes(&stack(Raid::None, Filesystem::Ext4), 4 * MIB).unwrap_err();
        assert!(error.what.contains("room for 4.00 MiB; data and WAL need 20.0 MiB"), "{error}");
        assert!(file_sizes(&stack(Raid::None, Filesystem::Ext4), 0).is_err());
    }

    #[test]
    fn what_mkfs_would_refuse_is_refused_first() {
        let refused =
            |raid, filesystem, members: &[u64]| refuse_too_small(&stack(raid, filesystem), members).is_err();
        assert!(refused(Raid::Md0, Filesystem::Xfs, &[128 * MIB; 2]));
        assert!(!refused(Raid::Md0, Filesystem::Xfs, &[160 * MIB; 2]));
        assert!(refused(Raid::Btrfs0, Filesystem::Btrfs, &[256 * MIB, 100 * MIB]));
        assert!(!refused(Raid::None, Filesystem::Ext4, &[64 * MIB]));
    }

    #[test]
    fn a_share_of_a_drive_begins_after_the_table_and_leaves_the_rest() {
        let most = Stack { use_percent: 80, ..Stack::default() };
        assert_eq!(used_bytes(&most, 10 * GIB + 4096), 8 * GIB);
        assert_eq!(member_bytes(&most, 10 * GIB + 4096), 8 * GIB - MIB);
        assert_eq!(member_bytes(&Stack::default(), 10 * GIB + 4096), 10 * GIB + 4096);
    }
}
