//! Devices that this process holds exclusively, open for writing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use super::uses::{read_only, refuse_in_use};
use super::wipe;
use crate::error::{Error, Result};
use crate::host::{Device, Facts, number_text};
use crate::printable::Shown as _;
use crate::stack::devices::node;
use crate::stack::runner::Runner;

/// How long a device may be held before it counts as in use: a program that only probes it, such as udev or
/// another run listing devices, holds it for less.
const GLANCE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(10);

/// A device that is open for writing and that no other program can mount, swap on or build upon.
///
/// Closing it ends the claim.
#[derive(Debug)]
pub struct Claim {
    pub(super) file: File,
    pub(super) device: Device,
    pub(super) own_fill: bool,
}

impl Claim {
    /// The device, open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether it has a valid stacktune fill, which [`Claim::wipe`] keeps.
    pub fn has_own_fill(&self) -> bool {
        self.own_fill
    }

    /// Opens the claimed device once more, with flags such as `O_DIRECT`, for reading and writing.
    pub fn reopen(&self, flags: i32) -> Result<File> {
        use std::os::fd::AsRawFd;
        // Through the open descriptor, it can't turn into another device.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(path)
            .map_err(|error| Error::os("cannot open", &self.device.path, error))
    }

    /// Blanks the device like [`Claim::wipe`], including a stacktune fill.
    pub(crate) fn blank(&self, runner: &Runner) -> Result<()> {
        wipe::wipe(runner, &self.file, &self.device)
    }

    /// Writes zeros over the first MiB.
    pub(crate) fn clear_start(&self) -> Result<()> {
        wipe::zero_start(&self.file, self.device.size_bytes)
            .map_err(|error| Error::os("cannot clear the first MiB of", &self.device.path, error))
    }

    /// Blanks the device for programs that look for signatures: wipes the signatures, and the first and the
    /// last MiB. A valid stacktune fill is kept.
    pub fn wipe(&self) -> Result<()> {
        if self.own_fill { Ok(()) } else { wipe::wipe(&Runner::default(), &self.file, &self.device) }
    }
}

/// Opens a device exclusively, and makes sure that it is the right one.
pub(super) fn claim(device: &Device, options: &mut OpenOptions) -> Result<File> {
    options.custom_flags(libc::O_EXCL | libc::O_CLOEXEC);
    let file =
        past_glances(|| options.open(&device.path)).map_err(|error| cannot_claim(&device.path, error))?;
    let metadata = file.metadata().map_err(|error| Error::os("cannot examine", &device.path, error))?;
    if number_text(metadata.rdev()) == device.number { Ok(file) } else { Err(gone(device)) }
}

/// Opens a device exclusively, retrying while others may be probing it.
fn past_glances(open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    let ends = Instant::now() + GLANCE;
    loop {
        match open() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < ends => {
                std::thread::sleep(LOOK);
            }
            opened => return opened,
        }
    }
}

fn cannot_claim(path: &Path, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EBUSY) => {
            let what = format!("{} is held exclusively by another program", path.shown());
            Error::refused(what).hint(
                "it may be another run, or a mount in another mount namespace (a container): \
                 see `fuser -v` and `lsblk`",
            )
        }
        Some(libc::EROFS) => read_only(path),
        Some(libc::EACCES | libc::EPERM) => Error::os("cannot open", path, error)
            .hint("writing to a block device needs root, or write access to it"),
        _ => Error::os("cannot open", path, error),
    }
}

/// Claims a device for a step of a confirmed plan: a drive, or a device that the stack has made of it. Its
/// content was judged before the first step; its uses are judged again now.
pub(crate) fn claim_again(device: &Device, min_bytes: u64) -> Result<Claim> {
    refuse_in_use(device, min_bytes)?;
    let file = claim(device, OpenOptions::new().read(true).write(true))?;
    Ok(Claim { file, device: device.clone(), own_fill: false })
}

/// Claims the top block device of a built stack. Anything on it before belonged to the stack.
pub fn claim_built(node: &Path) -> Result<Claim> {
    let devices = Facts::read_devices();
    let name = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let gone = || Error::failed(format!("{} is gone", node.shown()));
    let is_of = |device: &&Device| device.path == node || device.partitions.contains(&name);
    let whole = devices.iter().find(is_of).ok_or_else(gone)?;
    node::check(node)?;
    let number = std::fs::metadata(node).map_err(|e| Error::os("cannot examine", node, e))?.rdev();
    let mut device = Device { path: node.to_owned(), number: number_text(number), ..whole.clone() };
    let file = claim(&device, OpenOptions::new().read(true).write(true))?;
    if whole.path != node {
        (device.name, device.partitions) = (name, Vec::new());
        let end = std::io::Seek::seek(&mut &file, std::io::SeekFrom::End(0));
        device.size_bytes = end.map_err(|e| Error::os("cannot measure", node, e))?;
    }
    Ok(Claim { file, device, own_fill: false })
}

/// Opens it for reading, exclusively; fails while another program holds it exclusively.
fn open_exclusively(node: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(node)
}

pub(super) fn is_held(node: &Path) -> bool {
    open_exclusively(node).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// Checks that no program holds a node exclusively.
pub(crate) fn refuse_claimed(node: &Path) -> Result<()> {
    node::check(node)?;
    past_glances(|| open_exclusively(node)).map(drop).map_err(|error| cannot_claim(node, error))
}

pub(super) fn gone(device: &Device) -> Error {
    let what = format!("{} is no longer the device that was examined", device.path.shown());
    Error::refused(what).hint("it was removed or replaced in the meantime; start again")
}
