//! The Rust side of `shim/spdk.c`: its functions behind a safe interface.
#![allow(unsafe_code)] // calls of C

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::error::{Error, Result, describe_errno};

/// A drive of the shim.
#[repr(C)]
struct RawDrive {
    _opaque: [u8; 0],
}

/// A worker of the shim.
#[repr(C)]
struct RawWorker {
    _opaque: [u8; 0],
}

/// A completed operation.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SpdkDone {
    /// Its slot.
    pub slot: u32,
    /// The status field of its completion without the phase tag (Base 3.3.3.2.1).
    pub status: u32,
}

unsafe extern "C" {
    fn stacktune_spdk_version() -> *const c_char;
    fn stacktune_dpdk_version() -> *const c_char;
    fn stacktune_spdk_begin(core: u32, addresses: *const *const c_char, count: usize) -> c_int;
    fn stacktune_spdk_attend();
    fn stacktune_spdk_end();
    fn stacktune_drive_find(address: *const c_char) -> *mut RawDrive;
    fn stacktune_drive_attach(address: *const c_char) -> *mut RawDrive;
    fn stacktune_drive_transfer_max(drive: *mut RawDrive, nsid: u32) -> u32;
    fn stacktune_drive_metadata_bytes(drive: *mut RawDrive, nsid: u32) -> u32;
    fn stacktune_worker_new(
        drives: *const *mut RawDrive,
        nsids: *const u32,
        count: u32,
        page_bytes: u64,
        slots: u32,
        flush_slots: u32,
        why: *mut c_int,
    ) -> *mut RawWorker;
    fn stacktune_worker_free(worker: *mut RawWorker);
    fn stacktune_worker_pages(worker: *mut RawWorker) -> *mut u8;
    fn stacktune_worker_submit(worker: *mut RawWorker, lane: u32, slot: u32, kind: u32, at: u64) -> c_int;
    fn stacktune_worker_poll(worker: *mut RawWorker, done: *mut *const SpdkDone) -> c_int;
}

/// The attached drives, while anything uses them.
static ATTACHED: Mutex<Weak<Attached>> = Mutex::new(Weak::new());

/// SPDK with its drives. Dropping this releases them.
#[derive(Debug)]
pub struct Attached {
    versions: (String, String),
}

/// A namespace of an attached drive.
#[derive(Debug, Clone)]
pub struct SpdkDrive {
    raw: NonNull<RawDrive>,
    namespace: u32,
    // Keeps the drive attached.
    _attached: Arc<Attached>,
}

// SAFETY: if several threads use a drive of the shim at once, SPDK locks or works atomically.
unsafe impl Send for SpdkDrive {}
// SAFETY: likewise.
unsafe impl Sync for SpdkDrive {}

fn text(of: *const c_char) -> String {
    // SAFETY: the shim returns constant, NUL-terminated strings.
    unsafe { CStr::from_ptr(of) }.to_string_lossy().into_owned()
}

fn address_of(address: &str) -> Result<CString> {
    CString::new(address).map_err(|_| Error::input(format!("{address:?} is not a PCI address")))
}

impl Attached {
    /// Starts SPDK on these PCI functions, which are bound to `vfio-pci`; only once per process. SPDK's and
    /// DPDK's messages go to standard error. Meanwhile DPDK runs on that CPU.
    pub fn begin(core: u32, addresses: &[String]) -> Result<Arc<Self>> {
        let owned = addresses.iter().map(|address| address_of(address)).collect::<Result<Vec<_>>>()?;
        let pointers: Vec<*const c_char> = owned.iter().map(|address| address.as_ptr()).collect();
        // SAFETY: the strings outlive the call, and their number is right.
        let status = unsafe { stacktune_spdk_begin(core, pointers.as_ptr(), pointers.len()) };
        if status != 0 {
            let what =
                format!("SPDK's environment can't be set up: {}", describe_errno(status.saturating_abs()));
            return Err(Error::failed(what).hint(
                "it needs huge pages (`sysctl vm.nr_hugepages=1024`), a mounted hugetlbfs, VFIO, and root",
            ));
        }
        // SAFETY: the functions take no arguments and return constant strings.
        let versions = unsafe { (text(stacktune_spdk_version()), text(stacktune_dpdk_version())) };
        let attached = Arc::new(Self { versions });
        for (address, owned) in addresses.iter().zip(&owned) {
            // SAFETY: the environment is set up, and the string outlives the call.
            if unsafe { stacktune_drive_attach(owned.as_ptr()) }.is_null() {
                let what = format!("SPDK does not drive {address}");
                return Err(Error::failed(what).hint("it needs an NVMe drive that is bound to vfio-pci"));
            }
        }
        *ATTACHED.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&attached);
        Ok(attached)
    }

    /// The running versions of SPDK and DPDK.
    pub fn versions(&self) -> (&str, &str) {
        (&self.versions.0, &self.versions.1)
    }

    /// Services what no worker does: call it now and then, from the thread that called [`Attached::begin`].
    pub fn attend(&self) {
        // SAFETY: the drives exist as long as `self` does.
        unsafe { stacktune_spdk_attend() }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: every drive and worker holds `self`, so none is left.
        unsafe { stacktune_spdk_end() }
    }
}

impl SpdkDrive {
    /// A namespace of an attached drive.
    pub fn find(address: &str, namespace: u32) -> Result<Self> {
        let attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        let missing = || Error::failed(format!("SPDK does not have namespace {namespace} of {address}"));
        let attached = attached.ok_or_else(missing)?;
        let owned = address_of(address)?;
        // SAFETY: the string outlives the call; the list of drives does not change while they are attached.
        let raw = NonNull::new(unsafe { stacktune_drive_find(owned.as_ptr()) }).ok_or_else(missing)?;
        let drive = Self { raw, namespace, _attached: attached };
        // SAFETY: the drive is attached as long as it is held.
        let metadata_bytes = unsafe { stacktune_drive_metadata_bytes(raw.as_ptr(), namespace) };
        if metadata_bytes > 0 {
            let what =
                format!("namespace {namespace} of {address} has {metadata_bytes} bytes of metadata a block");
            return Err(
                Error::input(what).hint("choose a format without metadata: `nvme id-ns -H` lists them")
            );
        }
        if drive.transfer_bytes_max() == 0 { Err(missing()) } else { Ok(drive) }
    }

    /// Maximum bytes of a command.
    pub fn transfer_bytes_max(&self) -> u32 {
        // SAFETY: the drive is attached as long as `self` exists.
        unsafe { stacktune_drive_transfer_max(self.raw.as_ptr(), self.namespace) }
    }
}

/// A thread's queue pairs, one per namespace, and its pages in memory that the drives can access.
#[derive(Debug)]
pub struct WorkerQueues {
    raw: NonNull<RawWorker>,
    pages: NonNull<u8>,
    page_bytes: usize,
    lanes: usize,
    /// Whether an operation is in flight, by slot; flushes follow the pages.
    busy: Box<[bool]>,
    slots: usize,
    _drives: Box<[SpdkDrive]>,
}

impl WorkerQueues {
    /// Queue pairs for `slots` pages and `flush_slots` flushes at once.
    pub fn new(drives: &[SpdkDrive], page_bytes: usize, slots: u32, flush_slots: u32) -> Result<Self> {
        let raws: Vec<_> = drives.iter().map(|drive| drive.raw.as_ptr()).collect();
        let namespaces: Vec<u32> = drives.iter().map(|drive| drive.namespace).collect();
        let (count, mut why) = (drives.len() as u32, 0);
        // SAFETY: both lists have `count` items, and the drives are attached as long as they are held.
        let raw = unsafe {
            let (raws, namespaces) = (raws.as_ptr(), namespaces.as_ptr());
            stacktune_worker_new(raws, namespaces, count, page_bytes as u64, slots, flush_slots, &raw mut why)
        };
        let raw = NonNull::new(raw).ok_or_else(|| refused(-why, slots as usize * page_bytes))?;
        // SAFETY: the worker was just created.
        let pages = unsafe { stacktune_worker_pages(raw.as_ptr()) };
        let pages = NonNull::new(pages).ok_or_else(|| refused(libc::ENOMEM, 0))?;
        let busy = vec![false; (slots + flush_slots) as usize].into();
        let (lanes, slots) = (drives.len(), slots as usize);
        Ok(Self { raw, pages, page_bytes, lanes, busy, slots, _drives: drives.into() })
    }

    /// The page of a slot that has no operation in flight.
    ///
    /// # Panics
    /// If one is in flight.
    #[inline]
    pub fn page(&mut self, slot: u32) -> &mut [u8] {
        let slot = slot as usize;
        assert!(slot < self.slots && !self.busy[slot], "no operation is under way for the page");
        // SAFETY: the memory has a page for each slot, zeroed at first. Without an operation in flight, no
        // drive touches a slot's page, and `self` is borrowed for as long.
        unsafe {
            let start = self.pages.as_ptr().add(slot * self.page_bytes);
            std::slice::from_raw_parts_mut(start, self.page_bytes)
        }
    }

    /// Submits an operation. False if there is no room until others complete.
    ///
    /// # Errors
    /// The errno if SPDK refuses it.
    #[inline]
    pub fn submit(
        &mut self,
        lane: u32,
        slot: u32,
        kind: u32,
        offset_bytes: u64,
    ) -> std::result::Result<bool, i32> {
        assert!((lane as usize) < self.lanes && !self.busy[slot as usize]);
        // SAFETY: lane and slot belong to the worker, and the slot's page is not in use.
        let status = unsafe { stacktune_worker_submit(self.raw.as_ptr(), lane, slot, kind, offset_bytes) };
        match -status {
            0 => {
                self.busy[slot as usize] = true;
                Ok(true)
            }
            libc::ENOMEM => Ok(false),
            errno => Err(errno),
        }
    }

    /// Polls all queues once, and reports each operation that has completed.
    ///
    /// # Errors
    /// The errno of the failure after which it can't continue.
    #[inline]
    pub fn poll(&mut self, mut each: impl FnMut(SpdkDone)) -> std::result::Result<u32, i32> {
        let mut done = std::ptr::null();
        // SAFETY: the worker exists and belongs to this thread.
        let count = unsafe { stacktune_worker_poll(self.raw.as_ptr(), &raw mut done) };
        if count < 0 {
            return Err(-count);
        }
        for at in 0..count as usize {
            // SAFETY: the list has that many items until the next poll.
            let done = unsafe { *done.add(at) };
            self.busy[done.slot as usize] = false;
            each(done);
        }
        Ok(count as u32)
    }
}

impl Drop for WorkerQueues {
    fn drop(&mut self) {
        // SAFETY: it is dropped once, and no part of it is borrowed.
        unsafe { stacktune_worker_free(self.raw.as_ptr()) }
    }
}

#[cold]
fn refused(errno: i32, bytes: usize) -> Error {
    match errno {
        libc::ENOMEM => {
            let mib = bytes.div_ceil(1 << 20);
            Error::failed(format!("there are no {mib} MiB of contiguous huge pages left for a worker's buffers"))
                .hint("add huge pages (`sysctl vm.nr_hugepages=2048`), or use less depth, smaller pages or fewer threads")
        }
        libc::EBUSY => Error::failed("a drive has no queue pair left for a worker")
            .hint("use fewer threads: each takes a queue pair of every drive"),
        libc::EINVAL => Error::input("pages are smaller than a logical block of a drive")
            .hint("choose a page size of at least one logical block"),
        errno => Error::failed(format!("SPDK cannot make a queue for a worker: {}", describe_errno(errno))),
    }
}
