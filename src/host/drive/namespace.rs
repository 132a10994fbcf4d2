//! Special ways to reach an opened file or device: by polling the drive's queue, and by `NVMe` commands.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::host::Feature;
use crate::host::number_text;
use crate::host::root::{Root, last_part};

/// Bytes of a sector in sysfs, whatever the device's own.
const SECTOR_BYTES: u64 = 512;
/// The least memory that a segment of a request covers.
const SEGMENT_BYTES: u64 = 4096;

/// An `NVMe` namespace, and where in it a device lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvmeNamespace {
    /// The character device that takes its commands.
    pub generic: PathBuf,
    /// Its number, NSID.
    pub id: u32,
    /// Bytes of its logical blocks.
    pub block_bytes: u64,
    /// Where the device begins in it: 0 except for a partition.
    pub start_bytes: u64,
    /// The most that a command may transfer: the drive's limit (MDTS) as the kernel keeps it, and the limit on
    /// memory segments.
    pub transfer_bytes_max: u64,
}

/// Whether completions of direct I/O on this file or device can be polled for.
pub fn polling_of(file: &File) -> Feature {
    let root = Root::new(Path::new("/"));
    let Some(dir) = whole_device(&root, file) else {
        return Feature::Missing("the drive below it is unknown, so it can't be polled".into());
    };
    let name = last_part(&dir).unwrap_or_default();
    match root.text(&format!("{}/queue/io_poll", dir.to_string_lossy())).as_deref() {
        Some("1") => Feature::Present,
        _ if name.starts_with("nvme") => Feature::Missing(format!(
            "{name} has no poll queues: the nvme module's parameter poll_queues adds some (nvme.poll_queues=2 on the \
             kernel's command line)"
        )),
        _ => Feature::Missing(format!("{name} can't be polled: only NVMe drives with poll queues can")),
    }
}

/// The most bytes of direct I/O that the kernel can poll for on this file or device; none if unknown.
///
/// The kernel would have to split anything larger, which it refuses for polled I/O (Linux 6.1 then retries forever).
pub fn polled_bytes_max(file: &File) -> Option<u64> {
    let root = Root::new(Path::new("/"));
    let dir = whole_device(&root, file)?;
    let of = |what: &str| root.number(&format!("{}/queue/{what}", dir.to_string_lossy()));
    let limits = [
        Some(of("max_segments")? * SEGMENT_BYTES),
        Some(of("max_sectors_kb")? << 10),
        // A boundary that no request may cross: stripes inside the drive.
        of("chunk_sectors").map(|sectors| sectors * SECTOR_BYTES).filter(|bytes| *bytes > 0),
    ];
    limits.into_iter().flatten().min()
}

/// The namespace that a block device is, or is a part of.
///
/// # Errors
/// Why it is not one that accepts commands, as a sentence without a full stop.
pub fn nvme_namespace(file: &File) -> Result<NvmeNamespace, String> {
    let root = Root::new(Path::new("/"));
    let is_device = file.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device());
    let dir = is_device.then(|| device_dir(&root, file)).flatten();
    let dir = dir.ok_or("it is not a block device, but NVMe commands go directly to a drive")?;
    let whole = whole_of(&dir);
    let name = last_part(&whole).unwrap_or_default();
    let number = name.strip_prefix("nvme").ok_or_else(|| format!("{name} is not an NVMe drive"))?;
    let generic = format!("ng{number}");
    if !root.has(&format!("sys/class/nvme-generic/{generic}")) {
        return Err(format!("{name} has no /dev/{generic}: NVMe commands through io_uring need Linux 5.19"));
    }
    let of = |what: &str| root.number(&format!("{}/{what}", whole.to_string_lossy()));
    let described = || -> Option<NvmeNamespace> {
        let start = root.number(&format!("{}/start", dir.to_string_lossy())).unwrap_or(0);
        let segments = of("queue/max_segments")? * SEGMENT_BYTES;
        Some(NvmeNamespace {
            generic: Path::new("/dev").join(&generic),
            id: u32::try_from(of("nsid")?).ok()?,
            block_bytes: of("queue/logical_block_size")?,
            start_bytes: start * SECTOR_BYTES,
            transfer_bytes_max: segments.min(of("queue/max_hw_sectors_kb")? << 10),
        })
    };
    described().ok_or_else(|| format!("sysfs does not show the number or the limits of {name}"))
}

/// The folder in sysfs of the drive, not of its partition, that a file or device lies on.
fn whole_device(root: &Root, file: &File) -> Option<PathBuf> {
    device_dir(root, file).map(|dir| whole_of(&dir))
}

fn device_dir(root: &Root, file: &File) -> Option<PathBuf> {
    let metadata = file.metadata().ok()?;
    let number = if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    std::fs::canonicalize(root.at(&format!("sys/dev/block/{}", number_text(number)))).ok()
}

fn whole_of(dir: &Path) -> PathBuf {
    match dir.parent() {
        Some(whole) if dir.join("partition").exists() => whole.to_owned(),
        _ => dir.to_owned(),
    }
}
