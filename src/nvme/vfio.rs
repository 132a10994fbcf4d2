//! A controller that the kernel has handed to this process: Linux's VFIO.
//!
//! The drive is bound to `vfio-pci` (see the stack's steps). Its IOMMU group goes into the one container
//! of this process, whose address space all drives share, so that a buffer serves each of them. The
//! IOMMU lets a controller reach that memory and no other.
#![allow(unsafe_code)] // mapping registers and memory, and an ioctl that no crate wraps

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, VFIO_PCI_BAR0_REGION_INDEX,
    VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_REQ_IRQ_INDEX, VFIO_TYPE, vfio_info_cap_header,
    vfio_iommu_type1_info, vfio_iommu_type1_info_cap_iova_range, vfio_iova_range,
};
use vfio_ioctls::{VfioContainer, VfioDevice, VfioError, VfioOps, VfioRegionInfoCap};
use vmm_sys_util::eventfd::EventFd;

use super::bus::Bus;
use super::controller::{Controller, Patience};
use super::dma::Dma;
use super::prp::PAGE_BYTES;
use crate::error::{Error, Result, describe, describe_errno};
use crate::units::approx_size;

/// Bytes of a large page, as x86-64 and arm64 have it.
const LARGE_PAGE_BYTES: usize = 2 << 20;
/// Addresses below are left out: 0 is no address, and the first MiB is special on PCs.
const FIRST_ADDRESS: u64 = 1 << 20;
/// The PCI command register, and its bits for memory space and bus mastering.
const PCI_COMMAND: u64 = 4;
const PCI_COMMAND_MEMORY_AND_MASTER: u16 = 0b110;
/// Between two looks at what takes its time.
const PAUSE: Duration = Duration::from_micros(50);

/// The controllers that this process drives, by PCI address: a drive can be opened only once, and each
/// class asks for it.
static OPEN: Mutex<BTreeMap<String, Driven>> = Mutex::new(BTreeMap::new());
/// A controller as long as it is used, and its device, which a controller that ends holds longer.
type Driven = (Weak<Controller<VfioBus>>, Weak<VfioBus>);
/// The process's container.
static SPACE: Mutex<Weak<Space>> = Mutex::new(Weak::new());

/// The controller at a PCI address (`0000:01:00.0`) that is bound to `vfio-pci`: started, or as it was
/// started already by this process.
///
/// # Errors
/// Where VFIO does not give it out, in words, with what to do.
pub fn controller(address: &str) -> Result<Arc<Controller<VfioBus>>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((controller, bus)) = open.get(address) {
        if let Some(controller) = controller.upgrade() {
            return Ok(controller);
        }
        // Another thread is about to shut it down.
        while bus.strong_count() > 0 {
            std::thread::sleep(PAUSE);
        }
    }
    let bus = Arc::new(VfioBus::open(address)?);
    let driven = Arc::downgrade(&bus);
    let controller = Controller::start(bus, Patience::default())?;
    open.insert(address.to_owned(), (Arc::downgrade(&controller), driven));
    Ok(controller)
}

/// A container's address space: which addresses are given out.
struct Space {
    container: Arc<VfioContainer>,
    addresses: Mutex<Addresses>,
}

impl Space {
    fn open() -> Result<Arc<Self>> {
        let mut space = SPACE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(space) = space.upgrade() {
            return Ok(space);
        }
        let container = VfioContainer::new(None).map_err(|error| cannot_open("VFIO", &error))?;
        let addresses = Mutex::new(Addresses::default());
        let opened = Arc::new(Self { container: Arc::new(container), addresses });
        *space = Arc::downgrade(&opened);
        Ok(opened)
    }

    /// Asks the kernel which addresses the IOMMU translates, now that there is one: around the window
    /// of message-signalled interrupts, for one, it does not.
    fn learn_ranges(&self) -> Result<()> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        // Another drive's IOMMU may have narrowed them.
        addresses.ranges = address_ranges(&self.container).map_err(|error| {
            Error::failed(format!("cannot ask for the IOMMU's addresses: {}", describe(&error)))
        })?;
        Ok(())
    }

    /// Maps memory for all controllers of the container.
    fn map(self: &Arc<Self>, memory: Memory) -> Result<Mapped> {
        let bytes = memory.bytes;
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let address = addresses.take(bytes as u64).ok_or_else(|| {
            Error::failed(format!("the IOMMU has no {} of addresses left", approx_size(bytes as u64)))
        })?;
        // SAFETY: the memory is this mapping's own until it is unmapped, and is used volatile or while
        // no command names it (see `Dma`).
        let mapped = unsafe { self.container.vfio_dma_map(address, bytes, memory.start.as_ptr()) };
        match mapped {
            Ok(()) => Ok(Mapped { space: self.clone(), address, memory }),
            Err(error) => {
                addresses.give_back(address);
                Err(cannot_map(bytes as u64, &error))
            }
        }
    }
}

/// Addresses of an address space.
#[derive(Debug, Default)]
struct Addresses {
    /// What can be used, first and last byte of each range.
    ranges: Vec<(u64, u64)>,
    /// What is used: first byte, and bytes.
    used: BTreeMap<u64, u64>,
}

impl Addresses {
    /// The first place for so many bytes, aligned to a large page so that the IOMMU can use such.
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

/// The container's usable addresses (`VFIO_IOMMU_GET_INFO`), which the crate does not tell.
fn address_ranges(container: &VfioContainer) -> std::io::Result<Vec<(u64, u64)>> {
    const GET_INFO: libc::c_ulong = (VFIO_TYPE as libc::c_ulong) << 8 | (VFIO_BASE as libc::c_ulong + 12);
    // Words, so that it is aligned as the kernel's structures are; far more than any IOMMU has ranges.
    let mut info = vec![0_u64; 2048];
    info[0] = (info.len() * 8) as u64;
    // SAFETY: the kernel writes at most as many bytes as `argsz`, the first word, says.
    let told = unsafe { libc::ioctl(container.as_raw_fd(), GET_INFO, info.as_mut_ptr()) };
    if told != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let bytes: Vec<u8> = info.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let cap_offset = u32_at(&bytes, std::mem::offset_of!(vfio_iommu_type1_info, cap_offset));
    Ok(ranges_of(&bytes, cap_offset))
}

/// Follows the chain of capabilities to the one that lists ranges; all addresses where there is none
/// (before Linux 5.4).
fn ranges_of(info: &[u8], mut offset: u32) -> Vec<(u64, u64)> {
    const HEADER: usize = size_of::<vfio_iommu_type1_info_cap_iova_range>();
    const RANGE: usize = size_of::<vfio_iova_range>();
    // Each capability follows the one before: no more of them than there is room for.
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

/// Memory of this process's own, shared with no other: not even with a tool that it starts, which
/// would else get a copy of what the controller goes on writing to.
struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its memory, which is no thread's.
unsafe impl Send for Memory {}

impl Memory {
    /// All zero; on large pages where it is large and some are free.
    fn new(bytes: usize) -> Result<Self> {
        let large = bytes.next_multiple_of(LARGE_PAGE_BYTES);
        if bytes >= LARGE_PAGE_BYTES / 2
            && let Ok(memory) = Self::map(large, MapFlags::HUGETLB | MapFlags::HUGE_2MB)
        {
            return Ok(memory);
        }
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        Self::map(bytes, MapFlags::empty()).map_err(|error| {
            let size = approx_size(bytes as u64);
            Error::failed(format!("no memory for {size} of buffers: {}", describe(&error.into())))
                .hint("a smaller depth or page size needs less")
        })
    }

    fn map(bytes: usize, more: MapFlags) -> rustix::io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE | more;
        // SAFETY: the kernel chooses the place, so nothing that is mapped is replaced.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)? };
        let start = NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { start, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `map`, and whoever owns it uses it no more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Memory that the container's controllers can reach. The IOMMU forgets it before it is given back.
struct Mapped {
    space: Arc<Space>,
    address: u64,
    memory: Memory,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // With the last drive gone the kernel has unmapped all by itself. Where it can't, the pages
        // stay pinned: no controller ever writes to memory that has become something else.
        let _ = self.space.container.vfio_dma_unmap(self.address, self.memory.bytes);
        let mut addresses = self.space.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.give_back(self.address);
    }
}

/// The registers of a controller, mapped.
struct Registers {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: registers are the device's, not a thread's; each access is one volatile word.
unsafe impl Send for Registers {}
// SAFETY: as above: accesses of several threads reach the device one after another.
unsafe impl Sync for Registers {}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `VfioBus::registers`, and the bus that used it is gone.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

impl Registers {
    fn at(&self, offset: usize) -> *mut u32 {
        assert!(offset + 4 <= self.bytes && offset.is_multiple_of(4));
        // SAFETY: it lies within the mapping, as was just seen.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }
}

/// A controller behind VFIO.
pub struct VfioBus {
    address: String,
    registers: Registers,
    /// The kernel tells here that it wants the device back.
    recall: EventFd,
    recalled: AtomicBool,
    // It goes after what is mapped through it, and before the container.
    _device: VfioDevice,
    space: Arc<Space>,
}

impl VfioBus {
    /// Takes the device at a PCI address, maps its registers and lets it reach memory.
    pub fn open(address: &str) -> Result<Self> {
        let path = device_path(address)?;
        let space = Space::open()?;
        let container: Arc<dyn VfioOps> = space.container.clone();
        let device = VfioDevice::new(&path, container, true).map_err(|error| cannot_open(address, &error))?;
        space.learn_ranges()?;
        enable(&device, address)?;
        let registers = registers(&device, address)?;
        let recall = EventFd::new(libc::EFD_NONBLOCK)
            .map_err(|error| Error::failed(format!("cannot make an event: {}", describe(&error))))?;
        // A kernel that does not tell would have the run go on until the drive does not answer.
        let _ = device.enable_irq(VFIO_PCI_REQ_IRQ_INDEX, vec![&recall]);
        let recalled = AtomicBool::new(false);
        Ok(Self { address: address.to_owned(), registers, recall, recalled, _device: device, space })
    }
}

/// The device's folder in sysfs.
fn device_path(address: &str) -> Result<PathBuf> {
    let plain = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    if address.is_empty() || !address.chars().all(plain) {
        return Err(Error::input(format!("`{address}` is no PCI address"))
            .hint("one looks like 0000:01:00.0: `stacktune host` and `lspci -D` list them"));
    }
    let path = Path::new("/sys/bus/pci/devices").join(address);
    if path.exists() {
        return Ok(path);
    }
    Err(Error::input(format!("there is no PCI device {address}")))
}

/// Switches memory space and bus mastering on (PCI's command register).
fn enable(device: &VfioDevice, address: &str) -> Result<()> {
    let read = || {
        let mut command = [0; 2];
        device.region_read(VFIO_PCI_CONFIG_REGION_INDEX, &mut command, PCI_COMMAND);
        u16::from_le_bytes(command)
    };
    let wanted = read() | PCI_COMMAND_MEMORY_AND_MASTER;
    device.region_write(VFIO_PCI_CONFIG_REGION_INDEX, &wanted.to_le_bytes(), PCI_COMMAND);
    if read() & PCI_COMMAND_MEMORY_AND_MASTER == PCI_COMMAND_MEMORY_AND_MASTER {
        return Ok(());
    }
    Err(Error::failed(format!("{address} can't be made to reach memory (PCI command register)")))
}

/// Maps BAR0, or the part of it from its start on that the kernel lets a process map.
fn registers(device: &VfioDevice, address: &str) -> Result<Registers> {
    let region = VFIO_PCI_BAR0_REGION_INDEX;
    let sparse = device.get_region_caps(region).into_iter().find_map(|capability| match capability {
        VfioRegionInfoCap::SparseMmap(areas) => Some(areas.areas),
        _ => None,
    });
    let bytes = match sparse {
        Some(areas) => areas.iter().find(|area| area.offset == 0).map_or(0, |area| area.size),
        None => device.get_region_size(region),
    } as usize;
    if bytes <= super::spec::DOORBELLS {
        return Err(Error::input(format!("{address} has no registers of an NVMe controller in BAR0")));
    }
    // SAFETY: the device's descriptor is open as long as `device` lives, which is longer than this call.
    let file = unsafe { BorrowedFd::borrow_raw(device.as_raw_fd()) };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let offset = device.get_region_offset(region);
    // SAFETY: the kernel chooses the place, so nothing that is mapped is replaced.
    let start = unsafe { mmap(null_mut(), bytes, protection, MapFlags::SHARED, file, offset) };
    let start = start.map_err(|error| {
        Error::failed(format!("cannot map the registers of {address}: {}", describe(&error.into())))
    })?;
    let start = NonNull::new(start.cast()).expect("a mapping is somewhere");
    Ok(Registers { start, bytes })
}

impl Bus for VfioBus {
    fn name(&self) -> &str {
        &self.address
    }

    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * crate::units::SECOND_NS + now.tv_nsec as u64
    }

    fn pause(&self) {
        std::thread::sleep(PAUSE);
    }

    fn is_recalled(&self) -> bool {
        if self.recall.read().is_ok() {
            self.recalled.store(true, Ordering::Relaxed);
        }
        self.recalled.load(Ordering::Relaxed)
    }

    fn register_bytes(&self) -> usize {
        self.registers.bytes
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        // SAFETY: `at` gives an aligned word of the mapping, which lives as long as `self`.
        u32::from_le(unsafe { self.registers.at(offset).read_volatile() })
    }

    #[inline]
    fn write32(&self, offset: usize, value: u32) {
        // SAFETY: as for reading.
        unsafe { self.registers.at(offset).write_volatile(value.to_le()) }
    }

    fn allocate(&self, bytes: usize) -> Result<Dma> {
        let mapped = self.space.map(Memory::new(bytes)?)?;
        let (start, bytes, address) = (mapped.memory.start, mapped.memory.bytes, mapped.address);
        // SAFETY: the memory is mapped, zero and nobody else's until `mapped` is dropped.
        Ok(unsafe { Dma::new(start, bytes, address, Box::new(mapped)) })
    }
}

/// Why VFIO does not give a device out, and what to do.
fn cannot_open(what: &str, error: &VfioError) -> Error {
    let os = |error: &std::io::Error| error.raw_os_error();
    match error {
        VfioError::OpenContainer(why) if os(why) == Some(libc::ENOENT) => {
            Error::input("this kernel has no VFIO: there is no /dev/vfio/vfio").hint("modprobe vfio-pci")
        }
        VfioError::OpenContainer(why) => Error::os("cannot open", Path::new("/dev/vfio/vfio"), errno(why))
            .hint("driving a drive from user space needs root, or the right to /dev/vfio"),
        VfioError::OpenGroup(why, group) => match os(why) {
            Some(libc::EBUSY) => Error::refused(format!("{what} is driven by another program already"))
                .hint(format!("`fuser -v /dev/vfio/{group}` tells by which")),
            Some(libc::ENOENT) => Error::input(format!("{what} is not bound to vfio-pci"))
                .hint("stacktune binds it itself where it is a target of the interface `vfio`"),
            _ => Error::os("cannot open", &Path::new("/dev/vfio").join(group), errno(why)),
        },
        VfioError::GroupViable => Error::refused(format!(
            "{what} shares its IOMMU group with devices that are not bound to vfio-pci"
        ))
        .hint("a group goes to a program as a whole; another slot may have a group of its own"),
        other => Error::failed(format!("VFIO does not give out {what}: {other}"))
            .hint("an IOMMU must be on in the firmware and the kernel; see the kernel's log (dmesg)"),
    }
}

fn errno(error: &std::io::Error) -> std::io::Error {
    std::io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Why memory can't be mapped for a controller: mostly the limit of locked memory.
fn cannot_map(bytes: u64, error: &VfioError) -> Error {
    let size = approx_size(bytes);
    let VfioError::IommuDmaMap(why) = error else {
        return Error::failed(format!("cannot map {size} for the drive: {error}"));
    };
    let what = format!("cannot map {size} for the drive: {}", describe_errno(why.errno()));
    match (why.errno(), getrlimit(Resource::Memlock).current) {
        (libc::ENOMEM, Some(limit)) => Error::input(format!(
            "{size} more would exceed the limit of locked memory, {} (RLIMIT_MEMLOCK)",
            approx_size(limit)
        ))
        .hint("raise it: `ulimit -l unlimited` (LimitMEMLOCK= in a service), or use a smaller depth or page"),
        _ => Error::failed(what),
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
        // Another capability at 24, and at 48 the ranges.
        put(24, 1 << 16 | 3);
        put(28, 48);
        put(48, 1 << 16 | 1);
        put(56, 2);
        for (n, value) in [0, 0, 0xfedf_ffff, 0, 0xfef0_0000, 0, u32::MAX, 0xff].into_iter().enumerate() {
            put(64 + n * 4, value);
        }
        assert_eq!(ranges_of(&info, 24), [(0, 0xfedf_ffff), (0xfef0_0000, 0xff_ffff_ffff)]);
        assert_eq!(ranges_of(&info, 0), [(0, u64::MAX)]);
        // A chain that leads nowhere, or in a circle, ends.
        put_chain(&mut info, 28, 250);
        assert_eq!(ranges_of(&info, 24), [(0, u64::MAX)]);
        put_chain(&mut info, 28, 24);
        assert_eq!(ranges_of(&info, 24), [(0, u64::MAX)]);
    }

    fn put_chain(info: &mut [u8], at: usize, value: u32) {
        info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    #[test]
    fn what_is_no_pci_address_is_refused_before_anything_is_opened() {
        for odd in ["", "../../block/sda", "nvme0"] {
            assert_eq!(controller(odd).err().unwrap().exit_status(), 2, "{odd}");
        }
        assert!(device_path("ffff:ff:1f.7").unwrap_err().what.contains("there is no PCI device"));
    }

    #[test]
    fn what_vfio_says_becomes_what_to_do() {
        let io = std::io::Error::from_raw_os_error;
        let none = cannot_open("x", &VfioError::OpenContainer(io(libc::ENOENT)));
        assert_eq!(none.hint.as_deref(), Some("modprobe vfio-pci"));
        let busy = cannot_open("x", &VfioError::OpenGroup(io(libc::EBUSY), "7".into()));
        assert_eq!((busy.exit_status(), busy.hint.unwrap().contains("/dev/vfio/7")), (3, true));
        let unbound = cannot_open("0000:01:00.0", &VfioError::OpenGroup(io(libc::ENOENT), "7".into()));
        assert!(unbound.what.contains("0000:01:00.0 is not bound to vfio-pci"));
        assert!(cannot_open("x", &VfioError::GroupViable).what.contains("IOMMU group"));
    }
}
