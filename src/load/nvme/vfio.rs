//! A controller that the kernel has handed to this process: Linux's VFIO.
//!
//! The drive is bound to `vfio-pci` (see the stack's steps). With an IOMMU, it joins the address space that
//! all drives of this process share ([`super::space`]), and reaches nothing else. If no IOMMU is in use and
//! the operator accepts that, it reaches all memory ([`super::noiommu`]).
#![allow(unsafe_code)] // mapping registers and memory

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::io::{pread, pwrite};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::{ClockId, clock_gettime};
use vfio_bindings::bindings::vfio::{
    VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_REQ_IRQ_INDEX,
};
use vfio_ioctls::VfioRegionInfoCap;
use vmm_sys_util::eventfd::EventFd;

use super::admin::Patience;
use super::bus::Bus;
use super::controller::Controller;
use super::dma::Dma;
use super::memory::Memory;
use super::noiommu::{self, Function, Place};
use super::space::{Space, Taken};
use crate::error::{Error, Result, describe};

/// The PCI command register, and its bits for memory space and bus mastering.
const PCI_COMMAND: u64 = 4;
const PCI_COMMAND_MEMORY: u16 = 0b010;
const PCI_COMMAND_MASTER: u16 = 0b100;
/// The time between polls for anything slow.
const PAUSE: Duration = Duration::from_micros(50);

/// The controllers that this process drives, by PCI address: a drive can be opened only once, but each class
/// asks for it.
static OPEN: Mutex<BTreeMap<String, Driven>> = Mutex::new(BTreeMap::new());
/// A controller while it is in use, and its device, which a controller that is being dropped holds longer.
type Driven = (Weak<Controller<VfioBus>>, Weak<VfioBus>);

/// The controller at a PCI address (`0000:01:00.0`) that is bound to `vfio-pci`. Starts it, unless this
/// process already has.
///
/// # Errors
/// If VFIO does not hand it out, in words, with what to do.
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
        // SAFETY: `VfioBus::registers` mapped it, and the bus that used it is gone.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

impl Registers {
    fn at(&self, offset: usize) -> *mut u32 {
        assert!(offset + 4 <= self.bytes && offset.is_multiple_of(4));
        // SAFETY: it lies within the mapping, as was just checked.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }
}

/// A PCI function that VFIO has handed out, and the memory that it can reach.
enum Device {
    /// Behind an IOMMU. Dropped after everything mapped through it, and before the space.
    Kept(Taken, Arc<Space>),
    /// With nothing between it and memory.
    Unkept(Function),
}

impl Device {
    fn open(path: &Path, address: &str) -> Result<Self> {
        if noiommu::has(path) {
            return Ok(Self::Unkept(Function::open(path, address)?));
        }
        let space = Space::open(path)?;
        Ok(Self::Kept(space.take(path, address)?, space))
    }

    fn file(&self) -> BorrowedFd<'_> {
        match self {
            // SAFETY: the device's descriptor is open as long as `self` lives.
            Self::Kept(taken, _) => unsafe { BorrowedFd::borrow_raw(taken.device.as_raw_fd()) },
            Self::Unkept(function) => function.file(),
        }
    }

    /// A region, or as much of its start as the kernel lets a process map.
    fn region(&self, index: u32) -> Result<Place> {
        let device = match self {
            Self::Kept(taken, _) => &taken.device,
            Self::Unkept(function) => return function.region(index),
        };
        let sparse = device.get_region_caps(index).into_iter().find_map(|capability| match capability {
            VfioRegionInfoCap::SparseMmap(areas) => Some(areas.areas),
            _ => None,
        });
        let bytes = match sparse {
            Some(areas) => areas.iter().find(|area| area.offset == 0).map_or(0, |area| area.size),
            None => device.get_region_size(index),
        };
        Ok(Place { offset: device.get_region_offset(index), bytes })
    }

    /// Has the kernel signal `event` when it wants the device back.
    fn tell_recall(&self, event: &EventFd) {
        // If the kernel can't signal it, the run continues until the drive stops answering.
        let _ = match self {
            Self::Kept(taken, _) => taken.device.enable_irq(VFIO_PCI_REQ_IRQ_INDEX, vec![event]).is_ok(),
            Self::Unkept(function) => function.tell_recall(event).is_ok(),
        };
    }

    fn allocate(&self, bytes: usize) -> Result<Dma> {
        let space = match self {
            Self::Kept(_, space) => space,
            Self::Unkept(function) => return function.allocate(bytes),
        };
        let mapped = space.map(Memory::new(bytes)?)?;
        let (start, bytes, address) = (mapped.memory().start(), mapped.memory().bytes(), mapped.address());
        // SAFETY: the memory is mapped, zero and nobody else's until `mapped` is dropped.
        Ok(unsafe { Dma::new(start, bytes, address, Box::new(mapped)) })
    }
}

/// A controller behind VFIO.
pub struct VfioBus {
    address: String,
    registers: Registers,
    /// The kernel signals here when it wants the device back.
    recall: EventFd,
    recalled: AtomicBool,
    device: Device,
}

impl VfioBus {
    /// Takes the device at a PCI address, maps its registers and gives it access to memory.
    pub fn open(address: &str) -> Result<Self> {
        let device = Device::open(&device_path(address)?, address)?;
        enable(&device, address)?;
        let registers = registers(&device, address)?;
        let recall = EventFd::new(libc::EFD_NONBLOCK)
            .map_err(|error| Error::failed(format!("cannot make an event: {}", describe(&error))))?;
        device.tell_recall(&recall);
        let recalled = AtomicBool::new(false);
        Ok(Self { address: address.to_owned(), registers, recall, recalled, device })
    }
}

/// The device's folder in sysfs.
fn device_path(address: &str) -> Result<PathBuf> {
    let plain = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    if address.is_empty() || !address.chars().all(plain) {
        return Err(Error::input(format!("`{address}` is not a PCI address"))
            .hint("write it like 0000:01:00.0; `stacktune host` and `lspci -D` list them"));
    }
    let path = Path::new("/sys/bus/pci/devices").join(address);
    if path.exists() {
        return Ok(path);
    }
    Err(Error::input(format!("there is no PCI device {address}")))
}

/// Changes the PCI command register; returns its new value.
fn command(device: &Device, change: impl Fn(u16) -> u16) -> Result<u16> {
    let at = device.region(VFIO_PCI_CONFIG_REGION_INDEX)?.offset + PCI_COMMAND;
    let read = || {
        let mut command = [0; 2];
        pread(device.file(), &mut command, at).map(|_| u16::from_le_bytes(command))
    };
    let changed = read().and_then(|command| {
        pwrite(device.file(), &change(command).to_le_bytes(), at)?;
        read()
    });
    changed.map_err(|error| Error::failed(format!("PCI's command register: {}", describe(&error.into()))))
}

/// Switches memory space and bus mastering on.
fn enable(device: &Device, address: &str) -> Result<()> {
    let wanted = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
    match command(device, |command| command | wanted) {
        Ok(command) if command & wanted == wanted => Ok(()),
        _ => Err(Error::failed(format!("{address} can't be made to reach memory (PCI command register)"))),
    }
}

/// Maps BAR0.
fn registers(device: &Device, address: &str) -> Result<Registers> {
    let place = device.region(VFIO_PCI_BAR0_REGION_INDEX)?;
    let bytes = place.bytes as usize;
    if bytes <= super::spec::DOORBELLS {
        return Err(Error::input(format!("{address} has no registers of an NVMe controller in BAR0")));
    }
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
    let start = unsafe { mmap(null_mut(), bytes, protection, MapFlags::SHARED, device.file(), place.offset) };
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
        self.device.allocate(bytes)
    }

    fn isolate(&self) {
        // Behind an IOMMU, unmapped memory can't be reached. Otherwise, a drive that is not a bus master
        // reaches nothing, and one that does not even respond to this is gone from the bus.
        if matches!(self.device, Device::Unkept(_)) {
            let _ = command(&self.device, |command| command & !PCI_COMMAND_MASTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_pci_address_is_refused_before_anything_is_opened() {
        for odd in ["", "../../block/sda", "nvme0"] {
            assert_eq!(controller(odd).err().unwrap().exit_status(), 2, "{odd}");
        }
        assert!(device_path("ffff:ff:1f.7").unwrap_err().what.contains("there is no PCI device"));
    }
}
