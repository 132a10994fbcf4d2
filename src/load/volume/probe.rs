//! What a target supports, found by trying.

use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{
    Advice, AtFlags, IFlags, StatxFlags, fadvise, fstatfs, fstatvfs, ioctl_blksszget, ioctl_getflags, statx,
};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::direct::{AlignedBuffer, reopen};
use crate::error::{Error, Result, describe_errno};
use crate::host::{Feature, TargetFacts, emulated_drive, nvme_namespace, polling_of};

const RWF_DONTCACHE: u32 = 0x80;
const BTRFS: u64 = 0x9123_683e;
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const SAMPLE_BYTES: usize = 4096;

/// File systems by the magic that statfs gives (`linux/magic.h`).
const MEDIA: [(u64, &str); 17] = [
    (0xef53, "ext4"),
    (0x5846_5342, "XFS"),
    (BTRFS, "Btrfs"),
    (TMPFS, "tmpfs"),
    (RAMFS, "ramfs"),
    (0xf2f5_2010, "F2FS"),
    (0x2fc1_2fc1, "ZFS"),
    (0xca45_1a4e, "bcachefs"),
    (0x794c_7630, "overlayfs"),
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x2011_bab0, "exFAT"),
    (0x7366_746e, "NTFS"),
    (0x4d44, "FAT"),
];

/// Facts about one member.
#[derive(Debug)]
struct MemberFacts {
    medium: String,
    direct: Feature,
    direct_align_bytes: u64,
    uncached: Feature,
    polled: Feature,
    nvme_commands: Feature,
    quietly_buffered: Option<String>,
}

/// Facts about the members together: what all of them support.
pub fn examine(members: &[(&File, bool)], read_only: bool, mounted: Option<String>) -> TargetFacts {
    let each: Vec<MemberFacts> =
        members.iter().map(|(file, device)| examine_member(file, *device, read_only)).collect();
    let least = |feature: fn(&MemberFacts) -> &Feature| {
        let missing = each.iter().map(feature).find(|feature| feature.reason().is_some());
        missing.cloned().unwrap_or(Feature::Present)
    };
    let mut media: Vec<&str> = each.iter().map(|facts| facts.medium.as_str()).collect();
    media.dedup();
    TargetFacts {
        devices: members.first().is_some_and(|(_, device)| *device),
        medium: media.join(", "),
        direct: least(|facts| &facts.direct),
        direct_align_bytes: each.iter().map(|facts| facts.direct_align_bytes).max().unwrap_or(512),
        uncached: least(|facts| &facts.uncached),
        polled: least(|facts| &facts.polled),
        nvme_commands: least(|facts| &facts.nvme_commands),
        quietly_buffered: each.iter().find_map(|facts| facts.quietly_buffered.clone()),
        emulated: members.iter().find_map(|(file, _)| emulated_drive(file)),
        read_only,
        mounted,
    }
}

/// Facts about what a folder's file system supports, tried on an unnamed file.
pub fn examine_folder(dir: &Path) -> Result<TargetFacts> {
    let made = || {
        let mut file = tempfile::tempfile_in(dir)?;
        file.write_all(&vec![1; 1 << 18])?;
        file.sync_all()?;
        Ok(file)
    };
    let file = made().map_err(|error: std::io::Error| Error::os("cannot try I/O in", dir, error))?;
    Ok(examine(&[(&file, false)], false, None))
}

fn examine_member(file: &File, device: bool, read_only: bool) -> MemberFacts {
    let magic = fstatfs(file).map_or(0, |stat| stat.f_type as u64 & 0xffff_ffff);
    let named = MEDIA.iter().find(|(known, _)| *known == magic).map(|(_, name)| (*name).to_owned());
    let medium = if device { "block device".into() } else { named.unwrap_or_else(|| format!("{magic:#x}")) };
    let direct_align_bytes = direct_align_bytes(file, device);
    let direct = try_direct(file, direct_align_bytes);
    let buffered = || match magic {
        _ if device || direct != Feature::Present => None,
        TMPFS | RAMFS => Some(format!("{medium} is memory: direct I/O is the same as cached there")),
        BTRFS => btrfs_buffers(file).or_else(|| seen_in_cache(file)),
        _ => seen_in_cache(file),
    };
    // Checking the cache means emptying it first, which we must not do to files that others may use.
    let quietly_buffered = if read_only { None } else { buffered() };
    MemberFacts {
        medium,
        direct_align_bytes,
        uncached: try_uncached(file),
        direct,
        polled: polling_of(file),
        nvme_commands: nvme_namespace(file).map_or_else(Feature::Missing, |_| Feature::Present),
        quietly_buffered,
    }
}

/// The unit of direct I/O: from the kernel (6.1), else the logical block of the device or file system. 0 if
/// the kernel reports that there is no direct I/O.
fn direct_align_bytes(file: &File, device: bool) -> u64 {
    let answer = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .ok()
        .filter(|stat| stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    match answer {
        Some(stat) => u64::from(stat.stx_dio_offset_align),
        None if device => ioctl_blksszget(file).map_or(4096, u64::from),
        None => fstatvfs(file).map_or(4096, |stat| stat.f_frsize),
    }
}

fn try_direct(file: &File, align_bytes: u64) -> Feature {
    let missing = |reason: &str| Feature::Missing(format!("direct I/O is not possible here: {reason}"));
    if align_bytes == 0 {
        return missing("the kernel reports that this file does not support it");
    }
    let file = match reopen(file, false, true) {
        Ok(file) => file,
        Err(error) => return missing(&describe_errno(error.raw_os_error())),
    };
    let mut buffer = AlignedBuffer::new(align_bytes as usize);
    match file.read_exact_at(buffer.bytes_mut(), align_bytes) {
        Ok(()) => Feature::Present,
        Err(error) => missing(&crate::error::describe(&error)),
    }
}

/// Whether a read with `RWF_DONTCACHE` works on a file or device.
pub fn try_uncached(file: &File) -> Feature {
    let mut buffer = vec![0; SAMPLE_BYTES];
    let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
    match preadv2(file, &mut [IoSliceMut::new(&mut buffer)], 0, flags) {
        Ok(_) => Feature::Present,
        Err(Errno::OPNOTSUPP) => Feature::Missing("RWF_DONTCACHE is not supported here".into()),
        Err(error) => {
            let error = describe_errno(error.raw_os_error());
            Feature::Missing(format!("RWF_DONTCACHE does not work here: {error}"))
        }
    }
}

/// Btrfs writes directly only to files without checksums. Others it buffers, and drops from the cache at
/// once, so checking the cache does not find them. The file's flag tells: without copy-on-write there are no
/// checksums.
fn btrfs_buffers(file: &File) -> Option<String> {
    let nocow = ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::NOCOW));
    (!nocow).then(|| {
        "Btrfs passes direct writes of files with copy-on-write and checksums through the page cache".into()
    })
}

/// Whether a direct read leaves its page in the page cache. `mincore` shows that without side effects; a read
/// with `RWF_NOWAIT` would start read-ahead itself and then find its pages.
fn seen_in_cache(file: &File) -> Option<String> {
    let direct = reopen(file, false, true).ok()?;
    let length = NonZeroU64::new(SAMPLE_BYTES as u64);
    file.sync_data().ok()?;
    fadvise(file, 0, length, Advice::DontNeed).ok()?;
    if first_page_is_cached(file)? {
        return None;
    }
    direct.read_exact_at(AlignedBuffer::new(SAMPLE_BYTES).bytes_mut(), 0).ok()?;
    first_page_is_cached(file)?.then(|| "a direct read left its page in the page cache".into())
}

/// Whether the first page of a file is in the page cache; `None` if the kernel does not report it.
#[allow(unsafe_code)]
fn first_page_is_cached(file: &File) -> Option<bool> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let mut resident = 0_u8;
    // SAFETY: the mapping is one page at an address that the kernel chooses, is never accessed
    // through memory, and is unmapped here; mincore writes one byte for that one page.
    unsafe {
        let page =
            mmap(std::ptr::null_mut(), SAMPLE_BYTES, ProtFlags::READ, MapFlags::SHARED, file, 0).ok()?;
        let answer = libc::mincore(page, SAMPLE_BYTES, &raw mut resident);
        munmap(page, SAMPLE_BYTES).ok()?;
        (answer == 0).then_some(resident & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_pages_are_found_in_the_page_cache() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all_at(&[1; SAMPLE_BYTES], 0).unwrap();
        assert_eq!(first_page_is_cached(&file), Some(true));
        let medium = examine_member(&file, false, false).medium;
        if medium == "ext4" || medium == "XFS" {
            assert_eq!(seen_in_cache(&file), None);
            assert_eq!(first_page_is_cached(&file), Some(false));
        }
    }

    #[test]
    fn the_least_capable_member_counts() {
        let (file, pipe) =
            (tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap(), std::io::pipe().unwrap());
        file.write_all_at(&[1; 2 * SAMPLE_BYTES], 0).unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe.1));
        let facts = examine(&[(&file, false), (&pipe, false)], true, None);
        assert!(facts.direct.reason().is_some() && facts.uncached.reason().is_some());
    }
}
