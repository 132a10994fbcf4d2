//! A drive without an IOMMU: VFIO's unsafe mode (Linux, `VFIO_NOIOMMU_IOMMU`).
//!
//! The controller is given physical addresses, so a wrong address, from this program or the drive's firmware,
//! overwrites whatever is there. Therefore all its memory is on huge pages, pinned like an `io_uring`'s
//! buffers, so that the kernel neither moves nor swaps them. They come from the reserved pool, and return to
//! it when the program is killed: I/O still in flight then hits no other program's memory before the kernel
//! has reset the drive, unless the pool is shrunk or used at that moment. A controller that does not stop is
//! taken off the bus before its memory is freed.
//!
//! The kernel must be configured for this as well (`enable_unsafe_noiommu_mode` of its module `vfio`), and is
//! tainted from then on. No crate supports this mode, so the calls are made here.
#![allow(unsafe_code)] // ioctls, and memory whose physical address is used

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use io_uring::IoUring;
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_NOIOMMU_IOMMU,
    VFIO_PCI_REQ_IRQ_INDEX, VFIO_TYPE, vfio_region_info,
};
use vmm_sys_util::eventfd::EventFd;

use super::dma::Dma;
use super::memory::{LARGE_PAGE_BYTES, Memory};
use super::prp::PAGE_BYTES;
use crate::error::{Error, Result, describe};
use crate::printable::Shown as _;

/// The kernel's name for the group of a device without an IOMMU.
const GROUP_NAME: &str = "vfio-noiommu";
/// The container's file.
const CONTAINER: &str = "/dev/vfio/vfio";

/// VFIO requests (`linux/vfio.h`).
const SET_IOMMU: libc::Ioctl = request(2);
const GROUP_SET_CONTAINER: libc::Ioctl = request(4);
const GROUP_GET_DEVICE: libc::Ioctl = request(6);
const DEVICE_GET_REGION: libc::Ioctl = request(8);
const DEVICE_SET_INTERRUPTS: libc::Ioctl = request(10);

const fn request(number: u32) -> libc::Ioctl {
    (VFIO_TYPE as libc::Ioctl) << 8 | (VFIO_BASE + number) as libc::Ioctl
}

/// Whether the function with that folder in sysfs was bound in unsafe mode.
pub fn has(device: &Path) -> bool {
    let name = std::fs::read_to_string(device.join("iommu_group/name"));
    name.is_ok_and(|name| name.trim() == GROUP_NAME)
}

/// Where a region of a function begins in its file, and its length in bytes.
pub(super) struct Place {
    pub offset: u64,
    pub bytes: u64,
}

/// A PCI function that reaches all memory.
pub struct Function {
    // Closed in this order.
    device: File,
    _group: File,
    _container: File,
    /// The huge page from which small pieces are allocated, and how much of it is used.
    current: Mutex<Option<(Arc<LargePage>, usize)>>,
}

/// A huge page and its physical address.
struct LargePage {
    pinned: Pinned,
    address: u64,
}

/// Memory on huge pages that the kernel does not move.
struct Pinned {
    // Dropped first: after that the kernel may move the memory.
    _ring: IoUring,
    memory: Memory,
}

/// The most that a ring registers as one buffer.
const BUFFER_BYTES_MAX: usize = 1 << 30;

impl Pinned {
    fn new(bytes: usize) -> Result<Self> {
        let memory = Memory::on_large_pages(bytes)?;
        let refused = |error: io::Error| {
            Error::input(format!("memory can't be pinned: {}", describe(&error)))
                .hint("stacktune pins it through io_uring, which must be allowed here")
        };
        let ring = IoUring::new(1).map_err(refused)?;
        let start = memory.start().as_ptr();
        let buffer = |at: usize| libc::iovec {
            iov_base: start.wrapping_add(at).cast(),
            iov_len: BUFFER_BYTES_MAX.min(memory.bytes() - at),
        };
        let buffers: Vec<_> = (0..memory.bytes()).step_by(BUFFER_BYTES_MAX).map(buffer).collect();
        // SAFETY: the memory is mapped as long as the ring lives, and the ring never reads or writes it.
        unsafe { ring.submitter().register_buffers(&buffers) }.map_err(refused)?;
        Ok(Self { _ring: ring, memory })
    }
}

impl Function {
    /// Takes a function that was bound in unsafe mode; `path` is its folder in sysfs.
    pub fn open(path: &Path, address: &str) -> Result<Self> {
        refuse_unsuited_memory()?;
        let group = std::fs::read_link(path.join("iommu_group")).ok();
        let number =
            group.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let group_path = PathBuf::from(format!("/dev/vfio/noiommu-{number}"));
        let group = open(&group_path).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => Error::failed(format!("{address} is already driven by another program"))
                .hint(format!("`fuser -v {}` shows which one", group_path.shown())),
            _ => Error::os("cannot open", &group_path, error)
                .hint("the unsafe mode requires root (CAP_SYS_RAWIO)"),
        })?;
        let container = open(Path::new(CONTAINER))
            .map_err(|error| Error::os("cannot open", Path::new(CONTAINER), error))?;
        let refused = |error: io::Error| {
            Error::failed(format!("VFIO cannot open {address} without an IOMMU: {}", describe(&error)))
                .hint("see the kernel's log (dmesg)")
        };
        let fd: RawFd = container.as_raw_fd();
        // SAFETY: the kernel reads the descriptor that it is pointed to.
        check(unsafe { libc::ioctl(group.as_raw_fd(), GROUP_SET_CONTAINER, &raw const fd) })
            .map_err(refused)?;
        // SAFETY: it takes a number.
        check(unsafe { libc::ioctl(fd, SET_IOMMU, libc::c_ulong::from(VFIO_NOIOMMU_IOMMU)) })
            .map_err(refused)?;
        let name =
            CString::new(address).map_err(|_| Error::input(format!("`{address}` is not a PCI address")))?;
        // SAFETY: the kernel reads the name up to its end.
        let opened = check(unsafe { libc::ioctl(group.as_raw_fd(), GROUP_GET_DEVICE, name.as_ptr()) });
        // SAFETY: the descriptor is new, and nobody else's.
        let device = unsafe { File::from_raw_fd(opened.map_err(refused)?) };
        Ok(Self { device, _group: group, _container: container, current: Mutex::new(None) })
    }

    /// Its file, which contains registers and configuration space, each at its own offset.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// Where a region is in the file.
    pub(super) fn region(&self, index: u32) -> Result<Place> {
        let argsz = size_of::<vfio_region_info>() as u32;
        let mut info = vfio_region_info { argsz, flags: 0, index, cap_offset: 0, size: 0, offset: 0 };
        // SAFETY: the kernel writes at most as many bytes as `argsz` says.
        check(unsafe { libc::ioctl(self.device.as_raw_fd(), DEVICE_GET_REGION, &raw mut info) })
            .map_err(|error| Error::failed(format!("VFIO does not report a region: {}", describe(&error))))?;
        Ok(Place { offset: info.offset, bytes: info.size })
    }

    /// Has the kernel signal `event` when it wants the device back.
    pub fn tell_recall(&self, event: &EventFd) -> io::Result<()> {
        let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
        // `vfio_irq_set`: size, flags, index, start and count, followed by a descriptor.
        let mut set = [0, flags, VFIO_PCI_REQ_IRQ_INDEX, 0, 1, event.as_raw_fd() as u32];
        set[0] = size_of_val(&set) as u32;
        // SAFETY: the kernel reads as many bytes as the first word says.
        check(unsafe { libc::ioctl(self.device.as_raw_fd(), DEVICE_SET_INTERRUPTS, set.as_ptr()) }).map(drop)
    }

    /// Memory on huge pages, all zero. Small allocations share one, and are contiguous.
    pub fn allocate(&self, bytes: usize) -> Result<Dma> {
        if bytes > LARGE_PAGE_BYTES / 2 {
            let pinned = Pinned::new(bytes)?;
            let pieces = (LARGE_PAGE_BYTES, pinned.memory.physical_addresses()?);
            let (start, bytes) = (pinned.memory.start(), pinned.memory.bytes());
            // SAFETY: the memory is mapped, zero and used by nobody else until it is dropped.
            return Ok(unsafe { Dma::in_pieces(start, bytes, pieces, Box::new(pinned)) });
        }
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let (page, at) = match current.take() {
            Some((page, at)) if at + bytes <= LARGE_PAGE_BYTES => (page, at),
            _ => (Arc::new(LargePage::new()?), 0),
        };
        *current = Some((page.clone(), at + bytes));
        let address = page.address + at as u64;
        // SAFETY: it lies within the page, as was just checked.
        let start: NonNull<u8> = unsafe { page.pinned.memory.start().add(at) };
        // SAFETY: no piece is handed out twice: it is zero, and nobody else's as long as its page lives.
        Ok(unsafe { Dma::new(start, bytes, address, Box::new(page)) })
    }
}

impl LargePage {
    fn new() -> Result<Self> {
        let pinned = Pinned::new(LARGE_PAGE_BYTES)?;
        let address = pinned.memory.physical_addresses()?[0];
        Ok(Self { pinned, address })
    }
}

/// Refuses if this machine's huge pages are not what [`Memory::physical_addresses`] assumes, or may not come
/// from the pool.
fn refuse_unsuited_memory() -> Result<()> {
    let page_bytes = rustix::param::page_size();
    if page_bytes != PAGE_BYTES {
        let what =
            format!("without an IOMMU, pages must have {PAGE_BYTES} bytes, but here they have {page_bytes}");
        return Err(Error::input(what));
    }
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
    if std::fs::read_to_string(path).is_ok_and(|number| number.trim() != "0") {
        let what = "huge pages beyond those set aside would be freed for anyone when a program is killed";
        return Err(Error::input(what).hint(format!("write 0 to {path}")));
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_numbered_as_the_kernel_has_them() {
        assert_eq!((SET_IOMMU, GROUP_GET_DEVICE, DEVICE_SET_INTERRUPTS), (0x3b66, 0x3b6a, 0x3b6e));
    }

    #[test]
    fn a_group_that_is_none_is_known_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has(dir.path()));
        std::fs::create_dir(dir.path().join("iommu_group")).unwrap();
        std::fs::write(dir.path().join("iommu_group/name"), "vfio-noiommu\n").unwrap();
        assert!(has(dir.path()));
    }
}
