//! Addresses that controllers behind an IOMMU see, and the memory there.
//!
//! The drives of this process share one address space, so that a buffer serves all of them: an I/O address
//! space of iommufd if the kernel has that (Linux 6.6), otherwise VFIO's container. The IOMMU lets a
//! controller reach what is mapped there and nothing else.
#![allow(unsafe_code)] // maps memory for controllers, and ioctls that no crate wraps

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use iommufd_bindings::iommufd::{
    IOMMUFD_CMD_IOAS_IOVA_RANGES, IOMMUFD_TYPE, iommu_ioas_iova_ranges, iommu_iova_range,
};
use iommufd_ioctls::IommuFd;
use tempfile::TempDir;
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, VFIO_TYPE, vfio_info_cap_header, vfio_iommu_type1_info,
    vfio_iommu_type1_info_cap_iova_range, vfio_iova_range,
};
use vfio_ioctls::{VfioContainer, VfioDevice, VfioIommufd, VfioOps};

use super::memory::{LARGE_PAGE_BYTES, Memory};
use super::words::{cannot_map, cannot_open};
use crate::error::{Error, Result, describe};
use crate::units::approx_size;

/// Lower addresses are left out: 0 means no address, and the first MiB is special on PCs.
const FIRST_ADDRESS: u64 = 1 << 20;
/// Maximum ranges of an iommufd address space.
const RANGES_MAX: usize = 512;

/// The process's address space.
static SPACE: Mutex<Weak<Space>> = Mutex::new(Weak::new());

/// What manages the addresses.
enum Keeper {
    Iommufd(Arc<VfioIommufd>),
    Container(Arc<VfioContainer>),
}

impl Keeper {
    /// Prefers iommufd, if the kernel has it and the device's file for it.
    fn open(device: &Path) -> Result<Self> {
        if device.join("vfio-dev").is_dir()
            && let Ok(opened) = IommuFd::new()
            && let Ok(space) = VfioIommufd::new(Arc::new(opened), None, None)
        {
            return Ok(Self::Iommufd(Arc::new(space)));
        }
        let container = VfioContainer::new(None).map_err(|error| cannot_open("VFIO", &error))?;
        Ok(Self::Container(Arc::new(container)))
    }

    fn operations(&self) -> Arc<dyn VfioOps> {
        match self {
            Self::Iommufd(space) => space.clone(),
            Self::Container(container) => container.clone(),
        }
    }

    /// The addresses that the IOMMU translates; it skips, for example, the window of message-signalled
    /// interrupts.
    fn ranges(&self) -> std::io::Result<Vec<(u64, u64)>> {
        match self {
            Self::Iommufd(space) => ranges_of_space(space),
            Self::Container(container) => ranges_of_container(container),
        }
    }
}

/// An address space, and the addresses handed out in it.
pub struct Space {
    keeper: Keeper,
    addresses: Mutex<Addresses>,
}

impl Space {
    /// The process's address space, created for the first drive; `device` is a drive's folder in sysfs.
    ///
    /// # Errors
    /// If the kernel gives none, in words.
    pub fn open(device: &Path) -> Result<Arc<Self>> {
        let mut space = SPACE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(space) = space.upgrade() {
            return Ok(space);
        }
        let opened = Arc::new(Self { keeper: Keeper::open(device)?, addresses: Mutex::default() });
        *space = Arc::downgrade(&opened);
        Ok(opened)
    }

    /// Adds a device to the space, and learns which addresses remain usable.
    pub fn take(&self, device: &Path, name: &str) -> Result<Taken> {
        let folder = match self.keeper {
            Keeper::Iommufd(_) => None,
            Keeper::Container(_) => Some(lasting_folder(device, name).map_err(|error| {
                let what = format!("cannot record the IOMMU group of {name}: {}", describe(&error));
                Error::failed(what).hint("TMPDIR must name a folder that can be written to")
            })?),
        };
        let path = folder.as_ref().map_or(device.to_owned(), |folder| folder.path().join(name));
        let taken = VfioDevice::new(&path, self.keeper.operations(), true);
        let taken = Taken { device: taken.map_err(|error| cannot_open(name, &error))?, _folder: folder };
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.ranges = self.keeper.ranges().map_err(|error| {
            Error::failed(format!("cannot ask for the IOMMU's addresses: {}", describe(&error)))
        })?;
        Ok(taken)
    }

    /// Maps memory for all controllers in the space.
    pub fn map(self: &Arc<Self>, memory: Memory) -> Result<Mapped> {
        let bytes = memory.bytes();
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let address = addresses.take(bytes as u64).ok_or_else(|| {
            Error::failed(format!("the IOMMU has no {} of addresses left", approx_size(bytes as u64)))
        })?;
        let operations = self.keeper.operations();
        // SAFETY: the memory belongs to this mapping until it is unmapped, and is accessed as volatile or
        // while no command names it (see `Dma`).
        let mapped = unsafe { operations.vfio_dma_map(address, bytes, memory.start().as_ptr()) };
        match mapped {
            Ok(()) => Ok(Mapped { space: self.clone(), address, memory }),
            Err(error) => {
                addresses.give_back(address);
                Err(cannot_map(bytes as u64, &error))
            }
        }
    }
}

/// A device in the space.
pub struct Taken {
    pub device: VfioDevice,
    /// Dropped after the device.
    _folder: Option<TempDir>,
}

/// A folder with one named after the device, and in that its link to the IOMMU group as sysfs has it now.
///
/// When a device is dropped, the crate looks up the group again, after it has closed the device. A pulled
/// drive has lost its folder in sysfs by then, and the crate would panic.
fn lasting_folder(device: &Path, name: &str) -> std::io::Result<TempDir> {
    let group = std::fs::read_link(device.join("iommu_group"))?;
    let folder = tempfile::Builder::new().prefix("stacktune-vfio-").tempdir()?;
    let stand_in = folder.path().join(name);
    std::fs::create_dir(&stand_in)?;
    std::os::unix::fs::symlink(group, stand_in.join("iommu_group"))?;
    Ok(folder)
}

/// Addresses of an address space.
#[derive(Debug, Default)]
struct Addresses {
    /// Usable addresses: first and last byte of each range.
    ranges: Vec<(u64, u64)>,
    /// Used addresses: first byte, and length in bytes.
    used: BTreeMap<u64, u64>,
}

impl Addresses {
    /// The first free address for that many bytes, aligned so that the IOMMU can use large pages.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let align = |at: u64| at.checked_next_multiple_of(LARGE_PAGE_BYTES as u64);
        for &(first, last) in &self.ranges {
            let mut at = align(first.max(FIRST_ADDRESS))?;
            for (&used, &length) in self.used.range(..=last) {
                if at.checked_add(bytes)? <= used {
                    break;
                }
                at = at.max(align(used.checked_add(length)?)?);
            }
            if at.checked_add(bytes - 1)? <= last {
                self.used.insert(at, bytes);
                return Some(at);
            }
        }
        None
    }

    fn give_back(&mut self, address: u64) {
        self.used.remove(&address);
    }
}

/// The usable addresses of an iommufd address space (`IOMMU_IOAS_IOVA_RANGES`), a call that the crate lacks.
fn ranges_of_space(space: &VfioIommufd) -> std::io::Result<Vec<(u64, u64)>> {
    const REQUEST: libc::Ioctl =
        (IOMMUFD_TYPE as libc::Ioctl) << 8 | IOMMUFD_CMD_IOAS_IOVA_RANGES as libc::Ioctl;
    let mut ranges = vec![iommu_iova_range::default(); RANGES_MAX];
    let mut asked = iommu_ioas_iova_ranges {
        size: size_of::<iommu_ioas_iova_ranges>() as u32,
        ioas_id: space.ioas().id(),
        num_iovas: RANGES_MAX as u32,
        allowed_iovas: ranges.as_mut_ptr() as u64,
        ..Default::default()
    };
    // SAFETY: the kernel writes the structure that it is given, and as many ranges as the structure says, for
    // which there is room.
    let status = unsafe { libc::ioctl(space.iommufd().as_raw_fd(), REQUEST, &raw mut asked) };
    if status != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(ranges.iter().take(asked.num_iovas as usize).map(|range| (range.start, range.last)).collect())
}

/// The container's usable addresses (`VFIO_IOMMU_GET_INFO`), a call that the crate lacks.
fn ranges_of_container(container: &VfioContainer) -> std::io::Result<Vec<(u64, u64)>> {
    const GET_INFO: libc::Ioctl = (VFIO_TYPE as libc::Ioctl) << 8 | (VFIO_BASE as libc::Ioctl + 12);
    // Words, for the alignment of the kernel's structures; room for far more ranges than any IOMMU has.
    let mut info = vec![0_u64; 2048];
    info[0] = (info.len() * 8) as u64;
    // SAFETY: the kernel writes at most as many bytes as `argsz`, the first word, says.
    let status = unsafe { libc::ioctl(container.as_raw_fd(), GET_INFO, info.as_mut_ptr()) };
    if status != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let bytes: Vec<u8> = info.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let cap_offset = u32_at(&bytes, std::mem::offset_of!(vfio_iommu_type1_info, cap_offset));
    Ok(ranges_of(&bytes, cap_offset))
}

/// Follows the chain of capabilities to the one that lists ranges; all addresses if there is none (before
/// Linux 5.4).
fn ranges_of(info: &[u8], mut offset: u32) -> Vec<(u64, u64)> {
    const HEADER: usize = size_of::<vfio_iommu_type1_info_cap_iova_range>();
    const RANGE: usize = size_of::<vfio_iova_range>();
    // Bounded by how many capabilities fit, so that a circular chain ends.
    for _ in 0..info.len() / size_of::<vfio_info_cap_header>() {
        let at = offset as usize;
        if at == 0 || at + HEADER > info.len() {
            break;
        }
        if u32_at(info, at) & 0xffff == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE {
            let count =
                u32_at(info, at + std::mem::offset_of!(vfio_iommu_type1_info_cap_iova_range, nr_iovas));
            let ranges = info[at + HEADER..].chunks_exact(RANGE).take(count as usize);
            let word = |range: &[u8], at: usize| {
                u64::from(u32_at(range, at)) | u64::from(u32_at(range, at + 4)) << 32
            };
            return ranges.map(|range| (word(range, 0), word(range, 8))).collect();
        }
        offset = u32_at(info, at + std::mem::offset_of!(vfio_info_cap_header, next));
    }
    vec![(0, u64::MAX)]
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Memory that the space's controllers can reach. The IOMMU unmaps it before it is freed.
pub struct Mapped {
    space: Arc<Space>,
    address: u64,
    memory: Memory,
}

impl Mapped {
    /// Where controllers see its first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Once the last drive is gone, the kernel has unmapped everything by itself. If it can't unmap, the
        // pages stay pinned, so no controller ever writes to memory that is reused.
        let _ = self.space.keeper.operations().vfio_dma_unmap(self.address, self.memory.bytes());
        let mut addresses = self.space.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.give_back(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_avoid_what_the_iommu_does_not_translate_and_what_is_used() {
        let mib = |n: u64| n << 20;
        let ranges = vec![(0, mib(8) - 1), (mib(20), mib(40) - 1)];
        let mut addresses = Addresses { ranges, used: BTreeMap::new() };
        assert_eq!(addresses.take(mib(2)), Some(mib(2)), "not from 0 on");
        assert_eq!(addresses.take(4096), Some(mib(4)));
        assert_eq!(addresses.take(mib(4)), Some(mib(20)), "what is left of the first range is too small");
        assert_eq!(addresses.take(mib(2)), Some(mib(6)));
        addresses.give_back(mib(4));
        assert_eq!(addresses.take(mib(2)), Some(mib(4)));
        assert_eq!(addresses.take(mib(16)), Some(mib(24)));
        assert_eq!(addresses.take(1), None);
    }

    #[test]
    fn ranges_are_found_along_the_chain_of_capabilities() {
        let mut info = vec![0_u8; 256];
        let mut put = |at: usize, value: u32| info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        // Another capability at 24, and the ranges at 48.
        put(24, 1 << 16 | 3);
        put(28, 48);
        put(48, 1 << 16 | 1);
        put(56, 2);
        for (n, value) in [0, 0, 0xfedf_ffff, 0, 0xfef0_0000, 0, u32::MAX, 0xff].into_iter().enumerate() {
            put(64 + n * 4, value);
        }
        assert_eq!(ranges_of(&info, 24), [(0, 0xfedf_ffff), (0xfef0_0000, 0xff_ffff_ffff)]);
        assert_eq!(ranges_of(&info, 0), [(0, u64::MAX)]);
        // A chain that leads nowhere, or in a circle, comes to an end.
        put_chain(&mut info, 28, 250);
        assert_eq!(ranges_of(&info, 24), [(0, u64::MAX)]);
        put_chain(&mut info, 28, 24);
        assert_eq!(ranges_of(&info, 24), [(0, u64::MAX)]);
    }

    fn put_chain(info: &mut [u8], at: usize, value: u32) {
        info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
}
