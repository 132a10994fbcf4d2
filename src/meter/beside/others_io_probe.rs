//! Measures what other programs do on the drives below the target.
//!
//! The block layer counts everyone's reads and writes; the load's share has to be subtracted, and with it whatever
//! the kernel adds for the load. So only what is certain counts:
//!
//! - *Beside the target*: what a drive moves beyond the parts of it that the target uses. That is others' I/O, reads
//!   and writes alike, whatever the load is.
//! - *On the target*: what the devices at the top move beyond what this process submits (`/proc/self/io`: all its
//!   threads, including `RocksDB`'s and `io_uring`'s, read-ahead, and what it makes dirty in the page cache). Only
//!   the load can use a stack that we built; on a device that is itself the target, the excess is others'. On a file
//!   system, that holds for reads; excess writes may come from its journal on behalf of the load. They count only up
//!   to what other programs wrote recently by their own counts (`/proc/PID/io`), less what has reached other drives.
//!
//! So RAID's parity and mirrors, and `RocksDB`'s compactions, are never taken for others' I/O.
//!
//! The load's I/O is counted when it is submitted, and by the block layer when it completes; with the page cache,
//! long after. The excess lags by the I/O in flight, so only its rise above its maximum counts: others' I/O may show
//! up that much later. Our own I/O is never counted, with one exception: a journal's writes, while other programs
//! have written data elsewhere that has not reached a drive yet.
//!
//! A **loop device counts as a drive**, as for write amplification: what happens on the drive below its file is left
//! out. I/O that bypasses the block layer (`NVMe` commands from `io_uring`, userspace drivers) makes it unknown.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::others_io::OthersIo;
use crate::host::{LevelDevice, Levels};
use crate::meter::devices::block::Device;
use crate::meter::devices::member::Member;
use crate::units::SECOND_NS;

/// How long the kernel may take by default to write back what a program wrote: dirty pages expire after 30 s,
/// and it checks for them every 5 s.
const WRITE_BACK_NS: u64 = 40 * SECOND_NS;
/// The most devices that are named one by one.
const NAMED_MAX: usize = 3;

/// Reads the counters of the drives and of this process; or nothing, for simulated runs.
#[derive(Debug, Default)]
pub struct OthersIoProbe {
    drives: Vec<Beside>,
    top: Option<Top>,
}

/// A drive of which the target uses only parts.
#[derive(Debug)]
struct Beside {
    name: String,
    whole: Device,
    parts: Vec<Device>,
    beyond: [Beyond; 2],
}

/// The devices at the top that others can use too.
#[derive(Debug)]
struct Top {
    name: String,
    devices: Vec<Device>,
    own: OwnIo,
    beyond: [Beyond; 2],
    /// Set where excess writes may be the file system's own.
    evidence: Option<Evidence>,
}

/// Evidence that excess writes are others'.
#[derive(Debug)]
struct Evidence {
    /// What other programs wrote recently, to any drive.
    lately: Lately,
    /// The drives that may have received it instead.
    elsewhere: Vec<Device>,
    /// Whether the target is on loop devices, so that one of these drives is also below it: what passes
    /// through the loop devices did not go elsewhere.
    on_loops: bool,
}

impl OthersIoProbe {
    /// Starts counting for a target of these devices and members, under a root (`/`). `own` means a stack
    /// that we built, which only the load uses.
    pub fn open(root: &Path, levels: &Levels, members: &[Member], own: bool) -> Self {
        let mut drives: Vec<Beside> = Vec::new();
        let mut wholes = Vec::new();
        for part in &levels.bottom {
            let Some((whole, is_part)) = whole_of(part) else { continue };
            if !wholes.contains(&whole.name) {
                wholes.push(whole.name.clone());
            }
            if !is_part {
                continue;
            }
            let part = Device::open(part.stat.clone());
            match drives.iter_mut().find(|drive| drive.name == whole.name) {
                Some(drive) => drive.parts.push(part),
                None => drives.push(Beside {
                    name: whole.name,
                    whole: Device::open(whole.stat),
                    parts: vec![part],
                    beyond: Default::default(),
                }),
            }
        }
        // A drive that is also used whole has nothing beside the target.
        drives.retain(|drive| !levels.bottom.iter().any(|device| device.name == drive.name));
        let files = members.iter().any(|member| member.device.is_none());
        let top = (!own && !levels.top.is_empty()).then(|| Top {
            name: name_of(&wholes, &levels.top),
            devices: levels.top.iter().map(|device| Device::open(device.stat.clone())).collect(),
            own: OwnIo::open(root),
            beyond: Default::default(),
            evidence: files.then(|| Evidence::open(root, &wholes)),
        });
        Self { drives, top }
    }

    /// What others did since the last call, by drive. `counted` says whether the block layer sees all of the
    /// load's I/O; `others_written` is what other programs wrote since the last call by their own counts, if
    /// any of them can be read.
    pub fn window(&mut self, now_ns: u64, counted: bool, others_written: Option<u64>) -> Vec<OthersIo> {
        let mut found: Vec<OthersIo> = self.drives.iter_mut().filter_map(Beside::window).collect();
        let Some(top) = self.top.as_mut().and_then(|top| top.window(now_ns, others_written)) else {
            return found;
        };
        let top = if counted { top } else { OthersIo { read_bytes: None, written_bytes: None, ..top } };
        match found.iter_mut().find(|of| of.drive == top.drive) {
            Some(of) => {
                let both = |beside: Option<u64>, on: Option<u64>| Some(beside.unwrap_or(0) + on.unwrap_or(0));
                of.read_bytes = both(of.read_bytes, top.read_bytes);
                of.written_bytes = both(of.written_bytes, top.written_bytes);
            }
            None if top.read_bytes.or(top.written_bytes).is_some() => found.push(top),
            None => {}
        }
        found
    }
}

/// The whole drive of a device or partition, and whether it is a partition.
fn whole_of(device: &LevelDevice) -> Option<(LevelDevice, bool)> {
    let dir = device.stat.parent()?;
    let is_part = dir.join("partition").exists();
    let whole = if is_part { dir.parent()? } else { dir };
    let name = whole.file_name()?.to_string_lossy().into_owned();
    Some((LevelDevice { name, stat: whole.join("stat") }, is_part))
}

/// What to call the devices at the top: the drive below them if there is only one, else their own names.
fn name_of(wholes: &[String], top: &[LevelDevice]) -> String {
    match (wholes, top) {
        ([drive], _) => drive.clone(),
        (_, [one]) => one.name.clone(),
        (_, all) => {
            let names: Vec<_> = all.iter().take(NAMED_MAX).map(|device| device.name.as_str()).collect();
            let more = all.len() - names.len();
            let names = names.join("+");
            if more > 0 { format!("{names}+{more} more") } else { names }
        }
    }
}

impl Evidence {
    fn open(root: &Path, wholes: &[String]) -> Self {
        let folder = root.join("sys/block");
        let names = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let is_other = |name: &std::ffi::OsString| {
            folder.join(name).join("device").exists() && !wholes.iter().any(|whole| name == whole.as_str())
        };
        let device = |name| Device::open(folder.join(name).join("stat"));
        Self {
            lately: Lately::default(),
            elsewhere: names.filter(is_other).map(device).collect(),
            on_loops: wholes.iter().any(|whole| folder.join(whole).join("loop").exists()),
        }
    }

    /// Adds what other programs wrote, less what has meanwhile reached other drives; `on_target` bytes were
    /// written to the target.
    fn add(&mut self, now_ns: u64, bytes: u64, on_target: u64) {
        self.lately.add(now_ns, bytes);
        let written: u64 = self.elsewhere.iter_mut().filter_map(Device::window).map(|(_, of)| of).sum();
        self.lately.take(if self.on_loops { written.saturating_sub(on_target) } else { written });
    }
}

impl Beside {
    fn window(&mut self) -> Option<OthersIo> {
        // Parts after the whole, so that I/O in between counts for the target.
        let whole = self.whole.window();
        let parts = sum(&mut self.parts);
        let ((read, written), parts) = (whole?, parts?);
        let [of_reads, of_writes] = &mut self.beyond;
        Some(OthersIo {
            drive: self.name.clone(),
            bytes: read + written,
            read_bytes: Some(of_reads.rise(i128::from(read) - i128::from(parts.0))),
            written_bytes: Some(of_writes.rise(i128::from(written) - i128::from(parts.1))),
        })
    }
}

impl Top {
    fn window(&mut self, now_ns: u64, others_written: Option<u64>) -> Option<OthersIo> {
        // This process's count after the devices', so that I/O in between counts for the load.
        let all = sum(&mut self.devices);
        let own = self.own.window();
        if let Some(evidence) = &mut self.evidence {
            evidence.add(now_ns, others_written.unwrap_or(0), all.map_or(0, |(_, written)| written));
        }
        let ((read, written), own) = (all?, own?);
        let [of_reads, of_writes] = &mut self.beyond;
        let read_bytes = of_reads.rise(i128::from(read) - own[0]);
        let written_bytes = of_writes.rise(i128::from(written) - own[1]);
        Some(OthersIo {
            drive: self.name.clone(),
            bytes: read + written,
            read_bytes: Some(read_bytes),
            written_bytes: match &mut self.evidence {
                None => Some(written_bytes),
                Some(evidence) => others_written.map(|_| evidence.lately.take(written_bytes)),
            },
        })
    }
}

/// Bytes read and written by all of these since the last call; none if one can't be read.
fn sum(devices: &mut [Device]) -> Option<(u64, u64)> {
    // Read all of them even if one fails, as the next window starts here for each.
    let all: Vec<_> = devices.iter_mut().map(Device::window).collect();
    all.into_iter().try_fold((0, 0), |sum, of| of.map(|of| (sum.0 + of.0, sum.1 + of.1)))
}

/// How far a changing amount lies below its maximum.
#[derive(Debug, Default)]
struct Beyond {
    below: u128,
}

impl Beyond {
    /// How far this change takes it above its maximum.
    fn rise(&mut self, change: i128) -> u64 {
        let by = change.unsigned_abs();
        if change < 0 {
            self.below += by;
            return 0;
        }
        let rose = by.saturating_sub(self.below);
        self.below = self.below.saturating_sub(by);
        u64::try_from(rose).unwrap_or(u64::MAX)
    }
}

/// This process's own reads and writes.
#[derive(Debug)]
struct OwnIo {
    path: PathBuf,
    last: Option<IoCounts>,
}

impl OwnIo {
    fn open(root: &Path) -> Self {
        let path = root.join("proc/self/io");
        Self { last: IoCounts::read(&path), path }
    }

    /// Bytes read and written since the last call; written bytes may be negative, when dirty pages are dropped.
    fn window(&mut self) -> Option<[i128; 2]> {
        let now = IoCounts::read(&self.path);
        let (now, last) = (now, std::mem::replace(&mut self.last, now));
        let (now, last) = (now?, last?);
        let change = |of: fn(&IoCounts) -> i128| of(&now) - of(&last);
        Some([change(|of| i128::from(of.read_bytes)), change(IoCounts::written)])
    }
}

/// A process's storage I/O (`io` in `/proc`), including all its threads and its reaped children. Parsed by
/// hand: three lines are needed, for each process, and procfs-core rejects a file that lacks any of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::meter) struct IoCounts {
    read_bytes: u64,
    write_bytes: u64,
    cancelled_write_bytes: u64,
}

impl IoCounts {
    /// None where another user's `io` may not be read.
    pub fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let of = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.and_then(|value| value.trim().parse().ok())
        };
        Some(Self {
            read_bytes: of("read_bytes")?,
            write_bytes: of("write_bytes")?,
            cancelled_write_bytes: of("cancelled_write_bytes")?,
        })
    }

    /// Bytes read from drives.
    #[cfg(feature = "programs")]
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Bytes written or made dirty, less those dropped before write-back.
    pub fn written(&self) -> i128 {
        i128::from(self.write_bytes) - i128::from(self.cancelled_write_bytes)
    }
}

/// What other programs wrote recently and the kernel may still have to write back; oldest first.
#[derive(Debug, Default)]
struct Lately(VecDeque<(u64, u64)>);

impl Lately {
    fn add(&mut self, now_ns: u64, bytes: u64) {
        self.0.push_back((now_ns, bytes));
        while self.0.front().is_some_and(|(at_ns, left)| *left == 0 || at_ns + WRITE_BACK_NS < now_ns) {
            self.0.pop_front();
        }
    }

    /// Takes up to this many bytes, the oldest first.
    fn take(&mut self, bytes: u64) -> u64 {
        let mut wanted = bytes;
        for (_, left) in &mut self.0 {
            let taken = wanted.min(*left);
            (*left, wanted) = (*left - taken, wanted - taken);
        }
        bytes - wanted
    }
}

#[cfg(test)]
#[path = "others_io_tests.rs"]
mod tests;
